"""Looking things up in a corpus: where a text may stand, and what words would find."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from karat.data.arrays import Ints
from karat.errors import MissingExtraError
from karat.matching.coverage.alphabet import (
    Source,
    Texts,
    hash_grams,
    places_inside,
)
from karat.matching.coverage.cover import is_wide
from karat.matching.normaliser import fold

__all__ = ["LexicalRanks", "closest"]

_LETTERS = 8
_BLOCK = 1 << 20
_MOST = 12
# So many n-grams of every so many are looked up, each in so many texts at most.
_RARE, _STRETCH, _OFTEN = 2, 24, 500
_WORD: Final = re.compile(r"\w+")


def closest(wanted: Sequence[str], texts: Sequence[str]) -> list[list[int]]:
    """For each wanted text, the places of the texts that share most letters with it.

    Compared are the n-grams of a wanted text that are rarest among the texts, so that
    what all of them repeat costs nothing.

    Args:
        wanted: what to look for.
        texts: where to look.

    Example:
        >>> closest(["Rye is a grain."], ["Oats.", "They say that rye is a grain!"])
        [[1]]
    """
    letters = [Source(text).letters for text in wanted]
    golds = Texts(letters)
    owner, place = places_inside(golds, _LETTERS)
    keys, number = np.unique(
        hash_grams(golds.codes, _LETTERS)[place], return_inverse=True
    )
    brief = {n: own for n, own in enumerate(letters) if 0 < len(own) < _LETTERS}
    found: list[list[int]] = [[] for _ in wanted]
    postings: list[Ints] = [np.zeros((2, 0), np.int64)]
    start = 0
    while start < len(texts):
        block: list[str] = []
        size = 0
        while start + len(block) < len(texts) and size < _BLOCK:
            block.append(Source(texts[start + len(block)]).letters)
            size += len(block[-1])
        postings.append(_postings(block, keys, start))
        for n, short in brief.items():
            found[n] += [start + at for at, one in enumerate(block) if short in one]
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
            found[n] = place[np.argsort(-count, kind="stable")].tolist()
    return [own[:_MOST] for own in found]


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
    texts = Texts(block)
    text, place = places_inside(texts, _LETTERS)
    hashes = hash_grams(texts.codes, _LETTERS)[place]
    if not len(hashes) or not len(keys):
        return np.zeros((2, 0), np.int64)
    low = np.minimum(np.searchsorted(keys, hashes), len(keys) - 1)
    hit = keys[low] == hashes
    return np.stack((low[hit], text[hit] + start))


class LexicalRanks:
    """At which rank search by words (BM25) finds documents of a corpus.

    Raises:
        MissingExtraError: `bm25s` is not installed.
    """

    def __init__(self, corpus: Mapping[str, str]) -> None:
        try:
            import bm25s  # noqa: PLC0415
        except ImportError:
            raise MissingExtraError("search by words", "bm25") from None
        self._places = {name: place for place, name in enumerate(corpus)}
        self._index = bm25s.BM25()
        words = [_words(text) for text in corpus.values()]
        self._known = {word for row in words for word in row}
        if self._known:
            self._index.index(words, show_progress=False)

    def rank(self, query: str, documents: Sequence[str]) -> int | None:
        """The rank of the best of the documents; None when no word leads to any."""
        own = [self._places[name] for name in documents if name in self._places]
        words = [word for word in _words(query) if word in self._known]
        if not own or not words:
            return None
        scores = self._index.get_scores(words)
        best = scores[own].max()
        return int((scores > best).sum()) + 1 if best > 0 else None


def _words(text: str) -> list[str]:
    """The words of a text; where letters are words, pairs of them.

    Example:
        >>> _words("Rye, 黑麦面包")
        ['rye', '黑麦', '麦面', '面包']
    """
    words = []
    for word in _WORD.findall(fold(text)):
        pairs = [word[at : at + 2] for at in range(len(word) - 1)]
        words += pairs if pairs and is_wide(word) else [word]
    return words
