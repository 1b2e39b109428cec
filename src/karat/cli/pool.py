"""`karat pool`: which documents of several runs people should label, as a sheet."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from karat.cli import options
from karat.cli.command import Command, remark
from karat.cli.options import existing, writable, write_dataset
from karat.data.gold import Gold
from karat.data.queries import Dataset
from karat.data.tables import counted
from karat.errors import UsageError
from karat.fusion.pooling import choose_pool
from karat.reading.readers import read, read_corpus, read_queries
from karat.reports.files import rows_as_csv
from karat.writing import write_file

_SHEET = ".csv"
# As in trec_eval: in the pool, and not judged.
_UNJUDGED = -1.0


@click.command("pool", cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-k", default=20, show_default=True, help="How deep each run is read.")
@click.option(
    "--by",
    type=click.Choice(["rank", "rrf"]),
    default="rank",
    help="What comes first: best rank, or rrf.",
)
@click.option(
    "--budget",
    metavar="N",
    type=int,
    help="How many documents in all, evenly over queries.",
)
@options.gold(help="Labels there are: those are left out.")
@options.queries
@options.corpus
@options.outputs(
    help="A sheet to label (.csv), or the pool with grade -1 (.qrels); repeatable."
)
def command(
    *,
    runs: Sequence[str],
    k: int,
    by: Literal["rank", "rrf"],
    budget: int | None,
    gold: str | None,
    queries: str | None,
    corpus: str | None,
    output: Sequence[str],
) -> None:
    """Pool the top documents of each RUN, and write a sheet that people label.

    No model is asked. The sheet has a row per query and document, with an empty grade,
    and does not say which run found what, or where. Fill in grades; gold is made of it.

    \b
    karat pool bm25.run dense.run --budget 500 --queries queries.jsonl -o sheet.csv
    karat label apply sheet.csv -o gold.qrels
    """
    paths = existing(runs)
    if not output:
        raise UsageError("there is nothing to do: name a sheet, as in -o sheet.csv")
    targets = [writable(one, [*paths, gold]) for one in output]
    for target in targets:
        _refuse_labels(target)
    labels = (read(gold, "gold").gold or Gold()).documents if gold else None
    pool = choose_pool(
        [loaded.run for path in paths if (loaded := read(path, "run")).run],
        k=k,
        by=by,
        budget=budget,
        labelled=labels,
    )
    names = {name for row in pool.values() for name in row}
    texts = read_corpus(corpus, ids=names) if corpus else {}
    facts = read_queries(queries) if queries else {}
    rows = [
        {
            "query": query,
            "question": facts[query].text if query in facts else None,
            "document": None if row[name] == name else name,
            "text": row[name] or texts.get(name),
            "grade": None,
        }
        for query, row in pool.items()
        # By name, so that nobody is told what a system found good.
        for name in sorted(row)
    ]
    for target in targets:
        if Path(target).suffix == _SHEET:
            write_file(target, rows_as_csv(rows))
            remark(f"wrote {target}")
        elif any(name == text for row in pool.values() for name, text in row.items()):
            raise UsageError(f"-o {target}: documents without ids go into a sheet only")
        else:
            unjudged = {q: dict.fromkeys(row, _UNJUDGED) for q, row in pool.items()}
            write_dataset(Dataset(gold=Gold(unjudged)), target, role="gold")
    size = counted(len(rows), "document")
    remark(f"{size} of {counted(len(pool), 'query')} to label")


def _refuse_labels(target: Path) -> None:
    """Refuse to overwrite a sheet in which somebody has labelled something."""
    if target.suffix != _SHEET or not target.is_file():
        return
    with target.open(encoding="utf-8", errors="replace", newline="") as file:
        labelled = sum(bool(row.get("grade")) for row in csv.DictReader(file))
    if labelled:
        raise UsageError(
            f"{target} has {counted(labelled, 'grade')} that would be lost; "
            f"karat label apply {target} -o gold.qrels keeps them, and --gold "
            "gold.qrels then leaves out what is labelled"
        )
