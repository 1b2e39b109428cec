"""Totals: means and intervals of more queries than fit into one place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from karat.data.arrays import Floats
from karat.data.intervals import Interval
from karat.data.tables import Table, counted, number
from karat.errors import UsageError
from karat.stats import moments_interval

_HALF = 40
_UNIT = 1 << 2 * _HALF


@dataclass(frozen=True)
class MetricTotal:
    """One metric over any number of queries: its mean does not depend on their order.

    Scores are added up as whole numbers of 2**-80, so that any partitioning gives the
    same sum, and the mean is within 1e-12 of the one that `evaluate` gives.

    Attributes:
        n: number of queries in the mean.
        undefined: number of queries for which the metric says nothing.
        total: sum of the scores, times 2**80.
        squares: sum of their squares, times 2**80.
        binary: whether scores can only be 0 or 1.
        bounds: the smallest and largest possible score.
    """

    n: int = 0
    undefined: int = 0
    total: int = 0
    squares: int = 0
    binary: bool = False
    bounds: tuple[float, float] = (0.0, 1.0)

    @cached_property
    def mean(self) -> float:
        """The mean over the defined scores; NaN when there are none."""
        return float(Fraction(self.total, _UNIT * self.n)) if self.n else float("nan")

    @cached_property
    def interval(self) -> Interval | None:
        """The 95 % interval of the mean; None where moments do not tell."""
        if not self.n:
            return None
        spread = Fraction(self.squares, _UNIT) - Fraction(
            self.total**2, _UNIT**2 * self.n
        )
        return moments_interval(
            self.n, self.mean, float(spread), binary=self.binary, bounds=self.bounds
        )


@dataclass(frozen=True)
class Totals(Mapping[str, MetricTotal]):
    """What a run scored, metric by metric, where the queries' scores lie elsewhere.

    Attributes:
        run: name of the run.
        queries: how many queries the gold has.
        missing: how many of them the run lacks.
        metrics: the totals, by spelling of the metric.
        table: where each query's scores are.
    """

    run: str = "run"
    queries: int = 0
    missing: int = 0
    metrics: Mapping[str, MetricTotal] = field(default_factory=dict)
    table: str = ""

    def __getitem__(self, metric: str) -> MetricTotal:
        return self.metrics[metric]

    def __iter__(self) -> Any:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean of every metric."""
        return {name: total.mean for name, total in self.metrics.items()}

    def summary(self) -> Table:
        """The table a person is shown."""
        rows = []
        for name, total in self.metrics.items():
            interval = " .. ".join(map(number, total.interval or (None,)))
            counts = [f"{total.n}/{self.queries}", total.undefined, self.missing]
            rows.append([name, number(total.mean), interval, *map(str, counts)])
        names = ["metric", "mean", "95% interval", "n", "undefined", "missing"]
        title = f"{self.run}: {counted(self.queries, 'query')}"
        return Table(columns=names, rows=rows, title=title)

    def __str__(self) -> str:
        return self.summary().as_text()


def total_of(
    scores: Floats, *, binary: bool = False, bounds: tuple[float, float] = (0.0, 1.0)
) -> MetricTotal:
    """The total of some scores; NaN is undefined.

    Example:
        >>> total_of(np.array([0.5, np.nan, 0.25])).mean
        0.375
    """
    defined = scores[~np.isnan(scores)]
    return MetricTotal(
        len(defined),
        len(scores) - len(defined),
        _fixed_sum(defined),
        _fixed_sum(defined * defined),
        binary,
        bounds,
    )


def _fixed_sum(values: Floats) -> int:
    """The sum of numbers, each cut to whole parts of 2**-80: exact in any order."""
    if not np.isfinite(values).all() or np.abs(values).max(initial=0) >= 1 << 20:
        raise UsageError("scores beyond a million cannot be added up exactly")
    scaled = np.ldexp(values, _HALF)
    high = np.floor(scaled)
    low = np.floor(np.ldexp(scaled - high, _HALF)).astype(np.int64)
    total = 0
    # Two halves again, so that no sum of a million numbers leaves 64 bits.
    for half, place in ((high.astype(np.int64), _HALF), (low, 0)):
        upper, lower = half >> 20, half & ((1 << 20) - 1)
        total += (int(upper.sum()) << 20) + int(lower.sum()) << place
    return total


def add_totals(parts: Iterable[MetricTotal]) -> MetricTotal:
    """The total of all queries, from those of disjoint parts."""
    every = [*parts]
    names = ("n", "undefined", "total", "squares")
    sums = {name: sum(getattr(part, name) for part in every) for name in names}
    return replace(every[0] if every else MetricTotal(), **sums)
