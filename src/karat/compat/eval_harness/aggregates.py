"""The few numbers that stand for many scores, as the original's report has them."""

from bisect import bisect_right
from collections.abc import Sequence
from math import ceil, floor
from statistics import fmean
from typing import Any

__all__ = ["BUCKETS", "aggregate", "histogram", "mean", "pass_rate", "percentile"]

BUCKETS = 10

_PASSED = 0.5


def mean(scores: Sequence[float]) -> float:
    """The mean; 0.0 for nothing, as EvalReport shows it."""
    return fmean(scores) if scores else 0.0


def pass_rate(scores: Sequence[float]) -> float:
    """The share of scores of 0.5 and above."""
    return mean([float(score >= _PASSED) for score in scores])


def percentile(scores: Sequence[float], share: float) -> float:
    """The score that a share of them, in percent, does not exceed; interpolated.

    Example:
        >>> percentile([0.0, 0.5, 1.0, 1.0], 50)
        0.75
    """
    if not scores or not 0 <= share <= 100:  # noqa: PLR2004
        return 0.0
    ordered = sorted(scores)
    place = share / 100 * (len(ordered) - 1)
    weight = place - floor(place)
    return ordered[floor(place)] * (1 - weight) + ordered[ceil(place)] * weight


def aggregate(scores: Sequence[float]) -> dict[str, float]:
    """All of these by name."""
    return {
        "mean": mean(scores),
        "p50": percentile(scores, 50),
        "p95": percentile(scores, 95),
        "pass_rate": pass_rate(scores),
    }


def histogram(scores: Sequence[float], buckets: int = BUCKETS) -> list[dict[str, Any]]:
    """How many scores lie in each bucket; only the last one includes its maximum."""
    size = max(1, buckets)
    # EvalReport::scoreBoundary rounds edges and scores, or 0.3 would lie below 3 x 0.1.
    edges = [round(place / size, 10) for place in range(size + 1)]
    counts = [0] * size
    for score in scores:
        counts[min(bisect_right(edges, round(score, 10)), size) - 1] += 1
    return [
        {"min": low, "max": high, "count": count}
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
