"""Coverage by offsets: exact interval arithmetic, for which no text is needed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Ints

__all__ = ["Counted", "Place", "count_characters"]


class Place(NamedTuple):
    """A stretch of a source document, by character offsets."""

    source: str
    start: int
    end: int


class Counted(NamedTuple):
    """Characters of gold and documents, each counted once.

    Attributes:
        gained: for each gold stretch, the characters each document is first to cover.
        gold: characters each document is first to cover of all relevant gold together.
        fresh: characters of each document that none before it has.
        size: characters of all relevant gold together.
    """

    gained: Ints
    gold: Ints
    fresh: Ints
    size: int


def count_characters(
    gold: Sequence[Place], relevant: Sequence[bool], documents: Sequence[Place | None]
) -> Counted:
    """Count what documents, in rank order, cover of gold stretches.

    Args:
        gold: the gold stretches; they may overlap.
        relevant: which of them count for the total.
        documents: the documents; None for one whose place is not known.

    Example:
        >>> gold = [Place("a", 0, 10)]
        >>> documents = [Place("a", 5, 15), Place("a", 0, 7), Place("b", 0, 3)]
        >>> count_characters(gold, [True], documents).gained.tolist()
        [[5, 5, 0]]
    """
    count = len(documents)
    gained = np.zeros((len(gold), count), np.int64)
    covered, fresh, size = np.zeros(count, np.int64), np.zeros(count, np.int64), 0
    sources = {place.source for place in (*gold, *documents) if place is not None}
    for source in sorted(sources):
        ours = [(n, p) for n, p in enumerate(gold) if p.source == source]
        theirs = [(n, p) for n, p in enumerate(documents) if p and p.source == source]
        places = [place for _, place in (*ours, *theirs)]
        points = np.unique([point for place in places for point in place[1:]])
        length = np.diff(points)
        pieces = [slice(*np.searchsorted(points, place[1:])) for place in places]
        first = np.full(len(length), count)
        # The first document to cover a piece is written last, and stays.
        for (n, _), piece in zip(theirs[::-1], pieces[::-1], strict=False):
            first[piece] = n
        wanted = np.zeros(len(length), np.bool_)
        for (n, _), piece in zip(ours, pieces, strict=False):
            wanted[piece] |= relevant[n]
            gained[n] = _add_up(first[piece], length[piece], count)
        fresh += _add_up(first, length, count)
        covered += _add_up(first[wanted], length[wanted], count)
        size += int(length[wanted].sum())
    return Counted(gained, covered, fresh, size)


def _add_up(document: Ints, length: Ints, count: int) -> Ints:
    total = np.zeros(count + 1, np.int64)
    np.add.at(total, document, length)
    return total[:count]
