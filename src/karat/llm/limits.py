"""How fast calls may be made, how long to wait after a failure, and when to give up."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

__all__ = ["Backoff", "Breaker", "Pace"]

Pause: TypeAlias = Callable[[float], Awaitable[None]]
_PROBES = 4
_SECONDS_PER_MINUTE = 60


class Backoff:
    """Waits that double from `first` up to `longest`, each shortened at random.

    The randomness keeps calls that failed together from coming back together.
    """

    def __init__(self, first: float, longest: float) -> None:
        self.first = first
        self.longest = longest
        self._random = random.Random()  # noqa: S311 (no secret hangs on it)

    def wait(self, attempt: int, retry_after: float | None = None) -> float:
        """Seconds to wait after this attempt, counted from 1."""
        if retry_after is not None:
            # Never earlier than asked for.
            return retry_after * self._random.uniform(1.0, 1.1)
        wait = min(self.longest, self.first * 2.0 ** min(attempt - 1, 62))
        return wait * self._random.uniform(0.5, 1.0)


class Pace:
    """A token bucket for the calls of a minute, and a pause the endpoint asked for."""

    def __init__(self, per_minute: float | None) -> None:
        self._rate = None if per_minute is None else per_minute / _SECONDS_PER_MINUTE
        # A second's worth may go at once, so that short pauses can be made up for.
        self._most = max(1.0, self._rate or 1.0)
        self._tokens = self._most
        self._last = time.monotonic()
        self._held_until = 0.0

    def hold(self, seconds: float) -> None:
        """Let no call start for this long: the endpoint said when to come back."""
        self._held_until = max(self._held_until, time.monotonic() + seconds)

    def reserve(self) -> float:
        """Take a token; how many seconds to wait before using it."""
        now = time.monotonic()
        wait = max(0.0, self._held_until - now)
        if self._rate is None:
            return wait
        earned = (now - self._last) * self._rate
        self._tokens = min(self._most, self._tokens + earned) - 1
        self._last = now
        return max(wait, -self._tokens / self._rate)


class Breaker:
    """Notices that an endpoint is down, and lets one call at a time find out.

    It opens when calls for `patience` different prompts have failed in a row. While it
    is open, one call after another is tried, ever further apart; the first success
    closes it, and after a few failures it gives up for all.
    """

    def __init__(self, patience: int, backoff: Backoff, pause: Pause) -> None:
        self._patience = patience
        self._backoff = backoff
        self._pause = pause
        self._failing: set[bytes] = set()
        self._probes = 0
        self._probing = False
        self._over = False
        self._changed = asyncio.Event()

    @property
    def open(self) -> bool:
        """Whether the endpoint seems to be down."""
        return len(self._failing) >= self._patience

    @property
    def broken(self) -> bool:
        """Whether it is time to give up."""
        return self._probes >= _PROBES

    async def admit(self) -> bool:
        """Wait for leave to call; whether this call is a probe."""
        while self.open and not self._over:
            if not self._probing:
                self._probing = True
                # Probes start where a call's own attempts have already been.
                await self._pause(self._backoff.wait(self._probes + 3))
                return True
            await self._changed.wait()
        return False

    def let_go(self) -> None:
        """Keep nobody waiting any longer: the hearing is over."""
        self._over = True
        self._release()

    def succeeded(self) -> None:
        """A call was answered."""
        if self._failing:
            self._failing.clear()
            self._probes = 0
        self._release()

    def failed(self, key: bytes, *, probe: bool) -> None:
        """A call for this prompt was not answered at all."""
        self._failing.add(key)
        if probe:
            self._probes += 1
            self._release()

    def pass_on(self, *, probe: bool) -> None:
        """A call failed for reasons of its own; another may find out."""
        if probe:
            self._release()

    def _release(self) -> None:
        self._probing = False
        self._changed.set()
        self._changed = asyncio.Event()
