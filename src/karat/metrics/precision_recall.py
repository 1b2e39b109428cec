"""Metrics that ask which gold items were found, and how much room was wasted."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Floats, Ints, count_by, defined, ratio, sum_by
from karat.data.hits import Hits, is_relevant
from karat.data.spelling import Cutoff
from karat.metrics import BinaryMetric


def found_in_top(hits: Hits, k: Cutoff, threshold: float | None) -> tuple[Ints, Ints]:
    """How many gold items of each query the top k holds, and how many there are."""
    return hits.found_within(k, threshold), hits.credits(threshold).relevant


class Hit(BinaryMetric):
    """Whether any gold item is in the top k: 1 or 0.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "hit"
    formula: ClassVar[str] = "1 if found in top k >= 1 else 0"
    binary: ClassVar[bool] = True

    def score(self, hits: Hits) -> Floats:
        items, relevant = found_in_top(hits, self.k, self.threshold)
        return defined((items > 0).astype(float), relevant)

    def workings(self, hits: Hits) -> str:
        return f"{found_in_top(hits, self.k, self.threshold)[0][0]} found in the top k"


class HitCount(BinaryMetric):
    """How many gold items the top k holds.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "hits"
    formula: ClassVar[str] = "found in top k"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def score(self, hits: Hits) -> Floats:
        items, relevant = found_in_top(hits, self.k, self.threshold)
        return defined(items.astype(float), relevant)


class Containment(Hit):
    """Whether an acceptable answer lies in the text of the top k: 1 or 0.

    Undefined for a query without answers.
    """

    name: ClassVar[str] = "containment"
    formula: ClassVar[str] = "1 if the top k holds an answer else 0"
    matcher: ClassVar[str | None] = "contains"


class Recall(BinaryMetric):
    """The share of the gold items that the top k holds.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "recall"
    formula: ClassVar[str] = "found in top k / R"

    def score(self, hits: Hits) -> Floats:
        count = hits.found_within(self.k, self.threshold)
        return count / hits.credits(self.threshold).whole

    def workings(self, hits: Hits) -> str:
        items, relevant = found_in_top(hits, self.k, self.threshold)
        return f"{items[0]} found / {relevant[0]} relevant"


@dataclass(frozen=True)
class ContextRecall(Recall):
    """The share of the reference answer's claims that the top k supports.

    A judge decides which document supports which claim. A claim that is vital for an
    answer has grade 1 and one that is welcome 0.5: `threshold=1` counts the vital ones
    alone, `weights=grade` lets each count by its grade. Undefined for a query whose
    reference makes no claim.

    Attributes:
        weights: `equal`, or by `grade`.
    """

    name: ClassVar[str] = "context_recall"
    formula: ClassVar[str] = "claims supported by the top k / claims"
    matcher: ClassVar[str | None] = "claims"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"weights": ("equal", "grade")}

    weights: str = "equal"

    def score(self, hits: Hits) -> Floats:
        if self.weights == "equal":
            return super().score(hits)
        return ratio(*self._sums(hits))

    def workings(self, hits: Hits) -> str:
        if self.weights == "equal":
            return super().workings(hits)
        gained, gold = self._sums(hits)
        return f"{gained[0]:g} found / {gold[0]:g} in the gold, by grades"

    def _sums(self, hits: Hits) -> tuple[Floats, Floats]:
        credits = hits.credits(self.threshold)
        rows = self.within(hits, credits.query, credits.rank)
        gold = is_relevant(hits.gold_grade, self.threshold)
        return (
            sum_by(credits.query[rows], credits.grade[rows], hits.size),
            sum_by(hits.gold_query[gold], hits.gold_grade[gold], hits.size),
        )


class Contradiction(BinaryMetric):
    """The share of the reference answer's claims that the top k contradicts.

    A judge decides which document contradicts which claim, as one with another number
    does. Smaller is better. A claim may be supported as well, by another document.
    Undefined for a query whose reference makes no claim.
    """

    name: ClassVar[str] = "contradiction"
    formula: ClassVar[str] = "claims contradicted by the top k / claims"
    higher_is_better: ClassVar[bool | None] = False
    matcher: ClassVar[str | None] = "claims"
    reads_judged: ClassVar[bool] = True

    def score(self, hits: Hits) -> Floats:
        # Labels of ids may reject more documents than there are relevant ones.
        share = self._contradicted(hits) / hits.credits(self.threshold).whole
        return np.minimum(share, 1.0)

    def workings(self, hits: Hits) -> str:
        relevant = hits.credits(self.threshold).relevant[0]
        return f"{self._contradicted(hits)[0]} contradicted / {relevant} relevant"

    def _contradicted(self, hits: Hits) -> Ints:
        least = self.threshold or 0.0
        rows = hits.first & (hits.grade < 0) & (hits.grade <= -least)
        query = hits.query[rows]
        return count_by(query[self.within(hits, query, hits.rank[rows])], hits.size)


