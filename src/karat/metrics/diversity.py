"""Metrics of rankings that should serve every subtopic of a query.

They need gold that says which subtopics a document serves, as the qrels of
TREC's diversity tracks do, and agree with its program ndeval, but know no longest
cutoff. A subtopic counts when some document serves it. All are undefined for a query
without such a subtopic.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from karat.data.arrays import Floats, Ints, count_by, place_by, ratio, sum_by
from karat.data.hits import Hits, is_relevant
from karat.errors import DataError
from karat.metrics import BinaryMetric, CutoffMetric

# As deep as the best imaginable ranking is followed where no cutoff ends it.
_DEEPEST = 1000
# Sums of the same gains, added up in another order, are equal.
_DECIMALS = 12


_SERVED = "sum over subtopics served of (1 - alpha)^(times before)"


class Served(NamedTuple):
    """Subtopics that documents of the top k serve, a row for each time that one does.

    How many documents above it and in all of the gold serve the same subtopic; and how
    many subtopics each query has.
    """

    query: Ints
    rank: Ints
    before: Ints
    documents: Ints
    topics: Ints


def served(metric: CutoffMetric, hits: Hits) -> Served:
    """Which subtopics were found where, and how often before."""
    if hits.subtopics is None:
        raise DataError(
            f"{metric.name} needs gold that names the subtopics documents serve",
            hint="qrels of TREC's diversity tracks do: query subtopic document grade; "
            'in JSON, {"id": "d7", "subtopics": {"price": 1, "safety": 0}}',
        )
    rows = is_relevant(hits.subtopics.grade, getattr(metric, "threshold", None))
    item, topic = hits.subtopics.item[rows], hits.subtopics.topic[rows]
    first: Ints = np.zeros(len(hits.gold_grade), np.int64)
    if hits.item is not None:
        first[hits.item[::-1]] = hits.rank[::-1]
    wide = int(topic.max(initial=0)) + 1
    subtopic, rank = hits.gold_query[item] * wide + topic, first[item]
    documents = count_by(subtopic, hits.size * wide)
    topics = (documents.reshape(-1, wide) > 0).sum(axis=1)
    order = np.lexsort((rank, subtopic))
    order = order[rank[order] > 0]
    subtopic, rank = subtopic[order], rank[order]
    before = place_by(subtopic, hits.size * wide) - 1
    top = metric.within(hits, subtopic // wide, rank)
    subtopic = subtopic[top]
    return Served(subtopic // wide, rank[top], before[top], documents[subtopic], topics)


@dataclass(frozen=True)
class _Novelty(CutoffMetric):
    """What documents add that those before them did not serve already.

    Attributes:
        alpha: what a subtopic loses each time that it was served already.
        threshold: the smallest grade that counts as relevant; None: any positive one.
    """

    limits: ClassVar[dict[str, str]] = {"alpha": "[0, 1]"}

    alpha: float = 0.5
    threshold: float | None = None

    @abstractmethod
    def discount(self, rank: Ints) -> Floats:
        """What is left of a gain at each rank."""

    def gained(self, hits: Hits) -> tuple[Floats, Ints]:
        """The discounted gain of each query, and the number of its subtopics."""
        query, rank, before, _, topics = served(self, hits)
        fresh = (1 - self.alpha) ** before.astype(np.float64)
        return sum_by(query, fresh * self.discount(rank), hits.size), topics

    def score(self, hits: Hits) -> Floats:
        gain, topics = self.gained(hits)
        places = np.arange(_DEEPEST) + 1
        best = (1 - self.alpha) ** (places - 1.0) * self.discount(places)
        room = hits.cutoff(self.k, slice(None))
        end = np.minimum(_DEEPEST if room is None else room, _DEEPEST)
        return ratio(gain, topics * np.cumsum(best)[end - 1])

    def ideal(self, hits: Hits) -> Floats:
        """The gain of the best document at each rank; of equals, by the largest id."""
        ideal = np.zeros(hits.size)
        if (rows := hits.subtopics) is None:
            return ideal
        relevant = is_relevant(rows.grade, self.threshold)
        item, topic = rows.item[relevant], rows.topic[relevant]
        query = hits.gold_query[item]
        ends = np.searchsorted(query, np.arange(hits.size + 1)).tolist()
        room = hits.cutoff(self.k, np.arange(hits.size))
        for number in np.unique(query).tolist():
            own = slice(ends[number], ends[number + 1])
            # Documents in the order of their rows.
            _, start, which = np.unique(
                item[own], return_index=True, return_inverse=True
            )
            serves = np.zeros((len(start), int(topic[own].max()) + 1))
            serves[start.argsort().argsort()[which], topic[own]] = 1
            last = room if room is None or isinstance(room, int) else int(room[number])
            gains = _greedy(serves, 1 - self.alpha, last)
            ideal[number] = gains @ self.discount(np.arange(1, len(gains) + 1))
        return ideal


class _OverIdeal(_Novelty):
    """Compared with the best ranking of the documents there are."""

    def score(self, hits: Hits) -> Floats:
        return ratio(self.gained(hits)[0], self.ideal(hits))


def _greedy(serves: Floats, left: float, last: int | None) -> Floats:
    """The gain at each rank when the most useful document is always next."""
    worth = np.ones(serves.shape[1])
    gains: list[float] = []
    for _ in range(len(serves) if last is None else min(last, len(serves))):
        useful = np.round(serves @ worth, _DECIMALS)
        best = int(useful.argmax())
        gains.append(float(serves[best] @ worth))
        worth[serves[best] > 0] *= left
        serves[best] = 0
    return np.array(gains)


@dataclass(frozen=True)
class AlphaDCG(_Novelty):
    """What a ranking gains that serves many subtopics early, each again for less.

    Relative to documents that all serve every subtopic. Undefined for a query without
    subtopics.
    """

    name: ClassVar[str] = "alpha_dcg"
    formula: ClassVar[str] = f"{_SERVED} / log2(rank + 1), over the best imaginable"

    def discount(self, rank: Ints) -> Floats:
        return 1 / np.log2(rank + 1)


class AlphaNDCG(_OverIdeal, AlphaDCG):
    """How close the ranking comes to the best one that serves many subtopics early.

    The best ranking is found step by step: the document that adds the most is next.
    Undefined for a query without subtopics.
    """

    name: ClassVar[str] = "alpha_ndcg"
    formula: ClassVar[str] = f"{_SERVED} / log2(rank + 1), over the ideal order's"


@dataclass(frozen=True)
class IntentERR(_Novelty):
    """How early a reader is satisfied who wants one of the subtopics, any of them.

    Relative to documents that all serve every subtopic. Undefined for a query without
    subtopics.

    Attributes:
        alpha: the chance that a document which serves a subtopic satisfies its reader.
    """

    name: ClassVar[str] = "err_ia"
    formula: ClassVar[str] = f"{_SERVED} / rank, over the best imaginable"

    def discount(self, rank: Ints) -> Floats:
        return 1 / rank


class NormalIntentERR(_OverIdeal, IntentERR):
    """Intent-aware expected reciprocal rank, over that of the best ranking there is.

    Undefined for a query without subtopics.
    """

    name: ClassVar[str] = "nerr_ia"
    formula: ClassVar[str] = f"{_SERVED} / rank, over the ideal order's"


@dataclass(frozen=True)
class NoveltyRBP(_Novelty):
    """What a patient reader gains from subtopics, each again for less, rank by rank.

    Relative to documents that all serve every subtopic. Undefined for a query without
    subtopics.

    Attributes:
        beta: the chance that the reader goes on to the next document.
    """

    name: ClassVar[str] = "nrbp"
    formula: ClassVar[str] = (
        f"(1 - (1 - alpha) beta) / subtopics * {_SERVED} beta^(rank - 1)"
    )

    limits: ClassVar[dict[str, str]] = {"alpha": "[0, 1]", "beta": "(0, 1)"}

    beta: float = 0.5

    def discount(self, rank: Ints) -> Floats:
        return (self.beta ** (rank - 1.0)).astype(np.float64)

    def score(self, hits: Hits) -> Floats:
        gain, topics = self.gained(hits)
        return ratio(gain * (1 - (1 - self.alpha) * self.beta), topics)


class NormalNoveltyRBP(_OverIdeal, NoveltyRBP):
    """Novelty- and rank-biased precision, over that of the best ranking there is.

    Undefined for a query without subtopics.
    """

    name: ClassVar[str] = "nnrbp"
    formula: ClassVar[str] = f"{_SERVED} beta^(rank - 1), over the ideal order's"


class IntentAP(BinaryMetric):
    """Average precision for each subtopic, averaged over the subtopics of the query.

    Undefined for a query without subtopics.
    """

    name: ClassVar[str] = "ap_ia"
    formula: ClassVar[str] = "mean over subtopics of the average precision for each"

    def score(self, hits: Hits) -> Floats:
        query, rank, before, documents, topics = served(self, hits)
        paid = (before + 1) / rank / documents
        return ratio(sum_by(query, paid, hits.size), topics)


class IntentPrecision(BinaryMetric):
    """Precision for each subtopic, averaged over the subtopics of the query.

    Undefined for a query without subtopics.
    """

    name: ClassVar[str] = "p_ia"
    formula: ClassVar[str] = (
        "subtopics served in top k, each time counted / subtopics / k"
    )

    def score(self, hits: Hits) -> Floats:
        rows = served(self, hits)
        room = hits.cutoff(self.k, slice(None))
        read = np.maximum(hits.retrieved, 1) if room is None else room
        return ratio(count_by(rows.query, hits.size) / read, rows.topics)


class SubtopicRecall(BinaryMetric):
    """The share of the subtopics of the query that the top k serves.

    Undefined for a query without subtopics.
    """

    name: ClassVar[str] = "st_recall"
    formula: ClassVar[str] = "subtopics served in top k / subtopics"

    def score(self, hits: Hits) -> Floats:
        rows = served(self, hits)
        new = rows.query[rows.before == 0]
        return ratio(count_by(new, hits.size), rows.topics)
