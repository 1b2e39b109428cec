"""What metrics have in common: what they read, how they are called, what they give."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any, ClassVar

from karat import KaratError
from karat.compat.ragas.dataset_schema import SingleTurnSample
from karat.compat.ragas.llms import Model, RunConfig, session_of, usual_model
from karat.extend import (
    CallError,
    Conversation,
    DataError,
    Hits,
    IncompleteError,
    JudgeSession,
    OfflineMissError,
    UsageError,
    make_metric,
    run_sync,
)

__all__ = [
    "EPSILON",
    "ComparingMetric",
    "Elsewhere",
    "JudgedMetric",
    "KeywordCalls",
    "MetricResult",
    "SingleTurnCalls",
    "Verdict",
    "averaged_precision",
    "elsewhere",
    "score_of",
]


EPSILON = 1e-10
"""What ragas adds to the number of relevant contexts: 1.0 becomes 0.9999999999."""


@dataclass(frozen=True)
class Verdict:
    """What the judge said of one claim or context.

    Attributes:
        statement: what was judged.
        reason: why.
        value: 1 for supported or useful, 0 for not.
    """

    statement: str
    reason: str
    value: int

    def __str__(self) -> str:
        return f"[{self.value}] {self.statement}: {self.reason}"


@dataclass(frozen=True)
class MetricResult:
    """A score and what it rests on.

    Attributes:
        value: the score; NaN where it is undefined or failed.
        reason: every claim or context with its verdict, or why there is no score.
        verdicts: the same, one by one.
        error: what went wrong, if anything did.
    """

    value: float
    reason: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    error: KaratError | None = None

    def __float__(self) -> float:
        return self.value


def _failed(error: KaratError) -> MetricResult:
    """A failure as a value with a reason."""
    return MetricResult(nan, f"failed: {error}", error=error)


def score_of(metric: str, hits: Hits) -> float:
    """What a metric of karat says of the only query."""
    return float(make_metric(metric).score(hits)[0])


def averaged_precision(hits: Hits) -> float:
    """The `context_precision` of karat with ragas' denominator; 0.0 without any hit."""
    matched = len(hits.positions()[0])
    if not matched:
        return 0.0
    return score_of("context_precision", hits) * matched / (matched + EPSILON)


class Scorer(ABC):
    """A metric of one sample at a time.

    Attributes:
        name: what the score is called in the result of `evaluate`.
        needs: the fields of a sample that it reads.
    """

    name: str
    needs: ClassVar[tuple[str, ...]]

    def read(self, sample: SingleTurnSample) -> list[Any]:
        """The fields that are needed, in order."""
        values = [getattr(sample, name) for name in self.needs]
        for name, value in zip(self.needs, values, strict=True):
            if value is None:
                raise DataError(f"{self.name} needs {name}, which the sample lacks")
        return values


class ComparingMetric(Scorer):
    """A metric that compares what is there, without a model."""

    @abstractmethod
    def measure(self, sample: SingleTurnSample) -> float:
        """The score of a sample."""

    def init(self, run_config: object = None) -> None:
        """Nothing has to be done before a sample is scored."""

    def single_turn_score(
        self, sample: SingleTurnSample, callbacks: object = None
    ) -> float:
        """The score of a sample."""
        del callbacks
        return self.measure(sample)

    async def single_turn_ascore(
        self,
        sample: SingleTurnSample,
        callbacks: object = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> float:
        """The same, to be awaited."""
        del callbacks, timeout
        return self.measure(sample)

    def attempt(self, sample: SingleTurnSample) -> MetricResult:
        """The score of a sample, or why there is none."""
        try:
            return MetricResult(self.measure(sample))
        except KaratError as error:
            return _failed(error)


class Elsewhere(ComparingMetric):
    """A metric of the original that is not here: no score, and what to use instead."""

    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, *unused: object, **more: object) -> None:
        del unused, more
        self.name = _CAPITAL.sub(r"_\1", name).lower().lstrip("_")

    @property
    def sentence(self) -> str:
        """Why there is no score, and what to use."""
        return (
            f"{self.name} is no metric of retrieval, which is all that karat measures: "
            "of the same samples, context_recall and context_precision say whether the "
            "contexts hold the answer; for the rest, keep it in ragas"
        )

    def measure(self, sample: SingleTurnSample) -> float:
        """Never a number."""
        del sample
        raise UsageError(self.sentence)


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


