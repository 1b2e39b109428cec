"""Two systems on the same queries: how large the difference is, and how sure.

Every function takes the differences query by query, candidate less baseline, without
NaN: pairs that one of the two does not have are left out by the caller. Randomisation
tests are in `sign_flip`, McNemar's in `binary_pairs`, corrections for several tests in
`multiple`.

Which interval is used was decided by simulation (bench/statistics.py):

- Differences of 0/1 scores: Tango's score interval, which stays honest with few
  queries that differ, and never has zero width.
- 30 queries or more whose differences are not skewed (Cochran's rule): Student's t;
  from 15 queries on, too, if besides no single difference is on half of them.
- 30 or more, skewed, and no single difference on half of the queries: the studentised
  bootstrap, or t to the side where that reaches further. They cover 92-97 % where t
  covers 85-96 %, and are a third to two thirds as wide as Gaffke's bound; where most
  queries tie the bootstrap would cover 25-90 %.
- All others: Gaffke's bound, conservative on purpose.
- Clusters: t or Gaffke's bound over their totals.
"""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.scores import Interval
from karat.errors import ParameterError
from karat.stats.binary_pairs import score_interval
from karat.stats.bootstrap import studentised_interval
from karat.stats.clusters import sample_of
from karat.stats.distributions import t_below, t_quantile
from karat.stats.intervals import mean_interval

__all__ = [
    "EffectSize",
    "Equivalence",
    "Outcomes",
    "TTest",
    "difference_interval",
    "effect_size",
    "equivalence",
    "outcomes",
    "t_test",
]

Method = Literal["auto", "t", "bootstrap", "score"]
Alternative = Literal["two-sided", "greater", "less"]

_ROUNDING = 1e-12
_SOME, _MANY = 15, 30
_COCHRAN = 25


def difference_interval(
    differences: Floats,
    *,
    binary: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    clusters: Ints | None = None,
    method: Method = "auto",
) -> Interval | None:
    """How large the difference of two means may be, other queries being asked.

    Args:
        differences: one per query.
        binary: whether the scores can only be 0 or 1.
        bounds: the smallest and largest possible score; either may be infinite.
        level: the confidence, from 0.5 up to but excluding 1.
        clusters: a number per query; equal numbers belong together.
        method: "auto" chooses (see the module); or Student's "t", the studentised
            "bootstrap", or the "score" interval of binary scores.

    Returns:
        The interval within what the bounds allow, and its method; None without any
        query, and where the differences do not tell: one query or differences that
        never vary, of an unbounded metric, by t or by bootstrap.

    Raises:
        ParameterError: an argument that cannot be.

    Example:
        >>> drop = np.repeat([0.0, -1.0, 1.0], [90, 9, 1])
        >>> found = difference_interval(drop, binary=True)
        >>> round(found.low, 3), round(found.high, 3), found.method
        (-0.154, -0.023, 'score')
    """
    clustered = clusters is not None and len(np.unique(clusters)) < len(differences)
    if method not in get_args(Method) or (method == "score" and clustered):
        must_be = "auto, t, bootstrap, or score without clusters"
        raise ParameterError("difference_interval", "method", must_be, method)
    if not len(differences):
        return None
    if method == "score" or (method == "auto" and binary and not clustered):
        return score_interval(differences, level)
    widest = bounds[1] - bounds[0]
    found: Interval | None
    if method == "auto":
        found = mean_interval(
            differences, bounds=(-widest, widest), level=level, clusters=clusters
        )
        if found is None or found.method != "gaffke" or not _continuous(differences):
            return found
        few = len(differences) < _MANY
        found = (_t_interval if few else _skewed_interval)(differences, level) or found
    elif method == "bootstrap":
        found = studentised_interval(differences, level=level, clusters=clusters)
    else:
        found = _t_interval(differences, level, clusters)
    return None if found is None else found.clipped(-widest, widest)


def _skewed_interval(differences: Floats, level: float) -> Interval | None:
    """The studentised bootstrap, or t to the side where that reaches further."""
    drawn = studentised_interval(differences, level=level)
    even = _t_interval(differences, level)
    if drawn is None or even is None:
        return None
    low, high = min(drawn.low, even.low), max(drawn.high, even.high)
    return Interval(low, high, level, drawn.method)


def _continuous(differences: Floats) -> bool:
    """Whether there are enough, not skewed if few, and none on half of the queries."""
    n = len(differences)
    rest = differences - differences.mean()
    skewed = _COCHRAN * float((rest**3).sum()) ** 2 >= float((rest**2).sum()) ** 3
    if n < _SOME or (n < _MANY and skewed):
        return False
    return 2 * int(np.unique(differences, return_counts=True)[1].max()) < n


def _t_interval(
    differences: Floats, level: float, clusters: Ints | None = None
) -> Interval | None:
    sample = sample_of(differences, clusters)
    if sample.units == 1 or sample.flat:
        return None
    half = t_quantile(0.5 + level / 2, sample.df) * sample.standard_error
    method = "clustered t" if sample.units < sample.n else "t"
    return Interval(sample.mean - half, sample.mean + half, level, method)


