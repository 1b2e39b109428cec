"""`karat evaluate`: score one or more runs against gold."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from karat.cli.gates import admit, conclude, gate_results, read_gates
from karat.cli.options import (
    existing,
    gate_options,
    judge_options,
    mapping_option,
    metric_option,
    policy_options,
)
from karat.cli.outputs import KEPT, PAGE, outputs_of, rehearse, report
from karat.cli.saying import say
from karat.cli.settings import Command
from karat.data.policies import policies_for
from karat.data.queries import Dataset
from karat.errors import DataError, ParameterError, UsageError
from karat.explanation import explain
from karat.leaderboards import leaderboard
from karat.matching.shipped import MATCHERS
from karat.metrics import read_metric, split_metrics
from karat.planning import DEFAULT_METRICS
from karat.reading.doors import load, load_by
from karat.reading.format import FORMATS
from karat.reading.meaning.aliases import generated
from karat.reading.meaning.mapping import mapping_of, shared_names
from karat.reading.streams import STDIN
from karat.reports import REPORTS
from karat.reports.progress import track
from karat.reports.terminal import show, show_text
from karat.results.leaderboard import Leaderboard

__all__ = ["check_references", "command", "read_gold", "read_runs"]

_SHOWN = 12


def read_gold(options: Mapping[str, Any], paths: Sequence[str]) -> Dataset | None:
    """The gold, if it has a file of its own."""
    if options["gold"] is None:
        return None
    if options["gold"] == "-" and "-" in paths:
        raise UsageError("standard input can be read once only: one - at most")
    return load(
        options["gold"],
        role="gold",
        mapping=mapping_of("gold", options["map"]),
        optional=shared_names(options["map"]),
    )


def read_runs(
    paths: Sequence[str], options: Mapping[str, Any], gold: Dataset | None
) -> Iterator[tuple[str, Dataset]]:
    """Each run with its name, read when it is its turn."""
    role = "samples" if gold is None else "run"
    chosen = {
        "role": role,
        "format": options["format"],
        "mapping": mapping_of(role, options["map"]),
        "optional": frozenset() if gold is None else shared_names(options["map"], gold),
    }
    several = {Path(path).name for path in paths}
    for path in paths:
        if options["by"] is not None:
            systems = load_by(path, options["by"], **chosen)
            prefix = f"{Path(path).name}:" if len(paths) > 1 else ""
            yield from ((prefix + name, part) for name, part in systems.items())
        else:
            others = [other for other in paths if other != path]
            loaded = _read_run(path, chosen, others)
            # Files of one name in several folders are told apart by their paths.
            own = loaded.run.name if loaded.run is not None else path
            yield (own if len(several) == len(paths) else path), loaded


def check_references(truth: Dataset, metrics: Sequence[str]) -> None:
    """Refuse answers where a judge needs a reference, and say how to make them one."""
    gold = truth.gold
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


def _read_run(path: str, chosen: Mapping[str, Any], others: Sequence[str]) -> Dataset:
    try:
        return load(path, **chosen)
    except DataError:
        if chosen["role"] == "run" or path == "-":
            raise
        # A run alone is the likeliest mistake, and a sentence about samples no help.
        with suppress(DataError):
            loaded = load(path, **{**chosen, "role": "run"})
            if loaded.gold is None:
                hint = _where_gold_may_be(loaded, others)
                raise UsageError(f"{path} holds a run but no gold: {hint}") from None
        raise


def _where_gold_may_be(run: Dataset, others: Sequence[str]) -> str:
    for path in others:
        with suppress(DataError):
            if path != STDIN and load(path).gold is not None:
                return f"is {path} the gold? then --gold {path}"
    if "response" in run.mapping:
        return f"add --gold; {generated(run.mapping['response'])}"
    unread = next((query.metadata for query in run.queries.values()), {})
    if not unread and any(query.text for query in run.queries.values()):
        return "add --gold, or a reference answer to each sample and --model NAME"
    if not unread:
        return "add --gold"
    names = ", ".join(str(name)[:40] for name in [*unread][:_SHOWN])
    return (
        f"add --gold, or say which field is the gold, as in --map relevant=...: {names}"
    )


_SCORING = (
    *("match", "k", "profile", "undefined", "missing", "extra", "duplicates"),
    *("identical", "ties", "order", "threshold", "depth", "judged_only"),
    *("force", "queries", "corpus"),
)


@click.command("evaluate", cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-g",
    "--gold",
    "--qrels",
    metavar="FILE",
    help="What should have been retrieved: a file of any format.",
)
@metric_option
@click.option("-k", type=int, help="What the letter in recall@k means.")
@click.option(
    "--match",
    default="auto",
    show_default=True,
    metavar="MATCHER",
    help=f"How a document satisfies a gold item: auto, {', '.join(MATCHERS.shipped)}.",
)
@policy_options
@mapping_option
@click.option(
    "--format",
    metavar="FORMAT",
    help=f"Format of RUN, if not by content: {', '.join(FORMATS.shipped)}.",
)
@click.option("--queries", metavar="FILE", help="Texts and tags of queries.")
@click.option("--by", metavar="COLUMN", help="Split one table into systems.")
@click.option("--slice", type=click.Choice(["tag"]), help="Also show means by tag.")
@click.option("--explain", metavar="QUERY", help="Work one query out, rank by rank.")
@gate_options
@click.option(
    "--baseline",
    metavar="FILE",
    help="A saved evaluation that drops are measured from; default: the pinned one.",
)
@click.option(
    "-o",
    "--output",
    multiple=True,
    metavar="FILE",
    help=f"Write a report, by extension: {', '.join(REPORTS.shipped)}; "
    "may be repeated.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Keep the top N documents of each query; default: {KEPT} for a page, and 5 "
    "where texts are matched.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Read Parquet files in N processes; default: threads of one.",
)
@click.option(
    "--parts", is_flag=True, help="RUN is one run: a glob of its Parquet files."
)
@click.option("--json", is_flag=True, help="Print everything as JSON.")
@click.option("--force", is_flag=True, default=None, help="Score without common ids.")
@judge_options
def command(**options: Any) -> None:
    """Score RUN... against gold: means with intervals, and all that was left out.

    RUN is a file of any format karat reads, a glob, a folder of Parquet files, or - for
    standard input; several give one leaderboard. Samples that carry their own gold need
    no --gold. Every option can also be set as KARAT_OPTION in the environment or under
    "evaluate:" in karat.yaml.

    \b
    karat evaluate run.trec --gold qrels.trec -m ndcg@10 -m recall@100
    karat evaluate 'runs/*.parquet' --parts --gold gold.parquet --workers 8
    karat evaluate samples.jsonl --fail-under recall@5=0.8
    karat evaluate samples.jsonl -m context_recall@5 --model NAME
    """  # noqa: D301
    paths = existing(options["runs"], expand=not options["parts"])
    outputs = outputs_of(options, paths)
    gates = read_gates(options)
    metrics = [*_asked(options), *(gate.metric for gate in gates)]
    judge = _judge(options)
    gold = read_gold(options, paths)
    inputs = _checked(read_runs(paths, options, gold), gold, metrics, judge)
    scoring = {name: options[name] for name in _SCORING}
    scoring |= {"gold": gold, "metrics": metrics, "judge": judge}
    allowed = options["max_failures"] or 0
    if options["explain"] is not None:
        hidden = options["no_text"]
        failed = _explain(inputs, options["explain"], scoring, hidden=hidden)
        admit(failed, allowed, judge.session.failed if judge else ())
        return
    if judge is None:
        inputs = track(inputs, len(paths), "scoring")
    keep = options["keep"]
    if keep is None and any(path.suffix == PAGE for path, _ in outputs):
        keep = KEPT
    board = leaderboard(inputs, keep=keep, workers=options["workers"], **scoring)
    if judge is not None:
        _say_unasked(board)
    if options["dry_run"]:
        rehearse(judge.session.total, options)
        return
    report(board, outputs, options)
    kinds = judge.session.failed if judge else ()
    results = gate_results(gates, board.values(), options)
    conclude(board.values(), results, options, allowed, kinds)


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


def _checked(
    inputs: Iterator[tuple[str, Dataset]],
    gold: Dataset | None,
    metrics: Sequence[str],
    judge: Any,
) -> Iterator[tuple[str, Dataset]]:
    """The runs; where a judge needs references, those without are told apart."""
    for name, loaded in inputs:
        if judge is not None:
            check_references(gold or loaded, metrics)
        yield name, loaded


def _asked(options: Mapping[str, Any]) -> list[str]:
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
    query: str,
    scoring: Mapping[str, Any],
    *,
    hidden: bool,
) -> list[tuple[str, str]]:
    """Print how one query is scored; why it could not be judged, where that is so."""
    failed = []
    for place, (name, loaded) in enumerate(inputs):
        explanation = explain(loaded, query, **scoring)
        if place:
            click.echo()
        ranking, *others = explanation.tables
        show(replace(ranking, title=f"{name}, {ranking.title}"))
        for table in others:
            click.echo()
            show(table)
        for one in () if hidden else explanation.texts:
            click.echo()
            show_text(one.title, one.text, one.marks)
        if explanation.failure is not None:
            failed.append((query, explanation.failure))
    return failed
