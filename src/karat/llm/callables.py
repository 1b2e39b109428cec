"""Python functions as clients, and coroutines for code that does not await."""

import asyncio
import contextvars
import inspect
import threading
import traceback
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar

from karat.data.judgements import Prompt, Reply
from karat.errors import CallError, Refused, Transient
from karat.llm.credentials import check_parameters, redact

T = TypeVar("T")
Answerer: TypeAlias = Callable[[str], str | Awaitable[str]]
# asyncio's own pool has a handful of threads; calls mostly wait.
_THREADS = 64


class FunctionClient:
    """A function, plain or async, that answers prompts.

    It is given the instruction and the question as one text. An `OSError` or
    `TimeoutError` it raises is tried again; any other error fails the row.

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
        self._call = ThreadedFunction(function)
        self.is_async = self._call.is_async
        # A thread cannot be stopped: a second call would run beside the first.
        self.stoppable = self.is_async
        name = getattr(function, "__qualname__", type(function).__qualname__)
        module = getattr(function, "__module__", None) or type(function).__module__
        self.endpoint = f"python:{module}.{name}"
        self.model = model or self.endpoint
        self.persistent = version is not None
        if version is None:
            version = f"this process {uuid.uuid4().hex[:12]}"
        self.parameters: Mapping[str, Any] = {**(parameters or {}), "version": version}

    def __repr__(self) -> str:
        return f"FunctionClient({self.endpoint!r}, model={self.model!r})"

    async def complete(self, prompt: Prompt) -> Reply:
        """The function's answer to a prompt."""
        text, error = await self._call(f"{prompt.system}\n\n{prompt.user}")
        if error is not None:
            raise to_call_error(self.endpoint, error)
        if not isinstance(text, str):
            raise Refused(
                f"{self.endpoint} must return a text, got {type(text).__name__}",
                always=True,
            )
        return Reply(text)


class ThreadedFunction:
    """A function that can be called without blocking the event loop.

    Attributes:
        is_async: whether it is a coroutine function, or an object called as one; any
            other function runs in a thread.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._threads: ThreadPoolExecutor | None = None
        candidates = (function, getattr(function, "__call__", None))  # noqa: B004
        self.is_async = any(map(inspect.iscoroutinefunction, candidates))

    async def __call__(self, *args: Any, **named: Any) -> tuple[Any, Exception | None]:
        """What the function returns, or else the exception it raises."""
        task = asyncio.ensure_future(
            self._start(partial(_call, self._function, *args, **named))
        )
        try:
            # Not awaited: that would raise what the function raises.
            await asyncio.wait([task])
        finally:
            task.cancel()
        error = task.exception()
        if error is None:
            return task.result(), None
        if isinstance(error, Exception):
            return None, error
        raise error

    async def _start(self, call: Callable[[], Any]) -> Any:
        if self.is_async:
            return await call()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, "karat-answers")
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(self._threads, call)
        return await answer if inspect.isawaitable(answer) else answer


def _call(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    try:
        return function(*args, **named)
    except StopIteration as end:
        # Python 3.11 would wait forever for a thread that ends this way.
        raise RuntimeError("no more answers (StopIteration)") from end


def to_call_error(
    endpoint: str, error: Exception, redact: Callable[[str], str] = redact
) -> CallError:
    """The call error for an exception that a user's function or client raised.

    An `OSError` or `TimeoutError` may pass, any other would come again. The exception
    is kept as the cause, unless its traceback shows a secret: in a cause, a note or a
    line of code.
    """
    shown = "".join(traceback.format_exception(error))
    is_clean = redact(shown) == shown
    if isinstance(error, CallError):
        return error if is_clean else _redacted(error, redact)
    kind = Transient if isinstance(error, OSError | TimeoutError) else Refused
    problem = kind(
        f"{endpoint} raised {type(error).__name__}",
        detail=" ".join(redact(str(error)).split()) or None,
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
