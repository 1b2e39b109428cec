"""Chat completions: reading them as replies, and clients that users bring.

Clients that users bring return completions as objects, servers send them as JSON, and
in many ways; the rules for what counts as a reply are the same.
"""

import asyncio
import inspect
import json
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from karat.data.judgements import Prompt, Reply, Usage
from karat.errors import CallError, Refused, Transient, UsageError
from karat.llm.callables import CallQueue, call_outside, is_async, to_call_error
from karat.llm.credentials import check_secrets, mask, redact, replace_surrogates
from karat.llm.http import (
    ADDRESS,
    MAX_DETAIL,
    ServerError,
    cut_off,
    read_address,
    retry_after,
)
from karat.llm.limits import tokens_of

# Where servers put an answer if they take it for a thought: then it is all there is.
_THOUGHTS = ("reasoning_content", "reasoning")
_WHOLE_ANSWER = re.compile(r"\s*(?:```\w*\s*)?\{.*\}\s*(?:```\s*)?", re.DOTALL)
_IS_THOUGHT = re.compile("think|thought|reason", re.IGNORECASE)
# How servers say that a reply reached the longest length allowed.
_CUT = {"length", "max_tokens", "max_length", "max_output_tokens", "model_length"}
# More characters for each token than any model's tokenizer has on average.
_CHARACTERS_PER_TOKEN = 7
# A server that reports fewer tokens does not count the prompt.
_SMALLEST_CONTEXT = 512
# Sent along, but not part of what decides the answer; some may hold a key.
_TRANSPORT = {"api_key", "extra_headers", "extra_query", "timeout"}
# Errors of the usual libraries, by name, since they need not be installed.
_UNREACHABLE = {"APIConnectionError", "TransportError"}
_UNREADABLE = {"JSONDecodeError", "APIResponseValidationError"}
_ERRORS = 400
_NOTHING = Usage()
# As many connections as HTTP libraries keep, and a few more.
_MOST_CONNECTIONS = 128


class ChatModel(ABC):
    """What clients of chat completions share: how replies and errors are read."""

    endpoint: str
    label: str
    _source = ADDRESS
    _has_answered = False

    @abstractmethod
    def _secrets(self) -> list[str]:
        """What is sent with every prompt and must never be shown."""

    def _redact(self, text: str) -> str:
        return redact(text, self._secrets())

    def _read(self, completion: object) -> Reply | ServerError | CallError:
        # Some servers send an error in place of a reply.
        error = None if _field(completion, "choices") else _field(completion, "error")
        status = _field(error, "code")
        if isinstance(status, str) and status.isdecimal():
            status = int(status)
        if isinstance(status, int):
            message = {"message": _field(error, "message")}
            body = error if isinstance(error, Mapping) else message
            return ServerError(status, body, tokens=_tokens(completion))
        # Only secrets that were sent are masked: a reply must not depend on the rest
        # of the environment.
        return read_reply(completion, self.endpoint, self.label, self._secrets())

    def _finish(
        self, result: Reply | ServerError | CallError, billed: Usage = _NOTHING
    ) -> Reply:
        """The reply, or else its error; what was billed before is added to either."""
        if isinstance(result, ServerError):
            result = result.explain(
                self.endpoint,
                self.label,
                self._redact,
                self._source,
                answered=self._has_answered,
            )
        if isinstance(result, CallError):
            if billed != _NOTHING:
                billed += billed_for(result)
                result.tokens = (billed.prompt_tokens, billed.completion_tokens)
            raise result
        self._has_answered = True
        return replace(result, usage=result.usage + billed)


