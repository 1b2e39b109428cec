"""Intervals of one mean: oracles, laws and the cases without spread."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st
from statsmodels.api import OLS
from statsmodels.stats.proportion import proportion_confint

from karat.data.intervals import Interval
from karat.extend import Floats, ParameterError
from karat.stats import mean_interval, moments_interval

INF = math.inf
SCORES = st.lists(
    st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 1.0])
    | st.integers(0, 64).map(lambda i: i / 64),
    min_size=2,
    max_size=60,
).map(np.array)
LEVELS = st.floats(0.5, 0.999)


def interval(values: Floats | list[float], **options: object) -> Interval:
    found = mean_interval(np.array(values, dtype=float), **options)  # type: ignore[arg-type]
    assert found is not None
    return found


def gaffke_upper(values: Floats, tail: float) -> float:
    """Gaffke's upper limit, exactly and slowly, for scores from 0 to 1.

    Compare the last positive with the last negative part of a sum of exponential
    numbers: what is left of the larger one is exponential again.
    """

    def beyond(limit: float) -> float:
        parts = np.append(values, 1.0) - limit
        gains, losses = parts[parts > 0], -parts[parts < 0]
        chances = [0.0] + [1.0] * len(gains)
        for loss in losses:
            for i, gain in enumerate(gains, 1):
                last = (gain * chances[i] + loss * chances[i - 1]) / (gain + loss)
                chances[i] = last
        return chances[-1]

    below, above = float(values.mean()), 1.0
    while above - below > 1e-7:
        middle = (below + above) / 2
        below, above = (middle, above) if beyond(middle) > tail else (below, middle)
    return above


@pytest.mark.parametrize("n", [2, 3, 10, 30, 1000])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_binary_scores_get_the_wilson_interval_of_statsmodels(
    n: int, level: float
) -> None:
    for hits in {0, 1, n // 3, n - 1, n}:
        found = interval([1.0] * hits + [0.0] * (n - hits), binary=True, level=level)
        low, high = proportion_confint(hits, n, alpha=1 - level, method="wilson")
        near = proportion_confint(hits, n, alpha=1 - level, method="agresti_coull")
        # One failure, or one hit, is never taken for a share of 1 or 0.
        if 0 < hits <= n / 2:
            low = min(low, max(near[0], 1 - level ** (1 / n)))
        if n / 2 <= hits < n:
            high = max(high, min(near[1], level ** (1 / n)))
        assert found[:2] == pytest.approx((low, high), abs=1e-12)
        assert (found.level, found.method) == (level, "wilson")


@pytest.mark.parametrize("n", [20, 25, 50, 100, 400])
def test_shares_next_to_1_are_covered(n: int) -> None:
    """Wilson's own interval covers 91.1 % of 25 queries at 0.98, and 84 % at 0.993."""
    hits = np.arange(n + 1)
    ends = [interval([1.0] * k + [0.0] * (n - k), binary=True) for k in hits]
    low, high = np.array([found[:2] for found in ends]).T
    for rate in (0.9, 0.95, 0.98, 0.99, 0.995, 0.999):
        held = (low <= rate) & (rate <= high)
        covered = scipy.stats.binom.pmf(hits, n, rate)[held].sum()
        assert covered >= 0.92, rate


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("n", [30, 100, 2000])
def test_many_even_scores_get_the_t_interval_of_scipy(n: int, level: float) -> None:
    values = np.random.default_rng(n).beta(2, 3, n)
    found = interval(values, level=level)
    expected = scipy.stats.t.interval(
        level, n - 1, values.mean(), scipy.stats.sem(values)
    )
    assert found[:2] == pytest.approx(expected, abs=1e-12)
    assert found.method == "t"


def test_moments_are_enough_from_30_scores_on() -> None:
    values = np.random.default_rng(0).beta(2, 3, 30)
    spread = float(((values - values.mean()) ** 2).sum())
    found = moments_interval(30, float(values.mean()), spread)
    assert found is not None
    assert found[:2] == pytest.approx(interval(values)[:2])
    assert moments_interval(29, float(values.mean()), spread) is None


