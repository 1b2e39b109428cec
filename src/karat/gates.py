"""Gates: the smallest mean a build may have."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from karat.data.tables import number
from karat.errors import UsageError
from karat.metrics import read_metric
from karat.results.evaluation import Evaluation

__all__ = ["Gate", "gate_failures", "read_gate"]


class Gate(NamedTuple):
    """A metric and the value its mean must reach."""

    metric: str
    least: float


def read_gate(text: str) -> Gate:
    """A gate from `recall@5=0.8`.

    Example:
        >>> read_gate("recall@5=0.8")
        Gate(metric='recall@5', least=0.8)
    """
    # From the right: parameters of the metric may hold equals signs too.
    metric, equals, value = text.rpartition("=")
    try:
        least = float(value)
    except ValueError:
        equals = ""
    if not equals or least != least:  # noqa: PLR0124
        raise UsageError(f"--fail-under takes METRIC=VALUE, got {text!r}")
    read = read_metric(metric)
    low, high = read.bounds
    if not low <= least <= high:
        percent = low <= least / 100 <= high
        hint = f"; {least / 100:g}?" if percent else ""
        raise UsageError(
            f"--fail-under {text}: {metric} lies between {low:g} and {high:g}{hint}"
        )
    return Gate(metric if "[" in metric else str(read), least)


def gate_failures(
    gates: Sequence[Gate], evaluations: Iterable[Evaluation]
) -> list[str]:
    """A sentence per gate that a run does not pass; no score does not pass either."""
    return [
        f"{evaluation.run}: {gate.metric} is {number(evaluation[gate.metric].mean)}, "
        f"below {gate.least:g}"
        for evaluation in evaluations
        for gate in gates
        if not evaluation[gate.metric].mean >= gate.least
    ]
