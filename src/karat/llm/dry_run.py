"""Estimating the calls, tokens and cost of a run without making a call."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from karat.data.judgements import Prompt, Reply, Usage
from karat.data.tables import amount, counted
from karat.errors import CallError, Refused
from karat.llm.journal import Journal, Replies
from karat.llm.limits import Client, Settings, Stage, estimate_usage, tokens_of
from karat.llm.run_jobs import Job

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


def estimate(
    jobs: Sequence[Job[Any]],
    client: Client,
    settings: Settings | None = None,
    assume: Callable[[Prompt], str | None] | None = None,
) -> Estimate:
    """The calls and tokens a run would need now, given the replies in the journal.

    Each job is followed as far as replies are known. `assume` may make up a likely
    reply to a prompt, so that a job can be followed further. Nothing is written.
    """
    settings = settings or Settings()
    with Journal(settings.journal, read_only=True) as journal:
        replay = _Replay(journal, client, settings, assume)
        unseen = sum(not replay.finishes(job) for job in jobs)
    usage = sum(replay.usage.values(), Usage())
    return Estimate(
        rows=len(jobs),
        calls=len(replay.usage),
        cached=len(replay.cached),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost=settings.prices.cost(usage) if settings.prices else None,
        unseen=unseen,
    )


def unanswered(
    jobs: Sequence[Job[Any]], client: Client, settings: Settings
) -> list[int]:
    """The positions of the jobs for which the journal lacks a reply."""
    with Journal(settings.journal, read_only=True) as journal:
        replay = _Replay(journal, client, settings)
        return [row for row, job in enumerate(jobs) if not replay.finishes(job)]


class _Replay:
    """Runs jobs on the replies of the journal, and on assumed ones."""

    def __init__(
        self,
        journal: Journal,
        client: Client,
        settings: Settings,
        assume: Callable[[Prompt], str | None] | None = None,
    ) -> None:
        self.usage: dict[bytes, Usage] = {}
        self.cached: set[bytes] = set()
        self._replies = Replies(journal, client, settings)
        self._reply_sizes = journal.reply_sizes(client.endpoint, client.model)
        self._reply_tokens = settings.reply_tokens
        self._assume = assume

    def finishes(self, job: Job[Any]) -> bool:
        """Whether a job gets every reply that it needs."""
        conversation: Generator[Any, Any, Any] = job()
        try:
            prompt = next(conversation)
            while True:
                several = prompt if isinstance(prompt, list) else [prompt]
                replies = [self._reply(one) for one in several]
                if None in replies:
                    return False
                refused = [r for r in replies if isinstance(r, CallError)]
                if refused:
                    prompt = conversation.throw(refused[0])
                else:
                    received = replies if several is prompt else replies[0]
                    prompt = conversation.send(received)
        except (StopIteration, CallError):
            return True
        finally:
            conversation.close()

    def _reply(self, prompt: Prompt) -> Reply | CallError | None:
        key = self._replies.keys.of(prompt)
        if (entry := self._replies.find(key)) is not None:
            self.cached.add(key)
            is_reply = entry.status in ("ok", "invalid")
            return entry.reply if is_reply else Refused(entry.reply.text)
        text = self._assume(prompt) if self._assume else None
        size: float | None = self._reply_tokens
        if size is None:
            assumed = None if text is None else _LONGER * tokens_of(text)
            size = self._reply_sizes.get(prompt.name, assumed)
        self.usage[key] = estimate_usage(prompt, None if size is None else round(size))
        return None if text is None else Reply(text)
