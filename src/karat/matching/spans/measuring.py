"""Measures what retrieved documents cover of the gold, a block of queries at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Floats, Ints
from karat.data.coverage import Coverage
from karat.data.gold import Gold
from karat.data.runs import Document
from karat.matching.spans.covering import Cover, cover
from karat.matching.spans.guards import is_contradicted
from karat.matching.spans.offsets import Place, count_characters
from karat.matching.spans.overlaps import count_fresh
from karat.matching.spans.passages import read_passages
from karat.matching.spans.stream import read_stream
from karat.matching.spans.stretches import Tables
from karat.matching.texts import wanted_items

__all__ = ["Lane", "Measurer", "Target", "place_of", "read_targets"]

# Queries measured at once: enough to spread the cost of each step over many, few enough
# to stay in the cache.
_QUERIES = 32
_CHARACTERS = 1 << 20
_BYTES_OF_A_TOKEN = 4
# From this share on a passage is looked at for contradictions.
_HALF = 0.5


_NOWHERE = (None,)


class Target(NamedTuple):
    """One gold item: its name, its label, and the stretches any of which will do."""

    name: str
    grade: float
    texts: tuple[str | None, ...]
    places: tuple[Place | None, ...]


def read_targets(gold: Gold, query: str) -> list[Target]:
    """The gold items of a query: its spans, or else its passages."""
    spans = gold.spans.get(query)
    if not spans:
        items = gold.passages.get(query, ())
        if len({item.group or item.text for item in items}) == len(items):
            return [
                Target(item.group or item.id, item.grade, (item.text,), _NOWHERE)
                for item in items
            ]
        return [
            Target(item.name, item.grade, item.texts, _NOWHERE * len(item.texts))
            for item in wanted_items(items)
        ]
    grouped: dict[object, list[tuple[str, float, str | None, Place]]] = {}
    for span in spans:
        place = Place(span.document, span.start, span.end)
        member = (span.group or span.id, span.grade, span.text, place)
        grouped.setdefault(span.group or place, []).append(member)
    return [
        Target(names[0], max(grades), texts, places)
        for names, grades, texts, places in (
            tuple(zip(*members, strict=True)) for members in grouped.values()
        )
    ]


class Lane(NamedTuple):
    """One query to be measured.

    Attributes:
        query: its index.
        first_item: the index of its first gold item among those of all queries.
        targets: its gold items.
        ranks: the ranks of its documents.
        documents: the documents.
    """

    query: int
    first_item: int
    targets: list[Target]
    ranks: list[int]
    documents: list[Document]

    @property
    def by_offsets(self) -> bool:
        """Whether places decide, and not texts: where documents say where they are."""
        placed = [target.places[0] is not None for target in self.targets]
        if not any(placed):
            return False
        known = [place_of(document) is not None for document in self.documents]
        return all(known) or (any(known) and not self.has_texts)

    @property
    def has_texts(self) -> bool:
        """Whether texts can be compared: all gold has one, and any document."""
        return all(text is not None for t in self.targets for text in t.texts) and any(
            document.text is not None for document in self.documents
        )


@dataclass
class Measurer:
    """Takes queries one by one and measures them block by block."""

    _lanes: list[Lane] = field(default_factory=list)
    _held: int = 0
    _documents: list[npt.NDArray[np.float64]] = field(default_factory=list)
    _rises: list[npt.NDArray[np.float64]] = field(default_factory=list)
    _sizes: dict[int, float] = field(default_factory=dict)
    _tables: Tables = field(default_factory=Tables)

    def add(self, lane: Lane) -> None:
        """Measure one more query, now or later."""
        if lane.by_offsets:
            self._measure_places(lane)
            return
        self._lanes.append(lane)
        self._held += sum(len(document.text or "") for document in lane.documents)
        if len(self._lanes) >= _QUERIES or self._held >= _CHARACTERS:
            self._measure_texts()

    def finish(self, queries: int) -> Coverage:
        """All that was measured."""
        if self._lanes:
            self._measure_texts()
        size = np.zeros(queries)
        size[[*self._sizes]] = [*self._sizes.values()]
        documents = _in_order(self._documents, 6)
        rises = _in_order(self._rises, 4)
        query, rank, gold, length, fresh, tokens = documents
        item, item_rank, share, sound = rises
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

    def _measure_places(self, lane: Lane) -> None:
        members = [place for target in lane.targets for place in target.places]
        documents = [place_of(document) for document in lane.documents]
        sizes = np.array([place.end - place.start for place in members])  # type: ignore[union-attr]
        counted = count_characters(
            cast("list[Place]", members), [True] * len(members), documents
        )
        chosen = _chosen([lane], counted.gained.sum(axis=1) / sizes)
        if not chosen.all():
            counted = count_characters(
                cast("list[Place]", members), chosen.tolist(), documents
            )
        self._sizes[lane.query] = counted.size
        length = np.array([0 if p is None else p.end - p.start for p in documents])
        self._take_documents([lane], counted.gold, length, counted.fresh)
        member, document = np.nonzero(counted.gained)
        share = counted.gained.cumsum(axis=1)[member, document] / sizes[member]
        item = _items([lane])[member]
        rank = np.array(lane.ranks, np.int64)[document]
        self._rises.append(np.stack((item, rank, share, np.ones(len(item)))))

    def _measure_texts(self) -> None:
        lanes, self._lanes, self._held = self._lanes, [], 0
        texts = [
            [text or "" for t in lane.targets for text in t.texts] for lane in lanes
        ]
        lane_of = np.repeat(np.arange(len(lanes)), [len(row) for row in texts])
        passages = read_passages([text for row in texts for text in row], lane_of)
        documents = [[d.text or "" for d in lane.documents] for lane in lanes]
        stream = read_stream(documents, self._tables)
        covered = cover(passages, stream)
        sizes = np.maximum(passages.sizes, 1)
        cell = np.flatnonzero(covered.gained)
        passage = np.searchsorted(covered.cells, cell, side="right") - 1
        document = cell - covered.cells[passage] + stream.lanes[lane_of[passage]]
        total = np.concatenate(([0], covered.gained.cumsum()))
        share = (total[cell + 1] - total[covered.cells[passage]]) / sizes[passage]
        final = (total[covered.cells[1:]] - total[covered.cells[:-1]]) / sizes
        chosen = _chosen(lanes, final)
        gold = np.zeros(stream.count)
        np.add.at(gold, document, covered.gained[cell] * chosen[passage])
        size = np.bincount(lane_of, passages.sizes * chosen, minlength=len(lanes))
        self._sizes.update(zip((x.query for x in lanes), size.tolist(), strict=True))
        self._take_documents(lanes, gold, stream.letters.count(), count_fresh(stream))
        rank = np.array([rank for lane in lanes for rank in lane.ranks], np.int64)
        sound = _sound(covered, passage, document, share)
        item = _items(lanes)[passage]
        self._rises.append(np.stack((item, rank[document], share, sound)))

    def _take_documents(
        self, lanes: Sequence[Lane], gold: Ints | Floats, length: Ints, fresh: Ints
    ) -> None:
        query = np.repeat(
            [lane.query for lane in lanes], [len(lane.ranks) for lane in lanes]
        )
        rank = [rank for lane in lanes for rank in lane.ranks]
        documents = (d for lane in lanes for d in lane.documents)
        tokens = [
            _tokens(document, size)
            for document, size in zip(documents, length.tolist(), strict=True)
        ]
        self._documents.append(np.stack((query, rank, gold, length, fresh, tokens)))


def _sound(cover: Cover, passage: Ints, document: Ints, share: Floats) -> Bools:
    """Whether nothing speaks against a passage as covered up to a document."""
    sound: Bools = cover.facts_since[passage] <= document
    torn = sound & (share >= _HALF) & (cover.tied_since[passage] > document)
    for row in np.flatnonzero(torn).tolist():
        sound[row] = not is_contradicted(cover, int(passage[row]), int(document[row]))
    return sound


def _items(lanes: Iterable[Lane]) -> Ints:
    """The item of each stretch."""
    return np.array(
        [
            lane.first_item + number
            for lane in lanes
            for number, target in enumerate(lane.targets)
            for _ in target.texts
        ],
        np.int64,
    )


def _chosen(lanes: Iterable[Lane], share: Floats) -> Bools:
    """The stretches that count: of alternatives the one that is covered best.

    Of a judged item that is not relevant, none.
    """
    chosen = np.ones(len(share), np.bool_)
    start = 0
    for target in (target for lane in lanes for target in lane.targets):
        end = start + len(target.texts)
        if target.grade <= 0:
            chosen[start:end] = False
        elif end > start + 1:
            chosen[start:end] = False
            chosen[start + int(share[start:end].argmax())] = True
        start = end
    return chosen


def place_of(document: Document) -> Place | None:
    """Where in its source a document lies, if it says so."""
    source = document.source if document.source is not None else document.id
    if source is None or document.start is None or document.end is None:
        return None
    return Place(source, document.start, document.end)


def _tokens(document: Document, length: float) -> float:
    own = document.metadata.get("tokens") if document.metadata else None
    if isinstance(own, int | float) and own >= 0:
        return float(own)
    if document.text is None:
        return length / _BYTES_OF_A_TOKEN
    text = document.text
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return size / _BYTES_OF_A_TOKEN


def _in_order(
    blocks: list[npt.NDArray[np.float64]], columns: int
) -> npt.NDArray[np.float64]:
    table = np.concatenate((np.zeros((columns, 0)), *blocks), axis=1)
    return cast("npt.NDArray[np.float64]", table[:, np.lexsort((table[1], table[0]))])
