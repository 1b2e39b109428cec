"""Quantiles and tails of the normal and of Student's t, without SciPy.

All agree with SciPy to 1e-10 (tests/stats/test_distributions.py).
"""

import math
from functools import lru_cache

_HALF = 0.5
_ROUNDS = 300
# Newton's error is squared by every step: one of this size leaves nothing to correct.
_LAST_STEP = 1e-9
_FRACTION_STEP = 1e-15
# From here on an expansion in 1/df is exact to 1e-11; the integral loses digits.
_LARGE = 1000.0


def normal_quantile(probability: float) -> float:
    """The point below which a standard normal number falls with this probability."""
    tail = min(probability, 1.0 - probability)
    return math.copysign(_normal_upper(tail), probability - _HALF)


@lru_cache(maxsize=1024)
def t_quantile(probability: float, df: float) -> float:
    """The point below which Student's t falls with this probability."""
    tail = min(probability, 1.0 - probability)
    if tail == _HALF:
        return 0.0
    size = _t_upper_expanded(tail, df) if df >= _LARGE else _t_upper(tail, df)
    return math.copysign(size, probability - _HALF)


def normal_below(z: float) -> float:
    """How likely a standard normal number is to fall below this one."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def t_below(t: float, df: float) -> float:
    """How likely Student's t is to fall below this number."""
    if t == 0 or not math.isfinite(t):
        return min(max(_HALF + t, 0.0), 1.0)
    square = t * t / df
    if df >= _LARGE:
        beyond = normal_below(-_normal_of_t(square, df))
    else:
        beyond = _HALF * _incomplete_beta(df / 2, 0.5, square)
    return beyond if t < 0 else 1.0 - beyond


def _normal_of_t(square: float, df: float) -> float:
    """The normal number as far out as t, given t * t / df (Hill, algorithm 395)."""
    middle = df - 0.5
    b = 48.0 * middle * middle
    y = middle * math.log1p(square)
    part = (((-0.4 * y - 3.3) * y - 24.0) * y - 85.5) / (0.8 * y * y + 100.0 + b)
    return ((part + y + 3.0) / b + 1.0) * math.sqrt(y)


def _normal_upper(tail: float) -> float:
    """Solve P(Z > z) = tail by Newton steps on the logarithm of the tail.

    The logarithm is concave and the start lies beyond the root: no step overshoots.
    """
    z = math.sqrt(-2.0 * math.log(2.0 * tail))
    for _ in range(_ROUNDS):
        beyond = 0.5 * math.erfc(z / math.sqrt(2.0))
        density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        step = math.log(beyond / tail) * beyond / density
        z += step
        if abs(step) < _LAST_STEP:
            break
    return z


def _t_upper(tail: float, df: float) -> float:
    """Solve P(T > t) = tail by Newton steps of log tail over log t.

    That curve is concave, and far out a line of slope -df, however heavy the tail.
    """
    log_t = math.log(_normal_upper(tail))
    norm = math.lgamma(df / 2 + 0.5) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    for _ in range(_ROUNDS):
        square = math.exp(2.0 * log_t) / df
        beyond = 0.5 * _incomplete_beta(df / 2, 0.5, square)
        log_density = norm - (df + 1) / 2 * math.log1p(square) + log_t
        step = math.log(beyond / tail) * beyond / math.exp(log_density)
        log_t += step
        if abs(step) < _LAST_STEP:
            break
    return math.exp(log_t)


def _t_upper_expanded(tail: float, df: float) -> float:
    """The quantile of t from the normal one, as a series in 1/df (Fisher, Cornish)."""
    z = _normal_upper(tail)
    s = z * z
    terms = (
        (s + 1) / 4,
        ((5 * s + 16) * s + 3) / 96,
        (((3 * s + 19) * s + 17) * s - 15) / 384,
        ((((79 * s + 776) * s + 1482) * s - 1920) * s - 945) / 92160,
    )
    return z * (1.0 + sum(term / df**power for power, term in enumerate(terms, 1)))


def _incomplete_beta(a: float, b: float, odds: float) -> float:
    """The regularised incomplete beta function at x = 1 / (1 + odds).

    Taking the odds (1 - x) / x keeps its digits where x is next to 1.
    """
    if odds * (a + 1) < b + 1:
        return 1.0 - _incomplete_beta(b, a, 1.0 / odds)
    log_x = -math.log1p(odds)
    log_rest = math.log(odds) + log_x
    front = a * log_x + b * log_rest - math.log(a)
    front += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(front) * _beta_fraction(a, b, math.exp(log_x))


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    value = above = 1.0
    below = 0.0
    for step in range(1, _ROUNDS):
        m = step // 2
        part = -(a + m) * (a + b + m) if step % 2 else m * (b - m)
        part *= x / ((a + step - 1) * (a + step))
        below = 1.0 / (1.0 + part * below)
        above = 1.0 + part / above
        value *= above * below
        if abs(above * below - 1.0) < _FRACTION_STEP:
            break
    return 1.0 / value
