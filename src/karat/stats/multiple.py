"""Several tests at once: p-values corrected for how many there were.

Ten systems no better than the baseline, each tested at 0.05, give one a 40 % chance to
look better. MaxT and Holm keep the chance of any such mistake at 0.05; the correction
of Benjamini and Hochberg keeps the expected share of mistakes among the findings there,
which suits a search through slices.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.errors import ParameterError
from karat.stats.clusters import cluster_totals
from karat.stats.sign_flip import DRAWS, MOST_EXACT, SEED, signed_sums

__all__ = ["MaxT", "benjamini_hochberg", "holm", "max_t"]

_ROUNDING = 1e-12


class MaxT(NamedTuple):
    """Sign-flip tests of several systems, corrected for their number.

    Attributes:
        p: of each system by itself.
        adjusted: how likely any system would come out this far, all being equal.
        draws: how many combinations of signs were tried.
        exact: whether these were all there are.
    """

    p: Floats
    adjusted: Floats
    draws: int
    exact: bool


def max_t(
    differences: Floats,
    *,
    step_down: bool = True,
    clusters: Ints | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
) -> MaxT:
    """Compare several systems with one baseline (Westfall and Young).

    Each system's statistic is its mean difference by its root mean square, which orders
    sign combinations as t does. A combination counts against a system where the largest
    statistic of all is as large as the system's own; in the step-down version the
    largest of those that are not above it, which finds more and is as safe. All systems
    share the signs, so what they have in common is not paid for twice.

    Args:
        differences: (systems, queries), candidate less baseline, without NaN. A query
            that a system does not have is a difference of 0, which changes nothing.
        step_down: whether systems already found count no more.
        clusters: a number per query; the signs of one cluster are flipped together.
        draws: how many sign combinations to draw where there are too many to try all.
        seed: of the draws.

    Example:
        >>> rows = np.array([[0.1, 0.2, 0.1, 0.3, 0.2, 0.1], [0.1, -0.1, 0, 0, 0, 0]])
        >>> found = max_t(rows)
        >>> found.p.tolist(), found.adjusted.tolist()
        ([0.03125, 1.0], [0.03125, 1.0])
    """
    if differences.ndim != 2:  # noqa: PLR2004
        must_be = "systems by queries"
        raise ParameterError("max_t", "differences", must_be, differences.shape)
    if not differences.size or not np.isfinite(differences).all():
        must_be = "finite, at least one"
        raise ParameterError("max_t", "differences", must_be, differences.shape)
    totals = cluster_totals(differences, clusters)
    scale = np.sqrt((totals**2).sum(axis=1))
    # A system that never differs has the statistic 0, as small as there is.
    rows = totals / np.where(scale > 0, scale, 1.0)[:, None]
    observed = np.abs(rows.sum(axis=1))
    order = np.argsort(-observed, kind="stable")
    # Small enough to count as equal: by how much a sum may be off for rounding.
    least = (observed - _ROUNDING * np.abs(rows).sum(axis=1))[order]
    single, largest = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    tried = 0
    for sums in signed_sums(rows[order], draws=draws, seed=seed):
        size = np.abs(sums)
        single += (size >= least).sum(axis=0)
        if step_down:
            size = np.maximum.accumulate(size[:, ::-1], axis=1)[:, ::-1]
        else:
            size = size.max(axis=1, keepdims=True)
        largest += (size >= least).sum(axis=0)
        tried += len(size)
    exact = rows.shape[1] <= MOST_EXACT
    found, corrected = np.empty(len(rows)), np.empty(len(rows))
    more = 0 if exact else 1
    found[order] = (single + more) / (tried + more)
    corrected[order] = np.maximum.accumulate((largest + more) / (tried + more))
    return MaxT(found, corrected, 2 * tried if exact else tried, exact)


def holm(p: Floats) -> Floats:
    """Correct for several tests, whatever they have in common (Holm's step-down).

    NaN marks a test that was not made: it stays NaN and is not counted.

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
        [0.03, 0.06, 0.06]
    """
    adjusted = np.full(p.shape, np.nan)
    for order in _ascending(p):
        factors = np.arange(len(order), 0, -1)
        adjusted[order] = np.maximum.accumulate(p[order] * factors).clip(max=1.0)
    return adjusted


def benjamini_hochberg(p: Floats, *, dependent: bool = False) -> Floats:
    """Correct so that the expected share of false findings is kept.

    NaN marks a test that was not made: it stays NaN and is not counted.

    Args:
        p: of each test.
        dependent: hold under any dependence of the tests (Benjamini and Yekutieli), at
            the price of finding less.

    Example:
        >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(3).tolist()
        [0.03, 0.04, 0.04]
    """
    adjusted = np.full(p.shape, np.nan)
    for order in _ascending(p):
        ranks = np.arange(1, len(order) + 1)
        inflated = p[order] * len(order) / ranks
        if dependent:
            inflated *= (1.0 / ranks).sum()
        least = np.minimum.accumulate(inflated[::-1])[::-1]
        adjusted[order] = least.clip(max=1.0)
    return adjusted


def _ascending(p: Floats) -> Iterator[Ints]:
    """The places of the tests made, smallest p first; nothing where none was made."""
    made = np.flatnonzero(~np.isnan(p))
    if len(made):
        yield made[np.argsort(p[made], kind="stable")]
