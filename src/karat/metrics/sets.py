"""Metrics that take what was retrieved as a set and ignore its order; and counts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints, count_by, ratio
from karat.data.hits import Hits
from karat.metrics import BinaryMetric, Metric
from karat.metrics.incomplete_judgements import is_nonrelevant
from karat.metrics.precision_recall import (
    Precision,
    Recall,
    found_in_top,
    harmonic_mean,
)


def _zero_if_empty(score: Floats, relevant: Ints) -> Floats:
    """0 where nothing was retrieved, undefined where nothing is relevant."""
    return np.where(relevant > 0, np.nan_to_num(score), np.nan)


@dataclass(frozen=True)
class _SetMetric(Metric):
    """A metric of all that was retrieved; what is relevant is its only parameter."""

    threshold: float | None = None


class _Uncut(_SetMetric):
    """A metric of the top k, over all that was retrieved."""

    of_top_k: ClassVar[type[BinaryMetric]]

    def score(self, hits: Hits) -> Floats:
        return self.of_top_k(None, self.threshold).score(hits)

    def workings(self, hits: Hits) -> str:
        return self.of_top_k(None, self.threshold).workings(hits)


class SetPrecision(_Uncut):
    """The share of all retrieved documents that is relevant.

    0 where nothing was retrieved. Undefined for a query in which nothing is judged.
    """

    name: ClassVar[str] = "set_precision"
    formula: ClassVar[str] = "matched positions / retrieved"
    of_top_k: ClassVar[type[BinaryMetric]] = Precision


class SetRecall(_Uncut):
    """The share of the relevant items found anywhere in what was retrieved.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "set_recall"
    formula: ClassVar[str] = "found / R"
    of_top_k: ClassVar[type[BinaryMetric]] = Recall


class SetAP(_SetMetric):
    """Precision times recall of all that was retrieved.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "set_ap"
    formula: ClassVar[str] = "found * matched positions / (retrieved * R)"

    def score(self, hits: Hits) -> Floats:
        items, relevant = found_in_top(hits, None, self.threshold)
        matched = hits.matched_within(None, self.threshold)
        # One division, as trec_eval does it.
        share = ratio(items * matched, hits.retrieved * relevant)
        return _zero_if_empty(share, relevant)

    def workings(self, hits: Hits) -> str:
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
    limits: ClassVar[dict[str, str]] = {"beta": "[0, inf)"}

    beta: float = 1.0
    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        return harmonic_mean(hits, None, self.threshold, self.beta)

    def workings(self, hits: Hits) -> str:
        p = Precision(None, self.threshold).score(hits)[0]
        r = Recall(None, self.threshold).score(hits)[0]
        return (
            f"{self.beta + 1:g} x {p:.4f} x {r:.4f} / "
            f"({self.beta:g} x {p:.4f} + {r:.4f})"
        )


class SetRelativePrecision(_SetMetric):
    """Precision of all that was retrieved, over the best a set of its size could have.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "set_relative_precision"
    formula: ClassVar[str] = "found / min(R, retrieved)"

    def score(self, hits: Hits) -> Floats:
        items, relevant = found_in_top(hits, None, self.threshold)
        room = hits.retrieved
        # One document may hold several items, so more may be found than retrieved.
        share = ratio(np.minimum(items, room), np.minimum(relevant, room))
        return _zero_if_empty(share, relevant)

    def workings(self, hits: Hits) -> str:
        items, relevant = found_in_top(hits, None, self.threshold)
        room = int(hits.retrieved[0])
        return f"{min(items[0], room)} found / min({relevant[0]}, {room})"


class NumQ(Metric):
    """How many queries there are: those that a mean is taken over."""

    name: ClassVar[str] = "num_q"
    higher_is_better: ClassVar[bool | None] = None
    formula: ClassVar[str] = "1 for each query, added up"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    average: ClassVar[str] = "sum"

    def score(self, hits: Hits) -> Floats:
        return np.ones(hits.size)


class NumRet(Metric):
    """How many documents were retrieved."""

    name: ClassVar[str] = "num_ret"
    higher_is_better: ClassVar[bool | None] = None
    formula: ClassVar[str] = "retrieved"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def score(self, hits: Hits) -> Floats:
        return hits.retrieved.astype(np.float64)


class NumRel(_SetMetric):
    """How many relevant items there are to find."""

    name: ClassVar[str] = "num_rel"
    higher_is_better: ClassVar[bool | None] = None
    formula: ClassVar[str] = "R"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def score(self, hits: Hits) -> Floats:
        return hits.credits(self.threshold).relevant.astype(np.float64)


class NumRelRet(_SetMetric):
    """How many relevant items were found."""

    name: ClassVar[str] = "num_rel_ret"
    formula: ClassVar[str] = "found"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def score(self, hits: Hits) -> Floats:
        return hits.found_within(None, self.threshold).astype(np.float64)


class NumNonrelJudgedRet(_SetMetric):
    """How many documents were retrieved that someone judged not relevant."""

    name: ClassVar[str] = "num_nonrel_judged_ret"
    higher_is_better: ClassVar[bool | None] = False
    formula: ClassVar[str] = "retrieved and judged non-relevant"
    reads_judged: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def score(self, hits: Hits) -> Floats:
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
    limits: ClassVar[dict[str, str]] = dict.fromkeys(
        ("found", "noise", "missed", "rest"), "(-inf, inf)"
    )

    found: float = 1.0
    noise: float = -1.0
    missed: float = 0.0
    rest: float = 0.0
    collection: int = 0
    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        relevant = NumRel(self.threshold).score(hits)
        items = NumRelRet(self.threshold).score(hits)
        rest = self.collection + items - hits.retrieved - relevant
        return (
            self.found * items
            + self.noise * (hits.retrieved - items)
            + self.missed * (relevant - items)
            + self.rest * rest
        )
