"""Metrics that take what was retrieved as a set and ignore its order."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints, count_by, ratio
from karat.data.hits import Hits
from karat.errors import ParameterError
from karat.metrics.found_items import Precision, Recall
from karat.metrics.metric import Metric

__all__ = ["SetAP", "SetF", "SetPrecision", "SetRecall", "SetRelativePrecision"]


def _found(hits: Hits, threshold: float | None) -> tuple[Ints, Ints]:
    """How many relevant items of each query were found, and how many there are."""
    credits = hits.credits(threshold)
    return count_by(credits.query, hits.size), credits.relevant


def _zero_if_empty(score: Floats, relevant: Ints) -> Floats:
    """0 where nothing was retrieved, undefined where nothing is relevant."""
    return np.where(relevant > 0, np.nan_to_num(score), np.nan)


@dataclass(frozen=True)
class SetPrecision(Metric):
    """The share of all retrieved documents that is relevant.

    0 where nothing was retrieved. Undefined for a query in which nothing is judged.
    """

    name: ClassVar[str] = "set_precision"
    formula: ClassVar[str] = "matched positions / retrieved"

    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        """Precision without cutoff."""
        return Precision(None, self.threshold).score(hits)

    def workings(self, hits: Hits) -> str:
        """Matched / retrieved."""
        return Precision(None, self.threshold).workings(hits)


@dataclass(frozen=True)
class SetRecall(Metric):
    """The share of the relevant items found anywhere in what was retrieved.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "set_recall"
    formula: ClassVar[str] = "found / R"

    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        """Recall without cutoff."""
        return Recall(None, self.threshold).score(hits)

    def workings(self, hits: Hits) -> str:
        """Found / R."""
        return Recall(None, self.threshold).workings(hits)


@dataclass(frozen=True)
class SetAP(Metric):
    """Precision times recall of all that was retrieved.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "set_ap"
    formula: ClassVar[str] = "found * matched positions / (retrieved * R)"

    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        """One division, as trec_eval does it."""
        items, relevant = _found(hits, self.threshold)
        matched = count_by(hits.positions(self.threshold)[0], hits.size)
        share = ratio(items * matched, hits.retrieved * relevant)
        return _zero_if_empty(share, relevant)

    def workings(self, hits: Hits) -> str:
        """Precision and recall, multiplied."""
        precision = Precision(None, self.threshold).workings(hits)
        recall = Recall(None, self.threshold).workings(hits)
        return f"({precision}) x ({recall})"


@dataclass(frozen=True)
class SetF(Metric):
    """The balance of precision and recall of all that was retrieved.

    Undefined for a query without relevant gold.

    Attributes:
        beta: how much more recall weighs than precision. As in trec_eval and
            ir_measures it stands where the textbook formula has its square.
    """

    name: ClassVar[str] = "set_f"
    formula: ClassVar[str] = "(beta + 1) P R / (beta P + R)"

    beta: float = 1.0
    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.beta < np.inf:
            raise ParameterError(self.name, "beta", "a number >= 0", self.beta)

    def score(self, hits: Hits) -> Floats:
        """Weighted harmonic mean, 0 where nothing was found."""
        precision = Precision(None, self.threshold).score(hits)
        recall = Recall(None, self.threshold).score(hits)
        mean = ratio(
            (self.beta + 1) * precision * recall, self.beta * precision + recall
        )
        return _zero_if_empty(mean, hits.credits(self.threshold).relevant)

    def workings(self, hits: Hits) -> str:
        """The weighted mean, with its numbers."""
        p = Precision(None, self.threshold).score(hits)[0]
        r = Recall(None, self.threshold).score(hits)[0]
        return (
            f"{self.beta + 1:g} x {p:.4f} x {r:.4f} / "
            f"({self.beta:g} x {p:.4f} + {r:.4f})"
        )


@dataclass(frozen=True)
class SetRelativePrecision(Metric):
    """Precision of all that was retrieved, over the best a set of its size could have.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "set_relative_precision"
    formula: ClassVar[str] = "found / min(R, retrieved)"

    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        """Found over what could be found."""
        items, relevant = _found(hits, self.threshold)
        room = hits.retrieved
        # One document may hold several items, so more may be found than retrieved.
        share = ratio(np.minimum(items, room), np.minimum(relevant, room))
        return _zero_if_empty(share, relevant)

    def workings(self, hits: Hits) -> str:
        """Found / what could be found."""
        items, relevant = _found(hits, self.threshold)
        room = int(hits.retrieved[0])
        return f"{min(items[0], room)} found / min({relevant[0]}, {room})"
