"""Calling a function, plain or async, from an event loop."""

import asyncio
import inspect
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from karat.errors import CallError, Refused, Transient
from karat.llm.secrecy import scrub

__all__ = ["Calls", "raised"]

# The default pool has a handful of threads; calls mostly wait.
_THREADS = 64


class Calls:
    """Calls a function so that waiting for it holds up nothing else.

    Attributes:
        is_async: whether it is a coroutine function, or an object called as one; any
            other function runs in a thread.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._threads: ThreadPoolExecutor | None = None
        callee = (function, getattr(function, "__call__", None))  # noqa: B004
        self.is_async = any(map(inspect.iscoroutinefunction, callee))

    async def __call__(self, *args: Any, **named: Any) -> tuple[Any, Exception | None]:
        """What the function returns, or else what it raises."""
        task = asyncio.ensure_future(
            self._answer(partial(_call, self._function, *args, **named))
        )
        try:
            # Waited for, not awaited: whatever the function raises is its answer.
            await asyncio.wait([task])
        finally:
            task.cancel()
        error = task.exception()
        if error is None:
            return task.result(), None
        if isinstance(error, Exception):
            return None, error
        raise error

    async def _answer(self, call: Callable[[], Any]) -> Any:
        if self.is_async:
            return await call()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, "karat-answers")
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(self._threads, call)
        return await answer if inspect.isawaitable(answer) else answer


def raised(
    endpoint: str, error: Exception, clean: Callable[[str], str] = scrub
) -> CallError:
    """What an exception of a client's own means for the call; it is kept as the cause.

    An `OSError` or `TimeoutError` may pass, any other would come again. One that holds
    a secret anywhere, in a cause, a note or a line of code, is not kept, since a
    traceback shows those too.
    """
    shown = "".join(traceback.format_exception(error))
    is_clean = clean(shown) == shown
    if isinstance(error, CallError):
        return error if is_clean else _cleaned(error, clean)
    kind = Transient if isinstance(error, OSError | TimeoutError) else Refused
    problem = kind(
        f"{endpoint} raised {type(error).__name__}",
        detail=" ".join(clean(str(error)).split()) or None,
    )
    if is_clean:
        problem.__cause__ = error
    return problem


def _cleaned(error: CallError, clean: Callable[[str], str]) -> CallError:
    """The error itself, without its secrets and without all that hangs on it."""
    error.reason = clean(error.reason)
    error.detail = None if error.detail is None else clean(error.detail)
    error.args = (clean(str(error)),)
    error.__cause__ = error.__context__ = None
    vars(error).pop("__notes__", None)
    return error.with_traceback(None)


def _call(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    try:
        return function(*args, **named)
    except StopIteration as end:
        # Python 3.11 would wait for ever for a thread that ends this way.
        raise RuntimeError("no more answers (StopIteration)") from end
