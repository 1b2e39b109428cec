"""Running many jobs at once, each a conversation with a model."""

import asyncio
import logging
import time
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

from karat.data.judgements import (
    Conversation,
    Failure,
    ParallelConversation,
    Prompt,
    Reply,
    Usage,
)
from karat.data.tables import counted
from karat.errors import (
    CallError,
    IncompleteError,
    InvalidReply,
    KaratError,
    OfflineMissError,
    Refused,
    Transient,
)
from karat.llm.credentials import redact
from karat.llm.http import check_endpoint
from karat.llm.journal import (
    Entry,
    Journal,
    ProcessLock,
    Replies,
    reply_limit,
    storable,
)
from karat.llm.limits import (
    Backoff,
    Budget,
    CallSizes,
    Client,
    EndpointHealth,
    Progress,
    RateLimiter,
    Settings,
    Stage,
    estimate_usage,
)

T = TypeVar("T")
Job: TypeAlias = Callable[[], Conversation[T] | ParallelConversation[T]]
log = logging.getLogger("karat")
# Rows from the journal take no time; others on the event loop must not wait for all.
_ROWS_BETWEEN_YIELDS = 256
_MAX_RETRY_AFTER = 600
_LONG_WAIT = 60
# Seconds between two checks for the reply that another process asks for.
_POLL_SECONDS = 0.05
# No reply has this many tokens; SQLite could not store much more.
_MAX_TOKENS = 10**9
# After this many timeouts, a process that keeps a lock must have been suspended.
_LOCK_TIMEOUTS = 3
_TIMEOUT = 120


class Stopped(Exception):  # noqa: N818
    """The run stops: calls under way finish, and no call begins."""


class Results(list[T | Failure]):
    """The result of each job, in order, and what its replies cost.

    Replies from the journal count like new ones, so that a run that was stopped and
    continued reports the same as one that was not.
    """

    def __init__(
        self,
        results: Iterable[T | Failure] = (),
        usage: Sequence[Usage] = (),
        models: Iterable[str] = (),
    ) -> None:
        super().__init__(results)
        self.usage = usage
        self.models = frozenset(models)


async def run_jobs(
    jobs: Sequence[Job[T]],
    client: Client,
    settings: Settings | None = None,
    stage: Stage | None = None,
    queries: Sequence[str] = (),
) -> Results[T]:
    """The result of each job, in order; a `Failure` where a job could not be done.

    Equal prompts are sent once. Every reply is in the journal before the job receives
    it: if the run stops for any reason, the same call continues from there.
    """
    settings = settings or Settings()
    check_endpoint(client.endpoint)
    async with AsyncExitStack() as stack:
        path, offline = settings.journal, settings.offline
        journal = stack.enter_context(
            Journal(path, no_text=settings.no_text, read_only=offline)
        )
        if (session := getattr(client, "session", None)) is not None:
            await stack.enter_async_context(session())
        replies = Replies(journal, client, settings)
        await stack.enter_async_context(replies)
        lock = stack.enter_context(ProcessLock(None if offline else path))
        calls = Calls(client, settings, replies, lock)
        keeps = path is not None and getattr(client, "persistent", True)
        return await JobRunner(jobs, calls, settings, stage, queries, keeps).run()


