"""Lines beside the tables: what was done, what went wrong."""

import os
import sys

import click

__all__ = ["harmless", "say"]


def say(line: str, *, err: bool = False, alarm: bool = False) -> None:
    """Print a line; ids and file names in it cannot play tricks on the terminal.

    Args:
        line: what to say.
        err: on stderr.
        alarm: in red, on a terminal where colours are welcome.
    """
    text = harmless(line)
    if alarm and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        text = click.style(text, fg="red", bold=True)
    # As it is now: a bar that is shown takes its place, and keeps lines above itself.
    click.echo(text, file=sys.stderr if err else None)


def harmless(line: str) -> str:
    r"""The line with a `?` for all that would move the cursor, or hide or colour text.

    Example:
        >>> harmless("q1\x1b[2J\rall is well")
        'q1?[2J?all is well'
    """
    if line.isprintable():
        return line
    return "".join(mark if mark.isprintable() else "?" for mark in line)
