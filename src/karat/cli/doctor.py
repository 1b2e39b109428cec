"""`karat doctor`: whether gold is good; `karat label`: gold with more labels."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from karat.cli.command import Command, say
from karat.cli.options import (
    COUNT,
    existing,
    mapping_option,
    option,
    writable,
    write_dataset,
)
from karat.cli.outputs import outputs_of, print_result, write_results
from karat.data.gold import Gold
from karat.data.queries import DEFAULT_K, Dataset
from karat.data.tables import counted
from karat.diagnosis.doctor import doctor
from karat.diagnosis.gold_findings import fix_gold
from karat.errors import DataError, UsageError
from karat.reading.doors import load, take_gold
from karat.reading.label_patch import apply_labels

__all__ = ["command", "label"]

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
    print_result(lambda: found.write("json"), found.tables(), options)
    write_results(outputs, found.write)
    if options["fix"]:
        data = take_gold(path, options["map"])
        if data.gold is None:
            raise UsageError(f"{path} holds no gold")
        better = replace(data, gold=fix_gold(data.gold, found.findings))
        write_dataset(better, options["fix"], inputs=inputs)
        count = sum(bool(one.fix) for one in found.findings)
        say(f"karat: corrected {counted(count, 'finding')}", err=True)


@click.command("label", cls=Command)
@click.argument("action", type=click.Choice(["apply"]))
@click.argument("patches", nargs=-1, required=True, metavar="PATCH...")
@option("-g --gold --qrels FILE", "The gold so far.", required=True)
@option("-o --output FILE", "Where the new gold goes.", required=True)
def label(action: str, patches: tuple[str, ...], gold: str, output: str) -> None:
    """Merge the labels of each PATCH into gold, with who gave them and when.

    A report (karat evaluate ... -o report.html) lets people grade what was retrieved,
    and saves what they did as a patch. Of several patches the last one counts.

    \b
    karat label apply labels.json --gold gold.qrels -o labelled.qrels
    """  # noqa: D301
    del action
    paths = existing(patches)
    target = writable(output, [*paths, gold])
    before = _gold_or_samples(gold)
    merged = before.gold or Gold()
    for path in paths:
        done = apply_labels(path, merged)
        merged = done.gold
        say(f"karat: {path}: {done}", err=True)
        for query, item, old, new in done.changed[:_SHOWN]:
            say(f"karat: {query} {item}: {old:g} -> {new:g}", err=True)
    role: Any = "gold" if before.run is None else None
    write_dataset(replace(before, gold=merged), target, role=role)


def _gold_or_samples(path: str) -> Dataset:
    """The gold, or samples, which keep what was retrieved for them."""
    with suppress(DataError):
        samples = load(path, role="samples")
        if samples.run is not None and samples.gold is not None:
            return samples
    return load(path, role="gold")
