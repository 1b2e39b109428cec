"""Texts that were damaged on the way, seen beside the question and the other texts."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import Final, NamedTuple
from unicodedata import name as name_of

from karat.matching.normaliser import fold, is_wide

# So many texts show what all of them are like.
_SAMPLE = 500
# Words in so many texts are common, and texts of so many words have some of them.
_COMMON, _LEAST_WORDS = 0.25, 20
# A text is unlike the others if its share of common words is so much smaller.
_UNLIKE, _USUAL_SHARE, _SPREAD = 0.2, 0.12, 0.3
_WHOLE, _SHORT, _FEW = 0.9, 0.25, 0.1
_LETTERS = 300
_LEAST_LETTERS = 3
_SOME_LETTERS: Final = re.compile(r"(?:[A-Za-z][^A-Za-z]*){3}")
_WORD: Final = re.compile(r"\w+")
# Cyrillic and Greek letters, and the Latin ones that look the same.
_OTHERS = (
    "\u0430\u0441\u0435\u0456\u0458\u0455\u043e\u0440\u0445\u0443\u04bb"
    "\u0501\u051b\u051d\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420"
    "\u0421\u0422\u0425\u0406\u0408\u0405\u03bd\u03bf\u0391\u0392\u0395"
    "\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7\u03a5"
)
_LATIN = "aceijsopxyhdqwABEKMHOPCTXIJSvoABEZHIKMNOPTXY"
_ALIKE: Final = str.maketrans(_OTHERS, _LATIN)
_MIXED: Final = re.compile(f"[A-Za-z][{_OTHERS}]|[{_OTHERS}][A-Za-z]")
_LEAST_MIXED, _MIXED_SHARE = 2, 0.03
_END: Final = re.compile(
    "[.!?:;|>)}'\"*`\\]\u2026\u3002\uff01\uff1f\u201d\u2019\u00bb]\\s*$"
)


class Habits(NamedTuple):
    """What the texts of a corpus have in common."""

    common: frozenset[str]  # words that many of them have
    share: float  # of a text's words, usually; 0 if there is no usual one
    size: float  # the usual number of characters
    ends: bool  # whether nearly all end where a sentence does
    short: bool  # whether hardly any is much shorter than usual

    @classmethod
    def of(cls, corpus: Mapping[str, str]) -> "Habits":
        """The habits of a corpus, by some of its texts."""
        every = [*corpus.values()]
        texts = [t for t in every[:: max(1, len(every) // _SAMPLE)] if t.strip()]
        rows = [words_of(text) for text in texts]
        count = Counter(word for row in rows for word in {*row})
        least = _COMMON * len(rows)
        common = frozenset(word for word, n in count.items() if n >= least)
        shares = sorted(
            _share(row, common) for row in rows if len(row) >= _LEAST_WORDS
        ) or [0.0]
        usual = shares[len(shares) // 2]
        even = shares[len(shares) // 20] >= _SPREAD * usual
        size = median(map(len, texts)) if texts else 0.0
        ends = sum(map(bool, map(_END.search, texts)))
        short = sum(len(text) < _SHORT * size for text in texts)
        return cls(
            common,
            usual if even and usual >= _USUAL_SHARE else 0.0,
            size,
            ends >= _WHOLE * len(texts),
            short <= _FEW * len(texts),
        )

    def doubt(self, text: str) -> str | None:
        """What may be wrong with a text that nobody finds, in words; None: nothing."""
        words = words_of(text)
        many = len(words) >= _LEAST_WORDS and not is_wide(text)
        if many and _share(words, self.common) < _UNLIKE * self.share:
            return (
                "its text has hardly a word that most others have: it is in another "
                "language, or unreadable"
            )
        if self.ends:
            cut = not _END.search(text)
        else:
            cut = self.short and len(text) < _SHORT * self.size
        return f"its text is cut off: it ends in {text[-20:]!r}" if cut else None


def damage(text: str, question: str | None = None) -> str | None:
    """What is plainly wrong with a text, in words; None for nothing."""
    wanted, script = script_of(question or ""), script_of(text)
    if not text.strip():
        return "its text is empty"
    if has_look_alikes(text):
        return "its text has look-alike letters of another script"
    if wanted and script and wanted != script:
        return f"its text is in {script} script, and the question in {wanted}"
    return None


def words_of(text: str) -> list[str]:
    """The words of a text, in one form."""
    return _WORD.findall(fold(text))


def _share(words: Sequence[str], common: frozenset[str]) -> float:
    return sum(map(common.__contains__, words)) / len(words)


def has_look_alikes(text: str) -> bool:
    """Whether words are written in letters of two scripts that look the same."""
    if text.isascii():
        return False
    mixed = sum(1 for word in _WORD.findall(text) if _MIXED.search(word))
    return mixed >= max(_LEAST_MIXED, _MIXED_SHARE * len(text.split()))


def without_look_alikes(text: str) -> str:
    """The text in Latin letters, where others look the same."""
    return text.translate(_ALIKE)


@lru_cache(maxsize=1 << 12)
def _script(letter: str) -> str:
    return name_of(letter, "?").partition(" ")[0].title()


def script_of(text: str) -> str:
    """The script of most letters at the beginning of a text; empty for too few."""
    head = text[:_LETTERS]
    if head.isascii():
        return "Latin" if _SOME_LETTERS.search(head) else ""
    letters = [letter for letter in head if letter.isalpha()]
    if len(letters) < _LEAST_LETTERS:
        return ""
    return Counter(map(_script, letters)).most_common(1)[0][0]
