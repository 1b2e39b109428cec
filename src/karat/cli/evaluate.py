"""`karat evaluate`: score one or more runs against gold."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from karat.cli.command import Command, option, say
from karat.cli.options import (
    existing,
    gate_options,
    json_option,
    judge_options,
    mapping_option,
    metric_option,
    policy_options,
    queries_option,
    scoring_of,
)
from karat.cli.outputs import (
    PAGE,
    SHOWN_DEPTH,
    admit,
    conclude,
    deliver,
    gate_results,
    outputs_of,
    read_gates,
    rehearse,
    show_all,
    with_command,
)
from karat.data.policies import policies_for
from karat.data.queries import Dataset
from karat.data.tables import Table
from karat.errors import DataError, ParameterError, UsageError
from karat.explanation import explain
from karat.leaderboards import leaderboard
from karat.matching.shipped import MATCHERS
from karat.metrics import read_metric, split_metrics
from karat.planning import DEFAULT_METRICS, with_references
from karat.reading.format import FORMATS
from karat.reading.pair import samples
from karat.reading.readers import read, read_by
from karat.reading.source import Role
from karat.reports import REPORTS
from karat.reports.terminal import show_text, track, width_of
from karat.results.leaderboard import WIDTH, Leaderboard


def _read_gold(options: Mapping[str, Any], paths: Sequence[str]) -> Dataset | None:
    """The gold, if it has a file of its own."""
    if options["gold"] is None:
        return None
    if options["gold"] == "-" and "-" in paths:
        raise UsageError("standard input can be read once only: one - at most")
    return read(options["gold"], "gold", mapping=options["map"], shared=True)


def _read_runs(
    paths: Sequence[str],
    options: Mapping[str, Any],
    gold: Dataset | None,
    judged: Sequence[str],
) -> Iterator[tuple[str, Dataset]]:
    """Each run with its name, read when it is its turn."""
    how = {"mapping": options["map"], "format": options["format"]}
    several = {Path(path).name for path in paths}
    for path in paths:
        if options["by"] is not None:
            role: Role = "samples" if gold is None else "run"
            systems = read_by(path, options["by"], role, shared=gold or False, **how)
            prefix = f"{Path(path).name}:" if len(paths) > 1 else ""
            named = {prefix + name: part for name, part in systems.items()}
        else:
            if gold is None:
                loaded = samples(path, others=paths, **how)
            else:
                loaded = read(path, "run", shared=gold, **how)
            # Files of one name in several folders are told apart by their paths.
            own = loaded.run.name if loaded.run is not None else path
            named = {own if len(several) == len(paths) else path: loaded}
        for part in named.values():
            _check_references(gold or part, judged)
        yield from named.items()


def _check_references(truth: Dataset, metrics: Sequence[str]) -> None:
    """Refuse answers where a judge needs a reference, and say how to make them one."""
    gold = truth.gold and with_references(truth.gold, truth.mapping)
    if gold is None or gold.references or gold.claims or not gold.answers:
        return
    if all(read_metric(m).matcher != "claims" and "[claims]" not in m for m in metrics):
        return
    theirs = truth.mapping.get("answers", "answers")
    raise DataError(
        "there is nothing to judge: no query has claims or a reference answer",
        path=gold.name,
        hint=f"the file has {theirs} (read as answers); --map reference={theirs} takes "
        f"a text as the reference, --map claims={theirs} a list as claims",
    )


@click.command("evaluate", cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option(
    "-g --gold --qrels FILE", "What should have been retrieved: a file of any format."
)
@metric_option
@option("-k INTEGER", "What the letter in recall@k means.")
@option(
    "--match MATCHER",
    f"How a document satisfies a gold item: auto, {', '.join(MATCHERS.shipped)}.",
    default="auto",
    show_default=True,
)
@policy_options
@mapping_option
@option(
    "--format FORMAT",
    f"Format of RUN, if not by content: {', '.join(FORMATS.shipped)}.",
)
@queries_option
@option("--by COLUMN", "Split one table into systems.")
@option("--slice", "Also show means by tag.", type=["tag"])
@option("--explain QUERY", "Work one query out, rank by rank.")
@gate_options
@option(
    "--baseline FILE",
    "A saved evaluation that drops are measured from; default: the pinned one.",
)
@option(
    "-o --output FILE*",
    f"Write a report, by extension: {', '.join(REPORTS.shipped)}; may be repeated.",
)
@option(
    "--keep N",
    f"Keep the top N documents of each query; default: {SHOWN_DEPTH} for a page or a "
    ".json file, and 5 where texts are matched.",
    type=click.IntRange(min=0),
)
@option("--parts", "RUN is one run: a glob of its Parquet files.")
@json_option
@option("--force", "Score without common ids.", default=None)
@judge_options
def command(**options: Any) -> None:
    """Score RUN... against gold: means with intervals, and all that was left out.

    RUN is a file of any format karat reads, a glob, a folder of Parquet files, or - for
    standard input; several give one leaderboard. Samples that carry their own gold need
    no --gold. Every option can also be set as KARAT_OPTION in the environment, and a
    suite of karat.yaml holds all of this for good (karat init, karat suite).

    \b
    karat evaluate run.trec --gold qrels.trec -m ndcg@10 -m recall@100
    karat evaluate 'runs/*.parquet' --parts --gold gold.parquet
    karat evaluate samples.jsonl --fail-under recall@5=0.8
    karat evaluate samples.jsonl -m context_recall@5 --model NAME
    """  # noqa: D301
    paths = existing(options["runs"], expand=not options["parts"])
    outputs = _outputs(options, paths)
    gates = read_gates(options)
    metrics = [*_metrics_of(options), *(gate.metric for gate in gates)]
    judge = _judge(options)
    gold = _read_gold(options, paths)
    inputs = _read_runs(paths, options, gold, metrics if judge else ())
    scoring = scoring_of(options, mapping=None, force=options["force"])
    scoring |= {"gold": gold, "metrics": metrics, "judge": judge}
    allowed = options["max_failures"] or 0
    # A set that grows while questions are asked.
    kinds = judge.session.failed if judge else ()
    if options["explain"] is not None:
        admit(_explain(inputs, options, scoring), allowed, kinds)
        return
    if judge is None:
        inputs = track(inputs, len(paths), "scoring")
    keep, pages = options["keep"], [path for path in outputs if path.suffix == PAGE]
    if keep is None and any(path.suffix in {PAGE, ".json"} for path in outputs):
        keep = SHOWN_DEPTH
    board = leaderboard(inputs, keep=keep, **scoring)
    if judge is not None:
        _say_unasked(board)
    if options["dry_run"]:
        rehearse(judge.session.total, options)
        return
    shown = board.without_texts() if options["no_text"] else board

    def tables(width: int = WIDTH) -> list[Table]:
        return [shown.summary(width), *(shown.by_tag() if options["slice"] else ())]

    results = gate_results(gates, board.values(), options)
    signed = with_command(shown) if pages else shown
    deliver(
        lambda form: REPORTS[form](signed, tables()),
        tables(width_of(sys.stdout)),
        options,
        outputs,
        results,
    )
    conclude(board.values(), results, options, allowed, kinds)


def _outputs(options: Mapping[str, Any], paths: Sequence[str]) -> list[Path]:
    """Where to write what, found out before any work is done."""
    if options["explain"] is not None and (options["output"] or options["json"]):
        raise UsageError("--explain prints tables: it goes without -o and --json")
    if options["explain"] is not None and options["dry_run"]:
        raise UsageError("--dry-run asks nobody, so that there is nothing to --explain")
    for target in options["output"]:
        form = Path(target).suffix.removeprefix(".")
        if form not in ("", "xml"):
            # A plug-in is looked for by its name, and a typo told apart.
            REPORTS[form]
    inputs = [*paths, options["gold"]]
    return outputs_of(options["output"], inputs, REPORTS, gates=True)


def _judge(options: Mapping[str, Any]) -> Any:
    """The judge of claims, if a model is named."""
    if options["model"] is None and not options["dry_run"]:
        return None
    # Only who asks a model pays for importing what asks it.
    from karat.cli.judge_session import claims_judge  # noqa: PLC0415

    return claims_judge(options)


def _say_unasked(board: Leaderboard) -> None:
    """A model that nobody needs must not seem to have judged."""
    if any("claims" in evaluation.matchers.values() for evaluation in board.values()):
        return
    origin = click.get_current_context().get_parameter_source("model")
    # In a file it stands for all evaluations, also for those that need none.
    if origin is ParameterSource.COMMANDLINE:
        say(
            "karat: --model does nothing here: the gold decides these metrics, and "
            "only -m context_recall or a metric like recall[claims]@5 asks a model",
            err=True,
        )


def _metrics_of(options: Mapping[str, Any]) -> list[str]:
    """The metrics asked for; a typo or a bad switch is told before any file is read."""
    metrics = [str(metric) for metric in split_metrics(options["metrics"])]
    for metric in metrics:
        read_metric(metric)
    if options["profile"] is not None:
        policies_for(options["profile"])
    if options["format"] is not None:
        FORMATS[options["format"]]
    if options["k"] is not None and options["k"] < 1:
        raise ParameterError("-k", "k", "an integer >= 1", options["k"])
    return metrics or list(DEFAULT_METRICS)


def _explain(
    inputs: Iterator[tuple[str, Dataset]],
    options: Mapping[str, Any],
    scoring: Mapping[str, Any],
) -> list[tuple[str, str]]:
    """Print how one query is scored; why it could not be judged, where that is so."""
    failed = []
    for place, (name, loaded) in enumerate(inputs):
        explanation = explain(loaded, options["explain"], **scoring)
        if place:
            click.echo()
        ranking, *others = explanation.tables
        show_all([replace(ranking, title=f"{name}, {ranking.title}"), *others])
        for one in () if options["no_text"] else explanation.texts:
            click.echo()
            show_text(one.title, one.text, one.marks)
        if explanation.failure is not None:
            failed.append((options["explain"], explanation.failure))
    return failed
