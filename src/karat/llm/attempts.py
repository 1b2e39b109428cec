"""Attempts: calls for one prompt until there is an answer, within limits of all."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from karat.data.judgements import Prompt, Reply, Usage
from karat.errors import CallError, IncompleteError, KaratError, Refused, Transient
from karat.llm.budget import Budget, longest_reply, usage_ahead
from karat.llm.journal import Entry, storable
from karat.llm.limits import Backoff, Breaker, Pace
from karat.llm.protocol import Client
from karat.llm.secrecy import scrub
from karat.llm.settings import Settings

__all__ = ["Attempts", "Stopped"]

log = logging.getLogger("karat")
_LONGEST_RETRY_AFTER = 600
# Seconds between two looks at whether there is room for another call.
_PEEK = 0.05
# No reply has so many tokens.
_ABSURD = 10**9


class Stopped(Exception):  # noqa: N818
    """The hearing ends; whoever is under way finishes, and nothing new begins.

    Attributes:
        entry: what was the matter with the prompt until then, if anything was.
    """

    def __init__(self, entry: Entry | None = None) -> None:
        self.entry = entry
        super().__init__()


class Attempts:
    """Makes calls, waits between them, and knows when all of them are to end.

    Attributes:
        problem: why the hearing ends early, once it does.
        budget: what has been called and spent.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self.problem: KaratError | None = None
        self.budget = settings.budget or Budget(
            settings.prices, settings.max_calls, settings.max_cost
        )
        self._client = client
        self._settings = settings
        self._over = asyncio.Event()
        self._pace = Pace(settings.requests_per_minute)
        self._backoff = Backoff(settings.first_wait, settings.longest_wait)
        self._breaker = Breaker(settings.patience, self._backoff, self.rest)
        # What cannot be given up is waited for; the longest reply is held back for.
        stoppable = getattr(client, "stoppable", True)
        self._timeout = settings.timeout if stoppable else None
        self._longest = settings.reply_tokens or longest_reply(client)
        self._prepare: Callable[[], None] | None = getattr(client, "prepare", None)
        self._preparing = asyncio.Lock()

    async def make(self, key: bytes, prompt: Prompt, *, suspect: bool) -> Entry:
        """Call until there is an answer, or none to be expected.

        A prompt that failed the last time is a suspect: it may break the server by
        itself, so that its failures say nothing of the endpoint.

        Raises:
            Stopped: the hearing ends before; it holds the last failure, if any.
        """
        problem: Transient | None = None
        attempts = 0
        while True:
            try:
                probe = await self._begin(prompt)
            except Stopped:
                if problem is None:
                    raise
                raise Stopped(self._failed("transient", problem, attempts)) from None
            attempts += 1
            try:
                reply = await self._once(prompt)
            except Refused as error:
                self._breaker.succeeded()
                if error.always:
                    self.stop(Refused(self.sentence(error), always=True))
                    raise Stopped from None
                return self._failed("refused", error, attempts)
            except Transient as error:
                problem = error
            else:
                self._breaker.succeeded()
                text = storable(reply.text)
                told = (reply.usage, reply.id, reply.model, reply.cut)
                return Entry("ok", text, attempts, *told)
            self._note(None if suspect else key, problem, probe=probe)
            if self._breaker.open and not suspect:
                continue
            if attempts >= self._settings.max_attempts:
                return self._failed("transient", problem, attempts)
            await self.rest(self._backoff.wait(attempts, problem.retry_after))

    def _failed(self, status: str, error: CallError, attempts: int) -> Entry:
        return Entry(status, self.sentence(error), attempts, cause=error.__cause__)

    def sentence(self, error: CallError) -> str:
        """Why there is no answer, without secrets and, on request, without texts."""
        said = scrub(error.reason if self._settings.no_text else str(error))
        return said or "no reason was given"

    def stop(self, problem: KaratError) -> None:
        """End the hearing: calls under way finish, nothing new begins."""
        if self.problem is None:
            self.problem = problem
        self._over.set()
        self._breaker.let_go()

    async def _begin(self, prompt: Prompt) -> bool:
        """Wait for leave to make a call; whether it is a probe."""
        probe = await self._breaker.admit()
        await self.rest(self._pace.reserve())
        most = usage_ahead(prompt, self._longest)
        while self.problem is None and self.budget.crowded(most):
            # Calls under way hold back more than they will cost.
            await self.rest(_PEEK)
        if self.problem is None and (refusal := self.budget.refusal(most)):
            self.stop(IncompleteError(refusal))
        if self.problem is not None:
            raise Stopped
        return probe

    async def _once(self, prompt: Prompt) -> Reply:
        ahead = usage_ahead(prompt, self._settings.reply_tokens)
        most = usage_ahead(prompt, self._longest)
        used: Usage | None = None
        await self._ready()
        self.budget.begin(most)
        try:
            async with asyncio.timeout(self._timeout):
                reply = await self._client.complete(prompt)
            told = (reply.usage.prompt_tokens, reply.usage.completion_tokens)
            if not any(told) or max(told) > _ABSURD:
                # A server that does not count is taken at our estimate.
                reply = replace(reply, usage=ahead)
            used = reply.usage
            if self._settings.reply_tokens is None:
                self._longest = max(self._longest, used.completion_tokens)
        except TimeoutError:
            used = ahead
            raise Transient(
                f"{self._client.endpoint} gave no answer within "
                f"{self._settings.timeout:g} s",
                paid=True,
            ) from None
        except Transient as error:
            used = ahead if error.paid else None
            raise
        finally:
            self.budget.settle(most, used)
        return reply

    async def _ready(self) -> None:
        """Let the client load what it needs, before the clock of a call starts.

        In a thread: Ctrl-C in the middle of an import would show its insides.
        """
        async with self._preparing:
            if self._prepare is not None:
                await asyncio.to_thread(self._prepare)
                self._prepare = None

    def _note(self, key: bytes | None, problem: Transient, *, probe: bool) -> None:
        """Draw the conclusions from a failed attempt that concern all calls."""
        log.info("a call failed: %s", self.sentence(problem))
        if problem.alive:
            self._breaker.succeeded()
        elif key is None:
            self._breaker.pass_on(probe=probe)
        else:
            self._breaker.failed(key, probe=probe)
        wait = problem.retry_after
        if wait is not None and wait > _LONGEST_RETRY_AFTER:
            reason = f"{self._client.endpoint} asks to come back in {wait / 60:.0f} min"
            self.stop(IncompleteError(reason))
        elif wait is not None:
            self._pace.hold(wait)
        if self._breaker.broken:
            self.stop(
                IncompleteError(
                    f"{self._client.endpoint} seems to be down, "
                    f"the last attempt says: {self.sentence(problem)}"
                )
            )

    async def rest(self, seconds: float) -> None:
        """Wait, unless the hearing ends before."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._over.wait()
