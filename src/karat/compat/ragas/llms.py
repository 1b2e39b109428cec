"""Language models: a client of yours, a model's name or any function, with its room."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from karat.extend import (
    JOURNAL,
    ChatClient,
    Client,
    DryRun,
    JudgeSession,
    Settings,
    UsageError,
)

__all__ = ["Model", "llm_factory", "session_of"]

Model: TypeAlias = str | Callable[[str], str | Awaitable[str]] | Client | JudgeSession
"""What `llm_factory` returns, a function, the name of a model, a client of karat."""

# As many as the original's RunConfig has workers.
_AT_ONCE = 16


def llm_factory(
    model: str,
    provider: str = "openai",
    client: Any = None,
    *,
    settings: Settings | None = None,
    **parameters: Any,
) -> JudgeSession:
    """A model for `ContextRecall(llm=...)` from a client that you bring.

    Replies of a client with a `base_url` are kept in `.karat/journal.sqlite`, so that a
    run that was stopped goes on from there. Any other client cannot be told from others
    of its class, and what it says is forgotten with this process; one that is given to
    `karat.extend.ChatClient` with a name is known by that.

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
    chat = ChatClient(model, client, parameters)
    return JudgeSession(chat, settings or _usual(chat))


def session_of(llm: Model) -> JudgeSession:
    """A model, however it is given, and how it is asked."""
    if isinstance(llm, DryRun):
        raise UsageError("a dry run asks nobody, and here a model is asked")
    if isinstance(llm, JudgeSession):
        return llm
    client = JudgeSession.of(llm).client
    return JudgeSession(client, _usual(client))


def _usual(client: Client) -> Settings:
    # Replies that no other process could find again need no file.
    journal = JOURNAL if getattr(client, "persistent", True) else None
    if getattr(client, "is_async", True):
        return Settings(concurrency=_AT_ONCE, journal=journal)
    # What is not async may not bear several calls at once, and cannot be given up.
    return Settings(concurrency=1, journal=journal)
