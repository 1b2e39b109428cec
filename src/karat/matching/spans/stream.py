"""Retrieved documents read on, one after the other, and stretches found in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.matching.spans.letters import (
    GAP,
    IN_NUMBER,
    MASKS,
    WORD,
    Letters,
    read_letters,
)
from karat.matching.spans.stretches import (
    Index,
    Stretches,
    Tables,
    heads,
    is_new,
    mix,
    slots,
)

__all__ = ["Stream", "read_stream"]

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
        tables: memory to search with.
    """

    letters: Letters
    lanes: Ints
    tables: Tables = field(default_factory=Tables)

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
        free[:-1] = self.letters.starts | (self.letters.codes[:-WORD] == GAP)
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
            wanted = Stretches(other, start[rows], length[rows], lane[rows], least)
            few = least < WORD and len(rows) <= _FEW
            look = self._find_few if few else self._find
            ends[rows] = look(wanted, closed=closed)
        return ends

    def _find_few(self, wanted: Stretches, *, closed: bool) -> Ints:
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

    def _find(self, wanted: Stretches, *, closed: bool) -> Ints:
        order = wanted.keys.argsort()
        keys = wanted.keys[order]
        new = is_new(keys)
        first = order[new]
        size = self.letters.size
        ends = np.full(len(first), size + 1)
        index = Index(keys[new], self.tables)
        for place, lane in self._candidates(wanted.least):
            row, kind = index.look_up(heads(self.letters, place, lane, wanted.least))
            copies = Stretches(
                self.letters, place[row], index.lengths[kind], lane[row], wanted.least
            )
            inside = copies.start + copies.length <= self.lane_bounds[copies.lane + 1]
            copies, kind = copies.only(inside), kind[inside]
            which, same = index.identify(kind, copies.keys)
            copies = copies.only(same)
            right = copies.sums == wanted.sums[first[which]]
            until = copies.start + copies.length
            if closed:
                right &= self._closed(copies.start, until, copies.lane)
            # The first of several copies is written last, and stays.
            which, until = which[right][::-1], until[right][::-1]
            fresh = ends[which] > size
            ends[which[fresh]] = until[fresh]
        index.release()
        result = np.empty_like(order)
        result[order] = ends[new.cumsum() - 1]
        return result

    def _candidates(self, least: int) -> Iterator[tuple[Ints, Ints]]:
        """Places whose slots are taken, and their lanes."""
        places, lanes, held = [], [], 0
        for lane, low, slot in self._slots if least == WORD else self._mix(least):
            place = np.flatnonzero(self.tables.taken[slot])
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
        """Lane, first place, and where in a table each place has its flag, by block."""
        for lane in np.flatnonzero(np.diff(self.lane_bounds)).tolist():
            start, end = self.lane_bounds[lane : lane + 2].tolist()
            for low in range(start, end, _BLOCK):
                words = self.letters.words[low : min(low + _BLOCK, end)]
                if least < WORD:
                    words = words & MASKS[least]
                yield lane, low, slots(words, lane)

    def _closed(self, start: Any, end: Any, lane: Any) -> Any:
        """Whether no number goes on beyond either end."""
        letters = self.letters.codes
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
        theirs = mix(other.words[start], lane)
        order = theirs.argsort(kind="stable")
        theirs = theirs[order]
        ours = mix(self.letters.words[np.maximum(place, 0)], self.lane)
        nth = np.searchsorted(theirs, ours)
        count = np.searchsorted(theirs, ours, side="right") - nth
        count[place < 0] = 0
        row = np.repeat(nth - count.cumsum() + count, count)
        row += np.arange(len(row))
        return order[row], np.repeat(np.arange(self.count), count)


def read_stream(texts: Sequence[Sequence[str]], tables: Tables | None = None) -> Stream:
    """The letters of the documents of some queries, each in rank order."""
    lanes = np.cumsum([0, *map(len, texts)])
    return Stream(read_letters(texts), lanes, tables or Tables())
