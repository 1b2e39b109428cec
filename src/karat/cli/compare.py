"""`karat compare`: whether a run is better than another, and in what way."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from karat.cli.command import Command, option
from karat.cli.options import (
    SCORING,
    existing,
    gate_options,
    gold_option,
    json_option,
    metric_option,
    scoring_of,
    scoring_options,
)
from karat.cli.outputs import (
    PAGE,
    SHOWN_DEPTH,
    conclude,
    deliver,
    gate_results,
    outputs_of,
    read_gates,
    with_command,
)
from karat.comparison.compare import CORRECTIONS, TESTS, compare
from karat.comparison.pairing import average
from karat.errors import UsageError
from karat.leaderboards import evaluations_of
from karat.metrics import split_metrics
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard

_FORMATS = ("html", "json", "md", "tex", "txt", "csv")


@click.command("compare", cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="BASELINE CANDIDATE...")
@gold_option
@metric_option
@option(
    "--margin METRIC=VALUE*",
    "The largest difference that does not matter; repeatable.",
)
@option("--all-pairs", "Compare every run with every other.")
@option("--slice", "Compare on the queries of each tag, too.", type=["tag"])
@option("--by-tag", hidden=True)
@option("--cluster FIELD", "Queries of one value are one unit.")
@option("--test", "The test that p is of.", type=list(TESTS), default=TESTS[0])
@option(
    "--correction",
    "Of p for several comparisons; default: maxt, holm for all pairs.",
    type=list(CORRECTIONS),
)
@option(
    "--plan FLOAT",
    "How many such queries would show this difference.  [default: 0.02]",
    is_flag=False,
    flag_value=0.02,
)
@option("--replicates PREFIX*", "Runs whose names begin so are one system; repeatable.")
@scoring_options
@gate_options
@option(
    "-o --output FILE*",
    f"Write the comparison, by extension: {', '.join(_FORMATS)}; repeatable.",
)
@json_option
@option("--no-text", "Keep texts out of what is written.")
@option("--force", "Compare what was not scored alike.")
def command(**options: Any) -> None:
    """Compare each CANDIDATE with BASELINE on the queries that both have.

    Each is a run of any format (with --gold), a file of samples that carry their gold,
    or an evaluation saved by karat evaluate -o FILE.json.

    \b
    karat compare main.json branch.json
    karat compare bm25.run dense.run --gold gold.qrels -m ndcg@10 --margin ndcg@10=0.01
    karat compare main.json branch.json --max-drop ndcg@10=0.02
    """  # noqa: D301
    paths = existing(options["runs"])
    inputs = [*paths, options["gold"]]
    outputs = outputs_of(options["output"], inputs, _FORMATS, gates=True)
    gates = read_gates(options)
    metrics = [str(metric) for metric in split_metrics(options["metrics"])]
    scoring = scoring_of(options, force=options["force"] or None)
    if asked := [*metrics, *(gate.metric for gate in gates)]:
        scoring["metrics"] = asked
    if any(path.suffix == PAGE for path in outputs):
        scoring |= {"keep": SHOWN_DEPTH, "judged": True}
    names = [Path(path).name for path in paths]
    if len({*names}) < len(names):
        # Files of one name in several folders are told apart by their paths.
        names = paths
    # What settings say for all commands need not count here.
    origin = click.get_current_context().get_parameter_source
    told = [n for n in SCORING if origin(n) is ParameterSource.COMMANDLINE]
    named = [*zip(names, paths, strict=True)]
    scored = evaluations_of(named, options["gold"], scoring, told)
    evaluations = _systems(scored, options["replicates"])
    comparison = compare(
        *evaluations,
        metrics=metrics or None,
        margin=_margins(options["margin"]),
        all_pairs=options["all_pairs"],
        by_tag=options["by_tag"] or options["slice"] is not None,
        cluster=options["cluster"],
        test=options["test"],
        correction=options["correction"],
        force=options["force"],
    )
    planned = [] if options["plan"] is None else [comparison.plan(options["plan"])]
    shown = evaluations
    if options["no_text"]:
        comparison = comparison.without_texts()
        shown = [one.without_texts() for one in evaluations]

    def text(form: str) -> str:
        if f".{form}" != PAGE:
            return comparison.write(form)
        board = with_command(Leaderboard({one.run: one for one in shown}))
        return comparison.to_html(*board.values())

    first, *candidates = evaluations
    results = gate_results(gates, candidates, options, first)
    headline = comparison.headline
    tables = [*planned, *comparison.tables()]
    deliver(text, tables, options, outputs, results, headline)
    conclude(candidates, results, options)


def _margins(pairs: Sequence[str]) -> dict[str, float]:
    margins = {}
    for pair in pairs:
        metric, _, value = pair.rpartition("=")
        try:
            margins[metric] = float(value)
        except ValueError:
            raise UsageError(f"--margin takes METRIC=VALUE, got {pair!r}") from None
    return margins


def _systems(
    evaluations: Sequence[Evaluation], prefixes: Sequence[str]
) -> list[Evaluation]:
    """The systems: runs of one prefix are replicates, and count as one."""
    systems: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        own = [prefix for prefix in prefixes if evaluation.run.startswith(prefix)]
        systems.setdefault(own[0] if own else evaluation.run, []).append(evaluation)
    for prefix in prefixes:
        if prefix not in systems:
            raise UsageError(f"--replicates {prefix}: no run has a name that begins so")
    return [
        average(runs, name) if name in prefixes else run
        for name, runs in systems.items()
        for run in (runs[:1] if name in prefixes else runs)
    ]
