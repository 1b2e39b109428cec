"""Runs held in memory as Python objects: scored dictionaries, lists of ids, documents.

Only labelled ids are ever looked up, so most of a ranking is never touched by Python
code; the rest is one sort or one set intersection per query, both in C.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from karat.data.arrays import Ints
from karat.data.identity import as_id
from karat.data.policies import Policies
from karat.data.runs import Document, Labels, Located, Notice, Run, run_notices
from karat.errors import DataError

__all__ = ["DocumentRun", "RankedRun", "ScoredRun"]

# Below this many labels it is cheaper to intersect first and ask for positions later.
_FEW = 8


class ScoredRun(Run):
    """A run given as `{query: {document: score}}`; the scores decide the order."""

    def __init__(
        self, rankings: Mapping[str, Mapping[str, float]], name: str = "run"
    ) -> None:
        self._rankings = rankings
        self.name = name

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        return list(self._rankings)

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        return _sample(self._rankings)

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        return not all(map(documents.isdisjoint, self._rankings.values()))

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents; a rank is 1 + the number of better scores."""
        if policies.ties != "trec" or policies.precision != "double":
            return self._as_lists(policies).locate(
                labels, judged=judged, policies=policies
            )
        try:
            return self._locate(labels, judged=judged)
        except (AttributeError, OverflowError, TypeError):
            # Optimistic above, precise here: say which score of which query is wrong.
            self._check()
            raise

    def _locate(self, labels: Labels, *, judged: bool) -> Located:
        found: list[int] = []
        retrieved: list[int] = []
        places: list[int] = []
        grades: list[float] = []
        checksum = 0.0
        get = self._rankings.get
        for query, wanted in labels.items():
            ranking = get(query)
            if ranking is None:
                found.append(0)
                retrieved.append(-1)
                continue
            size = len(ranking)
            retrieved.append(size)
            before = len(places)
            ordered: list[float] = []
            for document, grade in wanted.items():
                if document not in ranking or not (judged or grade > 0):
                    continue
                if not ordered:
                    ordered = [*ranking.values()]
                    # Most come best first: reversed, the sort has only to look.
                    ordered.reverse()
                    ordered.sort()
                    checksum += sum(ordered)
                score = ranking[document]
                end = bisect_right(ordered, score)
                if ordered[end - 2] == score:
                    end -= _tied_before(ranking, document, score)
                places.append(size - end)
                grades.append(grade)
            found.append(len(places) - before)
            if not ordered:
                checksum += sum(ranking.values())
        if not isfinite(checksum):
            # A score that is not a number makes the sum none either.
            self._check()
        return _located(self._rankings, found, places, grades, retrieved)

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
        return run_notices(
            policies,
            ties=tied,
            numbers=_numbers(self._rankings),
            empty=_empty_queries(self._rankings, labels),
            extra=_extra_queries(self._rankings, labels),
        )

    def _as_lists(self, policies: Policies) -> "RankedRun":
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


