"""Two runs on the queries they share: how far they differ by a metric, and how sure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.intervals import Interval
from karat.data.tables import DASH, counted
from karat.errors import MismatchError, UsageError
from karat.results.evaluation import Evaluation
from karat.results.scores import MetricScores
from karat.stats.intervals import sample_of
from karat.stats.multiple_tests import Adjusted
from karat.stats.paired import (
    interval_of,
    outcomes,
    queries_needed,
    t_test,
    wilcoxon,
)
from karat.stats.sign_flip import ALPHA, Flips, flipped, smallest_p

Outcome = Literal["better", "worse", "different", "no different", "undecided"]
Test = Literal["sign-flip", "t", "wilcoxon"]

FEWEST, FEWEST_CLUSTERS = 15, 6
"""Below so many queries, or clusters of them, no verdict is given."""

_TINY = 0.0001
# So many times the queries there are is more than anybody would ask.
_TOO_MANY = 20


class Pairing(NamedTuple):
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

    def differences(self, metrics: Sequence[str]) -> tuple[Floats, Bools]:
        """Candidate less baseline by each metric, and where both have a score; else 0.

        A difference of 0 changes no test.
        """
        old, new, known = map(np.array, zip(*map(self.scores, metrics), strict=True))
        return np.where(known, new - old, 0.0), known


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
    force: bool,
    cluster: str | None = None,
) -> Pairing:
    """Find the queries that two evaluations share, with the same gold."""
    if not force:
        _refuse_unlike(baseline, candidate)
    ids, theirs = tuple(baseline.queries), tuple(candidate.queries)
    old, new = baseline.digests, candidate.digests
    if ids and ids == theirs and old == new:
        every = np.arange(len(ids))
        clusters = None if cluster is None else _clusters(baseline, ids, cluster)
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
        clusters=None if cluster is None else _clusters(baseline, queries, cluster),
    )


def _clusters(one: Evaluation, queries: Sequence[str], field: str) -> Ints:
    """A number per query, equal for those with the same value of a field."""
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
            f"{'; '.join(unlike)}. Score them in the same way, or compare them "
            "anyway with force=True (--force)"
        )


def average(evaluations: Sequence[Evaluation], name: str) -> Evaluation:
    """One evaluation of several runs of one system, such as seeds or folds.

    Each query's score is the mean over the runs that have one, so that a system does
    not count as several.
    """
    first = evaluations[0]
    for other in evaluations[1:]:
        pair_up(first, other, force=False)
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


@dataclass(frozen=True)
class Difference:
    """How two runs differ by one metric."""

    metric: str  # its spelling
    baseline: str  # name of the run that is compared with
    candidate: str  # name of the run that is compared
    n: int  # number of queries that both have a score for
    left_out: int  # queries without a score in either
    baseline_mean: float  # over these n queries
    candidate_mean: float  # over the same
    difference: float  # candidate less baseline
    interval: Interval | None  # how large it may be, other queries being asked
    test: Test  # which test p is of
    p: float  # how likely a difference as large is by chance
    adjusted_p: float  # the same, allowing for the other comparisons made beside it
    wins: int  # queries on which the candidate is better
    ties: int  # queries on which both are the same
    losses: int  # queries on which the candidate is worse
    # Better or worse where the adjusted p is at most 0.05; different by a metric of
    # which more is neither; no different where a margin was given and the whole
    # interval lies within; else undecided.
    verdict: Outcome = "undecided"
    margin: float | None = None  # the largest difference that does not matter
    # Standard deviation of the differences between queries; of clusters, as large as
    # gives the mean its standard error.
    spread: float = math.nan
    units: int = 0  # number of clusters; of queries without them
    # None: neither of two scores is the better one.
    higher_is_better: bool | None = True

    @property
    def smallest_p(self) -> float:
        """The smallest p that so many queries, or clusters, can give."""
        return smallest_p(self.units)

    @property
    def more_queries(self) -> float:
        """How many more queries like these would settle a difference of this size."""
        alpha = ALPHA * self.p / max(self.adjusted_p, _TINY)
        return max(1.0, self.queries_for(self.difference, alpha) - self.n)

    def queries_for(self, difference: float, alpha: float = ALPHA) -> float:
        """How many queries like these would show a difference, 4 times out of 5.

        Args:
            difference: between the means.
            alpha: the largest p that counts as shown.
        """
        return queries_needed(difference, self.spread, alpha)

    @property
    def outcome(self) -> str:
        """The verdict as tables show it: of equal scores, that they are equal."""
        same = self.n and not self.wins and not self.losses
        within = f" within {self.margin:g}" if self.verdict == "no different" else ""
        return "equal" if same else f"{self.verdict}{within}"

    def sentence(self) -> str:
        """The verdict in words, with what it rests on, or with what would settle it."""
        if not self.n:
            return f"{self.metric}: no query has a score in both runs"
        if not self.wins and not self.losses:
            return f"{self.metric} is the same on all {self.n} queries"
        change = f"{self.difference:+.4f}"
        if self.interval is not None:
            low, high = self.interval
            change += f" (95% interval {low:+.4f} to {high:+.4f})"
        what = f"{self.candidate} {_VERBS[self.verdict]} {self.baseline}"
        within = f", within {self.margin:g}" if self.verdict == "no different" else ""
        said = f"{what} by {self.metric}{within}: {change}"
        if not self.few:
            said += f", {p_equals(self.adjusted_p)}"
        return f"{said}; {self.open_question}" if self.open_question else said

    @property
    def open_question(self) -> str:
        """Of an undecided difference, why it is that and what would settle it."""
        if self.few:
            counted = f"{self.n} queries"
            if self.units < self.n:
                counted += f" in {self.units} clusters"
            return f"{counted} are too few: p cannot be below {self.smallest_p:.2g}"
        if self.verdict != "undecided":
            return ""
        if not self.more_queries <= _TOO_MANY * self.n:
            return "settling it would take more queries than is practical"
        return f"about {round_up(self.more_queries)} more queries would settle it"

    @property
    def few(self) -> bool:
        """Whether there are too few queries, or clusters, for any verdict."""
        return self.n < FEWEST or self.units < FEWEST_CLUSTERS


_VERBS: dict[str, str] = {
    "better": "is better than",
    "worse": "is worse than",
    "different": "differs from",
    "no different": "is no different from",
    "undecided": "cannot be distinguished from",
}


def round_up(count: float) -> str:
    """A number of queries for people: two digits, and tens at least."""
    step = 10 ** max(1, len(str(int(count))) - 2)
    return f"{math.ceil(count / step) * step:,}"


def show_p(value: float) -> str:
    """A p value for people: none is 0."""
    if math.isnan(value):
        return DASH
    return f"{value:.4f}" if value >= _TINY else f"<{_TINY}"


def p_equals(value: float) -> str:
    """A p value in a sentence: `p = 0.0190`, or `p < 0.0001`."""
    shown = show_p(value)
    return f"p < {shown[1:]}" if shown.startswith("<") else f"p = {shown}"


def measure(
    pairing: Pairing,
    metric: str,
    rows: Sequence[int] | None = None,
    *,
    margin: float | None = None,
    test: Test = "sign-flip",
    flips: Flips | None = None,
    family: Adjusted | None = None,
) -> Difference:
    """The difference of two runs by a metric, on all common queries or on some.

    `flips` is the differences with their signs flipped, where that is done already;
    `family` is what MaxT says of it among others: the interval is of that level too.
    """
    old, new, known = pairing.scores(metric)
    own = known if rows is None else known & np.isin(np.arange(len(known)), rows)
    clusters = None if pairing.clusters is None else pairing.clusters[own]
    column, asked = pairing.baseline[metric], len(known) if rows is None else len(rows)
    differences = (new - old)[own]
    n, p = len(differences), math.nan
    interval: Interval | None = None
    if n and test == "sign-flip":
        flips = flips or flipped(differences[None], clusters=clusters)[0]
        interval = interval_of(
            flips,
            binary=column.binary and pairing.candidate[metric].binary,
            bounds=column.bounds,
            alpha=ALPHA if family is None else family.alpha,
            level=1 - ALPHA,
        )
        p = flips.p
    elif n and test == "t":
        p, interval = t_test(differences, clusters=clusters)
    elif n:
        p = wilcoxon(differences)
    sample = sample_of(differences, clusters) if n else None
    gains = -differences if column.higher_is_better is False else differences
    wins, ties, losses = outcomes(gains)
    result = Difference(
        metric,
        pairing.baseline.run,
        pairing.candidate.run,
        n=n,
        left_out=asked - n,
        baseline_mean=float(old[own].mean()) if n else math.nan,
        candidate_mean=float(new[own].mean()) if n else math.nan,
        difference=float(differences.mean()) if n else math.nan,
        interval=interval,
        test=test,
        p=p,
        adjusted_p=p,
        wins=wins,
        ties=ties,
        losses=losses,
        margin=margin,
        spread=sample.standard_error * math.sqrt(n) if sample else math.nan,
        units=sample.units if sample else 0,
        higher_is_better=column.higher_is_better,
    )
    return with_adjusted(result, p if family is None else family.p)


def with_adjusted(one: Difference, p: float) -> Difference:
    """The same difference with p corrected for others beside it, and its verdict."""
    return replace(one, adjusted_p=p, verdict=_verdict(one, p))


def _verdict(one: Difference, p: float) -> Outcome:
    if one.few:
        return "undecided"
    if one.margin is not None and one.interval is not None:
        low, high = one.interval
        if -one.margin < low and high < one.margin:
            return "no different"
    if not p <= ALPHA:
        return "undecided"
    if one.higher_is_better is None:
        return "different"
    return "better" if (one.difference > 0) == one.higher_is_better else "worse"
