"""`karat agree`: how alike two runs are, without any gold."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import click

from karat.cli import options
from karat.cli.command import COUNT, Command
from karat.cli.options import existing
from karat.cli.outputs import Outputs
from karat.cli.pool import refuse_labels, sheet_rows
from karat.data.policies import Policies
from karat.data.runs import Document, Run
from karat.fusion import RunAgreement, agree
from karat.reading.readers import read, read_queries, with_texts
from karat.reports.files import rows_as_csv
from karat.reports.page import side_by_side_page

_FORMATS = ("html", "csv", "json", "md", "txt")
_SHOWN_DEPTH = 20


@click.command("agree", cls=Command)
@click.argument("run")
@click.argument("other")
@click.option(
    "-k", type=COUNT, default=10, show_default=True, help="Depth of the comparison."
)
@options.queries
@options.corpus
@options.outputs(
    help="Both runs side by side (.html), a sheet to label (.csv), or the "
    "result (.json, .md, .txt); repeatable."
)
@options.json
def command(
    *,
    run: str,
    other: str,
    k: int,
    queries: str | None,
    corpus: str | None,
    output: Sequence[str],
    json: bool,
) -> None:
    """Show how similar RUN and OTHER are, without any gold, and where they differ.

    By rank-biased overlap (rbo: 1 for the same ranking, 0 for nothing in common, the
    top weighs most) and the share of the top k that both have. If they hardly differ,
    no labels will show a difference; otherwise label what only one of them has.

    \b
    karat agree bm25.run dense.run --queries queries.jsonl --corpus corpus.jsonl \\
        -o agree.html
    karat agree bm25.run dense.run -o sheet.csv
    karat label apply sheet.csv -o gold.qrels
    """
    paths = existing([run, other])
    target = Outputs.plan(output, paths, _FORMATS, json=json)
    refuse_labels(target.files)
    loaded = [read(path, "run") for path in paths]
    both = [one.run for one in loaded if one.run is not None]
    result = agree(*both, k=k)
    facts = {q: fact for one in loaded for q, fact in one.queries.items()}
    facts |= read_queries(queries) if queries else {}

    def text(form: str) -> str:
        if form not in ("csv", "html"):
            return result.write(form)
        runs = [with_texts(one, corpus) if corpus else one for one in both]
        depth = k if form == "csv" else max(k, _SHOWN_DEPTH)
        tops = [_tops(one, result, depth) for one in runs]
        if form == "html":
            named = dict(zip((result.run, result.other), tops, strict=True))
            title = f"{result.run} and {result.other} side by side"
            alike = [one.rbo for one in result.queries]
            first, *others = result.tables()
            # The page lists all queries by itself.
            notes = [*first.notes, *(note for one in others for note in one.notes)]
            head = [replace(first, notes=notes)]
            return side_by_side_page(title, head, named, facts, alike)
        return rows_as_csv(sheet_rows(_apart(result, tops), facts, None, None))

    target.deliver(text, result.tables())


def _tops(run: Run, result: RunAgreement, k: int) -> dict[str, list[Document]]:
    """The top documents of the queries that both runs have, the least alike first."""
    rankings = dict(run.rankings(Policies()))
    return {one.query: rankings[one.query][:k] for one in result.queries}


def _apart(
    result: RunAgreement, tops: Sequence[Mapping[str, Sequence[Document]]]
) -> list[tuple[str, str, str | None]]:
    """What one run has alone, with its text."""
    pairs = []
    for one in result.queries:
        own = [document for top in tops for document in top[one.query]]
        texts = {document.id or document.text: document.text for document in own}
        pairs += [(one.query, name, texts.get(name)) for name in one.apart]
    return pairs
