"""How an evaluation ends: gates that failed, and queries that could not be judged."""

import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from karat.cli.baseline import pinned_baseline
from karat.cli.saying import say
from karat.data.tables import counted
from karat.errors import UsageError
from karat.gates import Gate, GateResult, Kind, check_gates, outcome_of, read_gate
from karat.reports.gates import annotations, as_junit, as_step_summary
from karat.results.evaluation import Evaluation
from karat.results.loading import load
from karat.results.saved_form import write_text

__all__ = ["admit", "conclude", "gate_results", "read_gates"]

_GATE_FAILED = 1
_INCOMPLETE = 3
_LONGER = "--max-tokens"
_PASSING = "transient"


def read_gates(options: Mapping[str, Any]) -> list[Gate]:
    """The gates that the options name."""
    kinds: tuple[tuple[str, Kind], ...] = (
        ("fail_under", "mean"),
        ("fail_under_low", "low"),
        ("max_drop", "drop"),
    )
    return [read_gate(text, kind) for name, kind in kinds for text in options[name]]


def gate_results(
    gates: Sequence[Gate],
    evaluations: Iterable[Evaluation],
    options: Mapping[str, Any],
    baseline: Evaluation | None = None,
) -> list[GateResult]:
    """What came of the gates; a baseline is read where one of them needs it."""
    if baseline is None and any(gate.kind == "drop" for gate in gates):
        path = options["baseline"] or pinned_baseline()
        baseline = None if path is None else load(path)
    return check_gates(
        gates,
        evaluations,
        baseline=baseline,
        require_noninferior=options["require_noninferior"],
        by_tag=options["gate_tags"],
        force=bool(options["force"]),
        cluster=options.get("cluster"),
    )


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
    for result in results:
        if result.status != "pass":
            word = {"fail": "failed"}.get(result.status, result.status)
            advice = " (advice only: judged by a model)" if result.advice else ""
            sentence = f"gate {word}{advice}: {result.run}: {result.sentence}"
            say(f"karat: {sentence}", err=True, alarm=result.status == "fail")
    outcome = outcome_of(results)
    if not results and any(_is_junit(target) for target in options["output"]):
        raise UsageError("-o NAME.junit.xml holds gates, and none was given")
    if results:
        passed = sum(result.status == "pass" for result in results)
        write_summaries(results, options)
        say(f"RESULT: {outcome} ({passed} of {len(results)} gates passed)", err=True)
    if outcome == "fail":
        sys.exit(_GATE_FAILED)
    failed = []
    for evaluation in evaluations:
        whys = (evaluation[name].failures for name in evaluation)
        most = max(whys, key=len, default={})
        failed += [(evaluation.queries[place], why) for place, why in most.items()]
        failed += [
            (evaluation.queries[place], f"in part: {next(filter(None, reasons))}")
            for matches in evaluation.matches.values()
            for place, row in matches.verdicts.items()
            if place not in most and any(reasons := [v.failure for v in row])
        ]
    admit(failed, allowed, kinds)
    if outcome == "inconclusive" and options["strict"]:
        sys.exit(_INCOMPLETE)


def write_summaries(results: Sequence[GateResult], options: Mapping[str, Any]) -> None:
    """Write what came of the gates where CI looks for it: JUnit, and GitHub's page."""
    for target in options["output"]:
        if _is_junit(target):
            write_text(target, as_junit(results))
            say(f"karat: wrote {target}", err=True)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(path).open("a", encoding="utf-8") as stream:
                stream.write(as_step_summary(results))
        except OSError as error:
            say(f"karat: cannot write {path}: {error.strerror}", err=True)
        for line in annotations(results):
            # What is printed as JSON stays JSON.
            click.echo(line, err=bool(options["json"]))


def _is_junit(target: str) -> bool:
    return Path(target).name.endswith("junit.xml")


def admit(
    failed: Sequence[tuple[str, str]], allowed: int, kinds: Collection[str] = ()
) -> None:
    """Say which queries could not be judged, and fail unless so many may."""
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
        sys.exit(_INCOMPLETE)


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
