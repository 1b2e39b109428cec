"""What is stored of an evaluation, and how its rankings are scored again."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, NamedTuple

import numpy as np

from karat.data.gold import Gold
from karat.data.memory_runs import DocumentRun
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Document
from karat.data.spelling import LETTER
from karat.evaluation import evaluate
from karat.results.evaluation import Evaluation
from karat.results.plain_values import from_plain
from karat.results.scores import read_measure

_SWITCHES: Final = tuple(
    field.name
    for field in fields(Policies)
    # Rankings are stored in their order.
    if field.name not in {"precision", "ties", "extra", "force"}
)


class RunFacts(NamedTuple):
    """What is stored of a run besides rankings and scores."""

    project: int
    depth: int
    queries: list[str]
    scoring: list[Any]  # policies, matcher, and metrics that can be scored again
    head: Evaluation


def score_again(
    rankings: Mapping[str, Sequence[Document] | None],
    gold: Gold,
    scoring: Sequence[Any],
    facts: Mapping[str, Query],
    **options: Any,
) -> Evaluation:
    """What stored rankings score: by name, None where the run lacks the query."""
    policies, matcher, metrics = scoring
    rules = from_plain(Policies, policies, "policies")
    return evaluate(
        DocumentRun({n: top for n, top in rankings.items() if top is not None}),
        gold=gold,
        metrics=[*metrics],
        match=matcher,
        queries=facts,
        force=True,
        **{name: getattr(rules, name) for name in _SWITCHES},
        **options,
    )


def gold_of(result: Evaluation) -> Gold:
    """The gold that an evaluation was made with."""
    if result.labels is not None or "id" not in result.matches:
        return result.labels or Gold()
    labels = result.matches["id"].labels()
    return Gold(dict(zip(result.queries, labels, strict=True)))


def frozen_columns(result: Evaluation, counts: Sequence[int]) -> dict[str, str]:
    """The metrics by which stored rankings cannot be scored again, and why."""
    first = next(iter(result.matches.values()))
    stored = np.array(counts)
    cut = first.hits.retrieved > stored
    depth = int(stored[cut].min()) if cut.any() else None
    reasons = {}
    for metric, column in result.columns.items():
        measure = read_measure(metric, result.default_matcher, result.policies.profile)
        k = getattr(measure.metric, LETTER, None)
        deepest = max(column.cutoffs, default=None) if k == LETTER else k
        if result.matches[measure.matcher].verdicts:
            reasons[metric] = "judged by a model"
        elif result.policies.judged_only:
            reasons[metric] = "documents without a label were removed"
        elif result.labels is None and "id" not in result.matches:
            reasons[metric] = "saved without its gold"
        elif depth is not None and not (isinstance(deepest, int) and deepest <= depth):
            reasons[metric] = f"reads deeper than the {depth} documents that are stored"
    return reasons


def bare(result: Evaluation) -> Evaluation:
    """The same without what is stored apart: queries, scores, gold and documents."""
    columns = {
        metric: replace(column, scores=np.zeros(0), queries=())
        for metric, column in result.columns.items()
    }
    less = replace(result, queries=(), columns=columns, matches={}, kept={}, facts={})
    return replace(less, labels=None, fingerprints=(), own_k=None)
