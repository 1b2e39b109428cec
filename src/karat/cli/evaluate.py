"""`karat evaluate`: score one or more runs against gold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

from karat.cli.ending import admit, conclude
from karat.cli.gates import failures, read_gate
from karat.cli.inputs import check_references, read_gold, read_runs
from karat.cli.options import (
    existing,
    judge_options,
    mapping_option,
    policy_options,
)
from karat.cli.outputs import outputs_of, rehearse, report
from karat.cli.saying import say
from karat.cli.settings import Command
from karat.data.evaluations import Evaluation
from karat.data.policies import policies_for
from karat.data.queries import Dataset, Query
from karat.errors import FormatError, ParameterError
from karat.evaluation import evaluate
from karat.explanation import explain
from karat.matching.shipped import MATCHERS
from karat.metrics import read_metric, split_metrics
from karat.planning import DEFAULT_METRICS
from karat.reading.loading import load
from karat.reading.meaning.corpus import read_corpus, with_texts
from karat.reading.shipped import FORMATS
from karat.reports import REPORTS
from karat.reports.differences import unlike_trec_eval
from karat.reports.progress import track
from karat.reports.terminal import show
from karat.sensitivity import order_flips

__all__ = ["command"]

_JUDGED_AT = 10
_SCORING = (
    *("match", "k", "profile", "undefined", "missing", "extra", "duplicates"),
    *("ties", "threshold", "force"),
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
@click.option(
    "-m",
    "--metric",
    "--metrics",
    "metrics",
    multiple=True,
    metavar="METRIC",
    help="A metric such as ndcg@10; repeat it, or join several with commas.",
)
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
@click.option(
    "--fail-under",
    multiple=True,
    metavar="METRIC=VALUE",
    help="Exit 1 when a mean is below the value; may be repeated.",
)
@click.option(
    "-o",
    "--output",
    multiple=True,
    metavar="FILE",
    help=f"Write a report, by extension: {', '.join(REPORTS.shipped)}; "
    "may be repeated.",
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
    karat evaluate samples.jsonl --fail-under recall@5=0.8
    karat evaluate samples.jsonl -m context_recall@5 --model NAME
    """  # noqa: D301
    paths = existing(options["runs"])
    outputs = outputs_of(options, paths)
    gates = [read_gate(text) for text in options["fail_under"]]
    metrics = [*_asked(options), *(gate.metric for gate in gates)]
    judge = _judge(options)
    gold = read_gold(options, paths)
    inputs = _readable(read_runs(paths, options, gold), options)
    scoring = {**{name: options[name] for name in _SCORING}, "judge": judge}
    told = {**options, "scoring": scoring}
    allowed = options["max_failures"] or 0
    if options["explain"] is not None:
        failed = _explain(inputs, gold, metrics, told)
        admit(failed, allowed, judge.session.failed if judge else ())
        return
    evaluations, notes = _score(inputs, len(paths), gold, metrics, told)
    if judge is not None:
        _say_unasked(evaluations)
    if options["dry_run"]:
        rehearse(judge.session.total, options)
        return
    report(evaluations, notes, outputs, options)
    kinds = judge.session.failed if judge else ()
    conclude(evaluations, failures(gates, evaluations), len(gates), allowed, kinds)


def _judge(options: Mapping[str, Any]) -> Any:
    """The judge of claims, if a model is named."""
    if options["model"] is None and not options["dry_run"]:
        return None
    # Only who asks a model pays for importing what asks it.
    from karat.cli.judge_options import claims_judge  # noqa: PLC0415

    return claims_judge(options)


def _say_unasked(evaluations: Sequence[Evaluation]) -> None:
    """A model that nobody needs must not seem to have judged."""
    if any("claims" in evaluation.matchers.values() for evaluation in evaluations):
        return
    origin = click.get_current_context().get_parameter_source("model")
    # In a file it stands for all evaluations, also for those that need none.
    if origin is ParameterSource.COMMANDLINE:
        say(
            "karat: --model does nothing here: the gold decides these metrics, and "
            "only -m context_recall or a metric like recall[claims]@5 asks a model",
            err=True,
        )


def _readable(
    inputs: Iterator[tuple[str, Dataset]], options: Mapping[str, Any]
) -> Iterator[tuple[str, Dataset]]:
    """The runs with the texts of their documents, where a corpus gives them."""
    if options["corpus"] is None:
        return inputs
    corpus = read_corpus(options["corpus"])
    return (
        (name, replace(loaded, run=loaded.run and with_texts(loaded.run, corpus)))
        for name, loaded in inputs
    )


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


def _score(
    inputs: Iterator[tuple[str, Dataset]],
    total: int,
    gold: Dataset | None,
    metrics: Sequence[str],
    options: Mapping[str, Any],
) -> tuple[list[Evaluation], list[str]]:
    """The evaluations, and what a reader should know about how files were read."""
    facts = _facts(options)
    evaluations, notes = [], []
    covered = {}
    if options["scoring"]["judge"] is None:
        inputs = track(inputs, total, "scoring")
    for name, loaded in inputs:
        if options["scoring"]["judge"] is not None:
            check_references(gold or loaded, metrics)
        asked = [*metrics, *_judged(gold or loaded, metrics)]
        evaluation = evaluate(
            _informed(loaded, facts),
            gold=gold and _informed(gold, facts),
            metrics=asked,
            **options["scoring"],
        )
        evaluations.append(replace(evaluation, run=name))
        if any(matcher.startswith("span") for matcher in evaluation.matchers.values()):
            covered[name] = loaded
        if loaded.format.startswith("trec"):
            notes += unlike_trec_eval(evaluation)
    if len(covered) == len(evaluations) > 1:
        notes += order_flips(covered, evaluations, gold=gold, **options["scoring"])
    return evaluations, list(dict.fromkeys(notes))


def _facts(options: Mapping[str, Any]) -> Mapping[str, Query]:
    """Texts and tags of the queries, if they have a file of their own."""
    if options["queries"] is None:
        return {}
    queries = load(options["queries"], role="queries").queries
    if not queries:
        raise FormatError("holds no texts or tags of queries", path=options["queries"])
    return queries


def _informed(loaded: Dataset, facts: Mapping[str, Query]) -> Dataset:
    return replace(loaded, queries={**loaded.queries, **facts}) if facts else loaded


def _judged(truth: Dataset, metrics: Sequence[str]) -> list[str]:
    """`judged@k` for the deepest cutoff, if gold says of some that they do not help."""
    if truth.gold is None:
        return []
    rows = truth.gold.documents.values()
    if not any(grade <= 0 for row in rows for grade in row.values()):
        return []
    cutoffs = [getattr(read_metric(name), "k", None) for name in metrics]
    deepest = max((k for k in cutoffs if isinstance(k, int)), default=_JUDGED_AT)
    return [f"judged@{deepest}"]


def _explain(
    inputs: Iterator[tuple[str, Dataset]],
    gold: Dataset | None,
    metrics: Sequence[str],
    options: Mapping[str, Any],
) -> list[tuple[str, str]]:
    """Print how one query is scored; why it could not be judged, where that is so."""
    facts = _facts(options)
    failed = []
    for place, (name, loaded) in enumerate(inputs):
        explanation = explain(
            _informed(loaded, facts),
            options["explain"],
            gold=gold and _informed(gold, facts),
            metrics=metrics,
            **options["scoring"],
        )
        if place:
            click.echo()
        ranking, *others = explanation.tables
        show(replace(ranking, title=f"{name}, {ranking.title}"))
        for table in others:
            click.echo()
            show(table)
        if explanation.failure is not None:
            failed.append((options["explain"], explanation.failure))
    return failed