@dataclass(eq=False)
class JobRunner(Generic[T]):
    """Runs all jobs, as many at a time as there may be calls."""

    _jobs: Sequence[Job[T]]
    _calls: "Calls"
    _settings: Settings
    _stage: Stage | None = None
    _queries: Sequence[str] = ()
    # Whether another process finds the replies again.
    _keeps_replies: bool = False
    _results: dict[int, T | Failure] = field(default_factory=dict)
    _usage: dict[int, Usage] = field(default_factory=dict)
    _models: set[str] = field(default_factory=set)
    _missing: list[int] = field(default_factory=list)
    _failed: int = 0
    _with_calls: int = 0
    _started: float = field(default_factory=time.monotonic)

    async def run(self) -> Results[T]:
        """The result of each job, or why the run stopped early."""
        order = range(len(self._jobs))
        rows = iter(order)
        if self._stage is not None:
            # The first reply may take long.
            self._report()
        count = min(self._settings.concurrency, len(order))
        workers = [asyncio.create_task(self._work(rows)) for _ in range(count)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        calls = self._calls
        if self._missing:
            raise self._offline_miss(min(self._missing))
        # A wrong key may be why nothing at all was answered.
        answered = calls.replies.answered
        problem = calls.problem or (None if answered else calls.fatal)
        if isinstance(problem, IncompleteError):
            raise IncompleteError(
                problem.reason,
                done=len(self._results) - self._failed,
                total=len(order),
                failed=self._failed,
                kept=self._keeps_replies,
                during=str(self._stage or ""),
                lost=self._calls.replies.lost,
            )
        if problem is not None:
            raise problem
        results = map(self._results.__getitem__, order)
        usage = [*map(self._usage.__getitem__, order)]
        return Results(results, usage, self._models)

    def _offline_miss(self, first: int) -> OfflineMissError:
        """How many jobs lack a reply while no call may be made, and which is first."""
        stage = (self._stage or Stage()).of(len(self._jobs), len(self._missing))
        endpoint, model, _ = self._calls.replies.keys.source
        named = self._queries[first : first + 1]
        query = f", the first for query {named[0]!r}" if named else ""
        return OfflineMissError(
            f"offline, but {stage} takes replies of {model!r} at {endpoint} that are "
            f"not in {self._settings.journal}{query}; run once without offline to get "
            "them"
        )

    async def _work(self, rows: Iterator[int]) -> None:
        for row in rows:
            if self._calls.problem is not None:
                return
            calls = self._calls.budget.calls
            try:
                result = await self.converse(row)
            except Stopped:
                return
            except OfflineMissError:
                self._missing.append(row)
                continue
            except IncompleteError as error:
                self._calls.stop(error)
                return
            self._with_calls += self._calls.budget.calls > calls
            self._results[row] = result
            if isinstance(result, Failure):
                self._count_failure(result)
            self._report()
            if row % _ROWS_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)

    async def converse(self, row: int) -> T | Failure:
        """The result of one job, or why there is none."""
        conversation: Generator[Any, Any, T] = self._jobs[row]()
        exchanges: list[tuple[Prompt, bytes, Reply]] = []
        try:
            prompt = next(conversation)
            while True:
                several = prompt if isinstance(prompt, list) else [prompt]
                try:
                    replies = await self._ask(several, exchanges)
                except CallError as error:
                    prompt = conversation.throw(error)
                else:
                    received = replies if several is prompt else replies[0]
                    prompt = conversation.send(received)
        except StopIteration as end:
            result: T = end.value
            return result
        except InvalidReply as error:
            # By default the replies to the last prompt, and to the one it repairs.
            invalid = [
                key
                for prompt, key, _ in exchanges
                if prompt in error.prompts
                or (not error.prompts and exchanges[-1][0].repairs(prompt))
            ]
            await self._calls.mark_invalid(invalid)
            reason = self._calls.reason(error)
            failure = Failure(reason, "invalid", max(1, len(invalid)))
            if error.result is None:
                return failure
            # In part it is a result, and as a whole a row that failed.
            self._count_failure(failure)
            return error.result  # type: ignore[return-value]
        except CallError as error:
            kind = "refused" if isinstance(error, Refused) else "transient"
            return Failure(self._calls.reason(error), kind, error.attempts)
        finally:
            conversation.close()
            self._usage[row] = Usage()
            for *_, reply in exchanges:
                self._usage[row] += replace(reply.usage, replies=1)
                self._models.update([reply.model] if reply.model else ())

    async def _ask(
        self, prompts: list[Prompt], exchanges: list[tuple[Prompt, bytes, Reply]]
    ) -> list[Reply]:
        """Ask side by side; the first that fails is raised when all have ended."""
        calls = map(self._calls.reply, prompts)
        if len(prompts) == 1:
            answers: list[Any] = [await next(calls)]
        else:
            answers = await asyncio.gather(*calls, return_exceptions=True)
        replies: list[Reply] = []
        problems: list[BaseException] = []
        for prompt, answer in zip(prompts, answers, strict=True):
            if isinstance(answer, BaseException):
                problems.append(answer)
                continue
            key, entry = answer
            if entry.status in ("ok", "invalid"):
                exchanges.append((prompt, key, entry.reply))
                replies.append(entry.reply)
                continue
            kind = Refused if entry.status == "refused" else Transient
            error = kind(entry.reply.text)
            error.attempts, error.__cause__ = entry.attempts, entry.cause
            problems.append(error)
        if problems:
            raise problems[0]
        return replies

    def _count_failure(self, failure: Failure) -> None:
        self._failed += 1
        limit = self._settings.max_failures
        if limit is not None and self._failed > limit:
            text = f"{counted(self._failed, 'row')} failed, and {limit} may"
            last = f"(the last one: {failure.reason})"
            self._calls.stop(IncompleteError(f"{text} {last}"))

    def _report(self) -> None:
        if self._settings.progress is None:
            return
        budget, done, total = self._calls.budget, len(self._results), len(self._jobs)
        elapsed = time.monotonic() - self._started
        left = elapsed / self._with_calls * (total - done) if self._with_calls else None
        self._settings.progress(
            Progress(
                done,
                total,
                failed=self._failed,
                calls=budget.calls,
                cached=self._calls.replies.cached,
                prompt_tokens=budget.prompt_tokens,
                completion_tokens=budget.completion_tokens,
                cost=budget.cost,
                eta=left,
                stage=self._stage or Stage(),
            )
        )


