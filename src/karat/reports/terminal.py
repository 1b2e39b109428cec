"""Tables in a terminal: colour where it helps, plain text where it is piped."""

import os
import shutil
import sys
from typing import Any, TextIO

from karat.data.tables import Table, clean
from karat.results.leaderboard import WIDTH

__all__ = ["show", "width_of"]

# What rich puts between two columns.
_GAP = 2


def show(table: Table, stream: TextIO | None = None) -> None:
    """Print a table; plain when the output is not a terminal."""
    stream = stream or sys.stdout
    width = width_of(stream)
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        stream.write(table.as_text(width) + "\n")
        # What goes to stderr afterwards stands below.
        stream.flush()
        return
    # Only a terminal pays for importing rich.
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(file=stream, width=width, highlight=False)
    if table.title:
        console.print(Text(clean(table.title), style="bold"))
        console.print()
    for place, part in enumerate(table.folded(width)):
        if place:
            console.print()
        console.print(_grid(part))
    if table.notes:
        console.print()
    for line in table.note_lines(width):
        console.print(Text(line, style="dim"))


def width_of(stream: TextIO) -> int:
    """How wide a table may be: as wide as the terminal, if it is one."""
    if stream.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size((WIDTH, 24)).columns
    return WIDTH


def _grid(table: Table) -> Any:
    from rich.table import Table as Grid  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    grid = Grid(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for place, name in enumerate(table.columns):
        wraps = place in table.texts and place > 0
        grid.add_column(
            Text(clean(name)),
            justify="left" if place in table.texts else "right",
            style="bold" if place == 0 else "",
            no_wrap=not wraps,
            overflow="fold" if wraps else "ellipsis",
        )
    for row in table.rows:
        grid.add_row(*(Text(clean(cell)) for cell in row))
    return grid
