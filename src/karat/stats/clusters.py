"""Queries that belong together: what counts as one observation, and how it varies.

Questions about one document or one conversation are not independent: knowing how a
system does on one of them tells how it does on the others. The clusters are then what
is counted, and the spread of the mean is that of their totals (Liang and Zeger; for
means of test questions, Miller, arXiv 2411.00640).
"""

import math
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Floats, Ints, sum_by

_ROUNDING = 1e-12


class Sample(NamedTuple):
    """Scores, or totals of clusters of them, that are independent of one another."""

    totals: Floats  # the scores; with clusters, the sum of each
    sizes: Floats  # how many scores are in each total
    n: int  # number of scores
    mean: float
    residuals: Floats  # of each total, from what the mean would give
    spread: float  # sum of the squared residuals

    @property
    def units(self) -> int:
        """Number of clusters; of scores without them."""
        return len(self.sizes)

    @property
    def effective(self) -> float:
        """As many clusters of one size weigh as much as these (Kish)."""
        return self.n * self.n / float(self.sizes @ self.sizes)

    @property
    def df(self) -> float:
        """Degrees of freedom of the mean's standard error."""
        return max(self.effective - 1.0, 1.0)

    @property
    def standard_error(self) -> float:
        """How far the mean may be off, as one standard deviation."""
        return math.sqrt(self.spread / self.n**2 * (1.0 + 1.0 / self.df))

    @property
    def flat(self) -> bool:
        """Whether nothing varies, but for rounding."""
        rounding = _ROUNDING * float(np.abs(self.totals).max())
        return self.spread <= self.units * rounding**2


def cluster_totals(values: Floats, clusters: Ints | None) -> Floats:
    """The sum of each cluster's values, along the last axis, clusters in order."""
    if clusters is None:
        return values
    labels, unit = np.unique(clusters, return_inverse=True)
    rows = np.atleast_2d(values)
    totals = np.array([sum_by(unit, row, len(labels)) for row in rows])
    return totals.reshape(*values.shape[:-1], len(labels))


def sample_of(values: Floats, clusters: Ints | None = None) -> Sample:
    """What a mean rests on: the scores, or the totals of their clusters."""
    totals, sizes = cluster_totals(values, clusters), np.ones(len(values))
    if clusters is not None:
        sizes = np.unique(clusters, return_counts=True)[1].astype(np.float64)
    return sample_of_totals(totals, sizes)


def sample_of_totals(totals: Floats, sizes: Floats) -> Sample:
    """What a mean rests on, from the totals of clusters and their sizes."""
    n = round(float(sizes.sum()))
    mean = float(totals.sum()) / n
    residuals = totals - mean * sizes
    return Sample(totals, sizes, n, mean, residuals, float(residuals @ residuals))
