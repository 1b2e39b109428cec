"""`karat baseline`: pin the saved evaluation that drops are measured from."""

import shutil
from pathlib import Path

import click

from karat.cli.settings import Command
from karat.errors import UsageError
from karat.reports.terminal import show
from karat.results.loading import load

__all__ = ["command", "pinned_baseline"]

_PRIVATE = Path(".karat/baseline.json")
_SHARED = Path("karat-baseline.json")


def pinned_baseline() -> Path | None:
    """The pinned evaluation of this folder: in the repository, else under .karat."""
    return next((path for path in (_SHARED, _PRIVATE) if path.is_file()), None)


@click.command("baseline", cls=Command)
@click.argument("action", type=click.Choice(["set", "show"]))
@click.argument("file", required=False)
@click.option(
    "--commit",
    is_flag=True,
    help=f"Pin it as {_SHARED}, to be committed.",
)
def command(action: str, file: str | None, commit: bool) -> None:  # noqa: FBT001
    """Pin a saved evaluation as the baseline of --max-drop, or show the pinned one.

    \b
    karat evaluate run.trec --gold qrels.trec -o main.json
    karat baseline set main.json
    karat evaluate new.trec --gold qrels.trec --max-drop ndcg@10=0.02
    """  # noqa: D301
    if action == "show":
        path = pinned_baseline()
        if path is None:
            raise UsageError("no baseline is pinned here; karat baseline set FILE")
        click.echo(f"{path}\n")
        show(load(path).summary())
        return
    if file is None:
        raise UsageError("karat baseline set FILE: which saved evaluation?")
    result = load(file)
    target = _SHARED if commit else _PRIVATE
    if not commit:
        _PRIVATE.parent.mkdir(mode=0o700, exist_ok=True)
        # The folder ignores itself in git.
        (_PRIVATE.parent / ".gitignore").write_text("*\n", "utf-8")
    shutil.copyfile(file, target)
    click.echo(f"pinned {result.run} ({len(result.queries)} queries) as {target}")
