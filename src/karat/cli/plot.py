"""`karat plot`: a picture of what runs scored, as a file."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from karat.cli import options
from karat.cli.command import Command, file_argument, file_option, remark
from karat.cli.options import Scoring, existing, writable
from karat.errors import UsageError
from karat.leaderboards import evaluation_of
from karat.metrics import split_metrics
from karat.reports.figures import KINDS, plot
from karat.results.leaderboard import Leaderboard


@click.command("plot", cls=Command)
@file_argument("runs", nargs=-1, required=True, metavar="RUN...")
@options.metrics
@click.option(
    "--kind",
    type=click.Choice([*KINDS]),
    default="curve",
    show_default=True,
    help="What to draw.",
)
@file_option(
    "-o", "--output", required=True, help="An .svg file, or .png with the extra png."
)
@options.scoring
@options.corpus
def command(
    runs: Sequence[str],
    metrics: Sequence[str],
    kind: str,
    output: str,
    scoring: Scoring,
    corpus: str | None,
) -> None:
    """Draw the scores of each RUN: a run, samples with gold, or a saved evaluation.

    \b
    karat plot bm25.run dense.run --gold gold.qrels -m recall@10 -o curve.svg
    karat plot main.json branch.json --kind headroom -o headroom.png
    """
    paths = existing(runs)
    target = writable(output, [*paths, scoring.gold])
    if target.suffix.lower() not in {".svg", ".png"}:
        raise UsageError(f"-o {target}: a chart is written as .svg or .png")
    wanted = [str(metric) for metric in split_metrics(metrics)]
    how = asdict(scoring) | {"corpus": corpus}
    if wanted:
        how["metrics"] = wanted
    gold = how.pop("gold")
    results = {}
    for path in paths:
        one = evaluation_of(Path(path).name, path, gold, how)
        results[one.run if one.run not in results else path] = one
    first = wanted[0] if wanted else None
    plot(Leaderboard(results), kind, first).save(target)
    if len(wanted) > 1:
        remark(f"a chart shows one metric: {first}")
    remark(f"wrote {target}")