class RecallAll(BinaryMetric):
    """Whether the top k holds every gold item: 1 or 0.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "recall_all"
    formula: ClassVar[str] = "1 if found in top k = R else 0"
    binary: ClassVar[bool] = True

    def score(self, hits: Hits) -> Floats:
        items, relevant = found_in_top(hits, self.k, self.threshold)
        return defined((items == relevant).astype(float), relevant)

    def workings(self, hits: Hits) -> str:
        items, relevant = found_in_top(hits, self.k, self.threshold)
        return f"{items[0]} found of {relevant[0]} relevant"


class RecallCapped(BinaryMetric):
    """The share of the gold items that could fit into the top k and are there.

    Never punishes a query for having more gold items than k. Undefined for a query
    without relevant gold.
    """

    name: ClassVar[str] = "recall_capped"
    formula: ClassVar[str] = "found in top k / min(R, k)"

    def score(self, hits: Hits) -> Floats:
        items, relevant = found_in_top(hits, self.k, self.threshold)
        room = hits.cutoff(self.k, np.arange(hits.size))
        if room is None:
            return ratio(items, relevant)
        # One document may hold several items, so more than k may be found in the top k.
        return ratio(np.minimum(items, room), np.minimum(relevant, room))


@dataclass(frozen=True)
class Precision(BinaryMetric):
    """The share of the top k that matches gold.

    Divides by k even when fewer were retrieved; `of=retrieved` divides by what is
    there. Without k, all retrieved documents are read. Undefined for a query without
    relevant gold in which nothing is judged either.

    Attributes:
        of: what the matched positions are divided by, `k` or `retrieved`.
    """

    name: ClassVar[str] = "precision"
    formula: ClassVar[str] = "matched positions in top k / k"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"of": ("k", "retrieved")}

    of: str = "k"

    def score(self, hits: Hits) -> Floats:
        matched, room = self._parts(hits)
        if not isinstance(room, int):
            # Where there is no room nothing matches: 0, whatever it is divided by.
            room = np.maximum(room, 1)
        return defined(matched / room, hits.gold_count)

    def workings(self, hits: Hits) -> str:
        matched, room = self._parts(hits)
        return f"{matched[0]} positions match / {np.max(room)}"

    def _parts(self, hits: Hits) -> tuple[Ints, Ints | int]:
        matched = hits.matched_within(self.k, self.threshold)
        room = hits.cutoff(self.k, slice(None))
        if room is None:
            return matched, hits.retrieved
        if self.of == "retrieved":
            return matched, np.minimum(room, hits.retrieved)
        return matched, room


class F1(BinaryMetric):
    """The balance of precision and recall in the top k: their harmonic mean.

    Undefined for a query without relevant gold.
    """

    name: ClassVar[str] = "f1"
    formula: ClassVar[str] = "2 P R / (P + R)"

    def score(self, hits: Hits) -> Floats:
        return harmonic_mean(hits, self.k, self.threshold)

    def workings(self, hits: Hits) -> str:
        precision = Precision(self.k, self.threshold).score(hits)[0]
        recall = Recall(self.k, self.threshold).score(hits)[0]
        return f"2 x {precision:.4f} x {recall:.4f} / ({precision:.4f} + {recall:.4f})"


def harmonic_mean(
    hits: Hits, k: Cutoff, threshold: float | None, beta: float = 1.0
) -> Floats:
    """Precision and recall of the top k, weighed; 0 where nothing was found."""
    precision = Precision(k, threshold).score(hits)
    recall = Recall(k, threshold).score(hits)
    part, whole = (beta + 1) * precision * recall, beta * precision + recall
    mean = np.divide(part, whole, out=np.zeros(hits.size), where=whole > 0)
    return np.where(np.isnan(recall), np.nan, mean)
