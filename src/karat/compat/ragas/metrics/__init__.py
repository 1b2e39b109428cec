"""The metrics that `ragas.metrics` has for retrieval, called with a sample."""

import asyncio
import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from math import nan
from typing import Any, ClassVar

import numpy as np
from rapidfuzz.distance import Hamming, Jaro, JaroWinkler, Levenshtein

from karat import KaratError
from karat.compat.exact_matching import hits_of_ids, hits_of_texts, score_of
from karat.compat.ragas.dataset_schema import SingleTurnSample
from karat.compat.ragas.judging import (
    ClaimsJudged,
    ContextsJudged,
    MetricResult,
    Scorer,
    averaged_precision,
    failed,
)
from karat.compat.ragas.llms import Model
from karat.extend import (
    Bools,
    DataError,
    Fuzzy,
    Hits,
    ParameterError,
    UsageError,
    run_sync,
)

__all__ = [
    "ContextPrecision",
    "ContextRecall",
    "ContextUtilization",
    "DistanceMeasure",
    "IDBasedContextPrecision",
    "IDBasedContextRecall",
    "LLMContextPrecisionWithReference",
    "LLMContextPrecisionWithoutReference",
    "LLMContextRecall",
    "MetricResult",
    "NonLLMContextPrecisionWithReference",
    "NonLLMContextRecall",
    "NonLLMStringSimilarity",
    "context_precision",
    "context_recall",
    "context_utilization",
]

_IDS = ("retrieved_context_ids", "reference_context_ids")
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_ELSEWHERE = (
    "AgentGoalAccuracyWithReference AgentGoalAccuracyWithoutReference AnswerAccuracy "
    "AnswerCorrectness AnswerRelevancy AnswerSimilarity AspectCritic BleuScore "
    "ChrfScore ContextEntityRecall ContextRelevance DataCompyScore ExactMatch "
    "FactualCorrectness Faithfulness FaithfulnesswithHHEM InstanceRubrics "
    "LLMSQLEquivalence MultiModalFaithfulness MultiModalRelevance NoiseSensitivity "
    "ResponseGroundedness ResponseRelevancy RougeScore RubricsScore SemanticSimilarity "
    "SimpleCriteriaScore StringPresence SummarizationScore ToolCallAccuracy "
    "ToolCallF1 TopicAdherenceScore answer_correctness answer_relevancy faithfulness "
    "answer_similarity context_entity_recall context_relevancy summarization_score"
)


class _SingleTurnCalls(Scorer):
    """The older calls: a sample in, a number out."""

    async def single_turn_ascore(
        self,
        sample: SingleTurnSample,
        callbacks: object = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> float:
        """The score of a sample."""
        del callbacks
        return (await asyncio.wait_for(self.result(sample), timeout)).value

    def single_turn_score(
        self, sample: SingleTurnSample, callbacks: object = None
    ) -> float:
        """The same, from plain code."""
        del callbacks
        return run_sync(lambda: self.single_turn_ascore(sample))


class ComparingMetric(_SingleTurnCalls):
    """A metric that compares what is there, without a model."""

    @abstractmethod
    def measure(self, *fields: Any) -> float:
        """The score of these fields of a sample."""

    def single_turn_score(
        self, sample: SingleTurnSample, callbacks: object = None
    ) -> float:
        """The score of a sample, without an event loop."""
        del callbacks
        return self.measure(*self.read(sample))

    async def results(
        self, samples: Iterable[Any], llm: Model = None, run_config: object = None
    ) -> list[MetricResult]:
        """One result per sample, in order, without holding up the event loop."""
        del llm, run_config
        return await asyncio.to_thread(lambda: [*map(self.attempt, samples)])

    def attempt(self, sample: SingleTurnSample) -> MetricResult:
        """The score of a sample, or why there is none."""
        try:
            return MetricResult(self.single_turn_score(sample))
        except KaratError as error:
            return failed(error)


class Elsewhere(ComparingMetric):
    """A metric of the original that is not here: no score, and what to use instead."""

    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, *unused: object, **more: object) -> None:
        del unused, more
        self.name = _CAPITAL.sub(r"_\1", name).lower().lstrip("_")
        self.sentence = (
            f"{self.name} is no metric of retrieval, which is all that karat measures: "
            "of the same samples, context_recall and context_precision say whether the "
            "contexts hold the answer; for the rest, keep it in ragas"
        )

    def measure(self, *fields: Any) -> float:
        """Never a number."""
        del fields
        raise UsageError(self.sentence)


def elsewhere(name: str) -> Any:
    """A metric of the original that is not here, by its name in a module of metrics."""
    if name not in _ELSEWHERE.split():
        raise AttributeError(f"there is no {name!r} here")
    return Elsewhere(name) if name.islower() else partial(Elsewhere, name)


class DistanceMeasure(Enum):
    """How far apart two texts are, by RapidFuzz."""

    LEVENSHTEIN = "levenshtein"
    HAMMING = "hamming"
    JARO = "jaro"
    JARO_WINKLER = "jaro_winkler"

    @classmethod
    def _missing_(cls, value: object) -> None:
        must_be = f"one of {', '.join(repr(measure.value) for measure in cls)}"
        raise ParameterError("distance_measure", "measure", must_be, value)


