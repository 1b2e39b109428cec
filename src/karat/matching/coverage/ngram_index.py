"""Which n-grams of gold passages stand in which documents, for many queries at once."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Ints
from karat.matching.coverage.alphabet import Codes, codes_of

__all__ = [
    "HEADER_SLACK",
    "SLACK",
    "Index",
    "Overlap",
    "Stretch",
    "Texts",
    "hash_grams",
    "places_inside",
]

SLACK = 2
"""So many letters before a run may be something else than the document's edge."""
HEADER_SLACK = 6
"""So many letters may lie between the header of a document and the run after it."""

Hashes = npt.NDArray[np.uint32]

# Thirty-two bits are fast, and enough: what is found is compared letter by letter.
_ODD: Final = np.uint32(0x9E3779B1)
_BASE = 0x85EBCA6B
_SLOT_BITS = 20
_TO_SLOT: Final = np.uint32(32 - _SLOT_BITS)


class Stretch(NamedTuple):
    """A stretch of a passage all of whose n-grams stand in a document.

    Attributes:
        passage: the passage.
        document: the document.
        start: where the stretch begins, in letters of the passage.
        end: where it ends.
        places: where in the document each n-gram is first met.
    """

    passage: int
    document: int
    start: int
    end: int
    places: Ints


class Overlap(NamedTuple):
    """Letters that one document begins with and that another has from a place on.

    They reach to the end of one of the two.
    """

    document: int
    other: int
    place: int
    length: int


def hash_grams(codes: Codes, n: int) -> Hashes:
    """A hash of the n letters from each place on."""
    if len(codes) < n:
        return np.zeros(0, np.uint32)
    hashes, width = codes * _ODD, 1
    whole, reach = hashes, 0
    while True:
        factor = np.uint32(pow(_BASE, width, 1 << 32))
        if n & width:
            size = len(codes) - reach - width + 1
            part = hashes[reach : reach + size]
            whole = whole[:size] * factor + part if reach else part
            reach += width
        if reach == n:
            return whole
        hashes = hashes[:-width] * factor + hashes[width:]
        width *= 2


class Texts:
    """The letters of texts, one after the other."""

    def __init__(self, letters: Sequence[str]) -> None:
        self.codes = codes_of("".join(letters))
        self.size = np.fromiter(map(len, letters), np.int64, len(letters))
        self.bounds = np.concatenate(([0], self.size.cumsum()))


