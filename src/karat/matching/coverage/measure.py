"""What the documents of a query cover of its gold, by offsets or letter by letter."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice, pairwise
from typing import Final, NamedTuple

import numpy as np

from karat.data.arrays import Floats, Ints, sum_by
from karat.data.gold import Gold
from karat.data.runs import Document
from karat.matching.coverage.alphabet import Letters, seeds
from karat.matching.coverage.contradictions import Mismatch, find_differences
from karat.matching.coverage.cover import (
    LEAST,
    GoldLetters,
    Part,
    cover,
    cover_brief,
    first_covered,
)
from karat.matching.fuzzy import scorer
from karat.matching.texts import Stretch, Wanted, wanted_items

_NOTHING: Final[Ints] = np.zeros(0, np.int64)
# From this share on a passage is looked at for contradictions.
_HALF = 0.5
_LONGEST_HEADER = 200
_SHORTEST_HEADER = 8
# So many documents with the same header are compared with each other.
_COMPARED = 8
# So many places where one document may go on with another are tried.
_TRIED = 64


def stretch_of(document: Document) -> Stretch | None:
    """Where in its source a document lies, if it says so."""
    source = document.source if document.source is not None else document.id
    if source is None or document.start is None or document.end is None:
        return None
    return Stretch(source, document.start, document.end)


def read_targets(gold: Gold, query: str) -> list[Wanted]:
    """The gold items of a query: its spans, or else its passages."""
    spans = gold.spans.get(query)
    if not spans:
        return wanted_items(gold.passages.get(query, ()))
    grouped: dict[object, list[tuple[str, float, str, Stretch]]] = {}
    for span in spans:
        place = Stretch(span.document, span.start, span.end)
        member = (span.group or span.id, span.grade, span.text or "", place)
        grouped.setdefault(span.group or place, []).append(member)
    return [
        Wanted(names[0], max(grades), texts, places)
        for names, grades, texts, places in (
            tuple(zip(*members, strict=True)) for members in grouped.values()
        )
    ]


class QueryTexts(NamedTuple):
    """The gold items and the documents of one query, with their ranks."""

    targets: list[Wanted]
    ranks: list[int]
    documents: list[Document]

    @property
    def by_offsets(self) -> bool:
        """Whether places decide, and not texts: where documents say where they are."""
        if not any(target.places for target in self.targets):
            return False
        placed = [stretch_of(document) is not None for document in self.documents]
        if all(placed) or not any(placed):
            return all(placed)
        # Some are known: texts are better, where all gold has one, and any document.
        lacking = any("" in target.texts for target in self.targets)
        return lacking or all(document.text is None for document in self.documents)


@dataclass(frozen=True, eq=False)
class Passage:
    """A gold text, what each document covers of it, and since when each letter is."""

    gold: Letters
    documents: Sequence[Letters]
    parts: list[Part]
    since: Ints

    @cached_property
    def differences(self) -> list[tuple[int, int, Mismatch]]:
        """What differs: from which document on, and from which on no longer."""
        never, last = len(self.documents), len(self.gold.letters)
        differences = [
            (part, find_differences(self.gold, self.documents[part.document], part))
            for part in self.parts
        ]
        rows = []
        for part, own in differences:
            for one in own:
                low, high = max(0, one.start - 1), min(last, one.end + 1)
                until = (
                    other.document
                    for other, others in differences
                    if any(run.start <= low and run.end >= high for run in other.runs)
                    and not any(o.start <= high and o.end >= low for o in others)
                )
                rows.append((part.document, min(until, default=never), one))
        return rows


Rise = tuple[int, int, float, bool]
"""An item, a document, the share covered from then on, and whether nothing differs."""


class Measured(NamedTuple):
    """What the documents of a query cover.

    In characters: of the relevant gold, and of each document those of it that it is the
    first to cover, all, and those that none before it has.
    """

    size: float
    gold: Floats
    length: list[int]
    fresh: list[int]
    rises: list[Rise]
    passages: list[Passage]


def measure_query(texts: QueryTexts) -> Measured:
    """Measure what the documents of one query cover of its gold."""
    count = len(texts.documents)
    passages: list[Passage] = []
    if texts.by_offsets:
        spans = [place for target in texts.targets for place in target.places]
        documents = [stretch_of(document) for document in texts.documents]
        since, weight, pieces = _cut(spans, documents)
        length = [place.end - place.start if place else 0 for place in documents]
        fresh = sum_by(since, weight, count + 1)[:count].astype(np.int64).tolist()
    else:
        golds = [text for target in texts.targets for text in target.texts]
        sources = Letters.read([document.text or "" for document in texts.documents])
        passages, fresh = compare_letters(golds, sources)
        length = [len(source.letters) for source in sources]
        since = np.concatenate((_NOTHING, *(passage.since for passage in passages)))
        weight = np.ones(len(since), np.int64)
        ends = accumulate((len(passage.since) for passage in passages), initial=0)
        pieces = [slice(*edges) for edges in pairwise(ends)]
    gained = [sum_by(since[p], weight[p], count + 1)[:count] for p in pieces]
    shares = [
        own.cumsum() / max(1, weight[piece].sum())
        for own, piece in zip(gained, pieces, strict=True)
    ]
    relevant = np.zeros(len(since), np.bool_)
    rises = []
    members = iter(range(len(pieces)))
    for item, target in enumerate(texts.targets):
        own = [*islice(members, len(target.texts))]
        if target.grade > 0:
            # Of alternatives the one that is covered best.
            best = max(own, key=lambda member: float(shares[member][-1:].sum()))
            relevant[pieces[best]] = True
        for member in own:
            passage = passages[member] if passages else None
            rows = _rises(gained[member], shares[member], passage)
            rises += [(item, *row) for row in rows]
    gold = sum_by(since[relevant], weight[relevant], count + 1)[:count]
    size = float(weight[relevant].sum())
    return Measured(size, gold, length, fresh, rises, passages)


def _rises(
    gained: Floats, share: Floats, passage: Passage | None
) -> list[tuple[int, float, bool]]:
    """Document by document: the share covered, and whether nothing differs."""
    rising = {*np.flatnonzero(gained).tolist()}
    rows: list[tuple[int, int, Mismatch]] = []
    if passage and rising and share[-1] >= _HALF:
        rows = passage.differences
        rising |= {until for first, until, _ in rows if first < until < len(share)}
    return [
        (n, float(share[n]), not any(first <= n < until for first, until, _ in rows))
        for n in sorted(rising)
    ]


def _cut(
    gold: Sequence[Stretch], documents: Sequence[Stretch | None]
) -> tuple[Ints, Ints, list[slice]]:
    """Sources cut into pieces where gold or a document begins or ends.

    Which document has each first, its characters, and the pieces of each gold stretch.
    """
    places = [place for place in (*gold, *documents) if place]
    points = sorted({(place.source, at) for place in places for at in place[1:]})
    number = {point: n for n, point in enumerate(points)}
    pieces = {
        place: slice(number[place.source, place.start], number[place.source, place.end])
        for place in places
    }
    # What lies between two sources belongs to none.
    weight = np.array([0, *(max(0, b[1] - a[1]) for a, b in pairwise(points))])[1:]
    since: Ints = np.full(len(weight), len(documents))
    # The first document to cover a piece is written last, and stays.
    for n in range(len(documents) - 1, -1, -1):
        if place := documents[n]:
            since[pieces[place]] = n
    return since, weight, [pieces[place] for place in gold]


def compare_letters(
    golds: Sequence[str], documents: Sequence[Letters]
) -> tuple[list[Passage], list[int]]:
    """Compare gold texts with documents, letter by letter.

    A passage for each gold text, and how many letters of each document are new.
    """
    sources = Letters.read(golds)
    sought = [GoldLetters(gold.letters) for gold in sources]
    least = min((gold.least for gold in sought), default=LEAST)
    letters = [document.letters for document in documents]
    heads = [text[:least] if len(text) >= least else "" for text in letters]
    shared = seeds([*(gold.letters for gold in sources), *heads], letters, least)
    begins = _headers(letters)
    passages = []
    for gold, passage, own in zip(sources, sought, shared, strict=False):
        if passage.weigh(0, len(gold.letters)) < LEAST:
            parts = [*cover_brief(gold, documents)]
        else:
            parts = [*cover(passage, letters, begins, own)]
        since = first_covered(passage, letters, begins, parts)
        passages.append(Passage(gold, documents, parts, since))
    return passages, _count_fresh(letters, shared[len(golds) :], least)


def _headers(documents: Sequence[str]) -> list[dict[int, int]]:
    """Where each document begins: at once, or after what others begin with, too.

    And the document from which on that is known.
    """
    begins = [{0: number} for number in range(len(documents))]
    alike: dict[str, list[int]] = {}
    for number, document in enumerate(documents):
        head = document[:_LONGEST_HEADER]
        others = alike.setdefault(head[:_SHORTEST_HEADER], [])
        for other in others[:_COMPARED]:
            size = int(scorer("prefix")(head, documents[other]))
            if size < min(len(head), len(documents[other])):
                begins[number].setdefault(size, number)
                begins[other].setdefault(size, number)
        others.append(number)
    return begins


def _count_fresh(
    documents: Sequence[str], heads: Sequence[Iterable[int]], least: int
) -> list[int]:
    """How many letters of each document none before it has: they may overlap.

    For each, some documents may have its first letters.
    """
    overlaps: dict[int, list[tuple[int, int]]] = {}
    for number, others in enumerate(heads):
        one = documents[number]
        for other in others:
            text = documents[other]
            place = _overlap(one, text, least) if other != number else -1
            if place >= 0:
                start = place if other > number else 0
                end = start + min(len(one), len(text) - place)
                overlaps.setdefault(max(number, other), []).append((start, end))
    fresh = [*map(len, documents)]
    for number, ranges in overlaps.items():
        left = np.ones(fresh[number], np.bool_)
        for start, end in ranges:
            left[start:end] = False
        fresh[number] = int(left.sum())
    return fresh


def _overlap(one: str, text: str, least: int) -> int:
    """From where on a text holds what another begins with, to the end of either."""
    place = -1
    for _ in range(_TRIED):
        place = text.find(one[:least], place + 1)
        if place < 0 or one.startswith(text[place : place + len(one)]):
            return place
    return -1
