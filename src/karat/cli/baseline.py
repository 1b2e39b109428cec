"""`karat baseline`: pin the evaluation that drops are measured from."""

from pathlib import Path

import click

from karat.cli import options
from karat.cli.command import Command, flag
from karat.cli.outputs import PINNED, load_baseline, pinned_baseline
from karat.errors import UsageError
from karat.llm.journal import make_private_folder
from karat.reports.terminal import show_table
from karat.writing import write_file


@click.command("baseline", cls=Command)
@click.argument("action", type=click.Choice(["set", "show"]))
@click.argument("file", required=False)
@flag("--commit", help=f"Pin it as {PINNED[0]}, to be committed.")
@options.json
def command(action: str, file: str | None, *, commit: bool, json: bool) -> None:
    """Pin a saved evaluation as the baseline of --max-drop, or show the pinned one.

    \b
    karat evaluate run.trec --gold qrels.trec -o main.json
    karat baseline set main.json
    karat evaluate new.trec --gold qrels.trec --max-drop ndcg@10=0.02
    """
    if action == "show":
        if (path := pinned_baseline()) is None:
            raise UsageError("no baseline is pinned here; karat baseline set FILE")
        pinned = load_baseline(path)
        if json:
            click.echo(pinned.to_json())
            return
        click.echo(f"{path}\n")
        show_table(pinned.summary())
        return
    if file is None:
        raise UsageError("karat baseline set FILE: which saved evaluation?")
    result = load_baseline(file)
    target = PINNED[0 if commit else 1]
    if not commit:
        make_private_folder(target.parent)
    write_file(target, Path(file).read_bytes())
    click.echo(f"pinned {result.run} ({len(result.queries)} queries) as {target}")
