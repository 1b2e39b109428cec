"""`karat judge`: have a model label what runs retrieved, and measure its trust."""

import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from karat.cli import options
from karat.cli.command import Command, file_argument, file_option, flag, remark
from karat.cli.judge_session import open_session
from karat.cli.options import Judging, collect, existing, writable, write_dataset
from karat.cli.outputs import INCOMPLETE, PAGE, Outputs, rehearse, signed
from karat.data.gold import Gold, Item
from karat.data.queries import Dataset, Query
from karat.data.runs import Labels, Run
from karat.data.tables import counted
from karat.errors import DataError, FormatError, ParameterError, UsageError
from karat.evaluation import evaluate
from karat.judging.agreement import Agreement, claim_labels, middle, save_calibration
from karat.judging.claims import Claims
from karat.judging.grading import (
    Pool,
    complete_gold,
    grade_pool,
    pool,
    retest,
    unlabelled,
)
from karat.judging.session import DryRun, JudgeSession
from karat.judging.splitting import split_references
from karat.leaderboards import leaderboard
from karat.reading.format import FORMATS, name_format
from karat.reading.readers import mapping_of, read, read_corpus, with_texts
from karat.reading.source import Role, placed
from karat.reading.write import write
from karat.reports.page import as_html
from karat.trust import (
    REPORT_VERSION,
    JudgeReport,
    check_people,
    compare_claims,
    compare_grades,
    retest_changes,
)

_METRIC = "ndcg@10"


@dataclass(frozen=True)
class JudgeOptions:
    """What is labelled, what it is compared with, and where it goes."""

    runs: Sequence[str]
    k: int
    queries: str | None
    output: Sequence[str]
    gold: str | None
    claims: bool
    agreement: Sequence[str]
    metric: str
    retest: bool
    json: bool
    mapping: Mapping[str, str]
    judging: Judging


@click.command("judge", cls=Command)
@file_argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-k", default=10, help="Pool depth of each run; default: 10.")
@file_option("--queries", help="Texts of queries.")
@options.outputs(help="The gold to write, or a page (.html); repeatable.")
@options.gold(help="Existing labels: only other documents are judged.")
@flag("--claims", help="Split reference answers into claims.")
@click.option(
    "--agreement",
    metavar="GOLD",
    multiple=True,
    help="Compare with labels by people; repeat it for each person.",
)
@click.option(
    "--metric",
    default=_METRIC,
    help=f"Ranks several runs for --agreement; default: {_METRIC}.",
)
@flag("--retest", help="Ask again in other words and count changes.")
@options.json
@options.mapping
@options.judging
@collect("options", JudgeOptions)
def command(options: JudgeOptions) -> None:
    """Grade the top k of RUN... from 0 to 3 with a model, and write the grades as gold.

    Every metric works on such gold. Grade 1 does not help to answer, so score with
    --threshold 2. With --votes, the median of the grades counts. Labels name the model,
    and reports show where they are mixed with people's. With --gold, existing labels
    stay unchanged, and only other documents are judged. --agreement and --retest
    measure how far to trust the model; failures of --retest are counted and stop
    nothing.

    With --claims, reference answers of samples are split into claims instead, to be
    corrected and scored with context_recall; with --corpus, questions without a
    reference get the claims of their relevant documents. --agreement then compares the
    judge of claims with people: lines with an id and claims, each with a text and
    supported, true or false.

    \b
    karat judge a.run b.run --queries queries.jsonl --corpus corpus.jsonl \\
        -k 10 --model NAME -o gold.qrels
    karat judge a.run b.run --queries queries.jsonl --corpus corpus.jsonl \\
        --model NAME --agreement people.qrels
    karat judge new.run --queries queries.jsonl --corpus corpus.jsonl \\
        --model NAME --gold people.qrels -o completed.qrels
    karat judge samples.jsonl --claims --model NAME -o samples_with_claims.jsonl
    karat judge samples.jsonl --claims --model NAME --agreement people.jsonl
    """
    paths = existing(options.runs)
    outputs = _targets(options, paths)
    targets = [path for path in outputs if path.suffix != PAGE]
    pages = [path for path in outputs if path.suffix == PAGE]
    session = open_session(options.judging)
    by_reference = options.claims and options.judging.corpus is None
    role: Role | None = "samples" if by_reference else None
    mapping = mapping_of("run", options.mapping)
    loaded = {path: read(path, role, mapping=mapping) for path in paths}
    if options.claims:
        failed = [_split_claims([*loaded.values()], session, targets, options)]
    else:
        failed = _grade(loaded, session, targets, pages, options)
    if isinstance(session, DryRun):
        rehearse(session, as_json=options.json)
        return
    for failures, when in zip(failed, ("", " when asked again"), strict=False):
        if len(failures) > (options.judging.max_failures or 0):
            where, reason = next(iter(failures.items()))
            remark(
                f"{counted(len(failures), 'judgement')} failed{when}, "
                f"first for {where}: {reason}"
            )
            sys.exit(INCOMPLETE)


