"""`karat convert`: a run, gold or samples of any format in any other."""

from typing import Any

import click

from karat.cli.command import Command, option
from karat.cli.options import format_name, mapping_option, write_dataset
from karat.reading.readers import read


@click.command("convert", cls=Command)
@click.argument("source")
@click.argument("target")
@option("--from FORMAT", "Format of SOURCE, if not by content.")
@option("--to FORMAT", "Format of TARGET, if not by extension.")
@option(
    "--role",
    "Which part of SOURCE to write, or what it is if its content does not tell.",
    type=["run", "gold", "samples"],
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
    loaded = read(source, role, mapping=options["map"], format=options["from"])
    write_dataset(loaded, target, to, role, [source])
