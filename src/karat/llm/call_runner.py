"""The reply to a prompt: from the journal, or by calls within the limits of a run."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from karat.data.judgements import Prompt, Reply, Usage
from karat.errors import (
    CallError,
    IncompleteError,
    KaratError,
    OfflineMissError,
    Refused,
    Transient,
)
from karat.llm.credentials import redact
from karat.llm.journal import Entry, Journal, storable
from karat.llm.limits import (
    REPLY_LIMITS,
    REPLY_TOKENS,
    Backoff,
    Budget,
    CircuitBreaker,
    RateLimiter,
    estimate_usage,
)
from karat.llm.settings import Client, Settings
from karat.llm.stored_replies import JournalWriter, ProcessLock, StoredReplies

log = logging.getLogger("karat")
_MAX_RETRY_AFTER = 600
_LONG_WAIT = 60
# Seconds between two checks whether the budget allows another call, or for the reply
# that another process asks for.
_POLL_SECONDS = 0.05
# No reply has this many tokens; SQLite could not store much more.
_MAX_TOKENS = 10**9
_EXCERPT = 60
# After this many timeouts, a process that keeps a lock must have been suspended.
_LOCK_TIMEOUTS = 3
_TIMEOUT = 120


class Stopped(Exception):  # noqa: N818
    """The run stops: calls under way finish, and no call begins."""


class Calls:
    """Gets the reply to each prompt, and stores it before it is returned.

    It makes calls, waits between them, and stops all of them when a limit is reached.

    Attributes:
        problem: why the run stops early, once it does.
        budget: counts calls, tokens and cost.
        cached: how many replies came from the journal.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        journal: Journal,
        stored: StoredReplies,
        writer: JournalWriter,
        lock: ProcessLock,
    ) -> None:
        self.problem: KaratError | None = None
        self.budget = settings.budget or Budget(
            settings.prices, settings.max_calls, settings.max_cost
        )
        self.cached = 0
        self._client = client
        self._settings = settings
        self._journal = journal
        self._stored = stored
        self._writer = writer
        self._lock = lock
        self._under_way: dict[bytes, asyncio.Future[Entry]] = {}
        self._asked: set[bytes] = set()
        self._invalid: set[bytes] = set()
        # Whether the model has answered a prompt, now or in an earlier run.
        self._answered = False
        self._stopped = asyncio.Event()
        self._rate = RateLimiter(settings.requests_per_minute)
        self._backoff = Backoff(settings.first_wait, settings.longest_wait)
        self._breaker = CircuitBreaker(settings.patience, self._backoff, self.wait)
        # A call that cannot be stopped has no time limit.
        stoppable = getattr(client, "stoppable", True)
        self._timeout = settings.timeout if stoppable else None
        limits = [client.parameters.get(name) for name in REPLY_LIMITS]
        self._max_reply_tokens = next(
            (limit for limit in limits if type(limit) is int), REPLY_TOKENS
        )
        # The longest reply so far to prompts of each name.
        self._longest_replies: dict[str, int] = {}
        self._cut_off: set[bytes] = set()
        self._prepare: Callable[[], None] | None = getattr(client, "prepare", None)
        self._preparing = asyncio.Lock()

    def stop(self, problem: KaratError) -> None:
        """Stop the run: calls under way finish, and no call begins."""
        if self.problem is None:
            self.problem = problem
        self._stopped.set()
        self._breaker.release_all()

    async def wait(self, seconds: float) -> None:
        """Wait this long, or until the run stops."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopped.wait()

    def reason(self, error: CallError) -> str:
        """Why there is no answer, without secrets and, with `no_text`, texts."""
        text = redact(error.reason if self._settings.no_text else str(error))
        return text or "no reason was given"

    async def reply(self, prompt: Prompt) -> tuple[bytes, Reply]:
        """The key of the prompt and its reply; a `CallError` when there is none."""
        key = self._stored.keys.of(prompt)
        if (stored := self._find(key, prompt)) is not None:
            return stored[0], self._to_reply(*stored)
        if self._settings.offline:
            self.stop(self._missing(key, prompt))
            raise Stopped
        if (call := self._under_way.get(key)) is not None:
            # Shielded: cancelling one who waits must not cancel the call of another.
            return key, self._to_reply(key, await asyncio.shield(call))
        call = self._under_way[key] = asyncio.get_running_loop().create_future()
        try:
            entry = await self._locked(key, prompt)
            call.set_result(entry)
        finally:
            del self._under_way[key]
            if not call.done():
                call.set_exception(Stopped())
                # Marked as retrieved, since nobody may be waiting for it.
                call.exception()
        return key, self._to_reply(key, entry, fresh=key in self._asked)

    async def mark_invalid(self, keys: list[bytes]) -> None:
        """Mark replies that no judge could use."""
        if new := [key for key in keys if key not in self._invalid]:
            self._invalid.update(new)
            if not self._settings.offline:
                await self._write(self._writer.mark_invalid(new))

    def _find(self, key: bytes, prompt: Prompt) -> tuple[bytes, Entry] | None:
        """The entry in the journal and its key, if it is to be used."""
        stored = self._stored.find(key, prompt, asked=key in self._asked)
        if stored is not None:
            self.cached += 1
            self._answered |= stored[1].status == "ok"
        return stored

    def _to_reply(self, key: bytes, entry: Entry, *, fresh: bool = False) -> Reply:
        if entry.status in ("ok", "invalid"):
            if entry.status == "invalid":
                self._invalid.add(key)
            return entry.reply(cached=not fresh)
        kind = Refused if entry.status == "refused" else Transient
        error = kind(entry.text)
        error.attempts = entry.attempts
        raise error from entry.cause

    def _missing(self, key: bytes, prompt: Prompt) -> OfflineMissError:
        words = " ".join(prompt.user.split())
        excerpt = f"{words[:_EXCERPT]}…" if len(words) > _EXCERPT else words
        shown = "" if self._settings.no_text else f": {redact(excerpt)!r}"
        return OfflineMissError(
            f"the journal {self._settings.journal} holds no reply of "
            f"{self._client.model!r} at {self._client.endpoint} to prompt "
            f"{prompt.name!r} (version {prompt.version}, {key.hex()[:12]}){shown}; "
            "run once without offline to get it"
        )

    async def _locked(self, key: bytes, prompt: Prompt) -> Entry:
        """Call, unless another process on this journal is calling or has called."""
        timeout = self._settings.timeout or _TIMEOUT
        checks = _LOCK_TIMEOUTS * timeout / _POLL_SECONDS
        # A process that is suspended, not killed, would keep its lock forever.
        while not self._lock.acquire(key) and (checks := checks - 1) > 0:
            await self.wait(_POLL_SECONDS)
            if self.problem is not None:
                raise Stopped
            if (stored := self._find(key, prompt)) is not None:
                return stored[1]
        try:
            # The other process may have stored its reply just before.
            if (stored := self._find(key, prompt)) is not None:
                return stored[1]
            entry = await self._call(key, prompt)
            await self._store(key, prompt, entry)
            return entry
        finally:
            self._lock.release(key)

    async def _store(self, key: bytes, prompt: Prompt, entry: Entry) -> None:
        await self._write(self._writer.write(key, prompt, entry))
        self._asked.add(key)
        self._invalid.discard(key)

    async def _write(self, writing: Awaitable[None]) -> None:
        try:
            await writing
        except IncompleteError as error:
            self.stop(error)
            raise Stopped from None

    async def _call(self, key: bytes, prompt: Prompt) -> Entry:
        """Call until there is an answer, or no more attempts are left.

        A prompt that failed in the last run is suspect: it may break the server by
        itself, so its failures do not count as failures of the endpoint.

        Raises:
            Stopped: the run stops before.
        """
        last = self._journal.get(key)
        suspect = last is not None and last.status == "transient"
        failed: Entry | None = None
        attempts, billed = 0, Usage()
        expected = estimate_usage(prompt, self._settings.reply_tokens)
        while True:
            try:
                probe, reserved = await self._begin(prompt.name, expected)
            except Stopped:
                if failed is not None and (last is None or suspect):
                    # Stored, so that the next run knows which prompts failed before.
                    await self._store(key, prompt, failed)
                raise
            attempts += 1
            try:
                reply = await self._once(prompt, expected, reserved)
            except (Refused, Transient) as error:
                billed += Usage(*error.tokens or (0, 0))
                status = "refused" if isinstance(error, Refused) else "transient"
                facts = (status, self.reason(error), attempts, billed)
                failed, problem = Entry(*facts, cause=error.__cause__), error
            else:
                self._breaker.succeeded()
                self._answered = True
                self._count_cut_off(key, reply.usage.completion_tokens, cut=reply.cut)
                text, names = storable(reply.text), (reply.id, reply.model)
                return Entry("ok", text, attempts, reply.usage, *names, reply.cut)
            if isinstance(problem, Refused):
                self._breaker.succeeded()
                received = problem.tokens[1] if problem.tokens else 0
                self._count_cut_off(key, received, cut=problem.cut)
                if problem.always and not (problem.unless_answered and self._answered):
                    self.stop(Refused(self.reason(problem), always=True))
                    raise Stopped
                return failed
            self._record_failure(None if suspect else key, problem, probe=probe)
            if self._breaker.open and not suspect:
                continue
            if attempts >= self._settings.max_attempts:
                return failed
            await self.wait(self._backoff.wait(attempts, problem.retry_after))

    async def _begin(self, name: str, expected: Usage) -> tuple[bool, Usage]:
        """Wait until a call may be made, and reserve its cost.

        Args:
            name: the name of the prompt.
            expected: the tokens that a call is expected to use.

        Returns:
            Whether the call is a probe, and the tokens that are reserved for it.
        """
        async with self._preparing:
            # Before the time of a call is measured, and in a thread: Ctrl-C during an
            # import would otherwise show its traceback.
            if self._prepare is not None:
                await asyncio.to_thread(self._prepare)
                self._prepare = None
        probe = await self._breaker.admit()
        await self.wait(self._rate.reserve())
        while self.problem is None:
            # The longest reply so far, or the longest there may be.
            most = self._settings.reply_tokens
            if most is None:
                most = self._longest_replies.get(name, self._max_reply_tokens)
            reserved = Usage(expected.prompt_tokens, most)
            refusal = self.budget.refusal(reserved)
            if refusal is not None and not self.budget.must_wait():
                if name not in self._longest_replies:
                    # A reply is hardly ever as long as it may be; a single one tells.
                    reserved = expected
                    refusal = self.budget.refusal(reserved)
                if refusal is not None:
                    self.stop(IncompleteError(refusal))
            if refusal is None:
                self.budget.begin(reserved)
                return probe, reserved
            await self.wait(_POLL_SECONDS)
        raise Stopped

    async def _once(self, prompt: Prompt, expected: Usage, reserved: Usage) -> Reply:
        used: Usage | None = None
        try:
            async with asyncio.timeout(self._timeout):
                reply = await self._client.complete(prompt)
            counts = (reply.usage.prompt_tokens, reply.usage.completion_tokens)
            if not any(counts) or max(counts) > _MAX_TOKENS:
                # The server does not count: use the estimate.
                reply = replace(reply, usage=expected)
            used = reply.usage
        except TimeoutError:
            used = expected
            raise Transient(
                f"{self._client.endpoint} gave no answer within "
                f"{self._settings.timeout:g} s",
                paid=True,
                tokens=(used.prompt_tokens, used.completion_tokens),
            ) from None
        except CallError as error:
            if error.tokens is None and isinstance(error, Transient) and error.paid:
                error.tokens = (expected.prompt_tokens, expected.completion_tokens)
            if error.tokens is not None:
                used = Usage(*error.tokens)
            raise
        finally:
            self.budget.settle(reserved, used)
            if used is not None:
                longest = self._longest_replies.get(prompt.name, 0)
                size = max(longest, used.completion_tokens)
                self._longest_replies[prompt.name] = size
        return reply

    def _count_cut_off(self, key: bytes, tokens: int, *, cut: bool) -> None:
        """Stop when the replies to several prompts in a row were cut off."""
        if not cut:
            self._cut_off.clear()
            return
        self._cut_off.add(key)
        if (count := len(self._cut_off)) >= self._settings.patience:
            at = f" at {tokens:,} tokens" if tokens else ""
            self.stop(
                IncompleteError(
                    f"{count} replies in a row were cut off{at}; raise --max-tokens, "
                    "which pays again only for what was cut off"
                )
            )

    def _record_failure(
        self, key: bytes | None, problem: Transient, *, probe: bool
    ) -> None:
        """Slow down or stop all calls after a failed attempt, if it calls for that."""
        endpoint, reason = self._client.endpoint, self.reason(problem)
        log.info("a call failed: %s", reason)
        if problem.alive:
            self._breaker.succeeded()
        else:
            self._breaker.failed(key, probe=probe)
        wait = problem.retry_after
        if wait is not None and wait > _MAX_RETRY_AFTER:
            later = f"{endpoint} asks to come back in {wait / 60:.0f} min"
            self.stop(IncompleteError(later))
        elif wait is not None and self._rate.pause(wait) and wait >= _LONG_WAIT:
            asks = "%s asks to wait for %.0f min; nothing is asked until then"
            log.warning(asks, endpoint, wait / 60)
        if self._breaker.broken:
            down = f"{endpoint} seems to be down, the last attempt says: {reason}"
            self.stop(IncompleteError(down))
