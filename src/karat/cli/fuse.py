"""`karat fuse`: one run out of several, and what each of them adds."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from karat.cli.convert import STDOUT, format_name, write_target
from karat.cli.options import existing, mapping_option
from karat.cli.settings import Command
from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.errors import UsageError
from karat.fusion import METHODS, NORMS, complementarity, fuse
from karat.reading.doors import load
from karat.reading.meaning.mapping import mapping_of, shared_names
from karat.reports.terminal import show

__all__ = ["command"]


def _read_weights(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> list[float] | None:
    del context
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
@click.option("-o", "--output", metavar="FILE", help="The run to write; - is stdout.")
@click.option("--to", metavar="FORMAT", help="Its format, if not by extension.")
@click.option(
    "--method",
    type=click.Choice([*METHODS]),
    default="rrf",
    help="By ranks (rrf, borda) or by scores; rrf unless told.",
)
@click.option(
    "--norm",
    type=click.Choice([*NORMS]),
    help="How scores are brought to one scale; min-max unless told.",
)
@click.option(
    "--weights",
    metavar="W,W...",
    callback=_read_weights,
    help="One for each run, as in 0.7,0.3; all equal unless told.",
)
@click.option("-k", type=float, default=60, help="The constant of rrf; 60 unless told.")
@click.option("--depth", type=int, help="Documents to keep for a query; all of them.")
@click.option(
    "-g",
    "--gold",
    "--qrels",
    metavar="FILE",
    help="Show what each run adds, by recall@10.",
)
@click.option("--at", type=int, default=10, help="Another cutoff for that table.")
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
    runs = _read(paths, options)
    if target is not None:
        fused = fuse(
            runs,
            options["method"],
            weights=options["weights"],
            k=options["k"],
            norm=options["norm"],
            depth=options["depth"],
        )
        inputs = [*paths, options["gold"]]
        write_target(Dataset(run=fused), target, to, "run", inputs)
    if options["gold"] is not None:
        gold = load(
            options["gold"],
            role="gold",
            mapping=mapping_of("gold", options["map"]),
            optional=shared_names(options["map"]),
        )
        table = complementarity(runs, gold, k=options["at"]).table()
        show(table, sys.stderr if target == STDOUT else None)


def _read(paths: Sequence[str], options: Any) -> dict[str, Run]:
    """The runs by name; files of one name are told apart by their paths."""
    mapping = mapping_of("run", options["map"])
    shared = shared_names(options["map"])
    runs: dict[str, Run] = {}
    for path in paths:
        run = load(path, role="run", mapping=mapping, optional=shared).run
        if run is None:
            raise UsageError(f"{path} holds no run")
        runs[path if run.name in runs else run.name] = run
    return runs
