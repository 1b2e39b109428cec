"""`karat history`: runs over commits, scored by the gold of today."""

import json as plain_json
from pathlib import Path

import click

from karat.cli import options
from karat.cli.command import Command, remark
from karat.cli.options import writable
from karat.cli.outputs import show_all
from karat.cli.push import STORE
from karat.data.tables import Table, counted, number
from karat.errors import FormatError, UsageError
from karat.history.store import PROJECT, Rescored, Store
from karat.reading.readers import read_gold
from karat.web.site import write_site
from karat.web.timeline import check_since, timeline_of

_SHOWN = 20


@click.command("history", cls=Command)
@click.argument("store", default=STORE, metavar="[STORE]")
@click.option("--project", default=PROJECT, show_default=True, help="Project to show.")
@click.option("--branch", help="Only runs of this branch.")
@click.option(
    "--since", metavar="DATE", help="Only runs pushed since, as in 2026-01-31."
)
@click.option("--tag", help="Only count queries with this tag.")
@click.option("-m", "--metric", help="The metric to show; default: the main one.")
@options.gold(help="First replace the store's gold by this; people's labels stay.")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER|FILE.json",
    help="Write static pages, or the newest run as a baseline.",
)
@options.json
@options.no_text
def command(
    *,
    store: str,
    project: str,
    branch: str | None,
    since: str | None,
    tag: str | None,
    metric: str | None,
    gold: str | None,
    output: str | None,
    json: bool,
    no_text: bool,
) -> None:
    """Show the runs of a STORE, each with a verdict against the previous one.

    All are scored by today's gold, even if it was different when they were pushed.

    \b
    karat push result.json
    karat history --branch main -m ndcg@10
    karat history --gold corrected.qrels
    karat history -o site
    karat history --branch main -o main.json
    """
    if not Path(store).is_file():
        hint = "karat push RESULT.json makes one"
        raise FormatError("there is no such store", path=store, hint=hint)
    check_since(since)
    if output is not None and output.endswith((".html", ".htm")):
        folder = output.rpartition(".")[0] or "site"
        raise UsageError(f"-o writes pages into a folder, as in -o {folder}")
    if output is not None and tag is not None:
        raise UsageError("-o is about all queries: leave --tag out")
    file = writable(output) if output and output.endswith(".json") else None
    done = None
    with Store(store) as opened:
        if gold is not None:
            done = opened.replace_gold(read_gold(gold), project=project)
        found = timeline_of(
            opened, project, metric=metric, branch=branch, since=since, tag=tag
        )
        if file is not None:
            opened.evaluation(found.steps[-1].run.id).save(file)
            remark(f"wrote {output}: run {found.steps[-1].run.id}")
        elif output is not None:
            count = write_site(opened, found, Path(output), texts=not no_text)
            remark(f"wrote {counted(count, 'page')} to {output}")
    if json:
        moved = [change._asdict() for change in done.changes] if done else []
        plain = {**found.to_dict(), "changes": moved}
        click.echo(plain_json.dumps(plain, indent=2, ensure_ascii=False))
    else:
        show_all([*([_moved(done)] if done else []), found.table()])


def _moved(done: Rescored) -> Table:
    """What a corrected gold changed."""
    rows = [
        [str(one.run), one.metric, number(one.before), number(one.after)]
        for one in done.changes[:_SHOWN]
    ]
    title = f"gold version {done.version}: {counted(len(done.changes), 'mean')} moved"
    more = len(done.changes) - _SHOWN
    notes = [f"and {more} more"] if more > 0 else []
    return Table(["run", "metric", "before", "after"], rows, title, notes, texts=(1,))
