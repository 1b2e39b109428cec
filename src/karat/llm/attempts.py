"""The calls for one prompt until it is answered, within the limits of the run."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from karat.data.judgements import Prompt, Reply, Usage
from karat.errors import CallError, IncompleteError, KaratError, Refused, Transient
from karat.llm.budget import Budget, estimate_usage, max_reply_tokens
from karat.llm.journal import Entry, storable
from karat.llm.limits import Backoff, CircuitBreaker, RateLimiter
from karat.llm.protocol import Client
from karat.llm.redaction import redact
from karat.llm.run_options import Settings

__all__ = ["Attempts", "Stopped"]

log = logging.getLogger("karat")
_MAX_RETRY_AFTER = 600
_LONG_WAIT = 60
# Seconds between two checks whether the budget allows another call.
_POLL_SECONDS = 0.05
# No reply has this many tokens; SQLite could not store much more.
_MAX_TOKENS = 10**9


class Stopped(Exception):  # noqa: N818
    """The run stops: calls under way finish, and no call begins.

    Attributes:
        entry: the last failure of the prompt, if there was one.
    """

    def __init__(self, entry: Entry | None = None) -> None:
        self.entry = entry
        super().__init__()


class Attempts:
    """Makes calls, waits between them, and stops all of them when a limit is reached.

    Attributes:
        problem: why the run stops early, once it does.
        answered: whether the model has answered a prompt, now or in an earlier run.
        budget: counts calls, tokens and cost.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self.problem: KaratError | None = None
        self.answered = False
        self.budget = settings.budget or Budget(
            settings.prices, settings.max_calls, settings.max_cost
        )
        self._client = client
        self._settings = settings
        self._stopped = asyncio.Event()
        self._rate = RateLimiter(settings.requests_per_minute)
        self._backoff = Backoff(settings.first_wait, settings.longest_wait)
        self._breaker = CircuitBreaker(settings.patience, self._backoff, self.wait)
        # A call that cannot be stopped has no time limit.
        stoppable = getattr(client, "stoppable", True)
        self._timeout = settings.timeout if stoppable else None
        self._max_reply_tokens = max_reply_tokens(client)
        # The longest reply so far to prompts of each name.
        self._longest_replies: dict[str, int] = {}
        self._cut_off: set[bytes] = set()
        self._prepare: Callable[[], None] | None = getattr(client, "prepare", None)
        self._preparing = asyncio.Lock()

    async def make(self, key: bytes, prompt: Prompt, *, suspect: bool) -> Entry:
        """Call until there is an answer, or no more attempts are left.

        A prompt that failed in the last run is suspect: it may break the server by
        itself, so its failures do not count as failures of the endpoint.

        Raises:
            Stopped: the run stops before; it holds the last failure, if any.
        """
        problem: Transient | None = None
        attempts, billed = 0, Usage()
        expected = estimate_usage(prompt, self._settings.reply_tokens)
        while True:
            try:
                probe, reserved = await self._begin(prompt.name, expected)
            except Stopped:
                if problem is None:
                    raise
                entry = self._failed("transient", problem, attempts, billed)
                raise Stopped(entry) from None
            attempts += 1
            try:
                reply = await self._once(prompt, expected, reserved)
            except Refused as error:
                self._breaker.succeeded()
                self._count_cut_off(key, error.tokens, cut=error.cut)
                if error.always and not (error.unless_answered and self.answered):
                    self.stop(Refused(self.reason(error), always=True))
                    raise Stopped from None
                billed += Usage(*error.tokens or (0, 0))
                return self._failed("refused", error, attempts, billed)
            except Transient as error:
                problem = error
                billed += Usage(*error.tokens or (0, 0))
            else:
                self._breaker.succeeded()
                self.answered = True
                usage = reply.usage
                tokens = (usage.prompt_tokens, usage.completion_tokens)
                self._count_cut_off(key, tokens, cut=reply.cut)
                facts = (usage, reply.id, reply.model, reply.cut)
                return Entry("ok", storable(reply.text), attempts, *facts)
            self._record_failure(None if suspect else key, problem, probe=probe)
            if self._breaker.open and not suspect:
                continue
            if attempts >= self._settings.max_attempts:
                return self._failed("transient", problem, attempts, billed)
            await self.wait(self._backoff.wait(attempts, problem.retry_after))

    def _failed(
        self, status: str, error: CallError, attempts: int, usage: Usage
    ) -> Entry:
        reason = self.reason(error)
        return Entry(status, reason, attempts, usage, cause=error.__cause__)

    def _count_cut_off(
        self, key: bytes, tokens: tuple[int, int] | None, *, cut: bool
    ) -> None:
        """Stop when the replies to several prompts in a row were cut off."""
        if not cut:
            self._cut_off.clear()
            return
        self._cut_off.add(key)
        if (count := len(self._cut_off)) >= self._settings.patience:
            at = f" at {tokens[1]:,} tokens" if tokens and tokens[1] else ""
            self.stop(
                IncompleteError(
                    f"{count} replies in a row were cut off{at}; raise --max-tokens, "
                    "which pays again only for what was cut off"
                )
            )

    def reason(self, error: CallError) -> str:
        """Why there is no answer, without secrets and, with `no_text`, texts."""
        text = redact(error.reason if self._settings.no_text else str(error))
        return text or "no reason was given"

    def stop(self, problem: KaratError) -> None:
        """Stop the run: calls under way finish, and no call begins."""
        if self.problem is None:
            self.problem = problem
        self._stopped.set()
        self._breaker.release_all()

    async def _begin(self, name: str, expected: Usage) -> tuple[bool, Usage]:
        """Wait until a call may be made, and reserve its cost.

        Args:
            name: the name of the prompt.
            expected: the tokens that a call is expected to use.

        Returns:
            Whether the call is a probe, and the tokens that are reserved for it.
        """
        await self._prepare_client()
        probe = await self._breaker.admit()
        await self.wait(self._rate.reserve())
        while self.problem is None:
            reserved = Usage(expected.prompt_tokens, self._reply_limit(name))
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

    def _reply_limit(self, name: str) -> int:
        """The tokens to reserve for a reply: the longest so far, or the limit."""
        if self._settings.reply_tokens is not None:
            return self._settings.reply_tokens
        return self._longest_replies.get(name, self._max_reply_tokens)

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

    async def _prepare_client(self) -> None:
        """Let the client load what it needs, before the time of a call is measured.

        In a thread: Ctrl-C during an import would otherwise show its traceback.
        """
        async with self._preparing:
            if self._prepare is not None:
                await asyncio.to_thread(self._prepare)
                self._prepare = None

    def _record_failure(
        self, key: bytes | None, problem: Transient, *, probe: bool
    ) -> None:
        """Slow down or stop all calls after a failed attempt, if it calls for that."""
        log.info("a call failed: %s", self.reason(problem))
        if problem.alive:
            self._breaker.succeeded()
        elif key is None:
            self._breaker.inconclusive(probe=probe)
        else:
            self._breaker.failed(key, probe=probe)
        wait = problem.retry_after
        if wait is not None and wait > _MAX_RETRY_AFTER:
            reason = f"{self._client.endpoint} asks to come back in {wait / 60:.0f} min"
            self.stop(IncompleteError(reason))
        elif wait is not None and self._rate.pause(wait) and wait >= _LONG_WAIT:
            log.warning(
                "%s asks to wait for %.0f min; nothing is asked until then",
                self._client.endpoint,
                wait / 60,
            )
        if self._breaker.broken:
            self.stop(
                IncompleteError(
                    f"{self._client.endpoint} seems to be down, "
                    f"the last attempt says: {self.reason(problem)}"
                )
            )

    async def wait(self, seconds: float) -> None:
        """Wait this long, or until the run stops."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopped.wait()
