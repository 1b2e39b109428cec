"""Waiting for a coroutine in code that does not await."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["awaited"]

T = TypeVar("T")


def awaited(task: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What a coroutine returns, for those who do not await.

    Where an event loop is already running, as in a notebook, the coroutine gets a
    thread of its own; the running loop is left alone.

    Example:
        >>> async def answer():
        ...     return 42
        >>> awaited(answer)
        42
    """
    if _loop_is_running():
        return _in_a_thread(task)
    result: list[T] = []

    async def work() -> None:
        # Kept aside: asyncio's handling of Ctrl-C writes out what a task returned.
        result.append(await task())

    asyncio.run(work())
    return result[0]


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_a_thread(task: Callable[[], Coroutine[Any, Any, T]]) -> T:
    outcome: list[asyncio.Task[T]] = []
    loop = asyncio.new_event_loop()

    # Waited for instead of the thread, which cannot be waited for a second time.
    over, stopped = threading.Event(), threading.Event()

    async def begin() -> None:
        outcome.append(asyncio.create_task(task()))
        if stopped.is_set():
            outcome[0].cancel()
        await asyncio.wait(outcome)

    def work() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(begin())
        finally:
            over.set()

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    try:
        thread.start()
        over.wait()
    except KeyboardInterrupt:
        stopped.set()
        # It may have ended by now, and its loop be closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in outcome])
        over.wait()
        raise
    return outcome[0].result()
