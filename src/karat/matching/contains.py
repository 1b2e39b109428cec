"""The matcher that looks for an answer inside the retrieved texts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Bools
from karat.matching.boundaries import finds, splits_word
from karat.matching.normaliser import fold
from karat.matching.pairwise import TextMatcher

__all__ = ["Contains"]


@dataclass(frozen=True)
class Contains(TextMatcher):
    """A document satisfies the gold answer when its text holds one of the answers.

    Both texts are normalised first. All acceptable answers of a query are one gold
    item. Plain containment finds `5` in `2015`; `boundary=token` wants the answer to
    begin and end where words and numbers do. It asks nothing more of Chinese, Japanese,
    Korean, Thai and the other scripts whose words do not stand apart.

    Attributes:
        boundary: `none`, or `token` for whole words only.
    """

    name: ClassVar[str] = "contains"
    reads: ClassVar[tuple[str, ...]] = ("answers",)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"boundary": ("none", "token")}

    boundary: str = "none"

    def read_document(self, text: str) -> str:
        """The text in normal form."""
        return fold(text)

    def read_gold(self, text: str) -> tuple[str, ...]:
        """The answer in normal form."""
        return (fold(text),)

    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        """Whether the document of each pair holds the answer."""
        pairs = zip(golds, documents, strict=True)
        held = (answer in text for answer, text in pairs)
        rows = np.fromiter(held, np.bool_, len(golds))
        if self.boundary == "token":
            for row in np.flatnonzero(rows).tolist():
                rows[row] = finds(golds[row], documents[row], splits_word)
        return rows
