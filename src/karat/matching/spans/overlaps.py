"""How much of each document was read before, in documents that overlap it."""

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.matching.spans.letters import WORD
from karat.matching.spans.stream import Stream

__all__ = ["count_fresh"]

# So many bytes at the start or end of a document must have been read before.
_TELLING = 32


def count_fresh(stream: Stream) -> Ints:
    """The number of characters of each document that none before it has.

    Chunks that overlap do so at their edges: the start of one of them lies in the
    other. So each edge is looked for in what was read before, and from there on what is
    the same is not counted again.
    """
    start, end = stream.bounds[:-1], stream.bounds[1:]
    rows = np.flatnonzero(end - start >= _TELLING)
    place = np.concatenate((start[rows], end[rows] - _TELLING))
    length, lane = np.full(len(place), _TELLING), np.tile(stream.lane[rows], 2)
    copies = stream.find(stream.letters, place, length, lane)
    found = np.flatnonzero(copies < place + length)
    fresh = stream.letters.count()
    known: dict[int, list[slice]] = {}
    for row in found.tolist():
        document, copy = int(rows[row % len(rows)]), int(copies[row])
        same = _same_head if row < len(rows) else _same_tail
        known.setdefault(document, []).append(same(stream, document, copy))
    for document, parts in known.items():
        left = np.ones(end[document] - start[document], np.bool_)
        for part in parts:
            left[part.start - start[document] : part.stop - start[document]] = False
        left &= stream.letters.counted[start[document] : end[document]]
        fresh[document] = left.sum()
    return fresh


def _same_head(stream: Stream, document: int, copy: int) -> slice:
    """What a document begins with that also stands where a copy of its head ends."""
    start, end = stream.bounds[document : document + 2].tolist()
    whole = end - start
    place = copy - _TELLING
    letters = stream.letters.codes
    size = _length(letters[start:end] == letters[place : place + whole])
    edge = stream.bounds[np.searchsorted(stream.bounds, place + size, "right") - 1]
    return slice(start, start + _overlap(size, int(edge) - place, whole))


def _same_tail(stream: Stream, document: int, copy: int) -> slice:
    """What a document ends with that also stands where a copy of its tail ends."""
    start, end = stream.bounds[document : document + 2].tolist()
    whole = end - start
    room = min(whole, copy - int(stream.lane_bounds[stream.lane[document]]))
    letters = stream.letters.codes
    size = _length((letters[end - room : end] == letters[copy - room : copy])[::-1])
    edge = stream.bounds[np.searchsorted(stream.bounds, copy - size)]
    return slice(end - _overlap(size, copy - int(edge), whole), end)


def _length(same: Bools) -> int:
    """How many are true before the first that is not."""
    return len(same) if same.all() else int(same.argmin())


def _overlap(size: int, edge: int, whole: int) -> int:
    """How much of what is the same is due to an overlap.

    That reaches to the edge of a document, if not through all of the other one: what
    ends before was said twice. A few letters beyond the edge are the same by accident.
    """
    if edge > 0 and size - edge < WORD:
        return edge
    return size if size == whole else 0
