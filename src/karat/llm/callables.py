"""Python functions as clients, and coroutines for code that does not await."""

import asyncio
import contextvars
import inspect
import re
import threading
import time
import traceback
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractContextManager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias, TypeVar

from karat.data.judgements import Prompt, Reply
from karat.errors import CallError, Refused, Transient
from karat.llm.credentials import check_parameters, redact
from karat.llm.http import may_pass

T = TypeVar("T")
Answerer: TypeAlias = Callable[[str], str | Awaitable[str]]
# A thread without a call for this long ends.
_IDLE_SECONDS = 5
_PASSING = re.compile(
    "Timeout|TimedOut|Connect|Unavailable|RateLimit|TooMany|Throttl|Temporar|Transient"
)


class FunctionClient:
    """A function, plain or async, that answers prompts.

    It is given the instruction and the question as one text. What it raises is tried
    again if it may pass (an `OSError`, a timeout, too many requests); any other error
    fails the row.

    Nobody but its author knows whether a function still answers as it did. So its
    replies are kept for other processes only under a `version`, which is to change
    whenever the function does.

    Args:
        function: from prompt to reply.
        model: its name; by default the function's own.
        parameters: anything else that decides the answers.
        version: of the function and of all that it depends on.

    Attributes:
        endpoint: `python:` and the function's name.
        model: the name that labels carry.
        parameters: what else decides the answers, the version included.
        is_async: whether the function is to be awaited.
        persistent: whether another process can use its replies.

    Example:
        >>> def yes(prompt): return "yes"
        >>> FunctionClient(yes, model="always-yes").model
        'always-yes'
    """

    def __init__(
        self,
        function: Answerer,
        model: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        version: str | None = None,
    ) -> None:
        check_parameters(parameters or {})
        self._function = function
        self.is_async = is_async(function)
        self._calls = None if self.is_async else CallQueue()
        # A thread cannot be stopped: a second call would run beside the first.
        self.stoppable = self.is_async
        self.endpoint = place_of(function)
        self.model = model or self.endpoint
        self.persistent = version is not None
        if version is None:
            version = f"this process {uuid.uuid4().hex[:12]}"
        self.parameters: Mapping[str, Any] = {**(parameters or {}), "version": version}

    def __repr__(self) -> str:
        return f"FunctionClient({self.endpoint!r}, model={self.model!r})"

    async def complete(self, prompt: Prompt) -> Reply:
        """The function's answer to a prompt."""
        call = partial(self._function, f"{prompt.system}\n\n{prompt.user}")
        text, error, _ = await call_outside(self.endpoint, call, self._calls)
        if error is not None:
            raise to_call_error(self.endpoint, error)
        if not isinstance(text, str):
            raise Refused(
                f"{self.endpoint} must return a text, got {type(text).__name__}",
                always=True,
            )
        return Reply(text)


class ErrorGuard(AbstractContextManager["ErrorGuard"]):
    """Keeps whatever the user's code raises, of any kind; leaving the program, too.

    An interrupt goes through, unless it is to be raised in another thread.
    """

    error: Exception | None = None
    interrupt: BaseException | None = None

    def __init__(self, *, interrupts: bool = False) -> None:
        self._interrupts = interrupts

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> bool:
        if isinstance(error, SystemExit):
            error = RuntimeError(f"it called sys.exit({error.code!r})")
        if isinstance(error, Exception):
            self.error = error
        elif self._interrupts:
            self.interrupt = error
        return (self.error or self.interrupt) is not None


class Outcome(NamedTuple):
    """What a call returned or raised, and how many seconds it took."""

    value: Any
    error: Exception | None
    seconds: float


class CallQueue:
    """Calls of functions that are not async: made by threads, or by the caller's own.

    There are as many threads as calls at once, and they never hold up the end of the
    program. The caller's thread makes the calls while it is in `serve`.
    """

    def __init__(self, *, threads: bool = True) -> None:
        self.threads = threads
        self._calls: SimpleQueue[Any] = SimpleQueue()
        self._idle = threading.Semaphore(0)

    async def run(self, call: Callable[[], Any]) -> Outcome:
        """Have a call made."""
        if self.threads and not self._idle.acquire(blocking=False):
            threading.Thread(target=self.serve, daemon=True).start()
        future: Future[Outcome] = Future()
        self._calls.put((call, future))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Let the caller's thread go on its way."""
        self._calls.put(None)

    def serve(self) -> None:
        """Make the calls, until there are no more."""
        while True:
            try:
                work = self._calls.get(timeout=_IDLE_SECONDS if self.threads else None)
            except Empty:
                if self._idle.acquire(blocking=False):
                    return
                continue
            if work is None:
                return
            call, future = work
            guard = ErrorGuard(interrupts=self.threads)
            outcome = _timed(call, guard)
            self._idle.release()
            # Nobody waits any more: the run has ended, or the call was given up.
            with suppress(InvalidStateError):
                if guard.interrupt is None:
                    future.set_result(outcome)
                else:
                    future.set_exception(guard.interrupt)


