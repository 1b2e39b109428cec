"""Rank correlation: whether two scorings put the same systems in the same order.

Two metrics, two sets of labels or two samples of queries each order the systems by
their means. Kendall's tau counts the pairs of systems that both order alike; tau_AP
does so from the top down, so that a swap of the best two counts more than one of the
last two (Yilmaz, Aslam and Robertson, SIGIR 2008); rank-biased overlap asks how much
their tops have in common (Webber, Moffat and Zobel, TOIS 2010).
"""

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

from karat.data.arrays import Floats, ratio
from karat.data.intervals import Interval
from karat.errors import ParameterError
from karat.stats.intervals import Figure

_DRAWS = 2_000
_SEED = 20_240_229
# Pairs of systems compared at a time, over as many draws as fit.
_BLOCK = 4_000_000
# Numbers drawn at a time: few enough to stay in the processor's cache.
_DRAWN = 100_000
_EXACT_BITS = 53
_SMALL = 1 << 16


def kendall_taus(one: Floats, other: Floats) -> Floats:
    """How alike two scorings order the systems (last axis): Kendall's tau-b."""
    first, second = _signs(one), _signs(other)
    agreeing = (first * second).sum(axis=(-2, -1))
    ordered = [np.abs(signs).sum(axis=(-2, -1)) for signs in (first, second)]
    return ratio(agreeing, np.sqrt(ordered[0] * ordered[1]))


def tau_ap(reference: Floats, other: Floats) -> Floats:
    """How alike two scorings order the systems, mistakes at the top counting most.

    For each system but the first of the other scoring, the share of systems above it
    that the reference has above it too, less the share that it has below; the mean of
    these. It is not symmetric. Systems with equal scores are taken in every order, and
    the mean of that is given.
    """
    systems = other.shape[-1]
    truth, found = _signs(reference), _signs(other)
    above = found < 0
    agreeing = -(truth * above).sum(axis=-1)
    better = above.sum(axis=-1)
    equal = (found == 0).sum(axis=-1)
    # A system behind `better` others, among `equal` ones, has each of the places
    # better + 1 ... better + equal as often; sums of 1 / (place - 1) make their mean.
    harmonic = np.concatenate(([0.0], (1.0 / np.arange(1, systems + 1)).cumsum()))
    after = (better + equal - 1).clip(0)
    share = (harmonic[after] - harmonic[(better - 1).clip(0)]) / equal
    total = (agreeing * share).sum(axis=-1)
    ordered = (truth != 0).any(axis=(-2, -1)) & above.any(axis=(-2, -1))
    return ratio(total, np.where(ordered, systems - 1.0, 0.0))


def rank_overlap(one: Floats, other: Floats, p: float = 0.9) -> Floats:
    """How much of the top two scorings share, from 0 to 1 (rank-biased overlap).

    At every depth, the share of systems that both have down to it; depths weigh the
    less, the deeper. Both order all systems, so nothing is extrapolated. Systems with
    equal scores stay in the order they are given in.
    """
    systems = one.shape[-1]
    places = [
        np.argsort(np.argsort(-scores, axis=-1, kind="stable"), axis=-1, kind="stable")
        for scores in (one, other)
    ]
    lower = np.maximum(*places)[..., None, :]
    depth = np.arange(systems)
    shared = (lower <= depth[:, None]).sum(axis=-1) / (depth + 1)
    overlap: Floats = (shared * p**depth).sum(axis=-1) * (1 - p) + p**systems
    return overlap


def spearman_rho(one: Floats, other: Floats) -> float:
    """The correlation of the ranks that two scorings give, from -1 to 1.

    Equal scores share the mean of their ranks. NaN where one scoring has no order.
    """
    first, second = _mean_ranks(one), _mean_ranks(other)
    first, second = first - first.mean(), second - second.mean()
    spread = float((first**2).sum() * (second**2).sum()) ** 0.5
    return float((first * second).sum() / spread) if spread else float("nan")


def _mean_ranks(values: Floats) -> Floats:
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    ranks: Floats = (last - (counts - 1) / 2)[index]
    return ranks


def order_correlation(
    one: Floats,
    other: Floats,
    *,
    by: Literal["tau", "tau_ap", "rbo"] = "tau",
    paired: bool = True,
) -> Figure:
    """Correlate two orders of the same systems, with an interval over queries.

    The systems are ordered by their means; the interval is the percentile bootstrap's,
    the same queries being drawn for both scorings unless each has its own.
    """
    measures: dict[str, Callable[[Floats, Floats], Floats]] = {
        "tau": kendall_taus,
        "tau_ap": tau_ap,
        "rbo": rank_overlap,
    }
    measure = measures[by]
    value = float(measure(one.mean(axis=1), other.mean(axis=1)))
    # Queries that are the same for both go through one draw.
    parts = [np.concatenate([one, other])] if paired else [one, other]
    drawn_means = [
        bootstrap_means(part, draws=_DRAWS, seed=_SEED + place)
        for place, part in enumerate(parts)
    ]
    means = np.concatenate(drawn_means).T
    systems = len(one)
    size = max(1, _BLOCK // systems**2)
    drawn = np.concatenate(
        [
            measure(block[:, :systems], block[:, systems:])
            for block in np.split(means, range(size, _DRAWS, size))
        ]
    )
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return Figure(value, None)
    low, high = np.quantile(known, [0.025, 0.975]).tolist()
    interval = None if low == high else Interval(low, high, method="bootstrap")
    return Figure(value, interval)


def _signs(scores: Floats) -> Floats:
    """1 where the row's system is better than the column's, -1 where worse, else 0."""
    return np.sign(scores[..., :, None] - scores[..., None, :])


def bootstrap_means(
    scores: Floats, *, draws: int = 10_000, seed: int = _SEED
) -> Floats:
    """The means over queries drawn again and again: (metrics, draws), or of one row.

    A draw is kept as how often each query came up, so one matrix product gives the
    means of every row. Scores are first rounded to multiples of a power of two, at
    least 1e-11 of the largest, with which every sum is exact: the same bytes in
    whatever order a machine adds.
    """
    rows = np.atleast_2d(scores)
    queries = rows.shape[1]
    columns = np.ascontiguousarray(_exact(rows).T)
    blocks = [times @ columns for times in _drawn(queries, draws, seed)]
    means: Floats = np.concatenate(blocks).T / queries
    return means.reshape(*scores.shape[:-1], draws)


def _drawn(queries: int, draws: int, seed: int) -> Iterator[Floats]:
    """How often each query came up in each draw, in blocks of (draws, queries)."""
    generator = np.random.Generator(np.random.PCG64(seed))
    dtype = np.uint16 if queries <= _SMALL else np.uint32
    block = max(1, _DRAWN // queries)
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
    spare = _EXACT_BITS - (rows.shape[1] - 1).bit_length()
    exponent = np.frexp(largest)[1] - spare
    whole = np.rint(np.ldexp(rows, -exponent[:, None]))
    rounded: Floats = np.ldexp(whole, exponent[:, None])
    return rounded
