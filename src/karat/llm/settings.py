"""Settings of a run, the progress that it reports, and the clients that answer it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, ulp
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from karat.data.judgements import Prompt, Reply
from karat.data.tables import amount, counted
from karat.errors import ParameterError, UsageError
from karat.llm.limits import Budget, Prices

JOURNAL = Path(".karat") / "journal.sqlite"
"""The default file for replies."""

_MINUTE = 60
# The kind, the smallest value, and whether None is allowed.
_NUMBERS: Final[dict[str, tuple[type, float, bool]]] = {
    **dict.fromkeys(("concurrency", "max_attempts", "patience"), (Integral, 1, False)),
    **dict.fromkeys(("max_calls", "max_failures", "reply_tokens"), (Integral, 0, True)),
    **dict.fromkeys(("first_wait", "longest_wait"), (Real, 0, False)),
    "max_cost": (Real, 0, True),
    **dict.fromkeys(("timeout", "requests_per_minute"), (Real, ulp(0.0), True)),
}


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


@dataclass(frozen=True, slots=True)
class Stage:
    """What a run does, in words for the person who waits for it."""

    doing: str = "judging"
    what: str = "row"
    tokens: bool = True

    def __str__(self) -> str:
        return f"{self.doing} {counted(0, self.what)[2:]}"

    def of(self, total: int, done: int | None = None) -> str:
        """The same with the number of rows, and with how many are done if not all."""
        part = "" if done is None or done == total else f"{done} of "
        return f"{self.doing} {part}{counted(total, self.what)}"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come."""

    done: int
    total: int
    failed: int = 0
    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    elapsed: float = 0.0
    eta: float | None = None
    stage: Stage = Stage()

    def __str__(self) -> str:
        tokens = f"{self.prompt_tokens + self.completion_tokens:,} tokens"
        minutes, seconds = divmod(round(self.eta or 0), _MINUTE)
        parts = {
            f"{self.stage} {self.done}/{self.total}": True,
            f"{self.failed} failed": self.failed,
            counted(self.calls, "call"): True,
            f"{self.cached} cached": self.cached,
            tokens: self.stage.tokens,
            f"cost {amount(self.cost or 0)}": self.cost is not None,
            f"{minutes}:{seconds:02} left": self.eta is not None,
        }
        return ", ".join(part for part, is_shown in parts.items() if is_shown)


@dataclass(frozen=True, slots=True)
class Settings:
    """How many calls are made, how fast and at what cost, and what is kept of them.

    A run that reaches a limit stops, and the same run continues from there.

    Attributes:
        concurrency: calls under way at once.
        requests_per_minute: calls that may start in a minute; None for no limit.
        timeout: seconds after which a call is given up and tried again.
        max_attempts: how often one prompt is tried before it counts as failed.
        max_calls: the most calls to make.
        max_cost: the most to spend; needs prices.
        prices: what a million tokens sent and received cost, as `Prices` or as in
            "0.15,0.6".
        reply_tokens: the expected length of a reply, to estimate costs (default: 256).
        max_failures: the most rows that may fail.
        offline: make no call; a reply the journal does not hold is an error.
        retry_errors: ask again what was refused or had no valid reply last time.
        journal: the file for replies; None keeps none.
        no_text: store hashes in place of prompts, and quote none in reasons. Replies
            are stored.
        progress: called whenever a row is done.
        first_wait: seconds before the second attempt; they double from there.
        longest_wait: the most seconds between two attempts.
        budget: shared by several runs; None for one of its own.
        patience: how many different prompts in a row must fail before the endpoint is
            taken for down.

    Example:
        >>> Settings(concurrency=0)
        Traceback (most recent call last):
        karat.errors.ParameterError: settings: concurrency must be 1 or more, got 0
    """

    concurrency: int = 8
    requests_per_minute: float | None = None
    timeout: float = 120.0
    max_attempts: int = 6
    max_calls: int | None = None
    max_cost: float | None = None
    prices: Prices | None = None
    reply_tokens: int | None = None
    max_failures: int | None = None
    offline: bool = False
    retry_errors: bool = False
    journal: Path | None = JOURNAL
    no_text: bool = False
    progress: Callable[[Progress], None] | None = None
    first_wait: float = 0.5
    longest_wait: float = 60.0
    budget: Budget | None = None
    patience: int = 5

    def __post_init__(self) -> None:
        if isinstance(self.journal, str):
            object.__setattr__(self, "journal", Path(self.journal))
        if self.prices is not None:
            object.__setattr__(self, "prices", Prices.read(self.prices))
        for name, (kind, minimum, may_be_none) in _NUMBERS.items():
            value = getattr(self, name)
            if value is None and may_be_none:
                continue
            number = isinstance(value, kind) and not isinstance(value, bool)
            if not number or not minimum <= value < inf:
                whole = minimum in (0, 1)
                must_be = f"{minimum} or more" if whole else "more than 0"
                raise ParameterError("settings", name, must_be, value)
        if self.max_cost is not None and self.prices is None:
            raise UsageError("max_cost needs prices: what a million tokens cost")
