"""Which letters of a gold passage each document covers.

A run is a stretch of letters that passage and document share. It counts when it is
long; when it lies where the document begins or ends, because there a chunk was cut; or
when it lies beside a run of the same document that counts. Short gaps between such runs
are typing or scanning errors, and are covered with them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from karat.data.arrays import Ints
from karat.matching.contains import splits_word
from karat.matching.coverage.alphabet import Source, numbers_of
from karat.matching.fuzzy import scorer

Seeds = Iterable[tuple[int, int, int]]
"""From where to where in a passage runs may be, and from where on in a document."""

HEADER_SLACK = 6
"""So many letters may lie between the header of a document and the run after it."""

_SLACK = 2
_TYPO = 3
_SIMILAR = 0.6
_LONGEST_GAP = 40
_WIDE = "\u2e80"
_SHARE_OF_SHORT = 0.8
# In longer documents only long runs are looked for a second time.
_LONG_DOCUMENT = 50_000
# So many letters are compared first.
_FEW = 64


class Rule(NamedTuple):
    """How many letters make a run.

    Attributes:
        least: letters of the shortest run.
        long: letters of a run that counts wherever it lies.
        near: letters between a run and one that it lies beside.
        edge: letters at the very end of a document that the passage begins with, or the
            other way round.
    """

    least: int
    long: int
    near: int
    edge: int

    @classmethod
    def of(cls, gold: str) -> "Rule":
        """The rule for a passage, by its script and its length."""
        rule = WIDE if is_wide(gold) else NARROW
        most = max(rule.least, int(_SHARE_OF_SHORT * len(gold)))
        return rule._replace(long=min(rule.long, most))


NARROW: Final = Rule(least=12, long=32, near=40, edge=6)
"""For scripts that write sounds."""
WIDE: Final = Rule(least=5, long=14, near=12, edge=2)
"""For scripts in which a letter is a syllable or a word, as in Chinese."""


def is_wide(text: str) -> bool:
    """Whether most letters of a text are syllables or words."""
    return not text.isascii() and 2 * sum(map(_WIDE.__lt__, text)) > len(text)


class Run(NamedTuple):
    """Letters that a passage has from start to end, and a document from a place on."""

    start: int
    end: int
    place: int

    @property
    def place_end(self) -> int:
        """Where in the document it ends."""
        return self.place + self.end - self.start


class Gap(NamedTuple):
    """Letters between runs: of the passage from start to end, of a document the others.

    They are covered when they are much alike.
    """

    start: int
    end: int
    place: int
    place_end: int
    covered: bool


class Part(NamedTuple):
    """What one document covers of a passage.

    Attributes:
        document: the number of the document.
        since: the document from which on it counts: that one, or a later one that has
            the same header, and so tells where the text of this one begins.
        runs: what both share, in the order of the passage.
        gaps: what stands between them on both sides.
    """

    document: int
    since: int
    runs: list[Run]
    gaps: list[Gap]


def cover(
    gold: str,
    rule: Rule,
    documents: Sequence[str],
    begins: Sequence[dict[int, int]],
    seeds: Mapping[int, Seeds],
) -> Iterator[Part]:
    """What the documents of a query cover of a passage.

    Args:
        gold: the letters of the passage.
        rule: how long runs must be.
        documents: the letters of each document.
        begins: where each document begins, after a header, and since when.
        seeds: by document, where runs may be.
    """
    head, tail, most = gold[: rule.edge], gold[-rule.edge :], rule.least - 1
    for number, document in enumerate(documents):
        found = _runs(gold, document, seeds.get(number, ()), rule)
        if not found and rule.edge <= len(document) <= most and document in gold:
            at = gold.index(document)
            found = [Run(at, at + len(document), 0)]
        for begin, since in begins[number].items():
            runs = _counted(gold, document, found, rule, begin) if found else []
            gaps = _gaps(gold, document, runs, begin) if runs else []
            if head in document[-most:] or tail in document[begin : begin + most]:
                runs = sorted(runs + _pieces(gold, document, rule, begin))
            if runs:
                yield Part(number, since, runs, gaps)


def cover_brief(gold: Source, documents: Sequence[Source]) -> Iterator[Part]:
    """Where documents have a passage of a few letters as words of their own."""
    size = len(gold.letters)
    for number, document in enumerate(documents):
        place = document.letters.find(gold.letters) if size else -1
        while place >= 0:
            if _is_apart(gold, document, place):
                yield Part(number, number, [Run(0, size, place)], [])
                break
            place = document.letters.find(gold.letters, place + 1)


def _is_apart(gold: Source, document: Source, place: int) -> bool:
    """Whether a copy of a brief passage splits no word and no number."""
    text = document.text
    low = document.places[place]
    high = document.places[place + len(gold.letters) - 1] + 1
    if splits_word(text, low) or splits_word(text, high):
        return False
    part = text[low:high]
    return part.isalpha() or numbers_of(gold.text) == numbers_of(part)


def _runs(gold: str, document: str, seeds: Seeds, rule: Rule) -> list[Run]:
    """The longest runs of a document, in the order of the passage."""
    runs: list[Run] = []
    for start, end, place in seeds:
        if runs and end <= runs[-1].end:
            continue
        run = _longest(gold, document, start, place, rule)
        if run.end - run.start >= rule.least:
            while runs and runs[-1].start >= run.start:
                runs.pop()
            runs.append(run)
    return runs


def _longest(gold: str, document: str, start: int, place: int, rule: Rule) -> Run:
    """The longest run from a letter on, at the given place or at another."""
    end = start + _count_same(gold, start, document, place)
    while end < len(gold) and (
        len(document) < _LONG_DOCUMENT or end - start >= rule.long
    ):
        other = document.find(gold[start : end + 1])
        if other < 0:
            break
        place, end = other, start + _count_same(gold, start, document, other)
    return Run(start, end, place)


def _count_same(gold: str, at: int, document: str, place: int) -> int:
    """How many letters are the same from two places on."""
    same, size, prefix = 0, _FEW, scorer("prefix")
    while same < size:
        same = int(prefix(gold[at : at + size], document[place : place + size]))
        size = 8 * size if same == size else 0
    return same


def _counted(
    gold: str, document: str, runs: Iterable[Run], rule: Rule, begin: int
) -> list[Run]:
    """The runs that count: long, where the document was cut, or beside one that counts.

    Runs that follow each other in passage and document are looked at together.
    """
    chains: list[list[Run]] = []
    for run in runs:
        moved = _beside(gold, document, run, chains[-1][-1], rule) if chains else None
        if moved:
            chains[-1].append(moved)
        else:
            chains.append([_at_edge(gold, document, run, begin)])
    counted: list[Run] = []
    waiting: list[Run] = []
    for chain in chains:
        if _counts(gold, document, chain, rule, begin):
            before = [chain[0]]
            for run in reversed(waiting):
                if moved := _beside(gold, document, run, before[-1], rule):
                    before.append(moved)
            counted += before[:0:-1] + chain
            waiting = []
        else:
            waiting += chain
    return counted


def _counts(gold: str, document: str, chain: list[Run], rule: Rule, begin: int) -> bool:
    """Whether one run is long, or they go from where a document was cut to an end."""
    if any(run.end - run.start >= rule.long for run in chain):
        return True
    first, last = chain[0], chain[-1]
    opens = first.place <= _SLACK or abs(first.place - begin) <= HEADER_SLACK
    closes = last.place_end >= len(document) - _SLACK
    is_first, is_last = first.start < rule.least, last.end > len(gold) - rule.least
    return (opens and (closes or is_last)) or (closes and is_first)


def _beside(gold: str, document: str, run: Run, other: Run, rule: Rule) -> Run | None:
    """The copy of a run that lies just behind or before another one, if any."""
    part, reach = gold[run.start : run.end], 2 * rule.near + run.end - run.start
    if run.start >= other.start:
        gap = run.start - other.end
        low = max(0, other.place_end + min(0, gap))
        place = document.find(part, low, low + reach)
    else:
        gap = other.start - run.end
        high = other.place - min(0, gap)
        place = document.rfind(part, max(0, high - reach), high)
    return run._replace(place=place) if place >= 0 and gap <= rule.near else None


def _at_edge(gold: str, document: str, run: Run, begin: int) -> Run:
    """The copy of a run where the document begins or ends, if there is one."""
    part = gold[run.start : run.end]
    edge = len(part) + _SLACK
    places = [
        document.find(part, 0, edge),
        document.find(part, max(0, len(document) - edge)),
    ]
    if begin:
        low, high = begin - HEADER_SLACK, begin + HEADER_SLACK + len(part)
        places.append(document.find(part, max(0, low), high))
    place = max(places)
    return run._replace(place=place) if place >= 0 else run


def _gaps(gold: str, document: str, runs: list[Run], begin: int) -> list[Gap]:
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
    room = first.place - begin if first.place >= begin else first.place
    for mine, others in _sizes(first.start, room):
        start, low = first.start - mine, first.place - others
        if _is_similar(gold[start : first.start], document[low : first.place]):
            gaps.append(Gap(start, first.start, low, first.place, covered=True))
            break
    for mine, others in _sizes(len(gold) - last.end, len(document) - last.place_end):
        end, high = last.end + mine, last.place_end + others
        if _is_similar(gold[last.end : end], document[last.place_end : high]):
            gaps.append(Gap(last.end, end, last.place_end, high, covered=True))
            break
    return gaps


def _sizes(ours: int, theirs: int) -> Iterable[tuple[int, int]]:
    """How many letters of a passage and of a document may correspond at their ends."""
    size = min(ours, theirs)
    if not 0 < size <= _LONGEST_GAP:
        return ()
    sizes = (size, *range(max(1, size - _SLACK), size + _SLACK + 1))
    if ours <= theirs + _SLACK:
        return ((ours, other) for other in sizes if other <= theirs)
    return ((mine, theirs) for mine in sizes if mine <= ours)


def _is_similar(ours: str, theirs: str) -> bool:
    return scorer("levenshtein")(ours, theirs) >= _SIMILAR


def _pieces(gold: str, document: str, rule: Rule, begin: int) -> list[Run]:
    """Short pieces at the edges of a document: the passage's first or last letters."""
    sizes = range(min(rule.least, len(gold), len(document)) - 1, rule.edge - 1, -1)
    first = next((n for n in sizes if document.endswith(gold[:n])), 0)
    last = next((n for n in sizes if document.startswith(gold[-n:], begin)), 0)
    runs = [Run(0, first, len(document) - first)] if first else []
    return runs + ([Run(len(gold) - last, len(gold), begin)] if last else [])


def first_covered(
    gold: str,
    rule: Rule,
    documents: Sequence[str],
    begins: Sequence[dict[int, int]],
    parts: Iterable[Part],
) -> Ints:
    """From which document on each letter is covered; the number of documents if never.

    Fewer letters than an edge has are covered where one document ends with them and
    another, before or after it, goes on from there.
    """
    never = len(documents)
    since: Ints = np.full(len(gold), never)
    for number, first, runs, gaps in parts:
        covered = [(gap.start, gap.end) for gap in gaps if gap.covered]
        for start, end in (*((run.start, run.end) for run in runs), *covered):
            np.minimum(since[start:end], first, out=since[start:end])
        for run in runs:
            rest = gold[: run.start]
            if 0 < len(rest) < rule.edge and run.place in begins[number]:
                others = (n for n, text in enumerate(documents) if text.endswith(rest))
                _join(since[: run.start], first, next(others, never))
            rest = gold[run.end :]
            if 0 < len(rest) < rule.edge and run.place_end == len(documents[number]):
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
