"""Where results go: the terminal, files, and the exit code of the command."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import click

from karat.cli.command import by_flag, remark, say
from karat.cli.options import Gating, writable
from karat.data.tables import SHOWN_BY, Table, counted, steps
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
from karat.reports.terminal import show_table, track
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard
from karat.results.loading import load
from karat.writing import encode_text, write_file

PINNED = (Path("karat-baseline.json"), Path(".karat/baseline.json"))
"""Where a baseline is pinned: in the repository, else in a private folder."""

PAGE = ".html"
"""The ending of a report that browsers show."""

SHOWN_DEPTH = 20
"""How many of each query's documents such a report shows by default."""

INCOMPLETE = 3
"""The exit code where something could not be had."""

_GATE_FAILED = 1
_JUNIT = "junit.xml"
_LONGER = "--max-tokens"
_PASSING = "transient"
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable that names the file of GitHub's page of a run."""


@dataclass(frozen=True)
class Outputs:
    """Where a result goes: files of reports and of gates, and a person or a program."""

    files: Sequence[Path] = ()
    junit: Sequence[Path] = ()
    json: bool = False

    @classmethod
    def plan(
        cls,
        targets: Sequence[str],
        inputs: Sequence[str | None],
        formats: Collection[str],
        gates: Sequence[Gate] | None = None,
        *,
        json: bool,
    ) -> Self:
        """Where to write, checked before any work; `NAME.junit.xml` holds gates."""
        SHOWN_BY.set(track)
        files: list[Path] = []
        junit: list[Path] = []
        for target in targets:
            has_gates = gates is not None and Path(target).name.endswith(_JUNIT)
            if has_gates and not gates:
                raise UsageError(f"-o NAME.{_JUNIT} holds gates, and none was given")
            if Path(target).suffix[1:].lower() not in formats and not has_gates:
                raise UsageError(
                    f"-o {target}: the extension chooses the format, one of "
                    f"{', '.join('.' + name for name in formats)}"
                    f"{'' if gates is None else f', or NAME.{_JUNIT}'}"
                )
            (junit if has_gates else files).append(writable(target, inputs))
        return cls(files, junit, json)

    @property
    def has_page(self) -> bool:
        """Whether any of the files is for browsers."""
        return PAGE in map(attrgetter("suffix"), self.files)

    def deliver(
        self,
        text: Callable[[str], str],
        tables: Iterable[Table],
        gates: Sequence[GateResult] = (),
        headline: str = "",
    ) -> None:
        """Write a result to files, then show its tables, or its JSON if asked to.

        Whoever reads what is printed may leave early, and a file that cannot be written
        must not cost the reader the result: so files come first, and all is printed.
        """
        try:
            for path in steps(self.files, len(self.files), "writing files"):
                _write(path, text(path.suffix.removeprefix(".").lower()))
            for path in self.junit if gates else ():
                _write(path, as_junit(gates, headline))
            if gates:
                tell_github(STEP_SUMMARY, as_step_summary(gates, headline))
        finally:
            if self.json:
                # Bytes, because JSON is UTF-8 whatever the terminal is.
                click.echo(encode_text(text("json")), nl=False)
            else:
                if gates:
                    say(_verdict(gates))
                    say("")
                show_all(tables)

    def conclude(
        self,
        evaluations: Iterable[Evaluation],
        results: Sequence[GateResult],
        *,
        strict: bool = False,
        allowed: int = 0,
        kinds: Collection[str] = (),
    ) -> None:
        """Say what came of gates and what could not be judged, and exit accordingly.

        So many queries may lack a judgement, which failed in ways of these kinds.
        """
        metrics: list[GateResult] = []
        apart: dict[str, str] = {}
        for result in results:
            if result.gate.kind == "failures":
                continue
            metrics.append(result)
            if result.status != "pass":
                word = {"fail": "failed"}.get(result.status, result.status)
                sentence = f"gate {word}: {result.run}: {result.sentence}"
                remark(sentence, alarm=result.status == "fail")
            if result.left_out:
                apart[result.run] = result.left_out
        for run, queries in apart.items():
            remark(f"{run} and its baseline: {queries}")
        failed = [*chain.from_iterable(map(failed_queries, evaluations))]
        incomplete = say_failed(failed, allowed, kinds)
        if results:
            passed = sum(result.status == "pass" for result in results)
            for line in annotations(results) if STEP_SUMMARY in os.environ else ():
                # What is printed as JSON stays JSON.
                click.echo(line, err=self.json)
            counts = f"{passed} of {len(results)} gates passed"
            say(f"RESULT: {outcome_of(results)} ({counts})", err=True)
        outcome = outcome_of(metrics)
        if outcome == "fail":
            sys.exit(_GATE_FAILED)
        if incomplete or (outcome == "inconclusive" and strict):
            sys.exit(INCOMPLETE)


