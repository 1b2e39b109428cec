"""Metrics that ask how high the first gold item stands."""

from typing import ClassVar

from karat.data.arrays import Floats
from karat.data.hits import Hits
from karat.metrics.metric import BinaryMetric

__all__ = ["ReciprocalRank"]


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
