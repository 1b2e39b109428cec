"""Which letters of a gold passage each document covers.

A run is a stretch of letters that passage and document share. It counts when it is
long; when it lies where the document begins or ends, because there a chunk was cut; or
when it lies beside a run of the same document that counts. Short gaps between such runs
are typing or scanning errors, and are covered with them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Ints
from karat.matching.contains import splits_word
from karat.matching.letters import Letters, numbers_in
from karat.matching.normaliser import WIDE_WEIGHT, weigh
from karat.matching.similarity import scorer

Seeds = Iterable[tuple[int, int, int]]
"""From where to where in a passage runs may be, and from where on in a document."""

HEADER_SLACK = 6
"""So many letters may lie between the header of a document and the run after it."""

LEAST = 12
"""The weight of the shortest run."""
# The weight of a run that counts wherever it lies; of what may lie between a run and
# one that it lies beside; and of the shortest piece at the end of a document that the
# passage begins with, or the other way round.
_LONG, _NEAR, _EDGE = 32, 40, 6
_SHARE_OF_SHORT = 0.8
_SLACK = 2
_TYPO = 3
# So many letters may be lost or added between a run and one that it lies beside.
_SHIFT = 8
# And so many may be added where the passage goes on, as by the header of a page.
_LONGEST_HEADING = 80
_SIMILAR = 0.6
_LONGEST_GAP = 40
# So many letters at an end of a passage are held against what stands there instead.
_FEWEST = 6
# In longer documents only long runs are looked for a second time.
_LONG_DOCUMENT = 50_000
# Eight times so many letters are compared first, and each time eight times as many.
_FEW = 8


class GoldLetters:
    """The letters of a passage, and how much they weigh; runs are judged by it.

    A letter of an alphabet weighs 1, and so does a Korean syllable; a Chinese character
    weighs more, because fewer of them say as much. `head` and `tail` make a piece at an
    edge.
    """

    def __init__(self, letters: str) -> None:
        self.letters = letters
        self._sums: Sequence[float] = range(len(letters) + 1)
        self.least = LEAST
        if not letters.isascii() and (weights := weigh(letters)).max() > 1:
            self._sums = [0, *weights.cumsum().tolist()]
            self.least = LEAST // WIDE_WEIGHT
        total = self._sums[-1]
        self.long = min(_LONG, max(LEAST, int(_SHARE_OF_SHORT * total)))
        self.head = letters[: bisect_left(self._sums, _EDGE)]
        self.tail = letters[max(0, bisect_right(self._sums, total - _EDGE) - 1) :]

    def weigh(self, start: int, end: int) -> float:
        """The weight of the letters from start to end, below 0 if that lies before."""
        return self._sums[end] - self._sums[start]


class SharedRun(NamedTuple):
    """Letters that a passage has from start to end, and a document from a place on."""

    start: int
    end: int
    place: int

    @property
    def place_end(self) -> int:
        """Where in the document it ends."""
        return self.place + self.end - self.start


class Gap(NamedTuple):
    """Letters between runs on both sides; covered when they are much alike."""

    start: int
    end: int
    place: int
    place_end: int
    covered: bool


class Part(NamedTuple):
    """What one document covers of a passage: what both share, and what lies between.

    It counts from the document `since` on: itself, or a later one that has the same
    header, and so tells where the text of this one begins.
    """

    document: int
    since: int
    runs: list[SharedRun]
    gaps: list[Gap]


def cover(
    gold: GoldLetters,
    documents: Sequence[str],
    begins: Sequence[dict[int, int]],
    seeds: Mapping[int, Seeds],
) -> Iterator[Part]:
    """What documents cover of a passage, given where each begins and runs may be."""
    for number, document in enumerate(documents):
        shared = _runs(gold, document, seeds.get(number, ()))
        if not shared and document in gold.letters:
            at = gold.letters.index(document)
            end = at + len(document)
            shared = [SharedRun(at, end, 0)] if gold.weigh(at, end) >= _EDGE else []
        for begin, since in begins[number].items():
            runs = _counted(gold, document, shared, begin) if shared else []
            gaps = _gaps(gold.letters, document, runs, begin) if runs else []
            if (
                gold.head in document[1 - LEAST :]
                or gold.tail in document[begin : begin + LEAST - 1]
            ):
                runs = sorted(runs + _pieces(gold, document, begin))
            if runs:
                yield Part(number, since, runs, gaps)


def cover_brief(gold: Letters, documents: Sequence[Letters]) -> Iterator[Part]:
    """Where documents have a passage of a few letters as words of their own."""
    size = len(gold.letters)
    for number, document in enumerate(documents if size else ()):
        place = document.letters.find(gold.letters)
        while place >= 0 and not _is_apart(gold, document, place):
            place = document.letters.find(gold.letters, place + 1)
        if place >= 0:
            yield Part(number, number, [SharedRun(0, size, place)], [])


def _is_apart(gold: Letters, document: Letters, place: int) -> bool:
    """Whether a copy of a brief passage splits no word, and has its signs."""
    size, text = len(gold.letters), document.text
    start, end = gold.stretch(0, size)
    low, high = document.stretch(place, place + size)
    signs = [
        (gold.signs.get((at, kind), ""), document.signs.get((place + at, kind), ""))
        for at, kind in ((0, "<"), (size, "["), (size, "+"))
    ]
    return (
        not (splits_word(text, low) or splits_word(text, high))
        and numbers_in(gold.text[start:end]) == numbers_in(text[low:high])
        and all(ours in {"", theirs} for ours, theirs in signs)
        and signs[-1][0] == signs[-1][1]
    )


def _runs(gold: GoldLetters, document: str, seeds: Seeds) -> list[SharedRun]:
    """The longest runs of a document, in the order of the passage."""
    runs: list[SharedRun] = []
    for start, end, place in seeds:
        if runs and end <= runs[-1].end:
            continue
        run = _longest(gold, document, start, place)
        if gold.weigh(run.start, run.end) >= LEAST:
            while runs and runs[-1].start >= run.start:
                runs.pop()
            runs.append(run)
    return runs


def _longest(gold: GoldLetters, document: str, start: int, place: int) -> SharedRun:
    """The longest run from a letter on, at the given place or at another."""
    letters = gold.letters
    end = start + _count_same(letters, start, document, place)
    while end < len(letters) and (
        len(document) < _LONG_DOCUMENT or gold.weigh(start, end) >= gold.long
    ):
        other = document.find(letters[start : end + 1])
        if other < 0:
            break
        place, end = other, start + _count_same(letters, start, document, other)
    return SharedRun(start, end, place)


def _count_same(gold: str, at: int, document: str, place: int) -> int:
    """How many letters are the same from two places on."""
    same = size = _FEW
    while same == size:
        size *= 8
        some = gold[at : at + size], document[place : place + size]
        same = int(scorer("prefix")(*some))
    return same


def _counted(
    gold: GoldLetters, document: str, runs: Iterable[SharedRun], begin: int
) -> list[SharedRun]:
    """The runs that count: long, where the document was cut, or beside such a run."""
    chains: list[list[SharedRun]] = []
    for run in runs:
        moved = _beside(gold, document, run, chains[-1][-1]) if chains else None
        if moved:
            chains[-1].append(moved)
        else:
            chains.append([_at_edge(gold.letters, document, run, begin)])
    counted: list[SharedRun] = []
    waiting: list[SharedRun] = []
    for chain in chains:
        if _counts(gold, document, chain, begin):
            before = [chain[0]]
            for run in reversed(waiting):
                if moved := _beside(gold, document, run, before[-1]):
                    before.append(moved)
            counted += before[:0:-1] + chain
            waiting = []
        else:
            waiting += chain
    return counted


def _counts(
    gold: GoldLetters, document: str, chain: list[SharedRun], begin: int
) -> bool:
    """Whether one run is long, or they go from where a document was cut to an end."""
    if any(gold.weigh(run.start, run.end) >= gold.long for run in chain):
        return True
    first, last = chain[0], chain[-1]
    opens = first.place <= _SLACK or abs(first.place - begin) <= HEADER_SLACK
    closes = last.place_end >= len(document) - _SLACK
    is_first = gold.weigh(0, first.start) < LEAST
    is_last = gold.weigh(last.end, len(gold.letters)) < LEAST
    return (opens and (closes or is_last)) or (closes and is_first)


def _beside(
    gold: GoldLetters, document: str, run: SharedRun, other: SharedRun
) -> SharedRun | None:
    """The copy of a run that lies about as far from another as in the passage."""
    gap = max(gold.weigh(other.end, run.start), gold.weigh(run.end, other.start))
    if gap > _NEAR:
        return None
    reach = _LONGEST_HEADING if gap <= _TYPO else _SHIFT
    part = gold.letters[run.start : run.end]
    there = run.start + other.place - other.start
    if run.start >= other.start:
        low = max(there - _SHIFT, min(there, other.place_end))
        place = document.find(part, max(0, low), there + len(part) + reach)
    else:
        high = min(there + _SHIFT + len(part), max(there + len(part), other.place))
        place = document.rfind(part, max(0, there - reach), max(0, high))
    return run._replace(place=place) if place >= 0 else None


def _at_edge(gold: str, document: str, run: SharedRun, begin: int) -> SharedRun:
    """The copy of a run where the document begins or ends, if there is one."""
    part = gold[run.start : run.end]
    size = len(part) + _SLACK
    places = [
        document.rfind(part, 0, size),
        document.find(part, max(0, len(document) - size)),
        document.find(
            part, max(0, begin - HEADER_SLACK), begin + HEADER_SLACK + len(part)
        ),
    ]
    return run._replace(place=max(places)) if max(places) >= 0 else run


def _gaps(gold: str, document: str, runs: list[SharedRun], begin: int) -> list[Gap]:
    """What stands between the runs, and at the ends of a passage or document."""
    gaps = []
    for one, two in pairwise(runs):
        start, end = one.end, max(one.end, two.start)
        low, high = one.place_end, two.place + end - two.start
        size = max(end - start, high - low)
        if low <= high and size <= _LONGEST_GAP:
            alike = size <= _TYPO or _is_similar(gold[start:end], document[low:high])
            gaps.append(Gap(start, end, low, high, alike))
    first, last = runs[0], runs[-1]
    begin = begin if first.place >= begin else 0
    ours, theirs, alike = _meet(
        gold[: first.start][::-1], document[begin : first.place][::-1]
    )
    if ours:
        start, low = first.start - ours, first.place - theirs
        gaps.append(Gap(start, first.start, low, first.place, alike))
    end, high = last.end, last.place_end
    ours, theirs, alike = _meet(gold[end:], document[high:])
    if ours:
        gaps.append(Gap(end, end + ours, high, high + theirs, alike))
    return gaps


def _meet(ours: str, theirs: str) -> tuple[int, int, bool]:
    """How many letters on both sides correspond beyond the last run, and if alike."""
    size = min(len(ours), len(theirs))
    if 0 < size <= _LONGEST_GAP:
        is_inside = len(ours) <= len(theirs) + _SLACK
        for some in (size, *range(max(1, size - _SLACK), size + _SLACK + 1)):
            mine, other = (len(ours), some) if is_inside else (some, len(theirs))
            if max(mine - len(ours), other - len(theirs)) <= 0 and _is_similar(
                ours[:mine], theirs[:other]
            ):
                return mine, other, True
        if len(ours) == size <= _FEWEST:
            return size, size, False
    return 0, 0, False


def _is_similar(ours: str, theirs: str) -> bool:
    return scorer("levenshtein")(ours, theirs) >= _SIMILAR


def _pieces(gold: GoldLetters, document: str, begin: int) -> list[SharedRun]:
    """Short pieces at the edges of a document: the passage's first or last letters."""
    text = gold.letters
    most = min(LEAST - 1, len(text), len(document))
    heads, tails = (range(most, len(edge) - 1, -1) for edge in (gold.head, gold.tail))
    first = next((n for n in heads if document.endswith(text[:n])), 0)
    last = next((n for n in tails if document.startswith(text[-n:], begin)), 0)
    runs = [SharedRun(0, first, len(document) - first)] if first else []
    return runs + ([SharedRun(len(text) - last, len(text), begin)] if last else [])


