"""The scores of one metric: query by query, their mean and its interval."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Floats
from karat.data.tables import number

__all__ = ["Interval", "MetricScores"]


class Interval(NamedTuple):
    """A confidence interval of a mean."""

    low: float
    high: float
    level: float = 0.95
    method: str = ""


@dataclass(frozen=True, eq=False)
class MetricScores:
    """One metric's score for every query, and their mean.

    Attributes:
        metric: the spelling.
        scores: one per query in input order; NaN where there is none.
        n: number of queries in the mean.
        undefined: number of queries for which the metric says nothing.
        failures: query index -> reason, for scores that could not be computed.
        binary: whether scores can only be 0 or 1.
        bounds: the smallest and largest possible score.
        cutoffs: the ks used, for a metric spelled with the letter k.
    """

    metric: str
    scores: Floats
    n: int
    undefined: int = 0
    failures: Mapping[int, str] = field(default_factory=dict)
    binary: bool = False
    bounds: tuple[float, float] = (0.0, 1.0)
    cutoffs: tuple[int, ...] = ()
    _interval: Callable[["MetricScores"], Interval | None] | None = None

    @property
    def defined(self) -> Floats:
        """The scores that are in the mean."""
        if self.n == len(self.scores):
            return self.scores
        return self.scores[~np.isnan(self.scores)]

    @property
    def failed(self) -> int:
        """Number of queries whose score could not be computed."""
        return len(self.failures)

    @property
    def mean(self) -> float:
        """The mean over the defined scores; NaN when there are none."""
        if not self.n:
            return float("nan")
        # One after the other, as trec_eval adds up: the same last bit on any machine.
        return float(self.defined.cumsum()[-1]) / self.n

    def __repr__(self) -> str:
        mean = f"mean={number(self.mean)}, n={self.n}, undefined={self.undefined}"
        return f"<MetricScores {self.metric}: {mean}>"

    @cached_property
    def interval(self) -> Interval | None:
        """The confidence interval of the mean; None where the scores tell of none."""
        return self._interval(self) if self._interval is not None else None
