"""Runs held in memory as Python objects: scored dictionaries, lists of ids, documents.

Only labelled ids are ever looked up, so most of a ranking is never touched by Python
code; the rest is one copy of the scores, or one pass over the ids, for each query, and
both happen in C.
"""

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set as AbstractSet,
)
from functools import cached_property
from itertools import chain, compress, count, islice, repeat
from math import isfinite
from operator import is_not, methodcaller
from typing import Any, Generic, TypeVar, cast

import numpy as np

from karat.data.arrays import INEXACT, Ints, as_floats, count_by
from karat.data.gold import ColumnLabels
from karat.data.policies import Policies
from karat.data.runs import (
    TOP,
    Document,
    Labels,
    Located,
    Run,
    as_id,
    ranks_of,
    run_notices,
)
from karat.data.tables import counted
from karat.errors import DataError

R = TypeVar("R", bound=Collection[Any])
Scores = Mapping[str, float]

# Among so few labels, looking along them is quicker than making an index of them.
_FEW = 8
# From so many scores on, NumPy sorts those in disorder quicker than Python.
_MANY = 100
# By so many scores one sees whether a ranking comes in order.
_FIRST = 8
_VALUES = methodcaller("values")


class _MemoryRun(Run, Generic[R]):
    """A run held as `{query: ranking}`, which is `by_query`."""

    def __init__(self, rankings: Mapping[str, R], name: str = "run") -> None:
        self.by_query = rankings
        self.name = name

    def __repr__(self) -> str:
        sizes = f"{counted(len(self.by_query), 'query')}, "
        sizes += counted(sum(map(len, self.by_query.values())), "document")
        return f"{super().__repr__()[:-1]}: {sizes}>"

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        return list(self.by_query)

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        firsts = (next(iter(ranking), None) for ranking in self.by_query.values())
        return [str(document) for document in firsts if document is not None][:3]

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        return not all(map(documents.isdisjoint, self.by_query.values()))

    def ids_of(
        self, queries: Container[str] | None = None, *, first: int | None = None
    ) -> Mapping[str, R]:
        """All rankings, which are at hand."""
        del queries, first
        return self.by_query

    def _labelled(self, labels: Labels, nothing: R) -> tuple[list[R], Ints]:
        """The ranking of each labelled query, and its length; -1 if it is missing."""
        rows = [*map(self.by_query.get, labels, repeat(nothing))]
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        if np.count_nonzero(sizes) < len(rows):
            sizes[[query not in self.by_query for query in labels]] = -1
        return rows, sizes

    def _located(
        self,
        item: Ints,
        place: Ints,
        sizes: Ints,
        labels: ColumnLabels,
        policies: Policies,
        **counts: Mapping[str, int],
    ) -> Located:
        """Labels and their places in the order of (query, rank), and what to say."""
        extra = len(self.by_query) - int(np.count_nonzero(sizes >= 0))
        if np.count_nonzero(sizes) < len(sizes):
            empty = compress(labels, (sizes == 0).tolist())
            counts["empty"] = dict.fromkeys(empty, 1)
        if extra:
            counts["extra"] = {q: 1 for q in self.by_query if q not in labels}
        query = labels.grades.query[item]
        # The query in the high bits and the rank in the low ones: one sort orders both.
        order = ((query << 40) + place).argsort(kind="stable")
        item = item[order]
        return Located(
            query,
            place[order] + 1,
            labels.grade[item],
            sizes,
            extra,
            item,
            policies.duplicates != "keep",
            run_notices(policies, **counts) if any(counts.values()) else (),
        )


def _count_by_query(item: Ints, labels: ColumnLabels) -> dict[str, int]:
    """How many of the labels are relevant, by query."""
    relevant = item[labels.grade[item] > 0]
    counts = count_by(labels.grades.query[relevant], len(labels)).tolist()
    return {name: n for name, n in zip(labels, counts, strict=True) if n}


def _wanted(labels: ColumnLabels, *, judged: bool) -> tuple[list[str], Ints, Ints]:
    """The names to look for, the number of each query, and which labels they are."""
    names, count, item = [*labels.names], labels.count, np.arange(len(labels.grade))
    if judged or labels.grades.range[0] > 0:
        return names, count, item
    relevant = labels.grade > 0
    names = [*compress(names, relevant.tolist())]
    return names, labels.grades.relevant(None)[0], item[relevant]


def _get(scores: Scores, document: str) -> float | None:
    return scores.get(document)


