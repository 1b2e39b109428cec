"""Limits on calls: rate, waits after a failure, and when an endpoint is down."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

__all__ = ["Backoff", "CircuitBreaker", "RateLimiter"]

Wait: TypeAlias = Callable[[float], Awaitable[None]]
_PROBES = 4
_SECONDS_PER_MINUTE = 60


class Backoff:
    """Waits that double from `first` up to `longest`, each shortened at random.

    The randomness spreads the second attempts of calls that failed together.
    """

    def __init__(self, first: float, longest: float) -> None:
        self.first = first
        self.longest = longest
        self._random = random.Random()  # noqa: S311 (not used for secrets)

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
        self._rate = None if per_minute is None else per_minute / _SECONDS_PER_MINUTE
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


class CircuitBreaker:
    """Notices that an endpoint is down, and then lets one call at a time through.

    It opens when calls for `patience` different prompts have failed in a row. While it
    is open, one call after another is a probe, with growing waits between them; the
    first success closes it, and after a few failures it is broken.
    """

    def __init__(self, patience: int, backoff: Backoff, wait: Wait) -> None:
        self._patience = patience
        self._backoff = backoff
        self._wait = wait
        self._failing: set[bytes] = set()
        self._probes = 0
        self._probing = False
        self._released = False
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
        """Wait until a call may be made; returns whether it is a probe."""
        while self.open and not self._released:
            if not self._probing:
                self._probing = True
                # The attempts of single calls have waited for less already.
                await self._wait(self._backoff.wait(self._probes + 3))
                return True
            await self._changed.wait()
        return False

    def release_all(self) -> None:
        """Let every waiting call through: the run stops."""
        self._released = True
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

    def inconclusive(self, *, probe: bool) -> None:
        """A call failed, perhaps because of its prompt; another may probe."""
        if probe:
            self._release()

    def _release(self) -> None:
        self._probing = False
        self._changed.set()
        self._changed = asyncio.Event()
