"""What counts as one observation: totals of clusters and their spread."""

import math

import numpy as np
import pytest
from statsmodels.api import OLS

from karat.stats.intervals import cluster_totals, sample_of


def test_totals_are_those_of_each_cluster_in_every_row() -> None:
    rows = np.arange(12.0).reshape(2, 6)
    clusters = np.array([5, 5, -1, 7, -1, 5])
    expected = [[2 + 4, 0 + 1 + 5, 3], [8 + 10, 6 + 7 + 11, 9]]
    assert cluster_totals(rows, clusters).tolist() == expected
    assert cluster_totals(rows[0], clusters).tolist() == expected[0]
    assert cluster_totals(rows, None) is rows


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
