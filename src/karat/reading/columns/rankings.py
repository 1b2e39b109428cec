"""Rankings: rows of documents by query, as columns, and the one ranker of rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Ints
from karat.data.policies import Policies
from karat.reading.columns.ids import (
    MIX,
    ByteColumn,
    Column,
    Keys,
    Rows,
    join_columns,
    join_ids,
    repeated,
    stable_order,
)

_QUERY = np.uint64(0x9E3779B97F4A7C15)


class Rankings(NamedTuple):
    """Whole rankings as rows, one after the other, ranked by values, larger first.

    Values that are given ranks (`ranked`) are complemented; `scattered` are rankings
    whose rows were apart.
    """

    queries: ByteColumn
    start: Ints
    documents: Column
    values: npt.NDArray[Any] | None = None
    texts: ByteColumn | None = None
    scattered: bool = False
    ranked: bool = False

    @classmethod
    def of(
        cls,
        queries: ByteColumn,
        documents: Column,
        values: npt.NDArray[Any] | None = None,
        texts: ByteColumn | None = None,
    ) -> "Rankings":
        """From rows; those of a query may be scattered."""
        start = queries.starts()
        runs = cls(queries.view(start), start, documents, values, texts)
        return runs.gathered()

    @classmethod
    def join(cls, parts: Sequence["Rankings"]) -> "Rankings":
        """One after the other; a query may be in several parts."""
        if len(parts) == 1:
            return parts[0]
        size = np.cumsum([0, *(len(part.documents) for part in parts)])
        values = [part.values for part in parts if part.values is not None]
        texts = [part.texts for part in parts if part.texts is not None]
        starts = (p.start + first for p, first in zip(parts, size, strict=False))
        queries = join_columns([part.queries for part in parts])
        runs = queries.starts()
        return cls(
            queries.view(runs),
            np.concatenate([*starts])[runs],
            join_ids([part.documents for part in parts]),
            np.concatenate(values) if values else None,
            join_columns(texts) if texts else None,
            ranked=parts[0].ranked,
        ).gathered()

    def gathered(self) -> "Rankings":
        """The rows of each query one after the other, in their order."""
        first, which = self.queries.distinct()
        if len(first) == len(self.start):
            return self
        order = stable_order(np.repeat(which, self.size))
        size = np.bincount(which, self.size, len(first)).astype(np.int64)
        return self._rows(order)._replace(
            queries=self.queries.view(first),
            start=np.cumsum(size) - size,
            scattered=True,
        )

    @property
    def size(self) -> Ints:
        """Number of rows of each ranking."""
        return np.diff(self.start, append=len(self.documents))

    @property
    def nbytes(self) -> int:
        """About how much memory the rows take."""
        columns = [self.documents, self.texts]
        bytes_ = sum(c.data.nbytes for c in columns if isinstance(c, ByteColumn))
        return bytes_ + 32 * len(self.documents)

    def keys(self) -> Keys:
        """A number for query and document of each row."""
        number = np.repeat(np.arange(len(self.start)), self.size)
        return pair_keys(self.documents.keys(), number)

    def ranking(self, rows: Ints) -> Ints:
        """The ranking that each of these rows lies in."""
        return np.searchsorted(self.start, rows, side="right") - 1

    def names_of(self, row: Ints) -> tuple[str, str]:
        """The query and the document of one row."""
        query = self.queries.view(self.ranking(row)).names()[0]
        return query, self.documents.view(row).names()[0]

    def only(self, rows: Bools) -> "Rankings":
        """The rankings without some of their rows; those without any are gone."""
        before = np.concatenate(([0], np.cumsum(rows)))
        start = before[self.start]
        there = np.diff(start, append=before[-1]) > 0
        return self._rows(rows)._replace(
            queries=self.queries.view(there), start=start[there]
        )

    def _rows(self, rows: Rows) -> "Rankings":
        return self._replace(
            documents=self.documents.view(rows),
            values=None if self.values is None else self.values[rows],
            texts=None if self.texts is None else self.texts.view(rows),
        )


def rank_rows(some: Rankings, rows: Ints, policies: Policies) -> tuple[Ints, Bools]:
    """The ranks of some rows, and whether another row of the ranking has its value."""
    if some.ranked:
        ranks, shared = given_ranks(some)
        return ranks[rows], shared[rows]
    place, first, values = rows, some.start[some.ranking(rows)], some.values
    if values is None or not len(rows):
        return rows - first + 1, np.zeros(len(rows), np.bool_)
    if policies.precision == "single":
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
    documents = some.documents
    same_ranking = np.ones(len(values) - 1, np.bool_)
    same_ranking[some.start[1:] - 1] = False
    if ((values[1:] > values[:-1]) & same_ranking).any():
        # The negative of the smallest integer does not exist; its complement does.
        rising = -values if values.dtype.kind == "f" else ~values
        ranking = np.repeat(np.arange(len(some.start)), some.size)
        order = np.argsort(rising, kind="stable" if policies.ties == "input" else None)
        order = order[stable_order(ranking[order])]
        values, documents = values[order], documents.view(order)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        place = place[rows]
    tied = (values[1:] == values[:-1]) & same_ranking
    if not tied.any():
        return place - first + 1, np.zeros(len(rows), np.bool_)
    tie = np.concatenate(([0], np.cumsum(~tied)))
    asked = tie[place]
    shared = np.bincount(tie)[asked] > 1
    if policies.ties == "trec" and shared.any():
        wanted = np.zeros(int(tie[-1]) + 1, np.bool_)
        wanted[asked[shared]] = True
        members = np.flatnonzero(wanted[tie])
        # Of equal documents the first comes first.
        words = [*documents.view(members).descending_words(), members]
        group, at = tie[members], np.searchsorted(members, place[shared])
        begin = np.searchsorted(group, group[at])
        place = place.copy()
        place[shared] = members[begin] + _places(group, words, at) - begin
    return place - first + 1, shared


def given_ranks(some: Rankings) -> tuple[Ints, Bools]:
    """The rank of every row, as it was given; and whether another row has the same.

    Of two equal ranks that of the later row moves down to the next that is free.
    """
    given = ~np.asarray(some.values)
    ranking = np.repeat(np.arange(len(some.start)), some.size)
    order = np.lexsort((given, ranking))
    ordered = given[order]
    place = np.arange(len(given)) - some.start[ranking]
    # Rankings so far apart that what was highest in one is below all of the next.
    apart = ranking << 32
    ranks = np.maximum.accumulate(ordered - place + apart) - apart + place
    same = (ordered[1:] == ordered[:-1]) & (ranking[1:] == ranking[:-1])
    shared = np.zeros(len(given), np.bool_)
    shared[order[1:][same]] = True
    shared[order[:-1][same]] = True
    rank = np.empty_like(order)
    rank[order] = ranks
    return rank, shared


def _places(group: Ints, words: Sequence[npt.NDArray[Any]], asked: Ints) -> Ints:
    """Where some rows would be if rows were sorted by words within their group."""
    order = np.lexsort((*(word[asked] for word in words[::-1]), group[asked]))
    position = _search(group, words, asked[order])
    count = np.cumsum(np.bincount(position, minlength=len(asked) + 1))
    place = np.empty_like(asked)
    place[order] = count[:-1] - 1
    return place


def _search(group: Ints, words: Sequence[npt.NDArray[Any]], asked: Ints) -> Ints:
    """For each row, the first of the sorted rows of its group that is not before it."""
    count = np.bincount(group[asked], minlength=int(group[-1]) + 1)
    high = np.cumsum(count)[group]
    low = high - count[group]
    for _ in range(int(count.max()).bit_length()):
        middle = (low + high) >> 1
        other = asked.take(middle, mode="clip")
        before, equal = middle >= high, np.ones(len(group), np.bool_)
        for word in words:
            theirs = word.take(other)
            before |= equal & (theirs < word)
            equal &= theirs == word
        low = np.where(before & (middle < high), middle + 1, low)
        high = np.where(before, high, middle)
    return low


def repeated_rows(some: Rankings, keys: Keys, policies: Policies) -> tuple[Ints, Ints]:
    """The rows whose document has a better rank in the same ranking; then all ranks."""
    rows = repeated(keys)
    if not len(rows):
        return rows, rows
    ranks, _ = rank_rows(some, np.arange(len(keys)), policies)
    _, document = some.documents.view(rows).distinct()
    document += some.ranking(rows) * len(rows)
    order = np.lexsort((ranks[rows], document))
    again: Bools = document[order[1:]] == document[order[:-1]]
    return rows[order[1:][again]], ranks


def repeated_pair(some: Rankings) -> tuple[str, str] | None:
    """The query and the document of some pair that occurs more than once."""
    again, _ = repeated_rows(some._replace(values=None), some.keys(), Policies())
    if not len(again):
        return None
    return some.names_of(again.min(keepdims=True))


def pair_keys(documents: Keys, query: Ints) -> Keys:
    """One key for query and document; its upper bits depend on all bits of both."""
    return (query.astype(np.uint64) * _QUERY + documents) * MIX