@pytest.mark.parametrize("n", [2, 5])
def test_unbounded_scores_get_the_t_interval_even_when_few(n: int) -> None:
    values = np.random.default_rng(n).normal(50.0, 9.0, n)
    found = interval(values, bounds=(-INF, INF))
    expected = scipy.stats.t.interval(
        0.95, n - 1, values.mean(), scipy.stats.sem(values)
    )
    assert found[:2] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("n", [2, 3, 5, 10, 29, 60])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_few_or_skewed_scores_get_gaffkes_bound(n: int, level: float) -> None:
    dice = np.random.default_rng(n)
    skewed = dice.random(n) ** 9
    few_hits = np.where(np.arange(n) < 2, 0.3, 0.0)
    constant = np.full(n, 0.1)
    tolerance = 0.005 if n < 10 else 0.002
    for values in (skewed, few_hits, constant, np.zeros(n), np.ones(n)):
        found = interval(values, level=level)
        tail = (1 - level) / 2
        assert found.method == "gaffke"
        assert found.high == pytest.approx(gaffke_upper(values, tail), abs=tolerance)
        low = 1.0 - gaffke_upper(1.0 - values, tail)
        assert found.low == pytest.approx(low, abs=tolerance)


@pytest.mark.parametrize("n", [2, 7, 29])
def test_gaffkes_bound_on_zeros_and_ones_is_clopper_pearson(n: int) -> None:
    for hits in range(n + 1):
        found = interval([1.0] * hits + [0.0] * (n - hits))
        expected = proportion_confint(hits, n, method="beta")
        assert found[:2] == pytest.approx(expected, abs=0.003)


@pytest.mark.parametrize("clusters", [12, 40])
def test_clusters_of_one_size_get_the_interval_of_statsmodels(
    clusters: int,
) -> None:
    dice = np.random.default_rng(clusters)
    groups = np.repeat(np.arange(clusters), 7)
    values = dice.beta(3, 3, clusters)[groups] * dice.beta(4, 2, len(groups))
    found = interval(values, clusters=groups)
    fit = OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    assert found[:2] == pytest.approx(tuple(fit.conf_int()[0]), abs=1e-12)
    assert found.method == "clustered t"


def test_clusters_of_unequal_size_count_as_fewer() -> None:
    dice = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), dice.integers(3, 9, 40))
    values = dice.beta(3, 3, 40)[groups] * dice.beta(4, 2, len(groups))
    found = interval(values, clusters=groups)
    fit = OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    low, high = fit.conf_int()[0]
    assert high - low < found.high - found.low < 1.05 * (high - low)


def test_copies_within_a_cluster_add_no_certainty() -> None:
    values = np.random.default_rng(1).random(40)
    for scores in (values, values**20, values[:5], np.ones(8)):
        once = interval(scores)
        labels = np.arange(len(scores)) * 3 - 10
        often = interval(np.repeat(scores, 9), clusters=np.repeat(labels, 9))
        assert often[:2] == pytest.approx(once[:2], abs=1e-9)
        assert often.method == f"clustered {once.method}"


def test_clusters_of_one_query_each_change_nothing() -> None:
    values = np.random.default_rng(2).integers(0, 2, 50).astype(float)
    for binary in (True, False):
        alone = interval(values, binary=binary, clusters=np.arange(50))
        assert alone == interval(values, binary=binary)


def test_binary_scores_in_clusters_are_counted_by_cluster() -> None:
    groups = np.repeat(np.arange(20), 10)
    values = (groups % 2).astype(float)
    found = interval(values, binary=True, clusters=groups)
    assert found.method == "clustered t"
    naive = interval(values, binary=True)
    assert found.high - found.low > 3 * (naive.high - naive.low)


def test_a_large_cluster_among_small_ones_is_not_outvoted() -> None:
    sizes = [200] + [2] * 39
    groups = np.repeat(np.arange(40), sizes)
    values = np.where(groups == 0, 0.9, 0.4 + groups % 5 / 20)
    found = interval(values, clusters=groups)
    assert found.method == "clustered gaffke"
    assert found.high - found.low > 0.5


def test_no_score_has_no_interval() -> None:
    assert mean_interval(np.array([])) is None
    assert mean_interval(np.array([]), clusters=np.array([], dtype=np.int64)) is None


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 2.0)])
def test_one_score_or_one_cluster_says_no_more_than_the_bounds(
    bounds: tuple[float, float],
) -> None:
    assert interval([1.0], bounds=bounds) == Interval(*bounds, 0.95, "bounds")
    assert interval([1.0], binary=True, bounds=bounds)[:2] == bounds
    pooled = interval([0.2, 0.9, 1.0], bounds=bounds, clusters=np.zeros(3, np.int64))
    assert pooled == Interval(*bounds, 0.95, "clustered bounds")


@pytest.mark.parametrize("n", [2, 29, 30, 5000])
@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1.0])
def test_scores_that_never_vary_still_leave_room(n: int, value: float) -> None:
    found = interval([value] * n)
    assert found.method == "gaffke"
    assert found.low <= value <= found.high
    assert found.high - found.low > 3 / (n + 5) * 0.95
    assert (found.low == 0.0) == (value == 0.0)
    assert (found.high == 1.0) == (value == 1.0)