class Calls:
    """Gets the reply to each prompt, and stores it before it is returned."""

    def __init__(
        self, client: Client, settings: Settings, replies: Replies, lock: ProcessLock
    ) -> None:
        # Why the run stops early, once it does.
        self.problem: KaratError | None = None
        self.budget = settings.budget or Budget(
            settings.prices, settings.max_calls, settings.max_cost
        )
        self.replies = replies
        self._client, self._settings, self._lock = client, settings, lock
        # Also holds back the calls of a job that asks several prompts at once.
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._under_way: dict[bytes, asyncio.Future[Entry]] = {}
        self.fatal: Refused | None = None
        self._health = EndpointHealth(settings.patience)
        self._turn = asyncio.Lock()
        self._stopped = asyncio.Event()
        self._settled = asyncio.Event()
        self._rate = RateLimiter(settings.requests_per_minute)
        self._backoff = Backoff(settings.first_wait, settings.longest_wait)
        # A call that cannot be stopped has no time limit.
        stoppable = getattr(client, "stoppable", True)
        self._timeout = settings.timeout if stoppable else None
        self._sizes = CallSizes(reply_limit(client.parameters), settings.reply_tokens)
        self._prepare: Callable[[], None] | None = getattr(client, "prepare", None)
        self._preparing = asyncio.Lock()

    def stop(self, problem: KaratError) -> None:
        """Stop the run: calls under way finish, and no call begins."""
        self.problem = self.problem or problem
        self._stopped.set()
        self._settled.set()

    async def wait(self, seconds: float, until: asyncio.Event | None = None) -> None:
        """Wait this long, or until the run stops, or something else has happened."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await (until or self._stopped).wait()

    def reason(self, error: CallError) -> str:
        """Why there is no answer, without secrets and, with `no_text`, texts."""
        text = redact(error.reason if self._settings.no_text else str(error))
        return text or "no reason was given"

    async def reply(self, prompt: Prompt) -> tuple[bytes, Entry]:
        """The key of the prompt, and what came of it."""
        key = self.replies.keys.of(prompt)
        entry = self.replies.find(key)
        if entry is None and self._settings.offline:
            raise OfflineMissError(prompt.name)
        if entry is None and (call := self._under_way.get(key)) is not None:
            # Shielded: cancelling one who waits must not cancel the call of another.
            entry = await asyncio.shield(call)
            entry = replace(entry, reply=replace(entry.reply, cached=True))
        return key, entry or await self._ask(key, prompt)

    async def mark_invalid(self, keys: list[bytes]) -> None:
        """Mark replies that no judge could use."""
        if keys and not self._settings.offline:
            await self.replies.mark_invalid(keys)

    async def _ask(self, key: bytes, prompt: Prompt) -> Entry:
        """Call, unless another process on this journal is calling or has called.

        Whoever else waits for this prompt in this run receives the same entry.
        """
        call = self._under_way[key] = asyncio.get_running_loop().create_future()
        locked = False
        # A process that is suspended, not killed, would keep its lock forever.
        checks = _LOCK_TIMEOUTS * (self._settings.timeout or _TIMEOUT) / _POLL_SECONDS
        try:
            async with self._slots:
                while not (locked := self._lock.acquire(key)) and checks > 0:
                    checks -= 1
                    await self.wait(_POLL_SECONDS)
                    if self.problem is not None:
                        raise Stopped
                    if (entry := self.replies.find(key)) is not None:
                        break
                else:
                    # The other process may have stored its reply just before.
                    entry = self.replies.find(key) or await self._call(key, prompt)
            call.set_result(entry)
            return entry
        finally:
            if locked:
                self._lock.release(key)
            del self._under_way[key]
            if not call.done():
                call.set_exception(Stopped())
                # Marked as retrieved, since nobody may be waiting for it.
                call.exception()

    async def _call(self, key: bytes, prompt: Prompt) -> Entry:
        """Call until there is an answer, or no more attempts are left.

        A prompt that failed in the last run is suspect: it may break the server by
        itself, so its failures do not count as failures of the endpoint.
        """
        last = self.replies.get(key)
        suspect = last is not None and last.status == "transient"
        failed: Entry | None = None
        attempts, billed = 0, Usage()
        while True:
            try:
                result = await self._attempt(prompt, None if suspect else key)
            except Stopped:
                if failed is not None and (last is None or suspect):
                    # Stored, so that the next run knows which prompts failed before.
                    await self.replies.write(key, prompt, failed)
                raise
            attempts += 1
            if isinstance(result, Reply):
                self.replies.answered = True
                self._count_cut_off(key, result.usage.completion_tokens, cut=result.cut)
                reply = replace(result, text=storable(result.text))
                entry = Entry("ok", reply, attempts)
                return await self.replies.write(key, prompt, entry)
            billed += Usage(*result.tokens or (0, 0))
            reason = Reply(self.reason(result), billed)
            failed = Entry("transient", reason, attempts, cause=result.__cause__)
            if isinstance(result, Refused):
                reason = replace(reason, cut=result.cut)
                failed = replace(failed, status="refused", reply=reason)
                if self._is_final(key, result):
                    await self.replies.write(key, prompt, failed)
                return failed
            if self._health.is_down and not suspect:
                continue
            if attempts >= self._settings.max_attempts:
                return await self.replies.write(key, prompt, failed)
            await self.wait(self._backoff.wait(attempts, result.retry_after))

    async def _attempt(
        self, prompt: Prompt, key: bytes | None
    ) -> Reply | Refused | Transient:
        """One call; an endpoint that seems to be down is tried by one at a time."""
        down = self._health.is_down
        async with self._turn if down else nullcontext():
            if down and self._health.is_down:
                await self.wait(self._backoff.wait(self._health.tries + 3))
            reserved, used = await self._begin(prompt), None
            try:
                result, used = await self._complete(prompt)
            finally:
                self.budget.settle(reserved, used)
                self._settled.set()
                self._settled = asyncio.Event()
            if used is not None:
                self._sizes.learn(prompt, used)
            if isinstance(result, Transient):
                self._count_failure(key, result, down=down)
            else:
                self._health.responded()
        return result

    async def _begin(self, prompt: Prompt) -> Usage:
        """Wait until a call may be made; the tokens that are reserved for it."""
        async with self._preparing:
            # Before the time of a call is measured, and in a thread: Ctrl-C during an
            # import would otherwise show its traceback.
            if self._prepare is not None:
                await asyncio.to_thread(self._prepare)
                self._prepare = None
        await self.wait(self._rate.reserve())
        while self.problem is None:
            reserved = self.budget.reserve(*self._sizes.of(prompt))
            if isinstance(reserved, Usage):
                return reserved
            if reserved is not None:
                self.stop(IncompleteError(reserved))
            await self.wait(_POLL_SECONDS, self._settled)
        raise Stopped

    async def _complete(
        self, prompt: Prompt
    ) -> tuple[Reply | Refused | Transient, Usage | None]:
        """What the client answers, and what that is billed, if it is."""
        expected = estimate_usage(prompt, self._settings.reply_tokens)
        problem: Refused | Transient
        try:
            async with asyncio.timeout(self._timeout):
                reply = await self._client.complete(prompt)
        except TimeoutError:
            late = f"gave no answer within {self._settings.timeout:g} s"
            problem = Transient(f"{self._client.endpoint} {late}", paid=True)
        except (Refused, Transient) as error:
            problem = error
        else:
            sent, received = reply.usage.prompt_tokens, reply.usage.completion_tokens
            if sent == received == 0 or max(sent, received) > _MAX_TOKENS:
                # The server does not count: use the estimate.
                reply = replace(reply, usage=expected)
            return reply, reply.usage
        if problem.tokens is None and isinstance(problem, Transient) and problem.paid:
            problem.tokens = (expected.prompt_tokens, expected.completion_tokens)
        return problem, Usage(*problem.tokens) if problem.tokens else None

    def _is_final(self, key: bytes, problem: Refused) -> bool:
        """Whether a refusal is kept, rather than asked for again by the next run."""
        received = problem.tokens[1] if problem.tokens else 0
        self._count_cut_off(key, received, cut=problem.cut)
        if not problem.always or (problem.unless_answered and self.replies.answered):
            return True
        self.fatal = Refused(self.reason(problem), always=True)
        if not problem.forbidden or self._health.forbids_all(key):
            self.stop(self.fatal)
            raise Stopped
        # It may be the key that is wrong, or only this prompt that is forbidden.
        return False

    def _count_cut_off(self, key: bytes, tokens: int, *, cut: bool) -> None:
        """Stop when the replies to several prompts in a row were cut off."""
        if self._health.cuts_all(key, cut=cut):
            at = f" at {tokens:,} tokens" if tokens else ""
            count = f"{self._settings.patience} replies in a row were cut off{at}"
            cure = "raise --max-tokens, which pays again only for what was cut off"
            self.stop(IncompleteError(f"{count}; {cure}"))

    def _count_failure(
        self, key: bytes | None, problem: Transient, *, down: bool
    ) -> None:
        """Slow down or stop all calls after a failed attempt, if it calls for that."""
        endpoint, reason = self._client.endpoint, self.reason(problem)
        log.info("a call failed: %s", reason)
        if problem.alive:
            self._health.responded()
        elif key is not None and self._health.has_failed(key, tried=down):
            last = f"the last attempt says: {reason}"
            self.stop(IncompleteError(f"{endpoint} seems to be down, {last}"))
        wait = problem.retry_after
        if wait is not None and wait > _MAX_RETRY_AFTER:
            later = f"{endpoint} asks to come back in {wait / 60:.0f} min"
            self.stop(IncompleteError(later))
        elif wait is not None and self._rate.pause(wait) and wait >= _LONG_WAIT:
            asks = "%s asks to wait for %.0f min; nothing is asked until then"
            log.warning(asks, endpoint, wait / 60)
