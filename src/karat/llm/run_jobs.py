"""The one driver: it hears many judges at once, and every reply is kept."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Generic, TypeAlias, TypeVar

from karat.data.judgements import Conversation, Failure, Prompt, Reply, Usage
from karat.data.tables import counted
from karat.errors import CallError, IncompleteError, InvalidReply, Refused
from karat.llm.asking import Asking
from karat.llm.attempts import Stopped
from karat.llm.awaiting import awaited
from karat.llm.journal import Journal
from karat.llm.keys import Keys
from karat.llm.progress import Progress
from karat.llm.protocol import Client
from karat.llm.recording import Recorder
from karat.llm.secrecy import check_endpoint
from karat.llm.settings import Settings
from karat.llm.turns import Turns

__all__ = ["Job", "Results", "awaited", "run_jobs", "run_jobs_sync"]

T = TypeVar("T")
Job: TypeAlias = Callable[[], Conversation[T]]
_BREATH = 256
"""Rows after which others on the event loop get their turn."""


class Results(list[T | Failure]):
    """The verdict of each row, in order, and what its replies took.

    What was paid earlier counts like what was paid now, so that a hearing that was
    stopped and went on says the same as one that was not.

    Attributes:
        usage: tokens of the replies each row rests on, those of no use included.
        models: who answered, by the server's own word.
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
    jobs: Sequence[Job[T]], client: Client, settings: Settings | None = None
) -> Results[T]:
    """The verdict of each judge, in order; a `Failure` where one could not be had.

    A judge yields prompts and receives replies. One that cannot use a reply may ask
    again by itself, once, and then raises `InvalidReply`. Equal prompts are sent once.
    Every reply is in the journal before a judge sees it, so whatever stops this, the
    same call goes on from there.

    Raises:
        IncompleteError: a limit was reached or the endpoint is down; call again.
        OfflineMissError: a reply is not in the journal and no call may be made.
        Refused: no call would be answered, as with a wrong key.
    """
    settings = settings or Settings()
    check_endpoint(client.endpoint)
    async with AsyncExitStack() as stack:
        journal = stack.enter_context(
            Journal(
                settings.journal,
                no_text=settings.no_text,
                only_read=settings.offline,
            )
        )
        if (session := getattr(client, "session", None)) is not None:
            await stack.enter_async_context(session())
        keys = Keys(client)
        recorder = await stack.enter_async_context(Recorder(journal, keys))
        turns = stack.enter_context(
            Turns(None if settings.offline else settings.journal)
        )
        asking = Asking(client, settings, journal, recorder, keys, turns)
        return await _JobRunner(jobs, asking).run()


def run_jobs_sync(
    jobs: Sequence[Job[T]], client: Client, settings: Settings | None = None
) -> Results[T]:
    """`run_jobs` for those who do not await: in scripts, and in notebooks too.

    Example:
        >>> from karat.data.judgements import Prompt, Reply
        >>> class Echo:
        ...     endpoint, model, parameters = "python:echo", "echo", {}
        ...     async def complete(self, prompt):
        ...         return Reply(prompt.user.upper())
        >>> def judge(text):
        ...     reply = yield Prompt("Repeat.", text)
        ...     return reply.text
        >>> run_jobs_sync([lambda: judge("a"), lambda: judge("b")], Echo(),
        ...          Settings(journal=None))
        ['A', 'B']
    """
    return awaited(lambda: run_jobs(jobs, client, settings))


