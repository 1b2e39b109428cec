"""`karat suite`: run an evaluation that is written down."""

import sys
from typing import Any

import click

from karat.cli.command import Command, option, say
from karat.cli.outputs import conclude, deliver
from karat.reports.terminal import width_of
from karat.suites.definition import FILE
from karat.suites.run import run_suite


@click.command("suite", cls=Command)
@click.argument("name", required=False)
@option(
    "-f --file FILE",
    "Where suites stand: a section suites, or one suite alone.",
    default=FILE,
    show_default=True,
)
@option(
    "--results FOLDER",
    "Where each run gets a folder.",
    default="karat-results",
    show_default=True,
)
@option("--fresh", "Score again what has not changed.")
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
    options: dict[str, Any] = {"strict": False, "json": False, "output": ()}
    options |= result.suite.settings.get("gates", {})
    tables, gates = result.tables(width_of(sys.stdout)), result.gates
    deliver(str, tables, options, gates=gates, headline=result.headline)
    if result.unchanged:
        names = ", ".join(result.unchanged)
        say(f"karat: not scored again, since nothing changed: {names}", err=True)
    if gates and result.ungated:
        say(f"karat: {result.ungated} is the baseline, and is not gated", err=True)
    say(f"karat: wrote {result.folder}", err=True)
    conclude(result.board.values(), gates, options)