def elsewhere(name: str) -> Any:
    """A metric of the original that is not here, by its name in a module of metrics."""
    if name not in _ELSEWHERE.split():
        raise AttributeError(f"there is no {name!r} here")
    return Elsewhere(name) if name.islower() else partial(Elsewhere, name)


@dataclass
class JudgedMetric(Scorer):
    """A metric that asks a model.

    Attributes:
        llm: what `llm_factory` returns, any callable from prompt to reply, the name of
            a model, or a client or session of karat's.
        strict: whether `true` and `"1"` are refused for a verdict.
    """

    strict: ClassVar[bool]

    llm: Model | None = None

    def init(self, run_config: object = None) -> None:
        """Nothing has to be done before a sample is scored."""

    @abstractmethod
    def judge(self, *fields: Any) -> Conversation[MetricResult]:
        """What to ask of the model about these fields, and what comes of it."""

    async def result(
        self, sample: SingleTurnSample, llm: Model | None = None
    ) -> MetricResult:
        """The score of a sample and what it rests on."""
        (found,) = await self.results([sample], llm)
        if found.error is not None:
            raise found.error
        return found

    async def results(
        self,
        samples: Iterable[SingleTurnSample | KaratError],
        llm: Model | None = None,
        run_config: RunConfig | None = None,
    ) -> list[MetricResult]:
        """One result per sample, in order; a failure is a result with its error."""
        session = self._session(llm, run_config)
        found = [self._begun(sample) for sample in samples]
        jobs = [
            partial(_record, found, place, partial(self.judge, *fields))
            for place, fields in enumerate(found)
            if not isinstance(fields, MetricResult)
        ]
        try:
            await session.arun_jobs(jobs)
        except (CallError, IncompleteError, OfflineMissError) as error:
            # Rows that were done by then keep their scores.
            found = [
                row if isinstance(row, MetricResult) else _failed(error)
                for row in found
            ]
        return [row for row in found if isinstance(row, MetricResult)]

    def _begun(self, sample: SingleTurnSample | KaratError) -> MetricResult | list[Any]:
        """What is to be judged, or why that cannot be."""
        if isinstance(sample, KaratError):
            return _failed(sample)
        try:
            return self.read(sample)
        except KaratError as error:
            return _failed(error)

    def _session(
        self, llm: Model | None, run_config: RunConfig | None = None
    ) -> JudgeSession:
        model = llm if self.llm is None else self.llm
        model = usual_model() if model is None else model
        if model is None:
            raise UsageError(
                f"{self.name} needs a model: llm=llm_factory(...) or any callable "
                "from prompt to reply"
            )
        return session_of(model, run_config)


class SingleTurnCalls(JudgedMetric):
    """The older calls: a sample in, a number out."""

    strict = False

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


class KeywordCalls(JudgedMetric):
    """The newer calls: the fields of a sample in, a `MetricResult` out."""

    strict = True

    def read(self, sample: SingleTurnSample) -> list[Any]:
        """The fields that are needed; as in the original, none may be empty."""
        values = super().read(sample)
        for name, value in zip(self.needs, values, strict=True):
            if not value:
                raise DataError(f"{name} must not be empty")
        return values

    def score(self, **row: Any) -> MetricResult:
        """What `ascore` gives, from plain code."""
        return run_sync(lambda: self.result(self._sample(row)))

    async def abatch_score(
        self, inputs: Sequence[Mapping[str, Any]]
    ) -> list[MetricResult]:
        """One result per input, in order; one that failed carries its error."""
        return await self.results([self._attempt(row) for row in inputs])

    def batch_score(self, inputs: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
        """The same, from plain code."""
        return run_sync(lambda: self.abatch_score(inputs))

    def _sample(self, row: Mapping[str, Any]) -> SingleTurnSample:
        if unknown := [name for name in row if name not in self.needs]:
            known = ", ".join(self.needs)
            raise UsageError(f"{self.name} takes {known}; got {unknown[0]!r}")
        return SingleTurnSample(**row)

    def _attempt(self, row: Mapping[str, Any]) -> SingleTurnSample | KaratError:
        try:
            return self._sample(row)
        except KaratError as error:
            return error


def _record(
    found: list[Any], place: int, judge: Callable[[], Conversation[MetricResult]]
) -> Conversation[None]:
    """Run a judge and keep its result at once, so that no later error loses it."""
    try:
        found[place] = yield from judge()
    except CallError as error:
        found[place] = _failed(error)
        raise
