"""Stretches of letters by number: how many thousand of them are found at once."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.matching.spans.letters import MASKS, WORD, Letters, Words

__all__ = ["Index", "Stretches", "Tables", "heads", "is_new", "mix", "slots"]

_MIXED: Final = np.uint64(0x9E3779B97F4A7C15)
_STIRRED: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)
# A key holds 32 bits of a stretch's first letters, 8 of its length, 24 of the rest.
_LENGTH: Final = np.uint64(8)
_REST: Final = np.uint64(24)
# So large is a table that few of its slots are taken by chance.
_SLOT_BITS = 18
_TO_SLOT: Final = np.uint64(64 - _SLOT_BITS)
_HEAD_TO_SLOT: Final = np.uint64(32 - _SLOT_BITS)


class Tables:
    """Memory that one search after the other uses, because new memory is slow.

    Attributes:
        taken: whether any first letters have this slot.
        first: the first kind of stretch that has it.
    """

    def __init__(self) -> None:
        self.taken: Bools = np.zeros(1 << _SLOT_BITS, np.bool_)
        self.first = np.empty(1 << _SLOT_BITS, np.int32)


class Index:
    """The keys of stretches, to be looked up by their first letters.

    Stretches that begin alike and are equally long are of one kind and looked up
    together, so that the work stays in bounds however often a text repeats itself.

    Attributes:
        keys: the keys, in order.
        lengths: the length of each kind.
    """

    def __init__(self, keys: Words, tables: Tables) -> None:
        self.keys = keys
        kinds = keys >> _REST
        self._first_key = np.flatnonzero(is_new(kinds))
        kinds = kinds[self._first_key]
        self.lengths = (kinds & np.uint64(255)).astype(np.int64)
        own = kinds >> _LENGTH
        # Behind the last head stands one that is larger than any.
        self._heads = np.append(own, ~np.uint64(0))
        self._slots = (own >> _HEAD_TO_SLOT).view(np.int64)
        self._tables = tables
        tables.taken[self._slots] = True
        tables.first[self._slots[::-1]] = np.arange(len(own))[::-1]
        start = np.flatnonzero(is_new(own))
        self._count = np.zeros(len(own), np.int64)
        self._count[start] = np.diff(start, append=len(own))

    def look_up(self, heads: Words) -> tuple[Ints, Ints]:
        """Every kind with each head: the row of the head, and the kind."""
        slot = (heads >> _HEAD_TO_SLOT).view(np.int64)
        kind: Ints = self._tables.first[slot].astype(np.int64)
        behind = np.flatnonzero(self._heads[kind] < heads)
        while len(behind):
            kind[behind] += 1
            behind = behind[self._heads[kind[behind]] < heads[behind]]
        row = np.flatnonzero(self._heads[kind] == heads)
        kind = kind[row]
        count = self._count[kind]
        if count.max(initial=1) == 1:
            return row, kind
        kind = np.repeat(kind - count.cumsum() + count, count)
        return np.repeat(row, count), kind + np.arange(len(kind))

    def identify(self, kind: Ints, keys: Words) -> tuple[Ints, Ints]:
        """Which known key each of some keys is, where it is one; and those rows."""
        which = self._first_key[kind]
        other = np.flatnonzero(self.keys[which] != keys)
        which[other] = np.searchsorted(self.keys, keys[other])
        which[other] = np.minimum(which[other], len(self.keys) - 1)
        rows = np.flatnonzero(self.keys[which] == keys)
        return which[rows], rows

    def release(self) -> None:
        """Leave the tables as they were found."""
        self._tables.taken[self._slots] = False


@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches of letters, all of at least so many bytes."""

    letters: Letters
    start: Ints
    length: Ints
    lane: Ints
    least: int

    def only(self, rows: Ints | Bools) -> "Stretches":
        """Some of them, with what is known of them."""
        some = Stretches(
            self.letters,
            self.start[rows],
            self.length[rows],
            self.lane[rows],
            self.least,
        )
        for known in ("sums", "keys"):
            if known in self.__dict__:
                some.__dict__[known] = self.__dict__[known][rows]
        return some

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
        head = heads(self.letters, self.start, self.lane, self.least) << _LENGTH
        rest = self.sums >> (np.uint64(64) - _REST)
        return ((head | self.length.astype(np.uint64)) << _REST) | rest


def heads(letters: Letters, start: Ints, lane: Ints, least: int) -> Words:
    """32 bits for the first letters of each stretch, in its lane."""
    return mix(letters.words[start] & MASKS[least], lane) >> _HALF


def slots(words: Words, lane: int) -> Ints:
    """The slot in a table of what begins with each word, in a lane."""
    return (mix(words, lane) >> _TO_SLOT).view(np.int64)


def mix(words: Words, lane: Ints | int) -> Words:
    """Each word, in its lane, as a number whose first bits are as good as random."""
    seeds = np.asarray(lane).astype(np.uint64) * _STIRRED
    return cast("Words", (words ^ seeds) * _MIXED)


def is_new(values: Words) -> Bools:
    """Whether each of some sorted values differs from the one before."""
    new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return new
