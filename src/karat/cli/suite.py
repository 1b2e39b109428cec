"""`karat suite`: run an evaluation that is written down."""

import sys
from json import dumps

import click

from karat.cli import options
from karat.cli.command import Command, file_option, flag, remark
from karat.cli.outputs import Outputs
from karat.reports.terminal import width_of
from karat.suites.definition import FILE
from karat.suites.run import run_suite


@click.command("suite", cls=Command)
@click.argument("name", required=False)
@file_option(
    "-f",
    "--file",
    default=FILE,
    show_default=True,
    help="Where suites stand: a section suites, or one suite alone.",
)
@click.option(
    "--results",
    metavar="FOLDER",
    default="karat-results",
    show_default=True,
    help="Where each run gets a folder.",
)
@flag("--fresh", help="Score again what has not changed.")
@options.json
def command(
    name: str | None, file: str, results: str, *, fresh: bool, json: bool
) -> None:
    """Run the suite NAME of karat.yaml: score, compare, check gates, write it all down.

    A suite says which data, retrievers, metrics, gates and baseline make an evaluation.
    What was scored before is not scored again while its files and settings stay the
    same. Exit codes are those of karat evaluate.

    \b
    karat init                       write a suite for the files of this folder
    karat suite
    karat suite nightly -f evals/nightly.yaml
    """
    outputs = Outputs.plan((), (), (), json=json)
    result = run_suite(name, file, results=results, fresh=fresh)
    gates = result.gates

    def text(_: str) -> str:
        return dumps(result.to_dict(), indent=2) + "\n"

    outputs.deliver(text, result.tables(width_of(sys.stdout)), gates, result.headline)
    if result.unchanged:
        names = ", ".join(result.unchanged)
        remark(f"not scored again, since nothing changed: {names}")
    if gates and result.ungated:
        remark(f"{result.ungated} is the baseline, and is not gated")
    page = " with report.html" if result.board else ""
    remark(f"wrote {result.folder}{page}")
    strict = result.suite.settings.get("gates", {}).get("strict", False)
    outputs.conclude(result.board.values(), gates, strict=strict)
