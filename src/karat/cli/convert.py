"""`karat convert`: a run, gold or samples of any format in any other."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from karat.cli.options import mapping_option, writable
from karat.cli.saying import say
from karat.cli.settings import Command
from karat.data.queries import Dataset
from karat.errors import FormatError, UsageError
from karat.reading.doors import load
from karat.reading.format import FORMATS
from karat.reading.streams import Role
from karat.reading.write import write

__all__ = ["STDOUT", "command", "format_name", "write_target"]

STDOUT = "-"


@click.command("convert", cls=Command)
@click.argument("source")
@click.argument("target")
@click.option("--from", metavar="FORMAT", help="Format of SOURCE, if not by content.")
@click.option("--to", metavar="FORMAT", help="Format of TARGET, if not by extension.")
@click.option(
    "--role",
    type=click.Choice(["run", "gold", "samples"]),
    help="Which part of SOURCE to write, or what it is if its content does not tell.",
)
@mapping_option
def command(**options: Any) -> None:
    """Write SOURCE as TARGET in another format; - is standard input or output.

    What TARGET has no room for is an error if it would change a score, else a remark.

    \b
    karat convert samples.jsonl gold.qrels --role gold
    karat convert run.trec - --to jsonl | head -1
    """  # noqa: D301
    source, target, role = options["source"], options["target"], options["role"]
    to = format_name(target, options["to"])
    loaded = load(source, role=role, mapping=options["map"], format=options["from"])
    write_target(loaded, target, to, role, [source])


def format_name(target: str, to: str | None) -> str | None:
    """The name of the format to write, if the path does not say it; else an error."""
    if target == STDOUT and to is None:
        raise UsageError(f"--to names the format of -: one of {', '.join(FORMATS)}")
    return None if to is None else FORMATS[to].name


def write_target(
    loaded: Dataset,
    target: str,
    to: str | None,
    role: Role | None,
    inputs: Sequence[str | None],
) -> None:
    """Write to a file or standard output, and say what there was no room for.

    Args:
        loaded: what to write.
        target: a path, or `-`.
        to: name of the format, if the extension does not say it.
        role: the part to write.
        inputs: files that must not be overwritten.
    """
    if target == STDOUT:
        notices = write(loaded, sys.stdout.buffer, to, role)
    else:
        path = writable(target, inputs)
        try:
            notices = write(loaded, path, to, role)
        except OSError as error:
            reason = error.strerror or str(error)
            raise FormatError(f"cannot be written: {reason}", path=target) from None
        say(f"karat: wrote {target}", err=True)
    for notice in notices:
        say(f"karat: {notice.kind}: {notice.text} ({notice.count})", err=True)