def _targets(options: JudgeOptions, paths: Sequence[str]) -> list[Path]:
    """Where gold is to be written; asking for nothing at all is an error."""
    if options.k < 1:
        raise ParameterError("-k", "k", "an integer >= 1", options.k)
    for name in ("retest", "gold") if options.claims else ():
        if getattr(options, name):
            raise UsageError(f"--{name} is about grades, and --claims gives none")
    shown = options.retest or options.json or options.judging.dry_run
    if not (options.output or options.agreement or shown):
        raise UsageError("say where to write with -o FILE, such as -o gold.qrels")
    others = (options.gold, options.queries, options.judging.corpus)
    inputs = [*paths, *options.agreement, *others]
    role: Role = "samples" if options.claims else "gold"
    for target in options.output:
        if Path(target).suffix != PAGE:
            _refuse_format(target, role)
        elif options.claims:
            raise UsageError(
                "--claims shows no page; karat evaluate SAMPLES -m context_recall "
                f"--model NAME -o {target} shows each claim with the judge's reason"
            )
    return [writable(target, inputs) for target in options.output]


def _refuse_format(target: str, role: Role) -> None:
    """Refuse a name whose ending is no format, or one that cannot hold the role."""
    name = target.lower().removesuffix(".gz")
    named = [each for each in FORMATS.usable() if name.endswith(each.extensions)]
    if any(role in each.holds for each in named):
        return
    why = f"{named[0].name} holds no {role}; " if named else ""
    holding = [f for f in FORMATS.usable() if role in f.holds and f.extensions]
    endings = ", ".join(each.extensions[0] for each in holding)
    raise UsageError(f"-o {target}: {why}end the name in one of {endings}")


def _try_writing(gold: Gold, targets: Sequence[Path]) -> None:
    """Refuse what a format cannot hold before a judge is paid for it."""
    for target in targets:
        format = name_format(str(target)).name
        try:
            write(Dataset(gold=gold), io.BytesIO(), format, "gold")
        except DataError as error:
            raise placed(error, path=target) from None


def _runs(loaded: Mapping[str, Dataset]) -> Mapping[str, Run]:
    """The runs by name; files of one name in several folders by their paths."""
    runs: dict[str, Run] = {}
    for path, part in loaded.items():
        if part.run is None:
            why = "holds nothing retrieved, and so nothing to grade"
            raise FormatError(why, path=path)
        runs[path] = part.run
    named = {run.name: run for run in runs.values()}
    return named if len(named) == len(runs) else runs


def _grade(
    loaded: Mapping[str, Dataset],
    session: JudgeSession,
    targets: Sequence[Path],
    pages: Sequence[Path],
    options: JudgeOptions,
) -> list[Mapping[str, str]]:
    """What could not be graded, with the reason; the same of what was asked again."""
    runs, judging = _runs(loaded), options.judging
    corpus = None if judging.corpus is None else read_corpus(judging.corpus)
    pooled = pool(runs.values(), options.k, corpus)
    _refuse_texts_as_ids(pooled if judging.no_text else {})
    people = _people(options, pooled, runs)
    existing = Gold()
    if options.gold is not None:
        existing = read(options.gold, "gold").gold or Gold()
        _try_writing(existing, targets)
    labels = existing.documents
    together = middle(people) if people else None
    todo = unlabelled(pooled, labels, together)
    questions = _questions_of(loaded.values(), options.queries)
    votes = judging.votes or 1
    blank = Gold({query: dict.fromkeys(row, 0.0) for query, row in todo.items()})
    _try_writing(blank, targets)
    graded = grade_pool(todo, questions, session, votes=votes)
    whole = complete_gold(existing, graded.gold)
    # What was paid for is written, whatever becomes of the rest.
    for target in () if isinstance(session, DryRun) else targets:
        write_dataset(Dataset(gold=whole), target, role="gold")
    judged, metric = graded.gold.documents, options.metric
    again = agreement = changes = None
    if options.retest:
        again = retest(todo, questions, session, votes=votes)
    if isinstance(session, DryRun):
        return []
    if again is not None:
        changes = retest_changes(graded, again, together, labels)
    if people:
        agreement = compare_grades(runs, judged, people, existing=labels, metric=metric)
    report = JudgeReport(
        graded,
        agreement,
        changes,
        labelled=sum(n in labels.get(q, {}) for q in pooled for n in pooled[q]),
        existing=labels,
        written=whole if targets else None,
    )
    scored = {"gold": whole, "queries": questions or None, "corpus": corpus}

    def text(form: str) -> str:
        if f".{form}" == PAGE:
            return _page(runs, report, scored, options)
        return json.dumps(report.to_dict(texts=not judging.no_text), indent=2) + "\n"

    Outputs(pages, json=options.json).deliver(text, report.tables())
    return [
        {f"{q} {d}": reason for (q, d), reason in part.failures.items()}
        for part in (graded, again)
        if part is not None
    ]


