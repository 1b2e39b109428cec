"""The matchers that look for one text inside the other: `contains` and `chunk`.

Both compare normalised texts, and ask where words and numbers begin and end, in every
script.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from operator import eq
from typing import Any, ClassVar, Final

import numpy as np

from karat.data.arrays import Bools
from karat.data.gold import Gold
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.runs import Notice, Run
from karat.errors import ParameterError
from karat.matching.normaliser import fold, weigh
from karat.matching.texts import TextMatcher

# Written without spaces, or with endings attached to words as in Korean: any place
# between two of these characters may be the edge of a word.
UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
"""The characters of scripts whose words do not stand apart, for a pattern."""
_SPACED_WORD: Final = rf"(?:(?![{UNSPACED}])[^\W_])+"
_SPACELESS: Final = rf"[{UNSPACED}]"
# Places inside a number: between its digits, sign, point, separators and exponent.
_IN_NUMBER: Final = re.compile(
    r"(?<=\d)(?=\d|[.,]\d|[eE][-+]?\d)|(?<=\d[.,eE])(?=\d)|(?<=\d[eE])(?=[-+]\d)"
    r"|(?<=\d[eE][-+])(?=\d)|(?<=[-+])(?<![^\W_].)(?=\d)"
)
_NEGATED: Final = "non-"
_SUFFIX: Final = r"[+#]+(?!\w)"
# Patterns are compiled when first used: most evaluations match ids.
# A date on a line of its own; a paragraph that begins with the word is none.
_DATE: Final = r"(?im)^[ \t]*date:[^\n]{0,80}$"
_STAMP: Final = r"(?:\[[^\]\n]{1,60}\][ \t]*|\d[\d/.:, \-]{5,40}(?:am|pm)?\t)"
_SPEAKER: Final = (
    rf"(?im)^[ \t]*(?:{_STAMP})?"
    r"(?:user|assistant|system|human|ai|bot|agent|speaker(?:[ _]?[\da-z])?):[ \t]*"
)
# Turns what follows into its opposite. Only words that mean nothing else, of languages
# in which they stand before; Chinese and Thai leave no space.
_NEGATION: Final = (
    r"(?:\b(?:not|no|never|nor|neither|without|cannot|nicht|keine?[mnrs]?|nie|niemals"
    r"|ohne|niet|geen|nooit|inte|ikke|pas|jamais|sans|nunca|sin|senza|sem|n\u00e3o"
    r"|\u043d\u0435|\u0431\u0435\u0437|\u043d\u0438)|n't) $"
    r"|[\u4e0d\u6ca1\u6c92\u65e0\u7121\u672a\u52ff]$|\u0e44\u0e21\u0e48$"
)
_JSON: Final = ('{"', '[{"', '["', '"')
_CONTENT: Final = ("content", "text", "messages", "turns", "dialogue", "value")
# A chunk of this many letters and digits may begin or end inside a word, as those of a
# fixed size do; a shorter one would find itself in words it has nothing to do with.
_LONG = 50
# Letters of an answer that says something: "no" and "N/A" are found by chance.
_BRIEF = 4


class _Folded(TextMatcher):
    """Compares texts in normal form."""

    def read_document(self, text: str) -> str:
        """The text in normal form."""
        return fold(text)

    def read_gold(self, text: str) -> tuple[str, ...]:
        """The text in normal form."""
        return (fold(text),)


@dataclass(frozen=True)
class Contains(_Folded):
    """A document satisfies the gold answer when its text holds one of the answers.

    Both texts are normalised first. All acceptable answers of a query are one gold
    item. An answer begins and ends where words and numbers do; of Chinese, Japanese,
    Korean, Thai and the other scripts whose words do not stand apart nothing more is
    asked. `boundary=none` is plain containment, which finds `5` in `2015`.

    Attributes:
        boundary: `token` for whole words only, or `none`.
    """

    name: ClassVar[str] = "contains"
    reads: ClassVar[tuple[str, ...]] = ("answers",)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"boundary": ("token", "none")}

    boundary: str = "token"

    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matches:
        """Look for the answers, and say which are too brief to mean much."""
        matches = super().match(run, gold, judged=judged, policies=policies)
        queries = gold.queries
        answered = {queries[place] for place in {*matches.hits.query.tolist()}}
        brief = [
            item.text
            for query, items in gold.answers.items()
            for item in items
            if query in answered
            and sum(map(str.isalpha, item.text)) < _BRIEF
            and not any(map(str.isdigit, item.text))
            and item.text.isascii()
        ]
        if not brief:
            return matches
        what = "hold in any text with the word, as 'no' does in 'there is no way'"
        some, one = tuple(map(repr, brief[:3])), what.replace("hold", "holds")
        text, one = f"brief answers {what}", f"brief answer {one}"
        notice = Notice("brief", len(brief), text, some, one)
        return replace(matches, notices=(*matches.notices, notice))

    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        """Whether the document of each pair holds the answer."""
        pairs = zip(golds, documents, strict=True)
        held = (answer in text for answer, text in pairs)
        rows = np.fromiter(held, np.bool_, len(golds))
        if self.boundary == "token":
            for row in np.flatnonzero(rows).tolist():
                rows[row] = finds(golds[row], documents[row], splits_word)
        return rows


@dataclass(frozen=True)
class Chunk(TextMatcher):
    """A document satisfies a gold passage when one text lies in the other.

    Lines that only give a date (`Date: ...`) and the speakers' prefixes (`user:`,
    `[2023/05/30] assistant:`) are taken off both texts, gold written as JSON is read as
    what it says, and both are normalised. Equal texts match. A text inside the other
    must hold `least` letters and digits, begin and end where words and numbers do, and
    not be negated by the word before it. Only a long chunk, of 50 letters and digits or
    more, may be cut from the gold inside a word, but never inside a number. A Chinese
    character counts as two letters.

    Attributes:
        least: letters and digits that a text must hold to be looked for in another.
    """

    name: ClassVar[str] = "chunk"
    reads: ClassVar[tuple[str, ...]] = ("passages",)

    least: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.least) is not int or self.least < 1:
            raise ParameterError(self.name, "least", "an integer >= 1", self.least)

    def read_document(self, text: str) -> str:
        """What was said, in normal form."""
        return fold(_spoken(text))

    def read_gold(self, text: str) -> tuple[str, ...]:
        """What the gold says, in normal form; escaped text is read both ways."""
        readings = (fold(_spoken(reading)) for reading in _unescaped(text))
        return tuple(reading for reading in readings if reading) or (fold(text),)

    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        """Whether one text of each pair lies in the other."""
        pairs = zip(golds, documents, strict=True)
        held = (chunk in gold or gold in chunk for gold, chunk in pairs)
        rows = np.fromiter(held, np.bool_, len(golds))
        for row in np.flatnonzero(rows).tolist():
            rows[row] = self._holds(golds[row], documents[row])
        return rows

    def _holds(self, gold: str, chunk: str) -> bool:
        if gold == chunk:
            return _has_letters(chunk, 1)
        if len(gold) < len(chunk):
            return _has_letters(gold, self.least) and finds(gold, chunk, _cuts)
        cut = _cuts_number if _has_letters(chunk, _LONG) else _cuts
        return _has_letters(chunk, self.least) and finds(chunk, gold, cut)


def _has_letters(text: str, least: int) -> bool:
    letters = "".join(islice(filter(str.isalnum, text), least))
    return bool(weigh(letters).sum() >= least)


def _cuts(text: str, place: int) -> bool:
    return splits_word(text, place) or _negated(text, place)


def _cuts_number(text: str, place: int) -> bool:
    return splits_number(text, place) or _negated(text, place)


def _negated(text: str, place: int) -> bool:
    return re.compile(_NEGATION).search(text, max(0, place - 10), place) is not None


def _spoken(text: str) -> str:
    """The text without dates on lines of their own and without speakers' prefixes."""
    return re.sub(_SPEAKER, "", re.sub(_DATE, "", text))


