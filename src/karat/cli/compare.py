"""`karat compare`: whether a run is better than another, and in what way."""

from collections.abc import Sequence
from dataclasses import asdict, fields

import click

from karat.cli import options, outputs
from karat.cli.combined import is_combined, show_combined
from karat.cli.command import Command, by_flag, file_argument, flag
from karat.cli.options import Combining, Gating, Scoring, existing, named_paths
from karat.comparison.compare import CORRECTIONS, TESTS, compare
from karat.comparison.differences import Test, average
from karat.errors import UsageError
from karat.leaderboards import evaluations_of
from karat.metrics import split_metrics
from karat.results.evaluation import Evaluation

_FORMATS = ("html", "json", "md", "tex", "txt", "csv")
_SCORING = [one.name for one in fields(Scoring) if one.name not in {"gold", "mapping"}]


@click.command("compare", cls=Command)
@file_argument("runs", nargs=-1, required=True, metavar="BASELINE CANDIDATE...")
@options.metrics
@click.option(
    "--margin",
    metavar="METRIC=VALUE",
    multiple=True,
    help="The largest difference that does not matter; repeatable.",
)
@flag("--all-pairs", help="Compare every run with every other.")
@options.slice
@flag("--by-tag", hidden=True)
@click.option(
    "--cluster", metavar="FIELD", help="Count queries with the same value as one unit."
)
@click.option(
    "--test", type=click.Choice(TESTS), default=TESTS[0], help="The test for p."
)
@click.option(
    "--correction",
    type=click.Choice(CORRECTIONS),
    help="Correct p for several comparisons; default: maxt, or holm with --all-pairs.",
)
@options.people(
    click.option(
        "--plan",
        metavar="VALUE|FILE",
        is_flag=False,
        flag_value="0.02",
        help="Estimate how many such queries would show this difference.  "
        "[default: 0.02] With --judged: the file written by karat label plan.",
    )
)
@click.option(
    "--replicates",
    metavar="PREFIX",
    multiple=True,
    help="Treat runs whose names begin with PREFIX as one system; repeatable.",
)
@options.scoring
@options.corpus
@options.gating
@options.outputs(
    help=f"Write the comparison, by extension: {', '.join(_FORMATS)}; repeatable."
)
@options.json
@options.no_text
@flag("--force", help="Compare even if the runs were scored differently.")
def command(
    *,
    runs: Sequence[str],
    metrics: Sequence[str],
    margin: Sequence[str],
    all_pairs: bool,
    slice: str | None,
    by_tag: bool,
    cluster: str | None,
    test: Test,
    correction: str | None,
    combining: Combining,
    replicates: Sequence[str],
    scoring: Scoring,
    corpus: str | None,
    gating: Gating,
    output: Sequence[str],
    json: bool,
    no_text: bool,
    force: bool,
) -> None:
    """Compare each CANDIDATE with BASELINE on the queries that both have.

    Each is a run of any format (with --gold), a file of samples that carry their gold,
    or an evaluation saved by karat evaluate -o FILE.json.

    \b
    karat compare main.json branch.json
    karat compare bm25.run dense.run --gold gold.qrels -m ndcg@10 --margin ndcg@10=0.01
    karat compare main.json branch.json --max-drop ndcg@10=0.02
    karat compare a.run b.run --judged judged.qrels --people people.qrels \\
        --plan todo.jsonl
    """
    if is_combined(combining):
        if len(runs) < 2:  # noqa: PLR2004
            raise UsageError("there is nothing to compare: name two runs or more")
        show_combined(runs, metrics, scoring, combining, output, json=json)
        return
    difference = _difference(combining.plan)
    paths = existing(runs)
    gates = outputs.read_gates(gating)
    inputs = [*paths, scoring.gold]
    target = outputs.Outputs.plan(output, inputs, _FORMATS, gates, json=json)
    wanted = [*map(str, split_metrics(metrics))]
    how = asdict(scoring) | {"corpus": corpus, "force": force or None}
    if scored := [*wanted, *(gate.metric for gate in gates)]:
        how["metrics"] = scored
    if target.has_page:
        how |= {"keep": outputs.SHOWN_DEPTH, "judged": True}
    flags = [*filter(by_flag, (*_SCORING, "corpus"))]
    evaluations = evaluations_of(named_paths(paths), how.pop("gold"), how, flags)
    if replicates:
        evaluations = _systems(evaluations, replicates)
    comparison = compare(
        *evaluations,
        metrics=wanted or None,
        margin=_margins(margin),
        all_pairs=all_pairs,
        by_tag=by_tag or slice is not None,
        cluster=cluster,
        test=test,
        correction=correction,
        force=force,
    )
    tables = [] if difference is None else [comparison.plan(difference)]
    shown = evaluations
    if no_text:
        comparison = comparison.without_texts()
        shown = [one.without_texts() for one in evaluations]

    def text(form: str) -> str:
        if f".{form}" != outputs.PAGE:
            return comparison.write(form)
        return comparison.to_html(*map(outputs.with_command, shown))

    first, *candidates = evaluations
    results = outputs.gate_results(
        gates, candidates, gating, first, force=force, cluster=cluster
    )
    tables += comparison.tables()
    target.deliver(text, tables, results, comparison.headline)
    target.conclude(candidates, results, strict=gating.strict)


def _difference(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise UsageError(
            f"--plan takes a difference such as 0.02, got {text!r}; a file of karat "
            "label plan goes with --judged and --people"
        ) from None


def _margins(pairs: Sequence[str]) -> dict[str, float]:
    margins = {}
    for pair in pairs:
        metric, _, value = pair.rpartition("=")
        try:
            margin = float(value)
        except ValueError:
            metric = ""
        if not metric:
            raise UsageError(f"--margin takes METRIC=VALUE, got {pair!r}")
        margins[metric] = margin
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
