"""Paired randomisation: could the difference of two means have come about by chance?

If two systems are equally good, each query's difference might as well have had the
other sign. So flip the signs at random, again and again, and count how often the mean
is as far from 0 as the one observed. It tests the mean, assumes no distribution, and
agrees closely with the t test (Smucker, Allan and Carterette, CIKM 2007).

All signs of 16 queries or fewer are tried; else 9,999 draws of them by default.
Metrics, systems and pairs of systems share one draw of signs: that is cheaper, and
keeps what they have in common, which corrections for many tests live on.

Eight queries make one look-up table of their 256 signed sums, and a byte of random bits
picks one: no matrix of signs is ever laid out, memory does not grow with the draws, and
sums are added in the same order on every machine.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Floats, Ints
from karat.errors import ParameterError
from karat.stats.clusters import cluster_totals

DRAWS = 9_999
"""How many random draws of signs a test takes by default."""
MOST_EXACT = 16
"""Up to so many queries, every combination of signs is tried."""
SEED = 20_240_229
"""The same draws every time, and so the same p."""

_BLOCK = 8_192
_BYTE = 8
# Sums that differ by less, as a part of the largest there can be, are the same sum.
_ROUNDING = 1e-12

_Bits = npt.NDArray[np.uint8]


def sign_flip(
    differences: Floats,
    *,
    clusters: Ints | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Floats:
    """P of each row: whether its mean difference could be chance, two-sided.

    It is the share of sign combinations whose mean is at least as far from 0 as the
    observed one. Of drawn combinations it is (b + 1) / (draws + 1), which is never 0.

    Args:
        differences: (queries,) or (metrics, queries), without NaN. A query that only
            some rows have is a difference of 0 in the others, which changes nothing.
        clusters: a number per query; the signs of one cluster are flipped together.
        draws: how many combinations to draw where there are too many to try all.
        seed: of the draws.

    Example:
        >>> sign_flip(np.array([0.1, 0.2, 0.1, 0.3, 0.2]))  # 2 of 32
        array(0.0625)
    """
    rows = cluster_totals(_rows("sign_flip", differences), clusters)
    observed = np.abs(rows.sum(axis=1)) - _tolerance(rows)
    extreme = np.zeros(len(rows), np.int64)
    for sums in signed_sums(rows, draws=draws, seed=seed):
        extreme += (np.abs(sums) >= observed).sum(axis=0)
    return _chance(extreme, rows.shape[1], draws).reshape(differences.shape[:-1])


def sign_flip_pairs(
    scores: Floats,
    *,
    clusters: Ints | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Floats:
    """Test every pair of systems, at the cost of testing each system once.

    The signed sum of a difference is the difference of two signed sums, so p equals
    what `sign_flip` gives for each pair.

    Args:
        scores: (systems, queries), without NaN.
        clusters: as for `sign_flip`.
        draws: as for `sign_flip`.
        seed: as for `sign_flip`.

    Returns:
        p as a symmetric matrix (systems, systems), 1 on the diagonal.

    Example:
        >>> scores = np.array([[0.1, 0.2, 0.4], [0.2, 0.3, 0.5], [0.1, 0.2, 0.4]])
        >>> sign_flip_pairs(scores)[0]
        array([1.  , 0.25, 1.  ])
    """
    rows = _rows("sign_flip_pairs", scores)
    # What all systems have in common cancels out; without it less is lost to rounding.
    rows = cluster_totals(rows - rows.mean(axis=0), clusters)
    systems = len(rows)
    totals = rows.sum(axis=1)
    extreme = np.zeros((systems, systems), np.int64)
    observed = np.abs(totals[:, None] - totals)
    for one in range(systems):
        observed[one] -= _tolerance(rows[one] - rows)
    for sums in signed_sums(rows, draws=draws, seed=seed):
        # Systems by draws, so that what is compared lies side by side.
        by_system = np.ascontiguousarray(sums.T)
        for one in range(1, systems):
            apart = np.abs(by_system[one] - by_system[:one])
            extreme[one, :one] += (apart >= observed[one, :one, None]).sum(axis=1)
    extreme += extreme.T
    found = _chance(extreme, rows.shape[1], draws)
    np.fill_diagonal(found, 1.0)
    return found


def signed_sums(
    rows: Floats, *, draws: int = DRAWS, seed: int = SEED
) -> Iterator[Floats]:
    """The sums of rows under one combination of signs after another, in blocks.

    All combinations for 16 columns or fewer, up to the sign of the whole, which no
    two-sided test can see; else `draws` random ones. Every row has the same signs.

    Args:
        rows: (rows, columns).
        draws: how many random combinations.
        seed: of the draws.

    Yields:
        Arrays (combinations, rows).

    Example:
        >>> [sums.tolist() for sums in signed_sums(np.array([[1.0, 2.0]]))]
        [[[-3.0], [-1.0]]]
    """
    if draws < 1:
        raise ParameterError("sign_flip", "draws", "1 or more", draws)
    columns = np.ascontiguousarray(rows.T)
    for bits in _sign_bits(len(columns), draws, seed):
        sums = np.zeros((bits.shape[1], len(rows)))
        part = np.empty_like(sums)
        for place, picked in enumerate(bits):
            table = _signed_table(columns[place * _BYTE : (place + 1) * _BYTE])
            # "clip" is only faster: there are no bits beyond the table's.
            np.take(table, picked, axis=0, out=part, mode="clip")
            sums += part
        yield sums


def smallest_p(queries: int, draws: int = DRAWS) -> float:
    """The smallest p that a sign-flip test of so many queries can give.

    Below 6 queries it is above 0.05: whatever the difference, the test cannot see it.

    Example:
        >>> smallest_p(5), smallest_p(6), smallest_p(100)
        (0.0625, 0.03125, 0.0001)
    """
    if queries <= MOST_EXACT:
        return min(1.0, 2.0 ** (1 - queries))
    return 1.0 / (draws + 1)


def _rows(owner: str, values: Floats) -> Floats:
    """The values as rows of queries, checked."""
    rows = np.atleast_2d(values)
    if not rows.shape[1]:
        raise ParameterError(owner, "queries", "1 or more", 0)
    if not np.isfinite(rows).all():
        raise ParameterError(owner, "scores", "finite", "NaN or infinite ones")
    return rows


def _tolerance(rows: Floats) -> Floats:
    """By how much a sum of each row may be off for rounding."""
    size: Floats = _ROUNDING * np.abs(rows).sum(axis=1)
    return size


def _chance(extreme: Ints, units: int, draws: int) -> Floats:
    if units <= MOST_EXACT:
        return extreme / (1 << (units - 1))
    return (extreme + 1) / (draws + 1)


def _sign_bits(units: int, draws: int, seed: int) -> Iterator[_Bits]:
    """Bits that choose signs, in blocks (bytes, combinations); a byte has 8 units."""
    if units <= MOST_EXACT:
        every = np.arange(1 << (units - 1), dtype="<u2")
        yield every.view(np.uint8).reshape(-1, 2).T[: -(-units // _BYTE)]
        return
    generator = np.random.PCG64(seed)
    words = -(-units // 64)
    for start in range(0, draws, _BLOCK):
        # Whole words of 64 bits for each draw: the block's size changes nothing.
        block = min(_BLOCK, draws - start)
        raw = generator.random_raw(block * words).astype("<u8", copy=False)
        bits = raw.reshape(block, words).view(np.uint8)
        yield np.ascontiguousarray(bits.T[: -(-units // _BYTE)])


def _signed_table(columns: Floats) -> Floats:
    """Every signed sum of eight columns or fewer; bit i set: column i counts plus."""
    table = np.zeros((1 << _BYTE, columns.shape[1]))
    for place, column in enumerate(columns):
        size = 1 << place
        np.add(table[:size], column, out=table[size : 2 * size])
        table[:size] -= column
    # Bits beyond the last column say nothing.
    filled = 1 << len(columns)
    for start in range(filled, 1 << _BYTE, filled):
        table[start : start + filled] = table[:filled]
    return table