_DISTANCES: dict[DistanceMeasure, Any] = dict(
    zip(DistanceMeasure, (Levenshtein, Hamming, Jaro, JaroWinkler), strict=True)
)


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

    def measure(self, *fields: str) -> float:
        """1 - RapidFuzz's normalised distance."""
        distance = _DISTANCES[DistanceMeasure(self.distance_measure)]
        return 1 - float(distance.normalized_distance(*fields))


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
    distance_measure: Any = DistanceMeasure.LEVENSHTEIN

    def _hits_of(self, retrieved: Sequence[str], references: Sequence[str]) -> Hits:
        return hits_of_texts(self._similar, [references], [retrieved])

    def _similar(self, documents: Sequence[str], golds: Sequence[str]) -> Bools:
        """Whether each context is similar enough to each reference context."""
        shape = len(documents), len(golds)
        pairs = [(gold, document) for document in documents for gold in golds]
        measure = self.distance_measure
        if isinstance(measure, NonLLMStringSimilarity):
            measure = measure.distance_measure
        if isinstance(measure, DistanceMeasure | str):
            similarity = DistanceMeasure(measure).value
            fuzzy = Fuzzy(similarity, self.threshold, self.strict)
            texts = zip(*pairs, strict=True)
            return fuzzy.satisfied(*map(list, texts)).reshape(shape)
        samples = (SingleTurnSample(reference=d, response=g) for g, d in pairs)
        scores = [measure.single_turn_score(sample) for sample in samples]
        enough = np.greater if self.strict else np.greater_equal
        return np.asarray(enough(scores, self.threshold), np.bool_).reshape(shape)


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

    def measure(self, *fields: Sequence[str]) -> float:
        """The `recall` of karat."""
        retrieved, references = fields
        if references and not retrieved:
            # The original takes the max() of nothing.
            raise DataError("no similarity to compute: retrieved_contexts is empty")
        return score_of("recall", self._hits_of(retrieved, references))


@dataclass
class NonLLMContextPrecisionWithReference(_ContextsCompared):
    """Whether retrieved contexts that are similar to a reference stand on top.

    Example:
        >>> sample = SingleTurnSample(
        ...     retrieved_contexts=["Rome is old.", "Paris is the capital of France."],
        ...     reference_contexts=["Paris is the capital of France."],
        ... )
        >>> round(NonLLMContextPrecisionWithReference().single_turn_score(sample), 4)
        0.5
    """

    strict: ClassVar[bool] = False

    name: str = "non_llm_context_precision_with_reference"

    def measure(self, *fields: Sequence[str]) -> float:
        """The `context_precision` of karat."""
        retrieved, references = fields
        if retrieved and not references:
            # The original takes the max() of nothing.
            raise DataError("no similarity to compute: reference_contexts is empty")
        return averaged_precision(self._hits_of(retrieved, references))


@dataclass
class IDBasedContextRecall(ComparingMetric):
    """The share of the reference ids that were retrieved.

    Undefined (NaN) without reference ids.

    Example:
        >>> sample = SingleTurnSample(
        ...     retrieved_context_ids=["doc_1", 2], reference_context_ids=["2", "doc_4"]
        ... )
        >>> IDBasedContextRecall().single_turn_score(sample)
        0.5
    """

    needs: ClassVar[tuple[str, ...]] = _IDS

    name: str = "id_based_context_recall"

    def measure(self, *fields: Sequence[str | int]) -> float:
        """The `recall` of karat, over ids as text, each once."""
        retrieved, references = (dict.fromkeys(map(str, ids)) for ids in fields)
        return score_of("recall", hits_of_ids([[*references]], [retrieved]))


@dataclass
class IDBasedContextPrecision(ComparingMetric):
    """The share of the retrieved ids that are reference ids.

    Example:
        >>> sample = SingleTurnSample(
        ...     retrieved_context_ids=["doc_1", 2], reference_context_ids=["2", "doc_4"]
        ... )
        >>> IDBasedContextPrecision().single_turn_score(sample)
        0.5
    """

    needs: ClassVar[tuple[str, ...]] = _IDS

    name: str = "id_based_context_precision"

    def measure(self, *fields: Sequence[str | int]) -> float:
        """The `precision` of karat, without cutoff, over ids as text, each once."""
        retrieved, references = (dict.fromkeys(map(str, ids)) for ids in fields)
        # Undefined where nothing was retrieved, and 0.0 where nothing is relevant: the
        # original divides by what was retrieved; karat's rules are the other way round.
        if not retrieved or not references:
            return 0.0 if retrieved else nan
        return score_of("precision", hits_of_ids([[*references]], [retrieved]))


@dataclass
class LLMContextRecall(ClaimsJudged, _SingleTurnCalls):
    """The share of the claims of the reference answer that the contexts support.

    Undefined (NaN) where the judge finds no claim.
    """

    name: str = "context_recall"


@dataclass
class LLMContextPrecisionWithReference(ContextsJudged, _SingleTurnCalls):
    """Whether the contexts that help to arrive at the reference answer stand on top."""

    name: str = "llm_context_precision_with_reference"


@dataclass
class LLMContextPrecisionWithoutReference(LLMContextPrecisionWithReference):
    """Whether the contexts that help to arrive at the response stand on top."""

    needs: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "response")

    name: str = "llm_context_precision_without_reference"


@dataclass
class ContextRecall(LLMContextRecall):
    """The same, by its short name."""


@dataclass
class ContextPrecision(LLMContextPrecisionWithReference):
    """`LLMContextPrecisionWithReference` by its short name."""

    name: str = "context_precision"


@dataclass
class ContextUtilization(LLMContextPrecisionWithoutReference):
    """`LLMContextPrecisionWithoutReference` by its short name."""

    name: str = "context_utilization"


context_recall, context_precision = ContextRecall(), ContextPrecision()
context_utilization = ContextUtilization()


__getattr__ = elsewhere
