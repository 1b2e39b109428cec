"""Reading chat completions as replies, in every way that servers write them.

Clients that users bring return them as objects, servers send them as JSON; the rules
for what counts as a reply are the same.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from karat.data.judgements import Reply, Usage
from karat.errors import CallError, Refused, Transient
from karat.llm.credentials import replace_surrogates
from karat.llm.limits import tokens_of
from karat.llm.redaction import mask
from karat.llm.server_errors import MAX_DETAIL, cut_off

__all__ = [
    "embedded_error",
    "read_reply",
    "read_stream",
    "shortened_prompt",
    "text_or_none",
    "unusable_reply",
]

# Where servers put an answer if they take it for a thought.
_THOUGHTS = ("reasoning_content", "reasoning")
# More characters for each token than any model's tokenizer has on average.
_CHARACTERS_PER_TOKEN = 7
# A server that reports fewer tokens does not count the prompt.
_SMALLEST_CONTEXT = 512


def read_reply(
    completion: object, endpoint: str, model: str, secrets: Sequence[str]
) -> Reply | CallError:
    """The reply in a completion, or why there is none.

    A reply that was cut off is marked as such, unless it is empty: then the model
    spent all its tokens on thinking, and would do so again.

    Args:
        completion: an object with attributes, or parsed JSON.
        endpoint: where it comes from.
        model: the name of the model there.
        secrets: masked in text and names, should the server quote them.

    Example:
        >>> choice = {"message": {"content": "yes"}, "finish_reason": "length"}
        >>> reply = read_reply({"choices": [choice]}, "http://a/v1", "tiny", [])
        >>> reply.text, reply.cut
        ('yes', True)
    """
    choice = _first(_field(completion, "choices"))
    message, end = _field(choice, "message"), _field(choice, "finish_reason")
    usage = _read_usage(_field(completion, "usage"))
    counts = (usage.prompt_tokens, usage.completion_tokens)
    tokens = counts if any(counts) else None
    if message is None:
        return unusable_reply(endpoint, "holds no message", tokens)
    refusal = text_or_none(_field(message, "refusal"))
    if refusal or end == "content_filter":
        reason = f"model {model!r} declined to answer this prompt"
        words = " ".join(mask(refusal or "", secrets).split())[:MAX_DETAIL]
        return Refused(reason, detail=words or None, tokens=tokens)
    text = _read_text(_field(message, "content"))
    if end != "length" and not text.strip():
        thoughts = (_read_text(_field(message, name)) for name in _THOUGHTS)
        text = next((thought for thought in thoughts if thought.strip()), "")
    if not text.strip():
        if end == "length":
            reason = cut_off(usage.completion_tokens, " before it said anything")
            return Refused(reason, cut=True, tokens=tokens)
        return unusable_reply(endpoint, "is empty", tokens)
    return Reply(
        mask(text, secrets),
        usage,
        _masked_name(secrets, _field(completion, "id")),
        _masked_name(secrets, _field(completion, "model")),
        cut=end == "length",
    )


def shortened_prompt(reply: Reply, sent: str, endpoint: str) -> Refused | None:
    """The error for a reply to a prompt that the server has cut, as Ollama does.

    It is noticed where the server counts far fewer tokens than were sent.
    """
    read = reply.usage.prompt_tokens
    limit = read * _CHARACTERS_PER_TOKEN
    if read < _SMALLEST_CONTEXT or len(sent) <= limit:
        return None
    if len(" ".join(sent.split())) <= limit:
        return None
    return Refused(
        f"{endpoint} read {read:,} tokens of a prompt of about {tokens_of(sent):,}; "
        "raise the length of its context (num_ctx for Ollama), and ask again with "
        "--retry-errors",
        tokens=(read, reply.usage.completion_tokens),
    )


def read_stream(content: bytes) -> dict[str, Any] | None:
    r"""The completion in server-sent events, or None if there are none.

    Example:
        >>> piece = b'data: {"choices": [{"delta": {"content": "yes"}}]}'
        >>> read_stream(piece + b"\n\ndata: [DONE]")["choices"][0]["message"]
        {'content': 'yes'}
    """
    if not content.lstrip().startswith((b"data:", b"event:", b":")):
        return None
    completion: dict[str, Any] = {}
    message: dict[str, str] = {}
    choice = {"message": message, "finish_reason": None}
    for line in content.splitlines():
        name, _, data = line.partition(b":")
        if name != b"data" or data.strip() == b"[DONE]":
            continue
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            return None
        for field in ("id", "model", "usage", "error"):
            if _field(chunk, field) is not None:
                completion[field] = chunk[field]
        part = _first(_field(chunk, "choices"))
        choice["finish_reason"] = (
            _field(part, "finish_reason") or choice["finish_reason"]
        )
        for field in ("content", "refusal", *_THOUGHTS):
            piece = text_or_none(_field(_field(part, "delta"), field))
            if piece:
                message[field] = message.get(field, "") + piece
    return {**completion, "choices": [choice] if message else []}


def embedded_error(completion: object) -> tuple[int, Mapping[str, Any]] | None:
    """The status and body of an error that some servers send in place of a reply."""
    error = None if _field(completion, "choices") else _field(completion, "error")
    status = _field(error, "code")
    if not isinstance(status, int):
        return None
    if isinstance(error, Mapping):
        return status, error
    return status, {"message": _field(error, "message")}


def unusable_reply(
    endpoint: str, how: str, tokens: tuple[int, int] | None = None
) -> Transient:
    """The error for a reply that was billed but cannot be used; another may do."""
    reason = f"the reply of {endpoint} {how}"
    return Transient(reason, paid=True, alive=True, tokens=tokens)


def text_or_none(value: object) -> str | None:
    """The text of a field, if it holds one."""
    return value if isinstance(value, str) else None


def _field(value: object, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None)


def _first(choices: Any) -> object:
    try:
        return choices[0]
    except (LookupError, TypeError):
        return None


def _read_text(content: object) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(text_or_none(_field(part, "text")) or "" for part in content)
    return text_or_none(content) or ""


def _read_usage(counts: object) -> Usage:
    """The tokens paid for, as far as the server counts them."""
    numbers = (_field(counts, "prompt_tokens"), _field(counts, "completion_tokens"))
    return Usage(*(n if isinstance(n, int) and n > 0 else 0 for n in numbers))


def _masked_name(secrets: Sequence[str], value: object) -> str | None:
    name = text_or_none(value)
    return None if name is None else mask(replace_surrogates(name), secrets)