class ScoredRun(_MemoryRun[Scores]):
    """A run given as `{query: {document: score}}`; the scores decide the order."""

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents; a rank is 1 + the number of documents before."""
        labels = ColumnLabels.of(labels)
        try:
            rankings, sizes = self._labelled(labels, {})
            names, counts, item = _wanted(labels, judged=judged)
            # A ranking and a name for each label: no step is taken in Python.
            each: Iterable[Any] = chain.from_iterable(
                map(repeat, rankings, counts.tolist())
            )
            get = dict.get if {*map(type, rankings)} <= {dict} else _get
            score_or_none = [*map(get, each, names)]
            there = bytes(map(is_not, score_or_none, repeat(None)))
            scores = [*compress(score_or_none, there)]
            item = item[np.frombuffer(there, np.bool_)]
            found = count_by(labels.grades.query[item], len(rankings))
            place, tied = count_before(
                rankings, found, labels.names, item, scores, policies
            )
        except (AttributeError, OverflowError, TypeError, ValueError, struct.error):
            # Optimistic above, precise here: say which score of which query is wrong.
            self._check()
            raise
        ties = _count_by_query(item[tied], labels) if len(tied) else {}
        return self._located(item, place, sizes, labels, policies, ties=ties)

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents, best score first."""
        self._check()
        for query, ranking in self.by_query.items():
            documents = [*ranking.items()]
            order = rank_order(ranking.values(), [*ranking], policies)
            ordered = (documents[place] for place in order)
            yield query, [Document(id=d, score=float(score)) for d, score in ordered]

    def _check(self) -> None:
        for query, ranking in self.by_query.items():
            if not isinstance(ranking, Mapping):
                raise DataError(
                    "must be a mapping of document to score like the others, "
                    f"got {type(ranking).__name__}",
                    query=query,
                )
            for document, score in ranking.items():
                _check_score(query, document, score)
        # Where equal scores are ordered by id, all ids must be text.
        for query, ranking in self.by_query.items():
            for document in ranking:
                if not isinstance(document, str):
                    raise DataError(
                        f"document id {document!r:.60} must be text like the others, "
                        f"got {type(document).__name__}",
                        query=query,
                    )


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


def rank_order(
    scores: Iterable[float], documents: Sequence[str | bytes], policies: Policies
) -> list[int]:
    """The positions of the documents, best first; the same ones keep their order."""
    keys: list[Any] = _as_compared(scores, policies)
    if policies.ties != "input":
        keys = [*zip(keys, documents, strict=True)]
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)


def count_before(
    rankings: Sequence[Scores],
    found: Ints,
    names: Sequence[str],
    item: Ints,
    scores: Sequence[Any],
    policies: Policies,
) -> tuple[Ints, Ints]:
    """How many documents come before each of `item`, and which share their score."""
    better, tied = _count_better(rankings, found, scores, policies)
    if len(tied):
        ends = found.cumsum()
        for number in np.unique(ends.searchsorted(tied, "right")).tolist():
            mine = slice(int(ends[number] - found[number]), int(ends[number]))
            equal = {*_as_compared(scores[mine], policies)}
            before = _count_in_ties(rankings[number], equal, policies)
            better[mine] += [before[names[label]] for label in item[mine].tolist()]
    return better, tied


def _count_better(
    rankings: Sequence[Scores],
    found: Ints,
    scores: Sequence[Any],
    policies: Policies,
    *,
    exact: bool = True,
) -> tuple[Ints, Ints]:
    """How many scores are better than each, and which have equals."""
    better: list[int] = []
    tied: list[int] = []
    checksum = 0.0
    compared = scores if exact else _as_compared(scores, policies)
    ranges: Iterator[Any] = zip(compared, compared, strict=True)
    if exact and policies.precision == "single":
        ranges = _equal_in_single(scores)
    for ranking, number in zip(rankings, found.tolist(), strict=True):
        ordered = [*ranking.values()]
        checksum = sum(ordered, checksum)
        if number:
            # Most come best first: reversed, the sort has only to look.
            ordered.reverse()
            many = len(ordered) > _MANY
            if not exact or (many and ordered[:_FIRST] != sorted(ordered[:_FIRST])):
                floats = (
                    as_floats(ordered) if exact else _as_compared(ordered, policies)
                )
                ordered = np.sort(floats).tolist()
            else:
                ordered.sort()
            last = None
            for low, high in islice(ranges, number):
                if high != last:
                    end, last = bisect_right(ordered, high), high
                if end > 1 and ordered[end - 2] >= low:
                    tied.append(len(better))
                better.append(len(ordered) - end)
    # Very large scores have an infinite sum, too.
    if not isfinite(checksum) and not all(
        map(isfinite, chain.from_iterable(map(_VALUES, rankings)))
    ):
        raise ValueError
    if exact and not abs(checksum) < INEXACT:
        return _count_better(rankings, found, scores, policies, exact=False)
    return np.array(better, np.int64), np.array(tied, np.int64)


