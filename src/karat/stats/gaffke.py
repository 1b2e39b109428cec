"""Gaffke's bound: limits of the mean of bounded scores, few or skewed as they may be.

Give every score, and one more at the bound, a weight from a Dirichlet(1, ..., 1)
distribution: the limit is the quantile of the weighted mean. On scores of 0 or 1 it is
the Clopper-Pearson limit. It never has zero width, does not depend on the order of the
scores, and is solved here without random numbers. Its coverage is proven in special
cases and no counterexample is known (Gaffke 2005; Learned-Miller and Thomas, arXiv
1905.06208).
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from karat.data.arrays import Floats, sum_by
from karat.stats.distributions import normal_quantile

__all__ = ["gaffke_limits"]

_CLOSE = 1e-9
_ROUNDS = 100


def gaffke_limits(scores: Floats, weights: Floats, level: float) -> tuple[float, float]:
    """Between which limits the mean lies, where every score is from 0 to 1.

    Args:
        scores: at least one.
        weights: how many scores each stands for; need not be whole.
        level: the confidence of both limits together, at least 0.5.

    >>> low, high = gaffke_limits(np.ones(3), np.ones(3), 0.95)
    >>> round(low, 2), high  # Clopper-Pearson: 0.29
    (0.29, 1.0)
    """
    scores, where = np.unique(scores, return_inverse=True)
    weights = sum_by(where, weights, len(scores))
    z = normal_quantile(0.5 + level / 2)
    return _gap(scores, weights, z), 1.0 - _gap(1.0 - scores, weights, z)


def _gap(distances: Floats, weights: Floats, z: float) -> float:
    """How far Gaffke's limit stays from the bound that the scores are so distant from.

    The one more score at the bound has distance 0 and weight 1. The equation between
    tail and limit is solved in the odds of an exponential tilt towards the bound, where
    both are explicit.
    """
    if distances.max() < _CLOSE:
        return 0.0
    distances, weights = np.append(distances, 0.0), np.append(weights, 1.0)
    centred = distances - np.average(distances, weights=weights)
    odds = z / math.sqrt(float(weights @ centred**2))
    tilt = partial(_tilt, distances, weights)
    root = _rising_root(lambda at: tilt(math.exp(at))[0] - z, math.log(odds))
    return tilt(math.exp(root))[1]


def _tilt(distances: Floats, weights: Floats, odds: float) -> tuple[float, float]:
    """The normal quantile of a tail of the weighted mean distance, and where it begins.

    Weights that are Gamma numbers make P(mean < limit) the tail of a sum of them at 0;
    its saddlepoint approximation (Barndorff-Nielsen's r*) moves the limit by less than
    0.005 of the range for two scores and 0.001 for thirty.
    """
    tilted = 1.0 + odds * distances
    scale = float(weights.sum()) / float((weights / tilted).sum())
    tilted /= scale
    root = math.sqrt(2.0 * float(weights @ np.log(tilted)))
    slope = math.sqrt(float(weights @ (1.0 / tilted - 1.0) ** 2))
    return root + math.log(slope / root) / root, (scale - 1.0) / odds


def _rising_root(function: Callable[[float], float], start: float) -> float:
    """Where a rising function crosses 0: bracketed by unit steps, then regula falsi."""
    one = other = (start, function(start))
    while one[1] > 0.0:
        one, other = (one[0] - 1.0, function(one[0] - 1.0)), one
    while other[1] < 0.0:
        one, other = other, (other[0] + 1.0, function(other[0] + 1.0))
    for _ in range(_ROUNDS):
        x = other[0] - other[1] * (other[0] - one[0]) / (other[1] - one[1])
        y = function(x)
        if abs(y) < _CLOSE:
            return x
        # Illinois: an end that stays twice counts half, or the other would creep.
        one = other if y * other[1] < 0.0 else (one[0], one[1] / 2.0)
        other = (x, y)
    return other[0]
