"""Paired differences against SciPy and statsmodels, and cases without spread."""

import math

import numpy as np
import pytest
import scipy.stats
from statsmodels.api import OLS
from statsmodels.stats.weightstats import ttost_paired

from karat.stats.paired import (
    difference_interval,
    effect_size,
    outcomes,
    smallest_margin,
    t_test,
)

EVEN = np.random.default_rng(0).normal(0.03, 0.15, 120)
SKEWED = 0.1 - np.random.default_rng(1).beta(0.3, 3, 80)
SPARSE = np.where(np.arange(80) < 4, 0.5, 0.0)


@pytest.mark.parametrize("n", [2, 5, 30, 120])
def test_the_t_test_equals_scipy(n: int) -> None:
    values = EVEN[:n]
    for against in (0.0, 0.05):
        found = t_test(values - against)
        expected = scipy.stats.ttest_1samp(values, against)
        assert found.t == pytest.approx(expected.statistic, abs=1e-9)
        assert found.p == pytest.approx(expected.pvalue, abs=1e-9)
        assert found.df == n - 1


def test_the_t_test_of_many_queries_equals_scipy() -> None:
    values = np.random.default_rng(2).normal(0.001, 0.2, 50_000)
    expected = scipy.stats.ttest_1samp(values, 0)
    assert t_test(values).p == pytest.approx(expected.pvalue, rel=1e-9)


def test_the_clustered_t_test_equals_statsmodels() -> None:
    clusters = np.repeat(np.arange(20), 6)
    values = EVEN + np.random.default_rng(3).normal(0, 0.1, 20)[clusters]
    fit = OLS(values, np.ones(120)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    found = t_test(values, clusters=clusters)
    assert found.p == pytest.approx(float(fit.pvalues[0]), abs=1e-9)
    interval = difference_interval(values, clusters=clusters)
    assert interval is not None
    assert interval[:2] == pytest.approx(tuple(fit.conf_int()[0]), abs=1e-9)
    assert interval.method == "clustered t"


@pytest.mark.parametrize("values", [[], [0.3], [0.2] * 9, [0.0] * 5])
def test_differences_without_spread_have_no_t(values: list[float]) -> None:
    assert all(map(math.isnan, t_test(np.array(values))))
    assert difference_interval(np.array(values), bounds=(0, math.inf)) is None


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_of_t_equals_scipy(level: float) -> None:
    expected = scipy.stats.t.interval(level, 119, EVEN.mean(), scipy.stats.sem(EVEN))
    found = difference_interval(EVEN, level=level)
    assert found is not None
    assert found[:2] == pytest.approx(expected, abs=1e-9)
    assert (found.level, found.method) == (level, "t")


def test_the_interval_is_chosen_by_what_the_differences_are_like() -> None:
    hits = np.repeat([1.0, -1.0, 0.0], [9, 4, 40])
    clusters = np.repeat(np.arange(20), 4)
    for expected, found in (
        ("score", difference_interval(hits, binary=True)),
        ("t", difference_interval(EVEN)),
        ("bootstrap", difference_interval(SKEWED)),
        ("gaffke", difference_interval(SPARSE)),
        ("t", difference_interval(EVEN[:15])),
        ("gaffke", difference_interval(EVEN[:14])),
        ("gaffke", difference_interval(SKEWED[:29])),
        ("gaffke", difference_interval(np.zeros(200))),
        ("t", difference_interval(EVEN[:5], bounds=(0, math.inf))),
        ("bounds", difference_interval(EVEN[:1])),
        ("clustered t", difference_interval(EVEN[:80], clusters=clusters)),
        ("clustered gaffke", difference_interval(SPARSE, clusters=clusters)),
    ):
        assert found is not None
        assert found.method == expected
    one_each = difference_interval(hits, binary=True, clusters=np.arange(len(hits)))
    assert one_each == difference_interval(hits, binary=True)


def test_every_interval_stays_within_what_scores_allow() -> None:
    rows = (EVEN, SKEWED, SPARSE, np.array([1.0, -1.0]), np.array([1.0, 1.0, 0.9]))
    for values in rows:
        found = difference_interval(values)
        assert found is not None
        assert -1.0 <= found.low <= values.mean() <= found.high <= 1.0
    doubled = difference_interval(2 * SPARSE, bounds=(0.0, 2.0))
    once = difference_interval(SPARSE)
    assert doubled is not None
    assert once is not None
    assert doubled[:2] == pytest.approx((2 * once.low, 2 * once.high))


def test_no_query_has_no_interval() -> None:
    for binary in (True, False):
        assert difference_interval(np.array([]), binary=binary) is None


def test_effect_sizes() -> None:
    n = len(EVEN)
    found = effect_size(EVEN)
    d = EVEN.mean() / EVEN.std(ddof=1)
    assert found.standardised == pytest.approx(d * (1 - 3 / (4 * (n - 1) - 1)))
    assert found.superiority == pytest.approx((EVEN > 0).mean())
    assert effect_size(np.array([0.2, 0.0, 0.0, -0.1])).superiority == 0.5
    constant = effect_size(np.full(5, 0.1))
    assert math.isnan(constant.standardised)
    assert constant.superiority == 1.0
    assert all(map(math.isnan, effect_size(np.array([]))))


def test_outcomes_forgive_rounding() -> None:
    assert outcomes(np.array([0.1 + 0.2 - 0.3, 0.5, -0.5, 0.0, 1.0])) == (2, 2, 1)


def test_the_smallest_margin_is_where_two_one_sided_tests_begin_to_find() -> None:
    edge = smallest_margin(EVEN)
    p = float(ttost_paired(EVEN, np.zeros(len(EVEN)), -edge, edge)[0])
    assert p == pytest.approx(0.05, abs=1e-9)


def test_equivalence_of_few_or_equal_queries_is_not_taken_for_granted() -> None:
    assert smallest_margin(np.zeros(20)) > 0.1
    assert smallest_margin(np.zeros(200)) < 0.1
    assert smallest_margin(np.zeros(200), binary=True) < 0.1
    assert smallest_margin(np.array([])) == math.inf
