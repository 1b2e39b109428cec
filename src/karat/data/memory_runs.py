"""Runs held in memory as Python objects: scored dictionaries, lists of ids, documents.

Only labelled ids are ever looked up, so most of a ranking is never touched by Python
code; the rest is one copy of the scores, or one pass over the ids, for each query, and
both happen in C.
"""

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress, count
from math import isfinite
from typing import Any, Generic, TypeVar, cast

import numpy as np

from karat.data.arrays import Bools, Floats, Ints, as_floats, count_by
from karat.data.identity import as_id
from karat.data.policies import Policies
from karat.data.runs import Document, Labels, Located, Run, run_notices
from karat.data.score_ranks import count_before, rank_order
from karat.errors import DataError

__all__ = ["DocumentRun", "RankedRun", "ScoredRun"]

R = TypeVar("R", bound=Collection[Any])
Scores = Mapping[str, float]

# Among so few labels, looking along them is quicker than making an index of them.
_FEW = 8


class _MemoryRun(Run, Generic[R]):
    """A run held as `{query: ranking}`."""

    def __init__(self, rankings: Mapping[str, R], name: str = "run") -> None:
        self._rankings = rankings
        self.name = name

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        return list(self._rankings)

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        firsts = (next(iter(ranking), None) for ranking in self._rankings.values())
        return [str(document) for document in firsts if document is not None][:3]

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        return not all(map(documents.isdisjoint, self._rankings.values()))

    def _labelled(self, labels: Labels, nothing: R) -> tuple[list[R], Ints]:
        """The ranking of each labelled query, and its length.

        A query that the run does not have gets `nothing`, of length -1.
        """
        get = self._rankings.get
        rows = [get(query, nothing) for query in labels]
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        if np.count_nonzero(sizes) < len(rows):
            sizes[[query not in self._rankings for query in labels]] = -1
        return rows, sizes

    def _located(
        self,
        labels: Labels,
        policies: Policies,
        sizes: Ints,
        *,
        query: Ints,
        place: Ints,
        item: Ints,
        grade: Floats,
        tied: Ints | None = None,
        repeated: Ints | None = None,
    ) -> Located:
        """Rows put in the order of (query, rank), with all that is to be said.

        Args:
            labels: what was looked for.
            policies: the rules applied.
            sizes: length of each labelled query's ranking; -1 when it is missing.
            query: index of each row's query, ascending.
            place: its place in its ranking, from 0; in any order within a query.
            item: number of its label.
            grade: its label.
            tied: query of each relevant document that shares its score with another.
            repeated: query of each relevant document that was found more than once.
        """
        full = int(np.count_nonzero(sizes > 0))
        extra = len(self._rankings) - full
        empty: list[str] = []
        if full < len(sizes):
            empty = [*compress(labels, (sizes == 0).tolist())]
            extra -= len(empty)
        notices = run_notices(
            policies,
            ties=_count_by_name(tied, labels),
            duplicates=_count_by_name(repeated, labels),
            empty=empty,
            extra=[q for q in self._rankings if q not in labels] if extra else (),
        )
        # The query in the high bits and the rank in the low ones: one sort orders both.
        key = (query << 40) + place
        order = key.argsort(kind="stable")
        key = key[order]
        return Located(
            query=key >> 40,
            rank=(key & (1 << 40) - 1) + 1,
            grade=grade[order],
            retrieved=sizes,
            extra=extra,
            item=item[order],
            distinct=policies.duplicates != "keep",
            notices=notices,
        )


def _count_by_name(query: Ints | None, labels: Labels) -> dict[str, int]:
    """How often each query occurs, by its name."""
    if query is None or not len(query):
        return {}
    counts = count_by(query, len(labels)).tolist()
    return {name: n for name, n in zip(labels, counts, strict=True) if n}


class ScoredRun(_MemoryRun[Scores]):
    """A run given as `{query: {document: score}}`; the scores decide the order."""

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents; a rank is 1 + the number of documents before."""
        try:
            rankings, sizes = self._labelled(labels, {})
            found: list[int] = []
            documents: list[str] = []
            scores: list[float] = []
            grades: list[float] = []
            items: list[int] = []
            item = 0
            for ranking, wanted in zip(rankings, labels.values(), strict=True):
                before = len(items)
                for document, label in wanted.items():
                    if (judged or label > 0) and document in ranking:
                        documents.append(document)
                        scores.append(ranking[document])
                        grades.append(label)
                        items.append(item)
                    item += 1
                found.append(len(items) - before)
            query = np.arange(len(found)).repeat(found)
            place, tied = count_before(rankings, query, documents, scores, policies)
        except (AttributeError, OverflowError, TypeError, ValueError, struct.error):
            # Optimistic above, precise here: say which score of which query is wrong.
            self._check()
            raise
        grade = as_floats(grades)
        return self._located(
            labels,
            policies,
            sizes,
            query=query,
            place=place,
            item=np.array(items, np.int64),
            grade=grade,
            tied=query[tied[grade[tied] > 0]],
        )

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents, best score first."""
        self._check()
        for query, ranking in self._rankings.items():
            documents = [*ranking.items()]
            order = rank_order(ranking.values(), [*ranking], policies)
            ordered = (documents[place] for place in order)
            yield query, [Document(id=d, score=float(score)) for d, score in ordered]

    def _check(self) -> None:
        for query, ranking in self._rankings.items():
            if not isinstance(ranking, Mapping):
                raise DataError(
                    "must be a mapping of document to score like the others, "
                    f"got {type(ranking).__name__}",
                    query=query,
                )
            for document, score in ranking.items():
                _check_score(query, document, score)


