"""A model behind a client that its user brings, such as OpenAI's."""

import asyncio
import inspect
import json
import uuid
from collections.abc import Mapping
from typing import Any

from karat.data.judgements import Prompt, Reply
from karat.errors import CallError, Refused, Transient, UsageError
from karat.llm.callables import ThreadedFunction, to_call_error
from karat.llm.completions import ChatModel, unusable_reply
from karat.llm.credentials import check_secrets, replace_surrogates
from karat.llm.http import read_address
from karat.llm.server_errors import ServerError, retry_after

__all__ = ["ChatClient"]

# Sent along, but not part of what decides the answer; some may hold a key.
_TRANSPORT = {"api_key", "extra_headers", "extra_query", "timeout"}
# Errors of the usual libraries, by name, since they need not be installed.
_UNREACHABLE = {"APIConnectionError", "TransportError"}
_UNREADABLE = {"JSONDecodeError", "APIResponseValidationError"}
_ERRORS = 400
# As many connections as HTTP libraries keep, and a few more.
_MOST_CONNECTIONS = 128


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
        self._sent = dict(parameters or {})
        kept = {k: v for k, v in self._sent.items() if k not in _TRANSPORT}
        self.parameters: Mapping[str, Any] = json.loads(json.dumps(kept, default=repr))
        self._call = ThreadedFunction(create)
        # The methods of OpenAI's clients are wrapped in plain functions.
        wrapped = inspect.iscoroutinefunction(inspect.unwrap(create))
        self.is_async = wrapped or self._call.is_async
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
        texts = {"system": prompt.system, "user": prompt.user}
        messages = [
            {"role": role, "content": replace_surrogates(text)}
            for role, text in texts.items()
        ]
        for _ in range(_MOST_CONNECTIONS):
            completion, error = await self._call(
                model=self.label, messages=messages, **self._sent
            )
            # A connection of an event loop that is closed by now is not used again.
            if not isinstance(error, RuntimeError) or "loop is closed" not in str(
                error
            ):
                break
        sent = f"{prompt.system}\n{prompt.user}"
        if error is None:
            return self._finish(self._read(completion, sent))
        return self._finish(self._explain(error, sent))

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

    def _explain(self, error: Exception, sent: str) -> ServerError | CallError:
        """What the client raised, by its status or its name."""
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and status >= _ERRORS:
            body = getattr(error, "body", None) or str(error)
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
            wait = retry_after({name.lower(): headers[name] for name in headers})
            return ServerError(status, body, sent, wait)
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
