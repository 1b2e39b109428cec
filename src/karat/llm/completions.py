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
from karat.llm.redaction import mask, redact
from karat.llm.server_errors import ADDRESS, MAX_DETAIL, ServerError, cut_off

__all__ = ["ChatModel", "read_reply", "read_stream", "shortened", "unusable_reply"]

# Where servers put an answer if they take it for a thought.
_THOUGHTS = ("reasoning_content", "reasoning")
# More characters for each token than any model's tokenizer has on average.
_CHARACTERS_PER_TOKEN = 7
# A server that reports fewer tokens does not count the prompt.
_SMALLEST_CONTEXT = 512


class ChatModel:
    """What clients of chat completions share: how replies and errors are read.

    Attributes:
        endpoint: where it is asked.
        label: the model's name there.
    """

    endpoint: str
    label: str
    _source = ADDRESS
    _has_answered = False

    def _secrets(self) -> list[str]:
        """What is sent with every prompt and must never be shown."""
        raise NotImplementedError

    def _redact(self, text: str) -> str:
        return redact(text, self._secrets())

    def _read(self, completion: object, sent: str) -> Reply | ServerError | CallError:
        # Some servers send an error in place of a reply.
        error = None if _field(completion, "choices") else _field(completion, "error")
        if isinstance(status := _field(error, "code"), int):
            said = {"message": _field(error, "message")}
            return ServerError(
                status, error if isinstance(error, Mapping) else said, sent
            )
        # Only secrets that were sent are masked: a reply must not depend on the rest
        # of the environment.
        return read_reply(completion, self.endpoint, self.label, self._secrets())

    def _finish(self, result: Reply | ServerError | CallError) -> Reply:
        if isinstance(result, ServerError):
            names = (self.endpoint, self.label, self._redact, self._source)
            result = result.explain(*names, answered=self._has_answered)
        if isinstance(result, CallError):
            raise result
        self._has_answered = True
        return result


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
    cut = end == "length"
    usage = _field(completion, "usage")
    counts = (_field(usage, "prompt_tokens"), _field(usage, "completion_tokens"))
    sent, received = (n if isinstance(n, int) and n > 0 else 0 for n in counts)
    tokens = (sent, received) if sent or received else None
    if message is None:
        return unusable_reply(endpoint, "holds no message", tokens)
    refusal = _text(_field(message, "refusal"))
    if refusal or end == "content_filter":
        reason = f"model {model!r} declined to answer this prompt"
        words = " ".join(mask(refusal, secrets).split())[:MAX_DETAIL]
        return Refused(reason, detail=words or None, tokens=tokens)
    fields = ("content",) if cut else ("content", *_THOUGHTS)
    texts = (_text(_field(message, field)) for field in fields)
    text = next((text for text in texts if text.strip()), "")
    if not text and cut:
        reason = cut_off(received, " before it said anything")
        return Refused(reason, cut=True, tokens=tokens)
    if not text:
        return unusable_reply(endpoint, "is empty", tokens)
    names = (_field(completion, "id"), _field(completion, "model"))
    id, model_name = (
        mask(replace_surrogates(name), secrets) if isinstance(name, str) else None
        for name in names
    )
    return Reply(mask(text, secrets), Usage(sent, received), id, model_name, cut=cut)


def shortened(reply: Reply, sent: str, endpoint: str) -> Refused | None:
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
    end = None
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
        end = _field(part, "finish_reason") or end
        for field in ("content", "refusal", *_THOUGHTS):
            if isinstance(piece := _field(_field(part, "delta"), field), str) and piece:
                message[field] = message.get(field, "") + piece
    choices = [{"message": message, "finish_reason": end}] if message else []
    return {**completion, "choices": choices}


def unusable_reply(
    endpoint: str, how: str, tokens: tuple[int, int] | None = None
) -> Transient:
    """The error for a reply that was billed but cannot be used; another may do."""
    reason = f"the reply of {endpoint} {how}"
    return Transient(reason, paid=True, alive=True, tokens=tokens)


def _field(value: object, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None)


def _first(choices: Any) -> object:
    try:
        return choices[0]
    except (LookupError, TypeError):
        return None


def _text(content: object) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(_text(_field(part, "text")) for part in content)
    return content if isinstance(content, str) else ""
