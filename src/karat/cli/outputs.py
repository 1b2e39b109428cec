"""Where results go: the terminal, files, and the exit code of the command."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from karat.cli.command import say
from karat.cli.options import PINNED, writable
from karat.data.tables import Table, counted
from karat.errors import UsageError
from karat.gates import (
    KINDS,
    Gate,
    GateResult,
    check_failures,
    check_gates,
    failed_queries,
    outcome_of,
    read_gate,
)
from karat.reports.ci import annotations, as_junit, as_step_summary
from karat.reports.terminal import show
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard
from karat.results.loading import load
from karat.writing import encode_text, write_file

PAGE = ".html"
"""The ending of a report that browsers show."""

SHOWN_DEPTH = 20
"""How many of each query's documents such a report shows by default."""

INCOMPLETE = 3
"""The exit code where something could not be had."""

_GATE_FAILED = 1
_LONGER = "--max-tokens"
_PASSING = "transient"
_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def outputs_of(
    targets: Sequence[str],
    inputs: Sequence[str | None],
    formats: Collection[str],
    *,
    gates: bool = False,
) -> list[Path]:
    """Where to write, found out before any work is done; what holds gates left out.

    Args:
        targets: as the user wrote them.
        inputs: files that must not be overwritten.
        formats: those there are, as extensions.
        gates: whether `NAME.junit.xml` may hold gates.
    """
    paths = []
    for target in targets:
        in_junit = gates and _is_junit(target)
        if Path(target).suffix[1:].lower() not in formats and not in_junit:
            raise UsageError(
                f"-o {target}: the extension chooses the format, one of "
                f"{', '.join('.' + name for name in formats)}"
                f"{', or NAME.junit.xml' if gates else ''}"
            )
        path = writable(target, inputs)
        paths += [] if in_junit else [path]
    return paths


def deliver(
    text: Callable[[str], str],
    tables: Iterable[Table],
    options: Mapping[str, Any],
    outputs: Iterable[Path] = (),
    gates: Sequence[GateResult] = (),
    headline: str = "",
) -> None:
    """Write a result to files, then show its tables, or its JSON if asked to.

    Whoever reads what is printed may leave early, and a file that cannot be written
    must not cost the reader the result: so all files come first, and all is printed.

    Args:
        text: the result in a format, by its extension.
        tables: what a person is shown.
        options: whether JSON is printed, and where gates are written.
        outputs: the files, apart from those that hold gates.
        gates: what came of each gate.
        headline: what came of a comparison, in a few words.
    """
    try:
        for path in outputs:
            _write(path, text(path.suffix.removeprefix(".").lower()))
        _write_gates(gates, options, headline)
    finally:
        if options["json"]:
            # Bytes, because JSON is UTF-8 whatever the terminal is.
            click.echo(encode_text(text("json")), nl=False)
        else:
            show_all(tables)


def show_all(tables: Iterable[Table]) -> None:
    """Show tables, one below the other."""
    for place, table in enumerate(tables):
        if place:
            click.echo()
        show(table)


def _write(path: str | Path, text: str) -> None:
    write_file(path, text)
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


def read_gates(options: Mapping[str, Any]) -> list[Gate]:
    """The gates that the options name."""
    gates = [read_gate(text, kind) for kind, o in KINDS.items() for text in options[o]]
    if not any(gate.kind == "drop" for gate in gates):
        for name in ("baseline", "gate_tags", "require_noninferior"):
            if options.get(name):
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{option} is for --max-drop, and none was given")
    if not gates and any(map(_is_junit, options["output"])):
        raise UsageError("-o NAME.junit.xml holds gates, and none was given")
    return gates


def gate_results(
    gates: Sequence[Gate],
    evaluations: Iterable[Evaluation],
    options: Mapping[str, Any],
    baseline: Evaluation | None = None,
) -> list[GateResult]:
    """What came of the gates, and of queries that failed beside them.

    A baseline is read where a gate needs it.
    """
    evaluations = [*evaluations]
    if baseline is None and any(gate.kind == "drop" for gate in gates):
        path = options["baseline"] or next(filter(Path.is_file, PINNED), None)
        baseline = None if path is None else load(path)
    results = check_gates(
        gates,
        evaluations,
        baseline=baseline,
        allow_noise=options["allow_noise"],
        require_noninferior=options["require_noninferior"],
        by_tag=options["gate_tags"],
        force=bool(options["force"]),
        cluster=options.get("cluster"),
    )
    most = options.get("max_failures") or 0
    return [*results, *(check_failures(evaluations, most) if gates else ())]


