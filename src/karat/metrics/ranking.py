"""Metrics that pay each gold item by the rank at which it was found."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints, count_by, place_by, ratio, sum_by
from karat.data.hits import Hits
from karat.metrics.metric import BinaryMetric, CutoffMetric

__all__ = [
    "NDCG",
    "AveragePrecision",
    "ContextPrecision",
    "NDCGAny",
    "ReciprocalRank",
]

_SHOWN = 8

# Beyond this grade 2^grade, or a sum of them, is no number of double precision.
_HIGHEST = 1000


class ReciprocalRank(BinaryMetric):
    """How high the first relevant document stands: 1 / its rank, 0 when there is none.

    Averaged over queries this is MRR. Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "rr"
    formula: ClassVar[str] = "1 / first relevant rank (0 if none in top k)"

    def score(self, hits: Hits) -> Floats:
        """1 / first rank."""
        credits = hits.credits(self.threshold)
        rows = credits.order == 1
        query, rank = credits.query[rows], credits.rank[rows]
        within = self.within(hits, query, rank)
        # Nothing found is 0, or undefined where the whole is.
        score = 0 / credits.whole
        score[query[within]] = 1 / rank[within]
        return score

    def workings(self, hits: Hits) -> str:
        """1 / the rank."""
        ranks = hits.credits(self.threshold).rank
        return f"1 / {ranks[0]}" if len(ranks) else "nothing relevant was found"


class AveragePrecision(BinaryMetric):
    """Precision at each found gold item, averaged over all gold items.

    Items never found count as 0. Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "ap"
    formula: ClassVar[str] = "sum over found items of (j / slot of the j-th) / R"

    def score(self, hits: Hits) -> Floats:
        """Precision at the items' slots, over R."""
        credits = hits.credits(self.threshold)
        rows = self.within(hits, credits.query, credits.slot)
        precision = credits.order[rows] / credits.slot[rows]
        return sum_by(credits.query[rows], precision, hits.size) / credits.whole

    def workings(self, hits: Hits) -> str:
        """The precisions that are averaged."""
        credits = hits.credits(self.threshold)
        rows = self.within(hits, credits.query, credits.slot)
        pairs = zip(credits.order[rows], credits.slot[rows], strict=True)
        terms = " + ".join(f"{order}/{slot}" for order, slot in pairs) or "0"
        return f"({terms}) / {credits.relevant[0]} relevant"


