"""A bar for long work, on a terminal only, and gone when the work is done."""

import os
import sys
from collections.abc import Iterable, Iterator
from threading import Timer
from typing import TypeVar

__all__ = ["Bar", "has_room", "track"]

T = TypeVar("T")
_PATIENCE = 0.7
"""Seconds after which work is long."""
_NARROW = 100
_NARROWEST = 80


def has_room() -> bool:
    """Whether a bar can be shown: stderr is a terminal that can move its cursor."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def track(items: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """The same items; on a terminal a bar on stderr counts them once it takes long.

    Example:
        >>> list(track(["a.run", "b.run"], 2, "scoring"))
        ['a.run', 'b.run']
    """
    if not has_room():
        yield from items
        return
    bar = Bar(doing, total)
    try:
        for done, item in enumerate(items, 1):
            yield item
            bar.show(done)
    finally:
        bar.close()


class Bar:
    """Shows how far work has come, once it takes long; leaves no trace when closed."""

    def __init__(self, doing: str, total: int) -> None:
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
        from rich.table import Column  # noqa: PLC0415

        console = Console(stderr=True)
        narrow = console.width < _NARROWEST
        width = 4 if narrow else 10 if console.width < _NARROW else 20
        clock = () if narrow else (TimeElapsedColumn(),)
        counted = (BarColumn(width), MofNCompleteColumn()) if total > 1 else ()
        # What else there is to say gets a second line where the first is full.
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            *counted,
            *clock,
            TextColumn("{task.fields[told]}", table_column=Column(no_wrap=False)),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task(doing, total=total, told="")
        self._timer = Timer(_PATIENCE, self._bar.start)
        self._timer.daemon = True
        self._timer.start()

    def show(self, done: int, told: str = "") -> None:
        """Say how much is done, and what else there is to say."""
        self._bar.update(self._task, completed=done, told=told)

    def close(self) -> None:
        """Take the bar off the terminal."""
        self._timer.cancel()
        self._timer.join()
        self._bar.stop()
