"""Labelled documents, and where they are: found by key in bulk, checked by bytes.

The labels of the queries of a block have 64-bit keys mixed from query and document.
A row is first looked up in a bit table small enough for the processor's cache, which
lets through all labelled rows and few others; the survivors are searched among the
sorted keys, and what is left is compared byte by byte. So the answer is exact.
"""

from collections.abc import Sequence
from functools import cached_property
from zlib import crc32

import numpy as np

from karat.data.arrays import Floats, Ints, count_by
from karat.data.labels import ColumnLabels
from karat.data.runs import Labels
from karat.reading.columnar.blocks import Block, ranges
from karat.reading.columnar.byte_column import (
    MIX,
    ByteColumn,
    ColumnNames,
    Keys,
    NumberColumn,
)

__all__ = ["LabelIndex", "find_repeated", "row_keys"]

_QUERY = np.uint64(0x9E3779B97F4A7C15)
_SLOTS_PER_LABEL = 64
_FEWEST_BITS, _MOST_BITS = 10, 20


class LabelIndex:
    """Labels laid out so that those of any query are at hand.

    Labels are numbered over all queries in order, queries from 0.

    Attributes:
        query: the query of each label.
        grade: its grade.
        labels: they themselves, in columns.
        size: how many queries there are.
        judged: whether those of documents judged non-relevant are looked up too.
    """

    def __init__(self, labels: Labels, *, judged: bool = True) -> None:
        self.labels = labels = ColumnLabels.of(labels)
        self.query: Ints = np.repeat(np.arange(len(labels)), labels.count)
        self.grade: Floats = labels.grade
        self._label = (
            np.arange(len(self.grade)) if judged else np.flatnonzero(self.grade > 0)
        )
        self._names = labels.names
        self.judged = judged
        self.size = len(labels)
        self._end = np.cumsum(count_by(self.query[self._label], len(labels)))
        self._begin = np.concatenate((np.zeros(1, np.int64), self._end[:-1]))

    def numbers(self, names: Sequence[str]) -> Ints:
        """The number of each query; -1 for one without labels."""
        queries = self.labels.queries
        if not isinstance(queries, ColumnNames):
            known = self.labels.numbers
            return np.array([known.get(name, -1) for name in names], np.int64)
        keys, order = self._query_keys
        wanted = type(queries.column).of(names).keys()
        begin, end = (np.searchsorted(keys, wanted, side=s) for s in ("left", "right"))
        owner, at = ranges(begin, end)
        place = order[at]
        found = queries.column.view(place).names()
        same = [
            names[row] == name for row, name in zip(owner.tolist(), found, strict=True)
        ]
        number = np.full(len(names), -1)
        number[owner[same]] = place[same]
        return number

    @cached_property
    def _query_keys(self) -> tuple[Keys, Ints]:
        """The keys of all queries in order, and whose each is."""
        queries = self.labels.queries
        assert isinstance(queries, ColumnNames)  # noqa: S101
        keys = queries.column.keys()
        order = np.argsort(keys)
        return keys[order], order

    @cached_property
    def digest(self) -> int:
        """A number that other labels hardly have."""
        parts = (self.query, self.grade, self._texts.keys())
        digest = 0
        for part in parts:
            digest = crc32(part.tobytes(), digest)
        return digest

    @cached_property
    def _documents(self) -> ByteColumn:
        return self._texts.view(self._label)

    @cached_property
    def _texts(self) -> ByteColumn:
        names = self._names
        if isinstance(names, ColumnNames):
            return names.column.texts()
        return ByteColumn.of(names)

    @cached_property
    def _text_keys(self) -> Keys:
        return self._documents.keys()

    @cached_property
    def _number_keys(self) -> Keys:
        names = self._names
        if isinstance(names, ColumnNames) and isinstance(names.column, NumberColumn):
            return names.column.view(self._label).keys()
        return NumberColumn.of(names).keys()[self._label]

    def find(self, block: Block, keys: Keys) -> tuple[Ints, Ints]:
        """The rows of a block that are labelled, and the number of each one's label.

        Args:
            block: whole rankings, all of labelled queries.
            keys: what `row_keys` makes of them.
        """
        documents = block.documents
        texts = isinstance(documents, ByteColumn)
        owner, label = ranges(self._begin[block.query], self._end[block.query])
        label_keys = (self._text_keys if texts else self._number_keys)[label]
        rows, at = _equal_pairs(keys, _mix(label_keys, owner))
        same = block.group(rows) == owner[at]
        same &= documents.view(rows).texts().equal(self._documents.view(label[at]))
        return rows[same], self._label[label[at[same]]]


def row_keys(block: Block) -> Keys:
    """A key for each row, equal where query and document are."""
    return _mix(block.documents.keys(), block.row_group)


def _mix(documents: Keys, query: Ints) -> Keys:
    """One key for query and document; its upper bits depend on all bits of both."""
    keys = query.astype(np.uint64)
    keys *= _QUERY
    keys += documents
    keys *= MIX
    return keys


def _equal_pairs(keys: Keys, wanted: Keys) -> tuple[Ints, Ints]:
    """All pairs of a key and a wanted key that are equal, by their indices."""
    if len(wanted) > len(keys):
        # Of the two sides the smaller is sorted.
        return _equal_pairs(wanted, keys)[::-1]
    bits = (len(wanted) * _SLOTS_PER_LABEL).bit_length()
    bits = min(max(bits, _FEWEST_BITS), _MOST_BITS)
    shift = np.uint64(64 - bits)
    slots = np.zeros(1 << bits, np.bool_)
    slots[wanted >> shift] = True
    row = np.flatnonzero(slots.take((keys >> shift).view(np.int64)))
    order = np.argsort(wanted)
    wanted = wanted[order]
    begin = np.searchsorted(wanted, keys[row], side="left")
    end = np.searchsorted(wanted, keys[row], side="right")
    owner, at = ranges(begin, end)
    return row[owner], order[at]


def find_repeated(keys: Keys) -> Ints:
    """The rows whose key occurs more than once, ascending.

    Every row writes its number into a slot chosen by its key; the last writer stays.
    Equal keys share a slot, so of two rows with one key either the later stayed and
    the other sees it there, or both were displaced and meet when the few displaced
    are sorted. This looks at most rows twice, where sorting them all would take longer.
    """
    size = len(keys)
    bits = (size * 4).bit_length()
    slot = (keys >> np.uint64(64 - bits)).view(np.int64)
    row = np.arange(size, dtype=np.int32 if size < 1 << 31 else np.int64)
    last = np.empty(1 << bits, row.dtype)
    last[slot] = row
    winner = last.take(slot)
    beaten = np.flatnonzero(winner != row)
    lost = keys[beaten]
    ordered = np.sort(lost)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    stayed = lost[lost == keys[winner[beaten]]]
    # Not made distinct: np.unique would import numpy.ma, which takes longer than this.
    repeated = np.concatenate((twice, stayed))
    return np.flatnonzero(np.isin(keys, repeated)) if len(repeated) else beaten[:0]
