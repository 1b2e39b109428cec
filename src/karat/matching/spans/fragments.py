"""Fragments of passages at the edges of documents that were cut there."""

from collections.abc import Iterator

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.matching.spans.letters import GAP, WORD
from karat.matching.spans.passages import FOUR_WORDS, ONE_WORD, THREE_WORDS, Passages
from karat.matching.spans.stream import Stream

__all__ = ["fragments"]


def fragments(
    passages: Passages, stream: Stream, since: Ints
) -> Iterator[tuple[slice, int, slice]]:
    """Fragments of fewer than four words where a document is cut inside a passage.

    The end of a document may hold the first words of a passage, and its start the last
    ones. Three words count; one counts if another document goes on from
    there for four words, or as far as the passage goes.

    Args:
        passages: what is looked for.
        stream: where.
        since: from which document on each byte of the passages is covered anyway.

    Yields:
        The bytes of a fragment, the document from which on it counts, and the joints
        of its bytes with the next.
    """
    for head in (True, False):
        passage, length = _lengths(passages, stream, since, head=head)
        row, document = _telling(passages, stream, passage, length, head=head)
        start, end = _stretch(passages, passage[row], length[row], head=head)
        yield from _slices(start, end, document, start, end - 1)
        row, document = _going_on(passages, stream, passage, length, head=head)
        start, end = _stretch(passages, passage[row], length[row], head=head)
        # What goes on is joined to the fragment, over a gap if there is one.
        joint = _joint(passages, passage[row], length[row], head=head)
        start, end = (start, joint) if head else (joint, end)
        yield from _slices(start, end, document, start - (not head), end - (not head))


def _stretch(
    passages: Passages, passage: Ints, length: Ints, *, head: bool
) -> tuple[Ints, Ints]:
    """Where a fragment starts and ends."""
    edge = passages.bounds[passage + (not head)]
    return (edge, edge + length) if head else (edge - length, edge)


def _slices(
    start: Ints, end: Ints, document: Ints, joint: Ints, until: Ints
) -> Iterator[tuple[slice, int, slice]]:
    columns = (start, end, document, joint, until)
    for low, high, when, first, last in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        yield slice(low, high), when, slice(first, last)


def _lengths(
    passages: Passages, stream: Stream, since: Ints, *, head: bool
) -> tuple[Ints, Ints]:
    """Every passage that may have a fragment, with every length that may have."""
    weighed, bounds = passages.weighed, passages.bounds
    first, last = passages.word_bounds[:-1], passages.word_bounds[1:]
    long = np.flatnonzero(weighed[last] - weighed[first] >= FOUR_WORDS)
    outer = bounds[long] if head else bounds[long + 1] - 1
    long = long[since[outer] > stream.lanes[passages.lane[long]]]
    low, high, first, last = bounds[long], bounds[long + 1], first[long], last[long]
    if head:
        until = np.searchsorted(weighed, weighed[first] + FOUR_WORDS)
        count = passages.end[until - 1] - low - 1
    else:
        begin = np.searchsorted(weighed, weighed[last] - FOUR_WORDS, side="right") - 1
        count = high - passages.start[begin] - 1
    passage = np.repeat(np.arange(len(long)), count)
    length = np.arange(1, len(passage) + 1) - np.repeat(count.cumsum() - count, count)
    leads = passages.letters.leads
    if leads is not None:
        whole = leads[low[passage] + length if head else high[passage] - length]
        passage, length = passage[whole], length[whole]
    return long[passage], length


def _telling(
    passages: Passages, stream: Stream, passage: Ints, length: Ints, *, head: bool
) -> tuple[Ints, Ints]:
    """Fragments too long to be an accident: the row, and the document."""
    rows = np.flatnonzero(length >= WORD)
    if head:
        seen = passages.bounds[passage[rows]] + length[rows] - WORD
        place = stream.bounds[1:] - WORD
    else:
        seen = passages.bounds[passage[rows] + 1] - length[rows]
        place = stream.bounds[:-1]
    row, document = stream.beside(
        place, passages.letters, seen, passages.lane[passage[rows]]
    )
    row = rows[row]
    enough = _weight(passages, passage[row], length[row], head=head) >= THREE_WORDS
    row, document = row[enough], document[enough]
    kept = _holds(passages, stream, passage[row], length[row], document, head=head)
    return row[kept], document[kept]


