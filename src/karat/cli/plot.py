"""`karat plot`: a picture of what runs scored, as a file."""

from pathlib import Path
from typing import Any

import click

from karat.cli.command import Command, option, say
from karat.cli.options import (
    existing,
    gold_option,
    metric_option,
    scoring_of,
    scoring_options,
    writable,
)
from karat.errors import UsageError
from karat.leaderboards import evaluation_of
from karat.metrics import split_metrics
from karat.reports.figures import KINDS, plot
from karat.results.leaderboard import Leaderboard


@click.command("plot", cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@gold_option
@metric_option
@option("--kind", "What to draw.", type=[*KINDS], default="curve", show_default=True)
@option(
    "-o --output FILE", "Where to: .svg, or .png with the extra png.", required=True
)
@scoring_options
def command(**options: Any) -> None:
    """Draw what each RUN scored: a run, samples with gold, or a saved evaluation.

    \b
    karat plot bm25.run dense.run --gold gold.qrels -m recall@10 -o curve.svg
    karat plot main.json branch.json --kind headroom -o headroom.png
    """  # noqa: D301
    paths = existing(options["runs"])
    target = writable(options["output"], [*paths, options["gold"]])
    if target.suffix.lower() not in {".svg", ".png"}:
        raise UsageError(f"-o {target}: a chart is written as .svg or .png")
    asked = [str(metric) for metric in split_metrics(options["metrics"])]
    scoring = scoring_of(options, **({"metrics": asked} if asked else {}))
    results = {}
    for path in paths:
        one = evaluation_of(Path(path).name, path, options["gold"], scoring)
        results[one.run if one.run not in results else path] = one
    first = asked[0] if asked else None
    plot(Leaderboard(results), options["kind"], first).save(target)
    if len(asked) > 1:
        say(f"karat: a chart shows one metric: {first}", err=True)
    say(f"karat: wrote {target}", err=True)
