"""Ordering: whether people and a judge put the systems in the same order."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Floats
from karat.data.scores import Interval
from karat.data.tables import DASH, counted, number
from karat.errors import DataError
from karat.judging.retesting import limits

__all__ = ["Order", "kendall_tau", "order_agreement"]

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


class Order(NamedTuple):
    """How alike people and judge order the systems.

    Attributes:
        tau: Kendall's tau of the two orders; NaN where one of them is no order, or no
            query is scored by both labels.
        interval: how far it may be off, for other queries than these; None where the
            queries do not tell, as where every draw of them gives the same order.
        queries: number of queries that both labels score for every system.
        asked: number of queries that people labelled.
        metric: what the systems are scored with.
        people: mean score of each system by people's labels.
        judge: the same by the judge's.
        threshold: the smallest grade that is relevant; any positive one if None.
    """

    tau: float
    interval: Interval | None
    queries: int
    asked: int
    metric: str
    people: Mapping[str, float]
    judge: Mapping[str, float]
    threshold: float | None = None

    @property
    def reversed(self) -> bool:
        """Whether the two orders contradict each other more than they agree."""
        return self.tau < 0

    def row(self) -> list[str]:
        """Its row in a table of agreement."""
        return [
            f"order of {len(self.people)} runs, tau",
            number(self.tau),
            limits(self.interval),
            str(self.queries),
        ]

    def notes(self) -> list[str]:
        """Both orders in words, and what they rest on."""
        asked = counted(self.asked, "query")
        basis = f"{self.queries} of {asked}: those where both labels score every run"
        if self.queries == self.asked:
            basis = f"all {asked}"
        if not self.queries:
            return [f"order by {self.metric}: none, for it rests on {basis}"]
        people, judge = _ranking(self.people), _ranking(self.judge)
        line = "" if self.threshold is None else f", threshold {self.threshold:g},"
        notes = [f"{self.metric}{line} by people: {people}; by the judge: {judge}"]
        notes.append(f"order over {basis}")
        if math.isnan(self.tau):
            notes.append(f"{DASH} for tau: the runs are all alike by one of the labels")
        if self.reversed:
            text = "the runs come out the other way round by the judge"
            notes.append(f"order reversed: {text}; do not choose between them by it")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Its fields in plain values; null is one that does not exist."""
        return {
            "metric": self.metric,
            "threshold": self.threshold,
            "tau": None if math.isnan(self.tau) else self.tau,
            "interval": self.interval and self.interval[:2],
            "systems": len(self.people),
            "queries": self.queries,
            "queries_of_people": self.asked,
            "reversed": self.reversed,
            "people": _plain(self.people),
            "judge": _plain(self.judge),
        }


def order_agreement(
    human: Mapping[str, Floats], judged: Mapping[str, Floats], metric: str = "score"
) -> Order:
    """Kendall's tau of the order of systems, with a bootstrap interval over queries.

    Args:
        human: the scores of each system, query by query, with people's labels.
        judged: the same with the judge's labels.
        metric: what the scores are.

    Example:
        >>> one = {"a": np.array([0.1, 0.2]), "b": np.array([0.5, 0.6])}
        >>> order_agreement(one, one).tau
        1.0
    """
    systems = [*human]
    if len(systems) < 2:  # noqa: PLR2004
        raise DataError("an order takes two systems")
    one, other = (np.array([row[s] for s in systems]) for row in (human, judged))
    known = ~(np.isnan(one).any(axis=0) | np.isnan(other).any(axis=0))
    asked, one, other = len(known), one[:, known], other[:, known]
    queries = one.shape[1]
    tau, interval, means = float("nan"), None, np.full((2, len(systems)), np.nan)
    if queries:
        means = np.array([one.mean(axis=1), other.mean(axis=1)])
        tau, interval = kendall_tau(*means), _drawn(one, other)
    people, judge = (dict(zip(systems, row, strict=True)) for row in means.tolist())
    return Order(tau, interval, queries, asked, metric, people, judge)


def _drawn(one: Floats, other: Floats) -> Interval | None:
    """Where most of the taus lie had other queries been asked; None if all are one."""
    queries = one.shape[1]
    draws = np.random.default_rng(_SEED).integers(0, queries, (_DRAWS, queries))
    taus = np.array(
        [
            kendall_tau(one[:, rows].mean(axis=1), other[:, rows].mean(axis=1))
            for rows in draws
        ]
    )
    known = taus[~np.isnan(taus)]
    if not len(known):
        return None
    low, high = np.quantile(known, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]).tolist()
    return None if low == high else Interval(low, high, _LEVEL, "bootstrap")


def _ranking(means: Mapping[str, float]) -> str:
    """The systems from best to worst, with their means.

    Example:
        >>> _ranking({"a": 0.5, "b": 0.75, "c": 0.5})
        'b 0.7500 > a 0.5000 = c 0.5000'
    """
    best = sorted(means.items(), key=lambda pair: -pair[1])
    said = [f"{name} {number(mean)}" for name, mean in best]
    for place, (before, after) in enumerate(pairwise(best)):
        said[place] += " = " if before[1] == after[1] else " > "
    return "".join(said)


def _plain(means: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(mean) else mean for name, mean in means.items()}
