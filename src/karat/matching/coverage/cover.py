"""Which letters of a gold passage each document covers.

A run is a stretch of letters that passage and document share. It counts when it is
long; when it lies where the document begins or ends, because there a chunk was cut; or
when it lies beside a run of the same document that counts. Short gaps between such runs
are typing or scanning errors, and are covered with them.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from karat.data.arrays import Ints
from karat.matching.coverage.alphabet import Source, numbers_of
from karat.matching.coverage.ngram_index import HEADER_SLACK, SLACK, Stretch
from karat.matching.fuzzy import scorer
from karat.matching.literal import splits_word

__all__ = [
    "NARROW",
    "WIDE",
    "Part",
    "Rule",
    "Run",
    "cover",
    "cover_brief",
    "first_covered",
    "is_wide",
]

_TYPO = 3
_SIMILAR = 0.6
_LONGEST_GAP = 40
_WIDE = "\u2e80"
_SHARE_OF_SHORT = 0.8
# In longer documents only long stretches are looked for a second time.
_LONG_DOCUMENT = 50_000


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
    return not text.isascii() and 2 * sum(char > _WIDE for char in text) > len(text)


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
    stretches: dict[int, list[Stretch]],
) -> list[Part]:
    """What the documents of a query cover of a passage.

    Args:
        gold: the letters of the passage.
        rule: how long runs must be.
        documents: the letters of each document.
        begins: where each document begins, after a header, and since when.
        stretches: the candidates, by the number of the document.
    """
    head, tail, most = gold[: rule.edge], gold[-rule.edge :], rule.least - 1
    parts = []
    for number, document in enumerate(documents):
        found: list[Run] = []
        if number in stretches:
            found = _runs(gold, document, stretches[number], rule)
        elif rule.edge <= len(document) <= most and document in gold:
            at = gold.index(document)
            found = [Run(at, at + len(document), 0)]
        for begin, since in begins[number].items():
            runs = _counted(gold, document, found, rule, begin)
            gaps = _gaps(gold, document, runs, begin) if runs else []
            if head in document[-most:] or tail in document[begin : begin + most]:
                runs = sorted(runs + _pieces(gold, document, rule, begin))
            if runs:
                parts.append(Part(number, since, runs, gaps))
    return parts


def cover_brief(gold: Source, documents: Sequence[Source]) -> list[Part]:
    """Where documents have a passage of a few letters as words of their own."""
    parts = []
    size = len(gold.letters)
    for number, document in enumerate(documents):
        place = document.letters.find(gold.letters) if size else -1
        while place >= 0:
            if _is_apart(gold, document, place):
                parts.append(Part(number, number, [Run(0, size, place)], []))
                break
            place = document.letters.find(gold.letters, place + 1)
    return parts


def _is_apart(gold: Source, document: Source, place: int) -> bool:
    """Whether a copy of a brief passage splits no word and no number."""
    text = document.text
    low = document.places[place]
    high = document.places[place + len(gold.letters) - 1] + 1
    if splits_word(text, low) or splits_word(text, high):
        return False
    return text[low:high].isalpha() or numbers_of(gold.text) == numbers_of(
        text[low:high]
    )


def _runs(
    gold: str, document: str, stretches: Iterable[Stretch], rule: Rule
) -> list[Run]:
    """The runs of a document, in the order of the passage."""
    runs = []
    for _, _, start, end, places in stretches:
        if end - start < rule.least:
            continue
        part, place = gold[start:end], int(places[0])
        if not document.startswith(part, place):
            seek = len(part) >= rule.long or len(document) < _LONG_DOCUMENT
            place = document.find(part) if seek else -1
        if place >= 0:
            runs.append(Run(start, end, place))
            continue
        # Its n-grams are there, but not in one piece.
        width = end - start - len(places)
        edges = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
        runs += [
            Run(start + low, start + high + width, int(places[low]))
            for low, high in pairwise(edges)
            if high - low + width >= rule.least
        ]
    return runs


def _counted(
    gold: str, document: str, runs: Iterable[Run], rule: Rule, begin: int
) -> list[Run]:
    """The runs that count: long, where the document was cut, or beside one that counts.

    Runs that follow each other in passage and document are looked at together.
    """
    chains: list[list[Run]] = []
    for run in runs:
        moved = _after(gold, document, run, chains[-1][-1], rule) if chains else None
        if moved:
            chains[-1].append(moved)
        else:
            chains.append([_at_edge(gold, document, run, begin)])
    counted: list[Run] = []
    waiting: list[Run] = []
    for chain in chains:
        if _counts(gold, document, chain, rule, begin):
            counted += reversed(_before(gold, document, waiting, chain[0], rule))
            counted += chain
            waiting = []
            continue
        for run in chain:
            moved = _after(gold, document, run, counted[-1], rule) if counted else None
            if moved:
                counted.append(moved)
                waiting = []
            else:
                waiting.append(run)
    return counted


def _counts(gold: str, document: str, chain: list[Run], rule: Rule, begin: int) -> bool:
    """Whether one run is long, or they go from where a document was cut to an end."""
    if any(run.end - run.start >= rule.long for run in chain):
        return True
    first, last = chain[0], chain[-1]
    opens = first.place <= SLACK or abs(first.place - begin) <= HEADER_SLACK
    closes = last.place_end >= len(document) - SLACK
    is_first, is_last = first.start < rule.least, last.end > len(gold) - rule.least
    return (opens and (closes or is_last)) or (closes and is_first)


def _after(gold: str, document: str, run: Run, other: Run, rule: Rule) -> Run | None:
    """The copy of a run that lies just behind another one, if there is one."""
    if run.start - other.end > rule.near:
        return None
    low = max(0, other.place_end + min(0, run.start - other.end))
    high = low + 2 * rule.near + run.end - run.start
    place = document.find(gold[run.start : run.end], low, high)
    return run._replace(place=place) if place >= 0 else None


def _before(
    gold: str, document: str, runs: list[Run], other: Run, rule: Rule
) -> list[Run]:
    """Copies of runs that lie just before another one, the last of them first."""
    moved = []
    for run in reversed(runs):
        if other.start - run.end > rule.near:
            break
        high = other.place - min(0, other.start - run.end)
        low = max(0, high - 2 * rule.near - (run.end - run.start))
        place = document.rfind(gold[run.start : run.end], low, high)
        if place >= 0:
            other = run._replace(place=place)
            moved.append(other)
    return moved


def _at_edge(gold: str, document: str, run: Run, begin: int) -> Run:
    """The copy of a run where the document begins or ends, if there is one."""
    part = gold[run.start : run.end]
    edge = len(part) + SLACK
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
        if low <= high and max(end - start, high - low) <= _LONGEST_GAP:
            is_typo = max(end - start, high - low) <= _TYPO
            alike = is_typo or _is_similar(gold[start:end], document[low:high])
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
    sizes = (size, *range(max(1, size - SLACK), size + SLACK + 1))
    if ours <= theirs + SLACK:
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
