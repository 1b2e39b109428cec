"""The gold items of a query that have text or offsets, beside its documents."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.gold import Gold
from karat.data.runs import Document
from karat.matching.coverage.by_offsets import Place
from karat.matching.texts import wanted_items

__all__ = ["QueryTexts", "Target", "best_texts", "place_of", "read_targets"]

_NOWHERE = (None,)
_BYTES_OF_A_TOKEN = 4


class Target(NamedTuple):
    """One gold item: its name, its label, and the texts any of which will do."""

    name: str
    grade: float
    texts: tuple[str | None, ...]
    places: tuple[Place | None, ...]


def read_targets(gold: Gold, query: str) -> list[Target]:
    """The gold items of a query: its spans, or else its passages."""
    spans = gold.spans.get(query)
    if not spans:
        return [
            Target(item.name, item.grade, item.texts, _NOWHERE * len(item.texts))
            for item in wanted_items(gold.passages.get(query, ()))
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


class QueryTexts(NamedTuple):
    """The gold items and the documents of one query.

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
        if not any(target.places[0] is not None for target in self.targets):
            return False
        known = [place_of(document) is not None for document in self.documents]
        return all(known) or (any(known) and not self.has_texts)

    @property
    def has_texts(self) -> bool:
        """Whether texts can be compared: all gold has one, and any document."""
        return all(text is not None for t in self.targets for text in t.texts) and any(
            document.text is not None for document in self.documents
        )

    @property
    def texts(self) -> list[str]:
        """The gold texts, one after the other."""
        return [text or "" for target in self.targets for text in target.texts]

    @property
    def items(self) -> Ints:
        """The gold item of each of its texts."""
        count = [len(target.texts) for target in self.targets]
        return np.repeat(np.arange(len(count)), count) + self.first_item

    def tokens(self, length: Iterable[float]) -> list[float]:
        """The tokens of each document: its own count, else a quarter of its bytes."""
        pairs = zip(self.documents, length, strict=True)
        return [_tokens(document, size) for document, size in pairs]


def best_texts(targets: Iterable[Target], share: Sequence[float] | Floats) -> Bools:
    """Which texts count: of alternatives the one that is covered best.

    Of a judged item that is not relevant, none.
    """
    chosen = np.zeros(len(share), np.bool_)
    start = 0
    for target in targets:
        end = start + len(target.texts)
        if target.grade > 0:
            chosen[start + int(np.argmax(share[start:end]))] = True
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
