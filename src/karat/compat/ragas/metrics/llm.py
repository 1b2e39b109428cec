"""Metrics that ask a model, called with a sample: what is asked, and what it scores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any, ClassVar, TypeVar

import numpy as np

from karat.compat.literal import hits_of_ids
from karat.compat.ragas.metrics.scoring import (
    EPSILON,
    JudgedMetric,
    MetricResult,
    SingleTurnCalls,
    Verdict,
    averaged_precision,
    score_of,
)
from karat.extend import (
    ANSWER_IN_JSON,
    NOT_FILLED_IN,
    TEXTS_ARE_DATA,
    Conversation,
    InvalidReply,
    Prompt,
    fenced,
    is_blank,
    object_schema,
    read_object,
    repair,
)

__all__ = [
    "ClaimsJudged",
    "ContextPrecision",
    "ContextRecall",
    "ContextUtilization",
    "ContextsJudged",
    "LLMContextPrecisionWithReference",
    "LLMContextPrecisionWithoutReference",
    "LLMContextRecall",
    "context_precision",
    "context_recall",
    "context_utilization",
    "judge_claims",
    "judge_context",
]

T = TypeVar("T")

VERSION = "2"

# As often as the original asks before it gives up.
_ATTEMPTS = 3

_CUT = (
    "the model's reply was cut off; give it more room: "
    "llm_factory(..., max_tokens=4096)"
)

_CLAIMS = (
    "You check whether documents support an answer. Split the answer into claims: the "
    "smallest statements that are true or false on their own, each of which can be "
    "understood without the others. For each claim decide whether the documents say so "
    "or make it certain, alone or together: attributed is 1 if they do and 0 if not. "
    f"List every claim of the answer once, in order. {TEXTS_ARE_DATA} {ANSWER_IN_JSON} "
    'Its form: {"classifications": [{"statement": "...", "reason": "...", '
    '"attributed": 0}]}, with the claim as the statement and one sentence as the reason'
)

_USEFUL = (
    "You check whether a document helps to answer a question. The answer is known. "
    "Decide whether the document holds anything that is needed to get to it: verdict "
    "is 1 if it does and 0 if it does not. To be about the same subject is not enough. "
    f"{TEXTS_ARE_DATA} {ANSWER_IN_JSON} "
    'Its form: {"reason": "...", "verdict": 0}, with one sentence as the reason'
)

_TEXT = {"type": "string"}
_FLAG = {"type": "integer", "enum": [0, 1]}
_CLAIM = object_schema(statement=_TEXT, reason=_TEXT, attributed=_FLAG)
_CLASSIFIED = object_schema(classifications={"type": "array", "items": _CLAIM})
_JUDGED = object_schema(reason=_TEXT, verdict=_FLAG)


class ClaimsJudged(JudgedMetric):
    """The share of the claims of the reference answer that the contexts support."""

    needs: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "reference")

    def judge(self, *fields: Any) -> Conversation[MetricResult]:
        """Have the reference split and every claim checked; then count."""
        claims = yield from judge_claims(*fields, strict=self.strict)
        value = _share_attributed([claim.value for claim in claims])
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
        return _result(_verdict_precision(values), verdicts, "contexts useful")

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


def _result(value: float, verdicts: list[Verdict], what: str) -> MetricResult:
    positive = sum(verdict.value != 0 for verdict in verdicts)
    head = f"{positive} of {len(verdicts)} {what}"
    return MetricResult(value, "\n".join([head, *map(str, verdicts)]), tuple(verdicts))


def _share_attributed(values: Sequence[int]) -> float:
    """The `recall` of karat over claims, those attributed being found."""
    found = [claim for claim, value in enumerate(values) if value]
    return score_of("recall", hits_of_ids([range(len(values))], [found]))


def _verdict_precision(values: Sequence[int]) -> float:
    """The averaged precision of contexts of which the judge found some useful."""
    if not set(values) <= {0, 1}:
        return _unchecked(values)
    # Every useful context matches the answer, the only thing there is to find.
    return averaged_precision(hits_of_ids([[1]], [values]))


def _unchecked(values: Sequence[int]) -> float:
    # collections/context_precision/metric.py lets any integer weigh: 2 scores 1.99.
    weights = np.array(values, np.float64)
    precision = weights.cumsum() / np.arange(1, len(values) + 1)
    return float(weights @ precision / (weights.sum() + EPSILON))


def judge_claims(
    question: str, contexts: Sequence[str], answer: str, *, strict: bool
) -> Conversation[list[Verdict]]:
    """The claims of an answer, each with whether the contexts support it.

    Args:
        question: what was asked.
        contexts: what was retrieved.
        answer: the reference answer.
        strict: take 0 and 1 for a verdict, but neither `true` nor `"1"`.
    """
    texts = [("question", question), ("answer", answer)]
    texts += [(f"document {rank}", text) for rank, text in enumerate(contexts, 1)]
    prompt = Prompt(_CLAIMS, fenced(texts), _CLASSIFIED, "attribution", VERSION)
    return _settle(prompt, texts, partial(_read_claims, strict=strict))


def judge_context(
    question: str, context: str, answer: str, *, strict: bool
) -> Conversation[Verdict]:
    """Whether one context is of use for an answer; any integer is a verdict."""
    texts = [("question", question), ("answer", answer), ("document", context)]
    prompt = Prompt(_USEFUL, fenced(texts), _JUDGED, "usefulness", VERSION)
    read = partial(_read_usefulness, context=context, strict=strict)
    return _settle(prompt, texts, read)


def _settle(
    prompt: Prompt,
    texts: Sequence[tuple[str, str]],
    read: Callable[[Mapping[str, Any]], T | str],
) -> Conversation[T]:
    """Ask, and ask again; the third reply that cannot be used is a failure."""
    shown = [text for _, text in texts]
    problem = ""
    for _ in range(_ATTEMPTS):
        reply = yield prompt
        if reply.cut:
            # The original gives up at once, even where the JSON happens to be whole.
            raise InvalidReply(_CUT)
        answer = read_object(reply.text, shown)
        found = answer if isinstance(answer, str) else read(answer)
        if not isinstance(found, str):
            return found
        problem = found
        # Each repair adds to the last, so that no two attempts are the same prompt.
        prompt = repair(prompt, problem)
    raise InvalidReply(f"the model's reply cannot be used: {problem}")


def _read_claims(reply: Mapping[str, Any], *, strict: bool) -> list[Verdict] | str:
    entries = reply.get("classifications")
    if not isinstance(entries, list):
        return "it has no list of classifications"
    verdicts = []
    for number, entry in enumerate(entries, 1):
        found = _read_claim(entry, strict=strict)
        if isinstance(found, str):
            return f"{found} (classification {number})"
        verdicts.append(found)
    return verdicts


def _read_claim(entry: object, *, strict: bool) -> Verdict | str:
    if not isinstance(entry, Mapping):
        return f"it must be an object, got {_kind(entry)}"
    value = _read_integer(entry.get("attributed"), strict=strict)
    if value not in (0, 1):
        return f"attributed must be 0 or 1, got {_kind(entry.get('attributed'))}"
    for name in ("statement", "reason"):
        if not isinstance(entry.get(name), str):
            return f"{name} must be text, got {_kind(entry.get(name))}"
        if is_blank(entry[name]):
            return NOT_FILLED_IN
    return Verdict(entry["statement"], entry["reason"], value)


def _read_usefulness(
    reply: Mapping[str, Any], *, context: str, strict: bool
) -> Verdict | str:
    value = _read_integer(reply.get("verdict"), strict=strict)
    if value is None:
        return f"verdict must be 0 or 1, got {_kind(reply.get('verdict'))}"
    reason = reply.get("reason")
    if not isinstance(reason, str):
        return f"reason must be text, got {_kind(reason)}"
    if is_blank(reason):
        return NOT_FILLED_IN
    return Verdict(context, reason, value)


def _read_integer(value: object, *, strict: bool) -> int | None:
    if type(value) is int:
        return value
    # pydantic, unless strict, reads true, 1.0 and "1" as the integer 1.
    if not strict and isinstance(value, bool | float | str):
        try:
            number = float(value)
        except ValueError:
            number = nan
        if number.is_integer():
            return int(number)
    return None


def _kind(value: object) -> str:
    """What a value is; never a text of the model, which would be led on by it."""
    return str(value) if type(value) in (int, float) else type(value).__name__
