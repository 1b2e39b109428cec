"""How a hearing is run: how fast, how long, for how much, and where it is kept."""

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
"""Where replies are kept unless told otherwise."""

_NEEDED: Final = {
    "concurrency",
    "max_attempts",
    "patience",
    "first_wait",
    "longest_wait",
}
_LEAST: Final = {
    **dict.fromkeys(("concurrency", "max_attempts", "patience"), 1),
    **dict.fromkeys(("max_calls", "max_failures", "reply_tokens"), 0),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How many calls are made, how fast and for how much, and what is kept of them.

    Attributes:
        concurrency: calls under way at once.
        requests_per_minute: calls that may start in a minute; None for no limit.
        timeout: seconds after which a call is given up and tried again.
        max_attempts: how often one prompt is tried before it counts as failed.
        max_calls: stop, to be continued, before more calls than this are made.
        max_cost: stop, to be continued, before more than this is spent.
        prices: what tokens cost, as `Prices` or as in "0.15,0.6" per million sent and
            received; without them there is no cost.
        reply_tokens: expected length of a reply, for costs ahead.
        max_failures: stop, to be continued, when more rows than this have failed.
        offline: make no call; a reply the journal does not hold is an error.
        retry_errors: ask again what was refused or answered uselessly last time.
        journal: where replies are kept; None for nowhere.
        no_text: keep no prompt, and quote none in reasons. Prompts are then kept as
            hashes only; replies are kept, since they are what was paid for.
        progress: called whenever a row is done.
        first_wait: seconds before the second attempt; they double from there.
        longest_wait: the most seconds between two attempts.
        budget: what several hearings may take together; None for one's own.
        patience: different prompts in a row that must fail to call the endpoint down.

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
        for name, least in _LEAST.items():
            self._check(name, Integral, f"{least} or more", float(least))
        for name in ("max_cost", "first_wait", "longest_wait"):
            self._check(name, Real, "0 or more", 0.0)
        for name in ("timeout", "requests_per_minute"):
            self._check(name, Real, "more than 0", ulp(0.0))
        if self.max_cost is not None and self.prices is None:
            raise UsageError("a limit on the cost needs prices: what do tokens cost?")

    def _check(self, name: str, kind: type, wanted: str, least: float) -> None:
        value = getattr(self, name)
        if value is None and name not in _NEEDED:
            return
        number = isinstance(value, kind) and not isinstance(value, bool)
        if not number or not least <= value < inf:
            raise ParameterError("settings", name, wanted, value)
