"""Rank correlation: how alike two scorings order the same systems."""

import numpy as np

from karat.data.arrays import Floats
from karat.data.scores import Interval

__all__ = ["kendall_tau", "kendall_tau_interval", "spearman_rho"]

_DRAWS = 2000
_SEED = 20240229
_LEVEL = 0.95


def kendall_tau(one: Floats, other: Floats) -> float:
    """How much two scorings order the same systems alike, from -1 to 1 (tau-b).

    NaN where one of them does not order the systems at all.

    Example:
        >>> kendall_tau(np.array([0.1, 0.2, 0.3]), np.array([0.3, 0.4, 0.9]))
        1.0
    """
    upper = np.triu_indices(len(one), 1)
    first = np.sign(np.subtract.outer(one, one))[upper]
    second = np.sign(np.subtract.outer(other, other))[upper]
    ordered = np.count_nonzero(first) * np.count_nonzero(second)
    return float((first * second).sum() / ordered**0.5) if ordered else float("nan")


def spearman_rho(one: Floats, other: Floats) -> float:
    """The correlation of the ranks that two scorings give, from -1 to 1.

    Equal scores share the mean of their ranks. NaN where one scoring has no order.

    Example:
        >>> spearman_rho(np.array([0.1, 0.2, 0.3]), np.array([0.3, 0.9, 0.4]))
        0.5
    """
    first, second = _mean_ranks(one), _mean_ranks(other)
    first, second = first - first.mean(), second - second.mean()
    spread = float((first**2).sum() * (second**2).sum()) ** 0.5
    return float((first * second).sum() / spread) if spread else float("nan")


def _mean_ranks(values: Floats) -> Floats:
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    ranks: Floats = (last - (counts - 1) / 2)[index]
    return ranks


def kendall_tau_interval(one: Floats, other: Floats) -> Interval | None:
    """A bootstrap interval over queries of the tau between two orders of systems.

    None where the queries do not tell: every sample of them gives the same tau, or
    none at all.

    Args:
        one: scores by the first labels, a row for each system, a column for each query.
        other: the same by the second labels.
    """
    queries = one.shape[1]
    samples = np.random.default_rng(_SEED).integers(0, queries, (_DRAWS, queries))
    taus = np.array(
        [
            kendall_tau(one[:, sample].mean(axis=1), other[:, sample].mean(axis=1))
            for sample in samples
        ]
    )
    defined = taus[~np.isnan(taus)]
    if not len(defined):
        return None
    low, high = np.quantile(defined, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]).tolist()
    return None if low == high else Interval(low, high, _LEVEL, "bootstrap")
