"""Metrics that compare ids or texts and ask nobody."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from math import nan
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from rapidfuzz.distance import Hamming, Jaro, JaroWinkler, Levenshtein

from karat.compat.literal import hits_of_ids, hits_of_texts
from karat.compat.ragas.dataset_schema import SingleTurnSample
from karat.compat.ragas.metrics.scoring import (
    ComparingMetric,
    averaged_precision,
    score_of,
)
from karat.extend import Bools, DataError, Fuzzy, Hits, ParameterError

__all__ = [
    "DistanceMeasure",
    "IDBasedContextPrecision",
    "IDBasedContextRecall",
    "NonLLMContextPrecisionWithReference",
    "NonLLMContextRecall",
    "NonLLMStringSimilarity",
]


class DistanceMeasure(Enum):
    """How far apart two texts are, by RapidFuzz."""

    LEVENSHTEIN = "levenshtein"
    HAMMING = "hamming"
    JARO = "jaro"
    JARO_WINKLER = "jaro_winkler"


_DISTANCES = {
    DistanceMeasure.LEVENSHTEIN: Levenshtein,
    DistanceMeasure.HAMMING: Hamming,
    DistanceMeasure.JARO: Jaro,
    DistanceMeasure.JARO_WINKLER: JaroWinkler,
}


class TextMetric(Protocol):
    """A metric that says how similar `reference` and `response` of a sample are."""

    def single_turn_score(self, sample: SingleTurnSample) -> float:
        """The similarity, 1 for equal texts."""


Measure: TypeAlias = "DistanceMeasure | str | TextMetric"


@dataclass
class NonLLMStringSimilarity(ComparingMetric):
    """How similar `response` is to `reference`: 1 for equal texts.

    Example:
        >>> sample = SingleTurnSample(reference="kitten", response="sitting")
        >>> round(NonLLMStringSimilarity().single_turn_score(sample), 4)
        0.5714
    """

    needs: ClassVar[tuple[str, ...]] = ("reference", "response")

    distance_measure: DistanceMeasure | str = DistanceMeasure.LEVENSHTEIN
    name: str = "non_llm_string_similarity"

    def measure(self, sample: SingleTurnSample) -> float:
        """1 - RapidFuzz's normalised distance."""
        distance = _DISTANCES[_read_measure(self.distance_measure)]
        return 1 - float(distance.normalized_distance(*self.read(sample)))


@dataclass
class _ContextsCompared(ComparingMetric):
    """What recall and precision of texts have in common.

    Attributes:
        threshold: how similar a retrieved and a reference context must be.
        distance_measure: a `DistanceMeasure`, its name, or a metric of your own that
            has `single_turn_score`.
    """

    needs: ClassVar[tuple[str, ...]] = ("retrieved_contexts", "reference_contexts")
    strict: ClassVar[bool]

    threshold: float = 0.5
    distance_measure: Measure = DistanceMeasure.LEVENSHTEIN

    def found(self, retrieved: Sequence[str], references: Sequence[str]) -> Hits:
        """Where the reference contexts were found."""
        measure = self.distance_measure
        if isinstance(measure, NonLLMStringSimilarity):
            measure = measure.distance_measure
        if isinstance(measure, DistanceMeasure | str):
            measure = _read_measure(measure)
        similar = partial(_similar, measure, self.threshold, self.strict)
        return hits_of_texts(similar, [references], [retrieved])


@dataclass
class NonLLMContextRecall(_ContextsCompared):
    """The share of the reference contexts that are similar to a retrieved one.

    Undefined (NaN) without reference contexts.

    Example:
        >>> sample = SingleTurnSample(
        ...     retrieved_contexts=["Paris is the capital of France."],
        ...     reference_contexts=["Paris is the capital of France.", "Rome is old."],
        ... )
        >>> NonLLMContextRecall().single_turn_score(sample)
        0.5
    """

    # _context_recall.py asks for more than the threshold, _context_precision.py not.
    strict: ClassVar[bool] = True

    name: str = "non_llm_context_recall"

    def measure(self, sample: SingleTurnSample) -> float:
        """The `recall` of karat."""
        retrieved, references = self.read(sample)
        if references and not retrieved:
            # The original takes the max() of nothing.
            raise DataError("no similarity to compute: retrieved_contexts is empty")
        return score_of("recall", self.found(retrieved, references))


