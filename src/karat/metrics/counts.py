"""Counts: not scores, but what scores are made of."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, count_by
from karat.data.hits import Hits
from karat.errors import ParameterError
from karat.metrics.judged_lists import is_nonrelevant
from karat.metrics.metric import Metric

__all__ = ["NumNonrelJudgedRet", "NumRel", "NumRelRet", "NumRet", "Utility"]


class NumRet(Metric):
    """How many documents were retrieved."""

    name: ClassVar[str] = "num_ret"
    formula: ClassVar[str] = "retrieved"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def score(self, hits: Hits) -> Floats:
        """Retrieved."""
        return hits.retrieved.astype(np.float64)


@dataclass(frozen=True)
class NumRel(Metric):
    """How many relevant items there are to find."""

    name: ClassVar[str] = "num_rel"
    formula: ClassVar[str] = "R"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        """R."""
        return hits.credits(self.threshold).relevant.astype(np.float64)


@dataclass(frozen=True)
class NumRelRet(Metric):
    """How many relevant items were found."""

    name: ClassVar[str] = "num_rel_ret"
    formula: ClassVar[str] = "found"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        """Found."""
        found = hits.credits(self.threshold).query
        return count_by(found, hits.size).astype(np.float64)


@dataclass(frozen=True)
class NumNonrelJudgedRet(Metric):
    """How many documents were retrieved that someone judged not relevant."""

    name: ClassVar[str] = "num_nonrel_judged_ret"
    formula: ClassVar[str] = "retrieved and judged non-relevant"
    reads_judged: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        """Rejected."""
        rows = is_nonrelevant(hits.grade, self.threshold) & hits.first
        return count_by(hits.query[rows], hits.size).astype(np.float64)


@dataclass(frozen=True)
class Utility(Metric):
    """What the retrieved set is worth, paying for each cell of the contingency table.

    Attributes:
        found: worth of a relevant document that was retrieved.
        noise: worth of another document that was retrieved.
        missed: worth of a relevant document that was not retrieved.
        rest: worth of another document that was not retrieved.
        collection: how many documents there are in all; needed for `rest` only.
    """

    name: ClassVar[str] = "utility"
    formula: ClassVar[str] = "found * a + noise * b + missed * c + rest * d"
    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    found: float = 1.0
    noise: float = -1.0
    missed: float = 0.0
    rest: float = 0.0
    collection: int = 0
    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("found", "noise", "missed", "rest"):
            if not np.isfinite(getattr(self, name)):
                value = getattr(self, name)
                raise ParameterError(self.name, name, "a finite number", value)

    def score(self, hits: Hits) -> Floats:
        """The weighted sum."""
        relevant = NumRel(self.threshold).score(hits)
        found = NumRelRet(self.threshold).score(hits)
        rest = self.collection + found - hits.retrieved - relevant
        return (
            self.found * found
            + self.noise * (hits.retrieved - found)
            + self.missed * (relevant - found)
            + self.rest * rest
        )
