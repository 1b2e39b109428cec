"""`karat suite`: run an evaluation that is written down in a file."""

import sys

import click

from karat.cli.gates import conclude
from karat.cli.saying import say
from karat.cli.settings import Command
from karat.reports.terminal import show, width_of
from karat.suites.definition import FILE
from karat.suites.run import run_suite

__all__ = ["command"]


@click.command("suite", cls=Command)
@click.argument("name", required=False)
@click.option(
    "-f",
    "--file",
    default=FILE,
    show_default=True,
    metavar="FILE",
    help="Where suites stand: a section suites, or one suite alone.",
)
@click.option(
    "--results",
    default="karat-results",
    show_default=True,
    metavar="FOLDER",
    help="Where each run gets a folder.",
)
@click.option("--fresh", is_flag=True, help="Score again what has not changed.")
def command(name: str | None, file: str, results: str, fresh: bool) -> None:  # noqa: FBT001
    """Run the suite NAME of karat.yaml: score, compare, check gates, write it all down.

    A suite says which data, retrievers, metrics, gates and baseline make an evaluation.
    What was scored before is not scored again while its files and settings stay the
    same. Exit codes are those of karat evaluate.

    \b
    karat init                       write a suite for the files of this folder
    karat suite
    karat suite nightly -f evals/nightly.yaml
    """  # noqa: D301
    result = run_suite(name, file, results=results, fresh=fresh)
    for place, table in enumerate(result.tables(width_of(sys.stdout))):
        if place:
            click.echo()
        show(table)
    if result.unchanged:
        names = ", ".join(result.unchanged)
        say(f"karat: not scored again, since nothing changed: {names}", err=True)
    say(f"karat: wrote {result.folder}", err=True)
    options = {"strict": False, "json": False, "output": ()}
    options |= result.suite.settings.get("gates", {})
    conclude(result.board.values(), result.gates, options)