def _verdict(gates: Sequence[GateResult]) -> str:
    """What gates come to, before the tables that show why."""
    by_run: dict[str, dict[str, None]] = {}
    for one in gates:
        if one.status != "pass":
            by_run.setdefault(one.run, {})[one.gate.metric] = None
    named = "; ".join(f"{run} by {', '.join(own)}" for run, own in by_run.items())
    passed = sum(one.status == "pass" for one in gates)
    counts = f"{passed} of {len(gates)} gates passed"
    return f"{outcome_of(gates).upper()}: {f'{named}; ' if named else ''}{counts}"


def show_all(tables: Iterable[Table]) -> None:
    """Show tables, one below the other."""
    for place, table in enumerate(tables):
        if place:
            click.echo()
        show_table(table)


def _write(path: Path, text: str) -> None:
    write_file(path, text)
    remark(f"wrote {path}")


def tell_github(variable: str, text: str) -> None:
    """Add to one of the files that GitHub reads after a step, if there is one."""
    if not (path := os.environ.get(variable)):
        return
    try:
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        remark(f"cannot write {path}: {error.strerror}")


def with_command(one: Evaluation) -> Evaluation:
    """The same, saying which command made it; the values of headers may be keys."""
    shown, before = ["karat"], ""
    for word in sys.argv[1:]:
        hidden = "--header=***" if word.startswith("--header=") else word
        shown.append("***" if before == "--header" else hidden)
        before = word
    return replace(one, provenance={**one.provenance, "command": shlex.join(shown)})


def signed(board: Leaderboard) -> Leaderboard:
    """The same, each of its evaluations saying which command made it."""
    names = {name: with_command(one) for name, one in board.items()}
    return replace(board, evaluations=names)


def rehearse(session: Any, *, as_json: bool) -> None:
    """Say what a run would take, in numbers for programs if asked to; or fail."""
    taken = session.total
    said = json.dumps(taken.to_dict()) if as_json else f"this would take: {taken}"
    click.echo(said)
    session.check()


def read_gates(gating: Gating) -> list[Gate]:
    """The gates that the options name."""
    gates = [
        read_gate(text, kind)
        for kind, option in KINDS.items()
        for text in getattr(gating, option)
    ]
    for name in ("baseline", "gate_tags", "require_noninferior", "allow_noise"):
        # In the environment it is for those calls that measure drops.
        if by_flag(name) and not gating.max_drop:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for --max-drop, and none was given")
    if by_flag("strict") and not gates:
        raise UsageError("--strict is for gates, and none was given")
    return gates


def pinned_baseline() -> Path | None:
    """The file of the evaluation that was pinned as the baseline, if there is one."""
    return next(filter(Path.is_file, PINNED), None)


def load_baseline(path: str | Path) -> Evaluation:
    """The evaluation that drops are measured from."""
    try:
        return load(path)
    except UsageError:
        raise UsageError(
            f"{path} holds several runs, and a baseline is one: karat evaluate RUN "
            "-o FILE.json saves it alone"
        ) from None


def gate_results(
    gates: Sequence[Gate],
    evaluations: Sequence[Evaluation],
    gating: Gating,
    baseline: Evaluation | str | None = None,
    allowed: int = 0,
    **how: Any,
) -> list[GateResult]:
    """What came of the gates, and of queries that failed beside them.

    A baseline that is not an evaluation is read where a gate needs it.
    """
    if not isinstance(baseline, Evaluation):
        path = (baseline or pinned_baseline()) if gating.max_drop else None
        baseline = None if path is None else load_baseline(path)
    if not gates:
        return []
    results = check_gates(
        gates,
        evaluations,
        baseline=baseline,
        allow_noise=gating.allow_noise,
        require_noninferior=gating.require_noninferior,
        by_tag=gating.gate_tags,
        **how,
    )
    return [*results, *check_failures(evaluations, allowed)]


def say_failed(
    failed: Sequence[tuple[str, str]], allowed: int, kinds: Collection[str]
) -> bool:
    """Say which queries could not be judged, if they are more than may be."""
    if len(failed) <= allowed:
        return False
    query, why = failed[0]
    first = "" if len(failed) == 1 else "the first "
    alike = len({reason for _, reason in failed}) == 1 < len(failed)
    remark(
        f"{counted(len(failed), 'query')} "
        f"{'could not be judged' if kinds else 'failed'}, {first}"
        f"{query!r}{', all' if alike else ''}: {why}{_advice(why, kinds)}"
    )
    return True


def _advice(why: str, kinds: Collection[str]) -> str:
    """What may help, unless the reason says it itself."""
    # Asked again as it is, a reply would be cut off again.
    if _LONGER in why or not kinds:
        return ""
    if {*kinds} == {_PASSING}:
        return "; run the same again to go on"
    anew = "--retry-errors asks again, and another --model may do better"
    if _PASSING in kinds:
        return f"; run the same again for what failed in passing; for the rest, {anew}"
    return f"; {anew}"
