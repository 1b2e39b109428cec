"""`karat cache`: the replies of models that are kept."""

from json import dumps
from pathlib import Path

import click

from karat.cli import options
from karat.cli.command import Command, flag
from karat.data.tables import Table, counted
from karat.errors import UnknownNameError, UsageError
from karat.llm.journal import Journal
from karat.llm.limits import JOURNAL
from karat.reports.terminal import show_table

_KILO = 1024


@click.command("cache", cls=Command)
@click.option(
    "--journal",
    help="The journal to show or clear.",
    type=click.Path(path_type=Path),
    default=JOURNAL,
    show_default=True,
)
@flag("--clear", help="Delete the kept replies.")
@click.option("--model", metavar="NAME", help="With --clear: only this model.")
@flag("--errors", help="With --clear: only failures.")
@options.json
def command(
    journal: Path, *, clear: bool, model: str | None, errors: bool, json: bool
) -> None:
    """Show the kept replies of models, or delete them.

    Every reply of a model is kept in a journal, so that none is paid for twice.

    \b
    karat cache
    karat cache --clear --errors
    """
    if (model is not None or errors) and not clear:
        raise UsageError("--model and --errors say what to --clear; add it")
    if not journal.exists():
        click.echo("[]" if json else f"{journal}: nothing is kept yet")
        return
    with Journal(journal) as kept:
        if clear:
            models = {part.model for part in kept.contents()}
            if model is not None and model not in models:
                raise UnknownNameError("model", model, sorted(models))
            count = kept.clear(model, errors=errors)
            click.echo(f"{journal}: {counted(count, 'entry')} forgotten")
            return
        contents = kept.contents()
    if json:
        click.echo(dumps([one._asdict() for one in contents], indent=2))
        return
    count = sum(part.entries for part in contents)
    click.echo(f"{journal}: {counted(count, 'entry')}, {_size(journal)}")
    if contents:
        rows = [[one.model, one.endpoint, *map(str, one.counts)] for one in contents]
        columns = ["model", "endpoint", "entries", "errors", "tokens"]
        show_table(Table(columns, rows, texts=(0, 1)))


def _size(journal: Path) -> str:
    """The size of the file, and of what SQLite keeps beside it."""
    parts = (journal, journal.with_name(f"{journal.name}-wal"))
    size = float(sum(part.stat().st_size for part in parts if part.exists()))
    for unit in ("B", "KiB", "MiB"):
        if size < _KILO:
            return f"{size:.0f} {unit}"
        size /= _KILO
    return f"{size:.1f} GiB"
