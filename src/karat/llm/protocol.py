"""The protocol of clients, which answer prompts."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from karat.data.judgements import Prompt, Reply

__all__ = ["Client"]


@runtime_checkable
class Client(Protocol):
    """Answers prompts: an endpoint with a model, or a function.

    Endpoint, model and parameters are part of a reply's key: a client that differs in
    any of them does not use the other's replies. Further attributes are optional:

    - `session()`: an asynchronous context manager around a run, for connections.
    - `prepare()`: loads what the first call needs.
    - `label`: a readable name, if the model's name is not.
    - `persistent = False`: another process cannot identify this client again.
    - `stoppable = False`: a call goes on although nobody waits for it.

    Attributes:
        endpoint: where prompts are sent, without any secret.
        model: the name of the model there.
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
