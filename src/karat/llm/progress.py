"""How far a run has come."""

from dataclasses import dataclass

from karat.data.tables import amount, counted

__all__ = ["Progress", "Stage"]

_MINUTE = 60


@dataclass(frozen=True, slots=True)
class Stage:
    """What a run does, in words for the person who waits for it.

    Attributes:
        doing: the verb.
        what: the noun for each row.
        tokens: whether it takes tokens.

    Example:
        >>> stage = Stage("splitting", "reference")
        >>> print(f"{stage}; {stage.of(1)}; {stage.of(5)}; {stage.of(5, done=3)}")
        splitting references; splitting 1 reference; splitting 5 references; \
splitting 3 of 5 references
    """

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
    """How far a run has come.

    Attributes:
        done: rows with a result, failed ones included.
        total: rows in all.
        failed: rows that failed.
        calls: calls made by this run, repeated ones included.
        cached: replies that came from the journal.
        prompt_tokens: tokens sent by this run.
        completion_tokens: tokens received by this run.
        cost: what they cost, if prices are known.
        elapsed: seconds since the start.
        eta: seconds to the end at the speed of the rows that needed calls, if known.
        stage: what is done to the rows.

    Example:
        >>> print(Progress(120, 200, failed=1, calls=90, cost=0.52,
        ...                prompt_tokens=41_000, completion_tokens=9_000, eta=75.0))
        judging rows 120/200, 1 failed, 90 calls, 50,000 tokens, cost 0.52, 1:15 left
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
    stage: Stage = Stage()

    def __str__(self) -> str:
        parts = [f"{self.stage} {self.done}/{self.total}"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        parts.append(counted(self.calls, "call"))
        if self.cached:
            parts.append(f"{self.cached} cached")
        if self.stage.tokens:
            parts.append(f"{self.prompt_tokens + self.completion_tokens:,} tokens")
        if self.cost is not None:
            parts.append(f"cost {amount(self.cost)}")
        if self.eta is not None:
            minutes, seconds = divmod(round(self.eta), _MINUTE)
            parts.append(f"{minutes}:{seconds:02} left")
        return ", ".join(parts)
