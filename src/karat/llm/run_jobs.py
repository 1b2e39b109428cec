"""Running many jobs at once, each a conversation with a model."""

import asyncio
import contextvars
import threading
import time
from collections.abc import (
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
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
from karat.errors import CallError, IncompleteError, InvalidReply, Refused
from karat.llm.call_runner import Calls, Stopped
from karat.llm.http import check_endpoint
from karat.llm.journal import Journal
from karat.llm.settings import Client, Progress, Settings, Stage
from karat.llm.stored_replies import JournalWriter, ProcessLock, StoredReplies

T = TypeVar("T")
Job: TypeAlias = Callable[[], Conversation[T] | ParallelConversation[T]]
# Rows from the journal take no time; others on the event loop must not wait for all.
_ROWS_BETWEEN_YIELDS = 256


class Results(list[T | Failure]):
    """The result of each job, in order, and what its replies cost.

    Replies from the journal count like new ones, so that a run that was stopped and
    continued reports the same as one that was not.

    Attributes:
        usage: tokens of the replies of each job, invalid ones included.
        models: the models that answered, as the server names them.
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
) -> Results[T]:
    """The result of each job, in order; a `Failure` where a job could not be done.

    A job yields prompts and receives replies. If it cannot use a reply it may ask
    again, once, and then raises `InvalidReply`. Equal prompts are sent once. Every
    reply is in the journal before the job receives it: if the run stops for any
    reason, the same call continues from there.

    Args:
        jobs: the conversations.
        client: answers them.
        settings: speed, limits and the journal.
        stage: what they do, in words for whoever waits for it.

    Raises:
        IncompleteError: a limit was reached or the endpoint is down; call again.
        OfflineMissError: a reply is not in the journal and no call may be made.
        Refused: every call would be refused, as with a wrong key.
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
        stored = StoredReplies(journal, client, settings)
        writer = JournalWriter(journal, stored.keys.asked)
        await stack.enter_async_context(writer)
        lock = stack.enter_context(ProcessLock(None if offline else path))
        calls = Calls(client, settings, journal, stored, writer, lock)
        kept = path is not None and getattr(client, "persistent", True)
        return await _JobRunner(jobs, calls, settings, stage, kept).run()


@dataclass(eq=False)
class _JobRunner(Generic[T]):
    """Runs all jobs, as many at a time as there may be calls."""

    _jobs: Sequence[Job[T]]
    _calls: Calls
    _settings: Settings
    _stage: Stage | None
    _kept: bool
    _results: dict[int, T | Failure] = field(default_factory=dict)
    _usage: dict[int, Usage] = field(default_factory=dict)
    _models: set[str] = field(default_factory=set)
    _failed: int = 0
    _with_calls: int = 0
    _started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        # Also holds back the calls of a job that asks several prompts at once.
        self._slots = asyncio.Semaphore(self._settings.concurrency)

    async def run(self) -> Results[T]:
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
        problem = self._calls.problem
        if isinstance(problem, IncompleteError):
            counts = (len(self._results) - self._failed, len(order), self._failed)
            during = "" if self._stage is None else str(self._stage)
            raise IncompleteError(
                problem.reason, *counts, kept=self._kept, during=during
            )
        if problem is not None:
            raise problem
        results = (self._results[row] for row in order)
        return Results(results, [self._usage[row] for row in order], self._models)

    async def _work(self, rows: Iterator[int]) -> None:
        for row in rows:
            if self._calls.problem is not None:
                return
            calls = self._calls.budget.calls
            try:
                result = await self._converse(row)
            except Stopped:
                return
            self._with_calls += self._calls.budget.calls > calls
            self._results[row] = result
            if isinstance(result, Failure):
                self._count_failure(result)
            self._report()
            if row % _ROWS_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)

    async def _converse(self, row: int) -> T | Failure:
        conversation: Generator[Any, Any, T] = self._jobs[row]()
        asked: list[tuple[Prompt, bytes, Reply]] = []
        try:
            prompt = next(conversation)
            while True:
                several = prompt if isinstance(prompt, list) else [prompt]
                try:
                    replies = await self._ask(several, asked)
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
                for prompt, key, _ in asked
                if prompt in error.prompts
                or (not error.prompts and asked[-1][0].repairs(prompt))
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
            usage = [reply.usage for _, _, reply in asked]
            sent = sum(tokens.prompt_tokens for tokens in usage)
            gained = sum(tokens.completion_tokens for tokens in usage)
            self._usage[row] = Usage(sent, gained, len(asked))
            self._models.update(reply.model for _, _, reply in asked if reply.model)

    async def _ask(
        self, prompts: list[Prompt], asked: list[tuple[Prompt, bytes, Reply]]
    ) -> list[Reply]:
        """Ask side by side; the first that fails is raised when all have ended."""
        answers: list[tuple[bytes, Reply] | BaseException]
        if len(prompts) == 1:
            answers = [await self._reply(prompts[0])]
        else:
            calls = map(self._reply, prompts)
            answers = await asyncio.gather(*calls, return_exceptions=True)
        replies = []
        for prompt, answer in zip(prompts, answers, strict=True):
            if not isinstance(answer, BaseException):
                asked.append((prompt, *answer))
                replies.append(answer[1])
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return replies

    async def _reply(self, prompt: Prompt) -> tuple[bytes, Reply]:
        async with self._slots:
            return await self._calls.reply(prompt)

    def _count_failure(self, failure: Failure) -> None:
        self._failed += 1
        limit = self._settings.max_failures
        if limit is not None and self._failed > limit:
            self._calls.stop(
                IncompleteError(
                    f"{counted(self._failed, 'row')} failed, and {limit} may "
                    f"(the last one: {failure.reason})"
                )
            )

    def _report(self) -> None:
        if self._settings.progress is None:
            return
        budget, done, total = self._calls.budget, len(self._results), len(self._jobs)
        elapsed = time.monotonic() - self._started
        left = elapsed / self._with_calls * (total - done) if self._with_calls else None
        self._settings.progress(
            Progress(
                *(done, total, self._failed, budget.calls, self._calls.cached),
                *(budget.prompt_tokens, budget.completion_tokens, budget.cost),
                *(elapsed, left, self._stage or Stage()),
            )
        )


