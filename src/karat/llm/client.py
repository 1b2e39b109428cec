"""Whoever answers prompts, however it is given: a model's name, a function."""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from karat.data.judgements import Prompt, Reply
from karat.errors import Refused, UsageError
from karat.llm.calling import Calls, raised
from karat.llm.endpoint import OpenAIClient
from karat.llm.naming import digest_of
from karat.llm.protocol import Client
from karat.llm.sending import check_parameters

__all__ = ["Answerer", "FunctionClient", "OpenAIClient", "as_client"]

Answerer: TypeAlias = Callable[[str], str | Awaitable[str]]


def as_client(answerer: "str | Answerer | Client") -> Client:
    """A client: as it is, by the name of a model, or around a function."""
    if isinstance(answerer, str):
        return OpenAIClient(answerer)
    if isinstance(answerer, Client):
        return answerer
    if hasattr(answerer, "chat"):
        raise UsageError(
            f"an {type(answerer).__name__} does not say which model answers: give the "
            "model's name alone, or karat.judging.ChatClient(NAME, client=client)"
        )
    if callable(answerer):
        return FunctionClient(answerer)
    raise UsageError(
        "a judge is the name of a model, a client, or a function from prompt to reply; "
        f"got {type(answerer).__name__}"
    )


class FunctionClient:
    """A function, plain or async, that answers prompts.

    It is given the instruction and the question as one text. An `OSError` or
    `TimeoutError` it raises is tried again; any other error fails the row.

    Replies are kept under the function's name and a digest of its code and the plain
    values it reads, so that an edited function is asked anew. One that hangs on what
    cannot be seen from outside, such as a client object or a value of its surroundings,
    cannot be told from another: give it a `model` name, or its replies are used in this
    process only.

    Attributes:
        endpoint: `python:` and the function's name.
        model: what its replies are kept under.
        parameters: anything else that decides the answers.
        is_async: whether the function is to be awaited.
        lasting: whether its replies can be found again by another process.
        label: how labels name it: as told, else by the function's name.

    Example:
        >>> def yes(prompt): return "yes"
        >>> FunctionClient(yes, model="always-yes").model
        'always-yes'
    """

    def __init__(
        self,
        function: Answerer,
        model: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        check_parameters(parameters or {})
        self._calls = Calls(function)
        self.is_async = self._calls.is_async
        # A thread cannot be stopped: a second call would run beside the first.
        self.stoppable = self.is_async
        name = getattr(function, "__qualname__", type(function).__qualname__)
        module = getattr(function, "__module__", None) or type(function).__module__
        self.endpoint = f"python:{module}.{name}"
        digest = digest_of(function) if model is None else None
        self.lasting = model is not None or digest is not None
        passing = f"this process {uuid.uuid4().hex[:12]}"
        self.model = model or (f"code {digest[:12]}" if digest else passing)
        self.label = model or self.endpoint
        self.parameters: Mapping[str, Any] = dict(parameters or {})

    def __repr__(self) -> str:
        return f"FunctionClient({self.endpoint!r}, model={self.model!r})"

    async def complete(self, prompt: Prompt) -> Reply:
        """What the function answers."""
        text, error = await self._calls(f"{prompt.system}\n\n{prompt.user}")
        if error is not None:
            raise raised(self.endpoint, error)
        if not isinstance(text, str):
            raise Refused(
                f"{self.endpoint} must return a text, got {type(text).__name__}",
                always=True,
            )
        return Reply(text)
