"""What the judge is asked, and what is made of its replies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any, TypeVar

from karat.data.judgements import Conversation, Prompt
from karat.errors import InvalidReply
from karat.judging.prompts import DATA, JSON, fenced, object_schema, repair
from karat.judging.replies import NOT_FILLED_IN, is_blank, read_object

__all__ = ["Verdict", "judge_claims", "judge_context"]

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
    f"List every claim of the answer once, in order. {DATA} {JSON} "
    'Its form: {"classifications": [{"statement": "...", "reason": "...", '
    '"attributed": 0}]}, with the claim as the statement and one sentence as the reason'
)

_USEFUL = (
    "You check whether a document helps to answer a question. The answer is known. "
    "Decide whether the document holds anything that is needed to get to it: verdict "
    "is 1 if it does and 0 if it does not. To be about the same subject is not enough. "
    f'{DATA} {JSON} Its form: {{"reason": "...", "verdict": 0}}, with one sentence as '
    "the reason"
)

_TEXT = {"type": "string"}
_FLAG = {"type": "integer", "enum": [0, 1]}
_CLAIM = object_schema(statement=_TEXT, reason=_TEXT, attributed=_FLAG)
_CLASSIFIED = object_schema(classifications={"type": "array", "items": _CLAIM})
_JUDGED = object_schema(reason=_TEXT, verdict=_FLAG)


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
        said = read_object(reply.text, shown)
        found = said if isinstance(said, str) else read(said)
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
    # pydantic, unless told to be strict, reads true, 1.0 and "1" as the integer 1.
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
