"""Texts of a corpus: what is wrong with one, what words find, and which are alike."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from statistics import median
from typing import Any, Final, NamedTuple
from unicodedata import name as name_of

import numpy as np
import numpy.typing as npt
from rapidfuzz.fuzz import ratio

from karat.data.arrays import Ints
from karat.matching.contains import UNSPACED
from karat.matching.letters import Letters, grams_of
from karat.matching.normaliser import fold, is_wide

# So many texts show what all of them are like.
_SAMPLE = 500
# Words in so many texts are common, and texts of so many words have some of them.
_COMMON, _LEAST_WORDS = 0.25, 20
# A text is unlike the others if its share of common words is so much smaller.
_UNLIKE, _USUAL_SHARE, _SPREAD = 0.2, 0.12, 0.3
_WHOLE, _SHORT, _FEW = 0.9, 0.25, 0.1
# So many letters tell the script.
_HEAD = 300
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

ALIKE = 0.87
"""The share of letters that near-duplicates have in common, in the same order."""

_LETTERS, _FEW_LETTERS = 8, 6
_BLOCK = 1 << 20
_MOST = 12
# So many n-grams of every so many are looked up, each in so many texts at most.
_RARE, _STRETCH, _OFTEN = 2, 24, 500
_BINS = 64
# So many different texts with the same band are compared with a new one.
_COMPARED = 8
_EMPTY: Final = np.uint32(0xFFFFFFFF)
_MIX: Final = np.uint32(0x9E3779B1)
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
# Words in so many texts, or in such a share of them, are rare.
_RARE_WORD = 3, 0.01
# Words lead to what they rank so high, with such a share of the highest score.
_GOOD_RANK, _LED, _HARDLY = 10, 0.03, 0.25
# So many documents on top of search by words answer by words.
_ANSWERS = 3
_UNSPACED: Final = re.compile(f"[{UNSPACED}]")


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
                "its text shares almost no words with the others: it is in another "
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
    head = text[:_HEAD]
    if head.isascii():
        return "Latin" if _SOME_LETTERS.search(head) else ""
    letters = [letter for letter in head if letter.isalpha()]
    if len(letters) < _LEAST_LETTERS:
        return ""
    return Counter(map(_script, letters)).most_common(1)[0][0]


def most_alike(wanted: Sequence[str], texts: Sequence[str]) -> list[list[int]]:
    """For each wanted text, the places of the texts that share most letters with it.

    Compared are the n-grams of a wanted text that are rarest among the texts, so that
    what all of them repeat costs nothing.
    """
    letters = [Letters(text).letters for text in wanted]
    owner, hashes = grams_of(letters, _LETTERS)
    keys, number = np.unique(hashes, return_inverse=True)
    brief = {n: own for n, own in enumerate(letters) if 0 < len(own) < _LETTERS}
    places: list[list[int]] = [[] for _ in wanted]
    postings: list[Ints] = [np.zeros((2, 0), np.int64)]
    start = 0
    while start < len(texts):
        block: list[str] = []
        size = 0
        while start + len(block) < len(texts) and size < _BLOCK:
            block.append(Letters(texts[start + len(block)]).letters)
            size += len(block[-1])
        postings.append(_postings(block, keys, start))
        for n, short in brief.items():
            places[n] += [start + at for at, one in enumerate(block) if short in one]
        start += len(block)
    key, text = np.concatenate(postings, axis=1)
    order = np.argsort(key, kind="stable")
    key, text = key[order], text[order]
    bounds = np.searchsorted(key, np.arange(len(keys) + 1))
    often = np.diff(bounds)
    ends = np.searchsorted(owner, np.arange(len(wanted) + 1)).tolist()
    for n in range(len(wanted)):
        own = number[ends[n] : ends[n + 1]]
        rows = [
            text[bounds[key] : bounds[key + 1]][:_OFTEN]
            for key in _rarest(own, often[own])
        ]
        if rows:
            place, count = np.unique(np.concatenate(rows), return_counts=True)
            places[n] = place[np.argsort(-count, kind="stable")].tolist()
    return [own[:_MOST] for own in places]


def _rarest(grams: Ints, often: Ints) -> list[int]:
    """Of every stretch of a text the n-grams that are there, but least often."""
    stretch = np.arange(len(grams)) // _STRETCH
    there = often > 0
    order = np.lexsort((often[there], stretch[there]))
    stretch, grams = stretch[there][order], grams[there][order]
    return [
        gram
        for place, gram in enumerate(grams.tolist())
        if place < _RARE or stretch[place] != stretch[place - _RARE]
    ]


def _postings(block: Sequence[str], keys: Any, start: int) -> Ints:
    """Which n-grams of those wanted stand in which text."""
    text, hashes = grams_of(block, _LETTERS)
    if not len(hashes) or not len(keys):
        return np.zeros((2, 0), np.int64)
    low = np.minimum(np.searchsorted(keys, hashes), len(keys) - 1)
    hit = keys[low] == hashes
    return np.stack((low[hit], text[hit] + start))


class LexicalRanks:
    """At which rank search by words (BM25) finds documents of a corpus."""

    def __init__(self, corpus: Mapping[str, str], bm25s: Any) -> None:
        self._places = {name: place for place, name in enumerate(corpus)}
        self._index = bm25s.BM25()
        words = [search_words.__wrapped__(text) for text in corpus.values()]
        self._count = Counter(chain.from_iterable(map(set, words)))
        if self._count:
            self._index.index(words, show_progress=False)
        # The last words that were searched: those of a question are, several times.
        self._last: tuple[list[str], Any] = ([], None)

    @classmethod
    def of(cls, corpus: Mapping[str, str]) -> "LexicalRanks | None":
        """Search of a corpus; None if `bm25s` is not installed."""
        with suppress(ImportError):
            import bm25s  # noqa: PLC0415

            return cls(corpus, bm25s)
        return None

    def __len__(self) -> int:
        return len(self._places)

    def rank(self, query: str, documents: Sequence[str]) -> int | None:
        """The rank of the best of the documents; None when no word leads to any."""
        return self._find(search_words(query), documents)[0]

    def finds(self, query: str, documents: Sequence[str], k: int = 0) -> bool:
        """Whether search by words has any of the documents near the top."""
        rank, share = self._find(search_words(query), documents)
        return rank is not None and rank <= max(k, _GOOD_RANK) and share >= _HARDLY

    def rank_beyond(
        self, query: str, others: Sequence[str], documents: Sequence[str]
    ) -> int | None:
        """The rank by the rare words of other texts that the query does not have."""
        rare = {word for text in others for word in self.rare_words(text)}
        return self._find(sorted(rare.difference(search_words(query))), documents)[0]

    def rare_words(self, text: str) -> set[str]:
        """The words of a text that few documents have, and at least one."""
        most = max(_RARE_WORD[0], _RARE_WORD[1] * len(self))
        return {word for word in search_words(text) if 0 < self._count[word] <= most}

    def top(self, query: str, k: int, documents: Sequence[str] = ()) -> list[str]:
        """The documents that words of a query find first, of these or of all."""
        words = [word for word in search_words(query) if word in self._count]
        if not words:
            return []
        names = [*documents] or [*self._places]
        scores = self._scores(words)[[self._places[name] for name in names]]
        best = np.argsort(-scores, kind="stable")[:k]
        return [names[place] for place in best.tolist() if scores[place] > 0]

    def leads(
        self, query: str, others: Sequence[str], documents: Sequence[str]
    ) -> bool:
        """Whether words of a query, or rare ones of other texts, lead to documents."""
        hop = self.rank_beyond(query, others, documents) if others else None
        if hop is not None and hop <= max(_GOOD_RANK, _LED * len(self)):
            return True
        return self.finds(query, documents, int(_LED * len(self)))

    def answers(self, query: str, document: str) -> int | None:
        """The rank of a document that answers by words; None where it does not."""
        rank = self.rank(query, [document])
        return rank if rank is not None and rank <= _ANSWERS else None

    def distance(self, one: str, other: str) -> int:
        """How far from each other two documents stand in the corpus."""
        return abs(self._places[one] - self._places[other])

    def _find(
        self, words: Sequence[str], documents: Sequence[str]
    ) -> tuple[int | None, float]:
        """The rank of the best document, and its share of the highest score."""
        own = [self._places[name] for name in documents if name in self._places]
        words = [word for word in words if word in self._count]
        if not own or not words:
            return None, 0.0
        scores = self._scores(words)
        best = scores[own].max()
        if best <= 0:
            return None, 0.0
        return int((scores > best).sum()) + 1, float(best / scores.max())

    def _scores(self, words: Sequence[str]) -> Any:
        if words != self._last[0]:
            self._last = [*words], self._index.get_scores([*words])
        return self._last[1]


@lru_cache(maxsize=1 << 10)
def search_words(text: str) -> list[str]:
    """The words of a text; where letters are words, pairs of them."""
    plain = words_of(text)
    if text.isascii():
        return plain
    words: list[str] = []
    for word in plain:
        unspaced = len(word) > 1 and _UNSPACED.match(word)
        pairs = (word[at : at + 2] for at in range(len(word) - 1))
        words += pairs if unspaced else [word]
    return words


def similarity(one: str, other: str) -> float:
    """The share of letters that two texts have in common, in the same order."""
    return ratio(Letters(one).letters, Letters(other).letters) / 100


def group_alike(texts: Sequence[str]) -> list[int]:
    """For each text, the place of the first one that it is a near-duplicate of.

    A text that is like none before it stands for itself, and so does one without
    letters. Only texts that share small hashes of their letters are compared, so that
    many texts take little longer than reading them.
    """
    letters = [Letters(text).letters for text in texts]
    first: dict[str, int] = {}
    group = [first.setdefault(text, place) for place, text in enumerate(letters)]
    distinct = [place for place, own in enumerate(group) if own == place]
    bands = _bands([letters[place] for place in distinct])
    buckets: dict[int, list[int]] = {}
    for place, row in zip(distinct, bands.tolist(), strict=True):
        own = letters[place]
        if not own:
            continue
        seen: set[int] = set()
        for key in row:
            for other in buckets.get(key, ()):
                if other not in seen:
                    seen.add(other)
                    if ratio(own, letters[other], score_cutoff=100 * ALIKE):
                        group[place] = min(group[place], other)
        if group[place] == place:
            for key in row:
                bucket = buckets.setdefault(key, [])
                if len(bucket) < _COMPARED:
                    bucket.append(place)
    return [
        place if not letters[place] else group[own] for place, own in enumerate(group)
    ]


def _bands(letters: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Keys, some of which two texts share if they are alike.

    Each text's n-grams fall into bins by their hash, and the smallest of each bin is
    kept: two texts agree in a bin about as often as their n-grams agree. Three bins
    make a key.
    """
    # Texts shorter than an n-gram are padded, so that they have one.
    whole = [text.ljust(_FEW_LETTERS, "\0") for text in letters]
    text, hashes = grams_of(whole, _FEW_LETTERS)
    hashes = hashes * _MIX
    hashes ^= hashes >> np.uint32(15)
    hashes *= np.uint32(0x85EBCA6B)
    least = np.full(len(letters) * _BINS, _EMPTY, np.uint32)
    bin_of: Ints = text * _BINS + (hashes >> np.uint32(26)).astype(np.int64)
    np.minimum.at(least, bin_of, hashes)
    table = least.reshape(-1, _BINS)
    # Of 64 bins the last one is left over: 21 keys of three bins each.
    one, two, three = table[:, : _BINS - 1].astype(np.uint64).reshape(-1, 21, 3).T
    keys = (one * _FACTOR ^ two) * _FACTOR ^ three
    return (keys + np.arange(21, dtype=np.uint64)[:, None] * _FACTOR).T
