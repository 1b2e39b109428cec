"""McNemar's exact test of two systems, and the interval of their difference.

Of two systems with 0/1 scores on the same queries, hit or miss, complete or not, only
the queries that one got right and the other did not can tell them apart, and their
number is all that the test and the interval need.
"""

import math
from collections.abc import Callable

import numpy as np

from karat.data.arrays import Floats
from karat.data.intervals import Interval
from karat.errors import ParameterError
from karat.stats.distributions import even_binomial_tail, normal_quantile

# Halvings of an interval of length 2 that leave nothing to halve.
_HALVINGS = 55


def mcnemar(differences: Floats) -> float:
    """P of McNemar's exact test: of the queries that differ, do as many win as lose?

    Args:
        differences: of scores that are 0 or 1.

    Raises:
        ParameterError: a difference that is none of -1, 0, 1.

    Example:
        >>> mcnemar(np.repeat([1.0, -1.0, 0.0], [6, 1, 13]))
        0.125
    """
    gained, lost = _discordant(differences)
    below = even_binomial_tail(min(gained, lost), gained + lost)
    return min(1.0, 2.0 * below)


def score_interval(differences: Floats, level: float = 0.95) -> Interval:
    """Tango's interval of a paired difference of proportions (1998).

    It holds the differences that a score test does not reject, and needs no more than
    how many queries only one of the two got right.

    Args:
        differences: at least one, each -1, 0 or 1.
        level: the confidence.

    Raises:
        ParameterError: a difference that is none of these.

    Example:
        >>> low, high, *_ = score_interval(np.zeros(30))
        >>> round(low, 3), round(high, 3)
        (-0.114, 0.114)
    """
    gained, lost = _discordant(differences)
    z, n = normal_quantile(0.5 + level / 2), len(differences)

    def upper(gained: int, lost: int) -> float:
        if gained == n:
            return 1.0

        def excess(difference: float) -> float:
            """By how much the test that rejects larger ones is exceeded."""
            linear = (2 * n - gained + lost) * difference - gained - lost
            rest = lost * difference * (1.0 - difference)
            chance = (math.sqrt(linear**2 + 8 * n * rest) - linear) / (4 * n)
            variance = n * (2 * chance + difference * (1.0 - difference))
            distance = n * difference - gained + lost
            return distance - z * math.sqrt(max(variance, 0.0))

        return _crossing(excess, (gained - lost) / n)

    low, high = -upper(lost, gained), upper(gained, lost)
    return Interval(low, high, level, "score")


def _crossing(function: Callable[[float], float], low: float) -> float:
    """Where a function that rises from `low` to 1 crosses 0, by halving."""
    high = 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if function(middle) <= 0.0 else (low, middle)
    return high


def _discordant(differences: Floats) -> tuple[int, int]:
    """On how many queries only the candidate, and only the baseline, was right."""
    gained, lost = (
        np.count_nonzero(differences == 1),
        np.count_nonzero(differences == -1),
    )
    others = differences[(np.abs(differences) != 1) & (differences != 0)]
    if len(others):
        must_be = "-1, 0 or 1, as differences of 0/1 scores are"
        raise ParameterError("binary test", "differences", must_be, float(others[0]))
    return int(gained), int(lost)
