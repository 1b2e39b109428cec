"""Where words and numbers begin and end, in every script, in normalised text."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

__all__ = ["finds", "numbers_of", "splits_number", "splits_word"]

# Scripts written without spaces, or with endings attached to words as in Korean: any
# place between two of their characters may be the edge of a word.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_SPACED_WORD: Final = rf"(?:(?![{_UNSPACED}])[^\W_])+"
_SPACELESS: Final = rf"[{_UNSPACED}]"
_POINTS: Final = ".,"
_NEGATED: Final = "non-"
_MINUS: Final = dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2212), "-")
# A sign belongs to a number when no word or number ends just before it.
_NUMBERS: Final = re.compile(r"(?:(?<![\w.,)])-|[<>]=? ?)?\d+(?:[.,]\d+)*")
_GROUPED: Final = re.compile(r"(?<=\d)[.,](?=\d{3}(?:\D|$))")


def splits_word(text: str, place: int) -> bool:
    """Whether the place before `text[place]` lies inside a word, number or character.

    A word goes on over `n't` and after `non-`, so that nothing is cut from its
    negation.

    Example:
        >>> [splits_word(t, 2) for t in ("illegal", "no cost", "15 days", "北京是")]
        [True, False, False, False]
    """
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if unicodedata.category(after)[0] == "M" or splits_number(text, place):
        return True
    if after == "'":
        return text.startswith("'t", place) and before == "n"
    if before == "-":
        return text.endswith(_NEGATED, 0, place)
    return (
        after.isalnum()
        and (before.isalnum() or unicodedata.category(before)[0] == "M")
        and not re.search(_SPACELESS, before + after)
    )


def splits_number(text: str, place: int) -> bool:
    """Whether the place lies inside a number, its sign, point and separators included.

    Example:
        >>> [splits_number(t, 2) for t in ("150", "1.5", "1,500", " -5", "5 euros")]
        [True, True, True, True, False]
    """
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if after.isdigit():
        earlier = text[place - 2] if place > 1 else " "
        return (
            before.isdigit()
            or (before in _POINTS and earlier.isdigit())
            or (before in "-+" and not earlier.isalnum())
        )
    return (
        before.isdigit()
        and after in _POINTS
        and place + 1 < len(text)
        and text[place + 1].isdigit()
    )


def numbers_of(text: str) -> list[str]:
    """The numbers of a text in one form, with their signs.

    Example:
        >>> numbers_of("from \u22125 to 1,500.0 (p < 0.05)")
        ['-5', '1500.0', '<0.05']
    """
    plain = unicodedata.normalize("NFKC", text).translate(_MINUS)
    found = (match[0].replace(" ", "") for match in _NUMBERS.finditer(plain))
    return [_GROUPED.sub("", number).replace(",", ".") for number in found]


def finds(part: str, text: str, splits: Callable[[str, int], bool]) -> bool:
    """Whether the text holds the part with both edges where nothing is split."""
    start = text.find(part)
    while start >= 0:
        if not splits(text, start):
            if not splits(text, start + len(part)):
                return True
            start += 1
        while splits(text, start):
            # At once past the word: a megabyte of one letter is a word, too.
            rest = re.compile(_SPACED_WORD).match(text, start)
            start = rest.end() if rest else start + 1
        start = text.find(part, start)
    return False
