"""Estimating the calls, tokens and cost of a run without making a call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from karat.data.judgements import Failure, Prompt, Reply, Usage
from karat.data.tables import amount, counted
from karat.llm.journal import Entry, Journal, ProcessLock, Replies
from karat.llm.limits import Client, Settings, Stage, estimate_usage, tokens_of
from karat.llm.run_jobs import Calls, Job, JobRunner, Stopped

T = TypeVar("T")
# Models write longer replies than those assumed, and JSON has shorter tokens.
_LONGER = 1.5


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would take."""

    rows: int
    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None
    unseen: int = 0
    stages: tuple[tuple[Stage, int], ...] = ()

    def __str__(self) -> str:
        counts: dict[Stage, int] = {}
        for stage, count in self.stages or ((Stage(), self.rows),):
            counts[stage] = counts.get(stage, 0) + count
        stages = " and ".join(stage.of(count) for stage, count in counts.items())
        text = (
            f"{counted(self.calls, 'call')} ({counted(self.cached, 'reply')} kept "
            f"already) for {stages}, about {self.prompt_tokens:,} tokens sent and "
            f"{self.completion_tokens:,} received"
        )
        cost = "" if self.cost is None else f", cost about {amount(self.cost)}"
        more = f"; {self.unseen} of them may need more calls, depending on the replies"
        return text + cost + (more if self.unseen else "")

    def to_dict(self) -> dict[str, float | None]:
        """The numbers by name; the cost is None where prices are not known."""
        return {
            "calls": self.calls,
            "kept": self.cached,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
        }


async def rehearse(
    jobs: Sequence[Job[T]],
    client: Client,
    settings: Settings,
    assume: Callable[[Prompt], str | None] = lambda _: None,
) -> tuple[Estimate, list[T | Failure | None]]:
    """The calls and tokens a run would need now, and what its jobs would come to.

    Replies are those of the journal, or assumed ones; a job that lacks one is None.
    """
    results: list[T | Failure | None] = []
    with Journal(settings.journal, read_only=True) as journal:
        calls = _AssumedCalls(journal, client, settings, assume)
        runner = JobRunner(jobs, calls, settings)
        for row in range(len(jobs)):
            try:
                results.append(await runner.converse(row))
            except Stopped:
                results.append(None)
    usage = sum(calls.usage.values(), Usage())
    estimate = Estimate(
        rows=len(jobs),
        calls=len(calls.usage),
        cached=len(calls.kept),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost=settings.prices.cost(usage) if settings.prices else None,
        unseen=results.count(None),
    )
    return estimate, results


class _AssumedCalls(Calls):
    """Replies of the journal, and assumed ones in place of calls."""

    def __init__(
        self,
        journal: Journal,
        client: Client,
        settings: Settings,
        assume: Callable[[Prompt], str | None],
    ) -> None:
        replies = Replies(journal, client, settings)
        super().__init__(client, settings, replies, ProcessLock(None))
        self.usage: dict[bytes, Usage] = {}
        self.kept: set[bytes] = set()
        self._reply_sizes = journal.reply_sizes(client.endpoint, client.model)
        self._assume = assume

    async def reply(self, prompt: Prompt) -> tuple[bytes, Entry]:
        key = self.replies.keys.of(prompt)
        if (entry := self.replies.find(key)) is not None:
            self.kept.add(key)
            return key, entry
        text = self._assume(prompt)
        size: float | None = self._settings.reply_tokens
        if size is None:
            assumed = None if text is None else _LONGER * tokens_of(text)
            size = self._reply_sizes.get(prompt.name, assumed)
        self.usage[key] = estimate_usage(prompt, None if size is None else round(size))
        if text is None:
            raise Stopped
        return key, Entry("ok", Reply(text))

    async def mark_invalid(self, keys: list[bytes]) -> None:
        """Nothing is written."""
