"""Several tests at once: p-values corrected for how many there were.

Ten systems no better than the baseline, each tested at 0.05, give one a 40 % chance to
look better. MaxT and Holm keep the chance of any such mistake at 0.05; the correction
of Benjamini and Hochberg keeps the expected share of mistakes among the findings there,
which suits a search through slices.

The interval of a mean that was chosen for being the largest was decided by simulation
(bench/sweep.py): 6 or 24 systems with 15 to 200 queries, independent or alike, equal or
not. `mean_interval` covers 47-100 % of the true means there. `best_interval` covers
95-100 %, and is 7-29 % wider; to choose on one half of the queries and measure on the
other is 41 % wider. The truly best system is among `maybe_best` in 95-100 %.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.intervals import Interval
from karat.stats.distributions import normal_below, normal_quantile
from karat.stats.intervals import mean_interval
from karat.stats.sign_flip import ALPHA, Flips, flipped, signed_sums

_ROUNDING = 1e-12


class Adjusted(NamedTuple):
    """A test among several."""

    p: float  # corrected for the number of tests
    alpha: float  # of this test alone, at which the family's is kept


def max_t(rows: Sequence[Flips], alpha: float = ALPHA) -> list[Adjusted]:
    """P of several systems beside one baseline, corrected (Westfall and Young).

    A combination of signs counts against a system where the largest t of all systems is
    as large as the system's own. All systems share the signs, so what they have in
    common is not paid for twice. The family's critical value is the t that the largest
    exceeds with a chance of alpha; by it an interval holds for all systems at once.
    """
    # By its root mean square, a sum orders combinations of signs as t does.
    scales = [math.sqrt(float(row.totals @ row.totals)) or 1.0 for row in rows]
    pairs = [*zip(rows, scales, strict=True)]
    largest = np.max([np.abs(row.sums) / scale for row, scale in pairs], axis=0)
    place = rows[0].place(alpha)
    critical = float(np.partition(largest, place)[place])
    adjusted = []
    for row, scale in pairs:
        least = (abs(float(row.totals.sum())) - row.noise) / scale
        # A correction never makes a test look surer than it was alone.
        p = max(row.chance(largest >= least), row.p)
        own = row.chance(np.abs(row.sums) > scale * critical + row.noise)
        own = max(own, alpha / len(rows))
        # Alone, it is found at its own level just where it is found in the family.
        own = max(own, row.p) if p <= alpha else min(own, row.p * (1 - _ROUNDING))
        adjusted.append(Adjusted(p, own))
    return adjusted


def holm(p: Floats) -> Floats:
    """Correct for several tests, whatever they have in common (Holm's step-down).

    NaN marks a test that was not made: it stays NaN and is not counted.
    """
    adjusted = np.full(p.shape, np.nan)
    for order in _ascending(p):
        factors = np.arange(len(order), 0, -1)
        adjusted[order] = np.maximum.accumulate(p[order] * factors).clip(max=1.0)
    return adjusted


def benjamini_hochberg(p: Floats) -> Floats:
    """Correct so that the expected share of false findings is kept.

    NaN marks a test that was not made: it stays NaN and is not counted.
    """
    adjusted = np.full(p.shape, np.nan)
    for order in _ascending(p):
        ranks = np.arange(1, len(order) + 1)
        inflated = p[order] * len(order) / ranks
        least = np.minimum.accumulate(inflated[::-1])[::-1]
        adjusted[order] = least.clip(max=1.0)
    return adjusted


def best_interval(
    scores: Floats,
    best: int,
    *,
    binary: bool = False,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval | None:
    """How far the mean of the best of several systems may be off, it being chosen.

    The largest of many means is probably too large by chance. So the lower limit is the
    one that holds for all systems at once: as many standard errors below the mean as
    the largest of all errors may reach, by random signs of the scores' deviations,
    which the systems share. Luck makes no chosen mean too small, so the upper limit is
    that of a single system.
    """
    known = np.isfinite(scores)
    values = scores[best, known[best]]
    single = mean_interval(values, binary=binary, bounds=bounds)
    counts = np.maximum(known.sum(axis=1), 1)
    means = np.where(known, scores, 0.0).sum(axis=1) / counts
    centred = np.where(known, scores - means[:, None], 0.0)
    scale = np.sqrt((centred**2).sum(axis=1))
    varied = scale > _ROUNDING
    if single is None or len(scores) == 1 or not varied.any():
        return single
    sums = signed_sums(centred[varied] / scale[varied, None])
    # Whatever combination of signs, the opposite one is as likely.
    largest = np.concatenate([sums.max(axis=0), -sums.min(axis=0)])
    tail = 1.0 - ALPHA / 2
    reach = float(np.quantile(largest, tail))
    at_once = 2.0 * normal_below(max(reach, normal_quantile(tail))) - 1.0
    all_of_them = mean_interval(values, binary=binary, bounds=bounds, level=at_once)
    low = single.low if all_of_them is None else all_of_them.low
    method = f"{single.method}, best of {len(scores)}"
    return Interval(low, single.high, method=method)


def maybe_best(scores: Floats) -> Bools:
    """Which systems may be the best there are: those that no other is shown to beat.

    Each system is compared with all others at once, by `max_t`. With a chance of 95 %
    the truly best one is among those that remain (Hsu's comparisons with the best).
    """
    found = np.ones(len(scores), np.bool_)
    for row in range(len(scores)):
        differences = np.nan_to_num(np.delete(scores, row, axis=0) - scores[row])
        better = differences.sum(axis=1) > 0
        if better.any():
            adjusted = max_t(flipped(differences))
            found[row] = min(one.p for one in compress(adjusted, better)) > ALPHA
    return found


def _ascending(p: Floats) -> Iterator[Ints]:
    """The places of the tests made, smallest p first; nothing where none was made."""
    made = np.flatnonzero(~np.isnan(p))
    if len(made):
        yield made[np.argsort(p[made], kind="stable")]
