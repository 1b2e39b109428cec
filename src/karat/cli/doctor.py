"""`karat doctor`: whether gold is good."""

from dataclasses import replace
from typing import Any

import click

from karat.cli.command import COUNT, Command, option, say
from karat.cli.options import existing, mapping_option, write_dataset
from karat.cli.outputs import deliver, outputs_of
from karat.data.queries import DEFAULT_K
from karat.data.tables import counted
from karat.diagnosis.doctor import doctor, fix_gold
from karat.errors import UsageError
from karat.reading.readers import read

_SHOWN = 10


@click.command("doctor", cls=Command)
@click.argument("gold")
@option("--corpus FILE", "Texts of all documents, by id.")
@option("--run runs FILE*", "What a system retrieved; repeatable.")
@option("--queries FILE", "Texts of queries.")
@option("-k", type=COUNT, default=DEFAULT_K, show_default=True)
@mapping_option
@option("--fix FILE", "Write the gold, with what can safely be corrected.")
@option(
    "-o --output FILE*",
    "Write the findings, by extension: json, md, txt; repeatable.",
)
@option("--json", "Print the findings as JSON.")
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
        runs=runs,
        mapping=options["map"],
        **{name: options[name] for name in ("corpus", "queries", "k")},
    )
    if options["fix"]:
        data = read(path, "gold", mapping=options["map"], shared=True)
        if data.gold is None:
            raise UsageError(f"{path} holds no gold")
        better = replace(data, gold=fix_gold(data.gold, found.findings))
        write_dataset(better, options["fix"], inputs=inputs)
        count = sum(bool(one.fix) for one in found.findings)
        say(f"karat: corrected {counted(count, 'finding')}", err=True)
    deliver(found.write, found.tables(), options, outputs)
