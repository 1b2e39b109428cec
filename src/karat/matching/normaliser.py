"""One normal form for all text matching, and the way back to the original."""

import re
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Final, NamedTuple

import numpy as np

from karat.data.arrays import Ints

__all__ = ["BROKEN", "LINKS", "Normal", "clusters", "fold", "normalise"]

_CACHED_CHARACTERS = 1 << 24

_SINGLE_QUOTES = "\u2018\u2019\u201a\u201b\u2039\u203a\u2032\u00b4\uff07"
_DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\uff02"
_DASHES = (
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b\ufe31\ufe32\ufe58\ufe63"
)
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u061c\ufe0e\ufe0f" + "".join(
    map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
_FOLDED: Final = (
    dict.fromkeys(_SINGLE_QUOTES, "'")
    | dict.fromkeys(_DOUBLE_QUOTES, '"')
    | dict.fromkeys(_DASHES, "-")
    | dict.fromkeys(_INVISIBLE, "")
)
_ODD: Final = re.compile(f"[{''.join(_FOLDED)}]")

LINKS: Final = re.compile(
    r"!?\[(?<!\w\[)(?<!\w!\[)([^\[\]]{0,500})\]"
    r"\((?:[^()\s]|\([^()\s]*\)){0,1000}(?:\s+\"[^\"]{0,300}\")?\)"
)
"""A Markdown link or image; group 1 is what a reader sees of it."""


BROKEN: Final = re.compile(r"-(?<=[^\W\d_]-)[ \t]*\r?\n[ \t]*(?=[^\W\d_])")
"""A hyphen and a line break inside a word."""


class Rule(NamedTuple):
    """Replaces what a pattern finds, in texts that hold the needle."""

    needle: str
    pattern: re.Pattern[str]
    template: str = ""


def _rule(needle: str, pattern: str, template: str = "") -> Rule:
    return Rule(needle, re.compile(pattern), template)


# Ordered: what spans lines first, then what starts them, then what stands in them. The
# text is led by a line feed, so that its first line is like the others. Each pattern
# begins with one plain character and looks back from there: that is ten times faster.
_RULES: Final = (
    _rule("\u00ad", r"\u00ad(?:[ \t]*\r?\n[ \t]*)?"),
    _rule("-", r"-(?<=\w-)[ \t]*\r?\n[ \t]*(?=[A-Z\d])", "-"),
    Rule("-", BROKEN),
    _rule("```", r"\n[ \t]*`{3,}[ \t]*[\w+-]*\s*(?=\n|\Z)", "\n"),
    _rule("~~~", r"\n[ \t]*~{3,}[ \t]*[\w+-]*\s*(?=\n|\Z)", "\n"),
    _rule("\n", r"\n[ \t|:]*[-=*_][-=*_ \t|:\r]{2,}(?=\n|\Z)", "\n"),
    _rule("\n", r"\n(?:[ \t]*(?:#{1,6}(?=[ \t])|>|[-+*\u2022](?=[ \t])))+[ \t]*", "\n"),
    Rule("](", LINKS, r"\1"),
    _rule(
        "*",
        r"\*(?:(?<![^\W_]\*)(?<![\\*]\*)\*{0,2}(?=[^\s*])"
        r"|(?<=[^\s*\\]\*)\*{0,2}(?![^\W_]|\*))",
    ),
    _rule("_", r"_(?:(?<![\w\\]_)_{0,2}(?=[^\s_])|(?<=[^\s_\\]_)_{0,2}(?!\w))"),
    _rule("`", r"`+"),
    _rule("~~", r"~~"),
    _rule("|", r"\|(?:(?<=\s\|)\|*|\|*(?=\s|\Z))", " "),
    _rule("#", r"#(?<=\s#)#{0,5}(?=\s)"),
    _rule("\\", r"\\(?=[^\w\s]|_)"),
)
_SPACE: Final = re.compile(r"\s+")


def fold(text: str) -> str:
    r"""The text in normal form, in which all text matchers compare.

    NFKC; quotes, dashes and invisible characters folded; hyphenated line breaks
    joined; Markdown marks stripped; white space collapsed; case folded.

    Example:
        >>> fold("## The “trans-\nport” of **GOODS**, see [here](https://a.b)")
        'the "transport" of goods, see here'
    """
    return _cache.get(text)


def _fold(text: str) -> str:
    if not text.isascii():
        text = _ODD.sub(lambda odd: _FOLDED[odd[0]], text)
        text = unicodedata.normalize("NFKC", text)
    text = "\n" + text
    for needle, pattern, template in _RULES:
        if needle in text:
            text = pattern.sub(template, text)
    return " ".join(text.split()).casefold()


