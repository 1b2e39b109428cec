"""`karat pool`: which documents of several runs people should label, as a sheet."""

import csv
from pathlib import Path
from typing import Any

import click

from karat.cli.command import Command, option, say
from karat.cli.options import existing, queries_option, writable, write_dataset
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
@option("-k INTEGER", "How deep each run is read.", default=20, show_default=True)
@option("--by", "What comes first: best rank, or rrf.", type=["rank", "rrf"])
@option("--budget N", "How many documents in all, evenly over queries.", type=int)
@option("-g --gold --qrels FILE", "Labels there are: those are left out.")
@queries_option
@option("--corpus FILE", "Texts of documents, by id.")
@option(
    "-o --output FILE*",
    "A sheet to label (.csv), or the pool with grade -1 (.qrels); repeatable.",
)
def command(**options: Any) -> None:
    """Pool the top documents of each RUN, and write a sheet that people label.

    No model is asked. The sheet has a row per query and document, with an empty grade,
    and does not say which run found what, or where. Fill in grades; gold is made of it.

    \b
    karat pool bm25.run dense.run --budget 500 --queries queries.jsonl -o sheet.csv
    karat label apply sheet.csv -o gold.qrels
    """  # noqa: D301
    paths = existing(options["runs"])
    if not options["output"]:
        raise UsageError("there is nothing to do: name a sheet, as in -o sheet.csv")
    targets = [writable(one, [*paths, options["gold"]]) for one in options["output"]]
    for target in targets:
        _refuse_labels(target)
    runs = [loaded.run for path in paths if (loaded := read(path, "run")).run]
    gold = read(options["gold"], "gold").gold if options["gold"] else None
    pool = choose_pool(
        runs,
        k=options["k"],
        by=options["by"] or "rank",
        budget=options["budget"],
        labelled=gold.documents if gold else None,
    )
    names = {name for row in pool.values() for name in row}
    corpus = read_corpus(options["corpus"], ids=names) if options["corpus"] else {}
    queries = read_queries(options["queries"]) if options["queries"] else {}
    rows = [
        {
            "query": query,
            "question": queries[query].text if query in queries else None,
            "document": None if row[name] == name else name,
            "text": row[name] or corpus.get(name),
            "grade": None,
        }
        for query, row in pool.items()
        # By name, so that nobody is told what a system found good.
        for name in sorted(row)
    ]
    for target in targets:
        if Path(target).suffix == _SHEET:
            write_file(target, rows_as_csv(rows))
            say(f"karat: wrote {target}", err=True)
        elif any(name == text for row in pool.values() for name, text in row.items()):
            raise UsageError(f"-o {target}: documents without ids go into a sheet only")
        else:
            unjudged = {q: dict.fromkeys(row, _UNJUDGED) for q, row in pool.items()}
            write_dataset(Dataset(gold=Gold(unjudged)), target, role="gold")
    size = counted(len(rows), "document")
    say(f"karat: {size} of {counted(len(pool), 'query')} to label", err=True)


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
