"""Pairing: the queries on which two evaluations can be compared, and the others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.tables import counted
from karat.errors import MismatchError, UsageError
from karat.results.evaluation import Evaluation
from karat.results.scores import MetricScores


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two evaluations, and their queries by whether they can be compared."""

    baseline: Evaluation
    candidate: Evaluation
    queries: tuple[str, ...]  # in both, with the same gold
    places: tuple[Ints, Ints]  # of these queries in either
    added: tuple[str, ...] = ()  # only in the candidate
    removed: tuple[str, ...] = ()  # only in the baseline
    relabelled: tuple[str, ...] = ()  # in both, with other gold
    clusters: Ints | None = None  # equal for queries that belong together

    def scores(self, metric: str) -> tuple[Floats, Floats, Bools]:
        """The scores of both on the common queries, and which of them both have."""
        one = self.baseline[metric].scores[self.places[0]]
        two = self.candidate[metric].scores[self.places[1]]
        return one, two, ~(np.isnan(one) | np.isnan(two))

    def differences(self, metric: str) -> Floats:
        """Candidate less baseline; 0 where one has no score, which changes nothing."""
        old, new, known = self.scores(metric)
        return np.where(known, new - old, 0.0)


def left_out(
    added: Sequence[str], removed: Sequence[str], relabelled: Sequence[str]
) -> list[str]:
    """What to say of queries that are not compared, each kind with some of them."""
    kinds = (
        ("only in the candidate", added),
        ("only in the baseline", removed),
        ("in both with other gold, and not compared", relabelled),
    )
    return [
        f"{counted(len(queries), 'query')} {what}: {', '.join(queries[:3])}"
        for what, queries in kinds
        if queries
    ]


def pair_up(
    baseline: Evaluation,
    candidate: Evaluation,
    *,
    force: bool = False,
    cluster: str | None = None,
) -> Pairing:
    """Find the queries that two evaluations share, with the same gold."""
    if not force:
        _refuse_unlike(baseline, candidate)
    ids, theirs = tuple(baseline.queries), tuple(candidate.queries)
    old, new = baseline.digests, candidate.digests
    if ids and ids == theirs and old == new:
        every = np.arange(len(ids))
        clusters = _clusters(baseline, ids, cluster)
        return Pairing(baseline, candidate, ids, (every, every), clusters=clusters)
    places = {query: place for place, query in enumerate(ids)}
    common = [
        (query, places[query], place)
        for place, query in enumerate(theirs)
        if query in places
    ]
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
    kept, present = {query for query, *_ in same}, {*theirs}
    queries = tuple(query for query, *_ in same)
    return Pairing(
        baseline,
        candidate,
        queries,
        (
            np.array([row[1] for row in same], np.int64),
            np.array([row[2] for row in same], np.int64),
        ),
        added=tuple(query for query in theirs if query not in places),
        removed=tuple(query for query in ids if query not in present),
        relabelled=tuple(query for query, *_ in common if query not in kept),
        clusters=_clusters(baseline, queries, cluster),
    )


def _clusters(
    one: Evaluation, queries: Sequence[str], field: str | None
) -> Ints | None:
    """A number per query, equal for those with the same value of a field."""
    if field is None:
        return None
    facts = one.facts
    values = [facts[q].metadata.get(field) if q in facts else None for q in queries]
    if all(value is None for value in values):
        known = sorted({name for fact in facts.values() for name in fact.metadata})
        shown = ", ".join(known) or "none"
        raise UsageError(
            f"no query has a field {field!r} to cluster by; fields of queries: {shown}"
        )
    numbers: dict[object, int] = {}
    # A query without the field is a cluster of its own.
    pairs = zip(queries, values, strict=True)
    keys = [(query,) if value is None else value for query, value in pairs]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _refuse_unlike(baseline: Evaluation, candidate: Evaluation) -> None:
    """Refuse what must be the same for two numbers to mean the same, and is not."""
    old, new = baseline.policies, candidate.policies
    unlike = []
    for name in old.__dataclass_fields__:
        one, two = getattr(old, name), getattr(new, name)
        if one != two and name not in {"force", "profile"}:
            unlike.append(f"{name}: {one} and {two}")
    for metric, matcher in baseline.matchers.items():
        other = candidate.matchers.get(metric, matcher)
        if other != matcher:
            unlike.append(f"matcher of {metric}: {matcher} and {other}")
    if unlike:
        raise UsageError(
            f"{baseline.run} and {candidate.run} were not scored in the same way: "
            f"{'; '.join(unlike)}. Score them alike, or compare them all the same with "
            "force=True (--force)"
        )


def average(evaluations: Sequence[Evaluation], name: str) -> Evaluation:
    """One evaluation of several runs of one system, such as seeds or folds.

    Each query's score is the mean over the runs that have one, so that a system does
    not count as several.
    """
    first = evaluations[0]
    for other in evaluations[1:]:
        pair_up(first, other)
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
