"""Metrics that ask a model, called with keywords: `ragas.metrics.collections`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from karat.compat.ragas.dataset_schema import SingleTurnSample
from karat.compat.ragas.metrics.llm import ClaimsJudged, ContextsJudged
from karat.compat.ragas.metrics.scoring import (
    KeywordCalls,
    MetricResult,
    elsewhere,
)

__all__ = [
    "ContextPrecision",
    "ContextPrecisionWithReference",
    "ContextPrecisionWithoutReference",
    "ContextRecall",
    "ContextUtilization",
]

__getattr__ = elsewhere


@dataclass
class ContextRecall(ClaimsJudged, KeywordCalls):
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

    name: str = "context_recall"

    async def ascore(
        self, user_input: str, retrieved_contexts: Sequence[str], reference: str
    ) -> MetricResult:
        """The score of one sample."""
        return await self.result(
            SingleTurnSample(
                user_input=user_input,
                retrieved_contexts=retrieved_contexts,
                reference=reference,
            )
        )


@dataclass
class ContextPrecisionWithReference(ContextsJudged, KeywordCalls):
    """Whether the contexts that help to arrive at the reference answer stand on top."""

    name: str = "context_precision_with_reference"

    async def ascore(
        self, user_input: str, reference: str, retrieved_contexts: Sequence[str]
    ) -> MetricResult:
        """The score of one sample."""
        return await self.result(
            SingleTurnSample(
                user_input=user_input,
                reference=reference,
                retrieved_contexts=retrieved_contexts,
            )
        )


@dataclass
class ContextPrecisionWithoutReference(ContextsJudged, KeywordCalls):
    """Whether the contexts that help to arrive at the response stand on top."""

    needs: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "response")

    name: str = "context_precision_without_reference"

    async def ascore(
        self, user_input: str, response: str, retrieved_contexts: Sequence[str]
    ) -> MetricResult:
        """The score of one sample."""
        return await self.result(
            SingleTurnSample(
                user_input=user_input,
                response=response,
                retrieved_contexts=retrieved_contexts,
            )
        )


@dataclass
class ContextPrecision(ContextPrecisionWithReference):
    """The same as `ContextPrecisionWithReference`, by its short name."""

    name: str = "context_precision"


@dataclass
class ContextUtilization(ContextPrecisionWithoutReference):
    """The same as `ContextPrecisionWithoutReference`, by its short name."""

    name: str = "context_utilization"
