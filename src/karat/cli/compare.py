"""`karat compare`: whether a run is better than another, and in what way."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from karat.cli.gates import conclude, gate_results, read_gates
from karat.cli.options import (
    SCORING,
    existing,
    gate_options,
    mapping_option,
    metric_option,
    policy_options,
    writable,
)
from karat.cli.outputs import KEPT, PAGE, with_command
from karat.cli.saying import say
from karat.cli.settings import Command
from karat.comparison.compare import compare_evaluations
from karat.comparison.comparison import Comparison
from karat.comparison.pairing import average
from karat.errors import UsageError
from karat.leaderboards import evaluations_of
from karat.metrics import split_metrics
from karat.reports.terminal import show
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard
from karat.results.saved_form import LONE_SURROGATES, write_text

__all__ = ["command"]

_FORMATS = ("html", "json", "md", "tex", "txt", "csv")


@click.command("compare", cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="BASELINE CANDIDATE...")
@click.option("-g", "--gold", "--qrels", metavar="FILE", help="What should be found.")
@metric_option
@click.option(
    "--margin",
    multiple=True,
    metavar="METRIC=VALUE",
    help="The largest difference that does not matter; repeatable.",
)
@click.option("--all-pairs", is_flag=True, help="Compare every run with every other.")
@click.option("--by-tag", is_flag=True, help="Compare on the queries of each tag, too.")
@click.option("--cluster", metavar="FIELD", help="Queries of one value are one unit.")
@click.option(
    "--replicates",
    multiple=True,
    metavar="PREFIX",
    help="Runs whose names begin so are one system; repeatable.",
)
@click.option("-k", type=int, help="What the letter in recall@k means.")
@click.option("--match", default="auto", show_default=True, metavar="MATCHER")
@policy_options
@mapping_option
@click.option("--queries", metavar="FILE", help="Texts and tags of queries.")
@click.option("--corpus", metavar="FILE", help="Texts of documents, by id.")
@gate_options
@click.option(
    "-o",
    "--output",
    multiple=True,
    metavar="FILE",
    help=f"Write the comparison, by extension: {', '.join(_FORMATS)}; repeatable.",
)
@click.option("--json", is_flag=True, help="Print everything as JSON.")
@click.option("--no-text", is_flag=True, help="Keep texts out of what is written.")
@click.option("--force", is_flag=True, help="Compare what was not scored alike.")
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
    outputs = _outputs(options, paths)
    gates = read_gates(options)
    metrics = [str(metric) for metric in split_metrics(options["metrics"])]
    asked = [*metrics, *(gate.metric for gate in gates)]
    scoring: dict[str, Any] = {name: options[name] for name in SCORING}
    scoring |= {"mapping": options["map"], "force": options["force"] or None}
    if asked:
        scoring["metrics"] = asked
    if any(path.suffix == PAGE for path in outputs):
        scoring |= {"keep": KEPT, "judged": True}
    named = [*zip(_names(paths), paths, strict=True)]
    # What settings say for all commands need not count here.
    origin = click.get_current_context().get_parameter_source
    told = [n for n in SCORING if origin(n) is ParameterSource.COMMANDLINE]
    scored = evaluations_of(named, options["gold"], scoring, told)
    evaluations = _systems(scored, options["replicates"])
    if len(evaluations) < 2:  # noqa: PLR2004
        raise UsageError("nothing to compare: name a baseline and one more run")
    comparison = compare_evaluations(
        evaluations,
        metrics=metrics or None,
        margin=_margins(options["margin"]),
        all_pairs=options["all_pairs"],
        by_tag=options["by_tag"],
        cluster=options["cluster"],
        force=options["force"],
    )
    _report(comparison, evaluations, outputs, options)
    baseline, *candidates = evaluations
    results = gate_results(gates, candidates, options, baseline)
    conclude(candidates, results, options)


def _names(paths: Sequence[str]) -> list[str]:
    """The files' names, or their paths where two have one name."""
    names = [Path(path).name for path in paths]
    return names if len({*names}) == len(names) else list(paths)


def _outputs(options: Mapping[str, Any], paths: Sequence[str]) -> list[Path]:
    outputs = []
    for target in options["output"]:
        known = Path(target).suffix.removeprefix(".") in _FORMATS
        if not known and not Path(target).name.endswith("junit.xml"):
            raise UsageError(
                f"-o {target}: the extension chooses the format, one of "
                f"{', '.join('.' + name for name in _FORMATS)}, or NAME.junit.xml"
            )
        path = writable(target, [*paths, options["gold"]])
        outputs += [path] if known else []
    return outputs


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


def _report(
    comparison: Comparison,
    evaluations: Sequence[Evaluation],
    outputs: Sequence[Path],
    options: Mapping[str, Any],
) -> None:
    if options["no_text"]:
        comparison = comparison.without_texts()
        evaluations = [one.without_texts() for one in evaluations]
    if options["json"]:
        text = comparison.to_json() + "\n"
        click.echo(text.encode("utf-8", LONE_SURROGATES), nl=False)
    else:
        for place, table in enumerate(comparison.tables()):
            if place:
                click.echo()
            show(table)
    for path in outputs:
        if path.suffix == PAGE:
            board = with_command(Leaderboard({one.run: one for one in evaluations}))
            text = comparison.to_html(*board.values())
        else:
            text = comparison.write(path.suffix.removeprefix("."))
        write_text(path, text)
        say(f"karat: wrote {path}", err=True)
