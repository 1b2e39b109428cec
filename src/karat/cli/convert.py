"""`karat convert`: a run, gold or samples of any format in any other."""

from collections.abc import Mapping

import click

from karat.cli import options
from karat.cli.command import Command, file_argument
from karat.cli.options import format_name, write_dataset
from karat.reading.readers import read
from karat.reading.source import Role


@click.command("convert", cls=Command)
@file_argument("source")
@click.argument("target")
@click.option(
    "--from", "format", metavar="FORMAT", help="Format of SOURCE; default: detected."
)
@click.option("--to", metavar="FORMAT", help="Format of TARGET; default: by extension.")
@click.option(
    "--role",
    type=click.Choice(["run", "gold", "samples"]),
    help="The part of SOURCE to write, or what SOURCE is if that is unclear.",
)
@options.mapping
def command(
    source: str,
    target: str,
    format: str | None,
    to: str | None,
    role: Role | None,
    mapping: Mapping[str, str],
) -> None:
    """Write SOURCE as TARGET in another format; - is standard input or output.

    Data that TARGET cannot hold is an error if it would change a score, else a notice.

    \b
    karat convert samples.jsonl gold.qrels --role gold
    karat convert run.trec - --to jsonl | head -1
    """
    to = format_name(target, to)
    loaded = read(source, role, mapping=mapping, format=format)
    write_dataset(loaded, target, to, role, [source])
