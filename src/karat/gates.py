"""Gates: what a build must reach, what counts as a failure, and how CI is told."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, NamedTuple

from karat.comparison.changes import tagged
from karat.comparison.pairing import Pairing, pair
from karat.data.tables import Table, clean, number
from karat.errors import UsageError
from karat.metrics import read_metric
from karat.results.evaluation import Evaluation
from karat.stats.paired import difference_interval

Kind = Literal["mean", "low", "drop"]
Status = Literal["pass", "fail", "inconclusive"]

_ALPHA = 0.05
KINDS: dict[Kind, str] = {
    "mean": "fail_under",
    "low": "fail_under_low",
    "drop": "max_drop",
}
"""What a gate may be about, and what commands and suites call it."""

_OPTIONS = {kind: f"--{name.replace('_', '-')}" for kind, name in KINDS.items()}


class Gate(NamedTuple):
    """What a metric must reach.

    Attributes:
        metric: its spelling.
        value: the smallest mean, the smallest lower limit of its interval, or the
            largest change for the worse from the baseline.
        kind: which of these, `mean`, `low` or `drop`.
    """

    metric: str
    value: float
    kind: Kind = "mean"


@dataclass(frozen=True)
class GateResult:
    """What came of one gate for one run.

    Attributes:
        gate: what was asked.
        run: name of the run.
        status: pass, fail, or inconclusive.
        sentence: why.
        slice: the tag whose queries it is about; empty for all.
        advice: whether a failure does not count, because a model judged and nobody
            has measured how far it agrees with people.
    """

    gate: Gate
    run: str
    status: Status
    sentence: str
    slice: str = ""
    advice: bool = False


def read_gate(text: str, kind: Kind = "mean") -> Gate:
    """A gate from `recall@5=0.8`.

    Example:
        >>> read_gate("recall@5=0.8")
        Gate(metric='recall@5', value=0.8, kind='mean')
    """
    option = _OPTIONS[kind]
    # From the right: parameters of the metric may hold equals signs too.
    metric, equals, value = text.rpartition("=")
    try:
        least = float(value)
    except ValueError:
        equals = ""
    if not equals or least != least:  # noqa: PLR0124
        raise UsageError(f"{option} takes METRIC=VALUE, got {text!r}")
    read = read_metric(metric)
    if kind != "drop" and read.higher_is_better is False:
        raise UsageError(
            f"{option} {text}: of {metric} less is better; --max-drop {text} fails "
            "when it gets worse than the baseline by more"
        )
    low, high = read.bounds
    what = metric
    if kind == "drop":
        low, high, what = 0.0, high - low, f"a drop of {metric}"
    if not low <= least <= high:
        percent = low <= least / 100 <= high
        hint = f"; {least / 100:g}?" if percent else ""
        raise UsageError(
            f"{option} {text}: {what} lies between {low:g} and {high:g}{hint}"
        )
    return Gate(metric if "[" in metric else str(read), least, kind)


def check_gates(
    gates: Sequence[Gate],
    evaluations: Iterable[Evaluation],
    *,
    baseline: Evaluation | None = None,
    require_noninferior: bool = False,
    by_tag: bool = False,
    force: bool = False,
    cluster: str | None = None,
) -> list[GateResult]:
    """What came of each gate for each run; no score does not pass either.

    A gate on a drop fails when a drop beyond its value is demonstrated: when the whole
    95 % interval of the difference lies below. It passes when the whole interval lies
    above, and is inconclusive between the two.

    Args:
        gates: what to check.
        evaluations: what was scored.
        baseline: what drops are measured from.
        require_noninferior: fail a gate on a drop unless it is shown to be smaller.
        by_tag: check drops on the queries of each tag, too, the level corrected for
            the number of tags.
        force: compare with a baseline that was not scored in the same way.
        cluster: a field of queries; those of one value are one unit of a drop.

    Raises:
        UsageError: a gate on a drop without a baseline, or on a metric without scores.
    """
    results = []
    for evaluation in evaluations:
        for gate in gates:
            if gate.metric not in evaluation:
                raise UsageError(
                    f"{_OPTIONS[gate.kind]} {gate.metric}: {evaluation.run} was scored "
                    f"by {', '.join(evaluation)}"
                )
            matches = evaluation.matches.get(evaluation.matchers.get(gate.metric, ""))
            judged = matches is not None and bool(matches.verdicts)
            advice = judged and "agreement" not in evaluation.provenance
            if gate.kind != "drop":
                status, sentence = _level(gate, evaluation)
                results.append(
                    GateResult(gate, evaluation.run, status, sentence, advice=advice)
                )
                continue
            if baseline is None:
                raise UsageError(
                    f"--max-drop {gate.metric} needs a baseline: --baseline FILE, or "
                    "karat baseline set FILE"
                )
            pairing = pair(baseline, evaluation, force=force, cluster=cluster)
            slices = tagged(pairing.queries, evaluation) if by_tag else {}
            if by_tag and not slices:
                raise UsageError("--gate-tags: no query has a tag; --queries FILE may")
            for tag, rows in {"": None, **slices}.items():
                level = 1 - _ALPHA / (len(slices) if tag else 1)
                status, sentence = _drop(gate, pairing, rows, level)
                if status == "inconclusive" and require_noninferior:
                    status = "fail"
                    sentence += "; a smaller drop is not shown"
                sentence = f"{tag}: {sentence}" if tag else sentence
                results.append(
                    GateResult(gate, evaluation.run, status, sentence, tag, advice)
                )
    return results


def outcome_of(results: Iterable[GateResult]) -> Status:
    """The outcome of all gates: a failure outranks what is inconclusive."""
    statuses = {
        "inconclusive" if result.advice and result.status == "fail" else result.status
        for result in results
    }
    if "fail" in statuses:
        return "fail"
    return "inconclusive" if "inconclusive" in statuses else "pass"


def _level(gate: Gate, evaluation: Evaluation) -> tuple[Status, str]:
    column = evaluation[gate.metric]
    value, what = column.mean, "is"
    if gate.kind == "low":
        value = float("nan") if column.interval is None else column.interval.low
        what = "has a lower limit of"
    passed = value >= gate.value
    relation = "not below" if passed else "below"
    return (
        "pass" if passed else "fail",
        f"{gate.metric} {what} {number(value)}, {relation} {gate.value:g}",
    )


def _drop(
    gate: Gate, pairing: Pairing, rows: Sequence[int] | None, level: float
) -> tuple[Status, str]:
    baseline = pairing.baseline
    if gate.metric not in baseline:
        raise UsageError(
            f"--max-drop {gate.metric}: the baseline was scored by "
            f"{', '.join(baseline)}"
        )
    pairs = pairing.pairs(gate.metric, rows)
    differences = pairs.candidate - pairs.baseline
    if len(differences) and not differences.any():
        same = f"{gate.metric} is the same on all {len(differences)} queries"
        return "pass", same
    interval = difference_interval(
        differences,
        binary=pairs.binary,
        bounds=pairs.bounds,
        clusters=pairs.clusters,
        level=level,
    )
    if interval is None:
        return "inconclusive", f"{gate.metric}: no query in common has a score"
    change = (
        f"{gate.metric} changed by {differences.mean():+.4f} "
        f"({100 * level:.3g}% interval {interval.low:+.4f} to {interval.high:+.4f}) on "
        f"{len(differences)} queries"
    )
    worst, best, drop = interval.low, interval.high, "drop"
    if pairs.higher_is_better is False:
        worst, best, drop = -interval.high, -interval.low, "rise"
    change += f": a {drop} of more than {gate.value:g} is"
    if best < -gate.value:
        return "fail", f"{change} demonstrated"
    if worst >= -gate.value:
        return "pass", f"{change} ruled out"
    return "inconclusive", f"{change} possible"


def as_junit(results: Sequence[GateResult]) -> str:
    """The gates as test cases of a JUnit report; what is inconclusive is skipped."""
    failed = sum(result.status == "fail" and not result.advice for result in results)
    skipped = sum(result.status != "pass" for result in results) - failed
    counts = f'tests="{len(results)}" failures="{failed}" skipped="{skipped}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="karat" {counts}>',
    ]
    for result in results:
        run, name, said = (
            escape(clean(text)) for text in (result.run, _name(result), result.sentence)
        )
        text = escape(clean(result.sentence), quote=False)
        told = f"<system-out>{text}</system-out>"
        if result.status == "fail" and not result.advice:
            told = f'<failure message="{said}">{text}</failure>'
        elif result.status != "pass":
            told = f'<skipped message="{said}"/>'
        lines.append(f'  <testcase classname="{run}" name="{name}">')
        lines += [f"    {told}", "  </testcase>"]
    return "\n".join([*lines, "</testsuite>", ""])


def as_step_summary(results: Sequence[GateResult]) -> str:
    """The gates as a Markdown table, for GitHub's page of a run."""
    rows = [
        [one.run, _name(one), one.status + " (advice)" * one.advice, one.sentence]
        for one in results
    ]
    title = f"karat: {outcome_of(results)}"
    table = Table(["run", "gate", "status", "why"], rows, title=title, texts=range(4))
    return table.as_markdown() + "\n\n"


def annotations(results: Sequence[GateResult]) -> Iterator[str]:
    """A line per gate that did not pass, as GitHub marks them on a change."""
    for result in results:
        if result.status == "pass":
            continue
        hard = result.status == "fail" and not result.advice
        text = clean(f"{result.run}: {result.sentence}")
        for mark, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
            text = text.replace(mark, code)
        yield f"::{'error' if hard else 'warning'} title=karat::{text}"


def _name(result: GateResult) -> str:
    gate = result.gate
    what = {"mean": ">=", "low": "lower limit >=", "drop": "drop <="}[gate.kind]
    name = f"{gate.metric} {what} {gate.value:g}"
    return f"{name} [{result.slice}]" if result.slice else name
