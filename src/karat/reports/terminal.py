"""What a terminal shows: tables, texts, and a bar while long work is done.

Colour is used where it helps; what is piped is plain text.
"""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from threading import Timer
from typing import Any, ClassVar, TextIO, TypeVar

from karat.data.hits import Range
from karat.data.tables import Table, clean
from karat.results.leaderboard import WIDTH

T = TypeVar("T")
_SHOW_AFTER_SECONDS = 0.7
_NARROW, _VERY_NARROW = 100, 80
_UPDATES = 500

_QUOTED = ("\u00ab", "\u00bb")
_BOLD = ("\x1b[1;33m", "\x1b[0m")


def show_table(table: Table, stream: TextIO | None = None) -> None:
    """Print a table; plain when the output is not a terminal."""
    stream = stream or sys.stdout
    styled = not is_plain(stream)
    stream.write(table.as_text(width_of(stream), styled=styled) + "\n")
    # What goes to stderr afterwards stands below.
    stream.flush()


def is_plain(stream: TextIO) -> bool:
    """Whether it is no terminal, or one that cannot move its cursor."""
    return not stream.isatty() or os.environ.get("TERM") == "dumb"


def show_text(
    title: str, text: str, marks: Sequence[Range], stream: TextIO | None = None
) -> None:
    """Print a text as it is written, wrapped, with what counts in it marked."""
    stream = stream or sys.stdout
    # Marks of one character each, which no clean text holds, until lines are wrapped.
    ends = sorted(
        [(start, "\x02") for start, _ in marks] + [(end, "\x03") for _, end in marks],
        reverse=True,
    )
    letters = ["?" if letter in "\x02\x03" else letter for letter in text]
    for place, mark in ends:
        letters.insert(place, mark)
    shown = _QUOTED if is_plain(stream) else _BOLD
    lines = [f"{clean(title)}:"]
    for line in "".join(letters).splitlines():
        parts = re.split("([\x02\x03])", line)
        safe = "".join(p if p in {"\x02", "\x03"} else clean(p) for p in parts)
        wide = width_of(stream) - 2
        lines += textwrap.wrap(safe, wide, break_on_hyphens=False) or [""]
    body = "\n  ".join(lines).replace("\x02", shown[0]).replace("\x03", shown[1])
    stream.write(body + "\n")


def width_of(stream: TextIO) -> int:
    """How wide a table may be: as wide as the terminal, if it is one."""
    if stream.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size((WIDTH, 24)).columns
    return WIDTH


def track(items: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """The same items; on a terminal a bar on stderr counts them once it takes long."""
    if is_plain(sys.stderr):
        yield from items
        return
    bar = Bar(doing, total)
    every = max(1, total // _UPDATES)
    try:
        for done, item in enumerate(items, 1):
            yield item
            if done % every == 0:
                bar.show(done)
    finally:
        bar.close()


class RunBar:
    """Shows on a terminal how far runs of many calls are, one after the other."""

    _bar: "Bar | None" = None

    def __call__(self, progress: Any) -> None:
        """Show the `Progress` of a run, until all is done."""
        if self._bar is None and not is_plain(sys.stderr):
            self._bar = Bar(str(progress.stage), progress.total)
        if self._bar is not None:
            # The bar itself shows what comes before the first comma.
            self._bar.show(progress.done, str(progress).partition(", ")[2])
        if progress.done == progress.total:
            self.close()

    def close(self) -> None:
        """Remove the bar from the terminal."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Bar:
    """Shows how far work has come, once it takes long; closing removes it.

    Work inside of other work has a line below it.
    """

    _shown: ClassVar[Any] = None

    def __init__(self, doing: str, total: int) -> None:
        self._bar = Bar._shown
        self._is_inner = self._bar is not None
        if self._is_inner:
            self._add(doing, total)
            return
        # Only a terminal pays for importing rich.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
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
        # Details wrap to a second line where the first is full.
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(width),
            TextColumn("{task.fields[counted]}"),
            *clock,
            TextColumn("{task.fields[details]}", table_column=Column(no_wrap=False)),
            console=console,
            transient=True,
        )
        Bar._shown = self._bar
        self._add(doing, total)
        self._timer = Timer(_SHOW_AFTER_SECONDS, self._bar.start)
        self._timer.daemon = True
        self._timer.start()

    def _add(self, doing: str, total: int) -> None:
        # Of one thing it is not known how far it is.
        self._total = total if total > 1 else None
        self._task = self._bar.add_task(
            doing, total=self._total, details="", counted=self._counted(0)
        )

    def _counted(self, done: int) -> str:
        return f"{done}/{self._total}" if self._total else ""

    def show(self, done: int, details: str = "") -> None:
        """Show how much is done, and details beside the bar."""
        self._bar.update(
            self._task, completed=done, details=details, counted=self._counted(done)
        )

    def close(self) -> None:
        """Remove the bar from the terminal."""
        if self._is_inner:
            self._bar.remove_task(self._task)
            return
        Bar._shown = None
        self._timer.cancel()
        self._timer.join()
        self._bar.stop()
