"""Ordering: whether people and a judge put the systems in the same order."""

import math
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Floats
from karat.data.tables import number
from karat.errors import DataError
from karat.judging.concordance import DRAWS, SEED, between

__all__ = ["Order", "kendall_tau", "order_agreement"]


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
    """How alike people and judge order the systems.

    Attributes:
        tau: Kendall's tau of the two orders; NaN where one of them is no order, or no
            query is scored by both labels.
        low: where its interval over queries begins; NaN for one query.
        high: where it ends.
        systems: number of systems.
        queries: number of queries that both labels score.
    """

    tau: float
    low: float
    high: float
    systems: int
    queries: int

    def row(self) -> list[str]:
        """Its row in a table of agreement."""
        interval = f"{number(self.low)} .. {number(self.high)}"
        return [
            f"order of {self.systems} runs, tau",
            number(self.tau),
            "" if math.isnan(self.low) else interval,
            str(self.queries),
        ]


def order_agreement(human: Floats, judged: Floats) -> Order:
    """Kendall's tau of the order of systems, with a bootstrap interval over queries.

    Args:
        human: a row per system, a column per query, scored with people's labels.
        judged: the same scored with the judge's labels.
    """
    known = ~(np.isnan(human).any(axis=0) | np.isnan(judged).any(axis=0))
    human, judged = human[:, known], judged[:, known]
    systems, queries = human.shape
    if systems < 2:  # noqa: PLR2004
        raise DataError("an order takes two systems")
    nothing = float("nan")
    if not queries:
        return Order(nothing, nothing, nothing, systems, queries)
    tau = kendall_tau(human.mean(axis=1), judged.mean(axis=1))
    if queries == 1:
        return Order(tau, nothing, nothing, systems, queries)
    draws = np.random.default_rng(SEED).integers(0, queries, (DRAWS, queries))
    taus = [
        kendall_tau(human[:, rows].mean(axis=1), judged[:, rows].mean(axis=1))
        for rows in draws
    ]
    found = between(np.array(taus))
    low, high = (found.low, found.high) if found else (nothing, nothing)
    return Order(tau, low, high, systems, queries)
