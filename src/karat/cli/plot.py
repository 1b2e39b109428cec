"""`karat plot`: a picture of what runs scored, as a file."""

from pathlib import Path
from typing import Any

import click

from karat.cli.options import (
    SCORING,
    existing,
    mapping_option,
    metric_option,
    policy_options,
    writable,
)
from karat.cli.saying import say
from karat.cli.settings import Command
from karat.errors import UsageError
from karat.leaderboards import evaluation_of
from karat.metrics import split_metrics
from karat.reports.figures import KINDS, plot
from karat.results.leaderboard import Leaderboard

__all__ = ["command"]


@click.command("plot", cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-g", "--gold", "--qrels", metavar="FILE", help="What should be found.")
@metric_option
@click.option(
    "--kind",
    type=click.Choice([*KINDS]),
    default="curve",
    show_default=True,
    help="What to draw.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="Where to: .svg, or .png with the extra png.",
)
@click.option("-k", type=int, help="What the letter in recall@k means.")
@click.option("--match", default="auto", show_default=True, metavar="MATCHER")
@policy_options
@mapping_option
@click.option("--queries", metavar="FILE", help="Texts and tags of queries.")
@click.option("--corpus", metavar="FILE", help="Texts of documents, by id.")
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
    scoring: dict[str, Any] = {name: options[name] for name in SCORING}
    scoring["mapping"] = options["map"]
    asked = split_metrics(options["metrics"])
    first = str(asked[0]) if asked else None
    if asked:
        scoring["metrics"] = asked
    results = {}
    for path in paths:
        name = Path(path).name
        one = evaluation_of(name, path, options["gold"], scoring)
        results[one.run if one.run not in results else path] = one
    plot(Leaderboard(results), options["kind"], first).save(target)
    if len(asked) > 1:
        say(f"karat: a chart shows one metric: {first}", err=True)
    say(f"karat: wrote {target}", err=True)