class RankedRun(Run):
    """A run given as `{query: [document, ...]}`; the order of the list is the rank."""

    def __init__(
        self, rankings: Mapping[str, Sequence[str]], name: str = "run"
    ) -> None:
        self._rankings = rankings
        self.name = name

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        return list(self._rankings)

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        return _sample(self._rankings)

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        return not all(map(documents.isdisjoint, self._rankings.values()))

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents at their first position."""
        try:
            if policies.duplicates == "keep":
                return self._locate_all(labels, judged=judged)
            run = self if policies.duplicates == "first" else self._distinct(policies)
            return run._locate_first(labels, judged=judged)  # noqa: SLF001
        except TypeError:
            # Optimistic above, precise here: say which id of which query is wrong.
            for query, ranking in self._rankings.items():
                for document in ranking:
                    as_id(document, query=query)
            raise

    def _locate_first(self, labels: Labels, *, judged: bool) -> Located:
        found: list[int] = []
        retrieved: list[int] = []
        places: list[int] = []
        grades: list[float] = []
        get = self._rankings.get
        for query, wanted in labels.items():
            ranking = get(query)
            if ranking is None:
                found.append(0)
                retrieved.append(-1)
                continue
            retrieved.append(len(ranking))
            ids = {*wanted} if judged else {d for d, g in wanted.items() if g > 0}
            few = len(ids) < _FEW
            hits: Any = (
                ids.intersection(ranking)
                if few
                else dict.fromkeys(filter(ids.__contains__, ranking))
            )
            place = 0
            for document in hits:
                # Many come in order of rank: the search goes on where it stopped.
                place = ranking.index(document, 0 if few else place)
                places.append(place)
                grades.append(wanted[document])
            found.append(len(hits))
        return _located(self._rankings, found, places, grades, retrieved)

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents in list order."""
        del policies  # a list has no ties
        for query, ranking in self._rankings.items():
            yield query, [Document(id=document) for document in ranking]

    def notices(self, labels: Labels, policies: Policies) -> tuple[Notice, ...]:
        """Repeated documents, numbers among ids and queries without labels."""
        repeated = {
            query: extra
            for query, ranking in self._rankings.items()
            if (extra := len(ranking) - len(set(ranking)))
        }
        return run_notices(
            policies,
            duplicates=repeated,
            numbers=_numbers(self._rankings),
            empty=_empty_queries(self._rankings, labels),
            extra=_extra_queries(self._rankings, labels),
        )

    def _locate_all(self, labels: Labels, *, judged: bool) -> Located:
        """Every occurrence of a labelled document is a row of its item."""
        found: list[int] = []
        retrieved: list[int] = []
        places: list[int] = []
        grades: list[float] = []
        items: list[int] = []
        start = 0
        for query, wanted in labels.items():
            ranking = self._rankings.get(query)
            retrieved.append(-1 if ranking is None else len(ranking))
            number = {document: start + i for i, document in enumerate(wanted)}
            start += len(wanted)
            before = len(places)
            for place, document in enumerate(ranking or ()):
                grade = wanted.get(document)
                if grade is not None and (judged or grade > 0):
                    places.append(place)
                    grades.append(grade)
                    items.append(number[document])
            found.append(len(places) - before)
        return _located(self._rankings, found, places, grades, retrieved, items)

    def _distinct(self, policies: Policies) -> "RankedRun":
        distinct = {
            query: list(dict.fromkeys(r)) for query, r in self._rankings.items()
        }
        if policies.duplicates == "error":
            for query, ranking in self._rankings.items():
                if len(distinct[query]) < len(ranking):
                    twice = next(d for i, d in enumerate(ranking) if d in ranking[:i])
                    raise DataError(
                        f"document {twice!r} was retrieved more than once",
                        query=query,
                        hint="duplicates='first' scores its first rank only",
                    )
        return RankedRun(distinct, self.name)


class DocumentRun(Run):
    """A run of documents with their texts; the order given is the rank."""

    def __init__(
        self, rankings: Mapping[str, Sequence[Document]], name: str = "run"
    ) -> None:
        self._rankings = rankings
        self.name = name

    @cached_property
    def ids(self) -> RankedRun:
        """The same run by document id; a document without one is known by its text."""
        return self._by(lambda d: d.text if d.id is None else d.id)

    @cached_property
    def texts(self) -> RankedRun:
        """The same run by document text."""
        return self._by(lambda document: document.text)

    def _by(self, key: Any) -> RankedRun:
        return RankedRun(
            {
                query: [key(d) or "" for d in docs]
                for query, docs in self._rankings.items()
            },
            self.name,
        )

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        return list(self._rankings)

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        return self.ids.sample_ids()

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        return self.ids.holds_any(documents)

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents at their first position."""
        return self.ids.locate(labels, judged=judged, policies=policies)

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents in list order."""
        del policies
        for query, ranking in self._rankings.items():
            yield query, list(ranking)

    def notices(self, labels: Labels, policies: Policies) -> tuple[Notice, ...]:
        """Repeated documents and queries without labels."""
        return self.ids.notices(labels, policies)


def _tied_before(ranking: Mapping[str, float], document: str, score: float) -> int:
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


def _located(
    rankings: Mapping[str, Any],
    found: list[int],
    places: list[int],
    grades: list[float],
    retrieved: list[int],
    items: list[int] | None = None,
) -> Located:
    query = np.repeat(np.arange(len(found)), found)
    rank = np.array(places, np.int64) + 1
    # Rows of one query were found in any order: one sort on a combined key.
    order = np.argsort((query << 40) | rank, kind="stable")
    item: Ints | None = None if items is None else np.array(items, np.int64)[order]
    return Located(
        query=query[order],
        rank=rank[order],
        grade=np.array(grades, np.float64)[order],
        retrieved=np.array(retrieved, np.int64),
        # Every query of the run that was not asked for.
        extra=len(rankings) - len(retrieved) + retrieved.count(-1),
        item=item,
    )


def _extra_queries(rankings: Mapping[str, Any], labels: Labels) -> list[str]:
    return [query for query in rankings if query not in labels]


def _empty_queries(rankings: Mapping[str, Any], labels: Labels) -> list[str]:
    return [query for query in labels if query in rankings and not rankings[query]]


def _numbers(rankings: Mapping[str, Any]) -> dict[str, int]:
    """Ids that are not text, by query: they were overlooked among a great many."""
    counts = {
        query: sum(not isinstance(document, str) for document in ranking)
        for query, ranking in rankings.items()
    }
    return {query: count for query, count in counts.items() if count}


def _sample(rankings: Mapping[str, Any]) -> list[str]:
    firsts = (next(iter(ranking), None) for ranking in rankings.values())
    return [str(document) for document in firsts if document is not None][:3]


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
