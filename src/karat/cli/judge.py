"""`karat judge`: have a model label what runs retrieved, and measure its trust."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from karat.cli.judges import bench_of, votes_of
from karat.cli.options import (
    existing,
    judge_options,
    mapping_option,
    writable,
)
from karat.cli.settings import Command
from karat.data.gold import Gold
from karat.data.queries import Loaded, Query
from karat.data.runs import Labels, Run
from karat.data.tables import Table
from karat.errors import DataError, FormatError, ParameterError, UsageError
from karat.evaluation import evaluate
from karat.formats.corpus import read_corpus
from karat.formats.format import Role
from karat.formats.loading import load
from karat.formats.told import mapping_of
from karat.formats.writing import format_named, write
from karat.judging import Bench, Rehearsal, grade_pool, pool, split_references
from karat.judging.agreement import (
    Agreement,
    Flips,
    agreement,
    flips,
)
from karat.judging.injection import Probed, probe
from karat.judging.ordering import Order, order_agreement
from karat.judging.prompts import GRADES
from karat.judging.relevance import Graded
from karat.reports.terminal import show

__all__ = ["command"]

_INCOMPLETE = 3
_DEPTH = 10


@click.command("judge", cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-k", type=int, default=_DEPTH, help="How deep each run is pooled.")
@click.option("--queries", metavar="FILE", help="Texts of queries.")
@click.option("-o", "--output", metavar="FILE", help="Where the gold is written.")
@click.option("--claims", is_flag=True, help="Split reference answers into claims.")
@click.option("--agreement", metavar="GOLD", help="Compare with labels by people.")
@click.option(
    "--metric", default="ndcg@10", help="Orders the runs, for --agreement with several."
)
@click.option("--retest", is_flag=True, help="Ask all again, and count what changes.")
@click.option("--probe", is_flag=True, help="Plant tricks, and see if they work.")
@click.option("--json", is_flag=True, help="Print everything as JSON.")
@mapping_option
@judge_options
def command(**options: Any) -> None:
    """Grade the top k of RUN... from 0 to 3 with a model, and write that as gold.

    Every metric works on such gold. Its labels name the model, and reports show where
    they are mixed with people's. How far the model can be trusted is measured with
    --agreement, --retest and --probe. With --claims, the reference answers of samples
    are split into claims instead, to be corrected and scored with context_recall.

    \b
    karat judge a.run b.run --queries queries.jsonl --corpus corpus.jsonl \\
        -k 10 --model NAME -o gold.qrels
    karat judge a.run b.run --queries queries.jsonl --corpus corpus.jsonl \\
        --model NAME --agreement people.qrels
    karat judge samples.jsonl --claims --model NAME -o samples_with_claims.jsonl
    """  # noqa: D301
    paths = existing(options["runs"])
    target = _target(options, paths)
    bench = bench_of(options)
    loaded = [_load(path, options) for path in paths]
    if options["claims"]:
        failures = _split(loaded, bench, target)
    else:
        failures = _grade(loaded, bench, target, options)
    if isinstance(bench, Rehearsal):
        click.echo(f"judging would take: {bench.total}")
        return
    if len(failures) > (options["max_failures"] or 0):
        where, reason = next(iter(failures.items()))
        click.echo(
            f"karat: {len(failures)} judgements could not be had, the first for "
            f"{where}: {reason}",
            err=True,
        )
        sys.exit(_INCOMPLETE)


def _target(options: Mapping[str, Any], paths: Sequence[str]) -> Path | None:
    """Where gold is to be written; asking for nothing at all is an error."""
    if options["k"] < 1:
        raise ParameterError("-k", "k", "an integer >= 1", options["k"])
    if options["output"] is not None:
        role = "samples" if options["claims"] else "gold"
        chosen = format_named(options["output"])
        if role not in chosen.holds:
            raise UsageError(f"-o {options['output']}: {chosen.name} holds no {role}")
        return writable(options["output"], [*paths, options["agreement"]])
    wanted = ("agreement", "retest", "probe", "json", "dry_run")
    if options["claims"] or not any(options[name] for name in wanted):
        raise UsageError("say where to write with -o FILE, such as -o gold.qrels")
    return None


def _load(path: str, options: Mapping[str, Any]) -> Loaded:
    role: Role | None = "samples" if options["claims"] else None
    loaded = load(path, role=role, mapping=mapping_of("run", options["map"]))
    if loaded.run is None and not options["claims"]:
        raise FormatError("holds nothing retrieved, and so nothing to grade", path=path)
    return loaded


def _split(
    loaded: Sequence[Loaded], bench: Bench, target: Path | None
) -> Mapping[str, str]:
    if len(loaded) > 1:
        raise UsageError("--claims takes one file of samples at a time")
    (samples,) = loaded
    if samples.gold is None or not samples.gold.references:
        raise DataError(
            "no sample has a reference answer to split",
            hint="--map reference=FIELD names the field that holds it",
        )
    texts = {q.id: q.text for q in samples.queries.values() if q.text}
    done = split_references(samples.gold, bench, texts)
    if target is not None and not isinstance(bench, Rehearsal):
        _write(replace(samples, gold=done.gold), target)
    return done.failures


def _grade(
    loaded: Sequence[Loaded],
    bench: Bench,
    target: Path | None,
    options: Mapping[str, Any],
) -> Mapping[str, str]:
    runs = [part.run for part in loaded if part.run is not None]
    corpus = None if options["corpus"] is None else read_corpus(options["corpus"])
    pooled = pool(runs, options["k"], corpus)
    questions = _questions(loaded, options["queries"])
    votes = votes_of(options)
    graded = grade_pool(pooled, questions, bench, votes=votes)
    again: Graded | None = None
    if options["retest"]:
        # Assessors after those that voted: another wording of the same question.
        again = grade_pool(pooled, questions, bench, votes=votes, first=votes + 1)
    probed: Probed | None = None
    if options["probe"]:
        probed = probe(pooled, questions, graded.gold.documents, bench)
    if isinstance(bench, Rehearsal):
        return {}
    if target is not None:
        _write(Loaded(gold=graded.gold), target)
    trusted = _compare(runs, graded, again, options)
    if options["json"]:
        click.echo(json.dumps(_facts(graded, trusted, probed, options), indent=2))
    else:
        for table in _tables(graded, trusted, probed):
            show(table)
            click.echo()
    return {f"{q} {d}": reason for (q, d), reason in graded.failures.items()}


def _questions(loaded: Sequence[Loaded], path: str | None) -> dict[str, str]:
    """What each query asks, by the samples themselves or by a file."""
    facts: dict[str, Query] = {}
    for part in loaded:
        facts |= part.queries
    if path is not None:
        facts |= load(path, role="queries").queries
    return {name: query.text for name, query in facts.items() if query.text}


def _write(loaded: Loaded, target: Path) -> None:
    role: Role | None = "gold" if loaded.run is None else None
    for notice in write(loaded, target, role=role):
        click.echo(f"karat: {notice.kind}: {notice.text} ({notice.count})", err=True)
    click.echo(f"karat: wrote {target}", err=True)


def _compare(
    runs: Sequence[Run],
    graded: Graded,
    again: Graded | None,
    options: Mapping[str, Any],
) -> Agreement | Flips | None:
    """The judge against people, or against itself."""
    judged = graded.gold.documents
    flipped = None if again is None else flips(judged, again.gold.documents)
    if options["agreement"] is None:
        return flipped
    gold = load(options["agreement"], role="gold").gold or Gold()
    order = None
    if len(runs) > 1:
        order = _order(runs, gold.documents, judged, options["metric"])
    return agreement(gold.documents, judged, order=order, flipped=flipped)


def _order(runs: Sequence[Run], human: Labels, judged: Labels, metric: str) -> Order:
    """How alike people and judge order the runs, on the queries both labelled."""
    both = [query for query in human if judged.get(query)]
    scores = [
        [
            evaluate(run, gold=gold, metrics=metric, force=True)[metric].scores
            for run in runs
        ]
        for gold in (
            Gold({query: labels[query] for query in both}) for labels in (human, judged)
        )
    ]
    return order_agreement(np.array(scores[0]), np.array(scores[1]))


def _tables(
    graded: Graded, trusted: Agreement | Flips | None, probed: Probed | None
) -> list[Table]:
    tables = [_summary(graded, calibrated=isinstance(trusted, Agreement))]
    if trusted is not None:
        tables.append(trusted.table())
    if probed is not None:
        tables.append(probed.table())
    return tables


def _summary(graded: Graded, *, calibrated: bool) -> Table:
    """How many documents got which grade."""
    said = [grade for row in graded.grades.values() for grade in row.values()]
    rows = [
        [f"{grade}: {meaning}", str(sum(one.grade == grade for one in said))]
        for grade, meaning in GRADES.items()
    ]
    notes = []
    if not calibrated:
        notes.append("uncalibrated: --agreement GOLD compares this judge with people")
    if differ := [one.disagreement for one in said if one.disagreement]:
        share = sum(differ) / len(said)
        notes.append(f"votes: {len(differ)} documents divided them; {share:.1%} differ")
    if graded.failures:
        notes.append(f"failed: {len(graded.failures)} documents have no grade")
    title = f"{len(said)} documents graded by {graded.gold.name}"
    return Table(["grade", "documents"], rows, title, notes)


def _facts(
    graded: Graded,
    trusted: Agreement | Flips | None,
    probed: Probed | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything in plain values; reasons stay out where texts must."""
    return {
        "source": graded.gold.name,
        "calibrated": isinstance(trusted, Agreement),
        "grades": [
            {
                "query": query,
                "document": name,
                "grade": said.grade,
                "disagreement": said.disagreement,
                "reason": "" if options["no_text"] else said.reason,
            }
            for query, row in graded.grades.items()
            for name, said in row.items()
        ],
        "failures": [
            {"query": query, "document": name, "reason": reason}
            for (query, name), reason in graded.failures.items()
        ],
        "agreement": None if trusted is None else trusted.to_dict(),
        "probe": None if probed is None else asdict(probed),
    }
