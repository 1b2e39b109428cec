"""The letters of texts: what is left when spaces, punctuation and accents go.

Span coverage compares letters, so that no line break, quote, dash, Markdown mark or
missing space can hide a passage, and so that texts cut in two anywhere, even inside a
word, are whole again when they are put one after the other. The letters of a text are
those of its normal form.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Ints
from karat.matching.normaliser import LINKS

__all__ = [
    "GAP",
    "IN_NUMBER",
    "MASKS",
    "WORD",
    "Bytes",
    "Letters",
    "Words",
    "read_letters",
    "spell",
]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

WORD: Final = 8
"""Letters are compared eight bytes at a time."""

MASKS: Final = np.array([(1 << (8 * n)) - 1 for n in range(WORD + 1)], np.uint64)
"""What leaves only the first n bytes of a word."""

_SIGNS = b"%$<"
_SPACE = ord(" ")
# What separates texts until their letters are taken: those that read on, and others.
_NEXT, _ANEW = b"\x04", b"\x05"
_EDGES = _NEXT + _ANEW
GAP: Final = 1
"""Stands between two numbers, so that 5 and 10 are not 510."""
_POINT, _COMMA = 2, 3
_MARKS: Final = {b".": _POINT, b",": _COMMA}

_KEPT = bytes(c for c in range(128) if chr(c).isalnum() or c in _SIGNS)
_LETTERS = _KEPT + bytes(range(128, 256)) + bytes((GAP, _POINT, _COMMA))
_OTHERS: Final = bytes(c for c in range(256) if c not in _LETTERS + _EDGES)
_ONE_EDGE: Final = bytes.maketrans(_ANEW, _NEXT)
_NO_EDGE: Final = bytes.maketrans(_EDGES, b"  ")
# Upper case to lower, whatever is no letter to a space; UTF-8 beyond ASCII stays.
_LOWERED = bytes(
    ord(chr(c).lower()) if c in _KEPT else _SPACE if c < 128 else c  # noqa: PLR2004
    for c in range(256)
)
_SPELLED: Final = bytes(
    c if c in b".," + _EDGES else new for c, new in enumerate(_LOWERED)
)


def _flags(chars: bytes) -> bytes:
    return bytes(c in chars for c in range(256))


# Bytes answer this several times faster than arrays.
_IS_LETTER: Final = _flags(_LETTERS)
_IS_DIGIT: Final = _flags(b"0123456789")
IN_NUMBER: Final = np.frombuffer(_flags(b"0123456789\x02\x03"), np.bool_)
"""Whether a byte may stand in a number: the digits, points and commas."""
_KINDS: Final = bytes(
    ord("1") if c in b"0123456789" else c if c in b"., \x04" else ord("a")
    for c in range(256)
)
_BETWEEN: Final = re.compile(rb"1([., \x04]+)(?=1)")

_FOREIGN: Final = re.compile(rb"[\x80-\xff]+")
# Letters with a stroke or ligatures, which no decomposition takes apart.
_PLAIN: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe"}
    | {"\u0131": "i", "ħ": "h", "ŧ": "t", "\u2044": None, "\u0640": None}
)
# Marks that are accents. Those of Thai, Indic scripts and the like are letters.
_ACCENTS: Final = (
    *((0x0300, 0x036F), (0x0483, 0x0487), (0x0591, 0x05C7), (0x0610, 0x061A)),
    *((0x064B, 0x065F), (0x0670, 0x0670), (0x06D6, 0x06ED), (0x1AB0, 0x1AFF)),
    *((0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE00, 0xFE0F), (0xFE20, 0xFE2F)),
)


class _Spelling(dict[str, str]):
    """Each character beyond ASCII in letters, worked out when it is first met."""

    def __missing__(self, char: str) -> str:
        if char.isspace():
            return self.setdefault(char, " ")
        parts = unicodedata.normalize("NFKD", char).casefold()
        parts = unicodedata.normalize("NFKD", parts).translate(_PLAIN)
        # A spacing accent falls apart into a space and the accent: neither is a letter.
        return self.setdefault(char, "".join(map(_letter, parts.replace(" ", ""))))


def _letter(char: str) -> str:
    kind = unicodedata.category(char)
    if kind == "Nd":
        return str(unicodedata.decimal(char))
    if kind[0] == "M":
        code = ord(char)
        return "" if any(low <= code <= high for low, high in _ACCENTS) else char
    if kind[0] in "LN" or (kind[0] == "S" and kind != "Sk"):
        return char
    if kind[0] == "C" or char in "'\"":
        return ""
    return char if char in ".," else " "


_spelling: Final = _Spelling()


def spell(text: str) -> bytes:
    """A text in letters, with one or more spaces wherever a word ends.

    Points and commas are still there: between digits they are part of a number.

    Example:
        >>> spell("The **transport** of 1,200 “Café” chairs").split()
        [b'the', b'transport', b'of', b'1,200', b'cafe', b'chairs']
    """
    return _encode(text).translate(_SPELLED, b"'")


def _encode(text: str) -> bytes:
    if "](" in text:
        text = LINKS.sub(r"\1", text)
    if text.isascii():
        return text.encode()
    return _FOREIGN.sub(_spell_foreign, text.encode("utf-8", "surrogatepass"))


def _spell_foreign(found: re.Match[bytes]) -> bytes:
    return _spell_few(found[0]) if len(found[0]) <= WORD else _spell_run(found[0])


def _spell_run(run: bytes) -> bytes:
    chars = run.decode("utf-8", "surrogatepass")
    return "".join(map(_spelling.__getitem__, chars)).encode()


# Where a text is in ASCII but for some quotes and dashes, the same few come again.
_spell_few: Final = lru_cache(maxsize=4096)(_spell_run)


@dataclass(frozen=True, eq=False)
class Letters:
    """The letters of texts, one after the other, in UTF-8.

    Inside a number stand points and commas, between two numbers a `GAP`.

    Attributes:
        data: the letters, followed by `WORD` zero bytes.
        ends: where each text ends.
        spelled: the texts they were taken from, in which spaces stand between words.
    """

    data: bytes
    ends: Ints
    spelled: bytes

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.data) - WORD

    @cached_property
    def codes(self) -> Bytes:
        """The letters byte by byte, and the zero bytes after them."""
        return np.frombuffer(self.data, np.uint8)

    @cached_property
    def words(self) -> Words:
        """Eight bytes from each place on, as one number."""
        return np.ndarray((self.size + 1,), "<u8", self.data, strides=(1,))

    @cached_property
    def bounds(self) -> Ints:
        """Where texts begin and end: one more than there are texts."""
        return np.concatenate(([0], self.ends))

    @cached_property
    def place(self) -> Ints:
        """Where in `spelled` each byte stood."""
        return np.flatnonzero(_flagged(self.spelled, _IS_LETTER))

    @cached_property
    def starts(self) -> Bools:
        """Whether a word starts at each byte."""
        starts = np.ones(self.size, np.bool_)
        np.not_equal(self.place[1:] - self.place[:-1], 1, out=starts[1:])
        gaps = np.flatnonzero(self.codes[: self.size] == GAP)
        starts[gaps] = False
        starts[gaps + 1] = True
        return starts

    @cached_property
    def parts(self) -> list[bytes]:
        """The spelled texts, one by one."""
        return self.spelled.translate(_ONE_EDGE).split(_NEXT)

    def between(self, text: int, start: int, end: int) -> list[bytes]:
        """The words of a text between the byte before one place and another place."""
        low, part = int(self.bounds[text]), self.parts[text]
        place = np.flatnonzero(_flagged(part, _IS_LETTER))
        last = int(place[start - low - 1]) + 1 if start > low else 0
        return part[last : int(place[end - low])].translate(None, b".,").split()

    @cached_property
    def digits(self) -> Bools:
        """Which bytes are digits."""
        return _flagged(self.data[:-WORD], _IS_DIGIT)

    @cached_property
    def counted(self) -> Bools:
        """Which bytes count as a character: its first, and no gap between numbers."""
        counted: Bools = self.codes[: self.size] != GAP
        return counted if self.leads is None else counted & self.leads

    def count(self, only: Bools | None = None) -> Ints:
        """The number of characters of each text, or of those that are marked in it."""
        if only is None and self.leads is None:
            gaps = np.flatnonzero(self.codes[: self.size] == GAP)
            return np.diff(self.bounds - np.searchsorted(gaps, self.bounds))
        counted = self.counted if only is None else self.counted & only
        return np.diff(np.concatenate(([0], counted.cumsum()))[self.bounds])

    @cached_property
    def leads(self) -> Bools | None:
        """Whether a character begins at each byte; None if one does at every byte."""
        if self.data.isascii():
            return None
        leads: Bools = (self.codes[: self.size] & 0xC0) != 0x80  # noqa: PLR2004
        return leads


def read_letters(lanes: Sequence[Sequence[str]]) -> Letters:
    """The letters of texts read on, one after the other, as if they were one.

    Args:
        lanes: texts in order; nothing goes on from one lane into the next.
    """
    spelled = _join(lanes).translate(_SPELLED, b"'")
    marked = bytearray(spelled)
    for found in _BETWEEN.finditer(spelled.translate(_KINDS)):
        gap = found[1].translate(None, _EDGES)
        if gap:
            marked[spelled.index(gap[0], found.start(1))] = _MARKS.get(gap, GAP)
    parts = marked.translate(_ONE_EDGE, _OTHERS).split(_NEXT)
    count = sum(map(len, lanes))
    ends = np.fromiter(map(len, parts[:count]), np.int64, count).cumsum()
    return Letters(b"".join(parts) + bytes(WORD), ends, bytes(marked))


def _join(lanes: Sequence[Sequence[str]]) -> bytes:
    parts = [[_encode(text) for text in texts] for texts in lanes if texts]
    joined = _ANEW.join([_NEXT.join(texts) for texts in parts])
    edges = joined.count(_NEXT) + joined.count(_ANEW)
    if edges <= max(0, sum(map(len, parts)) - 1):
        return joined
    # Some text has a control character that separates texts.
    parts = [[text.translate(_NO_EDGE) for text in texts] for texts in parts]
    return _ANEW.join([_NEXT.join(texts) for texts in parts])


def _flagged(letters: bytes, flags: bytes) -> Bools:
    return np.frombuffer(letters.translate(flags), np.bool_)
