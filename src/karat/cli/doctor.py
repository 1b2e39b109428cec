"""`karat doctor`: whether gold is good, and a corrected copy of it."""

from dataclasses import replace
from typing import Any

import click

from karat.cli.convert import write_target
from karat.cli.diagnose import outputs_of, print_result, write_results
from karat.cli.options import existing, mapping_option
from karat.cli.saying import say
from karat.cli.settings import Command
from karat.data.queries import DEFAULT_K
from karat.data.tables import counted
from karat.diagnosis.doctor import doctor, fix_gold
from karat.errors import UsageError
from karat.reading.doors import take_gold

__all__ = ["command"]


@click.command("doctor", cls=Command)
@click.argument("gold")
@click.option("--corpus", metavar="FILE", help="Texts of all documents, by id.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="FILE",
    help="What a system retrieved; repeatable.",
)
@click.option("--queries", metavar="FILE", help="Texts of queries.")
@click.option("-k", type=click.IntRange(min=1), default=DEFAULT_K, show_default=True)
@mapping_option
@click.option(
    "--fix", metavar="FILE", help="Write the gold, with what can safely be corrected."
)
@click.option(
    "-o",
    "--output",
    multiple=True,
    metavar="FILE",
    help="Write the findings, by extension: json, md, txt; repeatable.",
)
@click.option("--json", is_flag=True, help="Print the findings as JSON.")
def command(**options: Any) -> None:
    """Say what is wrong with GOLD: labels that dangle, contradict each other or lack.

    karat validate says whether files can be read; this says whether they are good.

    \b
    karat doctor gold.qrels --corpus corpus.jsonl
    karat doctor gold.jsonl --corpus corpus.jsonl --fix better.jsonl
    karat doctor gold.qrels --corpus corpus.jsonl --run bm25.run --run dense.run
    """  # noqa: D301
    (path,) = existing([options["gold"]])
    runs = existing(options["runs"])
    inputs = [path, *runs, options["corpus"], options["queries"]]
    outputs = outputs_of(options["output"], inputs, ("json", "md", "txt"))
    found = doctor(
        path,
        corpus=options["corpus"],
        runs=runs,
        queries=options["queries"],
        k=options["k"],
        mapping=options["map"],
    )
    print_result(found, found.tables(), options)
    write_results(found, outputs)
    if options["fix"]:
        data = take_gold(path, options["map"])
        if data.gold is None:
            raise UsageError(f"{path} holds no gold")
        better = fix_gold(data.gold, found.findings)
        write_target(replace(data, gold=better), options["fix"], None, None, inputs)
        count = sum(bool(one.fix) for one in found.findings)
        say(f"karat: corrected {counted(count, 'finding')}", err=True)
