"""`karat fuse`: make one run of several, and show what each adds."""

import sys
from dataclasses import replace
from typing import Any

import click

from karat.cli.command import Command, option, say
from karat.cli.options import (
    STDOUT,
    existing,
    format_name,
    mapping_option,
    write_dataset,
)
from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.errors import UsageError
from karat.fusion import METHODS, NORMS, complementarity, fuse
from karat.fusion.candidates import order_notices
from karat.reading.readers import read
from karat.reports.terminal import show

_FORMATS = ("html", "json", "md", "tex", "txt", "csv")


def _read_weights(
    _: click.Context, parameter: click.Parameter, text: str | None
) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"expected numbers like 0.7,0.3, got {text!r}", param=parameter
        ) from None


@click.command("fuse", cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option("-o --output FILE", "The run to write; - is stdout.")
@option("--to FORMAT", "Its format, if not by extension.")
@option(
    "--method",
    "By ranks (rrf, borda) or by scores; default: rrf.",
    type=[*METHODS],
    default="rrf",
)
@option(
    "--norm",
    "How scores are brought to one scale; default: min-max.",
    type=[*NORMS],
)
@option(
    "--weights W,W...",
    "One for each run, as in 0.7,0.3; default: all equal.",
    callback=_read_weights,
)
@option("-k FLOAT", "The constant of rrf; default: 60.", default=60)
@option("--depth INTEGER", "Documents to keep for a query; all of them.")
@option("-g --gold --qrels FILE", "Show what each run adds, by recall@10.")
@option("--at INTEGER", "Another cutoff for that table.", default=10)
@mapping_option
def command(**options: Any) -> None:
    """Make one run of several; with --gold, show what each adds to the others.

    \b
    karat fuse bm25.run dense.run -o hybrid.run
    karat fuse bm25.run dense.run --method sum --weights 0.3,0.7 -o hybrid.run
    karat fuse bm25.run dense.run --gold gold.qrels
    """  # noqa: D301
    paths, target = existing(options["runs"]), options["output"]
    if target is None and options["gold"] is None:
        raise UsageError("there is nothing to do: name a run to write, as in -o FILE")
    to = None if target is None else format_name(target, options["to"])
    runs: dict[str, Run] = {}
    for path in paths:
        dataset = read(path, "run", mapping=options["map"], shared=True)
        run = dataset.run
        if run is None:
            raise UsageError(f"{path} holds no run")
        run.retrieval = replace(run.retrieval, notices=dataset.notices)
        # Files of one name are told apart by their paths.
        runs[path if run.name in runs else run.name] = run
    for notice in order_notices(runs):
        say(f"karat: {notice}", err=True)
    if target is not None:
        how = {name: options[name] for name in ("weights", "k", "norm", "depth")}
        fused = Dataset(run=fuse(runs, options["method"], **how))
        write_dataset(fused, target, to, "run", [*paths, options["gold"]])
    if options["gold"] is not None:
        gold = read(options["gold"], "gold", mapping=options["map"], shared=True)
        table = complementarity(runs, gold, k=options["at"]).table()
        show(table, sys.stderr if target == STDOUT else None)
