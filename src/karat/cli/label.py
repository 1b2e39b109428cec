"""`karat label`: labels that people give: what to label, where, and gold made of it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from karat.cli import options
from karat.cli.command import (
    COUNT,
    Command,
    file_argument,
    file_option,
    flag,
    remark,
)
from karat.cli.options import existing, require_texts, writable, write_dataset
from karat.cli.outputs import Outputs
from karat.cli.pool import SHEETS, pool_of, refuse_labels, sheet_rows, write_sheets
from karat.data.gold import Gold
from karat.data.queries import Dataset
from karat.data.tables import counted
from karat.errors import DataError, ParameterError, UsageError
from karat.generating.question_set import (
    apply_decisions,
    drawn_questions,
    read_questions,
)
from karat.label_plans import LabelPlan, is_plan, plan_labels
from karat.reading.labels import apply_labels, first_row
from karat.reading.readers import read
from karat.reports.page import question_page
from karat.results.notices import checked_notice, good_questions

_SHOWN = 10
_PLAN = "jsonl"


class _Labels(click.Group):
    """Takes a file in place of a command for questions that people are to check."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is called; a file has an ending, which no command has."""
        named = args[0] in self.commands or not Path(args[0]).suffix
        return super().resolve_command(ctx, args if named else ["check", *args])


@click.group("label", cls=_Labels)
def command() -> None:
    """Let people label: make a page or a plan, and gold from their labels.

    Given a file of generated questions, it makes a page to check them.

    \b
    karat label questions.jsonl -o check.html
    karat label new run.jsonl --queries queries.jsonl -o label.html
    karat label plan judged.qrels a.run b.run --budget 300 -o todo.jsonl
    karat label apply labels.jsonl -o gold.qrels
    """


@command.command("new", cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="RUN...|PLAN")
@click.option("-k", default=10, show_default=True, help="Depth to which runs are read.")
@options.queries
@options.corpus
@options.outputs(required=True, help="The page (.html) or sheet (.csv) to label in.")
def new(
    files: Sequence[str],
    k: int,
    queries: str | None,
    corpus: str | None,
    output: Sequence[str],
) -> None:
    """Make a page on which people label what each RUN retrieved, without any gold.

    The page hides runs and ranks. With a PLAN (karat label plan), people label the
    documents it drew, in its order.

    \b
    karat label new run.jsonl --queries queries.jsonl --corpus corpus.jsonl \\
        -o label.html
    karat label apply labels.jsonl -o gold.qrels
    """
    paths = existing(files)
    targets = Outputs.plan(output, paths, SHEETS, json=False).files
    refuse_labels(targets)
    plans = [path for path in paths if is_plan(path)]
    if plans and len(paths) > 1:
        raise UsageError(
            f"{plans[0]} is a plan, which says by itself what people label: name it "
            "alone, or runs without a plan"
        )
    if plans:
        rows = _plan_rows(LabelPlan.load(paths[0]), queries, corpus)
    else:
        rows = sheet_rows(*pool_of(paths, k=k), queries, corpus)
    write_sheets(targets, rows)


@command.command("plan", cls=Command)
@click.argument("judged", metavar="JUDGED")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--budget",
    metavar="N",
    type=COUNT,
    required=True,
    help="About how many labels to give.",
)
@flag("--pairs", help="Draw single documents of the runs, not whole queries.")
@click.option(
    "-k", default=10, show_default=True, help="With --pairs: depth of the runs."
)
@click.option("--seed", default=0, help="Another seed draws other labels.")
@options.queries
@options.corpus
@options.outputs(
    required=True,
    help="The plan (.jsonl), and a sheet (.csv) or page (.html) to label in; "
    "repeatable.",
)
def plan(
    *,
    judged: str,
    runs: Sequence[str],
    budget: int,
    pairs: bool,
    k: int,
    seed: int,
    queries: str | None,
    corpus: str | None,
    output: Sequence[str],
) -> None:
    """Draw a random sample of a judge's labels for people to give too.

    JUDGED holds a judge's labels of all queries (karat judge). Whole queries work for
    every metric; --pairs work for precision, dcg and rbp, with fewer labels. Then karat
    evaluate --judged --people --plan corrects the judge.

    \b
    karat label plan judged.qrels a.run b.run --budget 300 -o todo.jsonl
    karat label new todo.jsonl --queries queries.jsonl --corpus corpus.jsonl \\
        -o label.html
    karat label apply labels.jsonl -o people.qrels
    karat evaluate a.run --judged judged.qrels --people people.qrels --plan todo.jsonl
    """
    paths = existing(runs)
    inputs, formats = [judged, *paths], (_PLAN, *SHEETS)
    targets = Outputs.plan(output, inputs, formats, json=False).files
    refuse_labels(targets)
    try:
        drawn = plan_labels(judged, paths, budget=budget, pairs=pairs, k=k, seed=seed)
    except ParameterError as error:
        option = "-k" if error.parameter == "k" else f"--{error.parameter}"
        name, must_be, got = "label plan", error.must_be, error.value
        raise ParameterError(name, option, must_be, got) from None
    for target in targets:
        if target.suffix[1:] == _PLAN:
            drawn.save(target)
            remark(f"wrote {target}")
    write_sheets(targets, _plan_rows(drawn, queries, corpus))


