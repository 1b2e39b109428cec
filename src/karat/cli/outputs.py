"""Where the results of an evaluation go: the terminal, and files."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from karat.cli.options import writable
from karat.cli.saying import say
from karat.data.tables import Table
from karat.errors import UsageError
from karat.reports import REPORTS, Report
from karat.reports.terminal import show, width_of
from karat.results.leaderboard import WIDTH, Leaderboard
from karat.results.saved_form import LONE_SURROGATES, write_text

__all__ = ["KEPT", "PAGE", "outputs_of", "rehearse", "report", "with_command"]

PAGE = ".html"
"""The ending of a report that browsers show."""

KEPT = 20
"""How many of each query's documents such a report shows, unless told."""


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
        if Path(target).name.endswith("junit.xml"):
            writable(target, [*paths, options["gold"]])
            continue
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
    board: Leaderboard,
    outputs: Sequence[tuple[Path, Report]],
    options: Mapping[str, Any],
) -> None:
    """Show the results, and write the reports."""
    if options["no_text"]:
        board = board.without_texts()
    if options["json"]:
        # Bytes, because JSON is UTF-8 whatever the terminal is.
        text = REPORTS["json"](board, ())
        click.echo(text.encode("utf-8", LONE_SURROGATES), nl=False)
    else:
        width = width_of(sys.stdout)
        for place, table in enumerate(_tables(board, options, width)):
            if place:
                click.echo()
            show(table)
    if any(path.suffix == PAGE for path, _ in outputs):
        board = with_command(board)
    for path, form in outputs:
        write_text(path, form(board, _tables(board, options)))
        say(f"karat: wrote {path}", err=True)


def with_command(board: Leaderboard) -> Leaderboard:
    """The same, saying which command made it; the values of headers may be keys."""
    words = sys.argv[1:]
    shown = [
        "***"
        if before == "--header"
        else word.partition("=")[0] + "=***"
        if word.startswith("--header=")
        else word
        for before, word in zip(["", *words], words, strict=False)
    ]
    command = shlex.join(["karat", *shown])
    signed = {
        name: replace(one, provenance={**one.provenance, "command": command})
        for name, one in board.items()
    }
    return replace(board, evaluations=signed)


def rehearse(taken: Any, options: Mapping[str, Any]) -> None:
    """Say what judging would take, in numbers for programs if asked to."""
    if options["json"]:
        click.echo(json.dumps(taken.to_dict()))
    else:
        click.echo(f"judging would take: {taken}")


def _tables(
    board: Leaderboard, options: Mapping[str, Any], width: int = WIDTH
) -> list[Table]:
    """What a person is shown."""
    return [board.summary(width), *(board.by_tag() if options["slice"] else ())]
