"""Metrics that tell documents judged non-relevant from those nobody judged.

As in trec_eval, a negative grade marks a document that was pooled but not judged; only
`judged` takes any label for a judgement, as ir_measures does.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Bools, Floats, Ints, count_by, ratio, sum_by
from karat.data.hits import Hits, is_relevant
from karat.data.tables import counted
from karat.metrics import CutoffMetric, Metric, add_up

# The weight trec_eval gives to a judgement that was never made.
_EPSILON = 0.00001


def is_nonrelevant(grade: Floats, threshold: float | None) -> Bools:
    """Judged and found not relevant."""
    return (grade >= 0) & ~is_relevant(grade, threshold)


def _count_above(hits: Hits, rows: Bools, query: Ints, rank: Ints) -> Ints:
    """How many of the given rows stand above each (query, rank)."""
    stride = int(hits.rank.max(initial=0)) + 1
    rows = rows & hits.first
    place = hits.query[rows] * stride + hits.rank[rows]
    start = query * stride
    return np.searchsorted(place, start + rank) - np.searchsorted(place, start)


def _labelled(metric: CutoffMetric, hits: Hits, least: float) -> tuple[Ints, Ints]:
    """How many of the top k have a label of at least this, and how many there are."""
    query, rank = hits.positions(least)
    rows = metric.within(hits, query, rank)
    room = hits.cutoff(metric.k, np.arange(hits.size))
    shown = hits.retrieved if room is None else np.minimum(hits.retrieved, room)
    return count_by(query[rows], hits.size), shown


@dataclass(frozen=True)
class _MeanOverRelevant(Metric):
    """What each found item is paid, averaged over all relevant ones."""

    reads_judged: ClassVar[bool] = True

    threshold: float | None = None

    @abstractmethod
    def paid(self, hits: Hits) -> Floats:
        """What each found item is paid, row by row of the credits."""

    def score(self, hits: Hits) -> Floats:
        credits = hits.credits(self.threshold)
        return ratio(
            sum_by(credits.query, self.paid(hits), hits.size), credits.relevant
        )

    def workings(self, hits: Hits) -> str:
        relevant = hits.credits(self.threshold).relevant[0]
        return f"({add_up(self.paid(hits))}) / {relevant} relevant"


class BPref(_MeanOverRelevant):
    """How often a relevant document stands before the judged non-relevant ones.

    Documents nobody judged are passed over, so missing judgements cost nothing. Only
    the first R judged non-relevant documents count. Undefined for a query without
    relevant gold.
    """

    name: ClassVar[str] = "bpref"
    formula: ClassVar[str] = "mean over R of 1 - min(n above, R) / min(N, R)"

    def paid(self, hits: Hits) -> Floats:
        credits = hits.credits(self.threshold)
        query, relevant = credits.query, credits.relevant
        against = is_nonrelevant(hits.grade, self.threshold)
        above = _count_above(hits, against, query, credits.rank)
        rejected = is_nonrelevant(hits.gold_grade, self.threshold)
        number = count_by(hits.gold_query[rejected], hits.size)
        # With nothing above nothing is lost, also where nothing was rejected at all.
        most = np.maximum(np.minimum(number, relevant), 1)[query]
        preferences: Floats = 1.0 - np.minimum(above, relevant[query]) / most
        return preferences


class GeometricBPref(BPref):
    """Bpref, whose mean over queries is geometric: bad queries weigh more.

    A query counts for at least 0.00001 in the mean, as in trec_eval. Undefined for a
    query without relevant gold.
    """

    name: ClassVar[str] = "gm_bpref"
    formula: ClassVar[str] = "exp of the mean over queries of ln(max(bpref, 0.00001))"
    average: ClassVar[str] = "geometric"


class InferredAP(_MeanOverRelevant):
    """Average precision when only a sample of the pool was judged.

    Pooled documents without judgement (negative grades) are taken to be relevant as
    often as the judged ones; documents outside the pool as not relevant. Undefined for
    a query without relevant gold.
    """

    name: ClassVar[str] = "infap"
    formula: ClassVar[str] = "mean over R of the precision expected at each found item"

    def paid(self, hits: Hits) -> Floats:
        credits = hits.credits(self.threshold)
        query, slot, before = credits.query, credits.slot, credits.order - 1
        against = is_nonrelevant(hits.grade, self.threshold)
        rejected = _count_above(hits, against, query, credits.rank)
        unsure = _count_above(hits, hits.grade < 0, query, credits.rank)
        above = np.maximum(slot - 1, 1)
        # One document may hold several items, but never more than fill the ranks above.
        pooled = np.minimum(before + rejected + unsure, above) / above
        share = (before + _EPSILON) / (before + rejected + 2 * _EPSILON)
        expected = 1 / slot + (above / slot) * pooled * share
        return np.where(slot == 1, 1.0, expected)


class Judged(CutoffMetric):
    """The share of the documents in the top k that carry a label, whatever it says.

    Low values say that the other scores rest on guesses. Divides by what was retrieved
    where that is less than k. Undefined where nothing was retrieved or nothing judged.
    """

    name: ClassVar[str] = "judged"
    formula: ClassVar[str] = "labelled documents in top k / documents in top k"
    reads_judged: ClassVar[bool] = True

    def score(self, hits: Hits) -> Floats:
        labelled, shown = _labelled(self, hits, -np.inf)
        return np.where(hits.gold_count > 0, ratio(labelled, shown), np.nan)

    def workings(self, hits: Hits) -> str:
        labelled, shown = _labelled(self, hits, -np.inf)
        return f"{labelled[0]} labelled / {counted(int(shown[0]), 'document')}"


class UnjudgedShare(CutoffMetric):
    """The share of the top k that was retrieved without a judgement.

    Divides by k even when fewer were retrieved, as trec_eval's `unj` does; without k,
    by what was retrieved. Undefined for a query in which nothing is judged.
    """

    name: ClassVar[str] = "unjudged"
    higher_is_better: ClassVar[bool | None] = False
    formula: ClassVar[str] = "documents in top k without judgement / k"
    reads_judged: ClassVar[bool] = True

    def score(self, hits: Hits) -> Floats:
        return np.where(hits.gold_count > 0, ratio(*self._parts(hits)), np.nan)

    def workings(self, hits: Hits) -> str:
        unknown, room = self._parts(hits)
        return f"{unknown[0]} without judgement / {room[0]}"

    def _parts(self, hits: Hits) -> tuple[Ints, Ints]:
        judged, shown = _labelled(self, hits, 0)
        room = hits.cutoff(self.k, np.arange(hits.size))
        whole = hits.retrieved if room is None else np.broadcast_to(room, hits.size)
        return shown - judged, whole