class TTest(NamedTuple):
    """A t test of a mean difference.

    Attributes:
        t: the difference in standard errors; NaN where the differences never vary.
        df: degrees of freedom.
        p: how likely one as far out is by chance; NaN where t is.
    """

    t: float
    df: float
    p: float


def t_test(
    differences: Floats,
    *,
    against: float = 0.0,
    alternative: Alternative = "two-sided",
    clusters: Ints | None = None,
) -> TTest:
    """Student's t test of paired differences.

    Args:
        differences: at least two queries, or all is NaN.
        against: the mean difference that is tested.
        alternative: what is asked: another mean, a "greater" or a "less" one.
        clusters: a number per query; the standard error is then cluster-robust.

    Example:
        >>> t_test(np.array([0.1, 0.3, 0.2, 0.0]))  # doctest: +ELLIPSIS
        TTest(t=2.32..., df=3.0, p=0.10...)
    """
    sample = sample_of(differences, clusters) if len(differences) else None
    if sample is None or sample.units == 1 or sample.flat:
        return TTest(math.nan, math.nan, math.nan)
    t = (sample.mean - against) / sample.standard_error
    if alternative == "two-sided":
        p = 2.0 * t_below(-abs(t), sample.df)
    else:
        p = t_below(t if alternative == "less" else -t, sample.df)
    return TTest(t, sample.df, p)


class EffectSize(NamedTuple):
    """How large a difference is, whatever the unit of the scores.

    Attributes:
        standardised: the mean difference by the standard deviation of the differences,
            corrected for few queries (Hedges' g of pairs); NaN where they never vary.
        superiority: the chance that the candidate does better on a query, ties counted
            half.
    """

    standardised: float
    superiority: float


def effect_size(differences: Floats) -> EffectSize:
    """How large the difference is, by its own spread and by queries won.

    Example:
        >>> size = effect_size(np.array([0.1, 0.3, 0.2, 0.0]))
        >>> round(size.standardised, 3), size.superiority
        (0.845, 0.875)
    """
    won, tied, _ = outcomes(differences)
    n = len(differences)
    sample = sample_of(differences) if n > 1 else None
    if sample is None or sample.flat:
        return EffectSize(math.nan, (won + tied / 2) / n if n else math.nan)
    correction = 1.0 - 3.0 / (4.0 * (n - 1) - 1.0)
    size = correction * sample.mean / sample.sd
    return EffectSize(size, (won + tied / 2) / n)


class Outcomes(NamedTuple):
    """On how many queries the candidate wins, ties and loses."""

    wins: int
    ties: int
    losses: int


def outcomes(differences: Floats) -> Outcomes:
    """Count the queries that the candidate wins, ties and loses.

    Example:
        >>> outcomes(np.array([0.5, 0.0, 1e-16, -0.1]))
        Outcomes(wins=1, ties=2, losses=1)
    """
    wins = int(np.count_nonzero(differences > _ROUNDING))
    losses = int(np.count_nonzero(differences < -_ROUNDING))
    return Outcomes(wins, len(differences) - wins - losses, losses)


class Equivalence(NamedTuple):
    """Whether two systems differ by no more than a margin.

    Attributes:
        shown: whether the interval of the difference lies within the margin.
        p: of two one-sided t tests, the larger; NaN where the differences never vary.
        smallest_margin: the smallest margin that could be shown with these queries.
        interval: what was compared with the margin; at level 0.9 for tests at 0.05.
    """

    shown: bool
    p: float
    smallest_margin: float
    interval: Interval | None


def equivalence(
    differences: Floats,
    margin: float,
    *,
    alpha: float = 0.05,
    binary: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
    clusters: Ints | None = None,
) -> Equivalence:
    """Test whether the mean difference is smaller than a margin, either way.

    Equivalence is shown where the interval of level 1 - 2 alpha lies within the margin.
    Where that is Student's t, as for many even differences, this says the same as p of
    two one-sided tests (TOST); elsewhere it is the more cautious of the two.

    Args:
        differences: one per query.
        margin: the largest difference that does not matter, above 0.
        alpha: how often equivalence may be found where there is none.
        binary: as for `difference_interval`.
        bounds: as for `difference_interval`.
        clusters: as for `difference_interval`.

    Example:
        >>> found = equivalence(np.tile([0.01, -0.02, 0.02, 0.0], 25), 0.02)
        >>> found.shown, round(found.smallest_margin, 4)
        (True, 0.005)
    """
    if not margin > 0:
        raise ParameterError("equivalence", "margin", "above 0", margin)
    interval = difference_interval(
        differences,
        binary=binary,
        bounds=bounds,
        level=1 - 2 * alpha,
        clusters=clusters,
    )
    below = t_test(differences, against=margin, alternative="less", clusters=clusters)
    above = t_test(
        differences, against=-margin, alternative="greater", clusters=clusters
    )
    smallest = math.inf
    if interval is not None:
        smallest = max(abs(interval.low), abs(interval.high))
    p = max(below.p, above.p)
    return Equivalence(smallest < margin, p, smallest, interval)
