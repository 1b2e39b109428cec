"""How far a hearing has come."""

from dataclasses import dataclass

__all__ = ["Progress"]

_MINUTE = 60


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a hearing has come, told to whoever asked for it.

    Attributes:
        done: rows with a result, failed ones included.
        total: rows in all.
        failed: rows that failed.
        calls: calls made now, repeated ones included.
        cached: replies that came from the journal and cost nothing now.
        prompt_tokens: tokens sent, and paid for, now.
        completion_tokens: tokens received, and paid for, now.
        cost: what they cost, if prices are known.
        elapsed: seconds since the start.
        eta: seconds to the end at the speed of the rows that needed calls, if known.

    Example:
        >>> print(Progress(120, 200, failed=1, calls=90, cost=0.52,
        ...                prompt_tokens=41_000, completion_tokens=9_000, eta=75.0))
        120/200 rows, 1 failed, 90 calls, 50,000 tokens, cost 0.5200, 1:15 left
    """

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

    def __str__(self) -> str:
        parts = [f"{self.done}/{self.total} rows"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        parts.append(f"{self.calls} calls")
        if self.cached:
            parts.append(f"{self.cached} cached")
        parts.append(f"{self.prompt_tokens + self.completion_tokens:,} tokens")
        if self.cost is not None:
            parts.append(f"cost {self.cost:.4f}")
        if self.eta is not None:
            minutes, seconds = divmod(round(self.eta), _MINUTE)
            parts.append(f"{minutes}:{seconds:02} left")
        return ", ".join(parts)
