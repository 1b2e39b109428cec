"""What is asked of a language model, what it answers, and what becomes of a failure."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

__all__ = ["Deliberation", "Failure", "Prompt", "Reply", "Usage"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a model. Everything that can change the answer is in it.

    Attributes:
        system: the instruction.
        user: what is to be judged, fenced as data.
        schema: JSON schema of the reply, for servers that enforce one.
        name: which kind of prompt this is, such as `split` or `support`.
        version: changes with the wording, so that old answers are not reused.
    """

    system: str
    user: str
    schema: Mapping[str, Any] | None = None
    name: str = "prompt"
    version: str = "1"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens paid for."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answered.

    Attributes:
        text: the reply as it came.
        usage: tokens paid for it.
        id: the server's own id of the reply.
        model: the model that answered, as the server names it.
        cached: whether it came from the journal and cost nothing now.
        cut: whether it ended because it had reached the longest length allowed.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    id: str | None = None
    model: str | None = None
    cached: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A judgement that could not be had: a value with a reason, never a 0."""

    reason: str
    kind: str = "invalid"
    attempts: int = 1


Deliberation: TypeAlias = Generator[Prompt, Reply, T]
"""A judge at work: it yields prompts, receives replies and returns its verdict."""
