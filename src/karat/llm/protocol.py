"""What the driver expects of whoever answers prompts."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from karat.data.judgements import Prompt, Reply

__all__ = ["Client"]


@runtime_checkable
class Client(Protocol):
    """Someone who answers prompts: an endpoint with a model, or a function.

    Endpoint, model and parameters are part of a reply's identity: a client that differs
    in any of them is never given the other's replies. A client that holds connections
    may offer `session()`, an asynchronous context manager, entered around a hearing;
    one that another process could not find again says so with `lasting = False`; and
    one whose model's name means nothing to people has another one in `label`. One whose
    calls go on although nobody waits for them says `stoppable = False`; one
    that has something to load before its first call does so in `prepare()`.

    Attributes:
        endpoint: where prompts are sent, without any secret.
        model: who answers there.
        parameters: what else decides the answer, such as the temperature.
    """

    @property
    def endpoint(self) -> str: ...  # noqa: D102
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def parameters(self) -> Mapping[str, Any]: ...  # noqa: D102

    async def complete(self, prompt: Prompt) -> Reply:
        """The answer; raises `Transient` or `Refused` when there is none."""
        ...
