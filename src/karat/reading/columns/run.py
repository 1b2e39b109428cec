"""Runs with a row for each retrieved document, whatever file or table they come from.

A source hands out `Rankings`: whole rankings of some queries, as columns. It cuts its
input between two queries, so that no ranking is put together from pieces. A query that
turns up in two places is found out at the end, and the input is read again as a whole.

Labels and rows have 64-bit keys mixed from query and document. A row is first looked up
in a bit table small enough for the processor's cache; the survivors are searched among
the sorted keys, and what is left is compared byte by byte. So the answer is exact.
"""

import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Ints, count_by
from karat.data.gold import ColumnLabels
from karat.data.policies import Policies
from karat.data.runs import TOP, Document, Labels, Located, Notice, Run, run_notices
from karat.errors import DataError
from karat.reading.columns.ids import (
    ByteColumn,
    Keys,
    NumberColumn,
    number_keys,
    ranges,
)
from karat.reading.columns.rankings import (
    Rankings,
    given_ranks,
    pair_keys,
    rank_rows,
    repeated_rows,
)
from karat.reading.source import placed

_EXAMPLES = 3
_MOST_THREADS = 8


class LabelIndex:
    """Labels laid out so that those of any query are at hand."""

    def __init__(self, labels: ColumnLabels, *, judged: bool) -> None:
        self.labels, self.judged = labels, judged
        self.grade, self.size = labels.grade, len(labels)
        self.query: Ints = np.repeat(np.arange(self.size), labels.count)
        every = np.arange(len(self.grade))
        self._label = every if judged else np.flatnonzero(self.grade > 0)
        self._queries = ByteColumn.of(labels.ids)
        self._documents = ByteColumn.of(labels.names).view(self._label)
        self._text_keys = self._documents.keys()
        keys = self._queries.keys()
        self._order = np.argsort(keys)
        self._keys = keys[self._order]
        count = count_by(self.query[self._label], self.size)
        self._bounds = np.concatenate(([0], np.cumsum(count)))

    @cached_property
    def _number_keys(self) -> Keys:
        return number_keys(self._documents.names())

    def numbers(self, queries: ByteColumn) -> Ints:
        """The number of each query; -1 for one without labels."""
        row, at = _equal(self._keys, queries.keys())
        place = self._order[at]
        same = queries.view(row).equal(self._queries.view(place))
        number = np.full(len(queries), -1)
        number[row[same]] = place[same]
        return number

    def find(self, some: Rankings, keys: Keys, query: Ints) -> tuple[Ints, Ints]:
        """The labelled rows, and the label of each."""
        begin, end = self._bounds[query], self._bounds[query + 1]
        owner, label = ranges(begin, end)
        numbers = isinstance(some.documents, NumberColumn)
        label_keys = self._number_keys if numbers else self._text_keys
        wanted = pair_keys(label_keys[label], owner)
        bits = min(max((len(wanted) * 64).bit_length(), 10), 20)
        shift = np.uint64(64 - bits)
        there = np.zeros(1 << bits, np.bool_)
        there[wanted >> shift] = True
        row = np.flatnonzero(there.take((keys >> shift).view(np.int64)))
        order = np.argsort(wanted)
        which, at = _equal(wanted[order], keys[row])
        row, at = row[which], order[at]
        same = some.ranking(row) == owner[at]
        same &= some.documents.view(row).equal(self._documents.view(label[at]))
        return row[same], self._label[label[at[same]]]


class LabelledRows(NamedTuple):
    """What some rankings hold of the gold; `extra` are queries without labels."""

    query: Ints
    retrieved: Ints
    size: Ints
    ties: Ints
    repeats: Ints
    again: Ints
    label: Ints
    rank: Ints
    extra: list[str]
    scattered: bool
    from_zero: bool