def _check_score(query: str, document: object, score: Any) -> None:
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


class RankedRun(_MemoryRun[Sequence[str]]):
    """A run given as `{query: [document, ...]}`; the order of the list is the rank.

    What is not a list or a tuple, such as an array or a generator, is read into one.
    """

    def __init__(
        self, rankings: Mapping[str, Iterable[str]], name: str = "run"
    ) -> None:
        if not {*map(type, rankings.values())} <= {list, tuple}:
            rankings = {query: _as_list(r) for query, r in rankings.items()}
        super().__init__(rankings, name)

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents, each at its first position unless all are kept."""
        try:
            if policies.duplicates == "error":
                self._refuse_repeated()
            rankings, sizes = self._labelled(labels, ())
            query, place, item, grade = _occurrences(rankings, labels, judged=judged)
            first = _first_of_each(item)
            repeated = None
            if first is not None:
                again = item[~first & (grade > 0)]
                repeated = query[first & np.isin(item, again)]
                if policies.duplicates == "first":
                    query, place = query[first], place[first]
                    item, grade = item[first], grade[first]
            if policies.duplicates == "collapse" and any(map(_repeats, rankings)):
                # Without the repeated ones, the documents behind them move up.
                rankings = [[*dict.fromkeys(ranking)] for ranking in rankings]
                lengths = np.fromiter(map(len, rankings), np.int64, len(rankings))
                sizes = np.minimum(sizes, lengths)
                query, place, item, grade = _occurrences(
                    rankings, labels, judged=judged
                )
        except TypeError:
            # Optimistic above, precise here: say which id of which query is wrong.
            for name, ranking in self._rankings.items():
                for document in ranking:
                    as_id(document, query=name)
            raise
        return self._located(
            labels,
            policies,
            sizes,
            query=query,
            place=place,
            item=item,
            grade=grade,
            repeated=repeated,
        )

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents in list order."""
        del policies  # a list has no ties
        for query, ranking in self._rankings.items():
            yield query, [Document(id=document) for document in ranking]

    def _refuse_repeated(self) -> None:
        for query, ranking in self._rankings.items():
            if _repeats(ranking):
                seen: set[str] = set()
                # `add` gives None, so that a document counts as seen from then on.
                twice = next(d for d in ranking if d in seen or seen.add(d))
                raise DataError(
                    f"document {twice!r} was retrieved more than once",
                    query=query,
                    hint="duplicates='first' scores its first rank only",
                )


def _as_list(ranking: Iterable[str]) -> Sequence[str]:
    if isinstance(ranking, np.ndarray):
        return cast("list[str]", ranking.tolist())
    return ranking if isinstance(ranking, list | tuple) else [*ranking]


def _repeats(ranking: Sequence[str]) -> bool:
    return len({*ranking}) < len(ranking)


def _occurrences(
    rankings: Iterable[Sequence[str]], labels: Labels, *, judged: bool
) -> tuple[Ints, Ints, Ints, Floats]:
    """Query, place, number of the label and grade of every labelled document."""
    found: list[int] = []
    places: list[int] = []
    items: list[int] = []
    grades: list[float] = []
    start = 0
    for ranking, wanted in zip(rankings, labels.values(), strict=True):
        before = len(places)
        few = len(wanted) < _FEW
        number = {} if few else dict(zip(wanted, count()))
        known = {*wanted} if few or judged else {d for d in wanted if wanted[d] > 0}
        rest = iter(ranking)
        # This looks through the ranking in C, and stops behind a document it knows.
        while not known.isdisjoint(rest):
            place = len(ranking) - rest.__length_hint__() - 1
            document = ranking[place]
            places.append(place)
            grades.append(wanted[document])
            items.append(
                start + ([*wanted].index(document) if few else number[document])
            )
        found.append(len(places) - before)
        start += len(wanted)
    query = np.arange(len(found)).repeat(found)
    place, item = np.array(places, np.int64), np.array(items, np.int64)
    grade = as_floats(grades)
    if judged or grade.min(initial=1) > 0:
        return query, place, item, grade
    relevant = grade > 0
    return query[relevant], place[relevant], item[relevant], grade[relevant]


def _first_of_each(item: Ints) -> Bools | None:
    """Whether each is the first of its number; None where none comes twice."""
    if not len(item) or np.bincount(item).max() == 1:
        return None
    first = np.zeros(len(item), np.bool_)
    first[np.unique(item, return_index=True)[1]] = True
    return first


class DocumentRun(_MemoryRun[Sequence[Document]]):
    """A run of documents with their texts; the order given is the rank."""

    @cached_property
    def ids(self) -> RankedRun:
        """The same run by document id; a document without one is known by its text."""
        return self._by(lambda d: d.text if d.id is None else d.id)

    @cached_property
    def texts(self) -> RankedRun:
        """The same run by document text."""
        return self._by(lambda document: document.text)

    def _by(self, key: Callable[[Document], str | None]) -> RankedRun:
        return RankedRun(
            {
                query: [key(d) or "" for d in docs]
                for query, docs in self._rankings.items()
            },
            self.name,
        )

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        return self.ids.sample_ids()

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        return self.ids.holds_any(documents)

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents, each at its first position unless all are kept."""
        return self.ids.locate(labels, judged=judged, policies=policies)

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents in list order."""
        del policies
        for query, ranking in self._rankings.items():
            yield query, list(ranking)
