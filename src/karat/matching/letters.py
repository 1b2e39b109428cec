"""The letters of texts: what is left when spaces, punctuation, accents and markup go.

Coverage compares letters, so that no line break, quote, dash, Markdown mark or missing
space can hide a passage. Every letter knows which character it came from.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from html import unescape
from typing import Final

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Ints
from karat.matching.contains import splits_number, splits_word
from karat.matching.normaliser import DASHES, LINKS, SINGLE_QUOTES, codes_of

Codes = npt.NDArray[np.uint32]

_TAGS: Final = re.compile(
    r"</?(?:a|abbr|article|b|blockquote|body|br|caption|center|cite|code|dd|div|dl|dt|"
    r"em|figcaption|figure|font|footer|h[1-6]|head|header|hr|html|i|img|li|link|main|"
    r"mark|meta|nav|ol|p|pre|q|ref|s|section|small|span|strong|sub|sup|table|tbody|td|"
    r"tfoot|th|thead|title|tr|tt|u|ul|wbr)(?:\s[^<>]{0,1000})?/?>",
    re.IGNORECASE,
)
_ENTITIES: Final = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z]\w{1,31});")
_FOOTNOTES: Final = re.compile(r"\[\^?\d{1,3}\]")

_STRAIGHT: Final = (
    dict.fromkeys(SINGLE_QUOTES, "'")
    | dict.fromkeys((*DASHES, "\uff0d"), "-")
    | {"\uff0b": "+", "\uff1c": "<", "\uff1d": "=", "\uff1e": ">"}
)
_CROOKED: Final = re.compile(f"[{''.join(_STRAIGHT)}]")
_COMPARISONS: Final = (
    {sign: sign for sign in ("<", ">", "=", "==", "<=", ">=", "!=")}
    | {"===": "==", "\u2260": "!=", "<>": "!=", "=<": "<=", "\u2264": "<="}
    | {"\u2266": "<=", "\u2265": ">=", "\u2267": ">="}
)
# A comparison, but no arrow; `++` or `#` at the end of a word; a number in brackets.
# Each begins with one plain character and looks back from there: that is faster.
_SIGNS: Final = re.compile(
    "[<>=!\u2260\u2264\u2265\u2266\u2267]"
    r"(?<![-<>=!].)[<>=]{0,2}(?![<>=]|-\D)"
    r"|[+#](?<=[^\W\d_].)[+#]*(?!\w)|\[\^?\d{1,3}\]"
)
_SIGN_CHARACTERS = "<>=!+#[&\u2260\u2264\u2265\u2266\u2267\uff0b\uff1c\uff1d\uff1e"
# A sign belongs to a number when no word or number ends just before it.
_NUMBERS: Final = re.compile(r"(?:(?<![\w.,)])-)?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?")
_GROUPED: Final = re.compile(r"(?<=\d)[.,](?=\d{3}(?:\D|$))")
_PLAIN_LETTERS: Final = bytes(
    c for c in range(128) if chr(c).isalnum() or chr(c) in "%$"
)
_NO_LETTERS: Final = bytes(c for c in range(128) if c not in _PLAIN_LETTERS)
_LOWER: Final = bytes(c + 32 if 65 <= c <= 90 else c for c in range(256))  # noqa: PLR2004
# Letters with a stroke or ligatures, which no decomposition takes apart.
_PLAIN: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe"}
    | {"\u0131": "i", "ħ": "h", "ŧ": "t", "\u0640": None}
)
# Marks in these blocks are letters: Indic scripts, Thai, Khmer and the like.
_FIRST_WRITTEN, _LAST_WRITTEN = "\u0900", "\u1aaf"
# Korean syllables are compared as wholes; their parts are put together first.
_HANGUL = ("\uac00", "\ud7a3")
_JAMO: Final = re.compile("[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]")
_SYLLABLES: Final = re.compile("(?s).[\u1160-\u11ff\ud7b0-\ud7ff]*")

# The letter of each character, filled in when a character is first met, 0 for none.
# Where a character has several letters the first is marked, and the others stand apart.
_UNKNOWN: Final = np.uint32(0xFFFFFFFF)
_MORE: Final = np.uint32(1 << 31)
_table: Final[Codes] = np.full(0x110000, _UNKNOWN, np.uint32)
_others: Final[dict[int, str]] = {}

# Thirty-two bits are fast, and enough: what is found is compared letter by letter.
_BASE: Final = np.uint32(0x85EBCA6B)
_SLOT_BITS = 16
_TO_SLOT: Final = np.uint32(32 - _SLOT_BITS)


class Letters:
    """A text, its letters, and where each of them stands in it."""

    def __init__(self, text: str, letters: str | None = None) -> None:
        self.original = text
        self.letters = _letters(text) if letters is None else letters

    @classmethod
    def read(cls, texts: Sequence[str]) -> list["Letters"]:
        """Many texts; what is not plain English is read at once, which is faster."""
        whole = "\n".join(texts)
        if whole.isascii():
            return [cls(text) for text in texts]
        letters, places = _trace("\n".join(map(_blank_markup, texts)))
        ends = np.cumsum([len(text) + 1 for text in texts])
        cuts = np.searchsorted(places, ends).tolist()
        return [
            cls(text, letters[low:high])
            for text, low, high in zip(texts, [0, *cuts], cuts, strict=False)
        ]

    @cached_property
    def places(self) -> list[int]:
        """Which character each letter came from."""
        places: list[int] = _trace(_blank_markup(self.original))[1].tolist()
        return places

    @cached_property
    def text(self) -> str:
        """The text, as long as it was, with plain quotes and dashes, without markup."""
        text = _blank_markup(self.original, footnotes=False)
        if text.isascii():
            return text
        return _CROOKED.sub(lambda crooked: _STRAIGHT[crooked[0]], text)

    @cached_property
    def signs(self) -> dict[tuple[int, str], str]:
        """Comparisons, `++` and bracketed numbers, by the next letter and by kind."""
        if not any(map(self.original.__contains__, _SIGN_CHARACTERS)):
            return {}
        signs = {}
        for match in _SIGNS.finditer(self.text):
            sign = match[0]
            kind = "+" if sign[0] in "+#" else "[" if sign[0] == "[" else "<"
            if kind != "<" or sign in _COMPARISONS:
                place = bisect_left(self.places, match.end())
                signs[place, kind] = _COMPARISONS.get(sign, sign)
        return signs

    def stretch(self, start: int, end: int) -> tuple[int, int]:
        """From where to where letters stand, with a sign before them, `++` after."""
        text = self.text
        low, high = self.places[start], self.places[end - 1] + 1
        if low and text[low - 1] in "-+" and splits_number(text, low):
            low -= 1
        while high < len(text) and (
            unicodedata.category(text[high])[0] == "M"
            or (text[high] in "+#" and splits_word(text, high))
        ):
            high += 1
        return low, high


def _letters(text: str) -> str:
    clean = _blank_markup(text)
    if clean.isascii():
        return clean.encode().translate(_LOWER, _NO_LETTERS).decode()
    return _trace(clean)[0]


def numbers_in(text: str) -> list[str]:
    """The numbers of a text with plain dashes, in one form, with their signs."""
    plain = unicodedata.normalize("NFKC", text)
    return [_GROUPED.sub("", n).replace(",", ".") for n in _NUMBERS.findall(plain)]


def _trace(text: str) -> tuple[str, Ints]:
    """The letters of a text, and which character each came from."""
    origin = None
    if _JAMO.search(text):
        pieces = _SYLLABLES.findall(text)
        starts = np.cumsum([0, *map(len, pieces)])[:-1]
        pieces = [unicodedata.normalize("NFC", piece) for piece in pieces]
        origin = np.repeat(starts, [*map(len, pieces)])
        text = "".join(pieces)
    codes = codes_of(text)
    spelled = _table[codes]
    if (unknown := spelled == _UNKNOWN).any():
        _learn({*codes[unknown].tolist()})
        spelled = _table[codes]
    places = np.flatnonzero(spelled)
    letters = spelled[places]
    if letters.max(initial=0) >= _MORE:
        rows = np.flatnonzero(letters >= _MORE)
        letters[rows] &= ~_MORE
        others = [_others[code] for code in codes[places[rows]].tolist()]
        rows = np.repeat(rows, [*map(len, others)])
        letters = np.insert(letters, rows + 1, codes_of("".join(others)))
        places = np.insert(places, rows + 1, places[rows])
    if origin is not None:
        places = origin[places]
    return letters.tobytes().decode("utf-32-le", "surrogatepass"), places


def _learn(codes: set[int]) -> None:
    for code in codes:
        spelled = _spell(chr(code))
        if len(spelled) > 1:
            _others[code] = spelled[1:]
        first = ord(spelled[0]) if spelled else 0
        _table[code] = first | (int(_MORE) if len(spelled) > 1 else 0)


def _spell(char: str) -> str:
    """A character in letters."""
    if _HANGUL[0] <= char <= _HANGUL[1]:
        return char
    parts = unicodedata.normalize("NFKD", char).casefold()
    parts = unicodedata.normalize("NFKD", parts).translate(_PLAIN)
    return "".join(map(_letter, parts))


def _letter(char: str) -> str:
    kind = unicodedata.category(char)
    if kind == "Nd":
        return str(unicodedata.decimal(char))
    if kind[0] == "M":
        return char if _FIRST_WRITTEN <= char <= _LAST_WRITTEN else ""
    return char if kind[0] in "LN" or kind in {"So", "Sc"} or char in "%\u2030" else ""


def _blank_markup(text: str, *, footnotes: bool = True) -> str:
    """The text, as long as it was, with spaces where markup stood."""
    if "<" in text or "&" in text or "](" in text:
        parts, at = [], 0
        for low, high, char in sorted(_markup(text)):
            if low >= at:
                parts += [text[at:low], char.ljust(high - low)]
                at = high
        text = "".join(parts) + text[at:]
    if footnotes and "[" in text:
        text = _FOOTNOTES.sub(lambda mark: " " * len(mark[0]), text)
    return text


def _markup(text: str) -> Iterator[tuple[int, int, str]]:
    """What is no text, from where to where, and the character it stands for."""
    for link in LINKS.finditer(text) if "](" in text else ():
        yield link.start(), link.start(1), ""
        yield link.end(1), link.end(), ""
    yield from ((*tag.span(), "") for tag in _TAGS.finditer(text))
    for entity in _ENTITIES.finditer(text):
        if len(char := unescape(entity[0])) == 1:
            yield *entity.span(), char


def _hash_grams(codes: Codes, n: int) -> Codes:
    """A hash of the n letters from each place on."""
    size = max(0, len(codes) - n + 1)
    hashes = np.zeros(size, np.uint32)
    for place in range(n):
        hashes = hashes * _BASE + codes[place : place + size]
    return hashes


def grams_of(letters: Sequence[str], n: int) -> tuple[Ints, Codes]:
    """The n-grams of texts: in which text each lies, and its hash."""
    size = np.fromiter(map(len, letters), np.int64, len(letters))
    count = np.maximum(size - n + 1, 0)
    text = np.repeat(np.arange(len(count)), count)
    skipped = (size - count).cumsum() - size + count
    return text, _hash_grams(codes_of("".join(letters)), n)[
        np.arange(len(text)) + skipped[text]
    ]


def seeds(
    sought: Sequence[str], documents: Sequence[str], n: int
) -> list[dict[int, list[tuple[int, int, int]]]]:
    """Where texts share n letters or more with documents, by text and by document."""
    # What goes on over the end of a text is found nowhere.
    ours, theirs = (
        codes_of(end.join((*texts, "")))
        for end, texts in (("\0", sought), ("\1", documents))
    )
    first_ours, first_theirs = (
        np.cumsum([0, *(len(text) + 1 for text in texts)])
        for texts in (sought, documents)
    )
    key, hashes = _hash_grams(ours, n), _hash_grams(theirs, n)
    taken = np.zeros(1 << _SLOT_BITS, np.bool_)
    taken[key >> _TO_SLOT] = True
    place = np.flatnonzero(taken.take(hashes >> _TO_SLOT))
    document = first_theirs.searchsorted(place, "right") - 1
    # Each n-gram of a document once: texts that repeat themselves stay cheap. In order,
    # because what is sorted is found faster.
    pair = (document << 32) | hashes[place]
    new = pair.argsort(kind="stable")
    new = new[_differs(pair[new])]
    place, document, hashes = place[new], document[new], hashes[place[new]]
    order = np.argsort(key)
    key = key[order]
    low = key.searchsorted(hashes)
    count = key.searchsorted(hashes, "right") - low
    hit = np.repeat(np.arange(len(place)), count)
    at = order[np.arange(len(hit)) + np.repeat(low - count.cumsum() + count, count)]
    row = np.argsort(document[hit] * len(ours) + at)
    at, place = at[row], place[hit[row]]
    starts = np.flatnonzero(_differs(at - np.arange(len(at))) | _differs(place - at))
    size = np.diff(np.append(starts, len(at))) + n - 1
    at, place = at[starts], place[starts]
    text = first_ours.searchsorted(at, "right") - 1
    document = first_theirs.searchsorted(place, "right") - 1
    at, place = at - first_ours[text], place - first_theirs[document]
    columns = (column.tolist() for column in (text, document, at, at + size, place))
    runs: list[dict[int, list[tuple[int, int, int]]]] = [{} for _ in sought]
    for number, other, *run in zip(*columns, strict=True):
        runs[number].setdefault(other, []).append(tuple(run))
    return runs


def _differs(values: Ints) -> Bools:
    """Whether each value differs from the one before; the first does."""
    differs = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs
