"""Metrics that ask a model: what is asked, what is read of it, and what it scores."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any, ClassVar, TypeVar

import numpy as np

from karat import KaratError
from karat.compat.exact_matching import hits_of_ids, score_of
from karat.compat.ragas.llms import Model, session_of, usual_model
from karat.extend import (
    ANSWER_IN_JSON,
    NOT_FILLED_IN,
    TEXTS_ARE_DATA,
    CallError,
    Conversation,
    DataError,
    Hits,
    IncompleteError,
    InvalidReply,
    OfflineMissError,
    Prompt,
    UsageError,
    fenced,
    is_blank,
    object_schema,
    read_object,
    repair,
)

T = TypeVar("T")

VERSION = "2"

# What ragas adds to the number of relevant contexts: 1.0 becomes 0.9999999999.
_EPSILON = 1e-10
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


@dataclass(frozen=True)
class Verdict:
    """What the judge said of a claim or context: 1 for supported or useful, and why."""

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


def failed(error: KaratError) -> MetricResult:
    """A failure as a value with a reason."""
    return MetricResult(nan, f"failed: {error}", error=error)


def averaged_precision(hits: Hits) -> float:
    """The `context_precision` of karat with ragas' denominator; 0.0 without any hit."""
    matched = len(hits.positions()[0])
    if not matched:
        return 0.0
    return score_of("context_precision", hits) * matched / (matched + _EPSILON)


class Scorer(ABC):
    """A metric of one sample at a time, of which it `needs` some fields."""

    name: str
    needs: ClassVar[tuple[str, ...]]

    def init(self, run_config: object = None) -> None:  # noqa: B027
        """Nothing has to be done before a sample is scored."""

    def read(self, sample: Any) -> list[Any]:
        """The fields that are needed, in order."""
        values = [getattr(sample, name) for name in self.needs]
        for name, value in zip(self.needs, values, strict=True):
            if value is None:
                raise DataError(f"{self.name} needs {name}, which the sample lacks")
        return values

    async def result(self, sample: Any) -> MetricResult:
        """The score of a sample and what it rests on."""
        (result,) = await self.results([sample])
        if result.error is not None:
            raise result.error
        return result

    @abstractmethod
    async def results(
        self, samples: Iterable[Any], llm: Model = None, run_config: Any = None
    ) -> list[MetricResult]:
        """One result per sample, in order; a failure is a result with its error."""


@dataclass
class JudgedMetric(Scorer):
    """A metric that asks a model.

    Attributes:
        llm: what `llm_factory` returns, any callable from prompt to reply, the name of
            a model, or a client or session of karat's.
    """

    needs: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "reference")
    # Whether `true` and `"1"` are refused for a verdict.
    strict: ClassVar[bool] = False

    llm: Model | None = None

    @abstractmethod
    def judge(self, *fields: Any) -> Conversation[MetricResult]:
        """What to ask of the model about these fields, and what comes of it."""

    async def results(
        self, samples: Iterable[Any], llm: Model = None, run_config: Any = None
    ) -> list[MetricResult]:
        """One result per sample, in order; a failure is a result with its error."""
        model = llm if self.llm is None else self.llm
        model = usual_model() if model is None else model
        if model is None:
            raise UsageError(
                f"{self.name} needs a model: llm=llm_factory(...) or any callable "
                "from prompt to reply"
            )
        session = session_of(model, run_config)
        rows: list[MetricResult | None] = []
        jobs = []
        for place, sample in enumerate(samples):
            rows.append(None)
            try:
                jobs.append(partial(self._record, rows, place, self.read(sample)))
            except KaratError as error:
                rows[place] = failed(error)
        try:
            await session.arun_jobs(jobs)
        except (CallError, IncompleteError, OfflineMissError) as error:
            # Rows that were done by then keep their scores.
            rows = [row or failed(error) for row in rows]
        return [row for row in rows if row is not None]

    def _record(
        self, rows: list[MetricResult | None], place: int, fields: Sequence[Any]
    ) -> Conversation[None]:
        """Judge a row and keep its result at once, so that no later error loses it."""
        try:
            rows[place] = yield from self.judge(*fields)
        except CallError as error:
            rows[place] = failed(error)
            raise


class ClaimsJudged(JudgedMetric):
    """The share of the claims of the reference answer that the contexts support."""

    def judge(self, *fields: Any) -> Conversation[MetricResult]:
        """Have the reference split and every claim checked; then count."""
        claims = yield from judge_claims(*fields, strict=self.strict)
        supported = [place for place, claim in enumerate(claims) if claim.value]
        value = score_of("recall", hits_of_ids([range(len(claims))], [supported]))
        return _result(value, claims, "claims attributed")


class ContextsJudged(JudgedMetric):
    """Whether the contexts that help to answer stand on top."""

    def judge(self, *fields: Any) -> Conversation[MetricResult]:
        """Have every context checked, one after the other; then count."""
        question, contexts, answer = fields
        verdicts = []
        for text in contexts:
            one = yield from judge_context(question, text, answer, strict=self.strict)
            verdicts.append(one)
        # _context_precision.py takes any verdict but 0 for 1.
        values = [v.value if self.strict else int(v.value != 0) for v in verdicts]
        return _result(_verdict_precision(values), verdicts, "contexts useful")


def _result(value: float, verdicts: list[Verdict], what: str) -> MetricResult:
    positive = sum(verdict.value != 0 for verdict in verdicts)
    head = f"{positive} of {len(verdicts)} {what}"
    return MetricResult(value, "\n".join([head, *map(str, verdicts)]), tuple(verdicts))


def _verdict_precision(values: Sequence[int]) -> float:
    """The averaged precision of contexts of which the judge found some useful."""
    if set(values) <= {0, 1}:
        # Every useful context matches the answer, the only thing there is to find.
        return averaged_precision(hits_of_ids([[1]], [values]))
    # collections/context_precision/metric.py lets any integer weigh: 2 scores 1.99.
    weights = np.array(values, np.float64)
    precision = weights.cumsum() / np.arange(1, len(values) + 1)
    return float(weights @ precision / (weights.sum() + _EPSILON))


def judge_claims(
    question: str, contexts: Sequence[str], answer: str, *, strict: bool
) -> Conversation[list[Verdict]]:
    """The claims of an answer, each with whether the contexts support it."""
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
    read = partial(_read_verdict, flag="verdict", context=context, strict=strict)
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
        value = answer if isinstance(answer, str) else read(answer)
        if not isinstance(value, str):
            return value
        problem = value
        # Each repair adds to the last, so that no two attempts are the same prompt.
        prompt = repair(prompt, problem)
    raise InvalidReply(f"the model's reply cannot be used: {problem}")


def _read_claims(reply: Mapping[str, Any], *, strict: bool) -> list[Verdict] | str:
    entries = reply.get("classifications")
    if not isinstance(entries, list):
        return "it has no list of classifications"
    verdicts = []
    for number, entry in enumerate(entries, 1):
        verdict: Verdict | str = f"it must be an object, got {_kind(entry)}"
        if isinstance(entry, Mapping):
            verdict = _read_verdict(entry, "attributed", strict=strict)
        if isinstance(verdict, str):
            return f"{verdict} (classification {number})"
        verdicts.append(verdict)
    return verdicts


def _read_verdict(
    entry: Mapping[str, Any], flag: str, context: str | None = None, *, strict: bool
) -> Verdict | str:
    """A verdict on a context, or on the claim that the entry itself states."""
    value = entry.get(flag)
    if not strict and isinstance(value, bool | float | str):
        # pydantic, unless strict, reads true, 1.0 and "1" as the integer 1.
        with suppress(ValueError):
            value = int(float(value)) if float(value).is_integer() else value
    if type(value) is not int or (context is None and value not in (0, 1)):
        return f"{flag} must be 0 or 1, got {_kind(value)}"
    for name in ("statement", "reason") if context is None else ("reason",):
        if not isinstance(entry.get(name), str):
            return f"{name} must be text, got {_kind(entry.get(name))}"
        if is_blank(entry[name]) or (name == "statement" and not entry[name].strip()):
            return NOT_FILLED_IN
    statement = entry["statement"] if context is None else context
    return Verdict(statement, entry["reason"], value)


def _kind(value: object) -> str:
    """What a value is; never a text of the model, which would be led on by it."""
    return str(value) if type(value) in (int, float) else type(value).__name__