@dataclass(frozen=True)
class NDCG(CutoffMetric):
    """How close the ranking comes to the best one: grades pay less further down.

    The ideal holds all gold, cut at k. Undefined where the ideal is 0.

    Attributes:
        gain: `linear` pays the grade itself, `exp` pays 2^grade - 1.
    """

    name: ClassVar[str] = "ndcg"
    formula: ClassVar[str] = "sum of gain / log2(slot + 1), over the ideal order's"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"gain": ("linear", "exp")}

    gain: str = "linear"

    def score(self, hits: Hits) -> Floats:
        """DCG over ideal DCG."""
        return ratio(self.dcg(hits), self.ideal(hits))

    def dcg(self, hits: Hits) -> Floats:
        """The discounted gain of what was found."""
        credits = hits.credits()
        rows = self.within(hits, credits.query, credits.slot)
        query = credits.query[rows]
        worth = self._worth(hits, query, credits.grade[rows])
        return sum_by(query, worth / np.log2(credits.slot[rows] + 1), hits.size)

    def ideal(self, hits: Hits) -> Floats:
        """The discounted gain of all gold in the best order."""
        low, high = hits.grade_range
        if low == high > 0 and self._shift(hits) is None:
            # All gold is worth the same: one running sum serves every query.
            room = hits.cutoff(self.k, slice(None))
            count = (
                hits.gold_count if room is None else np.minimum(hits.gold_count, room)
            )
            places = np.arange(1, count.max(initial=0) + 1)
            worth = self._worth(hits, hits.query[:0], hits.gold_grade[:1])
            terms = worth / np.log2(places + 1)
            return np.concatenate(([0.0], terms.cumsum()))[count]
        query, place, grade = hits.ideal_order
        rows = self.within(hits, query, place)
        worth = self._worth(hits, query[rows], grade[rows])
        return sum_by(query[rows], worth / np.log2(place[rows] + 1), hits.size)

    def workings(self, hits: Hits) -> str:
        """DCG and ideal DCG, term by term."""
        credits = hits.credits()
        rows = self.within(hits, credits.query, credits.slot)
        found = self._worth(hits, credits.query[rows], credits.grade[rows])
        query, place, grade = hits.ideal_order
        best = self.within(hits, query, place)
        ideal = self._worth(hits, query[best], grade[best])
        shift = self._shift(hits)
        return (
            f"DCG {self._terms(found, credits.slot[rows])} = {self.dcg(hits)[0]:.4f}; "
            f"ideal {self._terms(ideal, place[best])} = {self.ideal(hits)[0]:.4f}"
            + ("" if shift is None else f"; all gains over 2^{shift[0]:.0f}")
        )

    def _terms(self, worths: Floats, slot: Ints) -> str:
        pairs = zip(worths.tolist(), slot.tolist(), strict=True)
        terms = [f"{worth:g}/log2({place + 1})" for worth, place in pairs]
        shown = terms[:_SHOWN] + ["..."] * (len(terms) > _SHOWN)
        return " + ".join(shown) or "0"

    def _worth(self, hits: Hits, query: Ints, grade: Floats) -> Floats:
        if self.gain == "linear":
            return grade
        if (shift := self._shift(hits)) is None:
            return np.exp2(grade) - 1
        return np.exp2(grade - shift[query]) - np.exp2(-shift[query])

    def _shift(self, hits: Hits) -> Floats | None:
        """The power of two by which a query's gains are made smaller, if any must be.

        DCG and ideal shrink alike, so that their ratio stays what it is.
        """
        if self.gain == "linear" or hits.gold_grade.max(initial=0) <= _HIGHEST:
            return None
        best = np.zeros(hits.size)
        np.maximum.at(best, hits.gold_query, hits.gold_grade)
        return np.where(best > _HIGHEST, np.floor(best), 0.0)


class NDCGAny(CutoffMetric):
    """The nDCG of REMem and LongMemEval, kept for comparison with their figures.

    Every matching position counts, repeated items too; rank 2 is not discounted; the
    ideal only reorders the retrieved list. So it is not comparable between lists of
    different depth. 0 where nothing matches; undefined only without any gold.
    """

    name: ClassVar[str] = "ndcg_any"
    formula: ClassVar[str] = "sum of 1 / log2(max(rank, 2)), over that of matches first"

    def score(self, hits: Hits) -> Floats:
        """DCG of the matched positions over that of as many on top."""
        found, ideal = self.dcg(hits), self.ideal(hits)
        share = np.divide(found, ideal, out=np.zeros(hits.size), where=ideal > 0)
        return np.where(hits.gold_count > 0, share, np.nan)

    def dcg(self, hits: Hits) -> Floats:
        """The discounted gain of the matched positions."""
        return self._dcg(hits, *hits.positions())

    def ideal(self, hits: Hits) -> Floats:
        """The discounted gain of as many positions on top."""
        query, _ = hits.positions()
        return self._dcg(hits, query, place_by(query, hits.size))

    def _dcg(self, hits: Hits, query: Ints, rank: Ints) -> Floats:
        rows = self.within(hits, query, rank)
        return sum_by(query[rows], 1 / np.log2(np.maximum(rank[rows], 2)), hits.size)


class ContextPrecision(BinaryMetric):
    """Whether matching contexts stand before the others: precision at each, averaged.

    Averages over the matched positions that were retrieved, not over all gold, so it
    says nothing about what is missing. 0 where gold exists and nothing matches.
    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "context_precision"
    formula: ClassVar[str] = "mean of j / rank over matched positions in top k"

    def score(self, hits: Hits) -> Floats:
        """Precision at the matched positions, averaged over them."""
        query, rank = hits.positions(self.threshold)
        rows = self.within(hits, query, rank)
        query, rank = query[rows], rank[rows]
        matched = count_by(query, hits.size)
        total = sum_by(query, place_by(query, hits.size) / rank, hits.size)
        mean = np.divide(total, matched, out=np.zeros(hits.size), where=matched > 0)
        return np.where(hits.credits(self.threshold).relevant > 0, mean, np.nan)
