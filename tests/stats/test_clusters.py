"""What counts as one observation: totals of clusters and their spread."""

import math

import numpy as np
import pytest
from statsmodels.api import OLS

from karat.stats.intervals import cluster_totals, gaffke_limits, sample_of


def test_totals_are_those_of_each_cluster_in_every_row() -> None:
    rows = np.arange(12.0).reshape(2, 6)
    clusters = np.array([5, 5, -1, 7, -1, 5])
    expected = [[2 + 4, 0 + 1 + 5, 3], [8 + 10, 6 + 7 + 11, 9]]
    assert cluster_totals(rows, clusters).tolist() == expected
    assert cluster_totals(rows[0], clusters).tolist() == expected[0]


def test_the_standard_error_is_that_of_statsmodels() -> None:
    dice = np.random.default_rng(0)
    clusters = np.repeat(np.arange(25), 8)
    values = dice.normal(0, 1, 25)[clusters] + dice.normal(0, 1, 200)
    fit = OLS(values, np.ones(200)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    sample = sample_of(values, clusters)
    assert sample.standard_error == pytest.approx(float(fit.bse[0]), abs=1e-12)
    alone = sample_of(values)
    assert alone.standard_error == pytest.approx(values.std(ddof=1) / math.sqrt(200))


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_many_scores_are_taken_to_a_grid_that_moves_no_limit(level: float) -> None:
    scores = np.random.default_rng(1).integers(0, 65, 1100) / 64
    few, counts = np.unique(scores, return_counts=True)
    exact = gaffke_limits(few, counts.astype(float), level)
    assert gaffke_limits(scores, np.ones(1100), level) == pytest.approx(exact, abs=1e-9)
    # Between two points of the grid, a score is a mixture of both.
    odd = np.random.default_rng(2).beta(0.2, 2, 1100)
    halves = (gaffke_limits(odd[n::2], np.ones(550), level) for n in range(2))
    low, high = np.mean([*halves], axis=0)
    found = gaffke_limits(odd, np.ones(1100), level)
    assert low < found[0] < odd.mean() < found[1] < high
    less = gaffke_limits(odd[:1024], np.ones(1024), level)
    many = gaffke_limits(odd[:1025], np.ones(1025), level)
    assert many == pytest.approx(less, abs=1e-3)