def conclude(
    evaluations: Iterable[Evaluation],
    results: Sequence[GateResult],
    options: Mapping[str, Any],
    allowed: int = 0,
    kinds: Collection[str] = (),
) -> None:
    """Say what came of the gates and what could not be judged, and exit accordingly.

    Args:
        evaluations: what was scored.
        results: what came of each gate.
        options: whether what is inconclusive fails.
        allowed: how many queries may lack a judgement.
        kinds: in which ways judgements failed.
    """
    metrics = [result for result in results if result.gate.kind != "failures"]
    for result in metrics:
        if result.status != "pass":
            word = {"fail": "failed"}.get(result.status, result.status)
            sentence = f"gate {word}: {result.run}: {result.sentence}"
            say(f"karat: {sentence}", err=True, alarm=result.status == "fail")
    apart = {result.run: result.left_out for result in metrics if result.left_out}
    for run, queries in apart.items():
        say(f"karat: {run} and its baseline: {queries}", err=True)
    failed = [pair for one in evaluations for pair in failed_queries(one)]
    incomplete = _say_failed(failed, allowed, kinds)
    if results:
        passed = sum(result.status == "pass" for result in results)
        for line in annotations(results) if _STEP_SUMMARY in os.environ else ():
            # What is printed as JSON stays JSON.
            click.echo(line, err=bool(options["json"]))
        counts = f"{passed} of {len(results)} gates passed"
        say(f"RESULT: {outcome_of(results)} ({counts})", err=True)
    outcome = outcome_of(metrics)
    if outcome == "fail":
        sys.exit(_GATE_FAILED)
    if incomplete or (outcome == "inconclusive" and options["strict"]):
        sys.exit(INCOMPLETE)


def _write_gates(
    results: Sequence[GateResult], options: Mapping[str, Any], headline: str
) -> None:
    """Write what came of the gates where CI looks for it: JUnit, and GitHub's page."""
    for target in filter(_is_junit, options.get("output", ())) if results else ():
        _write(target, as_junit(results, headline))
    if results and (path := os.environ.get(_STEP_SUMMARY)):
        try:
            with Path(path).open("a", encoding="utf-8") as stream:
                stream.write(as_step_summary(results, headline))
        except OSError as error:
            say(f"karat: cannot write {path}: {error.strerror}", err=True)


def _is_junit(target: str | Path) -> bool:
    return Path(target).name.endswith("junit.xml")


def admit(
    failed: Sequence[tuple[str, str]], allowed: int, kinds: Collection[str] = ()
) -> None:
    """Say which queries could not be judged, and exit unless so many may."""
    if _say_failed(failed, allowed, kinds):
        sys.exit(INCOMPLETE)


def _say_failed(
    failed: Sequence[tuple[str, str]], allowed: int, kinds: Collection[str]
) -> bool:
    """Say which queries could not be judged, if they are more than may be."""
    if len(failed) > allowed:
        query, why = failed[0]
        first = "" if len(failed) == 1 else "the first "
        alike = len({reason for _, reason in failed}) == 1 < len(failed)
        say(
            f"karat: {counted(len(failed), 'query')} "
            f"{'could not be judged' if kinds else 'failed'}, {first}"
            f"{query!r}{', all' if alike else ''}: {why}{_advice(why, kinds)}",
            err=True,
        )
    return len(failed) > allowed


def _advice(why: str, kinds: Collection[str]) -> str:
    """What may help, unless the reason says it itself."""
    # Asked again as it is, a reply would be cut off again.
    if _LONGER in why or not kinds:
        return ""
    if {*kinds} == {_PASSING}:
        return "; run the same again to go on"
    anew = "--retry-errors asks anew, and another --model may do better"
    if _PASSING in kinds:
        return f"; run the same again for what failed in passing; for the rest, {anew}"
    return f"; {anew}"