def _weight(passages: Passages, passage: Ints, length: Ints, *, head: bool) -> Ints:
    """What the whole words of a fragment weigh."""
    first, last = passages.word_bounds[passage], passages.word_bounds[passage + 1]
    if head:
        end = passages.bounds[passage] + length
        last = np.searchsorted(passages.end, end, side="right")
    else:
        first = np.searchsorted(passages.start, passages.bounds[passage + 1] - length)
    return passages.weighed[last] - passages.weighed[first]


def _going_on(
    passages: Passages, stream: Stream, passage: Ints, length: Ints, *, head: bool
) -> tuple[Ints, Ints]:
    """Fragments where another document goes on: the row, and the later document."""
    low, high = passages.bounds[passage], passages.bounds[passage + 1]
    rows = np.flatnonzero(high - low - length > WORD)
    edge = stream.bounds[:-1] if head else stream.bounds[1:]
    joint = _joint(passages, passage[rows], length[rows], head=head)
    row, other = stream.beside(
        edge if head else edge - WORD,
        passages.letters,
        joint if head else joint - WORD,
        passages.lane[passage[rows]],
    )
    row = rows[row]
    some = _weight(passages, passage[row], length[row], head=head) >= ONE_WORD
    row, other = row[some], other[some]
    start, size = _rest(passages, passage[row], length[row], head=head)
    place = edge[other] - (0 if head else size)
    same = _agree(stream, other, place, passages, start, size)
    row, other = row[same], other[same]
    # Beside each such document, every document of its lane may hold the fragment.
    lane = stream.lane[other]
    count = np.diff(stream.lanes)[lane]
    row, other = np.repeat(row, count), np.repeat(other, count)
    document = np.repeat(stream.lanes[lane] - count.cumsum() + count, count)
    document += np.arange(len(document))
    kept = _holds(passages, stream, passage[row], length[row], document, head=head)
    return row[kept], np.maximum(document, other)[kept]


def _rest(
    passages: Passages, passage: Ints, length: Ints, *, head: bool
) -> tuple[Ints, Ints]:
    """Start and length of what goes on from a fragment: four words, if there are."""
    weighed = passages.weighed
    low, high = passages.bounds[passage], passages.bounds[passage + 1]
    joint = _joint(passages, passage, length, head=head)
    if head:
        start = joint
        word = np.searchsorted(passages.start, start)
        until = np.searchsorted(weighed, weighed[word] + FOUR_WORDS)
        limit = passages.word_bounds[passage + 1]
        end = np.where(until <= limit, passages.end[np.minimum(until, limit) - 1], high)
    else:
        end = joint
        word = np.searchsorted(passages.end, end, side="right")
        begin = np.searchsorted(weighed, weighed[word] - FOUR_WORDS, side="right") - 1
        limit = passages.word_bounds[passage]
        start = np.where(begin >= limit, passages.start[np.maximum(begin, limit)], low)
    return start, end - start


def _joint(passages: Passages, passage: Ints, length: Ints, *, head: bool) -> Ints:
    """Where what goes on from a fragment begins, or ends: beyond a gap, if any."""
    letters = passages.letters.codes
    if head:
        joint = passages.bounds[passage] + length
        gap: Bools = letters[joint] == GAP
        return joint + gap.astype(np.int64)
    joint = passages.bounds[passage + 1] - length
    gap = letters[joint - 1] == GAP
    return joint - gap.astype(np.int64)


def _holds(
    passages: Passages,
    stream: Stream,
    passage: Ints,
    length: Ints,
    document: Ints,
    *,
    head: bool,
) -> Bools:
    """Whether each document has the fragment at its edge."""
    if head:
        start, place = passages.bounds[passage], stream.bounds[document + 1] - length
    else:
        start, place = passages.bounds[passage + 1] - length, stream.bounds[document]
    return _agree(stream, document, place, passages, start, length)


def _agree(
    stream: Stream,
    document: Ints,
    place: Ints,
    passages: Passages,
    start: Ints,
    length: Ints,
) -> Bools:
    """Whether a stretch of a passage stands at a place, in the lane of a document."""
    lane = stream.lane[document]
    within = place >= stream.lane_bounds[lane]
    within &= place + length <= stream.lane_bounds[lane + 1]
    return within & stream.agree(place, passages.letters, start, length)
