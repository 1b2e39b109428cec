"""A table of labels that tells for millions of rows at once which are labelled.

Each label has a 64-bit key mixed from its query and its document. A row is first looked
up in a bit table small enough for the processor's cache, which lets through all
labelled rows and few others; the survivors are searched among the sorted keys, and
what is left is compared name by name. So the answer is exact.
"""

from functools import cached_property
from itertools import chain
from operator import eq
from threading import Lock

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.runs import Labels
from karat.reading.columnar.byte_column import Column, NumberColumn, TextColumn
from karat.reading.columnar.words import Keys

__all__ = ["LabelTable", "find_repeated", "mix"]

_QUERY = np.uint64(0x9E3779B97F4A7C15)
_DOCUMENT = np.uint64(0xD6E8FEB86659FD93)
_SLOTS_PER_LABEL = 64
_FEWEST_BITS, _MOST_BITS = 12, 22


class LabelTable:
    """Labels made ready to be looked up row by row.

    Labels are numbered over all queries in order, queries from 0.

    Attributes:
        queries: the number of each labelled query.
        query: the query of each label.
        grade: its grade.
    """

    def __init__(self, labels: Labels, *, judged: bool = True) -> None:
        count = np.fromiter(map(len, labels.values()), np.int64, len(labels))
        size = int(count.sum())
        grades = chain.from_iterable(wanted.values() for wanted in labels.values())
        self._labels = list(labels.values())
        self._lock = Lock()
        self._first = np.cumsum(count) - count
        self.queries = {query: number for number, query in enumerate(labels)}
        self.query: Ints = np.repeat(np.arange(len(labels)), count)
        self.grade: Floats = np.fromiter(grades, np.float64, size)
        wanted = slice(None) if judged else np.flatnonzero(self.grade > 0)
        self._label = np.arange(size)[wanted]

    @cached_property
    def _names(self) -> list[str]:
        return list(chain.from_iterable(self._labels))

    @cached_property
    def _texts(self) -> "_Index":
        return self._index(TextColumn.of(self._names))

    @cached_property
    def _numbers(self) -> "_Index":
        return self._index(NumberColumn.of(self._names))

    def _index(self, names: Column) -> "_Index":
        keys = mix(names.keys(), self.query)[self._label]
        order = np.argsort(keys)
        return _Index(keys[order], self._label[order])

    def find(self, documents: Column, query: Ints, keys: Keys) -> tuple[Ints, Ints]:
        """The rows that are labelled, and the number of each one's label.

        Args:
            documents: the document of each row.
            query: the number of each row's query.
            keys: the two mixed.
        """
        with self._lock:
            # Threads ask at the same time; the first makes the index for all.
            index = self._texts if isinstance(documents, TextColumn) else self._numbers
        rows, label = index.search(keys)
        found = documents.names(rows)
        wanted = [self._names[number] for number in label.tolist()]
        same = self.query[label] == query[rows]
        same &= np.fromiter(map(eq, found, wanted), np.bool_, len(rows))
        for at in np.flatnonzero(~same).tolist():
            # Two ids with one key: rare beyond measure, but then ask by name.
            label[at] = self._ask(int(query[rows[at]]), found[at])
        known = label >= 0
        return rows[known], label[known]

    def _ask(self, query: int, document: str) -> int:
        wanted = self._labels[query] if query >= 0 else {}
        if document not in wanted:
            return -1
        number = int(self._first[query]) + list(wanted).index(document)
        at = int(np.searchsorted(self._label, number))
        return number if at < len(self._label) and self._label[at] == number else -1


class _Index:
    """Sorted keys with a bit table in front."""

    def __init__(self, keys: Keys, label: Ints) -> None:
        bits = (len(keys) * _SLOTS_PER_LABEL).bit_length()
        bits = min(max(bits, _FEWEST_BITS), _MOST_BITS)
        self._shift = np.uint64(64 - bits)
        self._slots: Bools = np.zeros(1 << bits, np.bool_)
        self._slots[keys >> self._shift] = True
        self._keys = keys
        self._label = label

    def search(self, keys: Keys) -> tuple[Ints, Ints]:
        """The rows whose key is here, and a label with that key."""
        slot = (keys >> self._shift).view(np.int64)
        rows = np.flatnonzero(self._slots.take(slot))
        at = np.searchsorted(self._keys, keys[rows])
        at[at == len(self._keys)] = 0
        hit = self._keys[at] == keys[rows] if len(self._keys) else np.zeros(0, np.bool_)
        return rows[hit], self._label[at[hit]]


def mix(documents: Keys, query: Ints) -> Keys:
    """One key for query and document; the upper bits depend on every bit of both."""
    keys = query.astype(np.uint64)
    keys *= _QUERY
    keys ^= documents
    keys *= _DOCUMENT
    return keys


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
