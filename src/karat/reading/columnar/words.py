"""Words of a text in bulk: compared by key, put in order, read as numbers.

A text begins and ends with `PADDING`, so that eight bytes may be read around any word.
"""

import re
from collections.abc import Iterator
from math import isfinite, nan
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Floats, Ints

__all__ = ["MIX", "PADDING", "Keys", "Words", "number", "numbers"]

Keys: TypeAlias = npt.NDArray[np.uint64]
Rows: TypeAlias = Ints | Bools | slice

PADDING = b"\n" * 32
MIX = np.uint64(0xFF51AFD7ED558CCD)

_FIRST = np.array([(1 << 8 * i) - 1 for i in range(9)], np.uint64)
_LAST = np.array([((1 << 8 * i) - 1) << 8 * (8 - i) for i in range(9)], np.uint64)
_LONG = 128

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(rb"(?=.*[0-9])[0-9]*(?:\.[0-9]*)?")
_LAYOUTS = 64
_MOST_DIGITS = 19
_ZEROS = np.uint64(0x3030303030303030)
_SIXES = np.uint64(0x0606060606060606)
_NIBBLES = np.uint64(0xF0F0F0F0F0F0F0F0)
_EXACT = np.uint64(1 << 53)
_SPLITTER = float((1 << 27) + 1)


class Words:
    """Some words of a text, given by where they start and how long they are.

    Attributes:
        text: bytes with `PADDING` at both ends. Words hold no NUL byte.
        start: position of each word.
        length: its number of bytes.
        eights: the eight bytes from each position of the text on, as one integer whose
            lowest byte is the first.
    """

    __slots__ = ("eights", "length", "start", "text")

    def __init__(self, text: bytes, start: Ints, length: Ints) -> None:
        self.text = text
        self.start = start
        self.length = length
        self.eights: Keys = np.ndarray((len(text) - 7,), "<u8", text, strides=(1,))

    @classmethod
    def of(cls, names: list[str]) -> "Words":
        """Names as words of a text of their own."""
        text = "".join(names)
        parts: list[str] | list[bytes] = names
        if not text.isascii():
            parts = [name.encode("utf-8", "surrogatepass") for name in names]
        length = np.fromiter(map(len, parts), np.int64, len(parts))
        data = PADDING + text.encode("utf-8", "surrogatepass") + PADDING
        return cls(data, np.cumsum(length) - length + len(PADDING), length)

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: Rows) -> "Words":
        return Words(self.text, self.start[rows], self.length[rows])

    def to_list(self) -> list[bytes]:
        """The words themselves."""
        ends = (self.start + self.length).tolist()
        text = self.text
        return [
            text[start:end]
            for start, end in zip(self.start.tolist(), ends, strict=True)
        ]

    def keys(self) -> Keys:
        """A number for each word: its bytes if they are eight at most, else a hash."""
        pieces = self.pieces()
        _, key = next(pieces)
        for rows, piece in pieces:
            mixed = key[rows] * MIX
            mixed ^= mixed >> np.uint64(29)
            key[rows] = mixed ^ piece
        return key

    def equal(self, others: "Words") -> Bools:
        """Whether each word is the same as the other in its row, byte by byte."""
        same: Bools = self.length == others.length
        rows = np.flatnonzero(same)
        pairs = zip(self[rows].pieces(), others[rows].pieces(), strict=True)
        for (part, mine), (_, theirs) in pairs:
            same[rows[part]] &= mine == theirs
        return same

    def first_of_each(self) -> Ints:
        """The rows whose word differs from that of the row before; the first is one."""
        if not len(self):
            return np.zeros(0, np.int64)
        key = self.keys()
        new = np.ones(len(self), np.bool_)
        new[1:] = key[1:] != key[:-1]
        if self.length.max() > 8:  # noqa: PLR2004  a hash may hide a difference
            rows = np.flatnonzero(~new)
            new[rows] = ~self[rows].equal(self[rows - 1])
        return np.flatnonzero(new)

    def falling_order(self, group: Ints) -> Ints:
        """Rows sorted by group, and within it by word, the last in byte order first."""
        if self.length.max(initial=0) > _LONG:
            ranks = {word: -i for i, word in enumerate(sorted(set(self.to_list())))}
            falling = [np.array([ranks[word] for word in self.to_list()])]
        else:
            falling = []
            for rows, piece in self.pieces():
                column = np.zeros(len(self), np.uint64)
                column[rows] = piece.byteswap()
                falling.insert(0, ~column)
        return np.lexsort((*falling, group))

    def pieces(self) -> Iterator[tuple[Rows, Keys]]:
        """The words eight bytes at a time, with the rows whose words are that long."""
        rows: Rows = slice(None)
        start, length = self.start, self.length
        yield rows, self.eights[start] & _FIRST.take(length, mode="clip")
        for at in range(8, int(length.max(initial=0)), 8):
            longer = length > at
            if not longer.all():
                rows = (
                    np.flatnonzero(longer) if isinstance(rows, slice) else rows[longer]
                )
                start, length = start[longer], length[longer]
            yield rows, self.eights[start + at] & _FIRST.take(length - at, mode="clip")