class Index:
    """Finds what passages and documents of the same query have in common.

    Args:
        passages: the letters of each passage.
        passage_query: the query of each.
        documents: the letters of each document.
        document_query: the query of each.
        n: letters that are compared at once.
    """

    def __init__(
        self,
        passages: Sequence[str],
        passage_query: Ints,
        documents: Sequence[str],
        document_query: Ints,
        n: int,
    ) -> None:
        self._n = n
        self._passages = golds = Texts(passages)
        self._documents = texts = Texts(documents)
        self._hashes = hash_grams(texts.codes, n)
        # The same letters of two queries have different keys.
        salt = document_query.astype(np.uint32) * _ODD
        self._hashes ^= np.repeat(salt, texts.size)[: len(self._hashes)]
        text, self._gold_place = places_inside(golds, n)
        self._gold_key = hash_grams(golds.codes, n)[self._gold_place]
        self._gold_key ^= (passage_query.astype(np.uint32) * _ODD)[text]
        self._heads = np.flatnonzero(texts.size >= n)
        self._head_key = self._hashes[texts.bounds[self._heads]]
        taken = np.zeros(1 << _SLOT_BITS, np.bool_)
        for keys in (self._gold_key, self._head_key):
            taken[keys >> _TO_SLOT] = True
        place = np.flatnonzero(taken[self._hashes >> _TO_SLOT])
        document = np.searchsorted(texts.bounds, place, "right") - 1
        inside = place + n <= texts.bounds[document + 1]
        self._place, self._document = place[inside], document[inside]
        self._key = self._hashes[self._place]

    def stretches(
        self, long: Ints, begins: Sequence[Collection[int]]
    ) -> Iterator[Stretch]:
        """The stretches of each passage and document, where any of them may count.

        Args:
            long: how long a stretch of each passage must be to count in itself.
            begins: where each document may begin, after a header; near there, and near
                its end, any stretch counts.
        """
        n, bounds = self._n, self._documents.bounds
        first, last = bounds[self._document], bounds[self._document + 1]
        edge = (self._place - first <= SLACK) | (last - self._place - n <= SLACK)
        headed = [number for number, places in enumerate(begins) if len(places) > 1]
        for number in headed:
            rows = slice(*np.searchsorted(self._document, (number, number + 1)))
            for after in begins[number]:
                distance = np.abs(self._place[rows] - first[rows] - after)
                edge[rows] |= distance <= HEADER_SLACK
        # Each n-gram of a document once, at its first place, and only then all places
        # of a passage that have it: texts that repeat themselves stay cheap.
        pair = (self._document << 32) | self._key
        order = np.argsort(pair)
        new = np.flatnonzero(_differs(pair[order]))
        if not len(new):
            return
        key, near = self._key[order[new]], np.logical_or.reduceat(edge[order], new)
        first = np.minimum.reduceat(self._place[order], new)
        hit, row = _join(key, self._gold_key)
        gold, document = self._gold_place[row], self._document[order[new[hit]]]
        order = np.argsort(document * len(self._passages.codes) + gold)
        gold, document, hit = gold[order], document[order], hit[order]
        near, place = near[hit], first[hit] - bounds[document]
        if not len(hit):
            return
        passage = np.searchsorted(self._passages.bounds, gold, "right") - 1
        # Stretches: the n-grams of consecutive letters of a passage.
        start = np.flatnonzero(_differs(document) | (np.diff(gold, prepend=-2) != 1))
        stop = np.append(start[1:], len(gold))
        size = stop - start + n - 1
        strong = np.logical_or.reduceat(near, start) | (size >= long[passage[start]])
        groups = np.flatnonzero(_differs(document[start]) | _differs(passage[start]))
        kept = np.logical_or.reduceat(strong, groups)
        kept = np.repeat(kept, np.diff(np.append(groups, len(start))))
        begin = gold - self._passages.bounds[passage]
        for a, b in zip(start[kept].tolist(), stop[kept].tolist(), strict=True):
            low = int(begin[a])
            yield Stretch(
                int(passage[a]), int(document[a]), low, low + b - a + n - 1, place[a:b]
            )

    def overlaps(self) -> Iterator[Overlap]:
        """What the documents of a query have twice, because they overlap."""
        n, bounds, size = self._n, self._documents.bounds, self._documents.size
        hit, row = _join(self._key, self._head_key)
        head, document, place = self._heads[row], self._document[hit], self._place[hit]
        length = np.minimum(size[head], bounds[document + 1] - place)
        same = (
            self._hashes[bounds[head] + length - n] == self._hashes[place + length - n]
        )
        rows = np.flatnonzero(same & (head != document))
        order = np.lexsort((place[rows], document[rows], head[rows]))
        rows = rows[order]
        rows = rows[_differs(document[rows]) | _differs(head[rows])]
        codes = self._documents.codes
        for number in rows.tolist():
            low, at, count = (
                int(bounds[head[number]]),
                int(place[number]),
                int(length[number]),
            )
            if np.array_equal(codes[low : low + count], codes[at : at + count]):
                other = int(document[number])
                yield Overlap(int(head[number]), other, at - int(bounds[other]), count)


def places_inside(letters: Texts, n: int) -> tuple[Ints, Ints]:
    """The n-grams that lie in one text: which text, and where they begin."""
    count = np.maximum(letters.size - n + 1, 0)
    text = np.repeat(np.arange(len(count)), count)
    skipped = letters.bounds[:-1] - (np.cumsum(count) - count)
    return text, np.arange(len(text)) + skipped[text]


def _join(keys: Hashes, wanted: Hashes) -> tuple[Ints, Ints]:
    """The rows of the first and of the second that have the same key."""
    if not len(wanted):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(wanted)
    wanted = wanted[order]
    low = np.searchsorted(wanted, keys)
    found = np.flatnonzero(np.append(wanted, 0)[low] == keys)
    found = found[low[found] < len(wanted)]
    # How often each key stands there: up to the next one that differs.
    runs = np.flatnonzero(_differs(wanted))
    until = np.repeat(
        np.append(runs[1:], len(wanted)), np.diff(np.append(runs, len(wanted)))
    )
    low = low[found]
    count = until[low] - low
    rows = np.repeat(found, count)
    skipped = np.cumsum(count) - count
    return rows, order[np.arange(len(rows)) - np.repeat(skipped - low, count)]


def _differs(values: Ints | Hashes) -> Bools:
    """Whether each value differs from the one before; the first does."""
    differs = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs
