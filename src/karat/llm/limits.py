"""Settings of a run, and the limits on its calls: rate, waits, failures and cost."""

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isinf, ulp
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from karat.data.judgements import Prompt, Reply, Schema, Usage
from karat.data.tables import amount, counted
from karat.errors import ParameterError, UsageError

JOURNAL = Path(".karat") / "journal.sqlite"
"""The default file for replies."""
REPLY_LIMITS = ("max_tokens", "max_completion_tokens")
"""The parameters that limit the length of a reply."""
REPLY_TOKENS = 256
"""How long a reply is expected to be where nothing tells."""
_BYTES_PER_TOKEN = 4
_TOKENS_PER_CALL = 16
# No tokenizer makes more than a token of a letter, and a quarter is estimated.
_LETTER = 4.0
_MILLION = 1_000_000
# So often an endpoint that seems to be down is tried.
_TRIES = 4
_MINUTE = 60
# The kind, the smallest value, and whether None is allowed.
_NUMBERS: Final[dict[str, tuple[type, float, bool]]] = {
    **dict.fromkeys(("concurrency", "max_attempts", "patience"), (Integral, 1, False)),
    **dict.fromkeys(("max_calls", "max_failures", "reply_tokens"), (Integral, 0, True)),
    **dict.fromkeys(("first_wait", "longest_wait"), (Real, 0, False)),
    "max_cost": (Real, 0, True),
    **dict.fromkeys(("timeout", "requests_per_minute"), (Real, ulp(0.0), True)),
}


@dataclass
class Backoff:
    """Waits that double from `first` up to `longest`, each shortened at random.

    The randomness spreads the second attempts of calls that failed together.
    """

    first: float
    longest: float
    _random: random.Random = field(default_factory=random.Random)

    def wait(self, attempt: int, retry_after: float | None = None) -> float:
        """Seconds to wait after this attempt, counted from 1."""
        if retry_after is not None:
            # Never earlier than asked for.
            return retry_after * self._random.uniform(1.0, 1.1)
        wait = min(self.longest, self.first * 2.0 ** min(attempt - 1, 62))
        return wait * self._random.uniform(0.5, 1.0)


class RateLimiter:
    """A token bucket for the calls of a minute, and pauses an endpoint asks for."""

    def __init__(self, per_minute: float | None) -> None:
        self._rate = None if per_minute is None else per_minute / _MINUTE
        # The calls of one second may start at once.
        self._capacity = max(1.0, self._rate or 1.0)
        self._tokens = self._capacity
        self._last = time.monotonic()
        self._paused_until = 0.0

    def pause(self, seconds: float) -> bool:
        """Let no call start for this long; returns whether that is a new pause."""
        now = time.monotonic()
        is_new = self._paused_until <= now
        self._paused_until = max(self._paused_until, now + seconds)
        return is_new

    def reserve(self) -> float:
        """Take a token; returns the seconds to wait before using it."""
        now = time.monotonic()
        wait = max(0.0, self._paused_until - now)
        if self._rate is None:
            return wait
        earned = (now - self._last) * self._rate
        self._tokens = min(self._capacity, self._tokens + earned) - 1
        self._last = now
        return max(wait, -self._tokens / self._rate)


