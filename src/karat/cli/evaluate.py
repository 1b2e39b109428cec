"""`karat evaluate`: score one or more runs against gold."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from glob import has_magic
from pathlib import Path
from typing import Any

import click

from karat.cli import options, outputs
from karat.cli.combined import is_combined, show_combined
from karat.cli.command import Command, by_flag, file_argument, file_option, flag, remark
from karat.cli.options import Combining, Gating, Judging, Scoring, collect, existing
from karat.data.policies import policies_for
from karat.data.queries import Dataset
from karat.data.tables import Table
from karat.errors import DataError, ParameterError, UsageError
from karat.explanation import explain
from karat.gates import Gate
from karat.leaderboards import leaderboard
from karat.metrics import read_metric, split_metrics
from karat.planning import DEFAULT_METRICS, with_references
from karat.reading.format import FORMATS
from karat.reading.pair import samples
from karat.reading.readers import read, read_by
from karat.reading.source import Role
from karat.reports import REPORTS
from karat.reports.terminal import show_text, track, width_of
from karat.results.leaderboard import WIDTH, Leaderboard


@dataclass(frozen=True)
class EvaluateOptions:
    """What is scored, how, and where it goes."""

    runs: Sequence[str]
    metrics: Sequence[str]
    scoring: Scoring
    combining: Combining
    format: str | None
    by: str | None
    slice: str | None
    explain: str | None
    gating: Gating
    baseline: str | None
    output: Sequence[str]
    keep: int | None
    parts: bool
    json: bool
    force: bool | None
    judging: Judging


@click.command("evaluate", cls=Command)
@file_argument("runs", nargs=-1, required=True, metavar="RUN...")
@options.metrics
@options.scoring
@options.people(
    file_option("--plan", help="With --judged: the file written by karat label plan.")
)
@click.option(
    "--format",
    metavar="FORMAT",
    help=f"Format of RUN; default: detected. One of: {', '.join(FORMATS.shipped)}.",
)
@click.option("--by", metavar="COLUMN", help="One run per value of COLUMN.")
@options.slice
@click.option("--explain", metavar="QUERY", help="Explain the scores of one query.")
@options.gating
@file_option(
    "--baseline",
    help="The saved evaluation to measure drops against; default: the pinned one.",
)
@options.outputs(
    help=f"Write a report, by extension: {', '.join(REPORTS.shipped)}; repeatable."
)
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=0),
    help="Keep the top N documents of each query; default: "
    f"{outputs.SHOWN_DEPTH} for a page or a .json file, and 5 where texts are matched.",
)
@flag("--parts", help="RUN is one run: a glob of its Parquet files.")
@options.json
@flag("--force", default=None, help="Score even if no id is in both run and gold.")
@options.judging
@collect("options", EvaluateOptions)
def command(options: EvaluateOptions) -> None:
    """Score RUN... against gold: means with intervals, and counts of what is left out.

    RUN is a file of any format karat reads, a glob, a folder of Parquet files, or - for
    standard input; several give one leaderboard. Samples with their own gold need no
    --gold. Every option can also be set as KARAT_OPTION in the environment, or
    permanently in a suite in karat.yaml (karat init, karat suite).

    \b
    karat evaluate run.trec --gold qrels.trec -m ndcg@10 -m recall@100
    karat evaluate 'runs/*.parquet' --parts --gold gold.parquet
    karat evaluate samples.jsonl --fail-under recall@5=0.8
    karat evaluate samples.jsonl -m context_recall@5 --model NAME
    karat evaluate run.trec --judged judged.qrels --people people.qrels \\
        --plan todo.jsonl
    """
    if is_combined(options.combining):
        show_combined(
            options.runs,
            options.metrics,
            options.scoring,
            options.combining,
            options.output,
            json=options.json,
        )
        return
    scoring, judging = options.scoring, options.judging
    paths = existing(options.runs, scoring.gold, expand=not options.parts)
    gates = outputs.read_gates(options.gating)
    target = _outputs(options, paths, gates)
    metrics = [*_metrics_of(options), *(gate.metric for gate in gates)]
    judge = _judge(judging)
    gold = None
    if scoring.gold is not None:
        gold = read(scoring.gold, "gold", mapping=scoring.mapping, shared=True)
    inputs = _read_runs(paths, options, gold, metrics if judge else ())
    how = asdict(scoring) | {"gold": gold, "mapping": None}
    how |= {"metrics": metrics, "judge": judge, "corpus": judging.corpus}
    how["force"] = options.force
    allowed = judging.max_failures or 0
    # A set that grows while questions are asked.
    kinds = judge.session.failed if judge else ()
    if options.explain is not None:
        texts = not judging.no_text
        failed = _explain(inputs, options.explain, how, texts=texts)
        incomplete = outputs.say_failed(failed, allowed, kinds)
        sys.exit(outputs.INCOMPLETE if incomplete else 0)
    if judge is None:
        inputs = track(inputs, len(paths), "scoring")
    keep = options.keep
    if keep is None and {".html", ".json"} & {path.suffix for path in target.files}:
        keep = outputs.SHOWN_DEPTH
    board = leaderboard(inputs, keep=keep, **how)
    if judge is not None:
        _say_unasked(board)
    shown = board.without_texts() if judging.no_text else board

    def tables(width: int = WIDTH) -> list[Table]:
        return [shown.summary(width), *(shown.by_tag() if options.slice else ())]

    evaluations = [*board.values()]
    gating, force = options.gating, bool(options.force)
    results = outputs.gate_results(
        gates, evaluations, gating, options.baseline, allowed, force=force
    )
    if judging.dry_run:
        outputs.rehearse(judge.session, as_json=options.json)
        return
    signed = outputs.signed(shown) if target.has_page else shown

    def text(form: str) -> str:
        return REPORTS[form](signed, tables())

    target.deliver(text, tables(width_of(sys.stdout)), results)
    strict = gating.strict
    target.conclude(evaluations, results, strict=strict, allowed=allowed, kinds=kinds)


def _outputs(
    options: EvaluateOptions, paths: Sequence[str], gates: Sequence[Gate]
) -> outputs.Outputs:
    """Where to write what; what cannot be carried out is refused before any work."""
    if by_flag("parts") and not any(map(has_magic, paths)):
        raise UsageError("--parts is for a glob, in quotes, and RUN is none")
    if options.explain is not None and (options.output or options.json):
        raise UsageError("--explain prints tables: it goes without -o and --json")
    if options.explain is not None and options.judging.dry_run:
        raise UsageError("--dry-run makes no call, so there is nothing to --explain")
    for target in options.output:
        form = Path(target).suffix.removeprefix(".")
        if form not in ("", "xml"):
            # A plug-in is looked for by its name, and a typo told apart.
            REPORTS[form]
    inputs = [*paths, options.scoring.gold]
    targets, json = options.output, options.json
    return outputs.Outputs.plan(targets, inputs, REPORTS, gates, json=json)


def _judge(judging: Judging) -> Any:
    """The judge of claims, if a model is named."""
    if judging.model is None and not judging.dry_run:
        return None
    # Only who asks a model pays for importing what asks it.
    from karat.cli.judge_session import claims_judge  # noqa: PLC0415

    return claims_judge(judging)


def _say_unasked(board: Leaderboard) -> None:
    """A model that nobody needs must not seem to have judged."""
    if any("claims" in evaluation.matchers.values() for evaluation in board.values()):
        return
    # In a file it stands for all evaluations, also for those that need none.
    if by_flag("model"):
        remark(
            "--model does nothing here: the gold decides these metrics, and "
            "only -m context_recall or a metric like recall[claims]@5 asks a model"
        )


def _metrics_of(options: EvaluateOptions) -> list[str]:
    """The metrics asked for; a typo or a bad switch is told before any file is read."""
    metrics = [str(metric) for metric in split_metrics(options.metrics)]
    for metric in metrics:
        read_metric(metric)
    if options.scoring.profile is not None:
        policies_for(options.scoring.profile)
    if options.format is not None:
        FORMATS[options.format]
    k = options.scoring.k
    if k is not None and k < 1:
        raise ParameterError("-k", "k", "an integer >= 1", k)
    return metrics or list(DEFAULT_METRICS)


def _read_runs(
    paths: Sequence[str],
    options: EvaluateOptions,
    gold: Dataset | None,
    judged: Sequence[str],
) -> Iterator[tuple[str, Dataset]]:
    """Each run with its name, read when it is its turn."""
    how: dict[str, Any] = {"mapping": options.scoring.mapping, "format": options.format}
    several = {Path(path).name for path in paths}
    for path in paths:
        if options.by is not None:
            role: Role = "samples" if gold is None else "run"
            systems = read_by(path, options.by, role, shared=gold or False, **how)
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


def _explain(
    inputs: Iterator[tuple[str, Dataset]],
    query: str,
    how: dict[str, Any],
    *,
    texts: bool,
) -> list[tuple[str, str]]:
    """Print how one query is scored; why it could not be judged, where that is so."""
    failed = []
    for place, (name, loaded) in enumerate(inputs):
        explanation = explain(loaded, query, **how)
        if place:
            click.echo()
        ranking, *others = explanation.tables
        outputs.show_all([replace(ranking, title=f"{name}, {ranking.title}"), *others])
        for one in explanation.texts if texts else ():
            click.echo()
            show_text(one.title, one.text, one.marks)
        if explanation.failure is not None:
            failed.append((query, explanation.failure))
    return failed
