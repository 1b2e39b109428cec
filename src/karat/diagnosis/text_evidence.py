"""What retrieved texts have of a gold text: how much, where, and what differs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Bools
from karat.data.runs import Document
from karat.diagnosis.misses import Related
from karat.matching.coverage.alphabet import Source
from karat.matching.coverage.cover import HEADER_SLACK, Part
from karat.matching.coverage.measure import Passage, compare

__all__ = ["ENOUGH", "Shares", "compare_with"]

ENOUGH = 0.9
"""The share of a gold text that makes a document have it."""


class Shares(NamedTuple):
    """What documents have of one gold text.

    Attributes:
        gold: the text.
        documents: the documents, in rank order.
        masks: document -> which letters of the gold text it has.
        passage: the comparison behind it.
    """

    gold: str
    documents: Sequence[Document]
    masks: dict[int, Bools]
    passage: Passage

    def share(self, number: int) -> float:
        """The share that one document has."""
        mask = self.masks.get(number)
        return float(mask.mean()) if mask is not None and mask.size else 0.0

    def union(self, numbers: Sequence[int]) -> float:
        """The share that some documents have together."""
        own = [self.masks[number] for number in numbers if number in self.masks]
        return float(np.logical_or.reduce(own).mean()) if own else 0.0

    def ranked(self, most: int) -> list[int]:
        """The documents among the first ones that have any of it, most first."""
        own = [number for number in self.masks if number < most]
        return sorted(own, key=lambda number: (-self.share(number), number))

    def differs(self, number: int) -> tuple[str, ...]:
        """Numbers, signs, negations and names that a document has otherwise."""
        found = self.passage.differences
        return tuple(str(what) for first, _, what in found if first == number)

    def is_fragment(self, number: int, header: int = HEADER_SLACK) -> bool:
        """Whether a document has all of a stretch, and was cut where that ends.

        Args:
            number: of the document.
            header: so many letters may stand before its text.
        """
        size = len(self.passage.documents[number].letters)
        for part in self.passage.parts:
            if part.document != number:
                continue
            first, last = part.runs[0], part.runs[-1]
            opens = first.start <= HEADER_SLACK or first.place <= header
            closes = (
                last.end >= len(self.passage.gold.letters) - HEADER_SLACK
                or last.place_end >= size - HEADER_SLACK
            )
            whole = self.masks[number][first.start : last.end].mean() >= ENOUGH
            if opens and closes and whole:
                return True
        return False

    def fragments(self, most: int, header: int = HEADER_SLACK) -> list[int]:
        """The documents among the first ones that are fragments of it."""
        return [n for n in self.ranked(most) if self.is_fragment(n, header)]

    @property
    def whole(self) -> list[int]:
        """The documents that have all of it."""
        return [n for n in sorted(self.masks) if self.share(n) >= ENOUGH]

    def related(
        self, number: int, *, rank: int | None, similarity: float | None = None
    ) -> Related:
        """A document as evidence, with the stretches that both share."""
        document = self.documents[number]
        parts = [part for part in self.passage.parts if part.document == number]
        gold, text = self._ranges(parts[:1], number)
        return Related(
            id=document.id,
            rank=rank,
            text=document.text,
            similarity=self.share(number) if similarity is None else similarity,
            gold=gold,
            spans=text,
            differs=self.differs(number),
        )

    def _ranges(
        self, parts: Sequence[Part], number: int
    ) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
        ours = self.passage.gold.places
        theirs = self.passage.documents[number].places
        runs = [run for part in parts for run in part.runs]
        return (
            tuple((ours[run.start], ours[run.end - 1] + 1) for run in runs),
            tuple((theirs[run.place], theirs[run.place_end - 1] + 1) for run in runs),
        )


def compare_with(
    pairs: Sequence[tuple[str, Sequence[Document]]],
) -> list[Shares]:
    """What the documents beside each gold text have of it.

    Example:
        >>> texts = [Document(text="Rye is a gr"), Document(text="ain of the north.")]
        >>> (found,) = compare_with([("Rye is a grain of the north.", texts)])
        >>> round(found.share(0), 2), found.union([0, 1]), found.is_fragment(0)
        (0.38, 1.0, True)
    """
    found = []
    for gold, documents in pairs:
        sources = Source.read([document.text or "" for document in documents])
        (passage,), _ = compare([gold], sources)
        found.append(Shares(gold, documents, _masks(passage), passage))
    return found


def _masks(passage: Passage) -> dict[int, Bools]:
    masks: dict[int, Bools] = {}
    size = len(passage.gold.letters)
    for part in passage.parts:
        mask = masks.setdefault(part.document, np.zeros(size, np.bool_))
        for run in part.runs:
            mask[run.start : run.end] = True
        for gap in part.gaps:
            mask[gap.start : gap.end] |= gap.covered
    return masks
