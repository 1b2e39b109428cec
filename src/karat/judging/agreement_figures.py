"""Rates and orders: how often a judge and people agree, and on which run is better."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.intervals import Interval
from karat.data.tables import DASH, counted, number
from karat.errors import DataError
from karat.stats import mean_interval
from karat.stats.agreement import AgreementFigures
from karat.stats.rank_correlation import order_correlation, spearman_rho


class Rate(NamedTuple):
    """A figure with its interval, such as how often the judge says the same as people.

    Attributes:
        name: what it is.
        rate: its value.
        n: the number of labels that it is made from.
        interval: how far it may be off, for other queries than these.
    """

    name: str
    rate: float
    n: int
    interval: Interval | None

    def row(self) -> list[str]:
        """Its row in a table of agreement."""
        return [self.name, number(self.rate), limits(self.interval), str(self.n)]


def rate_of(
    name: str,
    values: Floats | Bools,
    query: Ints | None = None,
    bounds: tuple[float, float] | None = None,
) -> Rate:
    """A mean with its interval over queries; without bounds, of yes and no."""
    rows, binary = values.astype(float), bounds is None
    limits = bounds or (0.0, 1.0)
    interval = mean_interval(rows, binary=binary, bounds=limits, clusters=query)
    mean = float(rows.mean()) if len(rows) else math.nan
    return Rate(name, mean, len(rows), interval)


def figure_facts(figures: AgreementFigures) -> dict[str, Any]:
    """The value of each figure by its name, and all intervals."""
    named = figures._asdict()
    intervals = {name: figure.interval for name, figure in named.items()}
    values = {name: figure.value for name, figure in named.items()}
    return {**values, "intervals": intervals}


def limits(interval: Interval | None) -> str:
    """An interval in a table; nothing where there is none."""
    if interval is None:
        return ""
    return f"{number(interval.low)} .. {number(interval.high)}"


def plain(fact: Any) -> Any:
    """Facts as JSON can hold them: intervals as two numbers, null for NaN."""
    if isinstance(fact, Interval):
        return fact[:2]
    if hasattr(fact, "_asdict"):
        fact = fact._asdict()
    if isinstance(fact, Mapping):
        return {name: plain(value) for name, value in fact.items()}
    if isinstance(fact, list | tuple):
        return [plain(value) for value in fact]
    return None if isinstance(fact, float) and math.isnan(fact) else fact


class Order(NamedTuple):
    """How alike people and judge order the runs.

    Attributes:
        tau: Kendall's tau of the two orders; NaN where one of them is no order, or no
            query is scored by both labels.
        interval: how far it may be off, for other queries than these; None where the
            queries do not tell.
        queries: number of queries that both labels score for every run.
        labelled: number of queries that people labelled.
        metric: what the runs are scored with.
        people: mean score of each run by people's labels.
        judge: the same by the judge's.
        threshold: the smallest grade that is relevant; any positive one if None.
        rho: Spearman's rho of the two orders; NaN where tau is.
    """

    tau: float
    interval: Interval | None
    queries: int
    labelled: int
    metric: str
    people: Mapping[str, float]
    judge: Mapping[str, float]
    threshold: float | None = None
    rho: float = math.nan

    @property
    def reversed(self) -> bool:
        """Whether the two orders contradict each other more than they agree."""
        return self.tau < 0

    def rows(self) -> list[list[str]]:
        """Its rows in a table of agreement."""
        name = f"order of {len(self.people)} runs"
        rates = (
            (", tau", self.tau, self.interval),
            (", Spearman's rho", self.rho, None),
        )
        return [Rate(name + of, v, self.queries, i).row() for of, v, i in rates]

    def notes(self) -> list[str]:
        """Both orders in words, and the queries they are based on."""
        every = counted(self.labelled, "query")
        basis = f"{self.queries} of {every}: those where both labels score every run"
        if self.queries == self.labelled:
            basis = f"all {every}"
        if not self.queries:
            return [f"order by {self.metric}: none, for it rests on {basis}"]
        people, judge = _ranking(self.people), _ranking(self.judge)
        cut = "" if self.threshold is None else f", threshold {self.threshold:g},"
        notes = [f"{self.metric}{cut} by people: {people}; by the judge: {judge}"]
        notes.append(f"order over {basis}")
        if math.isnan(self.tau):
            notes.append(f"{DASH} for tau: the runs are all alike by one of the labels")
        if self.reversed:
            text = "the runs come out the other way round by the judge"
            notes.append(f"order reversed: {text}; do not choose between them by it")
        return notes

    def to_dict(self) -> Any:
        """Its fields in plain values; null is one that does not exist."""
        facts = self._asdict()
        facts["queries_of_people"] = facts.pop("labelled")
        return plain({**facts, "systems": len(self.people), "reversed": self.reversed})


def order_agreement(
    human: Mapping[str, Floats], judged: Mapping[str, Floats], metric: str = "score"
) -> Order:
    """Kendall's tau of the order of runs, with a bootstrap interval over queries.

    Args:
        human: the scores of each run, query by query, with people's labels.
        judged: the same with the judge's labels.
        metric: what the scores are.

    Example:
        >>> one = {"a": np.array([0.1, 0.2]), "b": np.array([0.5, 0.6])}
        >>> order_agreement(one, one).tau
        1.0
    """
    names = [*human]
    if len(names) < 2:  # noqa: PLR2004
        raise DataError("an order takes two systems")
    one, other = (np.array([row[name] for name in names]) for row in (human, judged))
    scored = ~(np.isnan(one).any(axis=0) | np.isnan(other).any(axis=0))
    one, other = one[:, scored], other[:, scored]
    tau, interval, means = float("nan"), None, np.full((2, len(names)), np.nan)
    if scored.any():
        means = np.array([one.mean(axis=1), other.mean(axis=1)])
        tau, interval = order_correlation(one, other)
    people, judge = (dict(zip(names, row, strict=True)) for row in means.tolist())
    counts = (one.shape[1], len(scored))
    rho = spearman_rho(*means)
    return Order(tau, interval, *counts, metric, people=people, judge=judge, rho=rho)


def _ranking(means: Mapping[str, float]) -> str:
    """The runs from best to worst, with their means.

    Example:
        >>> _ranking({"a": 0.5, "b": 0.75, "c": 0.5})
        'b 0.7500 > a 0.5000 = c 0.5000'
    """
    best = sorted(means.items(), key=lambda pair: -pair[1])
    text = "".join(f"{name} {number(mean)}" for name, mean in best[:1])
    for before, after in pairwise(best):
        sign = "=" if before[1] == after[1] else ">"
        text += f" {sign} {after[0]} {number(after[1])}"
    return text
