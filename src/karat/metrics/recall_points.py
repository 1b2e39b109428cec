"""Metrics read at points that depend on how much there is to find.

R-precision is read at rank R, interpolated precision where a share of R is found.
Those over gains compare the ranking at each of its relevant items, or at each change of
grade in the ideal ranking, with the ideal at the same rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints, count_by, ratio, running_sum, sum_by
from karat.data.hits import Hits
from karat.metrics import Metric
from karat.metrics.gains import NDCG


@dataclass(frozen=True, eq=False)
class _Ideal:
    """The best order of the gold, read at any rank; past its end nothing is added."""

    hits: Hits

    @cached_property
    def size(self) -> Ints:
        """How many items each query's best order has."""
        return count_by(self.hits.ideal_order[0], self.hits.size)

    def at(self, sums: Floats, query: Ints, slot: Ints) -> Floats:
        """The running sum over the best order at each slot."""
        start = np.cumsum(self.size) - self.size
        place = start[query] + np.minimum(slot, self.size[query]) - 1
        reached: Floats = sums[place]
        return reached

    @cached_property
    def dcg(self) -> Floats:
        """The running discounted gain, row by row of the best order."""
        query, place, grade = self.hits.ideal_order
        return running_sum(query, grade / np.log2(place + 1))


@dataclass(frozen=True)
class RPrecision(Metric):
    """Precision after as many documents as there are relevant ones.

    Undefined for a query without relevant gold.

    Attributes:
        mult: looks at this multiple of R instead, rounded up from a tenth on.
    """

    name: ClassVar[str] = "r_precision"
    formula: ClassVar[str] = "found in top R / R"
    limits: ClassVar[dict[str, str]] = {"mult": "(0, inf)"}

    mult: float = 1.0
    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        items, depth = self._parts(hits)
        share = np.divide(items, depth, out=np.zeros(hits.size), where=depth > 0)
        return np.where(hits.credits(self.threshold).relevant > 0, share, np.nan)

    def workings(self, hits: Hits) -> str:
        items, depth = self._parts(hits)
        return f"{items[0]} found / {depth[0]} looked at"

    def _parts(self, hits: Hits) -> tuple[Ints, Ints]:
        credits = hits.credits(self.threshold)
        depth = (self.mult * credits.relevant + 0.9).astype(np.int64)
        rows = credits.slot <= depth[credits.query]
        return count_by(credits.query[rows], hits.size), depth


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

    Example:
        >>> import karat
        >>> metric = InterpolatedPrecision(recall=0.5)
        >>> karat.evaluate({"q": ["a", "b"]}, gold={"q": ["b"]}, metrics=metric).means
        {'iprec(recall=0.5)': 0.5}
    """

    name: ClassVar[str] = "iprec"
    formula: ClassVar[str] = "max of j / slot of the j-th, over j >= recall * R"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"rounding": ("nearest", "up")}
    limits: ClassVar[dict[str, str]] = {"recall": "[0, 1]"}

    recall: float = 0.0
    rounding: str = "nearest"
    threshold: float | None = None

    def needed(self, hits: Hits) -> Ints:
        """How many items of each query must be found to reach this recall."""
        relevant = hits.credits(self.threshold).relevant
        return items_needed(self.recall, relevant, self.rounding)

    def score(self, hits: Hits) -> Floats:
        credits = hits.credits(self.threshold)
        rows = credits.order >= self.needed(hits)[credits.query]
        best = np.where(credits.relevant > 0, 0.0, np.nan)
        precision = credits.order[rows] / credits.slot[rows]
        np.maximum.at(best, credits.query[rows], precision)
        return best

    def workings(self, hits: Hits) -> str:
        credits = hits.credits(self.threshold)
        needed = self.needed(hits)[0]
        rows = credits.order >= needed
        pairs = zip(credits.order[rows], credits.slot[rows], strict=True)
        terms = ", ".join(f"{order}/{slot}" for order, slot in pairs) or "nothing"
        return f"{needed} of {credits.relevant[0]} needed: highest of {terms}"


@dataclass(frozen=True)
class InterpolatedAverage(Metric):
    """Interpolated precision averaged over recall 0, 0.1, ... 1: the 11-point average.

    Undefined for a query without relevant gold.

    Example:
        >>> import karat
        >>> run, gold = {"q": ["a", "b"]}, {"q": ["b"]}
        >>> karat.evaluate(run, gold=gold, metrics="iprec_avg").means
        {'iprec_avg': 0.5}
    """

    name: ClassVar[str] = "iprec_avg"
    formula: ClassVar[str] = "mean of iprec(recall) over recall = 0, 0.1, ... 1"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"rounding": ("nearest", "up")}

    rounding: str = "nearest"
    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        return self.over(hits, [tenth / 10 for tenth in range(11)])

    def over(self, hits: Hits, points: Sequence[float]) -> Floats:
        """The mean over any points of recall, added up from the highest."""
        total = np.zeros(hits.size)
        for recall in sorted(points, reverse=True):
            point = InterpolatedPrecision(recall, self.rounding, self.threshold)
            total += point.score(hits)
        return total / len(points)


class RNDCG(Metric):
    """nDCG averaged over the ranks at which the ideal ranking drops to a lower grade.

    One more point is the end of the ranking, where it goes on by two or more documents.
    Undefined where the ideal is 0.
    """

    name: ClassVar[str] = "rndcg"
    formula: ClassVar[str] = "mean of ndcg@b over the ends b of each grade in the ideal"

    def score(self, hits: Hits) -> Floats:
        ideal = _Ideal(hits)
        query, place, grade = hits.ideal_order
        ends = np.ones(len(query), np.bool_)
        ends[:-1] = (query[1:] != query[:-1]) | (grade[1:] != grade[:-1])
        at, rank = query[ends], place[ends]
        points = sum_by(at, _dcg_at(hits, at, rank) / ideal.dcg[ends], hits.size)
        number = count_by(at, hits.size)
        goes_on = (number > 0) & (hits.retrieved > ideal.size + 1)
        points += np.where(goes_on, NDCG().score(hits), 0)
        return ratio(points, number + goes_on)


def _dcg_at(hits: Hits, query: Ints, rank: Ints) -> Floats:
    """The discounted gain of the top `rank` documents of each given query."""
    credits = hits.credits()
    dcg = running_sum(credits.query, credits.grade / np.log2(credits.slot + 1))
    stride = int(max(credits.slot.max(initial=0), rank.max(initial=0))) + 1
    paid = credits.query * stride + credits.slot
    last = np.searchsorted(paid, query * stride + rank, side="right")
    some = last > np.searchsorted(paid, query * stride)
    return np.where(some, np.concatenate(([0.0], dcg))[last], 0.0)


class NDCGRel(Metric):
    """nDCG averaged over the ranks of the relevant items.

    An item that was not found takes the nDCG of the whole ranking. Undefined where the
    ideal is 0.
    """

    name: ClassVar[str] = "ndcg_rel"
    formula: ClassVar[str] = "mean over R of ndcg@(slot of the item)"

    def score(self, hits: Hits) -> Floats:
        ideal, credits = _Ideal(hits), hits.credits()
        query, slot = credits.query, credits.slot
        dcg = running_sum(query, credits.grade / np.log2(slot + 1))
        total = sum_by(query, dcg / ideal.at(ideal.dcg, query, slot), hits.size)
        lacking = ideal.size - count_by(query, hits.size)
        return ratio(total + lacking * NDCG().score(hits), ideal.size)


@dataclass(frozen=True)
class QMeasure(Metric):
    """Average precision for grades: what was gained so far beside the ideal ranking.

    Sakai's Q-measure. With beta = 0 it is average precision. Undefined for a query
    without relevant gold.

    Attributes:
        beta: how much gains weigh beside the number of items found.
    """

    name: ClassVar[str] = "q_measure"
    formula: ClassVar[str] = (
        "mean over R of (j + beta gain so far) / (slot + beta ideal so far)"
    )
    limits: ClassVar[dict[str, str]] = {"beta": "[0, inf)"}

    beta: float = 1.0

    def score(self, hits: Hits) -> Floats:
        ideal, credits = _Ideal(hits), hits.credits()
        query, slot = credits.query, credits.slot
        order, _, grade = hits.ideal_order
        best = ideal.at(running_sum(order, grade), query, slot)
        gained = running_sum(query, credits.grade)
        blended = (credits.order + self.beta * gained) / (slot + self.beta * best)
        return ratio(sum_by(query, blended, hits.size), ideal.size)


class G(Metric):
    """Gain paid less the further the ranking has fallen behind the ideal one.

    Undefined where the ideal is 0.
    """

    name: ClassVar[str] = "g"
    formula: ClassVar[str] = (
        "sum of gain / log2(2 + ideal so far - gain so far), / ideal"
    )

    def score(self, hits: Hits) -> Floats:
        ideal, credits = _Ideal(hits), hits.credits()
        query, slot, gain = credits.query, credits.slot, credits.grade
        order, _, grade = hits.ideal_order
        # A rank costs at least 1, also where the ideal gains less or nothing.
        cost = running_sum(order, np.maximum(grade, 1.0))
        best = ideal.at(cost, query, slot) + np.maximum(slot - ideal.size[query], 0)
        paid = gain / np.log2(2 + best - running_sum(query, gain))
        return ratio(sum_by(query, paid, hits.size), sum_by(order, grade, hits.size))


@dataclass(frozen=True)
class BinaryG(Metric):
    """Relevant items paid less the more other documents stand before them.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "bing"
    formula: ClassVar[str] = "mean over R of 1 / log2(2 + others before)"

    threshold: float | None = None

    def score(self, hits: Hits) -> Floats:
        credits = hits.credits(self.threshold)
        paid = 1.0 / np.log2(2 + credits.slot - credits.order)
        return ratio(sum_by(credits.query, paid, hits.size), credits.relevant)

    def workings(self, hits: Hits) -> str:
        credits = hits.credits(self.threshold)
        others = (credits.slot - credits.order).tolist()
        terms = " + ".join(f"1/log2({2 + other})" for other in others) or "0"
        return f"({terms}) / {credits.relevant[0]} relevant"
