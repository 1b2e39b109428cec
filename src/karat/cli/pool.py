"""`karat pool`: which documents of several runs people should label, as a sheet."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from karat.cli import options
from karat.cli.command import Command, file_argument, remark
from karat.cli.options import existing, writable, write_dataset
from karat.cli.outputs import PAGE
from karat.data.gold import Gold
from karat.data.queries import Dataset, Query
from karat.data.tables import counted
from karat.errors import UsageError
from karat.fusion.fuse import choose_pool
from karat.reading.readers import read, read_corpus, read_queries
from karat.reports.files import rows_as_csv
from karat.reports.page import labelling_page
from karat.writing import write_file

SHEETS = ("csv", "html")
"""The formats of files in which people label."""

# As in trec_eval: in the pool, and not judged.
_UNJUDGED = -1.0


@click.command("pool", cls=Command)
@file_argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-k", default=20, show_default=True, help="Depth to which runs are read.")
@click.option(
    "--by",
    type=click.Choice(["rank", "rrf"]),
    default="rank",
    help="Order: by best rank, or by rrf.",
)
@click.option(
    "--budget",
    metavar="N",
    type=int,
    help="Total documents, spread evenly over queries.",
)
@options.gold(help="Existing labels: documents that have one are left out.")
@options.queries
@options.corpus
@options.outputs(
    help="A sheet (.csv) or page (.html) to label, or the pool with grade "
    "-1 (.qrels); repeatable."
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
    """Pool the top documents of each RUN, and write a sheet for people to label.

    No model is called. The sheet has a row per query and document, with an empty grade,
    and hides runs and ranks. Fill in the grades and turn the sheet into gold.

    \b
    karat pool bm25.run dense.run --budget 500 --queries queries.jsonl -o sheet.csv
    karat label apply sheet.csv -o gold.qrels
    """
    paths = existing(runs)
    if not output:
        raise UsageError("there is nothing to do: name a sheet, as in -o sheet.csv")
    targets = [writable(one, [*paths, gold]) for one in output]
    refuse_labels(targets)
    pool = pool_of(paths, k=k, by=by, budget=budget, gold=gold)
    rows = sheet_rows(*pool, queries, corpus)
    for target in [one for one in targets if one.suffix[1:] not in SHEETS]:
        unjudged: dict[str, dict[str, float]] = {}
        for row in rows:
            if row["document"] is None:
                raise UsageError(
                    f"-o {target}: documents without ids go into a sheet only"
                )
            unjudged.setdefault(str(row["query"]), {})[row["document"]] = _UNJUDGED
        write_dataset(Dataset(gold=Gold(unjudged)), target, role="gold")
    write_sheets(targets, rows)


def pool_of(
    paths: Sequence[str], *, gold: str | None = None, **how: Any
) -> tuple[list[tuple[str, str, str | None]], dict[str, Query]]:
    """The documents to label, each with the text that a run has, and the questions."""
    labels = (read(gold, "gold").gold or Gold()).documents if gold else None
    loaded = [read(path, "run") for path in paths]
    runs = [one.run for one in loaded if one.run]
    pool = choose_pool(runs, labelled=labels, **how)
    # By name, so that nobody is told what a system found good.
    rows = [(q, name, row[name]) for q, row in pool.items() for name in sorted(row)]
    return rows, {q: fact for one in loaded for q, fact in one.queries.items()}


def sheet_rows(
    pairs: Sequence[tuple[str, str, str | None]],
    facts: Mapping[str, Query],
    queries: str | None,
    corpus: str | None,
) -> list[dict[str, str | None]]:
    """A row for each document to label, with its text, the question and no grade."""
    texts = read_corpus(corpus, ids={name for _, name, _ in pairs}) if corpus else {}
    asked = {**facts, **(read_queries(queries) if queries else {})}
    return [
        {
            "query": query,
            "question": asked[query].text if query in asked else None,
            "document": None if text == name else name,
            "text": text or texts.get(name),
            "grade": None,
        }
        for query, name, text in pairs
    ]


def write_sheets(targets: Sequence[Path], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows to label: for a spreadsheet, or as a page that takes grades."""
    sheets = [one for one in targets if one.suffix[1:] in SHEETS]
    for target in sheets:
        page = target.suffix == PAGE
        text = labelling_page("Documents to label", rows) if page else rows_as_csv(rows)
        write_file(target, text)
        remark(f"wrote {target}")
    queries = counted(len({row["query"] for row in rows}), "query")
    remark(f"{counted(len(rows), 'document')} of {queries} to label")
    if sheets and not any(row["text"] for row in rows):
        remark("none of them has a text: add --corpus and --queries")


def refuse_labels(targets: Sequence[Path]) -> None:
    """Refuse to overwrite a sheet in which somebody has labelled something."""
    for target in targets:
        if target.suffix != ".csv" or not target.is_file():
            continue
        with target.open(encoding="utf-8", errors="replace", newline="") as file:
            labelled = sum(bool(row.get("grade")) for row in csv.DictReader(file))
        if labelled:
            raise UsageError(
                f"{target} has {counted(labelled, 'grade')} that would be lost; "
                f"karat label apply {target} -o gold.qrels keeps them, and --gold "
                "gold.qrels then leaves out what is labelled"
            )
