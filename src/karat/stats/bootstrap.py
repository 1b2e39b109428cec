"""The bootstrap: how a mean would vary had other queries of the same kind been asked.

Queries are drawn with replacement, as many as there are. A draw is kept as how often
each query came up, so one matrix product gives the means of every metric at once.
Scores are first rounded to multiples of a power of two, at least 1e-11 of the largest,
with which every sum is exact: the same bytes in whatever order a machine adds.
"""

import math
from collections.abc import Iterator

import numpy as np

from karat.data.arrays import Floats, ratio
from karat.data.intervals import Interval
from karat.errors import ParameterError
from karat.stats.clusters import sample_of

DRAWS = 10_000
"""How many times queries are drawn anew by default."""

_SEED = 20_240_229
# Numbers drawn at a time: few enough to stay in the processor's cache.
_BLOCK = 100_000
_EXACT_BITS = 53
_ROUNDING = 1e-10
_SMALL = 1 << 16


def bootstrap_means(scores: Floats, *, draws: int = DRAWS, seed: int = _SEED) -> Floats:
    """The mean of each row, over queries drawn again and again.

    Args:
        scores: (queries,) or (metrics, queries), without NaN. All rows share the draws.
        draws: how many times the queries are drawn.
        seed: of the draws.

    Returns:
        (draws,) or (metrics, draws).

    Example:
        >>> means = bootstrap_means(np.array([0.0, 1.0, 1.0, 1.0]))
        >>> len(means), round(float(means.mean()), 2)
        (10000, 0.75)
    """
    rows = np.atleast_2d(scores)
    queries = rows.shape[1]
    if not queries:
        raise ParameterError("bootstrap", "queries", "1 or more", 0)
    columns = np.ascontiguousarray(_exact(rows).T)
    blocks = [times @ columns for times in _drawn(queries, draws, seed)]
    means: Floats = np.concatenate(blocks).T / queries
    return means.reshape(*scores.shape[:-1], draws)


def studentised_interval(
    values: Floats,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = _SEED,
) -> Interval | None:
    """The interval of a mean by the studentised bootstrap (bootstrap-t).

    In each draw the mean's distance from the observed one is measured in the draw's own
    standard errors; the quantiles of that take the place of Student's. It follows skew
    where t does not, and is too narrow where nearly all values are the same.

    Args:
        values: differences or scores, without NaN.
        level: the confidence.
        draws: how many times they are drawn.
        seed: of the draws.

    Returns:
        None where the values, or the draws, hardly vary: nothing can be said then.

    Example:
        >>> values = np.arange(40.0) / 40
        >>> low, high, *_ = studentised_interval(values)
        >>> round(low, 2), round(high, 2)
        (0.39, 0.58)
    """
    sample = sample_of(values)
    if sample.flat:
        return None
    centred, n = sample.residuals, sample.n
    shift, squares = bootstrap_means(
        np.array([centred, centred**2]), draws=draws, seed=seed
    )
    spread = squares - 2 * shift * shift + shift**2
    error = np.sqrt(spread.clip(0.0) / (n - 1))
    # A draw without any spread, but for rounding, lies beyond every other.
    flat = spread <= _ROUNDING * float((centred**2).max())
    distance = ratio(shift, np.where(flat, 0.0, error))
    distance[flat] = np.copysign(math.inf, shift[flat])
    tail = (1.0 - level) / 2
    # One of the draws each: between two, an infinite one would make NaN.
    below, above = np.quantile(
        distance, [tail, 1.0 - tail], method="inverted_cdf"
    ).tolist()
    if math.isinf(below) or math.isinf(above):
        return None
    scale = math.sqrt(sample.spread / (n * (n - 1)))
    low, high = sample.mean - above * scale, sample.mean - below * scale
    return Interval(low, high, level, "bootstrap")


def _drawn(queries: int, draws: int, seed: int) -> Iterator[Floats]:
    """How often each query came up in each draw, in blocks of (draws, queries)."""
    generator = np.random.Generator(np.random.PCG64(seed))
    dtype = np.uint16 if queries <= _SMALL else np.uint32
    block = max(1, _BLOCK // queries)
    for start in range(0, draws, block):
        size = min(block, draws - start)
        picked = generator.integers(0, queries, (size, queries), dtype)
        cell = picked.astype(np.int64)
        cell += (np.arange(size) * queries)[:, None]
        times = np.bincount(cell.ravel(), minlength=size * queries)
        yield times.reshape(size, queries).astype(np.float64)


def _exact(rows: Floats) -> Floats:
    """The rows, rounded so that no sum of as many numbers as a row has is rounded."""
    largest = np.abs(rows).max(axis=1)
    if not np.isfinite(largest).all():
        raise ParameterError("bootstrap", "scores", "finite", "NaN or infinite ones")
    spare = _EXACT_BITS - 1 - (rows.shape[1] - 1).bit_length()
    exponent = np.frexp(largest)[1] - spare
    whole = np.rint(np.ldexp(rows, -exponent[:, None]))
    rounded: Floats = np.ldexp(whole, exponent[:, None])
    return rounded
