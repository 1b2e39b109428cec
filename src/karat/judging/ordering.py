"""Ordering: whether people and a judge put the systems in the same order."""

from typing import NamedTuple

import numpy as np

from karat.data.arrays import Floats
from karat.errors import DataError

__all__ = ["Order", "kendall_tau", "order_agreement"]

_DRAWS = 2000
_SEED = 20240229


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


class Order(NamedTuple):
    """How alike people and judge order the systems."""

    tau: float
    low: float
    high: float
    systems: int
    queries: int


def order_agreement(human: Floats, judged: Floats) -> Order:
    """Kendall's tau of the order of systems, with a bootstrap interval over queries.

    Args:
        human: a row per system, a column per query, scored with people's labels.
        judged: the same scored with the judge's labels.
    """
    known = ~(np.isnan(human).any(axis=0) | np.isnan(judged).any(axis=0))
    human, judged = human[:, known], judged[:, known]
    systems, queries = human.shape
    if systems < 2 or not queries:  # noqa: PLR2004
        raise DataError("an order takes two systems and a query that both labels score")
    draws = np.random.default_rng(_SEED).integers(0, queries, (_DRAWS, queries))
    taus = np.array(
        [
            kendall_tau(human[:, rows].mean(axis=1), judged[:, rows].mean(axis=1))
            for rows in draws
        ]
    )
    taus = taus[~np.isnan(taus)]
    low, high = np.quantile(taus, [0.025, 0.975]) if len(taus) else (np.nan, np.nan)
    tau = kendall_tau(human.mean(axis=1), judged.mean(axis=1))
    return Order(tau, float(low), float(high), systems, queries)