@dataclass
class NonLLMContextPrecisionWithReference(_ContextsCompared):
    """Whether retrieved contexts that are similar to a reference stand on top."""

    strict: ClassVar[bool] = False

    name: str = "non_llm_context_precision_with_reference"

    def measure(self, sample: SingleTurnSample) -> float:
        """The `context_precision` of karat, and the original's 1e-10."""
        retrieved, references = self.read(sample)
        if retrieved and not references:
            # The original takes the max() of nothing.
            raise DataError("no similarity to compute: reference_contexts is empty")
        return averaged_precision(self.found(retrieved, references))


@dataclass
class _IdsCompared(ComparingMetric):
    """What recall and precision of ids have in common."""

    needs: ClassVar[tuple[str, ...]] = (
        "retrieved_context_ids",
        "reference_context_ids",
    )

    def ids(self, sample: SingleTurnSample) -> list[list[str]]:
        """Retrieved and reference ids, each once, as text."""
        return [list(dict.fromkeys(map(str, ids))) for ids in self.read(sample)]


@dataclass
class IDBasedContextRecall(_IdsCompared):
    """The share of the reference ids that were retrieved.

    Undefined (NaN) without reference ids.

    Example:
        >>> sample = SingleTurnSample(
        ...     retrieved_context_ids=["doc_1", 2], reference_context_ids=["2", "doc_4"]
        ... )
        >>> IDBasedContextRecall().single_turn_score(sample)
        0.5
    """

    name: str = "id_based_context_recall"

    def measure(self, sample: SingleTurnSample) -> float:
        """The `recall` of karat."""
        retrieved, references = self.ids(sample)
        return score_of("recall", hits_of_ids([references], [retrieved]))


@dataclass
class IDBasedContextPrecision(_IdsCompared):
    """The share of the retrieved ids that are reference ids."""

    name: str = "id_based_context_precision"

    def measure(self, sample: SingleTurnSample) -> float:
        """The `precision` of karat, without cutoff."""
        retrieved, references = self.ids(sample)
        # Undefined where nothing was retrieved, and 0.0 where nothing is relevant: the
        # original divides by what was retrieved; karat's rules are the other way round.
        if not retrieved:
            return nan
        if not references:
            return 0.0
        return score_of("precision", hits_of_ids([references], [retrieved]))


def _read_measure(measure: Any) -> DistanceMeasure:
    """The distance a name stands for."""
    try:
        return DistanceMeasure(measure)
    except ValueError:
        names = ", ".join(repr(known.value) for known in DistanceMeasure)
        raise ParameterError(
            "distance_measure", "measure", f"one of {names}", measure
        ) from None


def _similar(
    measure: DistanceMeasure | TextMetric,
    threshold: float,
    strict: bool,  # noqa: FBT001
    documents: Sequence[str],
    golds: Sequence[str],
) -> Bools:
    """Whether each context is similar enough to each reference context."""
    shape = len(documents), len(golds)
    pairs = [(gold, document) for document in documents for gold in golds]
    if isinstance(measure, DistanceMeasure):
        fuzzy = Fuzzy(measure.value, threshold, strict)
        texts = zip(*pairs, strict=True)
        return fuzzy.satisfied(*map(list, texts)).reshape(shape)
    samples = (SingleTurnSample(reference=d, response=g) for g, d in pairs)
    scores = [measure.single_turn_score(sample) for sample in samples]
    enough = np.greater if strict else np.greater_equal
    return np.asarray(enough(scores, threshold), np.bool_).reshape(shape)
