"""Metrics that pay each gold item by the rank at which it was found."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints, count_by, place_by, sum_by
from karat.data.hits import Hits
from karat.metrics import BinaryMetric, CutoffMetric


class ReciprocalRank(BinaryMetric):
    """How high the first relevant document stands: 1 / its rank, 0 when there is none.

    Averaged over queries this is MRR. Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "rr"
    formula: ClassVar[str] = "1 / first relevant rank (0 if none in top k)"

    def score(self, hits: Hits) -> Floats:
        credits = hits.credits(self.threshold)
        rows = credits.order == 1
        if (cutoff := hits.cutoff(self.k, credits.query)) is not None:
            rows &= credits.rank <= cutoff
        # Nothing found is 0, or undefined where the whole is.
        score = 0 / credits.whole
        score[credits.query[rows]] = 1 / credits.rank[rows]
        return score

    def workings(self, hits: Hits) -> str:
        ranks = hits.credits(self.threshold).rank
        return f"1 / {ranks[0]}" if len(ranks) else "nothing relevant was found"


class GranularRR(BinaryMetric):
    """How high relevant documents stand: the mean of 1 / rank of all that were found.

    LlamaIndex's granular MRR: what was not found does not count. 0 when nothing was.
    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "granular_rr"
    formula: ClassVar[str] = "mean of 1 / rank over relevant documents in top k"

    def score(self, hits: Hits) -> Floats:
        query, rank = self.positions_within(hits)
        mean = sum_by(query, 1 / rank, hits.size)
        mean /= np.maximum(count_by(query, hits.size), 1)
        return np.where(hits.credits(self.threshold).relevant > 0, mean, np.nan)


@dataclass(frozen=True)
class AveragePrecision(BinaryMetric):
    """Precision at each found gold item, averaged over all gold items.

    Items never found count as 0. `of=capped` averages over as many as fit into the top
    k, so that 1 can be reached where there are more, as sentence-transformers' `map@k`
    does. Undefined for a query without relevant gold.

    Attributes:
        of: what the sum is divided by, `relevant` (R) or `capped` (min(k, R)).
    """

    name: ClassVar[str] = "ap"
    formula: ClassVar[str] = "sum over found items of (j / slot of the j-th) / R"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"of": ("relevant", "capped")}

    of: str = "relevant"

    def score(self, hits: Hits) -> Floats:
        credits = hits.credits(self.threshold)
        rows = self.within(hits, credits.query, credits.slot)
        precision = credits.order[rows] / credits.slot[rows]
        total = sum_by(credits.query[rows], precision, hits.size)
        capped = self.of == "capped"
        return total / (self._capped(hits) if capped else credits.whole)

    def workings(self, hits: Hits) -> str:
        _, slots, _ = self.paid_within(hits)
        terms = " + ".join(f"{n}/{slot}" for n, slot in enumerate(slots, 1)) or "0"
        if self.of == "capped":
            return f"({terms}) / {self._capped(hits)[0]:.0f} that fit"
        return f"({terms}) / {hits.credits(self.threshold).relevant[0]} relevant"

    def _capped(self, hits: Hits) -> Floats:
        whole = hits.credits(self.threshold).whole
        room = hits.cutoff(self.k, slice(None))
        return whole if room is None else np.minimum(whole, room)


class GeometricAP(AveragePrecision):
    """Average precision, whose mean over queries is geometric: bad queries weigh more.

    This is GMAP. A query counts for at least 0.00001 in the mean, as in trec_eval.
    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "gm_ap"
    formula: ClassVar[str] = "exp of the mean over queries of ln(max(ap, 0.00001))"
    average: ClassVar[str] = "geometric"


class LogOddsAP(BinaryMetric):
    """Average precision as the logarithm of odds, smoothed: trec_eval's yaap.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "yaap"
    formula: ClassVar[str] = "ln((1 + ap R) / (1 + R - ap R))"
    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def score(self, hits: Hits) -> Floats:
        relevant = hits.credits(self.threshold).relevant
        total = AveragePrecision(self.k, self.threshold).score(hits) * relevant
        return np.log((1 + total) / (1 + relevant - total))


class Accuracy(BinaryMetric):
    """How often a relevant document stands before another one, among the retrieved.

    1 where nothing else was retrieved. Undefined for a query that found nothing
    relevant: it says nothing about what is missing.
    """

    name: ClassVar[str] = "accuracy"
    formula: ClassVar[str] = "1 - pairs with another before a relevant one / all pairs"

    def score(self, hits: Hits) -> Floats:
        query, rank = self.positions_within(hits)
        matched = count_by(query, hits.size)
        room = hits.cutoff(self.k, slice(None))
        read = hits.retrieved if room is None else np.minimum(hits.retrieved, room)
        others = read - matched
        before = sum_by(query, (rank - place_by(query, hits.size)) * 1.0, hits.size)
        wrong = before / np.maximum(others * matched, 1)
        return np.where(matched > 0, 1 - wrong, np.nan)


class NDCGAny(CutoffMetric):
    """The nDCG of REMem and LongMemEval, kept for comparison with their figures.

    Every matching position counts, repeated items too; rank 2 is not discounted; the
    ideal only reorders the retrieved list. So it is not comparable between lists of
    different depth. 0 where nothing matches; undefined only without any gold.

    Example:
        >>> import karat
        >>> run, gold = {"q": ["a", "b"]}, {"q": ["b"]}
        >>> karat.evaluate(run, gold=gold, metrics="ndcg_any@5").means
        {'ndcg_any@5': 1.0}
    """

    name: ClassVar[str] = "ndcg_any"
    formula: ClassVar[str] = "sum of 1 / log2(max(rank, 2)), over that of matches first"

    def score(self, hits: Hits) -> Floats:
        dcg, ideal = self.dcg(hits), self.ideal(hits)
        share = np.divide(dcg, ideal, out=np.zeros(hits.size), where=ideal > 0)
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
        query, rank = self.positions_within(hits)
        matched = count_by(query, hits.size)
        total = sum_by(query, place_by(query, hits.size) / rank, hits.size)
        mean = np.divide(total, matched, out=np.zeros(hits.size), where=matched > 0)
        return np.where(hits.credits(self.threshold).relevant > 0, mean, np.nan)
