"""Which letters of gold passages the documents of a query cover, and since when."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from karat.data.arrays import Ints
from karat.matching.spans.fragments import fragments
from karat.matching.spans.passages import ONE_WORD, Passages
from karat.matching.spans.stream import Stream

__all__ = ["Cover", "cover"]


@dataclass(frozen=True, eq=False)
class Cover:
    """From which document on each letter of the passages is covered.

    Attributes:
        passages: the passages.
        stream: the documents.
        since: the document that completes the stretch each byte lies in; the number of
            documents for a byte that is never covered.
        tied: the same for the joint of each byte with the next: since when both were
            covered by one stretch.
    """

    passages: Passages
    stream: Stream
    since: Ints
    tied: Ints

    @cached_property
    def cells(self) -> Ints:
        """Where in `gained` each passage begins: a cell for each document of its lane.

        One more than there are passages.
        """
        documents = np.diff(self.stream.lanes)[self.passages.lane]
        return np.concatenate(([0], documents.cumsum()))

    @cached_property
    def gained(self) -> Ints:
        """How many characters of each passage each document of its lane adds."""
        passages, since = self.passages, self.since
        leads = passages.letters.leads
        if leads is not None:
            # A character is covered when all its bytes are.
            place = np.flatnonzero(leads)
            since = since.copy()
            since[place] = np.maximum.reduceat(since, place)
        rows = np.flatnonzero(passages.letters.counted & (since < self.stream.count))
        first = self.cells[:-1] - self.stream.lanes[passages.lane]
        cell = np.repeat(first, np.diff(passages.bounds))[rows] + since[rows]
        return np.bincount(cell, minlength=int(self.cells[-1]))

    @cached_property
    def tied_since(self) -> Ints:
        """From which document on each passage is covered in one stretch."""
        low, high = self.passages.bounds[:-1], self.passages.bounds[1:] - 1
        rows = np.flatnonzero(high > low)
        since = np.zeros(self.passages.count, np.int64)
        if len(rows):
            edges = np.stack((low[rows], high[rows]), axis=1).ravel()
            since[rows] = np.maximum.reduceat(self.tied, edges)[::2]
        return since

    @cached_property
    def facts_since(self) -> Ints:
        """From which document on all numbers and negations of a passage are covered.

        Only for passages of which any word is.
        """
        passages, never = self.passages, self.stream.count
        since = np.zeros(passages.count, np.int64)
        edges = np.minimum(self.since[passages.start], self.since[passages.end - 1])
        touched = np.zeros(passages.count, np.bool_)
        touched[passages.passage[edges < never]] = True
        start, end, passage = passages.facts(touched)
        if len(start):
            edges = np.stack((start, end), axis=1).ravel()
            fact = np.maximum.reduceat(np.append(self.since, 0), edges)[::2]
            np.maximum.at(since, passage, fact)
        return since


def cover(passages: Passages, stream: Stream) -> Cover:
    """Find the stretches of the passages that the documents hold.

    A stretch holds four words or more, or all of a passage that has fewer; it goes on
    from there letter by letter. Where a document is cut inside a passage, fewer words
    will do: see `fragments`.
    """
    if not stream.letters.size or not len(passages.start):
        never = np.full(passages.letters.size, stream.count)
        return Cover(passages, stream, never, never)
    by_word, joined, copies = _windows(passages, stream)
    span = np.diff(passages.start, append=passages.letters.size)
    since = np.repeat(by_word, span)
    cover = Cover(passages, stream, since, since.copy())
    # Where there is a gap between two numbers it is part of their joint.
    cover.tied[passages.end - 1] = joined
    cover.tied[passages.start + span - 1] = joined
    _stretch(cover, by_word, copies)
    for part, document, joint in fragments(passages, stream, since):
        np.minimum(since[part], document, out=since[part])
        np.minimum(cover.tied[joint], document, out=cover.tied[joint])
    return cover


def _windows(passages: Passages, stream: Stream) -> tuple[Ints, Ints, Ints]:
    """Since when each word and its joint with the next are covered.

    And where the first copy of the window that begins with each word ends.
    """
    never, width = stream.count, passages.width
    windows = np.full(len(width), never)
    brief = passages.brief
    rows = np.flatnonzero((width > 0) & ~brief[passages.passage])
    start = passages.start[rows]
    length = passages.end[rows + width[rows] - 1] - start
    lane = passages.lane[passages.passage[rows]]
    copies = np.full(len(width), stream.letters.size + 1)
    copies[rows] = stream.find(passages.letters, start, length, lane, closed=True)
    windows[rows] = stream.documents(copies[rows])
    for passage in np.flatnonzero(brief).tolist():
        windows[passages.word_bounds[passage]] = _find_brief(passages, stream, passage)
    by_word, joined = windows.copy(), np.full(len(width), never)
    for step in range(1, int(width.max(initial=0))):
        earlier = np.where(width[:-step] > step, windows[:-step], never)
        np.minimum(by_word[step:], earlier, out=by_word[step:])
        np.minimum(joined[step - 1 : -1], earlier, out=joined[step - 1 : -1])
    return by_word, joined, copies


def _find_brief(passages: Passages, stream: Stream, passage: int) -> int:
    """The document with a copy of a brief passage that splits no word.

    In scripts without spaces any place may be the edge of a word. A document of a
    single letter matches nothing.
    """
    first, last = passages.word_bounds[passage], passages.word_bounds[passage + 1] - 1
    spaced = passages.weight[[first, last]] == ONE_WORD
    wanted = passages.letters.data[passages.start[first] : passages.end[last]]
    lane = passages.lane[passage]
    low, high = stream.lane_bounds[lane : lane + 2].tolist()
    data, free = stream.letters.data, stream.free
    place = data.find(wanted, low, high)
    while place >= 0:
        until = place + len(wanted)
        if (free[place] or not spaced[0]) and (free[until] or not spaced[1]):
            document = int(np.searchsorted(stream.letters.ends, until - 1, "right"))
            if stream.bounds[document + 1] - stream.bounds[document] > 1:
                return document
        place = data.find(wanted, place + 1, high)
    return stream.count


def _stretch(cover: Cover, by_word: Ints, copies: Ints) -> None:
    """Go on letter by letter into the words before and after each covered stretch."""
    passages, stream = cover.passages, cover.stream
    same = passages.passage[1:] == passages.passage[:-1]
    found = np.flatnonzero(copies <= stream.letters.size)
    ending = np.full(len(copies) + 1, -1)
    ending[found + passages.width[found]] = found
    after = np.flatnonzero(same & (by_word[:-1] < by_word[1:])) + 1
    after = after[ending[after] >= 0]
    before = np.flatnonzero(same & (by_word[:-1] > by_word[1:]))
    before = before[copies[before + 1] <= stream.letters.size]
    window = before + 1
    length = passages.end[before + passages.width[window]] - passages.start[window]
    _go_on(cover, passages.end[after - 1], copies[ending[after]], 1, after)
    _go_on(cover, passages.start[window] - 1, copies[window] - length - 1, -1, before)


def _go_on(cover: Cover, ours: Ints, theirs: Ints, step: int, word: Ints) -> None:
    """Cover a word byte by byte, as far as the copy goes on like the passage."""
    passages, stream = cover.passages, cover.stream
    lane = passages.lane[passages.passage[word]]
    low, high = stream.lane_bounds[lane], stream.lane_bounds[lane + 1]
    # Only part of the word can be covered: all of it would have been found.
    stop = passages.end[word] - 1 if step > 0 else passages.start[word]
    letters, copies = passages.letters.codes, stream.letters.codes
    while len(ours):
        inside = (theirs >= low) & (theirs < high) & (ours != stop)
        rows = np.flatnonzero(inside)
        rows = rows[letters[ours[rows]] == copies[theirs[rows]]]
        ours, theirs, stop = ours[rows], theirs[rows], stop[rows]
        low, high = low[rows], high[rows]
        since = np.searchsorted(stream.letters.ends, theirs, side="right")
        np.minimum.at(cover.since, ours, since)
        np.minimum.at(cover.tied, ours - (step > 0), since)
        ours, theirs = ours + step, theirs + step