def _split_claims(
    loaded: Sequence[Dataset],
    session: JudgeSession,
    targets: Sequence[Path],
    options: JudgeOptions,
) -> Mapping[str, str]:
    """The queries whose references could not be split, with the reason."""
    if len(loaded) > 1:
        raise UsageError("--claims takes one file of samples at a time")
    (samples,) = loaded
    if options.judging.corpus is not None and samples.run is not None:
        samples = replace(samples, run=with_texts(samples.run, options.judging.corpus))
    agreement = _compare_claims(samples.run, session, options)
    if agreement is not None and not targets:
        # Whoever only compares has claims by people, and nothing to split.
        if options.json or not isinstance(session, DryRun):
            text = json.dumps(agreement.to_dict(), indent=2) + "\n"
            Outputs(json=options.json).deliver(lambda _: text, [agreement.table()])
        return {}
    gold, corpus = samples.gold or Gold(), options.judging.corpus
    names = {name for row in gold.documents.values() for name in row} if corpus else {}
    if not (gold.references or gold.claims or names):
        raise DataError(
            "no sample has a reference answer to split",
            hint="--map reference=FIELD names the field that holds it",
        )
    questions = _questions_of(loaded, options.queries)
    texts = read_corpus(corpus, ids=names) if names else None
    split = split_references(gold, session, questions, texts)
    role: Role | None = "gold" if samples.run is None else None
    # What was paid for is written, whatever becomes of the rest.
    for target in () if isinstance(session, DryRun) else targets:
        write_dataset(replace(samples, gold=split.gold), target, role=role)
    if isinstance(session, DryRun):
        return {}
    facts = {
        "schema_version": REPORT_VERSION,
        "source": session.source,
        **split.to_dict(texts=not options.judging.no_text),
        "agreement": None if agreement is None else agreement.to_dict(),
    }
    tables = [] if agreement is None else [agreement.table()]
    if not options.json:
        click.echo(split.summary(samples.queries))
    text = json.dumps(facts, indent=2) + "\n"
    Outputs(json=options.json).deliver(lambda _: text, tables)
    return split.failures


def _compare_claims(
    run: Run | None, session: JudgeSession, options: JudgeOptions
) -> Agreement | None:
    """Judge the claims that people labelled, compare, and keep the outcome."""
    if not options.agreement:
        return None
    people = {path: claim_labels(path) for path in options.agreement}
    queries = [] if run is None else [*run.queries()]
    for path, labelled in people.items():
        if run is None or not {*labelled} & {*queries}:
            raise DataError(
                "labels no claims of these samples",
                path=path,
                hint="the ids of its lines must be those of the samples",
            )
    together = middle([*people.values()])
    claims = {
        query: tuple(Item(f"claim-{n}", t) for n, t in enumerate(together[query], 1))
        for query in queries
        if query in together
    }
    judge = Claims(session, votes=options.judging.votes or 1)
    gold = Gold(claims=claims)
    result = evaluate(run, gold=gold, metrics="context_recall", judge=judge)
    agreement = compare_claims(result, [*people.values()])
    if not isinstance(session, DryRun) and session.settings.journal is not None:
        save_calibration(agreement, judge.facts, session.settings.journal)
    return agreement


def _questions_of(loaded: Iterable[Dataset], path: str | None) -> dict[str, str]:
    """What each query asks, by the samples themselves or by a file."""
    facts: dict[str, Query] = {}
    for part in loaded:
        facts |= part.queries
    if path is not None:
        facts |= read(path, "queries").queries
    return {name: query.text for name, query in facts.items() if query.text}


def _page(
    runs: Mapping[str, Run],
    report: JudgeReport,
    scored: Mapping[str, Any],
    options: JudgeOptions,
) -> str:
    """What the runs score by the judge's labels, each label with its reason."""
    metrics, keep = [options.metric], options.k
    board = leaderboard(runs, metrics=metrics, keep=keep, force=True, **scored)
    board = signed(board)
    notes = {
        query: {name: [f"the judge: {one.reason}"] for name, one in row.items()}
        for query, row in report.graded.grades.items()
    }
    if options.judging.no_text:
        board, notes = board.without_texts(), {}
    return as_html(board, notes=notes, more={"The judge": report.tables()})


def _people(
    options: JudgeOptions, pooled: Pool, runs: Mapping[str, Run]
) -> list[Labels]:
    """The labels by people to compare with, checked before a model is asked."""
    people = []
    for path in options.agreement:
        people.append((read(path, "gold").gold or Gold()).documents)
        try:
            check_people(people[-1], pooled, runs, options.metric)
        except DataError as error:
            raise placed(error, path=path) from None
    return people


def _refuse_texts_as_ids(pooled: Pool) -> None:
    """Refuse documents that are named by their texts where texts must stay out."""
    for query, row in pooled.items():
        if any(name == text for name, text in row.items()):
            raise DataError(
                "documents without ids are named by their texts, and --no-text keeps "
                "texts out of all that is written",
                query=query,
                hint="give the retrieved documents ids, or leave --no-text out",
            )
