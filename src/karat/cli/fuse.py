"""`karat fuse`: make one run of several, and show what each adds."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from json import dumps

import click

from karat.cli import options
from karat.cli.command import Command, file_argument, file_option, flag, remark
from karat.cli.options import STDOUT, existing, format_name, write_dataset
from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.errors import UsageError
from karat.fusion import METHODS, NORMS, complementarity, fuse
from karat.fusion.fuse import Method, Norm, order_notices
from karat.reading.readers import read
from karat.reports.terminal import show_table


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
@file_argument("runs", nargs=-1, required=True, metavar="RUN...")
@file_option("-o", "--output", help="The run to write; - is stdout.")
@click.option("--to", metavar="FORMAT", help="Output format; default: by extension.")
@click.option(
    "--method",
    type=click.Choice([*METHODS]),
    default="rrf",
    help="By ranks (rrf, borda) or by scores; default: rrf.",
)
@click.option(
    "--norm",
    type=click.Choice([*NORMS]),
    help="How scores are normalised; default: min-max.",
)
@click.option(
    "--weights",
    metavar="W,W...",
    callback=_read_weights,
    help="One weight for each run, as in 0.7,0.3; default: all equal.",
)
@click.option(
    "--rrf-k", type=float, default=60, show_default=True, help="The constant of rrf."
)
@click.option(
    "--depth", type=int, help="Documents to keep for each query; default: all."
)
@options.gold(help="Show what each run adds to recall@k.")
@click.option(
    "-k", "--at", "k", default=10, show_default=True, help="The cutoff of that table."
)
@flag("--json", help="Print what each run adds as JSON.")
@options.mapping
def command(
    *,
    runs: Sequence[str],
    output: str | None,
    to: str | None,
    method: Method,
    norm: Norm | None,
    weights: Sequence[float] | None,
    rrf_k: float,
    depth: int | None,
    gold: str | None,
    k: int,
    json: bool,
    mapping: Mapping[str, str],
) -> None:
    """Combine several runs into one; with --gold, show what each adds to the others.

    \b
    karat fuse bm25.run dense.run -o hybrid.run
    karat fuse bm25.run dense.run --method sum --weights 0.3,0.7 -o hybrid.run
    karat fuse bm25.run dense.run --gold gold.qrels
    """
    paths = existing(runs)
    if output is None and gold is None:
        raise UsageError("there is nothing to do: name a run to write, as in -o FILE")
    to = None if output is None else format_name(output, to)
    named: dict[str, Run] = {}
    for path in paths:
        dataset = read(path, "run", mapping=mapping, shared=True)
        run = dataset.run
        if run is None:
            raise UsageError(f"{path} holds no run")
        run.retrieval = replace(run.retrieval, notices=dataset.notices)
        # Files of one name are told apart by their paths.
        named[path if run.name in named else run.name] = run
    for notice in order_notices(named):
        remark(str(notice))
    if output is not None:
        fused = fuse(named, method, weights=weights, k=rrf_k, norm=norm, depth=depth)
        write_dataset(Dataset(run=fused), output, to, "run", [*paths, gold])
    if gold is not None:
        truth = read(gold, "gold", mapping=mapping, shared=True)
        found = complementarity(named, truth, k=k)
        stream = sys.stderr if output == STDOUT else sys.stdout
        if json:
            click.echo(dumps(found.to_dict(), indent=2), stream)
        else:
            show_table(found.table(), stream)
