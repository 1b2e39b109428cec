"""Gold passages made ready to be looked for: their words and stretches of four."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.matching.normaliser import BROKEN
from karat.matching.spans.facts import UNSPACED_NEGATIONS, are_facts
from karat.matching.spans.letters import GAP, Letters, read_letters, spell

__all__ = ["FOUR_WORDS", "ONE_WORD", "THREE_WORDS", "Passages", "read_passages"]

# What a word weighs, in quarters. In scripts without spaces two Chinese or Japanese
# characters, or four Thai letters, weigh about what a word does.
ONE_WORD: Final = 4
FOUR_WORDS: Final = 4 * ONE_WORD
THREE_WORDS: Final = 3 * ONE_WORD
# Beyond this many bytes a word is taken apart: it is a file, not a word.
_LONG = 48
_PIECE = 16

# Marks that NFKD takes off Japanese characters.
_VOICED, _HALF_VOICED = 0x3099, 0x309A
_WEIGHTS: Final = (
    *((0x0E00, 0x0FFF, 1), (0x1000, 0x109F, 1), (0x1780, 0x17FF, 1)),
    *((0x3040, 0x3098, 2), (0x309B, 0x30FF, 2), (0x3400, 0x4DBF, 2)),
    *((0x4E00, 0x9FFF, 2), (0xF900, 0xFAFF, 2), (0x20000, 0x3FFFF, 2)),
)
_EDGES: Final = np.array([e for low, high, _ in _WEIGHTS for e in (low, high + 1)])
_WEIGHT_FROM: Final = np.array(
    [0, *(w for *_, weight in _WEIGHTS for w in (weight, 0))]
)


@dataclass(frozen=True, eq=False)
class Passages:
    """Gold passages of some queries in letters, cut into words.

    Attributes:
        letters: the letters of all passages.
        lane: the lane of each passage: documents are only read for their own query.
        start: where each word starts.
        end: where each word ends.
        weight: what each word weighs, in quarters.
        passage: the passage of each word.
    """

    letters: Letters
    lane: Ints
    start: Ints
    end: Ints
    weight: Ints
    passage: Ints

    @property
    def count(self) -> int:
        """The number of passages."""
        return len(self.lane)

    @property
    def bounds(self) -> Ints:
        """Where passages begin and end: one more than there are passages."""
        return self.letters.bounds

    @cached_property
    def word_bounds(self) -> Ints:
        """The first word of each passage, and the number of words."""
        return np.searchsorted(self.passage, np.arange(self.count + 1))

    @cached_property
    def weighed(self) -> Ints:
        """What all words before each word weigh together."""
        return np.concatenate(([0], self.weight.cumsum()))

    @cached_property
    def width(self) -> Ints:
        """How many words from each on weigh as much as four; 0 where they do not.

        A passage that weighs less is one stretch as a whole.
        """
        words = np.arange(len(self.start))
        last = np.searchsorted(self.weighed, self.weighed[:-1] + FOUR_WORDS)
        limit = self.word_bounds[1:][self.passage]
        width = np.where(last <= limit, last - words, 0)
        first = self.word_bounds[:-1]
        few = first[self.brief]
        width[few] = self.word_bounds[1:][self.brief] - few
        return width

    @cached_property
    def brief(self) -> Bools:
        """Which passages weigh less than four words, but something."""
        weight = (
            self.weighed[self.word_bounds[1:]] - self.weighed[self.word_bounds[:-1]]
        )
        brief: Bools = (weight > 0) & (weight < FOUR_WORDS)
        return brief

    @cached_property
    def sizes(self) -> Ints:
        """The number of characters of each passage."""
        return self.letters.count()

    def facts(self, wanted: Bools) -> tuple[Ints, Ints, Ints]:
        """Where numbers and negations start and end, and in which wanted passage."""
        rows = np.flatnonzero(wanted[self.passage])
        rows = rows[are_facts(self.letters, self.start[rows], self.end[rows])]
        facts = self.start[rows], self.end[rows], self.passage[rows]
        found = [] if self.letters.leads is None else _unspaced(self.letters.data)
        if not found:
            return facts
        start, end = np.array(found).T
        passage = np.searchsorted(self.letters.ends, start, side="right")
        return (
            np.concatenate((facts[0], start)),
            np.concatenate((facts[1], end)),
            np.concatenate((facts[2], passage)),
        )


def _unspaced(data: bytes) -> list[tuple[int, int]]:
    found = []
    for word in UNSPACED_NEGATIONS:
        letters = spell(word)
        place = data.find(letters)
        while place >= 0:
            found.append((place, place + len(letters)))
            place = data.find(letters, place + len(letters))
    return found


def read_passages(texts: Sequence[str], lane: Ints) -> Passages:
    """The passages of some queries, in letters and words."""
    letters = read_letters([[BROKEN.sub("", text)] for text in texts])
    starts, weight = letters.starts, None
    if letters.leads is not None:
        starts, weight = _weigh(letters)
    start = np.flatnonzero(starts)
    end = np.concatenate((start[1:], [letters.size])) if len(start) else start
    spaces = letters.codes[end - 1] == GAP
    if spaces.any():
        end = end - spaces
    if len(start) and (end - start).max() > _LONG:
        start, end = _take_apart(letters, start, end)
    return Passages(
        letters,
        lane,
        start,
        end,
        np.full(len(start), ONE_WORD) if weight is None else weight[start],
        np.searchsorted(letters.ends, start, side="right"),
    )


def _weigh(letters: Letters) -> tuple[Bools, Ints]:
    """Where words start, and the weight of a word that starts at each byte."""
    assert letters.leads is not None  # noqa: S101
    place = np.flatnonzero(letters.leads)
    text = letters.data[: letters.size].decode()
    codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
    own = _WEIGHT_FROM[np.searchsorted(_EDGES, codes, side="right")]
    starts = letters.starts.copy()
    starts[place[own > 0]] = True
    # A voicing mark stays with its character; any other letter after one is a word.
    voicing = (codes == _VOICED) | (codes == _HALF_VOICED)
    after = (own[:-1] > 0) & (own[1:] == 0) & ~voicing[1:]
    starts[place[1:][after]] = True
    weight = np.full(letters.size, ONE_WORD)
    weight[place[own > 0]] = own[own > 0]
    return starts, weight


def _take_apart(letters: Letters, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Long words as pieces."""
    count = np.where(end - start > _LONG, (end - start) // _PIECE, 1)
    word = np.repeat(np.arange(len(start)), count)
    piece = np.arange(len(word)) - np.repeat(count.cumsum() - count, count)
    begin = start[word] + piece * _PIECE
    if letters.leads is not None:
        place = np.flatnonzero(letters.leads)
        begin = place[np.searchsorted(place, begin)]
    until = np.concatenate((begin[1:], end[-1:]))
    return begin, np.where(piece == count[word] - 1, end[word], until)
