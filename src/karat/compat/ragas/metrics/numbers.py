"""From hits and verdicts to ragas' numbers, by karat's formulas."""

from collections.abc import Sequence

import numpy as np

from karat.compat.literal import found_ids
from karat.data.hits import Hits
from karat.metrics import Metric
from karat.metrics.precision_recall import Recall
from karat.metrics.ranking import ContextPrecision

__all__ = ["averaged_precision", "score_of", "share_attributed", "verdict_precision"]

# ragas adds it to the number of relevant contexts, so that 1.0 becomes 0.9999999999.
_EPSILON = 1e-10


def score_of(metric: Metric, hits: Hits) -> float:
    """The score of the only query."""
    return float(metric.score(hits)[0])


def averaged_precision(hits: Hits) -> float:
    """The `context_precision` of karat with ragas' denominator; 0.0 without any hit."""
    matched = len(hits.positions()[0])
    if not matched:
        return 0.0
    return score_of(ContextPrecision(), hits) * matched / (matched + _EPSILON)


def share_attributed(values: Sequence[int]) -> float:
    """The `recall` of karat over claims, those attributed being found."""
    found = [claim for claim, value in enumerate(values) if value]
    return score_of(Recall(), found_ids([range(len(values))], [found]))


def verdict_precision(values: Sequence[int]) -> float:
    """The averaged precision of contexts of which the judge found some useful."""
    if not set(values) <= {0, 1}:
        return _unchecked(values)
    # Every useful context matches the answer, the only thing there is to find.
    return averaged_precision(found_ids([[1]], [values]))


def _unchecked(values: Sequence[int]) -> float:
    # collections/context_precision/metric.py lets any integer weigh: 2 scores 1.99.
    weights = np.array(values, np.float64)
    precision = weights.cumsum() / np.arange(1, len(values) + 1)
    return float(weights @ precision / (weights.sum() + _EPSILON))
