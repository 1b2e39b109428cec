"""The difference of two runs by one metric: how large, how sure, and what it means."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from karat.data.arrays import Floats, Ints
from karat.data.intervals import Interval
from karat.data.tables import DASH
from karat.stats.clusters import sample_of
from karat.stats.exact_tests import mcnemar
from karat.stats.paired import (
    difference_interval,
    effect_size,
    outcomes,
    smallest_margin,
    t_test,
)
from karat.stats.power import minimum_detectable_effect, queries_needed
from karat.stats.sign_flip import sign_flip, smallest_p

Verdict = Literal["better", "worse", "different", "equivalent", "not enough data"]

FEWEST = 15
"""Below so many queries no verdict is given."""

_ALPHA = 0.05
_TINY = 0.0001


class Pairs(NamedTuple):
    """The scores of two runs on the queries that both have.

    Attributes:
        baseline: scores of the baseline, without NaN.
        candidate: scores of the candidate, on the same queries.
        left_out: queries without a score in either.
        binary: whether scores can only be 0 or 1.
        bounds: the smallest and largest possible score.
        clusters: a number per query, equal for those that belong together.
        higher_is_better: which of two scores is the better one; None: neither.
    """

    baseline: Floats
    candidate: Floats
    left_out: int = 0
    binary: bool = False
    bounds: tuple[float, float] = (0.0, 1.0)
    clusters: Ints | None = None
    higher_is_better: bool | None = True


@dataclass(frozen=True)
class Difference:
    """How two runs differ by one metric.

    Attributes:
        metric: its spelling.
        baseline: name of the run that is compared with.
        candidate: name of the run that is compared.
        n: number of queries that both have a score for.
        left_out: queries without a score in either.
        baseline_mean: over these n queries.
        candidate_mean: over the same.
        difference: candidate less baseline.
        interval: how large the difference may be, other queries being asked.
        test: which test p is of.
        p: how likely a difference as large is by chance.
        adjusted_p: the same, allowing for the other comparisons made beside it.
        t_p: of the paired t test, for comparison.
        effect: the difference by its spread between queries.
        superiority: the chance that the candidate does better on a query.
        wins: queries on which the candidate is better.
        ties: queries on which both are the same.
        losses: queries on which the candidate is worse.
        verdict: better, worse, equivalent within the margin, or not enough data;
            different by a metric of which more is neither better nor worse. Only where
            p is at most 0.05 and the interval excludes 0 is one better or worse.
        margin: the largest difference that does not matter, if one was given.
        smallest_margin: the smallest margin within which both could be called
            equivalent.
        detectable: the smallest difference that so many queries would show.
        more_queries: how many more queries would settle a difference of this size.
        smallest_p: the smallest p that so many queries can give.
        higher_is_better: which of two scores is the better one; None: neither.
    """

    metric: str
    baseline: str
    candidate: str
    n: int
    left_out: int
    baseline_mean: float
    candidate_mean: float
    difference: float
    interval: Interval | None
    test: str
    p: float
    adjusted_p: float
    t_p: float
    effect: float
    superiority: float
    wins: int
    ties: int
    losses: int
    verdict: Verdict
    margin: float | None = None
    smallest_margin: float = math.inf
    detectable: float = math.inf
    more_queries: float = math.inf
    smallest_p: float = 1.0
    higher_is_better: bool | None = True

    @property
    def outcome(self) -> str:
        """The verdict as tables show it: of equal scores, that they are equal."""
        same = self.n and not self.wins and not self.losses
        return "no query differs" if same else self.verdict

    def sentence(self) -> str:
        """The verdict in words, with what it rests on."""
        change = f"{self.difference:+.4f}"
        if self.interval is not None:
            low, high = self.interval
            change += f" (95% interval {low:+.4f} to {high:+.4f})"
        what = f"{self.candidate} {_VERBS[self.verdict]} {self.baseline}"
        if not self.n:
            return f"{self.metric}: no query has a score in both runs"
        if not self.wins and not self.losses:
            return f"{self.metric} is the same on all {self.n} queries"
        if self.verdict == "equivalent":
            return f"{what} by {self.metric}, within {self.margin:g}: {change}"
        if self.verdict != "not enough data":
            return f"{what} by {self.metric}: {change}, p = {show_p(self.adjusted_p)}"
        why = f"p = {show_p(self.adjusted_p)}"
        if self.n < FEWEST:
            least = f"p cannot be below {self.smallest_p:.2g}"
            why = f"{self.n} queries are too few: {least}"
        elif math.isfinite(self.more_queries) and self.more_queries > 0:
            why += f"; {self.more_queries:.0f} more queries would settle it"
        return f"{what} by {self.metric}: {change}, {why}"


_VERBS: dict[str, str] = {
    "better": "is better than",
    "worse": "is worse than",
    "different": "differs from",
    "equivalent": "is equivalent to",
    "not enough data": "cannot be told from",
}


def show_p(value: float) -> str:
    """A p value for people: none is 0."""
    if math.isnan(value):
        return DASH
    return f"{value:.4f}" if value >= _TINY else f"below {_TINY}"


def measure(
    names: tuple[str, str, str],
    pairs: Pairs,
    margin: float | None = None,
    p: float | None = None,
) -> Difference:
    """The difference of two runs, by itself.

    Args:
        names: of the metric, the baseline and the candidate.
        pairs: their scores.
        margin: the largest difference that does not matter, if there is one.
        p: of the randomisation test, where it was made for several metrics at once.
    """
    differences = pairs.candidate - pairs.baseline
    n = len(differences)
    options: dict[str, Any] = {
        "binary": pairs.binary,
        "bounds": pairs.bounds,
        "clusters": pairs.clusters,
    }
    clustered = pairs.clusters is not None
    test = "none"
    if n and pairs.binary and not clustered:
        test, p = "McNemar", mcnemar(differences)
    elif n:
        test = "sign-flip"
        if p is None:
            p = float(sign_flip(differences, clusters=pairs.clusters))
    p = math.nan if p is None or not n else p
    sample = sample_of(differences, pairs.clusters) if n > 1 else None
    sd = 0.0 if sample is None else sample.sd
    units = n if sample is None else sample.units
    difference = float(differences.mean()) if n else math.nan
    interval = difference_interval(differences, **options) if n else None
    # How far the interval reaches towards 0: no smaller difference can be shown.
    reach = 0.0
    if interval is not None:
        low, high, *_ = interval
        reach = difference - low if difference > 0 else high - difference
    needed = queries_needed(difference, sd) if n > 1 and sd else math.inf
    if difference:
        # An interval shrinks no faster than the number of queries grows.
        needed = max(needed, units * reach / abs(difference))
    extra = math.inf
    if math.isfinite(needed):
        # Of clusters, as many queries as the clusters that it takes would have.
        extra = max(0.0, float(math.ceil((needed - units) * n / units)))
    gains = -differences if pairs.higher_is_better is False else differences
    result = Difference(
        *names,
        n=n,
        left_out=pairs.left_out,
        baseline_mean=float(pairs.baseline.mean()) if n else math.nan,
        candidate_mean=float(pairs.candidate.mean()) if n else math.nan,
        difference=difference,
        interval=interval,
        test=test,
        p=p,
        adjusted_p=p,
        t_p=t_test(differences, clusters=pairs.clusters).p,
        effect=effect_size(differences).standardised,
        superiority=effect_size(gains).superiority,
        **outcomes(gains)._asdict(),
        verdict="not enough data",
        margin=margin,
        smallest_margin=smallest_margin(differences, **options),
        detectable=max(minimum_detectable_effect(units, sd), reach) if sd else math.inf,
        more_queries=extra,
        smallest_p=smallest_p(units) if units else 1.0,
        higher_is_better=pairs.higher_is_better,
    )
    return with_adjusted([result], [p])[0]


def with_adjusted(
    differences: Sequence[Difference], adjusted: Sequence[float]
) -> list[Difference]:
    """The same differences with p corrected for their number, and their verdicts."""
    return [
        replace(one, adjusted_p=float(p), verdict=_verdict(replace(one, adjusted_p=p)))
        for one, p in zip(differences, adjusted, strict=True)
    ]


def _verdict(found: Difference) -> Verdict:
    if found.n < FEWEST:
        return "not enough data"
    if found.margin is not None and found.smallest_margin < found.margin:
        return "equivalent"
    if not found.adjusted_p <= _ALPHA:
        return "not enough data"
    if found.interval is not None and found.interval.low <= 0 <= found.interval.high:
        # Some intervals allow for more than the test does: a verdict needs both.
        return "not enough data"
    if found.higher_is_better is None:
        return "different"
    return "better" if (found.difference > 0) == found.higher_is_better else "worse"
