"""Settings of a run: its speed, its limits, and where replies are kept."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, ulp
from numbers import Integral, Real
from pathlib import Path
from typing import Final

from karat.errors import ParameterError, UsageError
from karat.llm.budget import Budget, Prices
from karat.llm.progress import Progress

__all__ = ["JOURNAL", "Settings"]

JOURNAL = Path(".karat") / "journal.sqlite"
"""The default file for replies."""

_REQUIRED: Final = {
    "concurrency",
    "max_attempts",
    "patience",
    "first_wait",
    "longest_wait",
}
_MINIMA: Final = {
    **dict.fromkeys(("concurrency", "max_attempts", "patience"), 1),
    **dict.fromkeys(("max_calls", "max_failures", "reply_tokens"), 0),
}


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
        for name, minimum in _MINIMA.items():
            self._check(name, Integral, f"{minimum} or more", float(minimum))
        for name in ("max_cost", "first_wait", "longest_wait"):
            self._check(name, Real, "0 or more", 0.0)
        for name in ("timeout", "requests_per_minute"):
            self._check(name, Real, "more than 0", ulp(0.0))
        if self.max_cost is not None and self.prices is None:
            raise UsageError("max_cost needs prices: what a million tokens cost")

    def _check(self, name: str, kind: type, must_be: str, minimum: float) -> None:
        value = getattr(self, name)
        if value is None and name not in _REQUIRED:
            return
        number = isinstance(value, kind) and not isinstance(value, bool)
        if not number or not minimum <= value < inf:
            raise ParameterError("settings", name, must_be, value)
