"""What keeps a passage partial although its letters are there: a negation put in."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from karat.matching.spans.covering import Cover
from karat.matching.spans.facts import NEGATIONS, UNSPACED_NEGATIONS
from karat.matching.spans.letters import spell

__all__ = ["is_contradicted"]

# How many letters on either side of a seam are looked for, how far apart they may be
# beyond what the passage has between them, and in how many places.
_CONTEXT = 24
_APART = 40
_PLACES = 16

_NEGATIONS: Final = frozenset(spell(word).strip() for word in NEGATIONS)
_UNSPACED: Final = frozenset(
    spell(word).strip() for word in (*UNSPACED_NEGATIONS, *NEGATIONS)
) - {word for word in _NEGATIONS if word.isascii()}


def is_contradicted(cover: Cover, passage: int, document: int) -> bool:
    """Whether the documents put a negation where the passage has none.

    A passage may be covered in several stretches. Where two of them lie close together
    in a document, what stands between them there must not negate what the passage says.

    Args:
        cover: what is covered, and since when.
        passage: the passage.
        document: the last document that is read.
    """
    stream, data = cover.stream, cover.stream.letters.data
    first = int(stream.lane_bounds[cover.passages.lane[passage]])
    for before, between, after, where in _seams(cover, passage, document):
        low, high = stream.bounds[where : where + 2].tolist()
        place, tries = data.find(before, max(first, low - _CONTEXT), high), 0
        while place >= 0 and tries < _PLACES:
            start = place + len(before)
            limit = min(high, start + len(between) + _APART + len(after))
            end = data.find(after, start, limit)
            if end >= low and _negates(cover, where, start, end, between):
                return True
            place, tries = data.find(before, start, high), tries + 1
    return False


def _seams(
    cover: Cover, passage: int, document: int
) -> Iterator[tuple[bytes, bytes, bytes, int]]:
    """The letters before, between and after two stretches; and where the first is."""
    low, high = cover.passages.bounds[passage : passage + 2].tolist()
    data = cover.passages.letters.data
    tied = np.flatnonzero(cover.tied[low : high - 1] <= document) + low
    if not len(tied):
        return
    breaks = np.flatnonzero(np.diff(tied) > 1)
    starts = tied[np.concatenate(([0], breaks + 1))].tolist()
    ends = (tied[np.concatenate((breaks, [len(tied) - 1]))] + 2).tolist()
    for start, end, then, until in zip(
        starts, ends, starts[1:], ends[1:], strict=False
    ):
        where = int(cover.since[end - 1])
        # A letter may be tied to the next without counting as covered so far.
        if where <= document:
            yield (
                data[max(start, end - _CONTEXT) : end],
                data[end:then],
                data[then : min(until, then + _CONTEXT)],
                where,
            )


def _negates(cover: Cover, document: int, start: int, end: int, gold: bytes) -> bool:
    """Whether a negation stands in a stretch of a document, and not in the gold."""
    letters = cover.stream.letters
    added = letters.data[start:end]
    if not added.isascii() and any(
        word in added and word not in gold for word in _UNSPACED
    ):
        return True
    return not _NEGATIONS.isdisjoint(letters.between(document, start, end))