def first_covered(
    gold: GoldLetters,
    documents: Sequence[str],
    begins: Sequence[dict[int, int]],
    parts: Iterable[Part],
) -> Ints:
    """From which document on each letter is covered; the number of documents if never.

    Fewer letters than a piece at an edge has are covered where one document ends with
    them and another, before or after it, goes on from there.
    """
    never, size = len(documents), len(gold.letters)
    since: Ints = np.full(size, never)
    for number, first, runs, gaps in parts:
        covered = [(gap.start, gap.end) for gap in gaps if gap.covered]
        for start, end in (*((run.start, run.end) for run in runs), *covered):
            np.minimum(since[start:end], first, out=since[start:end])
        for run in runs:
            if 0 < gold.weigh(0, run.start) < _EDGE and run.place in begins[number]:
                rest = gold.letters[: run.start]
                others = (n for n, text in enumerate(documents) if text.endswith(rest))
                _join(since[: run.start], first, next(others, never))
            ends = run.place_end == len(documents[number])
            if 0 < gold.weigh(run.end, size) < _EDGE and ends:
                rest = gold.letters[run.end :]
                others = (
                    max(n, later)
                    for n, text in enumerate(documents)
                    for begin, later in begins[n].items()
                    if text.startswith(rest, begin)
                )
                _join(since[run.end :], first, min(others, default=never))
    return since


def _join(since: Ints, one: int, other: int) -> None:
    np.minimum(since, max(one, other), out=since)
