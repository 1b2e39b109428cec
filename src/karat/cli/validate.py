"""`karat validate`: check files, and say what is wrong with them and where."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from karat.cli import options
from karat.cli.command import Command, file_argument, remark, say
from karat.cli.options import existing
from karat.data.gold import KINDS, Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Notice, Run
from karat.data.tables import counted
from karat.errors import DataError
from karat.evaluation import evaluate
from karat.reading.readers import Checked, read_queries, validate
from karat.reading.source import Role

_WRONG = 2
_COUNTS = ("num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret")


@click.command("validate", cls=Command)
@file_argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    *("-g", "--gold", "--qrels"), help="Check each FILE against this gold too."
)
@click.option(
    "--role",
    type=click.Choice(["run", "gold", "samples", "queries"]),
    help="What FILE is, if its content does not show it.",
)
@options.mapping
@click.option("--format", metavar="FORMAT", help="Format of FILE; default: detected.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="Maximum problems to report per file.",
)
def command(
    files: Sequence[str], gold: str | None, role: Role | None, **how: Any
) -> None:
    """Check FILE...: show what each holds, or everything that is wrong, and where.

    With --gold, also check whether run and gold belong together: common queries, common
    documents, ties and duplicates. Exits with 2 when anything is wrong.

    \b
    karat validate samples.jsonl
    karat validate run.trec --gold qrels.trec
    """
    paths, truth = existing(files, gold), None
    if gold is not None:
        truth = _check(gold, "gold", has_gold=True, shared=True, **how)
        role = role or "run"
    how["shared"] = (truth.loaded or True) if truth else False
    checks = [_check(path, role, has_gold=truth is not None, **how) for path in paths]
    problems = sum(len(c.problems) for c in (truth, *checks) if c is not None)
    for checked in checks:
        if checked.loaded is not None and (truth is None or truth.loaded is not None):
            problems += _check_pair(checked.loaded, truth.loaded if truth else None)
    if problems:
        sys.exit(_WRONG)


def _check(path: str, role: Role | None, *, has_gold: bool, **how: Any) -> Checked:
    """Check one file; say what it holds on stdout, what is wrong with it on stderr."""
    checked = validate(path, role, **how)
    unasked = role is None and not how["mapping"]
    if checked.loaded is None and unasked and (texts := _texts(path)):
        say(f"{path}: {texts}")
        return Checked()
    for problem in checked.problems:
        remark(str(problem))
    if checked.more:
        more = f"more problems after these {len(checked.problems)}"
        remark(f"{path}: {more}; --limit shows more")
    if checked.loaded is not None:
        say(f"{path}: {', '.join(contents(checked.loaded))}")
        for line in _remarks(checked.loaded):
            say(f"  {line}")
        if checked.loaded.gold is None and not has_gold:
            _say((*checked.notices, *_noticed(checked.loaded.run)))
    return checked


def _texts(path: str) -> str | None:
    """What a file of nothing but texts holds; None if a field may hold documents."""
    if not Path(path).is_file():
        return None
    try:
        facts = [*read_queries(path).values()]
    except DataError:
        return None
    names: set[str] = set()
    for fact in facts:
        names |= fact.metadata.keys()
        others = (v for n, v in fact.metadata.items() if n != "metadata")
        if not fact.text or any(isinstance(v, list | dict) for v in others):
            return None
    if "title" in names:
        return f"a corpus with {counted(len(facts), 'document')}"
    if any(fact.tags for fact in facts):
        return counted(len(facts), "query")
    return f"{counted(len(facts), 'text')} by id: queries, or a corpus"


def contents(loaded: Dataset) -> Iterator[str]:
    """What a file holds, in a few words."""
    yield loaded.format
    if loaded.run is not None:
        yield _about_run(loaded.run)
    if loaded.gold is not None:
        yield _about_gold(loaded.gold)
    if loaded.run is None and loaded.gold is None:
        yield counted(len(loaded.queries), "query")


def _about_run(run: Run) -> str:
    queries = run.queries()
    # Nothing is looked for, so all that is found is how much was retrieved.
    nothing = {query: dict[str, float]() for query in queries}
    located = run.locate(nothing, judged=False, policies=Policies())
    documents = counted(int(located.retrieved.sum()), "document")
    return f"a run with {counted(len(queries), 'query')} and {documents}"


def _about_gold(gold: Gold) -> str:
    counts = {
        kind: sum(len(items) for items in getattr(gold, kind).values())
        for kind in KINDS
    }
    counts["reference answers"] = len(gold.references)
    parts = [counted(n, kind.removesuffix("s")) for kind, n in counts.items() if n]
    grades = {g for labels in gold.documents.values() for g in labels.values()}
    span = f", graded {min(grades):g} to {max(grades):g}" if len(grades) > 1 else ""
    labels = " and ".join(parts) or "no labels"
    return f"gold with {counted(len(gold.queries), 'query')} and {labels}{span}"


def _remarks(loaded: Dataset) -> Iterator[str]:
    if renamed := [f"{o}={t}" for o, t in loaded.mapping.items() if o != t]:
        yield f"fields read as: {', '.join(renamed)}"
    if tags := {tag for query in loaded.queries.values() for tag in query.tags}:
        yield counted(len(tags), "tag")


def _noticed(run: Run | None) -> Iterator[Notice]:
    """Ties and duplicates of a run without gold; with gold, its evaluation tells."""
    if run is None:
        return
    policies = Policies()
    # What may be relevant is counted: here, all documents.
    labels = {
        query: {d.id if d.id is not None else d.text or "": 1.0 for d in documents}
        for query, documents in run.rankings(policies)
    }
    for notice in run.locate(labels, judged=True, policies=policies).notices:
        text, one = (t.removeprefix("relevant ") for t in (notice.text, notice.one))
        yield replace(notice, text=text, one=one)


def _check_pair(loaded: Dataset, gold: Dataset | None) -> int:
    """Whether a run and gold belong together; the number of problems."""
    if loaded.run is None or (gold or loaded).gold is None:
        return 0
    try:
        result = evaluate(loaded, gold=gold, metrics=_COUNTS)
    except DataError as error:
        remark(str(error))
        return 1
    total = {name: int(result[name].scores.sum()) for name in _COUNTS}
    judged = total["num_rel_ret"] + total["num_nonrel_judged_ret"]
    present = len(result.queries) - int(result.missing.sum())
    say(f"{result.title}, matched by {result.matchers[_COUNTS[0]]}:")
    click.echo(
        f"  {_part(present, len(result.queries), 'gold query')} in the run\n"
        f"  {_part(total['num_rel_ret'], total['num_rel'], 'relevant item')} found\n"
        f"  {_part(judged, total['num_ret'], 'retrieved document')} labelled"
    )
    _say(result.warnings)
    return 0


def _part(count: int, total: int, thing: str) -> str:
    return f"{count} of {counted(total, thing)} {'is' if count == 1 else 'are'}"


def _say(notices: Iterable[Notice]) -> None:
    for notice in notices:
        say(f"  {notice.kind}: {notice}")
