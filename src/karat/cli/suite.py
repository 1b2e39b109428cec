"""`karat suite`: run an evaluation that is written down."""

import os
import sys
from json import dumps

import click

from karat.cli import options
from karat.cli.command import Command, file_option, flag, remark
from karat.cli.outputs import STEP_SUMMARY, Outputs, tell_github
from karat.reports.ci import as_comment
from karat.reports.terminal import width_of
from karat.suites.definition import FILE
from karat.suites.run import SuiteResult, run_suite
from karat.writing import write_file


@click.command("suite", cls=Command)
@click.argument("name", required=False)
@file_option(
    "-f",
    "--file",
    default=FILE,
    show_default=True,
    help="File with a section `suites`, or a single suite.",
)
@click.option(
    "--results",
    metavar="FOLDER",
    default="karat-results",
    show_default=True,
    help="Where each run gets a folder.",
)
@flag("--fresh", help="Score everything again, changed or not.")
@flag("--github", help="Also write comment.md for a pull request.")
@options.json
def command(
    name: str | None,
    file: str,
    results: str,
    *,
    fresh: bool,
    github: bool,
    json: bool,
) -> None:
    """Run the suite NAME of karat.yaml: score, compare, check gates, save the results.

    A suite defines the data, retrievers, metrics, gates and baseline of an evaluation.
    Scores are reused while their files and settings stay the same. Exit codes are those
    of karat evaluate.

    \b
    karat init                       write a suite for the files of this folder
    karat suite
    karat suite nightly -f evals/nightly.yaml
    karat suite --github             in a workflow: also write to its summary page
    """
    outputs = Outputs.plan((), (), (), json=json)
    result = run_suite(name, file, results=results, fresh=fresh)
    gates = result.gates

    def text(_: str) -> str:
        return dumps(result.to_dict(), indent=2) + "\n"

    tables = result.tables(width_of(sys.stdout))
    outputs.deliver(text, tables, () if github else gates, result.headline)
    if github:
        _write_comment(result)
    if result.unchanged:
        names = ", ".join(result.unchanged)
        remark(f"not scored again, since nothing changed: {names}")
    if gates and result.ungated:
        remark(f"{result.ungated} is the baseline, and is not gated")
    page = " with report.html" if result.board else ""
    remark(f"wrote {result.folder}{page}")
    strict = result.suite.settings.get("gates", {}).get("strict", False)
    outputs.conclude(result.board.values(), gates, strict=strict)


def _write_comment(result: SuiteResult) -> None:
    """The comment for a pull request, which is also put on the page of the run."""
    names = ("SERVER_URL", "REPOSITORY", "RUN_ID")
    server, repository, run = (os.environ.get(f"GITHUB_{name}") for name in names)
    page = f"{server}/{repository}/actions/runs/{run}#artifacts"
    tables = [result.board.summary()] if result.board else []
    for one in result.comparisons:
        tables += [one.summary(), *([one.movers_table()] if one.movers else ())]
    text = as_comment(
        result.gates,
        result.headline,
        tables,
        name=result.suite.name,
        page=page if run else (result.folder / "report.html").as_posix(),
    )
    path = result.folder / "comment.md"
    write_file(path, text)
    tell_github(STEP_SUMMARY, text)
    tell_github("GITHUB_OUTPUT", f"folder={result.folder}\ncomment={path}\n")