class _JobRunner(Generic[T]):
    """Hears the judges of all rows, as many at a time as there may be calls."""

    def __init__(self, jobs: Sequence[Job[T]], asking: Asking) -> None:
        self._jobs = jobs
        self._asking = asking
        self._settings = asking.settings
        self._results: dict[int, T | Failure] = {}
        self._usage: dict[int, Usage] = {}
        self._models: set[str] = set()
        self._failed = 0
        self._slots = asyncio.Semaphore(asking.settings.concurrency)
        self._fresh = 0
        self._began = time.monotonic()

    async def run(self) -> Results[T]:
        rows = iter(range(len(self._jobs)))
        count = min(self._settings.concurrency, len(self._jobs))
        workers = [asyncio.create_task(self._work(rows)) for _ in range(count)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        problem = self._asking.attempts.problem
        if isinstance(problem, IncompleteError):
            done, total = len(self._results) - self._failed, len(self._jobs)
            kept = self._settings.journal is not None
            raise IncompleteError(problem.reason, done, total, self._failed, kept=kept)
        if problem is not None:
            raise problem
        every = range(len(self._jobs))
        results = (self._results[row] for row in every)
        return Results(results, [self._usage[row] for row in every], self._models)

    async def _work(self, rows: Iterator[int]) -> None:
        for row in rows:
            if self._asking.attempts.problem is not None:
                return
            calls = self._asking.attempts.budget.calls
            try:
                result = await self._deliberate(row)
            except Stopped:
                return
            self._fresh += self._asking.attempts.budget.calls > calls
            self._results[row] = result
            if isinstance(result, Failure):
                self._count(result)
            if self._settings.progress is not None:
                self._settings.progress(self._progress())
            if row % _BREATH == 0:
                await asyncio.sleep(0)

    async def _deliberate(self, row: int) -> T | Failure:
        judge = self._jobs[row]()
        asked: list[tuple[Prompt, bytes]] = []
        replies: list[Reply] = []
        try:
            prompt = next(judge)
            while True:
                several = prompt if isinstance(prompt, list) else [prompt]
                before = len(replies)
                try:
                    await self._ask(several, asked, replies)
                except CallError as error:
                    prompt = judge.throw(error)
                else:
                    new = replies[before:]
                    prompt = judge.send(new if several is prompt else new[0])
        except StopIteration as end:
            verdict: T = end.value
            return verdict
        except InvalidReply as error:
            # A repair adds to the prompt it repairs; what other prompts of this judge
            # brought stays good.
            useless = [
                key
                for prompt, key in asked
                if (
                    prompt in error.prompts
                    if error.prompts
                    else asked[-1][0].repairs(prompt)
                )
            ]
            await self._asking.mark_invalid(useless)
            if error.result is not None:
                return error.result  # type: ignore[return-value]
            reason = self._asking.attempts.sentence(error)
            return Failure(reason, "invalid", max(1, len(useless)))
        except CallError as error:
            kind = "refused" if isinstance(error, Refused) else "transient"
            return Failure(self._asking.attempts.sentence(error), kind, error.attempts)
        finally:
            judge.close()
            self._usage[row] = _taken(replies)
            self._models.update(reply.model for reply in replies if reply.model)

    async def _ask(
        self,
        prompts: list[Prompt],
        asked: list[tuple[Prompt, bytes]],
        replies: list[Reply],
    ) -> None:
        """Ask side by side; the first that fails is raised when all have ended."""
        if len(prompts) == 1:
            key, reply = await self._reply(prompts[0])
            asked.append((prompts[0], key))
            replies.append(reply)
            return
        answers = await asyncio.gather(
            *map(self._reply, prompts), return_exceptions=True
        )
        for prompt, answer in zip(prompts, answers, strict=True):
            if not isinstance(answer, BaseException):
                asked.append((prompt, answer[0]))
                replies.append(answer[1])
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _reply(self, prompt: Prompt) -> tuple[bytes, Reply]:
        async with self._slots:
            return await self._asking.reply_to(prompt)

    def _count(self, failure: Failure) -> None:
        self._failed += 1
        most = self._settings.max_failures
        if most is not None and self._failed > most:
            self._asking.attempts.stop(
                IncompleteError(
                    f"{counted(self._failed, 'row')} failed, and {most} may "
                    f"(the last one: {failure.reason})"
                )
            )

    def _progress(self) -> Progress:
        budget, done, total = (
            self._asking.attempts.budget,
            len(self._results),
            len(self._jobs),
        )
        elapsed = time.monotonic() - self._began
        return Progress(
            done,
            total,
            self._failed,
            budget.calls,
            self._asking.cached,
            budget.prompt_tokens,
            budget.completion_tokens,
            budget.cost,
            elapsed,
            elapsed / self._fresh * (total - done) if self._fresh else None,
        )


def _taken(replies: Sequence[Reply]) -> Usage:
    return Usage(
        sum(reply.usage.prompt_tokens for reply in replies),
        sum(reply.usage.completion_tokens for reply in replies),
        len(replies),
    )
