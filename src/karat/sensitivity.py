"""Sensitivity: whether the order of systems hangs on how much is enough."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from karat.evaluation import evaluate
from karat.matching.coverage.matcher import Span
from karat.results.evaluation import Evaluation

__all__ = ["TAUS", "order_flips"]

TAUS = (0.7, 0.8, 0.9, 1.0)
"""The shares of a passage at which systems are put in order again."""


def order_flips(
    runs: Mapping[str, Any], evaluations: Sequence[Evaluation], **options: Any
) -> list[str]:
    """A sentence per metric and pair of systems whose order changes with tau.

    Args:
        runs: what each system retrieved, by its name.
        evaluations: what they scored; metrics matched by `span` are looked at.
        options: the options of `evaluate` that they were scored with.
    """
    first = evaluations[0]
    metrics = [
        label
        for label, matcher in first.matchers.items()
        if matcher.startswith(Span.name) and "[" not in label and "gain" not in matcher
    ]
    if not metrics or len(runs) < 2:  # noqa: PLR2004
        return []
    scored = [
        {
            name: evaluate(
                run, **{**options, "metrics": metrics, "match": Span(tau=tau)}
            ).means
            for name, run in runs.items()
        }
        for tau in TAUS
    ]
    return [
        f"the order of {one} and {other} by {metric} flips between tau = "
        f"{TAUS[0]:g} and {TAUS[-1]:g}: how much of a passage is enough decides it"
        for metric in metrics
        for one, other in combinations(runs, 2)
        if _flips([means[one][metric] - means[other][metric] for means in scored])
    ]


def _flips(differences: Sequence[float]) -> bool:
    """Whether one is better here and the other there."""
    known = np.array(differences)
    return bool((known > 0).any() and (known < 0).any())