def normalise(text: str) -> "Normal":
    """The normal form of a text, with the way back to the original.

    Example:
        >>> normal = normalise("A **bold** claim")
        >>> normal.text, normal.span(2, 6)
        ('a bold claim', (4, 8))
    """
    return Normal(text, fold(text))


@dataclass(frozen=True, eq=False)
class Normal:
    """A text in normal form; where each of its characters came from is found lazily.

    Attributes:
        original: the text as it was.
        text: its normal form.
    """

    original: str
    text: str

    @property
    def offsets(self) -> Ints:
        """Index in the original of the character each normal one came from."""
        return self._map[0]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the original that became `text[start:end]`."""
        starts, ends = self._map
        if start >= end:
            place = int(starts[start]) if start < len(starts) else len(self.original)
            return place, place
        return int(starts[start]), int(ends[end - 1])

    @cached_property
    def _map(self) -> tuple[Ints, Ints]:
        traced = _Traced(self.original)
        if not self.original.isascii():
            traced.replace_each(traced.text, lambda char: _FOLDED.get(char, char))
            traced.replace_each(
                clusters(traced.text), lambda c: unicodedata.normalize("NFKC", c)
            )
        traced.lead("\n")
        for needle, pattern, template in _RULES:
            if needle in traced.text:
                traced.substitute(pattern, template)
        traced.substitute(_SPACE, " ")
        traced.strip()
        traced.replace_each(traced.text, str.casefold)
        return np.array(traced.starts, np.int64), np.array(traced.ends, np.int64)


class _Traced:
    """A text under change whose characters remember where they came from."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = list(range(len(text)))
        self.ends = list(range(1, len(text) + 1))

    def lead(self, char: str) -> None:
        """Put a character before the first."""
        self.text = char + self.text
        self.starts, self.ends = [0, *self.starts], [0, *self.ends]

    def replace_each(self, pieces: Iterable[str], change: Callable[[str], str]) -> None:
        """Change piece after piece; the pieces add up to the text."""
        texts, starts, ends, at = [], [], [], 0
        for piece in pieces:
            changed, stop = change(piece), at + len(piece)
            texts.append(changed)
            if len(changed) == len(piece):
                starts += self.starts[at:stop]
                ends += self.ends[at:stop]
            else:
                starts += [self.starts[at]] * len(changed)
                ends += [self.ends[stop - 1]] * len(changed)
            at = stop
        self.text, self.starts, self.ends = "".join(texts), starts, ends

    def substitute(self, pattern: re.Pattern[str], template: str) -> None:
        """What `pattern.sub(template, text)` does."""
        texts, starts, ends, at = [], [], [], 0
        for found in pattern.finditer(self.text):
            first, last = found.span()
            kept = slice(at, first)
            texts.append(self.text[kept])
            starts += self.starts[kept]
            ends += self.ends[kept]
            inner = found.span(1) if template == r"\1" else None
            if inner:
                texts.append(found[1])
                starts += self.starts[slice(*inner)]
                ends += self.ends[slice(*inner)]
            elif template:
                texts.append(template)
                starts.append(self.starts[first])
                ends.append(self.ends[last - 1])
            at = last
        self.text = "".join(texts) + self.text[at:]
        self.starts, self.ends = starts + self.starts[at:], ends + self.ends[at:]

    def strip(self) -> None:
        """What `text.strip()` does."""
        first = len(self.text) - len(self.text.lstrip())
        last = max(first, len(self.text.rstrip()))
        self.text = self.text[first:last]
        self.starts, self.ends = self.starts[first:last], self.ends[first:last]


def clusters(text: str) -> Iterable[str]:
    """Pieces of a text that NFKC treats one by one.

    Marks, the later letters of a Korean syllable and the half-width voicing marks may
    join the character before them.
    """
    start = 0
    for place, char in enumerate(text):
        if place > start and not (char >= "\u0300" and _joins(char)):
            yield text[start:place]
            start = place
    if text:
        yield text[start:]


def _joins(char: str) -> bool:
    return (
        unicodedata.category(char)[0] == "M"
        or "\u1160" <= char <= "\u11ff"
        or "\u314f" <= char <= "\u3163"
        or char in "\uff9e\uff9f"
        or "\uffc2" <= char <= "\uffdc"
    )


class _Cache:
    """Folded texts, the least recently used forgotten beyond so many characters."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(self, text: str) -> str:
        with self._lock:
            folded = self._texts.get(text)
            if folded is not None:
                self._texts.move_to_end(text)
                return folded
        folded = _fold(text)
        with self._lock:
            if text not in self._texts:
                self._texts[text] = folded
                self._size += len(text) + len(folded)
            while self._size > self._capacity:
                old, short = self._texts.popitem(last=False)
                self._size -= len(old) + len(short)
        return folded


_cache: Final = _Cache(_CACHED_CHARACTERS)
