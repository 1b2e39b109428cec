"""Two systems on the same queries: how large the difference is, and how sure.

Every function takes the differences query by query, candidate less baseline, without
NaN: pairs that one of the two does not have are left out by the caller. Randomisation
tests are in `sign_flip`, McNemar's in `exact_tests`, corrections for several tests in
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
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.intervals import Interval
from karat.stats.bootstrap import studentised_interval
from karat.stats.clusters import sample_of
from karat.stats.distributions import t_below, t_quantile
from karat.stats.exact_tests import score_interval
from karat.stats.intervals import mean_interval

_ROUNDING = 1e-12
_SOME, _MANY = 15, 30
_COCHRAN = 25
_ALPHA = 0.05


def difference_interval(
    differences: Floats,
    *,
    binary: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    clusters: Ints | None = None,
) -> Interval | None:
    """How large the difference of two means may be, other queries being asked.

    Args:
        differences: one per query.
        binary: whether the scores can only be 0 or 1.
        bounds: the smallest and largest possible score; either may be infinite.
        level: the confidence, from 0.5 up to but excluding 1.
        clusters: a number per query; equal numbers belong together.

    Returns:
        The interval within what the bounds allow, and its method, which the module
        tells; None without any query, and where the differences do not tell: one
        query, or differences that never vary, of an unbounded metric.

    Example:
        >>> drop = np.repeat([0.0, -1.0, 1.0], [90, 9, 1])
        >>> found = difference_interval(drop, binary=True)
        >>> round(found.low, 3), round(found.high, 3), found.method
        (-0.154, -0.023, 'score')
    """
    clustered = clusters is not None and len(np.unique(clusters)) < len(differences)
    if not len(differences):
        return None
    if binary and not clustered:
        return score_interval(differences, level)
    widest = bounds[1] - bounds[0]
    found = mean_interval(
        differences, bounds=(-widest, widest), level=level, clusters=clusters
    )
    if found is None or found.method != "gaffke" or not _continuous(differences):
        return found
    few = len(differences) < _MANY
    found = (_t_interval if few else _skewed_interval)(differences, level) or found
    return found.clipped(-widest, widest)


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


def _t_interval(differences: Floats, level: float) -> Interval | None:
    sample = sample_of(differences)
    if sample.flat:
        return None
    half = t_quantile(0.5 + level / 2, sample.df) * sample.standard_error
    return Interval(sample.mean - half, sample.mean + half, level, "t")


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


def t_test(differences: Floats, *, clusters: Ints | None = None) -> TTest:
    """Student's t test of paired differences, two-sided.

    Args:
        differences: at least two queries, or all is NaN.
        clusters: a number per query; the standard error is then cluster-robust.

    Example:
        >>> t_test(np.array([0.1, 0.3, 0.2, 0.0]))  # doctest: +ELLIPSIS
        TTest(t=2.32..., df=3.0, p=0.10...)
    """
    sample = sample_of(differences, clusters) if len(differences) else None
    if sample is None or sample.units == 1 or sample.flat:
        return TTest(math.nan, math.nan, math.nan)
    t = sample.mean / sample.standard_error
    return TTest(t, sample.df, 2.0 * t_below(-abs(t), sample.df))


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


def smallest_margin(
    differences: Floats,
    *,
    binary: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
    clusters: Ints | None = None,
) -> float:
    """The smallest margin within which two systems can be called equivalent.

    Equivalence is shown where the interval of level 0.9 lies within a margin. Where
    that is Student's t, as for many even differences, this says the same as two
    one-sided tests at 0.05 (TOST); elsewhere it is the more cautious of the two.

    Args:
        differences: one per query.
        binary: as for `difference_interval`.
        bounds: as for `difference_interval`.
        clusters: as for `difference_interval`.

    Example:
        >>> round(smallest_margin(np.tile([0.01, -0.02, 0.02, 0.0], 25)), 4)
        0.005
    """
    interval = difference_interval(
        differences,
        binary=binary,
        bounds=bounds,
        level=1 - 2 * _ALPHA,
        clusters=clusters,
    )
    if interval is None:
        return math.inf
    return max(abs(interval.low), abs(interval.high))
