"""A bar for long work, on a terminal only, and gone when the work is done."""

import os
import sys
from collections.abc import Iterable, Iterator
from threading import Timer
from typing import TypeVar

__all__ = ["track"]

T = TypeVar("T")
_PATIENCE = 0.7
"""Seconds after which work is long."""


def track(items: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """The same items; on a terminal a bar on stderr counts them once it takes long.

    Example:
        >>> list(track(["a.run", "b.run"], 2, "scoring"))
        ['a.run', 'b.run']
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield from items
        return
    # Only a terminal pays for importing rich.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *((BarColumn(), MofNCompleteColumn()) if total > 1 else ()),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(doing, total=total)
    timer = Timer(_PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        for item in items:
            yield item
            bar.advance(task)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
