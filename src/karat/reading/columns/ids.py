"""Columns of ids as flat arrays, so that millions are compared without Python objects.

An id has a 64-bit key. Equal ids have equal keys; that equal keys mean equal ids is for
whoever looks at the few survivors to check, byte by byte.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Ints

Bytes: TypeAlias = npt.NDArray[np.uint8]
Keys: TypeAlias = npt.NDArray[np.uint64]
Rows: TypeAlias = Ints | Bools | slice
"""Which rows: their positions, whether each is one, or a range of them."""

MIX = np.uint64(0xFF51AFD7ED558CCD)
FIRST = np.array([(1 << 8 * i) - 1 for i in range(9)], np.uint64)
"""What is left of eight bytes when only so many of the first are kept."""

_WORD = 8
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,19}", re.ASCII)
_LONG = 128
_CACHED = 1 << 16


class ByteColumn:
    """Texts as parts of one byte array; a part may serve several rows.

    Eight bytes are read at a time: as many more lie behind the last text.
    """

    __slots__ = ("data", "length", "start")

    def __init__(self, data: Bytes, start: Ints, length: Ints) -> None:
        self.data = data
        self.start = start
        self.length = length

    @classmethod
    def of(cls, texts: Iterable[str]) -> "ByteColumn":
        """A column of Python strings."""
        parts = [*map(_encoded, texts)]
        length = np.fromiter(map(len, parts), np.int64, len(parts))
        data = np.frombuffer(b"".join((*parts, bytes(_WORD))), np.uint8)
        return cls(data, np.cumsum(length) - length, length)

    @classmethod
    def between(cls, data: Bytes, cuts: npt.NDArray[Any]) -> "ByteColumn":
        """A column of adjoining texts, given where each begins and the last ends."""
        first, last = int(cuts[0]), int(cuts[-1])
        start = cuts[:-1].astype(np.int64)
        if len(data) < last + _WORD:
            data = np.concatenate((data[first:last], np.zeros(_WORD, np.uint8)))
            start -= first
        return cls(data, start, np.diff(cuts).astype(np.int64, copy=False))

    def __len__(self) -> int:
        return len(self.start)

    def view(self, rows: Rows) -> "ByteColumn":
        """Some rows over the same bytes."""
        return ByteColumn(self.data, self.start[rows], self.length[rows])

    def texts(self) -> "ByteColumn":
        """The same ids as texts."""
        return self

    def names(self) -> list[str]:
        """The texts as Python strings."""
        ends = (self.start + self.length).tolist()
        pairs = zip(self.start.tolist(), ends, strict=True)
        data = self.data.data
        # All bytes at once, if they are not many more than those of the rows.
        if len(ends) > _LONG and len(data) <= 4 * int(self.length.sum()):
            with suppress(UnicodeDecodeError):
                text = str(data, "ascii")
                return [text[begin:end] for begin, end in pairs]
        return [
            str(data[begin:end], "utf-8", "surrogateescape") for begin, end in pairs
        ]

    def keys(self) -> Keys:
        """A number for each text: its bytes if they are eight at most, else a hash."""
        if len(self) > 2 * _CACHED:
            # Arrays that the processor's cache holds are done in half the time.
            cuts = range(0, len(self), _CACHED)
            parts = [self.view(slice(at, at + _CACHED)).keys() for at in cuts]
            return np.concatenate(parts)
        words = self.words()
        _, key = next(words)
        for rows, word in words:
            mixed = key[rows] * MIX
            mixed ^= mixed >> np.uint64(29)
            key[rows] = mixed ^ word
        return key

    def equal(self, column: "Column") -> Bools:
        """Whether each text is the same as the other in its row, byte by byte."""
        others = column.texts()
        same: Bools = self.length == others.length
        rows = np.flatnonzero(same)
        pairs = zip(self.view(rows).words(), others.view(rows).words(), strict=True)
        for (part, mine), (_, theirs) in pairs:
            same[rows[part]] &= mine == theirs
        return same

    def starts(self) -> Ints:
        """The rows whose text differs from that of the row before; the first is one."""
        key = self.keys()
        new = np.ones(len(self), np.bool_)
        # NUL bytes at the end of a text do not show in its key.
        new[1:] = (key[1:] != key[:-1]) | (self.length[1:] != self.length[:-1])
        if self.length.max(initial=0) > _WORD:
            # A hash may hide a difference.
            rows = np.flatnonzero(~new)
            new[rows] = ~self.view(rows).equal(self.view(rows - 1))
        return np.flatnonzero(new)

    def distinct(self) -> tuple[Ints, Ints]:
        """The rows in which a text occurs first, and which of them each row repeats."""
        first, which = distinct(self.keys())
        same = first[which]
        rows = np.flatnonzero(same != np.arange(len(self)))
        if self.view(rows).equal(self.view(same[rows])).all():
            return first, which
        # Different texts have the same key: numbers do not.
        numbers: dict[str, int] = {}
        each = [numbers.setdefault(name, len(numbers)) for name in self.names()]
        return distinct(np.array(each))

    def descending_words(self) -> list[Keys]:
        """Columns by which texts are in order, the last in byte order first."""
        if self.length.max(initial=0) > _LONG:
            names = [*map(_encoded, self.names())]
            ranks = {name: i for i, name in enumerate(sorted({*names}, reverse=True))}
            return [np.array([ranks[name] for name in names], np.uint64)]
        columns = []
        for rows, word in self.words():
            columns.append(np.zeros(len(self), np.uint64))
            columns[-1][rows] = word.byteswap()
        return [~column for column in columns]

    def words(self) -> Iterator[tuple[Rows, Keys]]:
        """The texts eight bytes at a time, with the rows whose texts are that long."""
        rows: Rows = slice(None)
        start, length = self.start, self.length
        yield rows, self.eights(start) & FIRST.take(length, mode="clip")
        for at in range(8, int(length.max(initial=0)), 8):
            longer = length > at
            if not longer.all():
                rows = (
                    np.flatnonzero(longer) if isinstance(rows, slice) else rows[longer]
                )
                start, length = start[longer], length[longer]
            yield rows, self.eights(start + at) & FIRST.take(length - at, mode="clip")

    def eights(self, start: Ints) -> Keys:
        """The eight bytes from each place on, as a number whose lowest is the first."""
        # Two aligned words and three shifts take half the time of one unaligned word.
        words = self.data[: len(self.data) & -8].view("<u8")
        place, shift = start >> 3, ((start & 7) << 3).view(np.uint64)
        word: Keys = words.take(place, mode="clip") >> shift
        word |= words.take(place + 1, mode="clip") << (np.uint64(64) - shift)
        return word


class NumberColumn:
    """Ids that are whole numbers; as everywhere, 7 and "7" are one id."""

    __slots__ = ("values",)

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def view(self, rows: Rows) -> "NumberColumn":
        """Some rows, over the same memory where possible."""
        return NumberColumn(self.values[rows])

    def texts(self) -> ByteColumn:
        """The same ids as texts."""
        return ByteColumn.of(self.names())

    def names(self) -> list[str]:
        """The ids as Python strings."""
        return [*map(str, self.values.tolist())]

    def keys(self) -> Keys:
        """A number for each id: that of `number_keys`."""
        return self.values.astype(np.uint64)

    def equal(self, column: "Column") -> Bools:
        """Whether each id is the same as the other in its row."""
        return self.texts().equal(column)

    def starts(self) -> Ints:
        """The rows whose id differs from that of the row before; the first is one."""
        return starts(self.values)

    def distinct(self) -> tuple[Ints, Ints]:
        """The rows in which an id occurs first, and which of them each row repeats."""
        return distinct(self.values)

    def descending_words(self) -> list[Keys]:
        """Columns by which ids are in order as texts, the last first."""
        return self.texts().descending_words()


Column: TypeAlias = ByteColumn | NumberColumn


def number_keys(texts: Iterable[str]) -> Keys:
    """The keys of ids among whole numbers; 0 where no number is written so."""
    # Ids are compared wherever keys are: a wrong key costs time, no more.
    numbers = (int(text) if _NUMBER.fullmatch(text) else 0 for text in texts)
    return np.array([n & 0xFFFF_FFFF_FFFF_FFFF for n in numbers], np.uint64)


def starts(values: npt.NDArray[Any]) -> Ints:
    """The rows whose value differs from that of the row before; the first is one."""
    new = np.ones(len(values), np.bool_)
    new[1:] = values[1:] != values[:-1]
    return np.flatnonzero(new)


def first_rows(values: npt.NDArray[Any]) -> Ints:
    """For each row the first one with the same value.

    Every row writes its number into a slot chosen by its value, from the last to the
    first, which stays. Rows that find another value in their slot choose again. Sorting
    the values would take many times longer.
    """
    rows = np.arange(len(values), dtype=np.int32 if len(values) < 1 << 31 else np.int64)
    first = rows.astype(np.int64)
    bits = (4 * len(values)).bit_length()
    table = np.empty(1 << bits, rows.dtype)
    keys = values.astype(np.uint64) * MIX
    while len(rows):
        slot = (keys >> np.uint64(64 - bits)).view(np.int64)
        table[slot[::-1]] = rows[::-1]
        winner = table.take(slot)
        beaten = np.flatnonzero(winner != rows)
        rows, winner = rows[beaten], winner[beaten]
        same = values[winner] == values[rows]
        first[rows[same]] = winner[same]
        rows, keys = rows[~same], keys[beaten[~same]]
        keys = (keys ^ (keys >> np.uint64(29))) * MIX
    return first


def distinct(values: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """The rows in which a value occurs first, and which of them each row repeats."""
    owner = first_rows(values)
    new = owner == np.arange(len(values))
    return np.flatnonzero(new), (np.cumsum(new) - 1)[owner]


def join_columns(parts: Sequence[ByteColumn]) -> ByteColumn:
    """One column of texts after the other."""
    texts = [part for part in parts if len(part)]
    if len(texts) < 2:  # noqa: PLR2004
        return texts[0] if texts else ByteColumn.of([])
    data, start, end = [], [], 0
    for text in texts:
        first = int(text.start.min())
        last = int((text.start + text.length).max()) + _WORD
        data.append(text.data[first:last])
        start.append(text.start + (end - first))
        end += last - first
    length = np.concatenate([text.length for text in texts])
    return ByteColumn(np.concatenate(data), np.concatenate(start), length)


def join_ids(parts: Sequence[Column]) -> Column:
    """One column of ids after the other."""
    numbers = [part.values for part in parts if isinstance(part, NumberColumn)]
    if len(numbers) == len(parts) and len({some.dtype for some in numbers}) == 1:
        return NumberColumn(np.concatenate(numbers))
    return join_columns([part.texts() for part in parts])


def repeated(values: npt.NDArray[Any]) -> Ints:
    """The rows whose value occurs more than once, ascending."""
    first = first_rows(values)
    later = np.flatnonzero(first != np.arange(len(values)))
    some = np.zeros(len(values) if len(later) else 0, np.bool_)
    some[later] = some[first[later]] = True
    return np.flatnonzero(some)


def ranges(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """All numbers in some ranges; before them, which range each is in."""
    count = end - begin
    owner = np.repeat(np.arange(len(count)), count)
    shift = begin - (np.cumsum(count) - count)
    return owner, np.arange(len(owner)) + shift[owner]


def stable_order(numbers: Ints) -> Ints:
    """The order that sorts small whole numbers; equal ones stay as they are.

    NumPy sorts numbers of 16 bits by radix, many times faster than wider ones.
    """
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    for shift in range(16, int(numbers.max(initial=0)).bit_length(), 16):
        digits = (numbers[order] >> shift).astype(np.uint16)
        order = order[np.argsort(digits, kind="stable")]
    return order


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
