"""Metrics that ask a model, called with a sample."""

from dataclasses import dataclass
from typing import Any, ClassVar

from karat.compat.ragas.metrics.numbers import share_attributed, verdict_precision
from karat.compat.ragas.metrics.scoring import (
    JudgedMetric,
    MetricResult,
    SingleTurnCalls,
)
from karat.compat.ragas.verdicts import Verdict, judge_claims, judge_context
from karat.data.judgements import Conversation

__all__ = [
    "LLMContextPrecisionWithReference",
    "LLMContextPrecisionWithoutReference",
    "LLMContextRecall",
]


class ClaimsJudged(JudgedMetric):
    """The share of the claims of the reference answer that the contexts support."""

    needs: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "reference")

    def judge(self, *fields: Any) -> Conversation[MetricResult]:
        """Have the reference split and every claim checked; then count."""
        claims = yield from judge_claims(*fields, strict=self.strict)
        value = share_attributed([claim.value for claim in claims])
        return _result(value, claims, "claims attributed")


class ContextsJudged(JudgedMetric):
    """Whether the contexts that help to answer stand on top."""

    needs: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "reference")

    def judge(self, *fields: Any) -> Conversation[MetricResult]:
        """Have every context checked, one after the other; then count."""
        question, contexts, answer = fields
        verdicts = []
        for context in contexts:
            asked = judge_context(question, context, answer, strict=self.strict)
            verdict = yield from asked
            verdicts.append(verdict)
        values = [self.weigh(verdict.value) for verdict in verdicts]
        return _result(verdict_precision(values), verdicts, "contexts useful")

    def weigh(self, verdict: int) -> int:
        """What a verdict counts."""
        return verdict


@dataclass
class LLMContextRecall(ClaimsJudged, SingleTurnCalls):
    """The share of the claims of the reference answer that the contexts support.

    Undefined (NaN) where the judge finds no claim.
    """

    name: str = "context_recall"


@dataclass
class LLMContextPrecisionWithReference(ContextsJudged, SingleTurnCalls):
    """Whether the contexts that help to arrive at the reference answer stand on top."""

    name: str = "llm_context_precision_with_reference"

    def weigh(self, verdict: int) -> int:
        """1 for any verdict but 0, as _context_precision.py has it."""
        return int(verdict != 0)


@dataclass
class LLMContextPrecisionWithoutReference(LLMContextPrecisionWithReference):
    """Whether the contexts that help to arrive at the response stand on top."""

    needs: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "response")

    name: str = "llm_context_precision_without_reference"


def _result(value: float, verdicts: list[Verdict], what: str) -> MetricResult:
    positive = sum(verdict.value != 0 for verdict in verdicts)
    head = f"{positive} of {len(verdicts)} {what}"
    return MetricResult(value, "\n".join([head, *map(str, verdicts)]), tuple(verdicts))
