"""Language models: any callable from a prompt to a reply, and clients made into one."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from karat.errors import FormatError, UsageError

__all__ = ["ChatModel", "Judgement", "Model", "drive", "llm_factory", "run_now"]

T = TypeVar("T")

Model: TypeAlias = Callable[[str], str | Awaitable[str]]
"""From a prompt to the text of the reply, at once or later."""

Judgement: TypeAlias = Generator[str, str, T]
"""Yields prompts, is sent the replies, and returns what comes of them."""


@dataclass(frozen=True)
class ChatModel:
    """A model behind a client's `chat.completions.create`.

    Attributes:
        model: its name.
        create: the client's method, sync or async.
        settings: sent along with every request, such as `temperature`.
    """

    model: str
    create: Callable[..., Any]
    settings: Mapping[str, Any]

    def __call__(self, prompt: str) -> str | Awaitable[str]:
        """The reply to a prompt."""
        messages = [{"role": "user", "content": prompt}]
        reply = self.create(model=self.model, messages=messages, **self.settings)
        return _later(reply) if inspect.isawaitable(reply) else _text(reply)


def llm_factory(
    model: str, provider: str = "openai", client: Any = None, **settings: Any
) -> ChatModel:
    """A model for `ContextRecall(llm=...)` from a client that you bring.

    Args:
        model: the model's name, such as `gpt-4o-mini`.
        provider: taken for the sake of old calls; what counts is the client.
        client: any object with `chat.completions.create(model=..., messages=...)`.
        settings: sent along with every request; nothing is sent that is not named here.
    """
    del provider
    try:
        create = client.chat.completions.create
    except AttributeError:
        raise UsageError(
            "client must have chat.completions.create, as OpenAI's clients have, got "
            f"{type(client).__name__}; any callable from prompt to reply is an llm too"
        ) from None
    return ChatModel(model, create, settings)


async def drive(judgement: Judgement[T], llm: Model) -> T:
    """Put a judgement's prompts to the model until it is settled."""
    reply: Any = None
    while True:
        try:
            prompt = judgement.send(reply)
        except StopIteration as settled:
            result: T = settled.value
            return result
        reply = await _ask(llm, prompt)


def is_async(llm: Model) -> bool:
    """Whether a model is a coroutine function, or an object that is called as one."""
    call = llm.create if isinstance(llm, ChatModel) else llm
    # The methods of OpenAI's clients are wrapped in plain functions.
    calls = (inspect.unwrap(call), getattr(call, "__call__", None))  # noqa: B004
    return any(map(inspect.iscoroutinefunction, calls))


def run_now(
    task: Callable[[], Coroutine[Any, Any, T]], *, called: str, instead: str
) -> T:
    """Run a coroutine from plain code; where a loop runs already, say what to await."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(task())
    raise UsageError(
        f"{called}() cannot wait inside a running event loop, as in a notebook; "
        f"write: await {instead}(...)"
    )


async def _ask(llm: Model, prompt: str) -> str:
    # A plain function runs in a thread, so that waiting for it holds up nothing else.
    now = is_async(llm)
    reply: Any = llm(prompt) if now else await asyncio.to_thread(_call, llm, prompt)
    text = await reply if inspect.isawaitable(reply) else reply
    if not isinstance(text, str):
        raise FormatError(f"the model must reply with text, got {type(text).__name__}")
    return text


def _call(llm: Model, prompt: str) -> str | Awaitable[str]:
    try:
        return llm(prompt)
    except StopIteration as end:
        # Python 3.11 would wait for ever for a thread that ends this way.
        raise UsageError("the model has no more replies") from end


async def _later(reply: Awaitable[Any]) -> str:
    return _text(await reply)


def _text(reply: Any) -> str:
    choice = reply.choices[0]
    if getattr(choice, "finish_reason", None) == "length":
        raise FormatError(
            "the model's reply was cut off",
            hint="give it more room: llm_factory(..., max_tokens=4096)",
        )
    text = choice.message.content
    if not isinstance(text, str):
        raise FormatError("the model replied with no text")
    return text
