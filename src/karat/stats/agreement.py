"""Agreement of raters: kappa, alpha, and their intervals over clusters."""

import math
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from karat.data.arrays import Floats, Ints, ratio
from karat.data.intervals import Interval
from karat.errors import DataError
from karat.stats.distributions import t_quantile
from karat.stats.intervals import Figure, mean_interval

Weights = Literal["equal", "linear", "quadratic"]
"""How much a disagreement counts."""

_POWERS: dict[Weights, int] = {"equal": 0, "linear": 1, "quadratic": 2}
_LEVEL = 0.95
_FEWEST = 3
_ROUNDING = 1e-12


def krippendorff_alpha(*raters: Floats) -> float:
    """Agreement of two or more raters on grades that have an order, beyond chance.

    NaN stands for a grade that a rater did not give. The distance of two grades grows
    with the number of labels between them, so it does not matter how the grades are
    numbered. The result is NaN where all labels are the same.
    """
    ratings = np.array(raters, float)
    if len(ratings) < 2 or not ratings.size:  # noqa: PLR2004
        raise DataError("agreement takes two raters, and grades by both")
    given = ~np.isnan(ratings)
    grades = np.unique(ratings[given])
    index = np.searchsorted(grades, np.where(given, ratings, 0))
    raters_of = given.sum(axis=0)
    counts = np.zeros((len(grades), len(grades)))
    for one, other in combinations(range(len(ratings)), 2):
        both = given[one] & given[other]
        pairs = (index[one][both], index[other][both])
        np.add.at(counts, pairs, 1 / (raters_of[both] - 1))
    return float(_alpha(counts)) if counts.any() else float("nan")


# Each figure reads one table of pairs of grades, or a stack of them: intervals are made
# from the tables that each leave out one cluster.


def _kappa(grades: Floats, counts: Floats, *, weights: Weights) -> Floats:
    distance = np.abs(np.subtract.outer(grades, grades))
    weight = distance ** _POWERS[weights]
    weight[distance == 0] = 0
    expected = counts.sum(-1)[..., :, None] * counts.sum(-2)[..., None, :]
    chance = (weight * expected).sum((-2, -1)) / counts.sum((-2, -1))
    return _beyond_chance(chance, (weight * counts).sum((-2, -1)))


def _alpha(counts: Floats) -> Floats:
    coincidence = counts + np.swapaxes(counts, -2, -1)
    totals = coincidence.sum(-1)
    middle = totals.cumsum(-1) - totals / 2
    distance = (middle[..., :, None] - middle[..., None, :]) ** 2
    pairs = totals[..., :, None] * totals[..., None, :]
    expected = (distance * pairs).sum((-2, -1)) / (totals.sum(-1) - 1)
    return _beyond_chance(expected, (distance * coincidence).sum((-2, -1)))


def _spearman(counts: Floats) -> Floats:
    """The correlation of ranks; equal grades share the mean of theirs."""
    one, other = (
        totals.cumsum(-1) - (totals + totals.sum(-1, keepdims=True)) / 2
        for totals in (counts.sum(-1), counts.sum(-2))
    )
    common = (counts * one[..., :, None] * other[..., None, :]).sum((-2, -1))
    spread = (counts.sum(-1) * one**2).sum(-1) * (counts.sum(-2) * other**2).sum(-1)
    return ratio(common, np.sqrt(spread))


def _beyond_chance(chance: Floats, observed: Floats) -> Floats:
    """1 minus observed by expected disagreement; NaN where none can be expected."""
    return 1 - ratio(observed, chance)


def _cluster_counts(one: Floats, other: Floats, cluster: Ints) -> tuple[Floats, Floats]:
    """All grades, and how often each pair of them was given, in each cluster."""
    grades, index = np.unique(np.concatenate([one, other]), return_inverse=True)
    counts = np.zeros((int(cluster.max()) + 1, len(grades), len(grades)))
    np.add.at(counts, (cluster, index[: len(one)], index[len(one) :]), 1)
    return grades, counts


class AgreementFigures(NamedTuple):
    """How far two raters agree; each figure has its interval over clusters."""

    equal: Figure
    kappa: Figure
    linear_kappa: Figure
    weighted_kappa: Figure
    alpha: Figure
    spearman: Figure


def agreement_figures(one: Floats, other: Floats, cluster: Ints) -> AgreementFigures:
    """Share of equal grades, three kappas, alpha and Spearman's rho, with intervals.

    The intervals of all but the first are a jackknife's with Student's t: how much a
    figure moves when one cluster is left out. Simulated, they cover 89 to 97 % from 3
    clusters on (tests/stats/test_agreement_coverage.py), where the percentile bootstrap
    covered 72 to 80 % with 3, and 80 to 85 % with 5.
    """
    grades, counts = _cluster_counts(one, other, cluster)
    whole = counts.sum(axis=0)

    def figure(measure: Callable[[Floats], Floats]) -> Figure:
        value = float(measure(whole))
        few = len(counts) < _FEWEST
        return Figure(
            value, None if few else _jackknife(value, measure(whole - counts))
        )

    same = (one == other).astype(float)
    equal = mean_interval(same, binary=True, clusters=cluster)
    return AgreementFigures(
        Figure(float(same.mean()), equal),
        figure(partial(_kappa, grades, weights="equal")),
        figure(partial(_kappa, grades, weights="linear")),
        figure(partial(_kappa, grades, weights="quadratic")),
        figure(_alpha),
        figure(_spearman),
    )


def _jackknife(value: float, without: Floats) -> Interval | None:
    """An interval from the values without one cluster each; None if they do not tell.

    That is where a value is undefined, and where none differs: perfect agreement in a
    sample does not prove it for the rest.
    """
    clusters = len(without)
    if np.isnan([value, *without]).any():
        return None
    spread = float((clusters - 1) * without.var())
    if spread <= _ROUNDING**2:
        return None
    half = t_quantile((1 + _LEVEL) / 2, clusters - 1) * math.sqrt(spread)
    low, high = max(-1.0, value - half), min(1.0, value + half)
    return Interval(low, high, _LEVEL, "jackknife")
