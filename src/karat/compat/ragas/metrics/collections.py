"""Metrics that ask a model, called with keywords: `ragas.metrics.collections`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from karat.compat.ragas.dataset_schema import SingleTurnSample
from karat.compat.ragas.judging import (
    ClaimsJudged,
    ContextsJudged,
    JudgedMetric,
    MetricResult,
)
from karat.compat.ragas.metrics import elsewhere
from karat.extend import DataError, UsageError, run_sync

__all__ = [
    "ContextPrecision",
    "ContextPrecisionWithReference",
    "ContextPrecisionWithoutReference",
    "ContextRecall",
    "ContextUtilization",
]

__getattr__ = elsewhere


class _KeywordCalls(JudgedMetric):
    """The newer calls: the fields of a sample in, a `MetricResult` out."""

    strict = True
    order: ClassVar[tuple[str, ...]] = ("user_input", "reference", "retrieved_contexts")

    def read(self, sample: Any) -> list[Any]:
        """The fields that are needed; as in the original, none may be empty."""
        if not isinstance(sample, SingleTurnSample):
            if unknown := [name for name in sample if name not in self.needs]:
                names = ", ".join(self.needs)
                raise UsageError(f"{self.name} takes {names}; got {unknown[0]!r}")
            sample = SingleTurnSample(**sample)
        values = super().read(sample)
        for name, value in zip(self.needs, values, strict=True):
            if not value:
                raise DataError(f"{name} must not be empty")
        return values

    def score(self, **row: Any) -> MetricResult:
        """What `ascore` gives, from plain code."""
        return run_sync(lambda: self.result(row))

    async def abatch_score(
        self, inputs: Sequence[Mapping[str, Any]]
    ) -> list[MetricResult]:
        """One result per input, in order; one that failed carries its error."""
        return await self.results(inputs)

    def batch_score(self, inputs: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
        """The same, from plain code."""
        return run_sync(lambda: self.results(inputs))

    async def ascore(self, *values: Any, **row: Any) -> MetricResult:
        """The score of one sample, its fields by name or in the original's order."""
        return await self.result({**dict(zip(self.order, values, strict=False)), **row})


@dataclass
class ContextRecall(ClaimsJudged, _KeywordCalls):
    """The share of the claims of the reference answer that the contexts support.

    Undefined (NaN) where the judge finds no claim. `result.reason` lists the claims
    with their verdicts.

    Example:
        >>> class Model:
        ...     def __call__(self, prompt):
        ...         return '''{"classifications": [
        ...     {"statement": "It is in Paris.", "reason": "said so", "attributed": 1},
        ...     {"statement": "It is tall.", "reason": "not said", "attributed": 0}]}'''
        >>> result = ContextRecall(llm=Model()).score(
        ...     user_input="Where is the tower?",
        ...     retrieved_contexts=["The tower is in Paris."],
        ...     reference="It is in Paris and tall.",
        ... )
        >>> print(result.value, result.reason, sep=", ")
        0.5, 1 of 2 claims attributed
        [1] It is in Paris.: said so
        [0] It is tall.: not said
    """

    order: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "reference")

    name: str = "context_recall"


@dataclass
class ContextPrecisionWithReference(ContextsJudged, _KeywordCalls):
    """Whether the contexts that help to arrive at the reference answer stand on top."""

    name: str = "context_precision_with_reference"


@dataclass
class ContextPrecisionWithoutReference(ContextsJudged, _KeywordCalls):
    """Whether the contexts that help to arrive at the response stand on top."""

    needs: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "response")
    order: ClassVar[tuple[str, ...]] = ("user_input", "response", "retrieved_contexts")

    name: str = "context_precision_without_reference"


@dataclass
class ContextPrecision(ContextPrecisionWithReference):
    """The same as `ContextPrecisionWithReference`, by its short name."""

    name: str = "context_precision"


@dataclass
class ContextUtilization(ContextPrecisionWithoutReference):
    """The same as `ContextPrecisionWithoutReference`, by its short name."""

    name: str = "context_utilization"
