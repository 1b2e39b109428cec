"""The matcher by string similarity, computed by RapidFuzz on all cores."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from karat.data.arrays import Bools
from karat.errors import ParameterError
from karat.matching.pairwise import TextMatcher
from karat.matching.partial import reach_partially
from karat.matching.rapid import SLACK, compare

__all__ = ["Fuzzy"]

# Below this threshold the common subsequence rules out pairs sooner than Levenshtein's
# own cutoff; above it the cutoff is the quicker.
_BOUND_HELPS: Final = 0.65


@dataclass(frozen=True)
class Fuzzy(TextMatcher):
    """A document satisfies a gold passage when their texts are similar enough.

    The texts are compared as they are, with RapidFuzz's normalised similarity. Beware
    of it: one changed word hardly lowers a similarity, so that a contradiction passes,
    and a chunk of another length than the gold does not.

    Attributes:
        similarity: which one.
        threshold: the similarity from which on texts match, in [0, 1].
        strict: the similarity must be above the threshold.
    """

    name: ClassVar[str] = "fuzzy"
    reads: ClassVar[tuple[str, ...]] = ("passages",)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "similarity": (
            *("levenshtein", "hamming", "jaro", "jaro_winkler"),
            *("token_set", "partial"),
        )
    }

    similarity: str = "levenshtein"
    threshold: float = 0.8
    strict: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        threshold: Any = self.threshold
        if type(threshold) not in (int, float) or not 0 <= threshold <= 1:
            raise ParameterError(
                self.name, "threshold", "a number in [0, 1]", threshold
            )

    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        """Whether the texts of each pair are similar enough."""
        if self.similarity == "partial":
            return reach_partially(golds, documents, self.threshold, self._enough)
        if self.similarity != "levenshtein" or self.threshold >= _BOUND_HELPS:
            return self._reach(golds, documents)
        # What an alignment keeps is a common subsequence, and never the longer one.
        possible = compare("subsequence", golds, documents, self.threshold)
        rows: Bools = possible >= self.threshold - SLACK
        left = np.flatnonzero(rows).tolist()
        rows[left] = self._reach([golds[i] for i in left], [documents[i] for i in left])
        return rows

    def _reach(self, golds: list[str], documents: list[str]) -> Bools:
        similarity = compare(self.similarity, golds, documents, self.threshold)
        rows: Bools = self._enough(similarity)
        return rows

    def _enough(self, similarity: Any) -> Any:
        if self.strict:
            return similarity > self.threshold
        return similarity >= self.threshold
