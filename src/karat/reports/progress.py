"""A progress bar for long work: on a terminal only, and removed at the end."""

import os
import sys
from collections.abc import Iterable, Iterator
from threading import Timer
from typing import TypeVar

__all__ = ["Bar", "can_show_bar", "track"]

T = TypeVar("T")
_SHOW_AFTER_SECONDS = 0.7
_NARROW = 100
_VERY_NARROW = 80


def can_show_bar() -> bool:
    """Whether stderr is a terminal that can move its cursor."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def track(items: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """The same items; on a terminal a bar on stderr counts them once it takes long.

    Example:
        >>> list(track(["a.run", "b.run"], 2, "scoring"))
        ['a.run', 'b.run']
    """
    if not can_show_bar():
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
    """Shows how far work has come, once it takes long; closing removes it."""

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
        narrow = console.width < _VERY_NARROW
        width = 4 if narrow else 10 if console.width < _NARROW else 20
        clock = () if narrow else (TimeElapsedColumn(),)
        counted = (BarColumn(width), MofNCompleteColumn()) if total > 1 else ()
        # Details wrap to a second line where the first is full.
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            *counted,
            *clock,
            TextColumn("{task.fields[details]}", table_column=Column(no_wrap=False)),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task(doing, total=total, details="")
        self._timer = Timer(_SHOW_AFTER_SECONDS, self._bar.start)
        self._timer.daemon = True
        self._timer.start()

    def show(self, done: int, details: str = "") -> None:
        """Show how much is done, and details beside the bar."""
        self._bar.update(self._task, completed=done, details=details)

    def close(self) -> None:
        """Remove the bar from the terminal."""
        self._timer.cancel()
        self._timer.join()
        self._bar.stop()
