"""Gates: what a build must reach, and what counts as a failure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, NamedTuple

from karat.comparison.differences import Pairing, left_out, measure, p_equals, pair_up
from karat.data.tables import counted, number
from karat.errors import MismatchError, UsageError
from karat.metrics import read_metric
from karat.results.evaluation import UNTAGGED, Evaluation, tagged
from karat.stats.sign_flip import flipped

Kind = Literal["mean", "low", "drop", "failures"]
Status = Literal["pass", "fail", "inconclusive"]

_ALPHA = 0.05
# Means that differ by less are one mean, added up in another order.
_ROUNDING = 1e-9
# So many of the queries that lost are named.
_NAMED = 5
KINDS: dict[Kind, str] = {
    "mean": "fail_under",
    "low": "fail_under_low",
    "drop": "max_drop",
}
"""What a gate on a metric may be about, and what commands and suites call it."""

_OPTIONS = {kind: f"--{name.replace('_', '-')}" for kind, name in KINDS.items()}


class Gate(NamedTuple):
    """What a metric must reach.

    The value is the smallest mean, the smallest lower limit of its interval (`low`),
    the largest change for the worse from the baseline (`drop`), or the most queries
    that may fail (`failures`).
    """

    metric: str
    value: float
    kind: Kind = "mean"

    def __str__(self) -> str:
        what = {"mean": ">=", "low": "lower limit >=", "drop": "drop <="}
        return f"{self.metric} {what.get(self.kind, '<=')} {self.value:g}"


@dataclass(frozen=True)
class GateResult:
    """What came of one gate for one run, on all queries or those of a tag (`slice`).

    Queries that could not be compared with the baseline are `left_out`.
    """

    gate: Gate
    run: str
    status: Status
    sentence: str
    slice: str = ""
    left_out: str = ""


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
    if not equals or metric.endswith(("<", ">")) or least != least:  # noqa: PLR0124
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
    allow_noise: bool = False,
    require_noninferior: bool = False,
    by_tag: bool = False,
    force: bool = False,
    cluster: str | None = None,
) -> list[GateResult]:
    """What came of each gate for each run; no score does not pass either.

    A gate on a drop fails when the mean over the common queries dropped by more than
    its value; one that may be chance (p > 0.05) is inconclusive if noise is allowed.
    With tags, and so many tests, less is beyond chance. Where a model judged and nobody
    has measured how far it agrees with people, what would fail is inconclusive.
    """
    results = []
    for evaluation in evaluations:
        for gate in gates:
            if gate.metric not in evaluation:
                raise UsageError(
                    f"{_OPTIONS[gate.kind]} {gate.metric}: {evaluation.run} was scored "
                    f"by {', '.join(evaluation)}"
                )
            checked: dict[str, tuple[Status, str]] = {}
            apart = ""
            if gate.kind != "drop":
                checked[""] = _level(gate, evaluation)
            else:
                old = _baseline(gate, baseline)
                try:
                    pairing = pair_up(old, evaluation, force=force, cluster=cluster)
                except MismatchError as error:
                    why = str(error)
                    results.append(
                        GateResult(gate, evaluation.run, "inconclusive", why)
                    )
                    continue
                queries = pairing.added, pairing.removed, pairing.relabelled
                apart = "; ".join(left_out(*queries))
                common = pairing.queries
                slices = tagged(evaluation, old, queries=common) if by_tag else {}
                slices.pop(UNTAGGED, None)
                if by_tag and not slices:
                    raise UsageError(
                        "--gate-tags: no query has a tag; --queries FILE adds them"
                    )
                alpha = _ALPHA / (1 + len(slices))
                how = {"noise": allow_noise, "proof": require_noninferior}
                for tag, rows in {"": None, **slices}.items():
                    checked[tag] = _drop(gate, pairing, rows, alpha=alpha, **how)
            label = evaluation[gate.metric].metric
            matches = evaluation.matches.get(evaluation.matchers.get(label, ""))
            judged = matches is not None and bool(matches.verdicts)
            advice = judged and "agreement" not in evaluation.provenance
            for tag, (status, sentence) in checked.items():
                why = f"{tag}: {sentence}" if tag else sentence
                if status == "fail" and advice:
                    status = "inconclusive"  # noqa: PLW2901
                    why += "; advice only: a model judged, and is not calibrated"
                said = "" if tag else apart
                results.append(GateResult(gate, evaluation.run, status, why, tag, said))
    return results


def check_failures(
    evaluations: Iterable[Evaluation], most: int = 0
) -> list[GateResult]:
    """A failed gate for each run with failed queries, if they are more than may be."""
    failed = {one.run: pairs for one in evaluations if (pairs := failed_queries(one))}
    if sum(map(len, failed.values())) <= most:
        return []
    gate = Gate("failed queries", most, "failures")
    results = []
    for run, pairs in failed.items():
        query, why = pairs[0]
        why = f"{counted(len(pairs), 'query')} failed, {query!r} for one: {why}"
        results.append(GateResult(gate, run, "fail", why))
    return results


def failed_queries(evaluation: Evaluation) -> list[tuple[str, str]]:
    """The queries that could not be scored, or only in part, each with the reason."""
    most: Mapping[int, str] = {}
    for column in evaluation.columns.values():
        most = max(most, column.failures, key=len)
    failed = dict(most)
    for matches in evaluation.matches.values():
        for place, row in matches.verdicts.items():
            why = next(filter(None, map(attrgetter("failure"), row)), None)
            if why is not None and place not in most:
                failed[place] = f"in part: {why}"
    return [(evaluation.queries[place], why) for place, why in failed.items()]


def outcome_of(results: Iterable[GateResult]) -> Status:
    """The outcome of all gates: a failure outranks what is inconclusive."""
    statuses = {*map(attrgetter("status"), results)}
    if "fail" in statuses:
        return "fail"
    return "inconclusive" if "inconclusive" in statuses else "pass"


def _level(gate: Gate, evaluation: Evaluation) -> tuple[Status, str]:
    column = evaluation[gate.metric]
    value, what, name = column.mean, "is", "value"
    if gate.kind == "low":
        value = float("nan") if column.interval is None else column.interval.low
        what, name = "has a lower limit of", "lower limit"
    if math.isnan(value):
        return "fail", f"{gate.metric} has no {name}"
    passed = value >= gate.value - _ROUNDING
    relation = "not below" if passed else "below"
    return (
        "pass" if passed else "fail",
        f"{gate.metric} {what} {number(value)}, {relation} {gate.value:g}",
    )


def _baseline(gate: Gate, baseline: Evaluation | None) -> Evaluation:
    if baseline is None:
        raise UsageError(
            f"--max-drop {gate.metric} needs a baseline: --baseline FILE, or "
            "karat baseline set FILE"
        )
    if gate.metric not in baseline:
        raise UsageError(
            f"--max-drop {gate.metric}: the baseline was scored by "
            f"{', '.join(baseline)}"
        )
    return baseline


def _drop(
    gate: Gate,
    pairing: Pairing,
    rows: Sequence[int] | None,
    *,
    alpha: float,
    noise: bool,
    proof: bool,
) -> tuple[Status, str]:
    """Whether a drop on these queries, or on all, is as small as it must be."""
    metric = gate.metric
    # The signs that a comparison draws, so that both say the same p.
    values, known = pairing.differences([metric])
    flips = flipped(values, known=known, clusters=pairing.clusters)
    own = flips[0] if rows is None else None
    difference = measure(pairing, metric, rows, flips=own)
    if not difference.n:
        return "inconclusive", f"{metric}: no query in common has a score"
    queries = counted(difference.n, "query")
    less_is_better = difference.higher_is_better is False
    sign = -1 if less_is_better else 1
    verb = "rose" if difference.difference > 0 else "dropped"
    said = f"{metric} {verb} by {abs(difference.difference):.4f} on {queries}"
    if abs(difference.difference) <= _ROUNDING:
        said = f"{metric} has the same mean on {queries}"
    where = ""
    if not difference.wins and not difference.losses:
        where = " on other queries"
        said = f"{metric} has the same score on each of {queries}"
    if -sign * difference.difference > gate.value + _ROUNDING:
        may_be_chance = not difference.p <= alpha
        chance = "it may be chance" if may_be_chance else "beyond chance"
        lost = _lost(metric, pairing, rows, sign)
        said += (
            f", more than {gate.value:g}: {chance} ({p_equals(difference.p)}); {lost}"
        )
        passes = noise and not proof and may_be_chance
        return "inconclusive" if passes else "fail", said
    if proof:
        low, high = difference.interval or (-math.inf, math.inf)
        worse, most = ("rise", high) if less_is_better else ("drop", -low)
        if most > gate.value:
            said += f"; a {worse} of more than {gate.value:g}{where} is not ruled out"
            return "fail", f"{said} (95% interval {low:+.4f} to {high:+.4f})"
    return "pass", said


def _lost(metric: str, pairing: Pairing, rows: Sequence[int] | None, sign: int) -> str:
    """The queries that lost, those that lost most first."""
    changes = pairing.differences([metric])[0][0].tolist()
    places = range(len(changes)) if rows is None else rows
    lost = sorted((sign * changes[n], n) for n in places if sign * changes[n] < 0)
    shown = [f"{pairing.queries[n]} {changes[n]:+.4f}" for _, n in lost[:_NAMED]]
    more = [f"{len(lost) - _NAMED} more"] if len(lost) > _NAMED else []
    return f"{counted(len(lost), 'query')} lost: {', '.join([*shown, *more])}"