def _timed(call: Callable[[], Any], guard: ErrorGuard) -> Outcome:
    value = None
    start = time.perf_counter()
    with guard:
        value = call()
        if isinstance(value, Iterator):
            value = [*value]
    return Outcome(value, guard.error, time.perf_counter() - start)


async def call_outside(
    endpoint: str,
    call: Callable[[], Any],
    queue: CallQueue | None,
    timeout: float | None = None,  # noqa: ASYNC109
) -> Outcome:
    """What the user's code returns, at once or when awaited, or what it raises.

    Without a queue it is called on the event loop. The time limit is one of what can be
    given up: threads, and what is awaited.
    """
    guard, seconds, value = ErrorGuard(), 0.0, None
    limit = asyncio.timeout(timeout if queue and queue.threads else None)
    with guard:
        async with limit:
            outcome = _timed(call, guard) if queue is None else await queue.run(call)
            value, error, seconds = outcome
            if error is not None:
                return outcome
            if timeout is not None:
                limit.reschedule(asyncio.get_running_loop().time() + timeout)
            start = time.perf_counter()
            if inspect.isawaitable(value):
                value = await value
            seconds += time.perf_counter() - start
    if limit.expired():
        late = Transient(f"{endpoint} gave no answer within {timeout:g} s")
        return Outcome(None, late, seconds)
    return Outcome(value, guard.error, seconds)


def place_of(function: Any) -> str:
    """Where the code of a function or an object is."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"python:{module}.{name}"


def is_async(function: Any) -> bool:
    """Whether a function is to be awaited, or an object is called as one that is."""
    candidates = (function, getattr(function, "__call__", None))  # noqa: B004
    is_coroutine = any(map(inspect.iscoroutinefunction, candidates))
    return is_coroutine or any(map(inspect.isasyncgenfunction, candidates))


def to_call_error(
    endpoint: str, error: Exception, redact: Callable[[str], str] = redact
) -> CallError:
    """The call error for an exception that a user's function or client raised.

    Errors of client libraries are told apart by status and name, since none is
    imported. The exception is kept as the cause, unless its traceback shows a secret.
    """
    shown = "".join(traceback.format_exception(error))
    is_clean = redact(shown) == shown
    if isinstance(error, CallError):
        return error if is_clean else _redacted(error, redact)
    status = getattr(
        error,
        "status_code",
        getattr(getattr(error, "response", None), "status_code", None),
    )
    passes = isinstance(error, OSError | TimeoutError) or may_pass(status)
    passes |= any(_PASSING.search(kind.__name__) for kind in type(error).__mro__)
    # A scripted function that has come to the end of its script says nothing itself.
    ended = "it has no more answers" if isinstance(error, StopIteration) else None
    problem = (Transient if passes else Refused)(
        f"{endpoint} raised {type(error).__name__}",
        detail=" ".join(redact(str(error)).split()) or ended,
    )
    if is_clean:
        problem.__cause__ = error
    return problem


def _redacted(error: CallError, redact: Callable[[str], str]) -> CallError:
    """The error without secrets, causes, notes and traceback."""
    error.reason = redact(error.reason)
    error.detail = None if error.detail is None else redact(error.detail)
    error.args = (redact(str(error)),)
    error.__cause__ = error.__context__ = None
    vars(error).pop("__notes__", None)
    return error.with_traceback(None)


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
    running = None
    with suppress(RuntimeError):
        running = asyncio.get_running_loop()
    if meanwhile is None and running is None:
        results: list[T] = []

        async def work() -> None:
            # Not returned: on Ctrl-C, asyncio would print the result of the task.
            results.append(await task())

        asyncio.run(work())
        return results[0]
    return _run_in_thread(task, meanwhile or (lambda: None))


def _run_in_thread(
    task: Callable[[], Coroutine[Any, Any, T]], meanwhile: Callable[[], None]
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
