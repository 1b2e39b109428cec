"""The bootstrap: how a mean would vary had other queries of the same kind been asked.

Queries are drawn with replacement, as many as there are. A draw is kept as how often
each query came up, so one matrix product gives the means of every metric at once.
Scores are first rounded to multiples of a power of two, at least 1e-11 of the largest,
with which every sum is exact: the same bytes in whatever order a machine adds.
"""

from collections.abc import Iterator

import numpy as np

from karat.data.arrays import Floats
from karat.errors import ParameterError

DRAWS = 10_000
"""How many times queries are drawn anew by default."""

_SEED = 20_240_229
# Numbers drawn at a time: few enough to stay in the processor's cache.
_BLOCK = 100_000
_EXACT_BITS = 53
_SMALL = 1 << 16


def bootstrap_means(scores: Floats, *, draws: int = DRAWS, seed: int = _SEED) -> Floats:
    """The means over queries drawn again and again: (metrics, draws), or of one row."""
    rows = np.atleast_2d(scores)
    queries = rows.shape[1]
    if not queries:
        raise ParameterError("bootstrap", "queries", "1 or more", 0)
    columns = np.ascontiguousarray(_exact(rows).T)
    blocks = [times @ columns for times in _drawn(queries, draws, seed)]
    means: Floats = np.concatenate(blocks).T / queries
    return means.reshape(*scores.shape[:-1], draws)


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
