"""`karat label`: merge labels that people gave into gold."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from karat.cli import options
from karat.cli.command import Command, file_option, remark
from karat.cli.options import existing, writable, write_dataset
from karat.data.gold import Gold
from karat.data.queries import Dataset
from karat.errors import DataError
from karat.reading.labels import apply_labels
from karat.reading.readers import read

_SHOWN = 10


@click.command("label", cls=Command)
@click.argument("action", type=click.Choice(["apply"]))
@click.argument("files", nargs=-1, required=True, metavar="LABELS...")
@options.gold(help="The gold so far, if there is any.")
@file_option("-o", "--output", required=True, help="Where the new gold goes.")
def command(action: str, files: tuple[str, ...], gold: str | None, output: str) -> None:
    """Merge LABELS into gold, with who gave them and when.

    A report (karat evaluate ... -o report.html) lets people grade what was retrieved,
    and saves their labels, one JSON line each. A sheet (karat pool ... -o sheet.csv)
    holds them in rows; those without a grade are left alone, and so is the gold where
    the grade is "can't tell". Of several labels of a document the last one counts.

    \b
    karat label apply sheet.csv -o gold.qrels
    karat label apply labels.jsonl --gold gold.qrels -o labelled.qrels
    """
    del action
    paths = existing(files)
    target = writable(output, [*paths, gold])
    before = Dataset(gold=Gold()) if gold is None else _gold_or_samples(gold)
    merged = before.gold or Gold()
    for path in paths:
        done = apply_labels(path, merged)
        merged = done.gold
        remark(f"{path}: {done}")
        for query, item, old, new in done.changed[:_SHOWN]:
            remark(f"{query} {item}: {old:g} -> {new:g}")
    role: Any = "gold" if before.run is None else None
    write_dataset(replace(before, gold=merged), target, role=role)


def _gold_or_samples(path: str) -> Dataset:
    """The gold, or samples, which keep what was retrieved for them."""
    with suppress(DataError):
        samples = read(path, "samples")
        if samples.run is not None and samples.gold is not None:
            return samples
    return read(path, "gold")
