"""Do 95 % intervals of agreement hold the truth? Simulated, seed fixed.

A judge repeats people's grade with a chance that varies from query to query, and says
anything otherwise. Bounds are for 400 draws, whose standard error is 0.011 at 95 %.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

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
