"""Merging: evaluations of disjoint parts become exactly the evaluation of the whole."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.data.gold import Gold
from karat.data.matches import merge_by_query, merge_matches, merge_notices
from karat.data.runs import Latency
from karat.errors import UsageError
from karat.results.scores import MetricScores

if TYPE_CHECKING:
    from karat.results.evaluation import Evaluation


def merge_evaluations(parts: "Sequence[Evaluation]") -> "Evaluation":
    """The evaluation of all queries, from those of disjoint parts, in their order."""
    if not parts:
        raise UsageError("nothing to merge: no evaluations were given")
    first = parts[0]
    for part in parts[1:]:
        _refuse_unlike(first, part)
    queries = [query for part in parts for query in part.queries]
    if len({*queries}) < len(queries):
        twice = next(query for query in queries if queries.count(query) > 1)
        raise UsageError(
            f"query {twice!r} is in two of the evaluations: parts must be disjoint"
        )
    labelled_by = Counter[str]()
    for part in parts:
        labelled_by.update(part.labelled_by)
    known = [part.own_k for part in parts if part.own_k is not None]
    return replace(
        first,
        queries=queries,
        columns=_columns(parts, queries),
        missing=np.concatenate([part.missing for part in parts]),
        matches={
            name: merge_matches([part.matches[name] for part in parts])
            for name in first.matches
        },
        facts=_united(part.facts for part in parts),
        notices=merge_notices(part.notices for part in parts),
        labelled_by=dict(labelled_by),
        own_k=np.concatenate(known) if known else None,
        kept=_united(part.kept for part in parts),
        labels=_labels([part.labels for part in parts]),
        fingerprints=[digest for part in parts for digest in part.digests],
        latency=_latency([p.latency for p in parts if p.latency is not None]),
    )


def _labels(parts: Sequence[Gold | None]) -> Gold | None:
    """The gold of all parts, if each has its own."""
    golds = [gold for gold in parts if gold is not None]
    if len(golds) < len(parts):
        return None
    kinds: dict[str, Any] = {
        field.name: _united(getattr(gold, field.name) for gold in golds)
        for field in fields(Gold)
        if field.name not in {"order", "name", "notices"}
    }
    order = tuple(query for gold in golds for query in gold.queries)
    return replace(golds[0], order=order, **kinds)


def _latency(parts: Sequence[Latency]) -> Latency | None:
    if not parts:
        return None
    return Latency(
        _united(part.milliseconds for part in parts),
        {query for part in parts for query in part.earlier},
        {query for part in parts for query in part.first_call},
        max(part.concurrency or 0 for part in parts) or None,
    )


def _refuse_unlike(first: "Evaluation", other: "Evaluation") -> None:
    for what in ("policies", "matchers", "run", "gold"):
        one, two = getattr(first, what), getattr(other, what)
        if one != two:
            raise UsageError(
                f"evaluations of different {what} cannot be merged: {one} and {two}"
            )
    if [*first.matches] != [*other.matches]:
        raise UsageError("evaluations with and without hits cannot be merged")


def _columns(
    parts: "Sequence[Evaluation]", queries: Sequence[str]
) -> dict[str, MetricScores]:
    sizes = [len(part.queries) for part in parts]
    merged = {}
    for name, column in parts[0].columns.items():
        columns = [part.columns[name] for part in parts]
        merged[name] = replace(
            column,
            scores=np.concatenate([c.scores for c in columns]),
            queries=queries,
            undefined=sum(c.undefined for c in columns),
            failures=merge_by_query(sizes, (c.failures for c in columns)),
            cutoffs=tuple(sorted({k for c in columns for k in c.cutoffs})),
        )
    return merged


def _united(parts: Any) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}
