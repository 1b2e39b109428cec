"""Asking one prompt: by the journal, by a call under way, or by calls of its own."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace

from karat.data.judgements import Prompt, Reply, Usage
from karat.dispatch.budget import Budget, longest_reply, usage_ahead
from karat.dispatch.journal import Entry, Journal, storable
from karat.dispatch.keys import Keys
from karat.dispatch.limits import Backoff, Breaker, Pace
from karat.dispatch.protocol import Client
from karat.dispatch.recording import Recorder
from karat.dispatch.secrecy import scrub
from karat.dispatch.settings import Settings
from karat.dispatch.turns import Turns
from karat.errors import (
    CallError,
    IncompleteError,
    KaratError,
    OfflineMissError,
    Refused,
    Transient,
)

__all__ = ["Asking", "Stopped"]

log = logging.getLogger("karat")
_LONGEST_RETRY_AFTER = 600
_EXCERPT = 60
# Seconds between two looks at what another process is asking for.
_PEEK = 0.05
# Timeouts after which a process that keeps its turn must have been stopped.
_PATIENCE = 3
# No reply has so many tokens.
_ABSURD = 10**9


class Stopped(Exception):  # noqa: N818
    """The hearing ends; whoever is under way finishes, and nothing new begins."""


class Asking:
    """Gets each prompt its reply, within the limits, and keeps it before giving it.

    Attributes:
        problem: why the hearing ends early, once it does.
        cached: replies that came from the journal.
        budget: what has been called and spent.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        journal: Journal,
        recorder: Recorder,
        keys: Keys,
        turns: Turns,
    ) -> None:
        self.settings = settings
        self.problem: KaratError | None = None
        self.cached = 0
        self.budget = settings.budget or Budget(
            settings.prices, settings.max_calls, settings.max_cost
        )
        self._client = client
        self._journal = journal
        self._recorder = recorder
        self._keys = keys
        self._turns = turns
        self._over = asyncio.Event()
        self._pace = Pace(settings.requests_per_minute)
        self._backoff = Backoff(settings.first_wait, settings.longest_wait)
        # What cannot be given up is waited for; the longest reply is held back for.
        stoppable = getattr(client, "stoppable", True)
        self._timeout = settings.timeout if stoppable else None
        self._longest = settings.reply_tokens or longest_reply(client)
        self._prepare = getattr(client, "prepare", None)
        self._breaker = Breaker(settings.patience, self._backoff, self._rest)
        self._flights: dict[bytes, asyncio.Future[Entry]] = {}
        self._settled: set[bytes] = set()
        self._useless: set[bytes] = set()

    async def reply_to(self, prompt: Prompt) -> tuple[bytes, Reply]:
        """The name of the prompt and its reply; a `CallError` when there is none."""
        key = self._keys.of(prompt)
        if (kept := self._kept(key)) is not None:
            return key, self._given(key, kept)
        if self.settings.offline:
            self.stop(self._miss(key, prompt))
            raise Stopped
        if (flight := self._flights.get(key)) is not None:
            # Shielded: who waits must not take the call from the one who makes it.
            return key, self._given(key, await asyncio.shield(flight))
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            entry = await self._in_turn(key, prompt)
            flight.set_result(entry)
        finally:
            del self._flights[key]
            if not flight.done():
                flight.set_exception(Stopped())
                # Perhaps nobody waits for it; that is no reason to complain.
                flight.exception()
        return key, self._given(key, entry, fresh=key in self._settled)

    async def condemn(self, keys: list[bytes]) -> None:
        """Remember that these replies were of no use."""
        if new := [key for key in keys if key not in self._useless]:
            self._useless.update(new)
            if not self.settings.offline:
                try:
                    await self._recorder.condemn(new)
                except IncompleteError as error:
                    self.stop(error)
                    raise Stopped from None

    def sentence(self, error: CallError) -> str:
        """Why there is no answer, without secrets and, on request, without texts."""
        said = scrub(error.reason if self.settings.no_text else str(error))
        return said or "no reason was given"

    def stop(self, problem: KaratError) -> None:
        """End the hearing: calls under way finish, nothing new begins."""
        if self.problem is None:
            self.problem = problem
        self._over.set()
        self._breaker.let_go()

    def _kept(self, key: bytes) -> Entry | None:
        """What the journal holds, if it is to be used."""
        kept = self._journal.get(key)
        if kept is None or not self._final(key, kept):
            return None
        self.cached += 1
        return kept

    async def _in_turn(self, key: bytes, prompt: Prompt) -> Entry:
        """Call, unless another process on this journal is calling or has called."""
        waits = _PATIENCE * (self.settings.timeout or 0) / _PEEK
        # One that was stopped, and not killed, would keep everyone waiting for ever.
        while not self._turns.take(key) and (waits := waits - 1) > 0:
            await self._rest(_PEEK)
            if self.problem is not None:
                raise Stopped
            if (kept := self._kept(key)) is not None:
                return kept
        try:
            # The other process may have kept its reply just before it was our turn.
            if (kept := self._kept(key)) is not None:
                return kept
            last = self._journal.get(key)
            entry = await self._call(key, prompt, last)
            await self._keep(key, prompt, entry)
            return entry
        finally:
            self._turns.leave(key)

    def _final(self, key: bytes, kept: Entry) -> bool:
        """Whether what the journal holds is to be used, rather than asked for again."""
        if kept.status == "ok" or self.settings.offline or key in self._settled:
            return True
        return kept.status != "transient" and not self.settings.retry_errors

    def _given(self, key: bytes, entry: Entry, *, fresh: bool = False) -> Reply:
        if entry.status in ("ok", "invalid"):
            if entry.status == "invalid":
                self._useless.add(key)
            return entry.reply(cached=not fresh)
        kind = Refused if entry.status == "refused" else Transient
        error = kind(entry.text)
        error.attempts = entry.attempts
        raise error from entry.cause

    async def _keep(self, key: bytes, prompt: Prompt, entry: Entry) -> None:
        try:
            await self._recorder.keep(key, prompt, entry)
        except IncompleteError as error:
            self.stop(error)
            raise Stopped from None
        self._settled.add(key)
        self._useless.discard(key)

    async def _call(self, key: bytes, prompt: Prompt, last: Entry | None) -> Entry:
        """Call until there is an answer, or none to be expected.

        A prompt that failed the last time is a suspect: it may break the server by
        itself, so that its failures say nothing of the endpoint.
        """
        suspect = last is not None and last.status == "transient"
        problem: Transient | None = None
        attempts = 0
        while True:
            try:
                probe = await self._begin(prompt)
            except Stopped:
                if problem is not None and (last is None or suspect):
                    # Remembered, so that the next run can tell who was to blame.
                    entry = self._failed("transient", problem, attempts)
                    await self._keep(key, prompt, entry)
                raise
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
            if attempts >= self.settings.max_attempts:
                return self._failed("transient", problem, attempts)
            await self._rest(self._backoff.wait(attempts, problem.retry_after))

    def _failed(self, status: str, error: CallError, attempts: int) -> Entry:
        return Entry(status, self.sentence(error), attempts, cause=error.__cause__)

    async def _begin(self, prompt: Prompt) -> bool:
        """Wait for leave to make a call; whether it is a probe."""
        probe = await self._breaker.admit()
        await self._rest(self._pace.reserve())
        most = usage_ahead(prompt, self._longest)
        while self.problem is None and self.budget.crowded(most):
            # Calls under way hold back more than they will cost.
            await self._rest(_PEEK)
        if self.problem is None and (refusal := self.budget.refusal(most)):
            self.stop(IncompleteError(refusal))
        if self.problem is not None:
            raise Stopped
        return probe

    async def _once(self, prompt: Prompt) -> Reply:
        ahead = usage_ahead(prompt, self.settings.reply_tokens)
        most = usage_ahead(prompt, self._longest)
        used: Usage | None = None
        if self._prepare is not None:
            self._prepare()
        self.budget.begin(most)
        try:
            async with asyncio.timeout(self._timeout):
                reply = await self._client.complete(prompt)
            told = (reply.usage.prompt_tokens, reply.usage.completion_tokens)
            if not any(told) or max(told) > _ABSURD:
                # A server that does not count is taken at our estimate.
                reply = replace(reply, usage=ahead)
            used = reply.usage
            if self.settings.reply_tokens is None:
                self._longest = max(self._longest, used.completion_tokens)
        except TimeoutError:
            used = ahead
            raise Transient(
                f"{self._client.endpoint} gave no answer within "
                f"{self.settings.timeout:g} s",
                paid=True,
            ) from None
        except Transient as error:
            used = ahead if error.paid else None
            raise
        finally:
            self.budget.settle(most, used)
        return reply

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

    async def _rest(self, seconds: float) -> None:
        """Wait, unless the hearing ends before."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._over.wait()

    def _miss(self, key: bytes, prompt: Prompt) -> OfflineMissError:
        words = " ".join(prompt.user.split())
        excerpt = f"{words[:_EXCERPT]}…" if len(words) > _EXCERPT else words
        shown = "" if self.settings.no_text else f": {scrub(excerpt)!r}"
        return OfflineMissError(
            f"the journal {self.settings.journal} holds no reply of "
            f"{self._client.model!r} at {self._client.endpoint} to prompt "
            f"{prompt.name!r} (version {prompt.version}, {key.hex()[:12]}){shown}; "
            "run once without offline to get it"
        )
