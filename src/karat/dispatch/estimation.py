"""What a hearing would cost, without making a call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from karat.data.judgements import Prompt, Reply, Usage
from karat.data.tables import counted
from karat.dispatch.budget import usage_ahead
from karat.dispatch.driver import Job
from karat.dispatch.journal import Journal
from karat.dispatch.keys import Keys
from karat.dispatch.protocol import Client
from karat.dispatch.settings import Settings
from karat.errors import CallError, Refused

__all__ = ["Estimate", "estimate"]


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

    Example:
        >>> print(Estimate(20, 18, 4, 9_000, 4_608, 0.0125, unseen=3))
        20 rows, 18 calls (4 kept already), about 9,000 tokens sent and 4,608 \
received, about 0.0125; 3 rows may need more calls, depending on the replies
    """

    rows: int
    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None
    unseen: int = 0

    def __str__(self) -> str:
        text = (
            f"{counted(self.rows, 'row')}, {counted(self.calls, 'call')} "
            f"({self.cached} kept already), about {self.prompt_tokens:,} tokens sent "
            f"and {self.completion_tokens:,} received"
        )
        if self.cost is not None:
            text += f", about {self.cost:.4g}"
        if self.unseen:
            text += (
                f"; {counted(self.unseen, 'row')} may need more calls, depending on "
                "the replies"
            )
        return text


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
            while (reply := self._reply(prompt)) is not None:
                if isinstance(reply, Reply):
                    prompt = judge.send(reply)
                else:
                    prompt = judge.throw(reply)
        except (StopIteration, CallError):
            return False
        finally:
            judge.close()
        return True

    def _reply(self, prompt: Prompt) -> Reply | CallError | None:
        key = self._keys.of(prompt)
        kept = self._journal.get(key)
        again = ("ok",) if self._settings.retry_errors else ("ok", "invalid", "refused")
        if kept is not None and kept.status in again:
            self.cached.add(key)
            if kept.status != "refused":
                return kept.reply()
            return Refused(kept.text)
        self.ahead[key] = usage_ahead(prompt, self._settings.reply_tokens)
        text = self._assume(prompt) if self._assume else None
        return None if text is None else Reply(text)
