"""Retrieved documents read on, one after the other, and stretches found in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.matching.letters import (
    GAP,
    IN_NUMBER,
    MASKS,
    WORD,
    Letters,
    Words,
    read_letters,
)

__all__ = ["Stream", "read_stream"]

_MIXED: Final = np.uint64(0x9E3779B97F4A7C15)
_STIRRED: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)
# A key holds 32 bits of a stretch's first letters, 8 of its length, 24 of the rest.
_LENGTH: Final = np.uint64(8)
_REST: Final = np.uint64(24)
# The table of first letters is as large as fits beside the letters into the cache.
_SLOT_BITS = 18
_TO_SLOT: Final = np.uint64(64 - _SLOT_BITS)
_HEAD_TO_SLOT: Final = np.uint64(32 - _SLOT_BITS)
_SHORT = 4
# Up to so many short stretches are looked for one by one.
_FEW = 256
# Places looked at in one go.
_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class Stream:
    """The letters of documents in rank order, those of a query as if one text.

    So it makes no difference where the same text was cut into documents. Each query has
    a lane of its own.

    Attributes:
        letters: the letters of all documents.
        lanes: the first document of each lane, and the number of documents.
    """

    letters: Letters
    lanes: Ints

    @property
    def count(self) -> int:
        """The number of documents."""
        return len(self.letters.ends)

    @property
    def bounds(self) -> Ints:
        """Where documents begin and end: one more than there are documents."""
        return self.letters.bounds

    @cached_property
    def lane_bounds(self) -> Ints:
        """Where lanes begin and end."""
        return self.bounds[self.lanes]

    @cached_property
    def lane(self) -> Ints:
        """The lane of each document."""
        return np.repeat(np.arange(len(self.lanes) - 1), np.diff(self.lanes))

    @cached_property
    def free(self) -> Bools:
        """Whether a word may start at each place, or have ended before it."""
        free = np.ones(self.letters.size + 1, np.bool_)
        free[:-1] = self.letters.starts | (self.letters.bytes[:-WORD] == GAP)
        free[self.bounds] = True
        return free

    def documents(self, ends: Ints) -> Ints:
        """The document in which a stretch ends; their number where it was not found."""
        return np.searchsorted(self.letters.ends, ends - 1, side="right")

    def find(
        self,
        other: Letters,
        start: Ints,
        length: Ints,
        lane: Ints,
        *,
        closed: bool = False,
    ) -> Ints:
        """Where the first copy of each stretch of other letters ends, in its lane.

        Args:
            other: the letters the stretches lie in.
            start: where each begins.
            length: the number of its bytes, below 256.
            lane: where to look.
            closed: a number at either end must not go on in the copy.

        Returns:
            The place after the last byte; beyond the end where there is no copy.
        """
        ends = np.full(len(start), self.letters.size + 1)
        for least, most in ((WORD, 256), (_SHORT, WORD), (1, _SHORT)):
            rows = np.flatnonzero((length >= least) & (length < most))
            if not len(rows):
                continue
            wanted = _Stretches(other, start[rows], length[rows], lane[rows], least)
            few = least < WORD and len(rows) <= _FEW
            look = self._find_few if few else self._find
            ends[rows] = look(wanted, closed=closed)
        return ends

    def _find_few(self, wanted: "_Stretches", *, closed: bool) -> Ints:
        """The same, one by one."""
        data, ends = self.letters.data, []
        rows = zip(
            wanted.start.tolist(),
            wanted.length.tolist(),
            wanted.lane.tolist(),
            strict=True,
        )
        for start, length, lane in rows:
            letters = wanted.letters.data[start : start + length]
            low, high = self.lane_bounds[lane : lane + 2].tolist()
            place = data.find(letters, low, high)
            while (
                closed and place >= 0 and not self._closed(place, place + length, lane)
            ):
                place = data.find(letters, place + 1, high)
            ends.append(place + length if place >= 0 else self.letters.size + 1)
        return np.array(ends)

    def _find(self, wanted: "_Stretches", *, closed: bool) -> Ints:
        order = wanted.keys.argsort()
        keys = wanted.keys[order]
        new = _is_new(keys)
        index = _Index(keys[new])
        first = order[new]
        size = self.letters.size
        ends = np.full(len(first), size + 1)
        for candidates in self._candidates(index, wanted.least):
            copies = self._copies(*candidates, index, wanted.least)
            found = np.minimum(np.searchsorted(index.keys, copies.keys), len(ends) - 1)
            same = np.flatnonzero(index.keys[found] == copies.keys)
            found, place, length = found[same], copies.start[same], copies.length[same]
            right = copies.sums[same] == wanted.sums[first[found]]
            if closed:
                right &= self._closed(place, place + length, copies.lane[same])
            # The first of several copies is written last, and stays.
            found, until = found[right][::-1], (place + length)[right][::-1]
            fresh = ends[found] > size
            ends[found[fresh]] = until[fresh]
        result = np.empty_like(order)
        result[order] = ends[new.cumsum() - 1]
        return result

    def _candidates(self, index: "_Index", least: int) -> Iterator[tuple[Ints, Ints]]:
        """Places where the first letters of some stretch may stand, and their lanes."""
        places, lanes, held = [], [], 0
        for lane, low, slots in self._slots if least == WORD else self._mix(least):
            place = np.flatnonzero(index.taken[slots])
            places.append(place + low)
            lanes.append(np.full(len(place), lane))
            held += len(place)
            if held >= _BLOCK:
                yield np.concatenate(places), np.concatenate(lanes)
                places, lanes, held = [], [], 0
        if held:
            yield np.concatenate(places), np.concatenate(lanes)

    @cached_property
    def _slots(self) -> list[tuple[int, int, Ints]]:
        return [*self._mix(WORD)]

    def _mix(self, least: int) -> Iterator[tuple[int, int, Ints]]:
        """Lane, first place, and where in a table each place of a block has its flag."""
        for lane in np.flatnonzero(np.diff(self.lane_bounds)).tolist():
            start, end = self.lane_bounds[lane : lane + 2].tolist()
            for low in range(start, end, _BLOCK):
                words = self.letters.words[low : min(low + _BLOCK, end)]
                if least < WORD:
                    words = words & MASKS[least]
                mixed = ((words ^ _seeds(lane)) * _MIXED) >> _TO_SLOT
                yield lane, low, mixed.view(np.int64)

    def _copies(
        self, place: Ints, lane: Ints, index: "_Index", least: int
    ) -> "_Stretches":
        """Stretches at the places, as long as any that begins with the same letters."""
        kind, count = index.look_up(_heads(self.letters, place, lane, least))
        if count.max(initial=0) <= 1:
            rows = np.flatnonzero(count)
            place, lane, kind = place[rows], lane[rows], kind[rows]
        else:
            kind = np.repeat(kind - count.cumsum() + count, count)
            kind += np.arange(len(kind))
            place, lane = np.repeat(place, count), np.repeat(lane, count)
        length = index.lengths[kind]
        rows = np.flatnonzero(place + length <= self.lane_bounds[lane + 1])
        return _Stretches(self.letters, place[rows], length[rows], lane[rows], least)

    def _closed(self, start: Any, end: Any, lane: Any) -> Any:
        """Whether no number goes on beyond either end."""
        letters = self.letters.bytes
        before = IN_NUMBER[letters[start]] & IN_NUMBER[letters[start - 1]]
        before &= start > self.lane_bounds[lane]
        after = IN_NUMBER[letters[end - 1]] & IN_NUMBER[letters[end]]
        after &= end < self.lane_bounds[lane + 1]
        return ~(before | after)

    def agree(self, place: Ints, other: Letters, start: Ints, length: Ints) -> Bools:
        """Whether the letters from each place on are those of a stretch of others."""
        same: Bools = (place >= 0) & (place + length <= self.letters.size)
        rows = np.flatnonzero(same)
        for done in range(0, int(length.max(initial=0)), WORD):
            rows = rows[length[rows] > done]
            left = np.minimum(length[rows] - done, WORD)
            ours = self.letters.words[place[rows] + done]
            theirs = other.words[start[rows] + done]
            differ = ((ours ^ theirs) & MASKS[left]) != 0
            same[rows[differ]] = False
            rows = rows[~differ]
        return same

    def beside(
        self, place: Ints, other: Letters, start: Ints, lane: Ints
    ) -> tuple[Ints, Ints]:
        """Pairs of a document and a stretch whose next eight bytes are the same.

        Args:
            place: one place for each document; negative for none.
            other: the letters the stretches lie in.
            start: where each stretch begins.
            lane: the lane of each stretch.

        Returns:
            The row of the stretch, and the document, of each pair.
        """
        theirs = (other.words[start] ^ _seeds(lane)) * _MIXED
        order = theirs.argsort(kind="stable")
        theirs = theirs[order]
        ours = (self.letters.words[np.maximum(place, 0)] ^ _seeds(self.lane)) * _MIXED
        nth = np.searchsorted(theirs, ours)
        count = np.searchsorted(theirs, ours, side="right") - nth
        count[place < 0] = 0
        row = np.repeat(nth - count.cumsum() + count, count)
        row += np.arange(len(row))
        return order[row], np.repeat(np.arange(self.count), count)


class _Index:
    """The keys of stretches, to be looked up by their first letters.

    Stretches that begin alike and are equally long are of one kind and looked up
    together, so that the work stays in bounds however often a text repeats itself.
    """

    def __init__(self, keys: Words) -> None:
        self.keys = keys
        kinds = keys >> _REST
        kinds = kinds[_is_new(kinds)]
        self.heads = kinds >> _LENGTH
        self.lengths = (kinds & np.uint64(255)).astype(np.int64)
        slots = (self.heads >> _HEAD_TO_SLOT).astype(np.int64)
        self.taken = np.zeros(1 << _SLOT_BITS, np.bool_)
        self.taken[slots] = True
        self._first = np.empty(1 << _SLOT_BITS, np.int32)
        self._first[slots[::-1]] = np.arange(len(slots))[::-1]
        start = np.flatnonzero(_is_new(self.heads))
        self._count = np.zeros(len(slots), np.int64)
        self._count[start] = np.diff(start, append=len(slots))

    def look_up(self, heads: Words) -> tuple[Ints, Ints]:
        """The first kind with each head, and how many there are."""
        kind = self._first[heads >> _HEAD_TO_SLOT].astype(np.int64)
        behind = np.flatnonzero(self.heads[kind] < heads)
        while len(behind):
            kind[behind] += 1
            kind[behind] = np.minimum(kind[behind], len(self.heads) - 1)
            last = kind[behind] == len(self.heads) - 1
            behind = behind[(self.heads[kind[behind]] < heads[behind]) & ~last]
        return kind, np.where(self.heads[kind] == heads, self._count[kind], 0)


@dataclass(frozen=True, eq=False)
class _Stretches:
    """Stretches of letters, all of at least so many bytes."""

    letters: Letters
    start: Ints
    length: Ints
    lane: Ints
    least: int

    @cached_property
    def sums(self) -> Words:
        """A number for each stretch that depends on every letter."""
        words, start, length = self.letters.words, self.start, self.length
        sums = words[start] & MASKS[np.minimum(length, WORD)]
        for done in range(WORD, int(length.max(initial=0)), WORD):
            rows = np.flatnonzero(length > done)
            place = start[rows] + np.minimum(done, length[rows] - WORD)
            mixed = sums[rows] * _STIRRED
            sums[rows] = (mixed ^ (mixed >> _HALF)) + words[place]
        return sums * _STIRRED

    @cached_property
    def keys(self) -> Words:
        """A number for each stretch, in the order of first letters, then length."""
        head = _heads(self.letters, self.start, self.lane, self.least) << _LENGTH
        rest = self.sums >> (np.uint64(64) - _REST)
        return ((head | self.length.astype(np.uint64)) << _REST) | rest


def _heads(letters: Letters, start: Ints, lane: Ints, least: int) -> Words:
    """32 bits for the first letters of each stretch, in its lane."""
    words = (letters.words[start] & MASKS[least]) ^ _seeds(lane)
    return cast("Words", (words * _MIXED) >> _HALF)


def _seeds(lane: Ints | int) -> Words:
    return cast("Words", np.asarray(lane).astype(np.uint64) * _STIRRED)


def _is_new(values: Words) -> Bools:
    """Whether each of some sorted values differs from the one before."""
    new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return new


def read_stream(texts: Sequence[Sequence[str]]) -> Stream:
    """The letters of the documents of some queries, each in rank order."""
    lanes = np.cumsum([0, *map(len, texts)])
    return Stream(read_letters(texts), lanes)
