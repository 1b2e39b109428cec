"""What a hearing would cost, without making a call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from karat.data.judgements import Prompt, Reply, Usage
from karat.data.tables import amount, counted
from karat.errors import CallError, Refused
from karat.llm.budget import usage_ahead
from karat.llm.journal import Journal
from karat.llm.keys import Keys
from karat.llm.progress import Stage
from karat.llm.protocol import Client
from karat.llm.run_jobs import Job
from karat.llm.settings import Settings

__all__ = ["Estimate", "estimate", "unanswered"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a hearing would take.

    Attributes:
        rows: rows to be heard.
        calls: calls to be made, equal prompts counted once.
        cached: replies the journal already holds.
        prompt_tokens: tokens to be sent, estimated from the length of the prompts.
        completion_tokens: tokens to be received, at an assumed length.
        cost: what they cost, if prices are known.
        unseen: rows that may need further calls, depending on the replies.
        stages: what is done to how many things; rows are judged unless told.

    Example:
        >>> print(Estimate(20, 18, 4, 9_000, 4_608, 0.0125, unseen=3))
        18 calls (4 replies kept already) for judging 20 rows, about 9,000 tokens sent \
and 4,608 received, cost about 0.0125; 3 of them may need more calls, depending on the \
replies
    """

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
        if self.cost is not None:
            text += f", cost about {amount(self.cost)}"
        if self.unseen:
            text += (
                f"; {self.unseen} of them may need more calls, depending on the replies"
            )
        return text

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
    """The calls and tokens a hearing would need now, given what the journal holds.

    Each judge is followed as far as replies are known. `assume` may make up a likely
    reply to a prompt, so that a judge can be followed beyond it. Nothing is written.
    """
    settings = settings or Settings()
    with Journal(settings.journal, only_read=True) as journal:
        walk = _Walk(journal, Keys(client), settings, assume)
        unseen = sum(walk.follow(job) for job in jobs)
    usage = Usage(
        sum(ahead.prompt_tokens for ahead in walk.ahead.values()),
        sum(ahead.completion_tokens for ahead in walk.ahead.values()),
    )
    return Estimate(
        len(jobs),
        len(walk.ahead),
        len(walk.cached),
        usage.prompt_tokens,
        usage.completion_tokens,
        settings.prices.cost(usage) if settings.prices else None,
        unseen,
    )


def unanswered(
    jobs: Sequence[Job[Any]], client: Client, settings: Settings
) -> list[int]:
    """The places of the judges for whom the journal does not hold every reply."""
    with Journal(settings.journal, only_read=True) as journal:
        walk = _Walk(journal, Keys(client), settings, None)
        return [place for place, job in enumerate(jobs) if walk.follow(job)]


class _Walk:
    def __init__(
        self,
        journal: Journal,
        keys: Keys,
        settings: Settings,
        assume: Callable[[Prompt], str | None] | None,
    ) -> None:
        self.ahead: dict[bytes, Usage] = {}
        self.cached: set[bytes] = set()
        self._journal = journal
        self._keys = keys
        self._settings = settings
        self._assume = assume

    def follow(self, job: Job[Any]) -> bool:
        """Follow one judge; whether it was left before its end."""
        judge = job()
        try:
            prompt = next(judge)
            while True:
                several = prompt if isinstance(prompt, list) else [prompt]
                replies = [self._reply(one) for one in several]
                if any(reply is None for reply in replies):
                    return True
                refused = [r for r in replies if isinstance(r, CallError)]
                if refused:
                    prompt = judge.throw(refused[0])
                else:
                    prompt = judge.send(replies if several is prompt else replies[0])
        except (StopIteration, CallError):
            return False
        finally:
            judge.close()
        return True

    def _reply(self, prompt: Prompt) -> Reply | CallError | None:
        key = self._keys.of(prompt)
        kept = self._journal.get(key)
        if kept is not None and self._final(kept.status):
            self.cached.add(key)
            if kept.status in ("ok", "invalid"):
                return kept.reply()
            return Refused(kept.text)
        self.ahead[key] = usage_ahead(prompt, self._settings.reply_tokens)
        text = self._assume(prompt) if self._assume else None
        return None if text is None else Reply(text)

    def _final(self, status: str) -> bool:
        """Whether what is kept is used as it is, as a hearing would."""
        if status == "ok" or self._settings.offline:
            return True
        return status != "transient" and not self._settings.retry_errors