def _equal_in_single(scores: Sequence[Any]) -> Iterator[tuple[float, float]]:
    """The least and the largest number that is the same as each in single precision."""
    single = as_floats(scores).astype(np.float32)
    exact = single.astype(np.float64)
    edges = []
    for side in (-np.inf, np.inf):
        middle = (exact + np.nextafter(single, np.float32(side))) / 2
        inside = middle.astype(np.float32) == single
        edges.append(np.where(inside, middle, np.nextafter(middle, exact)).tolist())
    return zip(*edges, strict=True)


def _count_in_ties(
    ranking: Scores, scores: AbstractSet[float], policies: Policies
) -> dict[str, int]:
    """For each document with one of the scores: how many of its equals come first."""
    equals: dict[float, list[str]] = {score: [] for score in scores}
    compared = _as_compared(ranking.values(), policies)
    if len(equals) == 1:
        alike = map(scores.__contains__, compared)
        equals = {score: [*compress(ranking, alike)] for score in equals}
    else:
        for document, score in zip(ranking, compared, strict=True):
            if score in equals:
                equals[score].append(document)
    before: dict[str, int] = {}
    for documents in equals.values():
        if policies.ties == "trec":
            documents.sort(reverse=True)
        before.update(zip(documents, count()))
    return before


def _as_compared(scores: Iterable[Any], policies: Policies) -> list[float]:
    """The scores as floats, in the precision in which they are compared."""
    if policies.precision == "single":
        with np.errstate(over="ignore"):
            single = as_floats(scores).astype(np.float32)
            scores = single.astype(np.float64).tolist()
    return [*map(float, scores)]