def _unescaped(text: str) -> tuple[str, ...]:
    """What a text says that may be JSON, or a part of it."""
    bare = text.strip()
    if bare.startswith(_JSON):
        content = "\n".join(_strings(_read_json(bare)))
        if content:
            return (content,)
    elif "\\" in bare:
        content = _read_json(f'"{bare}"')
        # A path such as C:\new reads as escaped, too: either reading will do.
        if isinstance(content, str):
            return (text, content)
    return (text,)


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _strings(value: Any) -> Iterator[str]:
    """The texts in a decoded value; of a message, only what was said."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        content = [value[name] for name in _CONTENT if name in value]
        for inner in content or value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def splits_word(text: str, place: int) -> bool:
    """Whether the place lies inside a word, number or character; `non-` is no end."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if unicodedata.category(after)[0] == "M" or splits_number(text, place):
        return True
    if after == "'":
        return text.startswith("'t", place) and before == "n"
    if before == "-":
        return text.endswith(_NEGATED, 0, place)
    if after in "+#":
        return re.compile(_SUFFIX).match(text, place) is not None and (
            before == after or before.isalpha()
        )
    at = place - 1
    while at and unicodedata.category(text[at])[0] == "M":
        at -= 1
    return (
        after.isalnum()
        and text[at].isalnum()
        and not re.search(_SPACELESS, before + after)
    )


def splits_number(text: str, place: int) -> bool:
    """Whether the place lies inside a number, with its sign, point and separators."""
    return place > 0 and _IN_NUMBER.match(text, place) is not None


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


@dataclass(frozen=True)
class Exact(TextMatcher):
    """A document satisfies a gold passage when their texts are equal."""

    name: ClassVar[str] = "exact"
    reads: ClassVar[tuple[str, ...]] = ("passages",)

    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        """Whether both texts of each pair are equal."""
        return np.fromiter(map(eq, golds, documents), np.bool_, len(golds))


@dataclass(frozen=True)
class Normalized(_Folded, Exact):
    """A document satisfies a gold passage when their normalised texts are equal.

    White space, case, quotes, dashes, Markdown marks and the like make no difference.
    """

    name: ClassVar[str] = "normalized"