@dataclass
class EndpointHealth:
    """What the latest calls to an endpoint have in common, if that is bad."""

    patience: int
    tries: int = 0
    _failing: set[bytes] = field(default_factory=set)
    _forbidden: set[bytes] = field(default_factory=set)
    _cut: set[bytes] = field(default_factory=set)

    @property
    def is_down(self) -> bool:
        """Whether no call was answered for several prompts in a row."""
        return len(self._failing) >= self.patience

    def responded(self) -> None:
        """A call was answered, be it with a refusal."""
        self._failing.clear()
        self.tries = 0

    def has_failed(self, key: bytes, *, tried: bool) -> bool:
        """A call was not answered; whether it is time to give up."""
        self.tries += tried
        self._failing.add(key)
        return self.tries >= _TRIES

    def forbids_all(self, key: bytes) -> bool:
        """A prompt was forbidden; whether that holds for all of them."""
        self._forbidden.add(key)
        return len(self._forbidden) >= self.patience

    def cuts_all(self, key: bytes, *, cut: bool) -> bool:
        """A reply was cut off or not; whether several in a row were."""
        if not cut:
            self._cut.clear()
            return False
        self._cut.add(key)
        return len(self._cut) >= self.patience


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in any currency.

    Example:
        >>> Prices(prompt=0.15, completion=0.60).cost(Usage(1_000_000, 500_000))
        0.45
    """

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        for name in ("prompt", "completion"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= float(value) < inf:
                raise ParameterError("prices", name, "0 or more", value)

    @staticmethod
    def read(value: "Prices | str | Sequence[float]") -> "Prices":
        """Prices as they are, as two numbers, or as text: `"0.15,0.6"`."""
        if isinstance(value, Prices):
            return value
        try:
            parts = value.split(",") if isinstance(value, str) else value
            prompt, completion = (float(part) for part in parts)
            return Prices(prompt, completion)
        except (TypeError, ValueError, ParameterError):
            must_be = "two numbers per million tokens, as in 0.15,0.6"
            raise ParameterError("prices", "prices", must_be, value) from None

    def cost(self, usage: Usage) -> float:
        """What these tokens cost."""
        prompt = self.prompt * usage.prompt_tokens
        return (prompt + self.completion * usage.completion_tokens) / _MILLION


_FREE = Prices(0, 0)


def tokens_of(text: str) -> int:
    """About how many tokens a text has: a quarter of its UTF-8 bytes, rounded up.

    No tokenizer fits every model; this rule is within about a fifth for English prose.
    """
    ascii_only = text.isascii()
    size = len(text) if ascii_only else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // _BYTES_PER_TOKEN)


def estimate_usage(prompt: Prompt, reply_tokens: int | None = None) -> Usage:
    """The tokens a call is expected to use; the schema of its reply is sent too."""
    sent = tokens_of(prompt.system) + tokens_of(prompt.user) + _TOKENS_PER_CALL
    if prompt.schema is not None:
        sent += tokens_of(schema_text(prompt.schema))
    return Usage(sent, REPLY_TOKENS if reply_tokens is None else reply_tokens)


def schema_text(schema: Mapping[str, Any] | None) -> str:
    """A JSON schema as it is sent."""
    return (
        schema.text if isinstance(schema, Schema) else json.dumps(schema, default=dict)
    )


@dataclass
class CallSizes:
    """How many tokens calls may take, and usually take, by those that were made."""

    limit: float
    reply_tokens: int | None
    # The longest reply so far to prompts of each name.
    _longest: dict[str, int] = field(default_factory=dict)
    # How many times more tokens a prompt had than was estimated, at most.
    _weight: float | None = None

    def of(self, prompt: Prompt) -> tuple[Usage, Usage]:
        """The most that a call may take, and what it usually takes."""
        expected = estimate_usage(prompt, self.reply_tokens)
        sent = expected.prompt_tokens
        # What the user expects holds until replies are longer.
        usual = self._longest.get(prompt.name, expected.completion_tokens)
        usual = max(usual, self.reply_tokens or 0)
        most = max(usual, REPLY_TOKENS) if isinf(self.limit) else self.limit
        weight = 1.0 if self._weight is None else max(1.0, self._weight)
        heaviest = _LETTER if self._weight is None else weight
        return Usage(int(sent * heaviest), int(most)), Usage(int(sent * weight), usual)

    def learn(self, prompt: Prompt, used: Usage) -> None:
        """A call took these tokens."""
        longest = self._longest.get(prompt.name, 0)
        self._longest[prompt.name] = max(longest, used.completion_tokens)
        weight = used.prompt_tokens / estimate_usage(prompt).prompt_tokens
        self._weight = max(self._weight or 0.0, weight)


@dataclass(eq=False)
class Budget:
    """Counts calls, tokens and cost, and tells when a call would exceed a limit."""

    prices: Prices | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    _reserved: float = 0.0
    _under_way: int = 0

    @property
    def cost(self) -> float | None:
        """What has been spent, if prices are known."""
        if self.prices is None:
            return None
        return self.prices.cost(Usage(self.prompt_tokens, self.completion_tokens))

    def reserve(self, most: Usage, usual: Usage) -> Usage | str | None:
        """What is reserved for a call that starts now; why none may; None: not yet.

        A call reserves the most that it may take, so that calls at once cannot exceed
        the limit together. Where that is too much and no other is under way, one alone
        is made as long as one of the usual size fits: the limit is passed by what a
        single call takes beyond that, and no more.
        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            return f"the limit of {counted(self.max_calls, 'call')} is reached"
        prices = self.prices or _FREE
        spent = self.cost or 0.0
        for reserved in (most, usual):
            ahead = self._reserved + prices.cost(reserved)
            if self.max_cost is None or spent + ahead <= self.max_cost:
                self.calls += 1
                self._under_way += 1
                self._reserved = ahead
                return reserved
            if self._under_way:
                return None
        return (
            f"the next call could pass the limit of {self.max_cost:g} "
            f"({spent:.4g} is spent, and a reply may take "
            f"{counted(usual.completion_tokens, 'token')})"
        )

    def settle(self, reserved: Usage, used: Usage | None) -> None:
        """A call ended, having used these tokens; None when it was not billed."""
        self._under_way -= 1
        self._reserved -= (self.prices or _FREE).cost(reserved)
        if used is not None:
            self.prompt_tokens += used.prompt_tokens
            self.completion_tokens += used.completion_tokens


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

    Example:
        >>> from karat.extend import FunctionClient
        >>> client = FunctionClient(lambda prompt: "{}", version="1")
        >>> isinstance(client, Client), client.model[:6]
        (True, 'python')
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
