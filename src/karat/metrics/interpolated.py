"""Metrics that read the precision-recall curve at fixed points of recall."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.hits import Hits
from karat.errors import ParameterError
from karat.metrics.metric import Metric

__all__ = ["InterpolatedAverage", "InterpolatedPrecision", "items_needed"]


def items_needed(recall: float, relevant: Ints, rounding: str = "nearest") -> Ints:
    """How many items must be found to reach this share of the relevant ones."""
    share = recall * relevant.astype(np.float64)
    if rounding == "up":
        # trec_eval 9: up from a tenth on, so that 0.1 * 30 = 3.0000000000000004 is 3.
        return (share + 0.9).astype(np.int64)
    whole = np.floor(share)
    return (whole + (share - whole >= 0.5)).astype(np.int64)  # noqa: PLR2004


@dataclass(frozen=True)
class InterpolatedPrecision(Metric):
    """The best precision reached at or below the rank where this recall is reached.

    0 where it is never reached. Undefined for a query without relevant gold.

    Attributes:
        recall: the share of the relevant items, from 0 to 1.
        rounding: how the share becomes a number of items: to the `nearest`, as
            trec_eval 10 does, or `up` from a tenth on, as trec_eval 9 and with it
            pytrec_eval and ir_measures do.
    """

    name: ClassVar[str] = "iprec"
    formula: ClassVar[str] = "max of j / slot of the j-th, over j >= recall * R"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"rounding": ("nearest", "up")}

    recall: float = 0.0
    rounding: str = "nearest"
    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.recall <= 1:
            raise ParameterError(self.name, "recall", "from 0 to 1", self.recall)

    def score(self, hits: Hits) -> Floats:
        """The highest precision from there on."""
        credits = hits.credits(self.threshold)
        needed = items_needed(self.recall, credits.relevant, self.rounding)
        rows = credits.order >= needed[credits.query]
        best = np.where(credits.relevant > 0, 0.0, np.nan)
        precision = credits.order[rows] / credits.slot[rows]
        np.maximum.at(best, credits.query[rows], precision)
        return best

    def workings(self, hits: Hits) -> str:
        """How many items must be found, and what is found from there on."""
        credits = hits.credits(self.threshold)
        needed = items_needed(self.recall, credits.relevant, self.rounding)[0]
        rows = credits.order >= needed
        pairs = zip(credits.order[rows], credits.slot[rows], strict=True)
        terms = ", ".join(f"{order}/{slot}" for order, slot in pairs) or "nothing"
        return f"{needed} of {credits.relevant[0]} needed: highest of {terms}"


@dataclass(frozen=True)
class InterpolatedAverage(Metric):
    """Interpolated precision averaged over recall 0, 0.1, ... 1: the 11-point average.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "iprec_avg"
    formula: ClassVar[str] = "mean of iprec(recall) over recall = 0, 0.1, ... 1"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"rounding": ("nearest", "up")}

    rounding: str = "nearest"
    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        """The mean over the eleven points."""
        return self.over(hits, [tenth / 10 for tenth in range(11)])

    def over(self, hits: Hits, points: Sequence[float]) -> Floats:
        """The mean over any points of recall, added up from the highest."""
        total = np.zeros(hits.size)
        for recall in sorted(points, reverse=True):
            point = InterpolatedPrecision(recall, self.rounding, self.threshold)
            total += point.score(hits)
        return total / len(points)
