"""Orders of systems: Kendall's tau against SciPy, tau_AP by its definition."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st

import karat
from karat.stats.rank_correlation import (
    bootstrap_means,
    kendall_taus,
    order_correlation,
    rank_overlap,
    spearman_rho,
    tau_ap,
)

SCORES = st.lists(st.integers(0, 4), min_size=5, max_size=5).map(
    lambda row: np.array(row, dtype=float)
)


def tau_ap_by_definition(reference: list[float], order: list[int]) -> float:
    """Systems from best to worst; how many above each belong there."""
    total = 0.0
    for place in range(1, len(order)):
        above = [reference[other] for other in order[:place]]
        right = sum(np.sign(value - reference[order[place]]) for value in above)
        total += right / place
    return total / (len(order) - 1)


@given(SCORES, SCORES)
def test_kendalls_tau_equals_scipy(one: np.ndarray, other: np.ndarray) -> None:
    expected = scipy.stats.kendalltau(one, other).statistic
    found = float(kendall_taus(one, other))
    assert found == pytest.approx(float(expected), abs=1e-12, nan_ok=True)


@given(SCORES, SCORES)
def test_spearmans_rho_equals_scipy(one: np.ndarray, other: np.ndarray) -> None:
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert np.isnan(spearman_rho(one, other))
    else:
        expected = scipy.stats.spearmanr(one, other).statistic
        assert spearman_rho(one, other) == pytest.approx(float(expected), abs=1e-12)


@given(SCORES, SCORES)
def test_tau_ap_is_the_mean_over_the_orders_of_ties(
    reference: np.ndarray, other: np.ndarray
) -> None:
    orders = [
        [*order]
        for order in itertools.permutations(range(5))
        if all(other[a] >= other[b] for a, b in itertools.pairwise(order))
    ]
    values = [tau_ap_by_definition(reference.tolist(), order) for order in orders]
    found = float(tau_ap(reference, other))
    if len(set(reference)) == 1 or len(set(other)) == 1:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(float(np.mean(values)), abs=1e-12)


def test_many_orders_at_once_are_each_their_own() -> None:
    dice = np.random.default_rng(0)
    one, other = dice.random((2, 30, 7))
    for measure in (kendall_taus, tau_ap):
        expected = [float(measure(a, b)) for a, b in zip(one, other, strict=True)]
        assert measure(one, other) == pytest.approx(expected)


@given(st.permutations(range(6)), st.floats(0.1, 0.99))
def test_the_overlap_of_tops_is_that_of_runs(order: list[int], p: float) -> None:
    """Two orders of the same systems are two rankings of the same documents."""
    names = [f"s{n}" for n in range(6)]
    other = [names[n] for n in order]
    expected = karat.rbo({"q": names}, {"q": other}, p=p)["q"]
    scores = np.array([[-names.index(n), -other.index(n)] for n in names], float).T
    assert float(rank_overlap(scores[0], scores[1], p)) == pytest.approx(expected)


def test_orders_on_other_queries_are_drawn_apart() -> None:
    dice = np.random.default_rng(1)
    one, other = dice.random((4, 30)), dice.random((4, 20))
    found = order_correlation(one, other, by="rbo", paired=False)
    expected = rank_overlap(one.mean(axis=1), other.mean(axis=1), 0.9)
    assert found.value == pytest.approx(float(expected))
    assert found.interval is not None
    assert found.interval.low <= found.value <= found.interval.high


@pytest.mark.parametrize("by", ["tau", "tau_ap", "rbo"])
def test_the_interval_holds_the_value_and_narrows_with_queries(by: str) -> None:
    dice = np.random.default_rng(1)
    quality = np.linspace(0.3, 0.5, 8)[:, None]
    widths = []
    for queries in (30, 1000):
        one = quality + dice.normal(0, 0.3, (8, queries))
        other = quality + dice.normal(0, 0.3, (8, queries))
        found = order_correlation(one, other, by=by)  # type: ignore[arg-type]
        assert found.interval is not None
        assert found.interval.low <= found.value <= found.interval.high
        widths.append(found.interval.high - found.interval.low)
        again = order_correlation(one, other, by=by)  # type: ignore[arg-type]
        assert again == found
    assert widths[1] < widths[0] / 2


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_is_that_of_drawn_queries(paired: bool) -> None:  # noqa: FBT001
    dice = np.random.default_rng(2)
    one, other = dice.random((2, 6, 25))
    first = bootstrap_means(one, draws=2000)
    seed = 20_240_229 if paired else 20_240_230
    second = bootstrap_means(other, draws=2000, seed=seed)
    taus = kendall_taus(first.T, second.T)
    found = order_correlation(one, other, paired=paired).interval
    assert found is not None
    assert found[:2] == pytest.approx(np.quantile(taus, [0.025, 0.975]).tolist())
    assert (found.level, found.method) == (0.95, "bootstrap")


def test_orders_that_never_change_have_no_interval() -> None:
    scores = np.array([[0.1, 0.2], [0.5, 0.6]])
    assert order_correlation(scores, scores) == (1.0, None)
    flat = np.ones((2, 3))
    value, interval = order_correlation(flat, flat)
    assert np.isnan(value)
    assert interval is None
