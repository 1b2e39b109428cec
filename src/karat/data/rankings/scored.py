"""Runs given as scores: the rank of a document is 1 + the number of better scores."""

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from karat.data.arrays import Ints, as_floats
from karat.data.policies import Policies
from karat.data.rankings.held import HeldRun, located
from karat.data.rankings.ranked import RankedRun
from karat.data.rankings.standing import stand
from karat.data.runs import Document, Labels, Located, Notice
from karat.errors import DataError

__all__ = ["ScoredRun"]

Scores = Mapping[str, float]

# From so many scores on, laying them side by side in arrays pays.
_MANY = 20_000
_INEXACT = 2.0**53


class ScoredRun(HeldRun[Scores]):
    """A run given as `{query: {document: score}}`; the scores decide the order."""

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents; a rank is 1 + the number of better scores."""
        if policies.ties != "trec" or policies.precision != "double":
            return self._as_lists(policies).locate(
                labels, judged=judged, policies=policies
            )
        try:
            rows, sizes = self._asked(labels, {})
            find = _one_by_one if sizes.sum() < _MANY else _all_at_once
            found, places, grades = find(rows, labels, judged=judged)
        except (AttributeError, OverflowError, TypeError, ValueError, struct.error):
            # Optimistic above, precise here: say which score of which query is wrong.
            self._check()
            raise
        return located(found, places, grades, sizes=sizes, rankings=self._rankings)

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents, best score first."""
        self._check()
        for query, ranking in self._rankings.items():
            order = _in_order(ranking, policies)
            yield query, [Document(id=d, score=float(ranking[d])) for d in order]

    def notices(self, labels: Labels, policies: Policies) -> tuple[Notice, ...]:
        """Tied scores, numbers among ids and queries without labels."""
        tied = {
            query: extra
            for query, ranking in self._rankings.items()
            if (extra := len(ranking) - len(set(ranking.values())))
        }
        return self._told(labels, policies, ties=tied)

    def _as_lists(self, policies: Policies) -> RankedRun:
        self._check()
        return RankedRun(
            {q: _in_order(ranking, policies) for q, ranking in self._rankings.items()},
            self.name,
        )

    def _check(self) -> None:
        for query, ranking in self._rankings.items():
            if not isinstance(ranking, Mapping):
                raise DataError(
                    "must be a mapping of document to score like the others, "
                    f"got {type(ranking).__name__}",
                    query=query,
                )
            _check_scores(query, ranking)


def _one_by_one(
    rows: Sequence[Scores], labels: Labels, *, judged: bool
) -> tuple[list[int], list[int] | Ints, list[float]]:
    """Rows of each query, their places and grades: quick to begin, for short runs."""
    found: list[int] = []
    places: list[int] = []
    grades: list[float] = []
    checksum = 0.0
    for ranking, wanted in zip(rows, labels.values(), strict=True):
        before = len(places)
        ordered: list[float] | None = None
        for document, grade in wanted.items():
            if (judged or grade > 0) and document in ranking:
                if ordered is None:
                    ordered = [*ranking.values()]
                    # Most come best first: reversed, the sort has only to look.
                    ordered.reverse()
                    ordered.sort()
                    checksum = sum(ordered, checksum)
                score = ranking[document]
                end = bisect_right(ordered, score)
                if ordered[end - 2] == score:
                    end -= _tied_before(ranking, document, score)
                places.append(len(ordered) - end)
                grades.append(grade)
        if ordered is None:
            checksum = sum(ranking.values(), checksum)
        found.append(len(places) - before)
    # A score that is not a number makes the sum none either.
    if not isfinite(checksum):
        raise ValueError
    if abs(checksum) >= _INEXACT:
        # Whole numbers this large differ where floats are equal, and scores are floats.
        return _all_at_once(rows, labels, judged=judged)
    return found, places, grades


def _all_at_once(
    rows: Sequence[Scores], labels: Labels, *, judged: bool
) -> tuple[list[int], Ints, list[float]]:
    """The same for long runs: no step per document is taken in Python."""
    found: list[int] = []
    documents: list[str] = []
    scores: list[float] = []
    grades: list[float] = []
    for ranking, wanted in zip(rows, labels.values(), strict=True):
        before = len(grades)
        for document, grade in wanted.items():
            if (judged or grade > 0) and document in ranking:
                documents.append(document)
                scores.append(ranking[document])
                grades.append(grade)
        found.append(len(grades) - before)
    query = np.arange(len(rows)).repeat(found)
    better, tied = stand(rows, query, as_floats(scores))
    seen, ranking = -1, dict[str, float]()
    for hit in np.flatnonzero(tied).tolist():
        if seen != query[hit]:
            seen = query[hit]
            # Scores of any kind are equal here when they are as floats.
            ranking = {d: float(score) for d, score in rows[seen].items()}
        document = documents[hit]
        better[hit] += _tied_before(ranking, document, ranking[document])
    return found, better, grades


def _tied_before(ranking: Scores, document: str, score: float) -> int:
    """How many documents of the same score come first: those with a larger id."""
    return sum(1 for other, s in ranking.items() if s == score and other > document)


def _in_order(ranking: Mapping[str, float], policies: Policies) -> list[str]:
    documents = [*ranking]
    scores = np.fromiter(ranking.values(), np.float64, len(documents))
    if policies.precision == "single":
        scores = scores.astype(np.float32).astype(np.float64)
    if policies.ties == "input":
        return [documents[i] for i in np.argsort(-scores, kind="stable")]
    pairs = sorted(zip(scores.tolist(), documents, strict=True), reverse=True)
    return [document for _, document in pairs]


def _check_scores(query: str, ranking: Mapping[str, Any]) -> None:
    for document, score in ranking.items():
        try:
            finite = isfinite(score)
        except (OverflowError, TypeError):
            finite = False
        if isinstance(score, str) or not finite:
            raise DataError(
                f"the score of document {document!r:.60} must be a finite number, "
                f"got {score!r:.60}",
                query=query,
            )
