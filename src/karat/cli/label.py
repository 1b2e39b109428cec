"""`karat label`: labels that were given in an HTML report, merged into gold."""

from contextlib import suppress
from dataclasses import replace

import click

from karat.cli.judge_claims import write_dataset
from karat.cli.options import existing, writable
from karat.cli.saying import say
from karat.cli.settings import Command
from karat.data.gold import Gold
from karat.data.queries import Dataset
from karat.errors import DataError
from karat.reading.doors import load
from karat.reading.label_patch import apply_labels

__all__ = ["command"]

_SHOWN = 10


@click.command("label", cls=Command)
@click.argument("action", type=click.Choice(["apply"]))
@click.argument("patches", nargs=-1, required=True, metavar="PATCH...")
@click.option(
    "-g", "--gold", "--qrels", required=True, metavar="FILE", help="The gold so far."
)
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="Where the new gold goes."
)
def command(action: str, patches: tuple[str, ...], gold: str, output: str) -> None:
    """Merge the labels of each PATCH into gold, with who gave them and when.

    A report (karat evaluate ... -o report.html) lets people grade what was retrieved,
    and saves what they did as a patch. Of several patches the last one counts.

    \b
    karat label apply labels.json --gold gold.qrels -o labelled.qrels
    """  # noqa: D301
    del action
    paths = existing(patches)
    target = writable(output, [*paths, gold])
    before = _loaded(gold)
    merged = before.gold or Gold()
    for path in paths:
        done = apply_labels(path, merged)
        merged = done.gold
        say(f"karat: {path}: {done}", err=True)
        for query, item, old, new in done.changed[:_SHOWN]:
            say(f"karat: {query} {item}: {old:g} -> {new:g}", err=True)
    write_dataset(replace(before, gold=merged), target)


def _loaded(path: str) -> Dataset:
    """The gold, or samples, which keep what was retrieved for them."""
    with suppress(DataError):
        samples = load(path, role="samples")
        if samples.run is not None and samples.gold is not None:
            return samples
    return load(path, role="gold")
