"""Measures what retrieved documents cover of the gold, a block of queries at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from typing import cast

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Ints
from karat.data.coverage import Coverage
from karat.matching.coverage.alphabet import Source
from karat.matching.coverage.by_offsets import Place, count_characters
from karat.matching.coverage.contradictions import Difference, find_differences
from karat.matching.coverage.cover import (
    NARROW,
    Part,
    Rule,
    cover,
    cover_brief,
    first_covered,
    is_wide,
)
from karat.matching.coverage.ngram_index import Index, Stretch
from karat.matching.coverage.targets import QueryTexts, best_texts, place_of

__all__ = ["Measurer", "Passage", "compare_texts"]

Table = npt.NDArray[np.float64]

# Queries measured at once: enough to spread the cost of each step over many, few enough
# to stay in the cache.
_QUERIES = 32
_CHARACTERS = 1 << 20
# From this share on a passage is looked at for contradictions.
_HALF = 0.5
_LONGEST_HEADER = 200
_SHORTEST_HEADER = 8
# So many documents with the same header are compared with each other.
_COMPARED = 8


@dataclass(frozen=True, eq=False)
class Passage:
    """A gold text, and what the documents of its query cover of it.

    Attributes:
        gold: the gold text.
        documents: the documents.
        parts: what each of them covers.
        since: from which document on each letter is covered.
    """

    gold: Source
    documents: Sequence[Source]
    parts: list[Part]
    since: Ints

    @cached_property
    def gained(self) -> Ints:
        """How many letters each document is the first to cover."""
        count = len(self.documents)
        return np.bincount(self.since, minlength=count + 1)[:count]

    @cached_property
    def differences(self) -> list[tuple[int, int, Difference]]:
        """What differs: from which document on, and from which on no longer."""
        never, last = len(self.documents), len(self.gold.letters)
        found = [
            (
                part,
                find_differences(self.gold, self.documents[part.document], part),
            )
            for part in self.parts
        ]
        rows = []
        for part, own in found:
            for one in own:
                low, high = max(0, one.start - 1), min(last, one.end + 1)
                until = (
                    other.document
                    for other, others in found
                    if any(run.start <= low and run.end >= high for run in other.runs)
                    and not any(o.start <= high and o.end >= low for o in others)
                )
                rows.append((part.document, min(until, default=never), one))
        return rows

    def rises(self) -> list[tuple[int, float, bool]]:
        """Document by document: the share covered, and whether nothing differs."""
        share = self.gained.cumsum() / max(1, len(self.since))
        rising = {*np.flatnonzero(self.gained).tolist()}
        if not rising or share[-1] < _HALF:
            return [(number, share[number], True) for number in sorted(rising)]
        rows = self.differences
        rising |= {until for first, until, _ in rows if first < until < len(share)}
        return [
            (
                number,
                share[number],
                not any(first <= number < until for first, until, _ in rows),
            )
            for number in sorted(rising)
        ]


def compare_texts(
    queries: Sequence[QueryTexts],
) -> tuple[list[list[Passage]], Ints, Ints]:
    """Compare the texts of queries, block by block.

    Returns:
        The passages of each query; the letters of each document; and how many of them
        no document of the query before it has.
    """
    golds = [[Source(text) for text in query.texts] for query in queries]
    texts = [[Source(d.text or "") for d in query.documents] for query in queries]
    rules = [[Rule.of(gold.letters) for gold in row] for row in golds]
    n = min((rule.least for row in rules for rule in row), default=NARROW.least)
    gold_query, document_query = (
        np.repeat(np.arange(len(queries)), [*map(len, rows)]) for rows in (golds, texts)
    )
    index = Index(_letters(golds), gold_query, _letters(texts), document_query, n)
    begins = [_headers(row) for row in texts]
    first_gold, first_document = (
        np.concatenate(([0], np.cumsum([*map(len, rows)]))) for rows in (golds, texts)
    )
    long = np.array([rule.long for row in rules for rule in row], np.int64)
    stretches: dict[int, dict[int, list[Stretch]]] = {}
    for found in index.stretches(long, [*chain(*begins)]):
        number = found.document - int(first_document[gold_query[found.passage]])
        by_document = stretches.setdefault(found.passage, {})
        by_document.setdefault(number, []).append(found)
    passages = [
        [
            _cover(gold, rule, texts[query], begins[query], stretches.get(number, {}))
            for number, gold, rule in zip(count(first_gold[query]), row, rules[query])
        ]
        for query, row in enumerate(golds)
    ]
    length = np.array([len(text) for text in _letters(texts)], np.int64)
    return passages, length, _count_fresh(index, length)


def _letters(rows: Sequence[Sequence[Source]]) -> list[str]:
    return [source.letters for row in rows for source in row]


def _cover(
    gold: Source,
    rule: Rule,
    documents: Sequence[Source],
    begins: Sequence[dict[int, int]],
    stretches: dict[int, list[Stretch]],
) -> Passage:
    letters = [document.letters for document in documents]
    if len(gold.letters) < rule.least:
        parts = cover_brief(gold, documents)
    else:
        parts = cover(gold.letters, rule, letters, begins, stretches)
    since = first_covered(gold.letters, rule, letters, begins, parts)
    return Passage(gold, documents, parts, since)


def _headers(documents: Sequence[Source]) -> list[dict[int, int]]:
    """Where each document begins: at once, or after what others begin with, too.

    And the document from which on that is known.
    """
    begins = [{0: number} for number in range(len(documents))]
    alike: dict[str, list[int]] = {}
    for number, document in enumerate(documents):
        head = document.letters[:_LONGEST_HEADER]
        others = alike.setdefault(head[:_SHORTEST_HEADER], [])
        for other in others[:_COMPARED]:
            pairs = enumerate(zip(head, documents[other].letters, strict=False))
            size = next((n for n, (ours, theirs) in pairs if ours != theirs), 0)
            if size:
                begins[number].setdefault(size, number)
                begins[other].setdefault(size, number)
        others.append(number)
    return begins


def _count_fresh(index: Index, length: Ints) -> Ints:
    """The letters of each document that none before it has."""
    known: dict[int, list[tuple[int, int]]] = {}
    for one, other, place, size in index.overlaps():
        start = 0 if one > other else place
        known.setdefault(max(one, other), []).append((start, start + size))
    fresh = length.copy()
    for number, ranges in known.items():
        left = np.ones(fresh[number], np.bool_)
        for start, end in ranges:
            left[start:end] = False
        fresh[number] = left.sum()
    return fresh


@dataclass
class Measurer:
    """Takes queries one by one and measures them block by block."""

    _held: dict[bool, list[QueryTexts]] = field(
        default_factory=lambda: {False: [], True: []}
    )
    _characters: int = 0
    _documents: list[Table] = field(default_factory=list)
    _rises: list[Table] = field(default_factory=list)
    _sizes: dict[int, float] = field(default_factory=dict)

    def add(self, texts: QueryTexts) -> None:
        """Measure one more query, now or later."""
        if texts.by_offsets:
            self._measure_offsets(texts)
            return
        held = self._held[any(map(is_wide, texts.texts))]
        held.append(texts)
        self._characters += sum(
            len(document.text or "") for document in texts.documents
        )
        if len(held) >= _QUERIES or self._characters >= _CHARACTERS:
            self._measure_texts()

    def finish(self, queries: int) -> Coverage:
        """All that was measured."""
        self._measure_texts()
        size = np.zeros(queries)
        size[[*self._sizes]] = [*self._sizes.values()]
        query, rank, gold, length, fresh, tokens = _in_order(self._documents, 6)
        item, item_rank, share, sound = _in_order(self._rises, 4)
        return Coverage(
            size=size,
            query=query.astype(np.int64),
            rank=rank.astype(np.int64),
            gold=gold,
            length=length,
            fresh=fresh,
            tokens=tokens,
            item=item.astype(np.int64),
            item_rank=item_rank.astype(np.int64),
            share=share,
            sound=sound > 0,
        )

    def _measure_offsets(self, texts: QueryTexts) -> None:
        members = cast("list[Place]", [p for t in texts.targets for p in t.places])
        documents = [place_of(document) for document in texts.documents]
        sizes = np.array([place.end - place.start for place in members])
        counted = count_characters(members, [True] * len(members), documents)
        chosen = best_texts(texts.targets, counted.gained.sum(axis=1) / sizes)
        if not chosen.all():
            counted = count_characters(members, chosen.tolist(), documents)
        self._sizes[texts.query] = counted.size
        length = np.array([0 if p is None else p.end - p.start for p in documents])
        self._take(texts, counted.gold, length, counted.fresh)
        member, document = np.nonzero(counted.gained)
        share = counted.gained.cumsum(axis=1)[member, document] / sizes[member]
        rank = np.array(texts.ranks, np.int64)[document]
        sound = np.ones(len(member))
        self._rises.append(np.stack((texts.items[member], rank, share, sound)))

    def _measure_texts(self) -> None:
        held, self._characters = self._held, 0
        self._held = {False: [], True: []}
        for queries in filter(None, held.values()):
            passages, length, fresh = compare_texts(queries)
            end = 0
            for texts, covered in zip(queries, passages, strict=True):
                start, end = end, end + len(texts.documents)
                self._take_passages(texts, covered, length[start:end], fresh[start:end])

    def _take_passages(
        self, texts: QueryTexts, passages: Sequence[Passage], length: Ints, fresh: Ints
    ) -> None:
        share = [p.gained.sum() / max(1, len(p.since)) for p in passages]
        gold: Ints = np.zeros(len(texts.documents), np.int64)
        self._sizes[texts.query] = 0
        for chosen, passage in zip(
            best_texts(texts.targets, share), passages, strict=True
        ):
            if chosen:
                gold += passage.gained
                self._sizes[texts.query] += len(passage.since)
        self._take(texts, gold, length, fresh)
        rises = [
            (item, texts.ranks[number], part, sound)
            for item, passage in zip(texts.items.tolist(), passages, strict=True)
            for number, part, sound in passage.rises()
        ]
        self._rises.append(np.array(rises, np.float64).reshape(-1, 4).T)

    def _take(self, texts: QueryTexts, gold: Ints, length: Ints, fresh: Ints) -> None:
        query = np.full(len(texts.ranks), texts.query)
        tokens = texts.tokens(length.tolist())
        self._documents.append(
            np.stack((query, texts.ranks, gold, length, fresh, tokens))
        )


def _in_order(blocks: list[Table], columns: int) -> Table:
    table = np.concatenate((np.zeros((columns, 0)), *blocks), axis=1)
    return cast("Table", table[:, np.lexsort((table[1], table[0]))])
