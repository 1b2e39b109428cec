"""Language models: a client of yours, a model's name or any function, with its room."""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from karat.data.judgements import Prompt, Reply, Usage
from karat.dispatch import JOURNAL, Client, Settings
from karat.dispatch.secrecy import scrub
from karat.errors import CallError, Refused, Transient, UsageError
from karat.judging import Bench, Rehearsal
from karat.judging.addresses import read_address
from karat.judging.calling import Calls, raised
from karat.judging.client import Answerer, as_client
from karat.judging.complaints import complaint, retry_after
from karat.judging.completions import read_usage, read_word, without_key

__all__ = ["ChatModel", "Model", "bench_of", "llm_factory"]

Model: TypeAlias = str | Answerer | Client | Bench
"""What `llm_factory` returns, a function, the name of a model, a client of karat."""

# As many as the original's RunConfig has workers.
_AT_ONCE = 16
_A_MONTH = 30 * 24 * 3600.0
# What is sent along and decides no answer; some of it may hold a key.
_TRANSPORT = {"api_key", "extra_headers", "extra_query", "timeout"}
# Errors of the usual libraries, by name, since none of them need be installed.
_UNREACHED = {"APIConnectionError", "TransportError"}
_UNREADABLE = {"JSONDecodeError", "APIResponseValidationError"}
_ERRORS = 400
# As many connections as HTTP libraries keep, and a few more.
_MOST_CONNECTIONS = 128


class ChatModel:
    """A model behind a client's `chat.completions.create`.

    Attributes:
        endpoint: the client's `base_url`, or else `python:` and its class.
        model: the model's name.
        parameters: what is sent along with every prompt and decides the answer.
        is_async: whether `create` is to be awaited.
    """

    def __init__(
        self, model: str, client: Any, parameters: Mapping[str, Any] | None = None
    ) -> None:
        create = _create_of(client)
        if wrong := {"messages", "stream"}.intersection(parameters or {}):
            raise UsageError(f"{min(wrong)} is no parameter of a model")
        self.model = model
        self.endpoint = _endpoint_of(client)
        self._sent = dict(parameters or {})
        kept = {k: v for k, v in self._sent.items() if k not in _TRANSPORT}
        self.parameters: Mapping[str, Any] = json.loads(json.dumps(kept, default=repr))
        self._calls = Calls(create)
        # The methods of OpenAI's clients are wrapped in plain functions.
        wrapped = inspect.iscoroutinefunction(inspect.unwrap(create))
        self.is_async = wrapped or self._calls.is_async
        self._key = read_word(getattr(client, "api_key", None))
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"ChatModel({self.model!r}, endpoint={self.endpoint!r})"

    async def complete(self, prompt: Prompt) -> Reply:
        """The model's answer to a prompt."""
        self._settle()
        messages = [
            {"role": "system", "content": prompt.system},
            {"role": "user", "content": prompt.user},
        ]
        for _ in range(_MOST_CONNECTIONS):
            reply, error = await self._calls(
                model=self.model, messages=messages, **self._sent
            )
            if not _is_left_over(error):
                break
        if error is not None:
            raise self._problem(error)
        return self._read(reply)

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
                "client that is not async",
                always=True,
            )

    def _read(self, completion: Any) -> Reply:
        try:
            choice = completion.choices[0]
            message = choice.message
            text = message.content
        except (AttributeError, LookupError, TypeError):
            raise self._useless("holds no message") from None
        finish = getattr(choice, "finish_reason", None)
        if finish == "length":
            raise Refused(
                "the model's reply was cut off; give it more room: "
                "llm_factory(..., max_tokens=4096)"
            )
        if read_word(getattr(message, "refusal", None)) or finish == "content_filter":
            raise Refused(f"model {self.model!r} declined to answer this prompt")
        if not isinstance(text, str) or not text.strip():
            raise self._useless("is empty")
        return Reply(
            without_key(text, self._key),
            _usage_of(completion),
            read_word(getattr(completion, "id", None)),
            read_word(getattr(completion, "model", None)),
        )

    def _problem(self, error: Exception) -> CallError:
        """What the client's own error means, by its status or by its name."""
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and status >= _ERRORS:
            said = getattr(error, "body", None) or str(error)
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
            wait = retry_after({name.lower(): headers[name] for name in headers})
            return complaint(status, said, self.endpoint, self.model, self._clean, wait)
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & _UNREACHED:
            return Transient(
                f"cannot reach {self.endpoint}; is the server running, and is the "
                "client's base_url right?",
                detail=self._clean(str(error.__cause__ or error)),
                paid=any("Timeout" in name for name in names),
            )
        if names & _UNREADABLE:
            return self._useless("is not whole JSON")
        return raised(self.endpoint, error, self._clean)

    def _useless(self, how: str) -> Transient:
        return Transient(f"the reply of {self.endpoint} {how}", paid=True)

    def _clean(self, text: str) -> str:
        return scrub(text, [self._key])


