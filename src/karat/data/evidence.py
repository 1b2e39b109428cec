"""Evidence: which characters of a document speak for which gold item."""

from dataclasses import dataclass

__all__ = ["Evidence", "Range"]

Range = tuple[int, int]
"""Where a stretch of characters starts and ends."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a retrieved document counts for a gold item.

    Attributes:
        item: id of the gold item.
        rank: rank of the document.
        document: its id, if it has one.
        gold: ranges of the gold text that the document covers.
        text: ranges of the document's text that cover them.
        share: the part of the item that is covered from this rank on.
        satisfied: whether that is enough, from this rank on.
        reason: the same in a sentence.
        differs: numbers, signs, negations and names that are not the same in what is
            covered: "30 -> 14".
    """

    item: str
    rank: int
    document: str | None
    gold: tuple[Range, ...]
    text: tuple[Range, ...]
    share: float
    satisfied: bool
    reason: str
    differs: tuple[str, ...] = ()
