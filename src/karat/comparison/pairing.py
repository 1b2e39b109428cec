"""Pairing: the queries on which two evaluations can be compared, and the others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.errors import MismatchError, UsageError
from karat.results.evaluation import Evaluation
from karat.results.scores import MetricScores

__all__ = ["Pairing", "average", "pair", "paired_scores"]


@dataclass(frozen=True)
class Pairing:
    """The queries of two evaluations, told apart by whether they can be compared.

    Attributes:
        queries: in both, with the same gold.
        baseline: their places in the baseline.
        candidate: their places in the candidate.
        added: only in the candidate.
        removed: only in the baseline.
        relabelled: in both, with other gold.
    """

    queries: tuple[str, ...]
    baseline: Ints
    candidate: Ints
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    relabelled: tuple[str, ...] = ()


def pair(
    baseline: Evaluation, candidate: Evaluation, *, force: bool = False
) -> Pairing:
    """Find the queries that two evaluations share, with the same gold.

    Args:
        baseline: what is compared with.
        candidate: what is compared.
        force: compare evaluations by other matchers or policies all the same.

    Raises:
        UsageError: they were scored by other matchers or policies.
        MismatchError: they share no query with the same gold.
    """
    if not force:
        _refuse_unlike(baseline, candidate)
    places = {query: place for place, query in enumerate(baseline.queries)}
    common = [
        (query, places[query], place)
        for place, query in enumerate(candidate.queries)
        if query in places
    ]
    # Digests are costly, and not needed where the gold is the same object.
    old, new = baseline.digests, candidate.digests
    same = [row for row in common if old[row[1]] == new[row[2]]]
    if not same:
        raise MismatchError(
            f"{baseline.run} and {candidate.run} have no query in common with the same "
            f"gold: {len(baseline.queries)} and {len(candidate.queries)} queries, "
            f"{len(common)} in both, all of them with other labels"
            if common
            else f"{baseline.run} and {candidate.run} have no query in common",
            hint="were they scored against the same gold?",
        )
    kept = {query for query, *_ in same}
    theirs = {*candidate.queries}
    return Pairing(
        tuple(query for query, *_ in same),
        np.array([row[1] for row in same], np.int64),
        np.array([row[2] for row in same], np.int64),
        added=tuple(query for query in candidate.queries if query not in places),
        removed=tuple(query for query in baseline.queries if query not in theirs),
        relabelled=tuple(query for query, *_ in common if query not in kept),
    )


def paired_scores(
    metric: str, baseline: Evaluation, candidate: Evaluation, pairing: Pairing
) -> tuple[Floats, Floats, Bools]:
    """The scores of both on the common queries, and which of them both have."""
    one = baseline[metric].scores[pairing.baseline]
    two = candidate[metric].scores[pairing.candidate]
    return one, two, ~(np.isnan(one) | np.isnan(two))


def _refuse_unlike(baseline: Evaluation, candidate: Evaluation) -> None:
    unlike = [
        f"{name}: {one} and {two}"
        for name, one, two in _rules(baseline, candidate)
        if one != two
    ]
    if unlike:
        raise UsageError(
            f"{baseline.run} and {candidate.run} were not scored in the same way: "
            f"{'; '.join(unlike)}. Score them alike, or compare them all the same with "
            "force=True (--force)"
        )


def _rules(
    baseline: Evaluation, candidate: Evaluation
) -> Sequence[tuple[str, object, object]]:
    """What must be the same for two numbers to mean the same."""
    old, new = baseline.policies, candidate.policies
    policies = [
        (name, getattr(old, name), getattr(new, name))
        for name in old.__dataclass_fields__
        if name not in {"force", "profile"}
    ]
    common = [metric for metric in baseline.matchers if metric in candidate.matchers]
    matchers = [
        (f"matcher of {metric}", baseline.matchers[metric], candidate.matchers[metric])
        for metric in common
    ]
    return [*policies, *matchers]


def average(evaluations: Sequence[Evaluation], name: str) -> Evaluation:
    """One evaluation of several runs of one system, such as seeds or folds.

    Each query's score is the mean over the runs that have one, so that a system does
    not count as several.
    """
    first = evaluations[0]
    for other in evaluations[1:]:
        pair(first, other)
        if list(other.queries) != list(first.queries):
            raise UsageError(
                f"{first.run} and {other.run} are not runs of one system: they have "
                "other queries"
            )
    columns: dict[str, MetricScores] = {}
    for metric, column in first.items():
        scores = np.array([e[metric].scores for e in evaluations if metric in e])
        defined = ~np.isnan(scores)
        total = np.where(defined, scores, 0.0).sum(axis=0)
        count = defined.sum(axis=0)
        mean = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
        columns[metric] = replace(column, scores=mean, binary=False, failures={})
    return replace(
        first,
        run=name,
        columns=columns,
        matches={},
        fingerprints=first.digests,
        labels=None,
        kept={},
    )