def find_labels(
    read: Callable[[], Rankings],
    index: LabelIndex,
    policies: Policies,
    run: "ColumnarRun",
) -> LabelledRows:
    """The labelled documents of some rankings, and the rank of each."""
    some = read()
    from_zero = some.ranked and 0 in ~np.asarray(some.values)
    query = index.numbers(some.queries)
    extra = some.queries.view(query < 0).names()
    if extra:
        some = some.only(np.repeat(query >= 0, some.size))
        query = query[query >= 0]
    count = len(query)
    keys = some.keys()
    rows, label = index.find(some, keys, query)
    again, ranks = repeated_rows(some, keys, policies)
    if len(again) and policies.duplicates == "error":
        raise run.repeated(*some.names_of(again.min(keepdims=True)))
    once = np.ones(len(keys), np.bool_)
    once[again] = False
    single, relevant = some.only(once) if len(again) else some, index.grade[label] > 0
    first_of = once[rows]
    place = (np.cumsum(once) - 1)[rows[first_of]] if len(again) else rows
    rank, tied = rank_rows(single, place, policies)
    # A document does not share its score with itself.
    ties = count_by(single.ranking(place[tied & relevant[first_of]]), count)
    repeats = others = np.zeros_like(ties)
    if len(again):
        other = again[~np.isin(again, rows[relevant])]
        top = ranks[other]
        if some.ranked:
            top, _ = rank_rows(some._replace(ranked=False), other, policies)
        twice = np.isin(label, label[~first_of]) & first_of & relevant
        repeats = count_by(some.ranking(rows[twice]), count)
        if policies.duplicates != "keep":
            rows, label = rows[first_of], label[first_of]
        if policies.duplicates != "collapse":
            rank, single = ranks[rows], some
            others = np.minimum(count_by(some.ranking(other[top <= TOP]), count), 1)
    retrieved = single.size
    if single.ranked and count:
        every, _ = given_ranks(some)
        if single is not some:
            every = (every - _removed_before(some, every, once))[once]
            rank = every[place]
        retrieved = np.maximum.reduceat(every, single.start)
    return LabelledRows(
        query,
        retrieved,
        single.size,
        ties,
        repeats,
        others,
        label,
        rank,
        extra,
        some.scattered,
        from_zero,
    )


def _removed_before(some: Rankings, ranks: Ints, once: Bools) -> Ints:
    """How many rows that are left out stand before each row of a ranking."""
    ranking = np.repeat(np.arange(len(some.start)), some.size)
    order = np.lexsort((ranks, ranking))
    removed: Ints = np.cumsum(~once[order], dtype=np.int64)
    before = np.empty_like(removed)
    before[order] = removed - (removed - ~once[order])[some.start][ranking]
    return before


class ColumnarRun(Run):
    """A run with a row for each document, in any order, which is read when asked.

    Rows that are `ranked` have ranks, and `sort` sorts them by query.
    """

    path: str | None = None
    ranked: bool = False
    sort: str = "ORDER BY query"
    _head: Rankings | None = None

    @abstractmethod
    def parts(self, *, texts: bool = False) -> Iterable[Callable[[], Rankings]]:
        """Parts cut between two queries, which threads may read."""

    def repeated(self, query: str, document: str) -> DataError:
        """What to say of a document that a query retrieves twice."""
        return DataError(
            f"document {document!r} was retrieved more than once",
            query=query,
            hint="duplicates='first' scores its first rank only",
        )

    def whole(self, *, texts: bool = False) -> Rankings:
        """All rows at once, wherever those of a query are."""
        rankings, size = [], 0
        for part in self.parts(texts=texts):
            rankings.append(part())
            size += rankings[-1].nbytes
            if size > most_bytes():
                raise DataError(
                    "the rows of a query are scattered, and all rows together do not "
                    "fit into memory",
                    hint=f"sort them by query first: {self.sort}",
                )
        return Rankings.join(rankings).gathered()

    def remarks(self) -> tuple[Notice, ...]:
        """What to say of the rows that were read."""
        return ()

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        names = (part().queries.names() for part in self.parts())
        return [*dict.fromkeys(chain.from_iterable(names))]

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        parts = (part().documents for part in self.parts())
        names = (name for some in parts for name in some.view(slice(_EXAMPLES)).names())
        return [*islice(names, _EXAMPLES)]

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        parts = (part().documents.names() for part in self.parts())
        return any(not documents.isdisjoint(names) for names in parts)

    def ids_of(
        self, queries: Container[str] | None = None, *, first: int | None = None
    ) -> dict[str, list[str]]:
        """The documents of some queries, in the order of the rows."""
        rows: dict[str, list[str]] = {}
        if first is None:
            parts: Iterable[Rankings] = (part() for part in self.parts())
        else:
            parts = [self._head or next(iter(self.parts()))()]
        for some in parts:
            bounds = zip(some.start.tolist(), some.size.tolist(), strict=True)
            for name, (start, size) in zip(some.queries.names(), bounds, strict=True):
                if queries is None or name in queries:
                    own = slice(start, start + min(size, first or size))
                    rows.setdefault(name, []).extend(some.documents.view(own).names())
        return rows

    def kinds(self) -> frozenset[str]:
        """Whether documents are known by `ids`, by `texts`, or both."""
        first = next(iter(self.parts(texts=True)))()
        return frozenset({"ids"} if first.texts is None else {"ids", "texts"})

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find the labelled documents, whatever the order of the rows."""
        labels = ColumnLabels.of(labels)
        index = LabelIndex(labels, judged=judged)
        if self.ranked:
            # Documents of one rank stay in the order of their rows.
            policies = replace(policies, ties="input", precision="double")
        try:
            parts = [*self._search(index, policies)]
        except DataError as error:
            raise placed(error, path=self.path or self.name) from None
        *columns, extras, _, from_zero = zip(*parts, strict=True)
        query, retrieved, size, ties, repeats, again, label, rank = map(
            np.concatenate, columns
        )
        if any(from_zero):
            rank, retrieved = rank + 1, retrieved + 1
        extra = {*chain.from_iterable(extras)}
        sizes = np.full(len(labels), -1)
        sizes[query] = retrieved
        row_query = index.query[label]
        order = np.lexsort((rank, row_query))
        notices = run_notices(
            policies,
            ties=_by_name(query, ties, labels.ids),
            duplicates=_by_name(query, repeats, labels.ids),
            extra=dict.fromkeys(sorted(extra), 1),
            gaps=_by_name(query, np.minimum(retrieved - size, 1), labels.ids),
            repeats=_by_name(query, again, labels.ids),
        )
        return Located(
            query=row_query[order],
            rank=rank[order],
            grade=index.grade[label[order]],
            retrieved=sizes,
            extra=len(extra),
            item=label[order],
            distinct=policies.duplicates != "keep",
            notices=(*notices, *self.remarks()),
        )

    def _search(self, index: LabelIndex, policies: Policies) -> Iterable[LabelledRows]:
        """What each part of the run holds of the labels, in any order."""
        work = partial(find_labels, index=index, policies=policies, run=self)
        parts: list[LabelledRows] = []
        met = np.zeros(index.size, np.bool_)
        for part in _in_order(work, self._parts()):
            if parts and (part.scattered or met[part.query].any()):
                # A query in two places: all its rows are needed at once.
                parts = [work(self.whole)]
                break
            met[part.query] = True
            parts.append(part)
        return parts

    def _parts(self) -> Iterator[Callable[[], Rankings]]:
        """All parts; the first is kept for who looks at a few rows later."""
        parts = iter(self.parts())
        for part in islice(parts, 1):
            self._head = part()
            yield partial(Rankings.join, [self._head])
        yield from parts

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents, best first."""
        some = self.whole(texts=True)
        rank, _ = rank_rows(some, np.arange(len(some.documents)), policies)
        order = np.lexsort((rank, np.repeat(np.arange(len(some.start)), some.size)))
        ids: list[str] = some.documents.view(order).names()
        texts: Iterable[str | None] = repeat(None)
        scores: Iterable[float | None] = repeat(None)
        if some.texts is not None:
            texts = some.texts.view(order).names()
        if some.values is not None and not self.ranked:
            scores = some.values[order].astype(np.float64).tolist()
        documents = map(Document, ids, texts, scores)
        ranks = rank[order] + (some.ranked and 0 in ~np.asarray(some.values))
        for query, start, size in zip(
            some.queries.names(), some.start.tolist(), some.size.tolist(), strict=True
        ):
            ranking = [*islice(documents, size)]
            if ranks[start + size - 1] > size:
                own = zip(ranking, ranks[start : start + size].tolist(), strict=True)
                ranking = [replace(document, rank=rank) for document, rank in own]
            if policies.duplicates == "collapse":
                ranking = _collapsed(ranking)
            yield query, ranking


