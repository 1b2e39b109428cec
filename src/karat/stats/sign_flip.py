"""Paired randomisation: could the difference of two means have come about by chance?

If two systems are equally good, each query's difference might as well have had the
other sign. So flip the signs at random, again and again, and count how often Student's
t is as far from 0 as the one observed. It tests the mean, assumes no distribution, and
agrees closely with the t test (Smucker, Allan and Carterette, CIKM 2007). The sum of
squares does not depend on signs: for one system, t is ordered as the sum is.

The same flips give an interval: all d for which "the mean difference is d" is not
rejected. With A and C the sums of the differences and of their numbers under a
combination of signs, that of the shifted differences is A - d C. The distance from the
mean up to which it is as large as the one observed is explicit, so a limit is one of
these distances, and nothing is searched for.

Up to 16 queries (or clusters) that differ, p is of all combinations; else of 9,999
draws. Metrics, systems and pairs of systems share one draw of signs: that is cheaper,
and keeps what they have in common, which corrections for many tests live on.

Eight queries make one look-up table of their 256 signed sums, and a byte of random bits
picks one: no matrix of signs is ever laid out, and sums are added in the same order on
every machine.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.errors import ParameterError
from karat.stats.intervals import cluster_totals

ALPHA = 0.05
"""The largest p that counts as a finding."""
DRAWS = 9_999
"""How many random draws of signs a test takes."""
MOST_EXACT = 16
"""Up to so many queries that differ, every combination of signs is tried."""

# The same draws every time, and so the same p.
_SEED = 20_240_229
_WORD, _BYTE = 64, 8
# Sums that differ by less, as a part of the largest there can be, are the same sum.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Flips:
    """Differences of two systems, and their sums under combinations of signs."""

    totals: Floats  # the differences; with clusters, the sum of each
    sizes: Floats  # how many queries are in each total
    sums: Floats  # of the totals, under each combination
    counts: Floats  # of the sizes, under each combination
    noise: float  # by how much a sum may be off for rounding

    def __sub__(self, other: "Flips") -> "Flips":
        """The differences of two systems that are compared with one baseline.

        Both must be on the same queries: all signs are the same then.
        """
        totals = self.totals - other.totals
        noise = self.noise + other.noise
        totals[np.abs(totals) <= noise / len(totals)] = 0.0
        return Flips(totals, self.sizes, self.sums - other.sums, self.counts, noise)

    @cached_property
    def n(self) -> float:
        """Number of queries."""
        return float(self.sizes.sum())

    @cached_property
    def mean(self) -> float:
        """The mean difference."""
        return float(self.totals.sum()) / self.n

    @cached_property
    def p(self) -> float:
        """How likely a mean as far from 0 is by chance, two-sided; never 0."""
        differ = self.totals[self.totals != 0.0]
        least = abs(float(self.totals.sum())) - self.noise
        if not len(differ):
            return 1.0
        if len(differ) <= MOST_EXACT < len(self.totals):
            return float((np.abs(signed_sums(differ[None])) >= least).mean())
        return self.chance(np.abs(self.sums) >= least)

    def chance(self, extreme: Bools) -> float:
        """The share of combinations that are extreme; of draws, the own one added."""
        drawn = len(self.totals) > MOST_EXACT
        return float((extreme.sum() + drawn) / (len(extreme) + drawn))

    def limits(self, alpha: float) -> tuple[float, float]:
        """Between which mean differences no one is rejected with p at most alpha."""
        rest = self.sums - self.mean * self.counts
        size, turned = np.abs(rest), np.copysign(self.counts, rest * self.counts)
        # All signs alike: as far from every mean as what was observed.
        same = np.abs(self.counts) >= self.n * (1.0 - _ROUNDING)
        size[same], turned[same] = math.inf, 0.0
        place = self.place(alpha)
        below, above = (
            float(np.partition(size / (self.n + way * turned), place)[place])
            for way in (-1, 1)
        )
        return self.mean - below, self.mean + above

    def place(self, alpha: float) -> int:
        """Which combination, the least extreme first, is the last not rejected."""
        tried = len(self.sums)
        drawn = len(self.totals) > MOST_EXACT
        rank = math.floor(alpha * (tried + drawn) + _ROUNDING) + (not drawn)
        return tried - min(max(rank, 1), tried)


def flipped(
    differences: Floats, *, known: Bools | None = None, clusters: Ints | None = None
) -> list[Flips]:
    """Rows of differences, (rows, queries), under combinations of signs they share.

    Where `known` is false there is no difference, and the row must have 0.
    """
    if not np.isfinite(differences).all():
        raise ParameterError("sign_flip", "scores", "finite", "NaN or infinite ones")
    there = np.ones((1, differences.shape[1])) if known is None else known.astype(float)
    if (there == there[0]).all():
        there = there[:1]
    totals, sizes = differences, there
    if clusters is not None:
        totals = cluster_totals(differences, clusters)
        sizes = cluster_totals(there, clusters)
    noise = _ROUNDING * np.abs(totals).sum(axis=1)
    none = np.abs(totals) <= noise[:, None] / totals.shape[1]
    totals = np.where(none, 0.0, totals)
    sums = signed_sums(np.concatenate([totals, sizes]))
    shared = len(sizes) == 1
    return [
        Flips(
            total,
            sizes[0 if shared else row],
            sums[row],
            sums[len(totals) + (0 if shared else row)],
            float(noise[row]),
        )
        for row, total in enumerate(totals)
    ]


def sign_flip(differences: Floats, *, clusters: Ints | None = None) -> Floats:
    """P of each row, or of one: could its mean difference be chance; two-sided."""
    rows = flipped(np.atleast_2d(differences), clusters=clusters)
    return np.array([row.p for row in rows]).reshape(differences.shape[:-1])


def signed_sums(rows: Floats, draws: int = DRAWS) -> Floats:
    """The sums of rows under many combinations of signs, which all rows share.

    All combinations for 16 columns or fewer, up to the sign of the whole, which no
    two-sided test can see; else `draws` random ones. What a column is flipped by does
    not depend on the columns after it.
    """
    size, columns = rows.shape
    drawn = columns > MOST_EXACT
    words = np.arange(1 << min(columns - 1, MOST_EXACT), dtype="<u8")
    sums = np.zeros((draws if drawn else len(words), size))
    generator = np.random.PCG64(_SEED)
    for start in range(0, columns, _WORD):
        if drawn:
            words = generator.random_raw(draws).astype("<u8", copy=False)
        bits = np.ascontiguousarray(words.view(np.uint8).reshape(-1, _BYTE).T)
        tables = _signed_tables(rows[:, start : start + _WORD])
        for table, byte in zip(tables, bits, strict=False):
            sums += table.take(byte, axis=0)
    return np.ascontiguousarray(sums.T)


def _signed_tables(rows: Floats) -> Floats:
    """Every signed sum of each eight columns: (bytes, 256, rows).

    Where bit i is set, column i counts plus. Columns that are not there are 0.
    """
    size, columns = rows.shape
    padded = np.zeros((-(-columns // _BYTE) * _BYTE, size))
    padded[:columns] = rows.T
    groups = padded.reshape(-1, _BYTE, 1, size)
    tables = np.zeros((len(groups), 1, size))
    for place in range(_BYTE):
        column = groups[:, place]
        tables = np.concatenate([tables - column, tables + column], axis=1)
    return tables


def smallest_p(units: int) -> float:
    """The smallest p that a sign-flip test of so many queries or clusters can give.

    Below 6 it is above 0.05: whatever the difference, the test cannot see it.
    """
    if units <= MOST_EXACT:
        return min(1.0, 2.0 ** (1 - units))
    return 1.0 / (DRAWS + 1)
