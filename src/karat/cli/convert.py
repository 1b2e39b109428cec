"""`karat convert`: a run, gold or samples of any format in any other."""

import sys
from typing import Any

import click

from karat.cli.options import mapping_option, writable
from karat.cli.saying import say
from karat.cli.settings import Command
from karat.errors import FormatError, UsageError
from karat.reading.doors import load
from karat.reading.format import FORMATS
from karat.reading.write import write

__all__ = ["command"]

_STDOUT = "-"


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
    target, role, to = options["target"], options["role"], options["to"]
    if target == _STDOUT and to is None:
        raise UsageError(f"--to names the format of -: one of {', '.join(FORMATS)}")
    if to is not None:
        to = FORMATS[to].name
    loaded = load(
        options["source"], role=role, mapping=options["map"], format=options["from"]
    )
    if target == _STDOUT:
        notices = write(loaded, sys.stdout.buffer, to, role)
    else:
        path = writable(target, [options["source"]])
        try:
            notices = write(loaded, path, to, role)
        except OSError as error:
            reason = error.strerror or str(error)
            raise FormatError(f"cannot be written: {reason}", path=target) from None
        say(f"karat: wrote {target}", err=True)
    for notice in notices:
        say(f"karat: {notice.kind}: {notice.text} ({notice.count})", err=True)