def _collapsed(ranking: Iterable[Document]) -> list[Document]:
    """Each document once; those behind a repeated one move up."""
    first: dict[str | None, Document] = {}
    for place, document in enumerate(ranking):
        if document.id not in first:
            removed = place - len(first)
            rank = document.rank and document.rank - removed
            first[document.id] = replace(document, rank=rank) if rank else document
    return [*first.values()]


def _by_name(query: Ints, counts: Ints, names: list[str]) -> dict[str, int]:
    order = np.argsort(query, kind="stable")
    some = order[counts[order] > 0]
    pairs = zip(query[some].tolist(), counts[some].tolist(), strict=True)
    return {names[number]: count for number, count in pairs}


def _equal(ordered: Keys, keys: Keys) -> tuple[Ints, Ints]:
    """All pairs of equal keys: which key, and where among those in order."""
    if not len(ordered):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    begin = np.searchsorted(ordered, keys)
    there = np.flatnonzero(ordered.take(begin, mode="clip") == keys)
    end = np.searchsorted(ordered, keys[there], side="right")
    owner, at = ranges(begin[there], end)
    return there[owner], at


def _in_order(
    work: Callable[..., LabelledRows], items: Iterable[Any]
) -> Iterator[LabelledRows]:
    """The result for each item in turn; threads work ahead."""
    left = iter(items)
    # Small files are one part and need no pool, which takes long to load.
    yield from map(work, islice(left, 1))
    following = next(left, None)
    if following is None:
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    threads = min(os.cpu_count() or 1, _MOST_THREADS)
    with ThreadPoolExecutor(threads) as pool:
        ahead = deque([pool.submit(work, following)])
        for item in left:
            ahead.append(pool.submit(work, item))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def most_bytes() -> int:
    """How much memory rows may take that have to be there at once."""
    if not hasattr(os, "sysconf"):
        return 4 << 30
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
