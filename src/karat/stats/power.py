"""How many queries it takes: what a comparison could see, and what would settle it.

The power of the paired t test, exactly, from the noncentral t distribution: the chance
to find a difference that is there. Fifty queries whose differences vary by 0.2 cannot
see less than 0.08 of nDCG, four times out of five.
"""

import math
from functools import lru_cache

import numpy as np

from karat.data.arrays import Floats
from karat.stats.distributions import normal_below, normal_quantile, t_quantile

_POWER = 0.8
_LEVEL = 0.95
_NODES = 128
# Beyond so many standard deviations the chi distribution holds nothing any more.
_WIDE = 9.0
# With so many queries the t test is the normal one, to ten digits of the power.
_ENDLESS = 10_000_000
_CLOSE = 1e-12
_ROUNDS = 60


def power_of(
    difference: float, sd: float, queries: int, *, level: float = _LEVEL
) -> float:
    """The chance that a two-sided paired t test finds a difference that is there.

    Args:
        difference: the true mean difference.
        sd: standard deviation of the differences between queries.
        queries: number of queries; below 2 nothing is found.
        level: 1 less the largest p that counts as found.

    Example:
        >>> round(power_of(0.05, 0.2, 126), 3)
        0.795
    """
    if queries < 2:  # noqa: PLR2004
        return 0.0
    if sd == 0:
        return 1.0 if difference else 0.0
    return _power(abs(difference) / sd, queries, level)


def minimum_detectable_effect(
    queries: int, sd: float, *, power: float = _POWER, level: float = _LEVEL
) -> float:
    """The smallest mean difference that so many queries would show.

    Args:
        queries: number of queries; infinitely large below 2.
        sd: standard deviation of the differences between queries.
        power: how often it is to be found.
        level: 1 less the largest p that counts as found.

    Example:
        >>> round(minimum_detectable_effect(50, 0.2), 4)
        0.0808
    """
    if queries < 2:  # noqa: PLR2004
        return math.inf
    return sd * _detectable(queries, power, level)


def queries_needed(
    difference: float,
    sd: float,
    *,
    power: float = _POWER,
    level: float = _LEVEL,
) -> float:
    """How many queries would settle a difference of this size.

    Args:
        difference: the mean difference; its sign does not matter.
        sd: standard deviation of the differences between queries.
        power: how often it is to be found.
        level: 1 less the largest p that counts as found.

    Returns:
        A whole number; infinite for no difference at all.

    Example:
        >>> queries_needed(0.05, 0.2), queries_needed(-0.02, 0.2)
        (128.0, 787.0)
    """
    if difference == 0:
        return math.inf
    effect = abs(difference) / sd if sd else math.inf
    normal = normal_quantile(0.5 + level / 2) + normal_quantile(power)
    enough = max(2, math.ceil((normal / effect) ** 2))
    if enough < _ENDLESS:
        # The normal test takes about as many as the t test; a step or two to go.
        while enough > 2 and _power(effect, enough - 1, level) >= power:  # noqa: PLR2004
            enough -= 1
        while _power(effect, enough, level) < power:
            enough += 1
    return float(enough)


@lru_cache(maxsize=1024)
def _detectable(queries: int, power: float, level: float) -> float:
    """The smallest difference found with this power, in standard deviations."""
    df = queries - 1
    effect = t_quantile(0.5 + level / 2, df) + t_quantile(max(power, 0.5), df)
    low, high = 0.0, effect / math.sqrt(queries)
    while _power(high, queries, level) < power:
        high *= 2.0
    for _ in range(_ROUNDS):
        middle = (low + high) / 2.0
        below = _power(middle, queries, level) < power
        low, high = (middle, high) if below else (low, middle)
        if high - low < _CLOSE * high:
            break
    return high


def _power(effect: float, queries: int, level: float) -> float:
    """Power for an effect in standard deviations: the noncentral t's two tails.

    Given the standard deviation that a sample happens to have, its mean is normal; what
    is left is an integral over the chi distribution of the former.
    """
    ratios, weights = _chi_nodes(queries)
    shift = effect * math.sqrt(queries)
    limits = (t_quantile(0.5 + level / 2, queries - 1) * ratios).tolist()
    found = [normal_below(shift - c) + normal_below(-shift - c) for c in limits]
    return float(weights @ found)


@lru_cache(maxsize=256)
def _chi_nodes(queries: int) -> tuple[Floats, Floats]:
    """Sample by true standard deviation: values to integrate over, with weights."""
    df = queries - 1
    nodes, weights = _gauss_legendre()
    spread = _WIDE / math.sqrt(2.0 * df)
    low, high = max(0.0, 1.0 - spread), 1.0 + spread
    part = (nodes + 1.0) / 2.0
    if low == 0.0:
        # Of few queries most of the power lies next to 0: more values there.
        weights, part = weights * part**3, part**4
    ratios = low + (high - low) * part
    density = (df - 1) * np.log(ratios) - df * (ratios**2 - 1.0) / 2.0
    weights = weights * np.exp(density - density.max())
    # Divided by their sum, the constant of the density is not needed.
    return ratios, weights / weights.sum()


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights
