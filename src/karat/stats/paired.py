"""Two systems on the same queries: how large the difference is, and how sure.

The test is the sign-flip test, and the interval is read from it, so that the two never
contradict each other: 0 lies in the interval just where p is above alpha. But queries
that tie say nothing of those that were not asked: 50 ties would give [0, 0], and where
4 % of 25 queries break, the test's own interval covers 64 %. So it is joined with a
bound that allows for what was not seen: Tango's for 0/1 scores, else Gaffke's. Where a
difference is shown, that bound counts on the side away from 0 only; on both, should all
queries differ the same way and the bound by itself exclude 0.

bench/simulation.py measures all of this on scores of real runs.
"""

import math
from collections.abc import Callable

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.intervals import Interval
from karat.stats.distributions import normal_quantile, t_below, t_quantile
from karat.stats.intervals import gaffke_interval, sample_of, sample_of_totals
from karat.stats.sign_flip import ALPHA, Flips, flipped, sign_flip

_ROUNDING = 1e-12
# Halvings of an interval of length 2 that leave nothing to halve.
_HALVINGS = 55
_POWER = 0.8
# The t test takes so many queries more than the normal one.
_STUDENT = 2


def difference_interval(
    differences: Floats,
    *,
    binary: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    clusters: Ints | None = None,
) -> Interval | None:
    """How large the difference of two means may be, other queries being asked."""
    if not len(differences):
        return None
    row = flipped(differences[None], clusters=clusters)[0]
    return interval_of(row, binary=binary, bounds=bounds, alpha=1 - level)


def interval_of(
    row: Flips,
    *,
    binary: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
    alpha: float = ALPHA,
    level: float | None = None,
) -> Interval | None:
    """The interval of a difference: 0 is in it just where p is larger than alpha."""
    widest = bounds[1] - bounds[0]
    low, high = row.limits(alpha)
    shown, up = row.p <= alpha, row.mean > 0
    bound = _bound(row, widest, 1 - alpha, binary=binary)
    if bound is not None:
        least, most = bound
        # Where all queries differ the same way, nothing was seen of any other.
        one_way = (row.totals[row.sizes > 0] * row.mean > 0).all()
        both = not shown or (one_way and not least <= 0 <= most)
        low = min(low, least) if both or not up else low
        high = max(high, most) if both or up else high
    low, high = max(low, -widest), min(high, widest)
    # P may be of all combinations, the limits of draws: 0 is in or out as p says.
    near = _ROUNDING * row.mean
    if not shown:
        low, high = min(low, 0.0), max(high, 0.0)
    elif up:
        low = near if low == high and bound else max(low, near)
    else:
        high = near if low == high and bound else min(high, near)
    if math.isinf(high - low) or low == high:
        return None
    return Interval(low, high, 1 - alpha if level is None else level, "sign-flip")


def _bound(
    row: Flips, widest: float, level: float, *, binary: bool
) -> tuple[float, float] | None:
    """Limits that allow for queries unlike those asked; None if scores have none."""
    there = row.sizes > 0
    totals, sizes = row.totals[there], row.sizes[there]
    if binary and sizes.max() == 1:
        return score_interval(np.rint(totals), level)[:2]
    if math.isinf(widest):
        return None
    if len(totals) == 1:
        return -widest, widest
    sample = sample_of_totals(totals, sizes)
    return gaffke_interval(sample, (-widest, widest), level)


def score_interval(differences: Floats, level: float = 0.95) -> Interval:
    """Tango's interval of a paired difference of proportions (1998).

    It holds the differences that a score test does not reject, and needs no more than
    how many queries only one of the two got right.
    """
    gained, lost = int((differences == 1).sum()), int((differences == -1).sum())
    z, n = normal_quantile(0.5 + level / 2), len(differences)

    def upper(gained: int, lost: int) -> float:
        if gained == n:
            return 1.0

        def excess(difference: float) -> float:
            """By how much the test that rejects larger ones is exceeded."""
            linear = (2 * n - gained + lost) * difference - gained - lost
            rest = lost * difference * (1.0 - difference)
            chance = (math.sqrt(linear**2 + 8 * n * rest) - linear) / (4 * n)
            variance = n * (2 * chance + difference * (1.0 - difference))
            distance = n * difference - gained + lost
            return distance - z * math.sqrt(max(variance, 0.0))

        return _crossing(excess, (gained - lost) / n)

    low, high = -upper(lost, gained), upper(gained, lost)
    return Interval(low, high, level, "score")


def _crossing(function: Callable[[float], float], low: float) -> float:
    """Where a function that rises from `low` to 1 crosses 0, by halving."""
    high = 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if function(middle) <= 0.0 else (low, middle)
    return high


def t_test(
    differences: Floats, *, clusters: Ints | None = None
) -> tuple[float, Interval | None]:
    """P of Student's t test and its interval; over clusters, cluster-robust."""
    sample = sample_of(differences, clusters) if len(differences) else None
    if sample is None or sample.units == 1 or sample.flat:
        return math.nan, None
    p = 2.0 * t_below(-abs(sample.mean / sample.standard_error), sample.df)
    half = t_quantile(1 - ALPHA / 2, sample.df) * sample.standard_error
    limits = sample.mean - half, sample.mean + half
    return p, Interval(*limits, 1 - ALPHA, "t")


def wilcoxon(differences: Floats) -> float:
    """P of Wilcoxon's signed-rank test, two-sided, by flipping; ties are left out."""
    moved = differences[np.abs(differences) > _ROUNDING]
    if not len(moved):
        return 1.0
    _, place, count = np.unique(
        np.abs(moved).round(12), return_inverse=True, return_counts=True
    )
    ranks = np.cumsum(count) - (count - 1) / 2
    return float(sign_flip(np.copysign(ranks[place], moved)))


def queries_needed(difference: float, spread: float, alpha: float = ALPHA) -> float:
    """How many queries would show a mean difference of this size; may be infinite."""
    if difference == 0 or math.isnan(spread):
        return math.inf
    distance = normal_quantile(1 - alpha / 2) + normal_quantile(_POWER)
    return math.ceil((distance * spread / difference) ** 2) + float(_STUDENT)


def outcomes(differences: Floats) -> tuple[int, int, int]:
    """On how many queries the candidate wins, ties and loses."""
    wins = int(np.count_nonzero(differences > _ROUNDING))
    losses = int(np.count_nonzero(differences < -_ROUNDING))
    return wins, len(differences) - wins - losses, losses
