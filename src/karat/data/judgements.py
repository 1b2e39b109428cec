"""What is asked of a language model, what it answers, and what becomes of a failure."""

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

__all__ = [
    "Conversation",
    "Failure",
    "ParallelConversation",
    "Prompt",
    "Reply",
    "Schema",
    "Usage",
]

T = TypeVar("T")


class Schema(dict[str, Any]):
    """A JSON schema that many prompts share, written out once for all of them."""

    @cached_property
    def text(self) -> str:
        """The schema as JSON. It keeps its order: models fill in fields as given."""
        return json.dumps(self)


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

    def repairs(self, other: "Prompt") -> bool:
        """Whether this is the other prompt, or asks it again and says what was wrong.

        Example:
            >>> Prompt("Be brief.", "Why? Say it in JSON.").repairs(
            ...     Prompt("Be brief.", "Why?"))
            True
        """
        return self.name == other.name and self.user.startswith(other.user)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens paid for, as the server counts them, and how many replies they bought.

    Example:
        >>> sum([Usage(20, 5, 1), Usage(30, 7, 1)], Usage())
        Usage(prompt_tokens=50, completion_tokens=12, replies=2)
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    replies: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.replies + other.replies,
        )

    def __str__(self) -> str:
        tokens = self.prompt_tokens + self.completion_tokens
        noun = "reply" if self.replies == 1 else "replies"
        return f"{self.replies:,} {noun} of {tokens:,} tokens"


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


Conversation: TypeAlias = Generator[Prompt, Reply, T]
"""A judge at work: it yields prompts, receives replies and returns its verdict."""

ParallelConversation: TypeAlias = Generator[list[Prompt], list[Reply], T]
"""A judge that yields lists of prompts, which are asked side by side."""
