"""One normal form for all text matching."""

import re
import unicodedata
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Ints

WIDE_WEIGHT = 2
"""A Chinese character, or a Japanese letter, says as much as so many others."""

# Of texts up to so many characters the latest are kept: a few megabytes in all.
_LONGEST_CACHED = 1 << 11

SINGLE_QUOTES = "\u2018\u2019\u201a\u201b\u2039\u203a\u2032\u00b4\uff07"
_DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\uff02"
DASHES = (
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b\ufe31\ufe32\ufe58\ufe63"
)
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u061c\ufe0e\ufe0f" + "".join(
    map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
_FOLDED: Final = (
    dict.fromkeys(SINGLE_QUOTES, "'")
    | dict.fromkeys(_DOUBLE_QUOTES, '"')
    | dict.fromkeys(DASHES, "-")
    | dict.fromkeys(_INVISIBLE, "")
)
_ODD: Final = re.compile(f"[{''.join(_FOLDED)}]")

LINKS: Final = re.compile(
    r"!?\[(?<!\w\[)(?<!\w!\[)([^\[\]]{0,500})\]"
    r"\((?:[^()\s]|\([^()\s]*\)){0,1000}(?:\s+\"[^\"]{0,300}\")?\)"
)
"""A Markdown link or image; group 1 is what a reader sees of it."""

# Ordered: what spans lines first, then what starts them, then what stands in them. The
# text is led by a line feed, so that its first line is like the others. Each pattern
# begins with one plain character and looks back from there: that is ten times faster.
# What a text must hold, what is replaced in it, and by what.
_RULES: Final = (
    ("\u00ad", r"\u00ad(?:[ \t]*\r?\n[ \t]*)?", ""),
    ("-", r"-(?<=\w-)[ \t]*\r?\n[ \t]*(?=[A-Z\d])", "-"),
    ("-", r"-(?<=[^\W\d_]-)[ \t]*\r?\n[ \t]*(?=[^\W\d_])", ""),
    ("```", r"\n[ \t]*`{3,}[ \t]*[\w+-]*\s*(?=\n|\Z)", "\n"),
    ("~~~", r"\n[ \t]*~{3,}[ \t]*[\w+-]*\s*(?=\n|\Z)", "\n"),
    ("\n", r"\n[ \t|:]*[-=*_][-=*_ \t|:\r]{2,}(?=\n|\Z)", "\n"),
    ("\n", r"\n(?:[ \t]*(?:#{1,6}(?=[ \t])|>|[-+*\u2022](?=[ \t])))+[ \t]*", "\n"),
    ("](", LINKS, r"\1"),
    (
        "*",
        (
            r"\*(?:(?<![^\W_]\*)(?<![\\*]\*)\*{0,2}(?=[^\s*])"
            r"|(?<=[^\s*\\]\*)\*{0,2}(?![^\W_]|\*))"
        ),
        "",
    ),
    ("_", r"_(?:(?<![\w\\]_)_{0,2}(?=[^\s_])|(?<=[^\s_\\]_)_{0,2}(?!\w))", ""),
    ("`", r"`+", ""),
    ("~~", r"~~", ""),
    ("|", r"\|(?:(?<=\s\|)\|*|\|*(?=\s|\Z))", " "),
    ("#", r"#(?<=\s#)#{0,5}(?=\s)", ""),
    ("\\", r"\\(?=[^\w\s]|_)", ""),
)


def fold(text: str) -> str:
    r"""The text in normal form, in which all text matchers compare.

    NFKC; quotes, dashes and invisible characters folded; hyphenated line breaks
    joined; Markdown marks stripped; white space collapsed; case folded.

    Example:
        >>> fold("## The “trans-\nport” of **GOODS**, see [here](https://a.b)")
        'the "transport" of goods, see here'
    """
    return _fold_again(text) if len(text) <= _LONGEST_CACHED else _fold(text)


def _fold(text: str) -> str:
    if not text.isascii():
        text = _ODD.sub(lambda odd: _FOLDED[odd[0]], text)
        text = unicodedata.normalize("NFKC", text)
    text = "\n" + text
    for needle, pattern, template in _RULES:
        if needle in text:
            text = re.sub(pattern, template, text)
    return " ".join(text.split()).casefold()


_fold_again = lru_cache(maxsize=1 << 13)(_fold)


def codes_of(text: str) -> npt.NDArray[np.uint32]:
    """The code point of each character."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def weigh(letters: str) -> Ints:
    """How much each letter says; a Korean syllable no more than a letter."""
    codes = codes_of(letters)
    wide = ((codes >= 0x2E80) & (codes < 0xA960)) | (codes >= 0x20000)  # noqa: PLR2004
    return np.where(wide, WIDE_WEIGHT, 1)


def is_wide(text: str) -> bool:
    """Whether most letters of a text are syllables or words, as in Chinese."""
    return not text.isascii() and 2 * weigh(text).sum() > (1 + WIDE_WEIGHT) * len(text)
