"""The matcher of meanings: texts whose embeddings point the same way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.spelling import Spelling
from karat.errors import DataError, ParameterError
from karat.matching.texts import TextMatcher

Embed: TypeAlias = Callable[[list[str]], Any]
"""From texts to a vector of numbers for each, as a list of lists or an array."""

# Pairs whose vectors are held at once.
_PAIRS = 4096


@dataclass(frozen=True)
class Semantic(TextMatcher):
    """A document satisfies a gold passage when their embeddings are close.

    The embeddings are yours: karat ships no model. The function is handed many texts at
    once, each of them once, and its reply is not kept. How close is close depends on
    the model: look at pairs that people judged before you set the threshold.

    Attributes:
        embed: a function from a list of texts to a vector for each.
        threshold: the smallest cosine of two vectors that satisfies.

    Example:
        >>> from karat import evaluate
        >>> def count_letters(texts):
        ...     return [[text.lower().count(c) for c in "abcdefgh"] for text in texts]
        >>> samples = [{"contexts": ["A bad cafe"], "passages": ["a bad CAFE"]}]
        >>> match = Semantic(count_letters, threshold=0.9)
        >>> evaluate(samples, metrics=["recall"], match=match).means
        {'recall': 1.0}
    """

    name: ClassVar[str] = "semantic"
    reads: ClassVar[tuple[str, ...]] = ("passages",)
    limits: ClassVar[dict[str, str]] = {"threshold": "(0, 1]"}

    embed: Embed
    threshold: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.embed):
            must_be = "a function from texts to vectors"
            raise ParameterError(self.name, "embed", must_be, self.embed)

    @property
    def spelling(self) -> Spelling:
        """The name and the threshold; a function has no spelling."""
        return Spelling(self.name, (("threshold", self.threshold),))

    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        """Whether the cosine of each pair reaches the threshold."""
        texts = {
            text: place for place, text in enumerate(dict.fromkeys(golds + documents))
        }
        who = "the embedding function"
        vectors = unit_vectors(read_vectors(self.embed([*texts]), len(texts), who))
        gold = np.fromiter(map(texts.__getitem__, golds), np.int64, len(golds))
        document = np.fromiter(
            map(texts.__getitem__, documents), np.int64, len(documents)
        )
        # A text is as close to itself as can be, however its cosine rounds.
        cosine = np.where(gold == document, 1.0, _cosines(vectors, gold, document))
        blank = np.array([not text.strip() for text in texts], np.bool_)
        return (cosine >= self.threshold) & ~blank[document]


def read_vectors(vectors: Any, count: int, who: str, kind: type = float) -> Any:
    """The vectors that somebody gave for so many texts, as one array that is sound."""
    try:
        array: Any = np.asarray(vectors, kind)
    except (TypeError, ValueError) as error:
        raise DataError(f"{who} gave no vectors of one length: {error}") from error
    if array.shape[:1] != (count,) or array.ndim != 2:  # noqa: PLR2004
        raise DataError(
            f"{who} must give a vector for each of {count} texts, and gave an array of "
            f"shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise DataError(f"{who} gave numbers that are not finite")
    return array


def unit_vectors(vectors: Any) -> Any:
    """The vectors, each of length 1; those of length 0 stay as they are."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)


def _cosines(vectors: Floats, left: Ints, right: Ints) -> Floats:
    parts = [
        np.einsum(
            "ij,ij->i",
            vectors[left[start : start + _PAIRS]],
            vectors[right[start : start + _PAIRS]],
        )
        for start in range(0, len(left), _PAIRS)
    ]
    return np.concatenate(parts)