def number(word: bytes) -> float:
    """The value of a finite decimal number; anything else is a ValueError."""
    value = float(word) if _NUMBER.fullmatch(word) else nan
    if not isfinite(value):
        raise ValueError(word)
    return value


def numbers(words: Words) -> Floats:
    """The values of many decimal numbers, each rounded as `float` rounds it.

    Numbers with the same count of decimals are read together. What does not fit such a
    layout (an exponent, more than 19 digits) is read by itself.

    Raises:
        ValueError: a word is not a finite decimal number.
    """
    sign = np.frombuffer(words.text, np.uint8)[words.start]
    minus = sign == ord("-")
    signed = minus | (sign == ord("+"))
    digits = Words(words.text, words.start + signed, words.length - signed)
    value = np.empty(len(words))
    alone: list[int] = []
    rest = np.arange(len(words))
    for _ in range(_LAYOUTS):
        if not len(rest):
            break
        middle = len(rest) // 2
        sample = digits[rest[middle : middle + 1]].to_list()[0]
        odd = np.ones(len(rest), np.bool_)
        if len(sample) <= _MOST_DIGITS + 1 and _DIGITS.fullmatch(sample):
            decimals = len(sample) - sample.find(b".") - 1 if b"." in sample else -1
            alike = digits if len(rest) == len(digits) else digits[rest]
            value[rest], odd = _decimals(alike, decimals, len(sample))
        if odd[middle]:
            alone.append(int(rest[middle]))
            odd[middle] = False
        rest = rest[odd]
    if minus.any():
        value[minus] *= -1
    alone += rest.tolist()
    value[alone] = [number(word) for word in words[np.array(alone, int)].to_list()]
    return value


def _decimals(words: Words, decimals: int, size: int) -> tuple[Floats, Bools]:
    """Values of words with so many digits after the point, and which words are others.

    Eight digits are read at a time, from the last to the first, and no more than a word
    of the given size needs; -1 decimals means without a point.
    """
    length = words.length
    end = words.start + length
    parts = [
        words.eights[end - 8 - at] & _LAST.take(length - at, mode="clip")
        for at in range(0, size, 8)
    ]
    odd = length > 8 * len(parts)
    if decimals >= 0:
        odd |= _take_out_point(parts, decimals)
        length = length - 1
        parts = parts[: -(-int(length.max()) // 8)]
    odd |= (length < 1) | (length > _MOST_DIGITS)
    whole = np.zeros(len(words), np.uint64)
    for place, part in enumerate(parts):
        digits = _ZEROS & _LAST.take(length - 8 * place, mode="clip")
        digits ^= part
        odd |= (((digits + _SIXES) | digits) & _NIBBLES) != 0
        whole += _eight_digits(digits) * np.uint64(10 ** (8 * place))
    power = 10.0 ** max(decimals, 0)
    value = whole / power
    wide = np.flatnonzero((whole > _EXACT) & ~odd)
    if len(wide):
        value[wide], unsure = _divide(whole[wide], power)
        odd[wide[unsure]] = True
    return value, odd


def _take_out_point(parts: list[Keys], decimals: int) -> Bools:
    """Close the gap at the point; says where there is no point in that place."""
    place, byte = divmod(decimals, 8)
    at = 8 * (7 - byte)
    before = np.uint64((1 << at) - 1)
    missing: Bools = (parts[place] >> np.uint64(at)) & np.uint64(255) != ord(".")
    for index in range(place, len(parts)):
        part = parts[index]
        moved = (part & before if index == place else part) << np.uint64(8)
        if index == place:
            moved |= part & _LAST[byte]
        if index + 1 < len(parts):
            moved |= parts[index + 1] >> np.uint64(56)
        parts[index] = moved
    return missing


def _eight_digits(digits: Keys) -> Keys:
    """Eight digits, the first in the lowest byte, as a number: pairs, fours, all."""
    digits = digits * np.uint64(2561)
    digits >>= np.uint64(8)
    digits &= np.uint64(0x00FF00FF00FF00FF)
    digits *= np.uint64(6553601)
    digits >>= np.uint64(16)
    digits &= np.uint64(0x0000FFFF0000FFFF)
    digits *= np.uint64(42949672960001)
    digits >>= np.uint64(32)
    return digits


def _divide(whole: Keys, power: float) -> tuple[Floats, Bools]:
    """Divide integers beyond 2**53, and say where the rounding is too close to call.

    The quotient's error is found exactly (Dekker's product) and added back, once a
    little too small and once too large: where both round alike, the truth does too.
    """
    high = whole.astype(np.float64)
    low = (whole - high.astype(np.uint64)).view(np.int64).astype(np.float64)
    quotient = high / power
    product = quotient * power
    head = quotient * _SPLITTER
    head -= head - quotient
    tail = quotient - head
    power_head = power * _SPLITTER - (power * _SPLITTER - power)
    power_tail = power - power_head
    error = head * power_head - product + head * power_tail + tail * power_head
    error += tail * power_tail
    correction = (high - product - error + low) / power
    below = quotient + correction * (1 - 1e-12)
    above = quotient + correction * (1 + 1e-12)
    return above, below != above
