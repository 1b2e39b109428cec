"""Clients with the shape of OpenAI's, for those who have none."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


def client_of(create: Callable[..., Any], **facts: Any) -> Any:
    """A client that answers by this function."""
    completions = SimpleNamespace(create=create)
    return SimpleNamespace(chat=SimpleNamespace(completions=completions), **facts)


def completion(content: object, finish: str = "stop", **facts: Any) -> Any:
    """A reply as the libraries hand it on."""
    message = SimpleNamespace(content=content)
    choices = [SimpleNamespace(message=message, finish_reason=finish)]
    return SimpleNamespace(choices=choices, **facts)


def failing(error: Exception, **facts: Any) -> Any:
    """A client that always raises this."""

    async def create(**_: Any) -> Any:
        raise error

    return client_of(create, **facts)


def status_error(status: int, body: Any = None, **headers: str) -> Exception:
    """An error as OpenAI's library has it."""
    error: Any = Exception(f"Error code: {status} - {body}")
    error.status_code = status
    error.body = body
    error.response = SimpleNamespace(headers=headers)
    return error  # type: ignore[no-any-return]
