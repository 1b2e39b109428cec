"""Where the results of an evaluation go: the terminal, and files."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from karat.cli.options import writable
from karat.cli.saying import say
from karat.data.evaluations import Evaluation
from karat.data.tables import Table
from karat.errors import UsageError
from karat.reports import REPORTS, Report, by_tag, leaderboard
from karat.reports.terminal import show, width_of

__all__ = ["outputs_of", "rehearse", "report"]

# Half a character, as broken JSON may hold, is written the way JSON writes it.
_LONE = "backslashreplace"


def outputs_of(
    options: Mapping[str, Any], paths: Sequence[str]
) -> list[tuple[Path, Report]]:
    """Where to write what, found out before any work is done."""
    if options["explain"] is not None and (options["output"] or options["json"]):
        raise UsageError("--explain prints tables: it goes without -o and --json")
    if options["explain"] is not None and options["dry_run"]:
        raise UsageError("--dry-run asks nobody, so that there is nothing to --explain")
    outputs = []
    for target in options["output"]:
        extension = Path(target).suffix.removeprefix(".")
        if not extension:
            raise UsageError(
                f"-o {target}: the extension chooses the format, one of "
                f"{', '.join('.' + known for known in REPORTS)}"
            )
        path = writable(target, [*paths, options["gold"]])
        outputs.append((path, REPORTS[extension]))
    return outputs


def report(
    evaluations: Sequence[Evaluation],
    notes: Sequence[str],
    outputs: Sequence[tuple[Path, Report]],
    options: Mapping[str, Any],
) -> None:
    """Show the results, and write the reports."""
    if options["no_text"]:
        evaluations = [*map(_without_questions, evaluations)]
    if options["json"]:
        # Bytes, because JSON is UTF-8 whatever the terminal is.
        text = REPORTS["json"](evaluations, ())
        click.echo(text.encode("utf-8", _LONE), nl=False)
    else:
        width = width_of(sys.stdout)
        for place, table in enumerate(_tables(evaluations, notes, options, width)):
            if place:
                click.echo()
            show(table)
    for path, form in outputs:
        text = form(evaluations, _tables(evaluations, notes, options))
        path.write_text(text, "utf-8", _LONE, newline="\n")
        say(f"karat: wrote {path}", err=True)


def _without_questions(evaluation: Evaluation) -> Evaluation:
    facts = evaluation.facts.items()
    bare = {query: replace(fact, text=None) for query, fact in facts}
    return replace(evaluation, facts=bare)


def rehearse(taken: Any, options: Mapping[str, Any]) -> None:
    """Say what judging would take, in numbers for programs if asked to."""
    if options["json"]:
        click.echo(json.dumps(taken.to_dict()))
    else:
        click.echo(f"judging would take: {taken}")


def _tables(
    evaluations: Sequence[Evaluation],
    notes: Sequence[str],
    options: Mapping[str, Any],
    width: int | None = None,
) -> list[Table]:
    """What a person is shown."""
    table = (
        leaderboard(evaluations) if width is None else leaderboard(evaluations, width)
    )
    tables = [replace(table, notes=[*table.notes, *notes])]
    if options["slice"]:
        tables += [by_tag(evaluation) for evaluation in evaluations]
    return tables
