"""Matchers by similarity: of strings, by RapidFuzz on all cores, or of embeddings.

RapidFuzz's partial_ratio compares the shorter text, of length m, with every window of
that length in the longer one and with the shorter windows at its two ends, and takes
the best ratio 2 L / (m + w), where L is the length of the longest common subsequence
and w the window's. That costs milliseconds for texts of 500 characters, and most pairs
have nothing in common. Whether a threshold t is reached takes far less, exactly:

- A text that lies in the other scores 1.
- A ratio of t needs L >= t m / (2 - t), also within any section that holds the window.
  Sections of 2 m characters, m apart, hold every window.
- Moving a window by d characters changes L by d at most, and making it smaller never
  adds to L, so one window that misses t rules out many others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from math import ceil
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.spelling import Spelling
from karat.errors import DataError, ParameterError
from karat.matching.texts import TextMatcher

# RapidFuzz keeps cutoffs in single precision, which would lose scores that equal the
# threshold: it has to cut a little below, and what reaches it is decided here.
_SLACK: Final = 1e-5

# Below this threshold the common subsequence rules out pairs sooner than Levenshtein's
# own cutoff; above it the cutoff is the quicker.
_BOUND_HELPS: Final = 0.65

# Up to a machine word RapidFuzz is quick by itself.
_WORD: Final = 64
# Beyond this length, counting characters is worth it before comparing them.
_HUGE: Final = 1 << 14
_BLOCK: Final = 1 << 15
# Fewer pairs than these are compared sooner than other cores are asked.
_MANY: Final = 1 << 12

Enough = Callable[[Any], Any]
"""Whether similarities, one or an array of them, are enough."""


@dataclass(frozen=True)
class Fuzzy(TextMatcher):
    """A document satisfies a gold passage when their texts are similar enough.

    The texts are compared as they are, with RapidFuzz's normalised similarity. One
    changed word hardly lowers a similarity, so a contradiction passes, and a chunk of
    another length than the gold does not.

    Attributes:
        similarity: `levenshtein`, `hamming`, `jaro`, `jaro_winkler`, `token_set` or
            `partial`.
        threshold: the smallest similarity that counts as a match, in [0, 1].
        strict: the similarity must be above the threshold.

    Example:
        >>> import karat
        >>> samples = [{"contexts": ["Takes 2 days"], "passages": ["Takes 3 days"]}]
        >>> karat.evaluate(samples, metrics="recall", match=Fuzzy(threshold=0.9)).means
        {'recall': 1.0}
    """

    name: ClassVar[str] = "fuzzy"
    reads: ClassVar[tuple[str, ...]] = ("passages",)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "similarity": (
            *("levenshtein", "hamming", "jaro", "jaro_winkler"),
            *("token_set", "partial"),
        )
    }
    limits: ClassVar[dict[str, str]] = {"threshold": "[0, 1]"}

    similarity: str = "levenshtein"
    threshold: float = 0.8
    strict: bool = False

    def possible(self, golds: list[str], documents: list[str]) -> Bools | None:
        """Which short texts may be similar enough; RapidFuzz compares them at once."""
        if self.similarity != "levenshtein" or max(map(len, golds)) > _WORD:
            return None
        bound = "subsequence" if self.threshold < _BOUND_HELPS else "levenshtein"
        scores = similarities(bound, golds, documents, self.threshold, each=True)
        return scores >= self.threshold - _SLACK

    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        """Whether the texts of each pair are similar enough."""
        if self.similarity == "partial":
            return reach_partially(golds, documents, self.threshold, self._enough)
        if self.similarity != "levenshtein" or self.threshold >= _BOUND_HELPS:
            return self._reach(golds, documents)
        # What an alignment keeps is a common subsequence, and never the longer one.
        possible = similarities("subsequence", golds, documents, self.threshold)
        rows: Bools = possible >= self.threshold - _SLACK
        left = np.flatnonzero(rows).tolist()
        rows[left] = self._reach([golds[i] for i in left], [documents[i] for i in left])
        return rows

    def _reach(self, golds: list[str], documents: list[str]) -> Bools:
        similarity = similarities(self.similarity, golds, documents, self.threshold)
        rows: Bools = self._enough(similarity)
        return rows

    def _enough(self, similarity: Any) -> Any:
        if self.strict:
            return similarity > self.threshold
        return similarity >= self.threshold


@cache
def _scorers() -> dict[str, Callable[..., float]]:
    from rapidfuzz import fuzz  # noqa: PLC0415  slow to import
    from rapidfuzz.distance import (  # noqa: PLC0415
        Hamming,
        Jaro,
        JaroWinkler,
        LCSseq,
        Levenshtein,
        Prefix,
    )

    return {
        "levenshtein": Levenshtein.normalized_similarity,
        "hamming": Hamming.normalized_similarity,
        # In [0, 1] as they are; normalised again, batches and loops differ in a bit.
        "jaro": Jaro.similarity,
        "jaro_winkler": JaroWinkler.similarity,
        "token_set": fuzz.token_set_ratio,
        "partial": fuzz.partial_ratio,
        "ratio": fuzz.ratio,
        "subsequence": LCSseq.normalized_similarity,
        "subsequence_length": LCSseq.similarity,
        "prefix": Prefix.similarity,
    }


def scorer(name: str) -> Callable[..., float]:
    """The function that scores one pair of texts."""
    return _scorers()[name]


def similarities(
    name: str,
    golds: Sequence[str],
    documents: Sequence[str],
    threshold: float = 0.0,
    *,
    each: bool = False,
) -> Floats:
    """The similarity of each pair, or `each` with each; 0 where below the threshold."""
    from rapidfuzz import process  # noqa: PLC0415  slow to import

    # RapidFuzz counts its ratios up to 100.
    top = 100 if name in {"token_set", "partial"} else 1
    distances: Any = process.cdist if each else process.cpdist
    scores: Floats = distances(
        golds,
        documents,
        scorer=scorer(name),
        score_cutoff=max(0.0, (threshold - _SLACK) * top),
        dtype=np.float64,
        workers=1 if each or len(golds) < _MANY else -1,
    )
    return scores / top


class _Pair(NamedTuple):
    """A row with the shorter text and the longer one, or a section of it."""

    row: int
    needle: str
    hay: str


def reach_partially(
    golds: list[str], documents: list[str], threshold: float, enough: Enough
) -> Bools:
    """Whether the partial_ratio of each pair is enough."""
    rows = np.zeros(len(golds), np.bool_)
    short: list[int] = []
    long: list[_Pair] = []
    for row, (gold, text) in enumerate(zip(golds, documents, strict=True)):
        needle, hay = (gold, text) if len(gold) <= len(text) else (text, gold)
        if needle and needle in hay:
            rows[row] = enough(1.0)
        elif len(needle) <= _WORD:
            short.append(row)
        else:
            long.append(_Pair(row, needle, hay))
    if short:
        pairs = [golds[row] for row in short], [documents[row] for row in short]
        rows[short] = enough(similarities("partial", *pairs, threshold))
    possible = _possible(long, threshold)
    for row, needle, hay in long:
        if row in possible:
            rows[row] = _reaches(needle, hay, threshold, enough)
    return rows


def _possible(pairs: Iterable[_Pair], threshold: float) -> set[int]:
    """Rows whose common subsequences leave the threshold within reach."""
    share = threshold / (2 - threshold)
    sections = (s for pair in pairs for s in _sections(pair, share))
    similar: set[int] = set()
    while block := list(islice(sections, _BLOCK)):
        rows, needles, hays = zip(*block, strict=True)
        common = similarities("subsequence_length", needles, hays)
        least = np.fromiter(map(len, needles), np.float64) * share - _SLACK
        similar.update(np.array(rows)[common >= least].tolist())
    return similar


def _sections(pair: _Pair, share: float) -> Iterator[_Pair]:
    """Parts of the longer text that together hold every window."""
    row, needle, hay = pair
    size = len(needle)
    if size > _HUGE:
        same = Counter(needle) & Counter(hay)
        if same.total() < size * share - _SLACK:
            return
    if len(hay) <= 2 * size:
        yield pair
        return
    for start in range(0, len(hay) - size, size):
        yield _Pair(row, needle, hay[start : start + 2 * size])


def _reaches(needle: str, hay: str, threshold: float, enough: Enough) -> bool:
    """Whether any window is enough."""
    score = scorer("ratio")
    size, last = len(needle), len(hay) - len(needle)
    start = 0
    while start <= last:
        ratio = score(needle, hay[start : start + size]) / 100
        if enough(ratio):
            return True
        start += max(1, ceil((threshold - ratio) * size - _SLACK))
    if _end_reaches(needle, hay, threshold, enough):
        return True
    # Of two texts of one length, each is the shorter one.
    return not last and _end_reaches(hay, needle, threshold, enough)


def _end_reaches(needle: str, hay: str, threshold: float, enough: Enough) -> bool:
    """Whether a window at either end, shorter than the needle, is enough."""
    score = scorer("ratio")
    size = len(needle)
    # Where no similarity is asked for, strictly more than none still is.
    least = max(threshold, _SLACK)
    for at_start in (True, False):
        window = size - 1
        while window > 0:
            end = hay[:window] if at_start else hay[-window:]
            ratio = score(needle, end) / 100
            if enough(ratio):
                return True
            lacking = (least - ratio) * (size + window)
            window -= max(1, ceil(lacking / least - _SLACK))
    return False


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