def run_sync(
    task: Callable[[], Coroutine[Any, Any, T]],
    meanwhile: Callable[[], None] | None = None,
) -> T:
    """The result of a coroutine, for code that does not await.

    Where an event loop is already running, as in a notebook, the coroutine runs in a
    thread with a loop of its own.

    Args:
        task: makes the coroutine.
        meanwhile: what the caller's own thread does, until the coroutine ends it.

    Example:
        >>> async def answer():
        ...     return 42
        >>> run_sync(answer)
        42
    """
    if meanwhile is not None:
        return _run_in_thread(task, meanwhile)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        return _run_in_thread(task)
    results: list[T] = []

    async def work() -> None:
        # Not returned: on Ctrl-C, asyncio would print the result of the task.
        results.append(await task())

    asyncio.run(work())
    return results[0]


def _run_in_thread(
    task: Callable[[], Coroutine[Any, Any, T]],
    meanwhile: Callable[[], None] = lambda: None,
) -> T:
    tasks: list[asyncio.Task[T]] = []
    loop = asyncio.new_event_loop()
    # Waited for in place of the thread, which cannot be joined a second time.
    ended, interrupted = threading.Event(), threading.Event()

    async def start() -> None:
        tasks.append(asyncio.create_task(task()))
        if interrupted.is_set():
            tasks[0].cancel()
        await asyncio.wait(tasks)

    def work() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(start())
        finally:
            ended.set()

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    try:
        thread.start()
        meanwhile()
        ended.wait()
    except KeyboardInterrupt:
        interrupted.set()
        # The loop may be closed by now.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
        ended.wait()
        raise
    return tasks[0].result()