class ChatClient(ChatModel):
    """A model behind the `chat.completions.create` of a client that you bring.

    The client may be sync or async. It is sent the model's name, the messages and the
    parameters given here, and nothing else: no temperature, no schema of the reply. An
    async client serves one event loop; once that is closed, another.

    Replies are kept under the client's `base_url`. A client without one looks like any
    other of its class: give it a `name`, or its replies are used in this process only.

    Args:
        model: the model's name, such as `gpt-4o-mini`.
        client: any object with `chat.completions.create(model=..., messages=...)`.
        parameters: sent along with every prompt.
        name: identifies a client without an address.

    Attributes:
        endpoint: the client's `base_url`, or else `python:` and its name or class.
        model: the model's name; unique to this object if it is not persistent.
        parameters: what is sent along with every prompt and decides the answer.
        is_async: whether `create` is to be awaited.
        persistent: whether another process can use its replies.
        label: its name in labels: the model's name.

    Example:
        >>> class Local:
        ...     base_url = "http://127.0.0.1:8080/v1/"
        ...     def __init__(self): self.chat = self.completions = self
        ...     def create(self, model, messages):
        ...         return {"choices": [{"message": {"content": "yes"}}]}
        >>> ChatClient("tiny", client=Local())
        ChatClient('tiny', endpoint='http://127.0.0.1:8080/v1')
    """

    def __init__(
        self,
        model: str,
        client: Any,
        parameters: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        try:
            create = client.chat.completions.create
        except AttributeError:
            raise UsageError(
                "client must have chat.completions.create, as OpenAI's clients have, "
                f"got {type(client).__name__}; a function from prompt to reply needs "
                "no client"
            ) from None
        if reserved := {"messages", "stream"}.intersection(parameters or {}):
            raise UsageError(f"{min(reserved)} is not a parameter of a model")
        try:
            address = read_address(str(getattr(client, "base_url", "")))[0]
        except UsageError:
            # No address, or one with a secret in it.
            address = ""
        kind = f"{type(client).__module__}.{type(client).__qualname__}"
        self.endpoint = address or f"python:{name or kind}"
        self.persistent = bool(address or name)
        self.label = model
        temporary = f"{model} of this process {uuid.uuid4().hex[:12]}"
        self.model = model if self.persistent else temporary
        sent = dict(parameters or {})
        deciding = {k: v for k, v in sent.items() if k not in _TRANSPORT}
        self.parameters: Mapping[str, Any] = json.loads(
            json.dumps(deciding, default=repr)
        )
        # The methods of OpenAI's clients are wrapped in plain functions.
        self.is_async = is_async(inspect.unwrap(create)) or is_async(create)
        self._create = partial(create, model=model, **sent)
        self._calls = None if self.is_async else CallQueue()
        # A thread cannot be stopped: a second call would run beside the first.
        self.stoppable = self.is_async
        key = getattr(client, "api_key", None)
        self._key = key if isinstance(key, str) else ""
        check_secrets(self.parameters, self._key)
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"ChatClient({self.label!r}, endpoint={self.endpoint!r})"

    async def complete(self, prompt: Prompt) -> Reply:
        """The model's answer to a prompt."""
        self._check_loop()
        messages = chat_messages(system=prompt.system, user=prompt.user)
        for _ in range(_MOST_CONNECTIONS):
            call = partial(self._create, messages=messages)
            completion, error, _ = await call_outside(self.endpoint, call, self._calls)
            # A connection of an event loop that is closed by now is not used again.
            if type(error) is not RuntimeError or "is closed" not in str(error):
                break
        if error is None:
            return self._finish(self._read(completion))
        return self._finish(self._explain(error))

    def _check_loop(self) -> None:
        """Refuse a second event loop: connections of the first would hang there."""
        if not self.is_async:
            return
        loop = asyncio.get_running_loop()
        if self._loop is None or self._loop.is_closed():
            self._loop = loop
        elif self._loop is not loop:
            raise Refused(
                "an async client serves one event loop, and this one is used in "
                "another; await here too, as in `await metric.ascore(...)`, or give a "
                "client of its own, or one that is not async: `karat.evaluate` and "
                "`karat.aevaluate` have a loop of their own",
                always=True,
            )

    def _explain(self, error: Exception) -> ServerError | CallError:
        """What the client raised, by its status or its name."""
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and status >= _ERRORS:
            body = getattr(error, "body", None) or str(error)
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
            wait = retry_after({name.lower(): headers[name] for name in headers})
            return ServerError(status, body, wait)
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & _UNREACHABLE:
            return Transient(
                f"cannot reach {self.endpoint}; is the server running, and is the "
                "client's base_url right?",
                detail=self._redact(str(error.__cause__ or error)),
                paid=any("Timeout" in name for name in names),
            )
        if names & _UNREADABLE:
            return unusable_reply(self.endpoint, "is not complete JSON")
        return to_call_error(self.endpoint, error, self._redact)

    def _secrets(self) -> list[str]:
        return [self._key] if self._key else []


def chat_messages(**texts: str) -> list[dict[str, str]]:
    """Texts by role, as they are sent."""
    return [
        {"role": role, "content": replace_surrogates(text)}
        for role, text in texts.items()
    ]


def read_reply(
    completion: object, endpoint: str, model: str, secrets: Sequence[str]
) -> Reply | CallError:
    """The reply in a completion, or why there is none.

    A reply that was cut off is marked as such, unless it is empty: then the model
    spent all its tokens on thinking, and would do so again.
    """
    choice = _first(_field(completion, "choices"))
    message, end = _field(choice, "message"), _field(choice, "finish_reason")
    ends = (end, _field(choice, "stop_reason"), _field(choice, "native_finish_reason"))
    cut = any(str(reason).lower() in _CUT for reason in ends)
    tokens = _tokens(completion)
    sent, received = tokens or (0, 0)
    if message is None or end == "error":
        error = _text(_field(_field(completion, "error"), "message"))
        detail = mask(error, secrets)[:MAX_DETAIL] or None
        return unusable_reply(endpoint, "holds no message", tokens, detail)
    refusal = _text(_field(message, "refusal"))
    if refusal or end == "content_filter":
        reason = f"model {model!r} declined to answer this prompt"
        words = " ".join(mask(refusal, secrets).split())[:MAX_DETAIL]
        return Refused(reason, detail=words or None, tokens=tokens)
    text = _text(_field(message, "content"))
    if not text.strip():
        thoughts = () if cut else (_text(_field(message, name)) for name in _THOUGHTS)
        text = next(filter(_WHOLE_ANSWER.fullmatch, thoughts), "")
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
    """The error where a server, as Ollama, counts far fewer tokens than were sent."""
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
    """The completion in server-sent events, or None if there is no whole one."""
    if not content.lstrip().startswith((b"data:", b"event:", b":")):
        return None
    completion: dict[str, Any] = {}
    message: dict[str, str] = {}
    end, is_whole = None, False
    for line in content.splitlines():
        name, _, data = line.partition(b":")
        is_whole |= data.strip() == b"[DONE]"
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
    if not is_whole and end is None and "error" not in completion:
        return None
    is_reply = message and "error" not in completion
    choices = [{"message": message, "finish_reason": end}] if is_reply else []
    return {**completion, "choices": choices}


def unusable_reply(
    endpoint: str,
    how: str,
    tokens: tuple[int, int] | None = None,
    detail: str | None = None,
) -> Transient:
    """The error for a reply that was billed but cannot be used; another may do."""
    reason = f"the reply of {endpoint} {how}"
    return Transient(reason, detail=detail, paid=True, alive=True, tokens=tokens)


def billed_for(result: Reply | ServerError | CallError) -> Usage:
    """What a server says that a call has cost."""
    if isinstance(result, Reply):
        return result.usage
    return Usage(*result.tokens or (0, 0))


def _tokens(completion: object) -> tuple[int, int] | None:
    """Tokens sent and received, if the server counts them."""
    usage = _field(completion, "usage")
    counts = (_field(usage, "prompt_tokens"), _field(usage, "completion_tokens"))
    sent, received = (n if isinstance(n, int) and n > 0 else 0 for n in counts)
    return (sent, received) if sent or received else None


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
    """The text of a message, which some servers send in parts; thoughts are none."""
    if isinstance(content, list):
        parts = [p for p in content if not _IS_THOUGHT.search(str(_field(p, "type")))]
        return "".join(_text(_field(part, "text")) for part in parts)
    return content if isinstance(content, str) else ""
