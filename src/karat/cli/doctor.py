"""`karat doctor`: whether gold is good."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import click

from karat.cli import options
from karat.cli.command import COUNT, Command, file_argument, file_option, flag, remark
from karat.cli.options import existing, write_dataset
from karat.cli.outputs import Outputs
from karat.data.queries import DEFAULT_K
from karat.data.tables import counted
from karat.diagnosis.doctor import doctor, fix_gold
from karat.errors import UsageError
from karat.reading.readers import read


@click.command("doctor", cls=Command)
@file_argument("gold")
@file_option("--corpus", help="Texts of all documents, by id.")
@file_option("--run", "runs", multiple=True, help="A run of a system; repeatable.")
@file_option("--queries", help="Texts of queries.")
@click.option("-k", type=COUNT, default=DEFAULT_K, show_default=True)
@options.mapping
@file_option("--fix", help="Write a copy of the gold with all safe corrections.")
@options.outputs(help="Write the findings, by extension: json, md, txt; repeatable.")
@flag("--json", help="Print the findings as JSON.")
def command(
    *,
    gold: str,
    corpus: str | None,
    runs: Sequence[str],
    queries: str | None,
    k: int,
    mapping: Mapping[str, str],
    fix: str | None,
    output: Sequence[str],
    json: bool,
) -> None:
    """Find problems in GOLD: dangling, contradictory or missing labels.

    karat validate checks whether files can be read; this checks whether they are good.

    \b
    karat doctor gold.qrels --corpus corpus.jsonl
    karat doctor gold.jsonl --corpus corpus.jsonl --fix better.jsonl
    karat doctor gold.qrels --corpus corpus.jsonl --run bm25.run --run dense.run
    """
    (path,) = existing([gold])
    runs = existing(runs)
    inputs = [path, *runs, corpus, queries]
    outputs = Outputs.plan(output, inputs, ("json", "md", "txt"), json=json)
    found = doctor(
        path, runs=runs, mapping=mapping, corpus=corpus, queries=queries, k=k
    )
    if fix:
        data = read(path, "gold", mapping=mapping, shared=True)
        if data.gold is None:
            raise UsageError(f"{path} holds no gold")
        better = replace(data, gold=fix_gold(data.gold, found.findings))
        write_dataset(better, fix, inputs=inputs)
        count = sum(bool(one.fix) for one in found.findings)
        remark(f"corrected {counted(count, 'finding')}")
    outputs.deliver(found.write, found.tables())
