"""Do 95 % intervals of agreement hold the truth? Simulated, seed fixed.

A judge repeats people's grade with a chance that varies from query to query, and says
anything otherwise. Bounds are for 400 draws, whose standard error is 0.011 at 95 %.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.inter_rater import cohens_kappa

from karat.extend import Floats, Ints
from karat.stats.agreement import (
    AgreementFigures,
    agreement_figures,
    krippendorff_alpha,
)
from tests.stats.kappas import cohen_kappa

DRAWS = 400
NAMES = ("kappa", "weighted_kappa", "alpha")
GRADES = {"0 to 3": (0.4, 0.2, 0.2, 0.2), "0 or 1": (0.7, 0.3)}


def judged(
    dice: np.random.Generator, queries: int, shares: Sequence[float], alike: float
) -> tuple[Floats, Floats, Ints]:
    """People's grades, a judge's, and the number of the query."""
    shape = 1 / alike - 1
    care = dice.beta(0.6 * shape, 0.4 * shape, queries)
    query = np.repeat(np.arange(queries), dice.integers(5, 16, queries))
    people, anything = dice.choice(len(shares), (2, len(query)), p=shares)
    judge = np.where(dice.random(len(query)) < care[query], people, anything)
    return people.astype(float), judge.astype(float), query


@cache
def truth(shares: Sequence[float], alike: float) -> Sequence[float]:
    one, other, _ = judged(np.random.default_rng(1), 40_000, shares, alike)
    plain, weighted = (
        cohen_kappa(one, other, weights=w) for w in ("equal", "quadratic")
    )
    return plain, weighted, krippendorff_alpha(one, other)


def drawn(
    queries: int, shares: Sequence[float], alike: float
) -> list[AgreementFigures]:
    dice = np.random.default_rng(20260104)
    return [
        agreement_figures(*judged(dice, queries, shares, alike)) for _ in range(DRAWS)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("alike", [0.05, 0.3])
@pytest.mark.parametrize("grades", GRADES)
@pytest.mark.parametrize("queries", [3, 5, 10, 30])
def test_intervals_of_agreement_cover_the_truth(
    queries: int, grades: str, alike: float
) -> None:
    true = truth(GRADES[grades], alike)
    found = drawn(queries, GRADES[grades], alike)
    for name, value in zip(NAMES, true, strict=True):
        known = [f.interval for f in (getattr(one, name) for one in found)]
        told = [interval for interval in known if interval is not None]
        assert len(told) >= 0.9 * DRAWS
        assert np.mean([i.low <= value <= i.high for i in told]) >= 0.89, name


def test_two_queries_give_no_interval() -> None:
    found = drawn(2, GRADES["0 to 3"], 0.3)
    assert {getattr(one, name).interval for one in found for name in NAMES} == {None}


@pytest.mark.parametrize("queries", [3, 6, 20])
def test_intervals_are_a_jackknife_over_queries(queries: int) -> None:
    one, other, query = judged(
        np.random.default_rng(3), queries, GRADES["0 to 3"], 0.05
    )
    figures = agreement_figures(one, other, query)
    parts = [query != left_out for left_out in range(queries)]
    without = [agreement_figures(one[p], other[p], query[p]) for p in parts]
    t = scipy.stats.t.ppf(0.975, queries - 1)
    for name in (*NAMES, "linear_kappa", "spearman"):
        figure = getattr(figures, name)
        values = np.array([getattr(each, name).value for each in without])
        half = t * np.sqrt((queries - 1) * values.var())
        limits = np.clip([figure.value - half, figure.value + half], -1, 1)
        assert figure.interval[:2] == pytest.approx(limits)
        assert (figure.interval.level, figure.interval.method) == (0.95, "jackknife")


def test_perfect_agreement_has_no_interval() -> None:
    grades = np.tile([0.0, 1.0, 2.0], 10)
    figures = agreement_figures(grades, grades, np.repeat(np.arange(5), 6))
    assert [figure.value for figure in figures] == pytest.approx([1.0] * 6)
    assert {figure.interval for figure in figures[1:]} == {None}


def test_alpha_is_that_of_krippendorffs_own_example() -> None:
    """Four raters of twelve units; the last unit has one grade (2011, example C)."""
    table = """
        1 2 3 3 2 1 4 1 2 . . .
        1 2 3 3 2 2 4 1 2 5 . 3
        . 3 3 3 2 3 4 2 2 5 1 .
        1 2 3 3 2 4 4 1 2 5 1 .
    """
    rows = [row.replace(".", "nan").split() for row in table.strip().splitlines()]
    found = krippendorff_alpha(*np.array(rows, float))
    assert found == pytest.approx(0.815, abs=0.0005)


def test_kappas_and_rho_equal_statsmodels_and_scipy() -> None:
    one, other, query = judged(np.random.default_rng(3), 20, GRADES["0 to 3"], 0.3)
    figures = agreement_figures(one, other, query)
    table = np.zeros((4, 4))
    np.add.at(table, (one.astype(int), other.astype(int)), 1)
    for figure, weights in (
        (figures.kappa, None),
        (figures.linear_kappa, "linear"),
        (figures.weighted_kappa, "quadratic"),
    ):
        assert figure.value == pytest.approx(cohens_kappa(table, wt=weights).kappa)
    assert figures.spearman.value == pytest.approx(
        scipy.stats.spearmanr(one, other).statistic
    )
    assert figures.equal.value == (one == other).mean()
