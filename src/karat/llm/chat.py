"""A model behind a client that its user brings, such as OpenAI's."""

import asyncio
import inspect
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from karat.data.judgements import Prompt, Reply
from karat.errors import CallError, Refused, Transient, UsageError
from karat.llm.addresses import read_address
from karat.llm.calling import Calls, raised
from karat.llm.completions import error_in, read_reply, read_word, useless
from karat.llm.secrecy import scrub
from karat.llm.sending import check_secrets, sendable
from karat.llm.server_errors import complaint, retry_after

__all__ = ["ChatClient"]

# What is sent along and decides no answer; some of it may hold a key.
_TRANSPORT = {"api_key", "extra_headers", "extra_query", "timeout"}
# Errors of the usual libraries, by name, since none of them need be installed.
_UNREACHED = {"APIConnectionError", "TransportError"}
_UNREADABLE = {"JSONDecodeError", "APIResponseValidationError"}
_ERRORS = 400
# As many connections as HTTP libraries keep, and a few more.
_MOST_CONNECTIONS = 128


class ChatClient:
    """A model behind the `chat.completions.create` of a client that you bring.

    The client may be sync or async. It is sent the model's name, the messages and the
    parameters given here, and nothing else: no temperature, no schema of the reply. An
    async client serves one event loop; once that is closed, another.

    Replies are kept under the client's `base_url`. A client without one cannot be told
    from another of its class: give it a `name`, or its replies are used in this process
    only.

    Args:
        model: the model's name, such as `gpt-4o-mini`.
        client: any object with `chat.completions.create(model=..., messages=...)`.
        parameters: sent along with every prompt.
        name: what a client without an address is known by.

    Attributes:
        endpoint: the client's `base_url`, or else `python:` and its name or class.
        model: the model's name, and what tells a passing client from others.
        parameters: what is sent along with every prompt and decides the answer.
        is_async: whether `create` is to be awaited.
        lasting: whether its replies can be found again by another process.
        label: how labels name it: by the model's name.

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
        create = _create_of(client)
        if wrong := {"messages", "stream"}.intersection(parameters or {}):
            raise UsageError(f"{min(wrong)} is no parameter of a model")
        address = _address_of(client)
        kind = f"{type(client).__module__}.{type(client).__qualname__}"
        self.endpoint = address or f"python:{name or kind}"
        self.lasting = bool(address or name)
        self.label = self._model = model
        passing = f"{model} of this process {uuid.uuid4().hex[:12]}"
        self.model = model if self.lasting else passing
        self._sent = dict(parameters or {})
        kept = {k: v for k, v in self._sent.items() if k not in _TRANSPORT}
        self.parameters: Mapping[str, Any] = json.loads(json.dumps(kept, default=repr))
        self._calls = Calls(create)
        # The methods of OpenAI's clients are wrapped in plain functions.
        wrapped = inspect.iscoroutinefunction(inspect.unwrap(create))
        self.is_async = wrapped or self._calls.is_async
        # A thread cannot be stopped: a second call would run beside the first.
        self.stoppable = self.is_async
        self._key = read_word(getattr(client, "api_key", None))
        check_secrets(self.parameters, self._key)
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"ChatClient({self._model!r}, endpoint={self.endpoint!r})"

    async def complete(self, prompt: Prompt) -> Reply:
        """The model's answer to a prompt."""
        self._settle()
        messages = [
            {"role": "system", "content": sendable(prompt.system)},
            {"role": "user", "content": sendable(prompt.user)},
        ]
        for _ in range(_MOST_CONNECTIONS):
            completion, error = await self._calls(
                model=self._model, messages=messages, **self._sent
            )
            if not _is_left_over(error):
                break
        if error is not None:
            raise self._problem(error, f"{prompt.system}\n{prompt.user}")
        if (refused := error_in(completion)) is not None:
            raise self._complaint(*refused)
        found = read_reply(completion, self.endpoint, self._model, self._key)
        if isinstance(found, Reply):
            return found
        raise found

    def _settle(self) -> None:
        """Refuse a second event loop, where connections of the first would hang."""
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

    def _problem(self, error: Exception, sent: str) -> CallError:
        """What the client's own error means, by its status or by its name."""
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and status >= _ERRORS:
            said = getattr(error, "body", None) or str(error)
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
            wait = retry_after({name.lower(): headers[name] for name in headers})
            return self._complaint(status, said, wait, sent)
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & _UNREACHED:
            return Transient(
                f"cannot reach {self.endpoint}; is the server running, and is the "
                "client's base_url right?",
                detail=self._clean(str(error.__cause__ or error)),
                paid=any("Timeout" in name for name in names),
            )
        if names & _UNREADABLE:
            return useless(self.endpoint, "is not whole JSON")
        return raised(self.endpoint, error, self._clean)

    def _complaint(
        self, status: int, said: object, wait: float | None = None, sent: str = ""
    ) -> CallError:
        where = (self.endpoint, self._model)
        return complaint(status, said, *where, self._clean, wait, sent=sent)

    def _clean(self, text: str) -> str:
        return scrub(text, [self._key])


def _create_of(client: Any) -> Callable[..., Any]:
    try:
        create: Callable[..., Any] = client.chat.completions.create
    except AttributeError:
        raise UsageError(
            "client must have chat.completions.create, as OpenAI's clients have, got "
            f"{type(client).__name__}; a function from prompt to reply needs no client"
        ) from None
    return create


def _address_of(client: Any) -> str | None:
    try:
        return read_address(str(getattr(client, "base_url", "")))[0]
    except UsageError:
        # No address, or one with a secret in it.
        return None


def _is_left_over(error: Exception | None) -> bool:
    """Whether a call met a connection of an event loop that is closed by now."""
    return isinstance(error, RuntimeError) and "loop is closed" in str(error)