def test_unbounded_scores_that_never_vary_have_no_interval() -> None:
    for scores in ([7.0] * 9, [7.0]):
        assert mean_interval(np.array(scores), bounds=(0, INF)) is None
    pooled = mean_interval(
        np.array([1.0, 2.0]), bounds=(0, INF), clusters=np.zeros(2, np.int64)
    )
    assert pooled is None


def test_one_miss_among_many_perfect_scores_is_taken_seriously() -> None:
    found = interval([1.0] * 99 + [0.99])
    assert found.method == "gaffke"
    assert found.low == pytest.approx(0.963, abs=0.001)


@pytest.mark.parametrize("least", [5e-324, 1e-200, 1e-12, 1 - 1e-12])
def test_scores_next_to_a_bound_are_no_trouble(least: float) -> None:
    for values in ([least, least], [least, 0.0, 1.0], [least, *[0.0] * 99]):
        found = interval(values)
        assert 0.0 <= found.low <= np.mean(values) <= found.high <= 1.0
        assert found.high - found.low > 0.02


def test_unbounded_scores_may_vary_little_around_a_large_mean() -> None:
    values = 1e9 + np.random.default_rng(3).random(1000)
    found = interval(values, bounds=(0.0, INF))
    assert found.method == "t"
    assert found.high - found.low == pytest.approx(0.036, abs=0.002)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e9])
def test_what_is_rounding_depends_on_the_size_of_scores(size: float) -> None:
    for error, varies in ((1e-14, False), (1e-9, True)):
        values: Floats = size * (1 + error * (np.arange(40.0) % 3))
        found = mean_interval(values, bounds=(0.0, INF))
        assert (found is not None) is varies


@pytest.mark.parametrize(("ones", "method"), [(23, "gaffke"), (24, "t")])
def test_student_is_trusted_up_to_the_skewness_of_cochrans_rule(
    ones: int, method: str
) -> None:
    values = np.repeat([1.0, 0.0], [ones, 1000 - ones])
    skewed = 25 * scipy.stats.skew(values) ** 2 >= 1000
    assert skewed == (method == "gaffke")
    assert interval(values).method == interval(1 - values).method == method


def test_the_t_interval_is_clipped_to_the_bounds() -> None:
    values = np.array([0.0] * 5 + [3.0, 1.0, 2.0, 4.0])
    found = interval(values, bounds=(0, INF), level=0.9999)
    assert found.low == 0.0
    assert found.high > 4.0


@given(SCORES, LEVELS)
def test_the_mean_lies_inside_and_the_interval_within_the_bounds(
    values: Floats, level: float
) -> None:
    found = interval(values, level=level)
    assert 0.0 <= found.low <= values.mean() + 1e-12
    assert values.mean() - 1e-12 <= found.high <= 1.0
    assert found.high > found.low


@given(SCORES)
def test_more_confidence_is_wider(values: Floats) -> None:
    lax, strict = interval(values, level=0.8), interval(values, level=0.99)
    assert strict.low <= lax.low
    assert lax.high <= strict.high


@given(SCORES, st.randoms(use_true_random=False))
def test_the_order_of_queries_changes_nothing(values: Floats, dice: object) -> None:
    mixed = values.copy()
    dice.shuffle(mixed)  # type: ignore[attr-defined]
    assert interval(mixed)[:2] == pytest.approx(interval(values)[:2], abs=1e-9)


@given(SCORES)
def test_failures_mirror_successes(values: Floats) -> None:
    found, mirror = interval(values), interval(1.0 - values)
    assert mirror[:2] == pytest.approx((1 - found.high, 1 - found.low), abs=1e-9)


@given(SCORES, st.floats(-5, 5), st.floats(0.1, 100))
def test_other_bounds_only_change_the_scale(
    values: Floats, low: float, width: float
) -> None:
    found = interval(low + width * values, bounds=(low, low + width))
    plain = interval(values)
    expected = (low + width * plain.low, low + width * plain.high)
    assert found[:2] == pytest.approx(expected, abs=1e-7 * width)


@pytest.mark.parametrize("value", [1.5, -0.1, math.nan, INF])
def test_a_score_outside_the_bounds_is_an_error(value: float) -> None:
    with pytest.raises(ParameterError, match="values must be finite, from 0 to 1"):
        interval([0.5, value])


def test_an_infinite_score_is_an_error_even_without_bounds() -> None:
    with pytest.raises(ParameterError, match="values must be finite"):
        interval([0.5, INF], bounds=(0.0, INF))


def test_bounds_must_ascend() -> None:
    with pytest.raises(ParameterError, match="bounds must be ascending"):
        interval([0.5, 0.5], bounds=(1.0, 0.0))