def _plan_rows(
    drawn: LabelPlan, queries: str | None, corpus: str | None
) -> list[dict[str, Any]]:
    pairs = [(label.query, label.document, None) for label in drawn.labels]
    rows = sheet_rows(pairs, {}, queries, corpus)
    return [{**row, **more} for row, more in zip(rows, drawn.rows(), strict=True)]


@command.command("check", cls=Command)
@file_argument("questions")
@file_option("-o", "--output", required=True, help="The page (.html) to check them on.")
def check(questions: str, output: str) -> None:
    """Make a page on which people keep, fix or drop generated QUESTIONS.

    The thirty that karat generate drew at random come first. Only they count for the
    share of good questions, which every result on the file then shows.

    \b
    karat label questions.jsonl -o check.html
    karat label apply questions.jsonl decisions.jsonl -o kept.jsonl
    """
    target = Outputs.plan([output], [questions], ("html",), json=False)
    read_in = read_questions(questions)
    drawn = drawn_questions(read_in)
    page = question_page("Questions to check", read_in, drawn)
    target.deliver(lambda _: page, ())
    size = counted(len(read_in.queries), "question")
    remark(f"{size}, first {len(drawn)} that were drawn at random")


@command.command("apply", cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="[QUESTIONS] LABELS...")
@options.gold(help="The existing gold, if there is any.")
@file_option("-o", "--output", required=True, help="The new gold to write.")
def apply(files: tuple[str, ...], gold: str | None, output: str) -> None:
    """Merge LABELS into gold, or apply decisions on QUESTIONS.

    A page (karat label new, or a report: karat evaluate ... -o report.html) lets people
    grade what was retrieved, and saves their labels, one JSON line each. A sheet (karat
    pool ... -o sheet.csv) holds them in rows. Rows without a grade, or with "can't
    tell", change nothing. If a document has several labels, or a question several
    decisions, the last one counts.

    \b
    karat label apply sheet.csv -o gold.qrels
    karat label apply labels.jsonl --gold gold.qrels -o labelled.qrels
    karat label apply questions.jsonl decisions.jsonl -o kept.jsonl
    """
    paths = existing(files)
    target = writable(output, [*paths, gold])
    if "decision" in first_row(paths[-1]):
        _decide(paths, gold, target)
        return
    before = Dataset(gold=Gold()) if gold is None else _gold_or_samples(gold)
    merged = before.gold or Gold()
    for path in paths:
        done = apply_labels(path, merged)
        merged = done.gold
        remark(f"{path}: {done}")
        for query, item, old, new_grade in done.changed[:_SHOWN]:
            remark(f"{query} {item}: {old:g} -> {new_grade:g}")
    role: Any = "gold" if before.run is None else None
    write_dataset(replace(before, gold=merged), target, role=role)


def _decide(paths: Sequence[str], gold: str | None, target: Path) -> None:
    """Write what decisions leave of questions, and what share of those is good."""
    (questions, *decisions) = paths
    if gold is not None or not decisions:
        raise UsageError(
            f"{paths[-1]} holds decisions: name the questions they are about before "
            "it, as in karat label apply questions.jsonl decisions.jsonl -o kept.jsonl"
        )
    require_texts(target)
    left, counts = apply_decisions(read_questions(questions), decisions)
    write_dataset(left, target, role="gold")
    kept = len(left.queries) - counts["fix"]
    remark(f"{kept} kept, {counts['fix']} fixed, {counts['drop']} dropped")
    good, size = good_questions(left.queries.values())
    if size:
        remark(str(checked_notice(good, size)))


def _gold_or_samples(path: str) -> Dataset:
    """The gold, or samples, which keep what was retrieved for them."""
    with suppress(DataError):
        samples = read(path, "samples")
        if samples.run is not None and samples.gold is not None:
            return samples
    return read(path, "gold")