class RankedRun(_MemoryRun[Sequence[str]]):
    """A run given as `{query: [document, ...]}`; the order of the list is the rank.

    Scores that documents were listed with decide nothing, and equal ones are told.
    `ranks` are those of queries whose ranks have gaps.
    """

    def __init__(
        self,
        rankings: Mapping[str, Iterable[str]],
        name: str = "run",
        scores: Mapping[str, Sequence[float | None]] | None = None,
        ranks: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        if not {*map(type, rankings.values())} <= {list, tuple}:
            rankings = {query: _as_list(r) for query, r in rankings.items()}
        super().__init__(cast("Mapping[str, Sequence[str]]", rankings), name)
        self._scores = scores or {}
        self.ranks = ranks or {}

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents, each at its first position unless all are kept."""
        labels = ColumnLabels.of(labels)
        counts: dict[str, Mapping[str, int]] = {}
        try:
            if policies.duplicates == "error":
                self._refuse_repeated()
            rankings, sizes = self._labelled(labels, ())
            item, place, again = _occurrences(rankings, labels, judged=judged)
            if again:
                counts["repeats"] = _repeats_irrelevant(again, labels)
            if self._scores:
                counts["listed ties"] = self._ties(item, place, labels)
            if len(item) and np.bincount(item).max() > 1:
                first = np.unique(item, return_index=True)[1]
                twice = np.unique(np.delete(item, first))
                counts["duplicates"] = _count_by_query(twice, labels)
                if policies.duplicates != "keep":
                    item, place = item[first], place[first]
            if policies.duplicates == "collapse" and any(map(_repeats, rankings)):
                # Without the repeated ones, the documents behind them move up.
                rankings = [[*dict.fromkeys(ranking)] for ranking in rankings]
                lengths = np.fromiter(map(len, rankings), np.int64, len(rankings))
                sizes = np.minimum(sizes, lengths)
                item, place, _ = _occurrences(rankings, labels, judged=judged)
        except TypeError:
            # Optimistic above, precise here: say which id of which query is wrong.
            for name, ranking in self.by_query.items():
                for document in ranking:
                    as_id(document, query=name)
            raise
        found = self._located(item, place, sizes, labels, policies, **counts)
        return self._with_gaps(found, labels, policies) if self.ranks else found

    def _ties(self, item: Ints, place: Ints, labels: ColumnLabels) -> dict[str, int]:
        """How many relevant documents share their score with another, by query."""
        shared: dict[str, AbstractSet[float | None]] = {}
        for query, scores in self._scores.items():
            if len({*scores}) < len(scores) and query in labels:
                once = {*zip(self.by_query[query], scores, strict=True)}
                often = Counter(score for _, score in once if score is not None)
                shared[query] = {score for score, n in often.items() if n > 1}
        if not any(shared.values()):
            return {}
        names = [*labels]
        queries = map(names.__getitem__, labels.grades.query[item].tolist())
        tied = [
            query in shared and self._scores[query][at] in shared[query]
            for query, at in zip(queries, place.tolist(), strict=True)
        ]
        return _count_by_query(np.unique(item[tied]), labels)

    def _with_gaps(
        self, located: Located, labels: ColumnLabels, policies: Policies
    ) -> Located:
        """The same with the ranks that were given, where these have gaps."""
        rank, retrieved = located.rank.copy(), located.retrieved.copy()
        gaps = {query: 1 for query in labels if query in self.ranks}
        for query in gaps:
            ranks, number = np.array(self.ranks[query]), labels.numbers[query]
            if policies.duplicates == "collapse":
                # What stands behind a repeated document moves up by one.
                first = [*map(self.by_query[query].index, self.by_query[query])]
                new = np.array(first) == np.arange(len(first))
                ranks = ranks[new] - np.flatnonzero(new) + np.arange(new.sum())
            own = located.query == number
            rank[own], retrieved[number] = ranks[located.rank[own] - 1], ranks[-1]
        notices = (*located.notices, *run_notices(policies, gaps=gaps))
        return located._replace(rank=rank, retrieved=retrieved, notices=notices)

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents in list order."""
        del policies  # a list has no ties
        for query, ranking in self.by_query.items():
            scores = self._scores.get(query) or repeat(None)
            ranks = self.ranks.get(query) or repeat(None)
            rows = zip(ranking, scores, ranks, strict=False)
            yield query, [Document(d, score=s, rank=rank) for d, s, rank in rows]

    def _refuse_repeated(self) -> None:
        for query, ranking in self.by_query.items():
            if _repeats(ranking):
                twice = max(ranking, key=Counter(ranking).__getitem__)
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


def _repeats_irrelevant(
    tops: Mapping[str, Sequence[str]], labels: ColumnLabels
) -> dict[str, int]:
    """The queries that repeat a document which is not relevant."""
    return {
        query: 1
        for query, top in tops.items()
        if any(n > 1 and labels[query].get(d, 0) <= 0 for d, n in Counter(top).items())
    }


def _occurrences(
    rankings: Iterable[Sequence[str]], labels: ColumnLabels, *, judged: bool
) -> tuple[Ints, Ints, dict[str, Sequence[str]]]:
    """Each occurrence of a labelled document, its place, and the tops that repeat."""
    places: list[int] = []
    items: list[int] = []
    again: dict[str, Sequence[str]] = {}
    names, counts, item = _wanted(labels, judged=judged)
    begin = 0
    for query, ranking, size in zip(labels.ids, rankings, counts.tolist(), strict=True):
        top = ranking[:TOP]
        if len({*top}) < len(top):
            again[query] = top
        own = names[begin : begin + size]
        known = {*own}
        number = own.index if size < _FEW else dict(zip(own, count())).__getitem__
        rest = iter(ranking)
        last = len(ranking) - 1
        # This looks through the ranking in C, and stops behind a document it knows.
        while not known.isdisjoint(rest):
            place = last - rest.__length_hint__()  # type: ignore[attr-defined]
            places.append(place)
            items.append(begin + number(ranking[place]))
        begin += size
    return item[np.array(items, np.int64)], np.array(places, np.int64), again


class DocumentRun(_MemoryRun[Sequence[Document]]):
    """A run of documents with their texts; the order given is the rank.

    Where texts were added to another run, ids are looked up in that one.
    """

    def __init__(
        self,
        rankings: Mapping[str, Sequence[Document]],
        name: str = "run",
        without_texts: Run | None = None,
    ) -> None:
        super().__init__(rankings, name)
        self._without_texts = without_texts

    @cached_property
    def ids(self) -> RankedRun:
        """The same run by document id; a document without one is known by its text."""
        return self._by(lambda d: d.text if d.id is None else d.id)

    @cached_property
    def texts(self) -> RankedRun:
        """The same run by document text."""
        return self._by(lambda document: document.text)

    def kinds(self) -> frozenset[str]:
        """Whether documents are known by `ids`, by `texts`, or both."""
        ids = texts = False
        for document in chain.from_iterable(self.by_query.values()):
            ids = ids or document.id is not None
            texts = texts or document.text is not None
            if ids and texts:
                break
        return frozenset(compress(("ids", "texts"), (ids, texts)))

    def _by(self, key: Callable[[Document], str | None]) -> RankedRun:
        rankings = self.by_query.items()
        return RankedRun(
            {query: [key(d) or "" for d in docs] for query, docs in rankings},
            self.name,
            scores={q: [d.score for d in docs] for q, docs in rankings},
            ranks={q: ranks_of(docs) for q, docs in rankings if docs and docs[-1].rank},
        )

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        return self.ids.sample_ids()

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        return self.ids.holds_any(documents)

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents, each at its first position unless all are kept."""
        run = self._without_texts or self.ids
        return run.locate(labels, judged=judged, policies=policies)

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents in list order."""
        del policies
        for query, ranking in self.by_query.items():
            yield query, list(ranking)