def llm_factory(
    model: str,
    provider: str = "openai",
    client: Any = None,
    *,
    settings: Settings | None = None,
    **parameters: Any,
) -> Bench:
    """A model for `ContextRecall(llm=...)` from a client that you bring.

    Replies of a client with a `base_url` are kept in `.karat/journal.sqlite`, so that a
    run that was stopped goes on from there. Any other client is known by its class
    alone; its replies are kept only if the settings name a journal.

    Args:
        model: the model's name, such as `gpt-4o-mini`.
        provider: taken for the sake of old calls; what counts is the client.
        client: any object with `chat.completions.create(model=..., messages=...)`.
        settings: how many calls at once, how long, for how much in all, and where
            replies are kept; unless given, 16 calls at once, or one of a client that
            is not async.
        parameters: sent along with every prompt; nothing is sent that is not named
            here.
    """
    del provider
    chat = ChatModel(model, client, parameters)
    return Bench(
        chat,
        settings
        or _usual(is_async=chat.is_async, kept=not chat.endpoint.startswith("python:")),
    )


def bench_of(llm: Model) -> Bench:
    """A model, however it is given, and how it is asked."""
    if isinstance(llm, Rehearsal):
        raise UsageError("a rehearsal asks nobody, and here a model is asked")
    if isinstance(llm, Bench):
        return llm
    client = as_client(llm)
    if isinstance(llm, str | Client):
        return Bench(client, _usual(is_async=True, kept=True))
    # Nobody can tell whether a function still answers as it did the last time.
    return Bench(client, _usual(is_async=Calls(llm).is_async, kept=False))


def _usual(*, is_async: bool, kept: bool) -> Settings:
    journal = JOURNAL if kept else None
    if is_async:
        return Settings(concurrency=_AT_ONCE, journal=journal)
    # What is not async may not bear several calls at once, and cannot be given up.
    return Settings(concurrency=1, timeout=_A_MONTH, journal=journal)


def _create_of(client: Any) -> Callable[..., Any]:
    try:
        create: Callable[..., Any] = client.chat.completions.create
    except AttributeError:
        raise UsageError(
            "client must have chat.completions.create, as OpenAI's clients have, got "
            f"{type(client).__name__}; any callable from prompt to reply is an llm too"
        ) from None
    return create


def _endpoint_of(client: Any) -> str:
    kind = type(client)
    try:
        return read_address(str(getattr(client, "base_url", "")))[0]
    except UsageError:
        # No address, or one with a secret in it.
        return f"python:{kind.__module__}.{kind.__qualname__}"


def _is_left_over(error: Exception | None) -> bool:
    """Whether a call met a connection of an event loop that is closed by now."""
    return isinstance(error, RuntimeError) and "loop is closed" in str(error)


def _usage_of(completion: Any) -> Usage:
    counts = getattr(completion, "usage", None)
    names = ("prompt_tokens", "completion_tokens")
    return read_usage({name: getattr(counts, name, None) for name in names})
