"""Columns of ids as flat arrays, so that millions are compared without Python objects.

An id has a 64-bit key. Equal ids have equal keys; that equal keys mean equal ids is for
whoever looks at the few survivors to check, by name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Ints
from karat.reading.columnar.words import Keys, Words

__all__ = ["Column", "NumberColumn", "Rows", "TextColumn", "join_columns", "starts"]

Bytes: TypeAlias = npt.NDArray[np.uint8]
Rows: TypeAlias = Ints | slice
"""Which rows: their positions, or a range of them."""

_WORD = 8
_NUMBER = re.compile(r"-?[0-9]{1,20}")


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Texts as stretches of one byte array; a stretch may serve several rows.

    Attributes:
        data: UTF-8 bytes, and eight more that belong to no text: keys are read a word
            at a time, and the last word may reach beyond the last text.
        start: where each text begins.
        length: its number of bytes.
    """

    data: Bytes
    start: Ints
    length: Ints

    @classmethod
    def of(cls, texts: Sequence[str]) -> "TextColumn":
        """A column of Python strings.

        Example:
            >>> TextColumn.of(["d7", "d12"]).names(slice(None))
            ['d7', 'd12']
        """
        encoded = [text.encode("utf-8", "surrogateescape") for text in texts]
        length = np.fromiter(map(len, encoded), np.int64, len(encoded))
        data = np.frombuffer(b"".join((*encoded, bytes(_WORD))), np.uint8)
        return cls(data, np.cumsum(length) - length, length)

    @classmethod
    def between(cls, data: Bytes, cuts: npt.NDArray[Any]) -> "TextColumn":
        """A column of adjoining texts, given where each begins and the last ends."""
        first, last = int(cuts[0]), int(cuts[-1])
        start = cuts[:-1].astype(np.int64)
        if len(data) < last + _WORD:
            padded = np.zeros(last - first + _WORD, np.uint8)
            padded[: last - first] = data[first:last]
            data = padded
            start -= first
        return cls(data, start, np.diff(cuts).astype(np.int64, copy=False))

    def __len__(self) -> int:
        return len(self.start)

    def keys(self) -> Keys:
        """A number for every text, the same for equal texts."""
        return self._words().keys()

    def firsts(self) -> Ints:
        """The rows whose text differs from that of the row before; the first is one."""
        # A text that ends in NUL bytes differs from one without only in its length.
        first = np.zeros(len(self), np.bool_)
        first[1:] = np.diff(self.length) != 0
        first[self._words().first_of_each()] = True
        return np.flatnonzero(first)

    def distinct(self, rows: Ints) -> tuple[Ints, Ints]:
        """One row for each text among some rows, and which of them each row has."""
        words = self._words()
        keys = words[rows].keys()
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        same = words[rows].equal(words[rows[first[which]]])
        # Different texts may have the same key; then every row stands for itself.
        return (rows[first], which) if same.all() else (rows, np.arange(len(rows)))

    def falling(self, rows: Ints, group: Ints) -> Ints:
        """The order of some rows by group, and within it by text, the last first."""
        some = self.copy(rows)
        return Words(some.data.tobytes(), some.start, some.length).falling_order(group)

    def names(self, rows: Rows) -> list[str]:
        """The texts of some rows as Python strings."""
        start = self.start[rows]
        ends = (start + self.length[rows]).tolist()
        data = self.data.data
        return [
            str(data[begin:end], "utf-8", "surrogateescape")
            for begin, end in zip(start.tolist(), ends, strict=True)
        ]

    def view(self, rows: Rows) -> "TextColumn":
        """Some rows over the same bytes."""
        return TextColumn(self.data, self.start[rows], self.length[rows])

    def copy(self, rows: Rows) -> "TextColumn":
        """Some rows with only their own bytes, so that the rest can be freed."""
        source, length = self.start[rows], self.length[rows]
        start = np.cumsum(length) - length
        size = int(length.sum())
        data = np.zeros(size + _WORD, np.uint8)
        data[:size] = self.data[np.repeat(source - start, length) + np.arange(size)]
        return TextColumn(data, start, length)

    def _words(self) -> Words:
        return Words(cast("bytes", self.data.data), self.start, self.length)


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """Ids that are whole numbers; as everywhere, 7 and "7" are one id."""

    values: npt.NDArray[np.integer[Any]]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "NumberColumn":
        """A column of Python strings; those that no number is written as become 0."""
        # Names are compared wherever keys are: a wrong number costs time, no more.
        numbers = [int(text) if _NUMBER.fullmatch(text) else 0 for text in texts]
        return cls(np.array([n & 0xFFFF_FFFF_FFFF_FFFF for n in numbers], np.uint64))

    def __len__(self) -> int:
        return len(self.values)

    def keys(self) -> Keys:
        """A number for every id, the same for equal ids."""
        return self.values.astype(np.uint64)

    def firsts(self) -> Ints:
        """The rows whose id differs from that of the row before; the first is one."""
        return starts(self.values)

    def distinct(self, rows: Ints) -> tuple[Ints, Ints]:
        """One row for each id among some rows, and which of them each row has."""
        _, first, which = np.unique(
            self.values[rows], return_index=True, return_inverse=True
        )
        return rows[first], which

    def falling(self, rows: Ints, group: Ints) -> Ints:
        """The order of some rows by group, and within it as texts, the last first."""
        texts = TextColumn.of(self.names(rows))
        return texts.falling(np.arange(len(rows)), group)

    def names(self, rows: Rows) -> list[str]:
        """The ids of some rows as Python strings."""
        return [str(value) for value in self.values[rows].tolist()]

    def view(self, rows: Rows) -> "NumberColumn":
        """Some rows, over the same memory where possible."""
        return NumberColumn(self.values[rows])

    def copy(self, rows: Rows) -> "NumberColumn":
        """Some rows in memory of their own."""
        return NumberColumn(self.values[rows].copy())


def starts(values: npt.NDArray[Any]) -> Ints:
    """The rows whose value differs from that of the row before; the first is one."""
    new = np.ones(len(values), np.bool_)
    new[1:] = values[1:] != values[:-1]
    return np.flatnonzero(new)


Column: TypeAlias = TextColumn | NumberColumn


def join_columns(parts: Sequence[Column]) -> Column:
    """One column after the other; numbers become texts where both occur."""
    numbers = [part.values for part in parts if isinstance(part, NumberColumn)]
    if len(numbers) == len(parts) > 0 and len({n.dtype for n in numbers}) == 1:
        return NumberColumn(np.concatenate(numbers))
    texts = [
        part if isinstance(part, TextColumn) else TextColumn.of(part.names(slice(None)))
        for part in parts
    ] or [TextColumn.of([])]
    sizes = np.array([len(text.data) for text in texts])
    shifts = np.cumsum(sizes) - sizes
    return TextColumn(
        np.concatenate([text.data for text in texts]),
        np.concatenate([t.start + s for t, s in zip(texts, shifts, strict=True)]),
        np.concatenate([text.length for text in texts]),
    )
