"""The interval of a difference: it never contradicts p, and stays honest."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st
from statsmodels.api import OLS
from statsmodels.stats.power import TTestPower

from karat.extend import Floats
from karat.stats import mean_interval
from karat.stats.paired import (
    difference_interval,
    outcomes,
    queries_needed,
    score_interval,
    t_test,
    wilcoxon,
)
from karat.stats.sign_flip import flipped, sign_flip

EVEN = np.random.default_rng(0).normal(0.03, 0.15, 120)
SPARSE = np.where(np.arange(80) < 4, 0.5, 0.0)
RECALLS = st.sampled_from([0.0, 0.0, 0.0, 0.25, -0.25, 1 / 3, -1 / 3, 0.5, -0.5, 1.0])


def samples(rounds: int, seed: int) -> list[Floats]:
    """Differences of all kinds: even, skewed, most of them ties, all one way."""
    dice = np.random.default_rng(seed)
    found = []
    for _ in range(rounds):
        n = int(dice.integers(2, 90))
        values = np.clip(dice.normal(dice.uniform(-0.3, 0.3), 0.2, n), -1, 1)
        values[dice.random(n) < dice.choice([0.0, 0.5, 0.9])] = 0.0
        found.append(np.round(values, int(dice.integers(1, 5))))
    return found


def test_the_interval_never_contradicts_p() -> None:
    for values in samples(150, 5):
        for binary in (False, True):
            rows = np.sign(values) if binary else values
            found = difference_interval(rows, binary=binary)
            assert found is not None
            p = float(sign_flip(rows))
            assert (p > 0.05) == (found.low <= 0 <= found.high), (rows, p)
            assert -1.0 <= found.low < found.high <= 1.0
            assert found.low <= rows.mean() <= found.high


@pytest.mark.parametrize(
    ("level", "binary"), [(0.9, False), (0.95, False), (0.95, True)]
)
def test_the_interval_is_the_tests_own_joined_with_a_bound(
    level: float,
    binary: bool,  # noqa: FBT001
) -> None:
    cases = set()
    for values in [*samples(150, 8), np.full(9, 0.3), np.full(25, -0.9)]:
        rows = np.sign(values[:29]) if binary else values[:29]
        mean = float(rows.mean())
        bound = mean_interval(rows, bounds=(-1, 1), level=level)
        if binary:
            bound = score_interval(rows, level)
        found = difference_interval(rows, level=level, binary=binary)
        assert bound is not None
        assert found is not None
        low, high = flipped(rows[None])[0].limits(1 - level)
        shown = float(sign_flip(rows)) <= 1 - level
        one_way = bool((rows * mean > 0).all()) and not bound.low <= 0 <= bound.high
        if not shown or one_way or mean < 0:
            low = min(low, bound.low)
        if not shown or one_way or mean > 0:
            high = max(high, bound.high)
        near = 0.0 if not shown else 1e-12 * mean
        if not shown or mean < 0:
            high = max(high, near) if not shown else min(high, near)
        if not shown or mean > 0:
            low = min(low, near) if not shown else max(low, near)
        assert found[:2] == pytest.approx((max(low, -1), min(high, 1)), abs=1e-12)
        assert found.level == pytest.approx(level)
        assert found.method == "sign-flip"
        cases.add((shown, one_way, mean > 0))
    assert len(cases) >= 5


def test_clusters_do_not_make_p_and_interval_contradict_either() -> None:
    dice = np.random.default_rng(6)
    for values in samples(60, 7):
        clusters = dice.integers(0, 1 + len(values) // 3, len(values))
        found = difference_interval(values, clusters=clusters)
        assert found is not None
        p = float(sign_flip(values, clusters=clusters))
        assert (p > 0.05) == (found.low <= 0 <= found.high)
        assert found.low < found.high


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("alpha", [0.0624, 0.0626])
def test_drawn_limits_keep_to_the_p_of_all_combinations(
    alpha: float, sign: int
) -> None:
    for start in range(0, 60, 5):
        values = np.zeros(60)
        values[start : start + 5] = 0.5 * sign
        assert float(sign_flip(values)) == 0.0625
        found = difference_interval(values, bounds=(0.0, math.inf), level=1 - alpha)
        assert found is not None
        assert (found.low <= 0 <= found.high) is (alpha < 0.0625)


def test_binary_scores_in_clusters_are_bounded_like_any_other() -> None:
    clusters = np.repeat(np.arange(8), 2)
    values = np.tile([1.0, 1.0, 0.0, -1.0], 4)
    found = difference_interval(values, binary=True, clusters=clusters)
    assert found == difference_interval(values, clusters=clusters)
    alone = difference_interval(values, binary=True, clusters=np.arange(16))
    assert alone == difference_interval(values, binary=True) != found


@given(st.lists(RECALLS, min_size=15, max_size=60), RECALLS, st.booleans())
def test_one_more_query_changes_the_width_at_most_fourfold(
    seen: list[float],
    more: float,
    binary: bool,  # noqa: FBT001
) -> None:
    values = np.array(seen)
    largest = np.abs(values).max()
    one = np.clip(more, -largest, largest)
    rows = [values, np.append(values, one)]
    first, second = (
        difference_interval(np.sign(row) if binary else row, binary=binary)
        for row in rows
    )
    assert first is not None
    assert second is not None
    ratio = (second.high - second.low) / (first.high - first.low)
    assert 0.25 <= ratio <= 4


@pytest.mark.parametrize("n", [15, 20, 50])
@pytest.mark.parametrize("gain", [0.1, 0.26, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("more", [1.0, 0.9, 0.5, 0.0, -0.1, -0.9])
def test_one_more_query_after_equal_ones_changes_the_width_at_most_fourfold(
    n: int, gain: float, more: float
) -> None:
    values = np.full(n, gain)
    longer = np.append(values, np.clip(more, -gain, gain))
    first, second = map(difference_interval, (values, longer))
    assert first is not None
    assert second is not None
    assert 0.25 <= (second.high - second.low) / (first.high - first.low) <= 4


@pytest.mark.parametrize(("broken", "n"), [(8, 50), (6, 100), (14, 100)])
@pytest.mark.parametrize("drop", [0.009, 0.3, 1.0])
def test_queries_that_break_the_same_way_are_found(
    broken: int, n: int, drop: float
) -> None:
    values = np.repeat([-drop, 0.0], [broken, n - broken])
    assert float(sign_flip(values)) == pytest.approx(
        2.0 ** (1 - broken) if broken < 17 else 0, abs=1e-12
    )
    found = difference_interval(values)
    assert found is not None
    assert found.low < values.mean() < found.high < 0


def test_ties_alone_prove_nothing() -> None:
    for values in (np.zeros(50), np.append(np.zeros(49), 0.5), np.zeros(1)):
        for binary in (False, True):
            rows = np.sign(values) if binary else values
            found = difference_interval(rows, binary=binary)
            assert found is not None
            assert found.low <= -0.05
            assert found.high >= 0.05


def test_all_queries_won_leave_room() -> None:
    for binary in (False, True):
        found = difference_interval(np.ones(20), binary=binary)
        assert found is not None
        assert 0.5 < found.low < 0.95
        assert found.high == 1.0


def test_the_far_side_allows_for_what_was_not_seen() -> None:
    """Six of 100 broken: how much worse it may be is Gaffke's word, not the flips'."""
    values = np.repeat([-0.6, 0.0], [6, 94])
    found = difference_interval(values)
    assert found is not None
    low, high = flipped(values[None])[0].limits(0.05)
    assert found.low < low - 0.01
    assert found.high == high < 0


@pytest.mark.parametrize("values", [[], [0.3], [0.2] * 9, [0.0] * 5])
def test_differences_without_spread(values: list[float]) -> None:
    p, interval = t_test(np.array(values))
    assert math.isnan(p)
    assert interval is None
    assert difference_interval(np.array(values), bounds=(0, math.inf)) is None


def test_scores_of_other_ranges_scale() -> None:
    doubled = difference_interval(2 * SPARSE, bounds=(0.0, 2.0))
    once = difference_interval(SPARSE)
    assert doubled is not None
    assert once is not None
    assert doubled[:2] == pytest.approx((2 * once.low, 2 * once.high))
    unbounded = difference_interval(EVEN, bounds=(0.0, math.inf))
    assert unbounded is not None
    _, t = t_test(EVEN)
    assert unbounded[:2] == pytest.approx(t, abs=0.002)


@pytest.mark.parametrize("n", [2, 5, 30, 120])
def test_the_t_test_equals_scipy(n: int) -> None:
    values = EVEN[:n]
    expected = scipy.stats.ttest_1samp(values, 0)
    p, interval = t_test(values)
    assert p == pytest.approx(expected.pvalue, abs=1e-9)
    assert interval == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_the_clustered_t_test_equals_statsmodels() -> None:
    clusters = np.repeat(np.arange(20), 6)
    values = EVEN + np.random.default_rng(3).normal(0, 0.1, 20)[clusters]
    fit = OLS(values, np.ones(120)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    p, interval = t_test(values, clusters=clusters)
    assert p == pytest.approx(float(fit.pvalues[0]), abs=1e-9)
    assert interval == pytest.approx(tuple(fit.conf_int()[0]), abs=1e-9)


@pytest.mark.parametrize("n", [5, 16, 40, 200])
def test_the_wilcoxon_test_equals_scipy(n: int) -> None:
    values = np.random.default_rng(n).normal(0.05, 0.2, n)
    expected = scipy.stats.wilcoxon(values, method="exact").pvalue
    assert wilcoxon(values) == pytest.approx(expected, abs=1e-12 if n < 17 else 0.012)
    tied = np.append(values.round(1), [0.0, 0.0])
    approx = scipy.stats.wilcoxon(tied, method="asymptotic").pvalue
    assert wilcoxon(tied) == pytest.approx(approx, abs=0.02 if n > 20 else 0.15)
    assert wilcoxon(np.zeros(n)) == 1.0


def test_ranks_forgive_rounding() -> None:
    values = np.array([0.5, -0.5, 0.5, 0.25, 0.75, -0.75])
    for error, same in ((4e-13, True), (4e-12, False)):
        moved = values + error * np.array([0, -1, 0, 0, 1, 0])
        assert (wilcoxon(moved) == wilcoxon(values)) is same
    for nothing, same in ((9e-13, True), (1e-11, False)):
        assert (wilcoxon(np.append(values, nothing)) == wilcoxon(values)) is same


def test_outcomes_forgive_rounding() -> None:
    assert outcomes(np.array([0.1 + 0.2 - 0.3, 0.5, -0.5, 0.0, 1.0])) == (2, 2, 1)


@pytest.mark.parametrize("effect", [0.1, 0.25, 0.5])
def test_queries_needed_are_those_of_statsmodels(effect: float) -> None:
    expected = TTestPower().solve_power(effect, alpha=0.05, power=0.8)
    assert queries_needed(effect, 1.0) == pytest.approx(expected, abs=1.5)
    assert queries_needed(0.0, 1.0) == queries_needed(0.1, math.nan) == math.inf
