"""What is asked of a language model, what it answers, and what becomes of a failure."""

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

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

    Example:
        >>> from karat.extend import Prompt
        >>> Prompt("You grade documents.", "How relevant is this?").name
        'prompt'
    """

    system: str
    user: str
    schema: Mapping[str, Any] | None = None
    name: str = "prompt"
    version: str = "1"

    def repairs(self, other: "Prompt") -> bool:
        """Whether this is the other prompt, or the same asked again after a mistake."""
        return self.name == other.name and self.user.startswith(other.user)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens paid for, as the server counts them, and how many replies they bought."""

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

    Example:
        >>> from karat.extend import Reply
        >>> Reply('{"grade": 2}').text
        '{"grade": 2}'
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether, where and why the retrieved documents support one claim.

    A claim is found at the first rank that supports it alone, or at the rank that
    completes the documents which support it only together. One that is not found may
    be supported in part, or contradicted.

    Attributes:
        claim: id of the claim within its query.
        text: what it says; empty where texts are to stay out of results.
        alone: ranks of the documents that support it by themselves.
        together: ranks of documents that support it only together, if they do.
        reason: the judge's own sentence.
        failure: why there is no verdict; then the claim is neither found nor missed.
        disagreement: share of the votes that differ from the majority, or failed.
        partial: ranks of documents that state a part of it, the rest being nowhere.
        against: ranks of the documents that contradict it.

    Example:
        >>> Verdict("claim-1", "It rains.", alone=(5,), together=(1, 3)).rank
        3
        >>> Verdict("claim-1", "It rains.", against=(2,)).label
        'contradict'
    """

    claim: str
    text: str = ""
    alone: tuple[int, ...] = ()
    together: tuple[int, ...] = ()
    reason: str = ""
    failure: str | None = None
    disagreement: float = 0.0
    partial: tuple[int, ...] = ()
    against: tuple[int, ...] = ()

    @property
    def rank(self) -> int | None:
        """The rank at which the claim is found; None when it is not supported."""
        ranks = [min(self.alone)] if self.alone else []
        if self.together:
            ranks.append(max(self.together))
        return min(ranks) if ranks else None

    @property
    def supported(self) -> bool:
        """Whether the documents support the claim."""
        return self.rank is not None

    @property
    def label(self) -> str:
        """In a word: `support`, `contradict`, `partial`, `none` or `failed`."""
        if self.failure is not None:
            return "failed"
        if self.supported:
            return "support"
        return "contradict" if self.against else "partial" if self.partial else "none"
