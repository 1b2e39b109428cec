"""Matchers of texts that are equal, to the letter or after normalising."""

from dataclasses import dataclass
from operator import eq
from typing import ClassVar

import numpy as np

from karat.data.arrays import Bools
from karat.matching.normaliser import fold
from karat.matching.pairwise import TextMatcher

__all__ = ["Exact", "Normalized"]


@dataclass(frozen=True)
class Exact(TextMatcher):
    """A document satisfies a gold passage when their texts are equal."""

    name: ClassVar[str] = "exact"
    reads: ClassVar[tuple[str, ...]] = ("passages",)

    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        """Whether both texts of each pair are equal."""
        return np.fromiter(map(eq, golds, documents), np.bool_, len(golds))


@dataclass(frozen=True)
class Normalized(Exact):
    """A document satisfies a gold passage when their texts are equal, looks aside.

    White space, case, quotes, dashes, Markdown marks and the like make no difference.
    """

    name: ClassVar[str] = "normalized"

    def read_document(self, text: str) -> str:
        """The text in normal form."""
        return fold(text)

    def read_gold(self, text: str) -> tuple[str, ...]:
        """The text in normal form."""
        return (fold(text),)
