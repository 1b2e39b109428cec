"""Paired randomisation against SciPy, and what makes it trustworthy."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st

from karat.extend import Floats, ParameterError
from karat.stats.sign_flip import (
    DRAWS,
    flipped,
    sign_flip,
    signed_sums,
    smallest_p,
)

TENTHS = st.lists(st.integers(-10, 10).map(lambda i: i / 10), min_size=1, max_size=10)


def by_scipy(differences: Floats) -> float:
    found = scipy.stats.permutation_test(
        (differences, np.zeros(len(differences))),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    return float(found.pvalue)


@pytest.mark.parametrize("n", [2, 5, 8, 12, 16])
def test_few_queries_get_the_exact_p_of_scipy(n: int) -> None:
    dice = np.random.default_rng(n)
    for scale in (0.0, 0.1, 1.0):
        differences = dice.normal(scale, 0.3, n)
        found = sign_flip(differences)
        assert found == pytest.approx(by_scipy(differences), abs=1e-12)


@given(TENTHS)
def test_sums_that_differ_by_rounding_alone_are_the_same(tenths: list[float]) -> None:
    whole = [round(10 * value) for value in tenths]
    signs = itertools.product((-1, 1), repeat=len(whole))
    sums = [abs(sum(s * w for s, w in zip(row, whole, strict=True))) for row in signs]
    expected = sum(value >= abs(sum(whole)) for value in sums) / len(sums)
    assert sign_flip(np.array(tenths)) == pytest.approx(expected, abs=1e-12)


def test_many_queries_get_nearly_the_p_of_the_t_test() -> None:
    differences = np.random.default_rng(3).normal(0.03, 0.2, 200)
    found = sign_flip(differences)
    expected = scipy.stats.ttest_1samp(differences, 0).pvalue
    assert found == pytest.approx(expected, abs=0.005)


def test_random_signs_are_fair_and_independent() -> None:
    sums = signed_sums(np.eye(20), draws=20_000).T
    assert set(np.unique(sums)) == {-1.0, 1.0}
    assert np.abs(sums.mean(axis=0)).max() < 4 / np.sqrt(20_000)
    products = np.abs(sums.T @ sums / 20_000 - np.eye(20))
    assert products.max() < 4.5 / np.sqrt(20_000)


@pytest.mark.parametrize("n", [7, 16, 17, 23, 24, 64, 65, 130])
def test_metrics_share_the_signs_and_each_has_its_own_p(n: int) -> None:
    rows = np.random.default_rng(n).normal(0.1, 0.3, (4, n))
    together = sign_flip(rows)
    assert together.tolist() == [float(sign_flip(row)) for row in rows]


def test_the_same_bytes_every_time_and_in_whatever_order() -> None:
    rows = np.random.default_rng(4).normal(0.02, 0.2, (3, 300))
    first = sign_flip(rows)
    assert first.tobytes() == sign_flip(rows.copy()).tobytes()
    assert first[::-1].tobytes() == sign_flip(rows[::-1]).tobytes()
    # What every other machine has to give, too.
    assert (sign_flip(rows) * (DRAWS + 1)).round().tolist() == [9, 7212, 5074]


@pytest.mark.parametrize("n", [6, 40])
def test_pairs_get_the_p_that_each_would_get_alone(n: int) -> None:
    scores = np.random.default_rng(n).random((5, n)).round(1)
    alone = flipped(scores - scores[0])
    for one, other in itertools.permutations(range(5), 2):
        pair = alone[one] - alone[other]
        direct = flipped((scores[one] - scores[other])[None])[0]
        assert pair.p == pytest.approx(direct.p, abs=1e-12)
        assert pair.limits(0.05) == pytest.approx(direct.limits(0.05), abs=1e-9)


@pytest.mark.parametrize(("error", "p"), [(1e-10, 0.25), (1e-14, 1.0)])
def test_pairs_forgive_rounding_and_no_more(error: float, p: float) -> None:
    scores = np.random.default_rng(0).random((3, 40)).round(1)
    scores[2] = scores[1]
    scores[2, :3] += error
    baseline, one, other = flipped(scores - scores[0])
    assert baseline.p == 1.0
    assert (other - one).p == p
    assert (one - other).p == p


def test_the_signs_of_a_cluster_are_flipped_together() -> None:
    dice = np.random.default_rng(5)
    clusters = np.repeat(np.arange(9), 7)
    differences = dice.normal(0.1, 0.1, 9)[clusters] + dice.normal(0, 0.05, 63)
    found = sign_flip(differences, clusters=clusters)
    totals = np.array([differences[clusters == c].sum() for c in range(9)])
    assert found == sign_flip(totals)
    assert found > sign_flip(differences)


def test_a_query_without_a_difference_changes_nothing() -> None:
    differences = np.random.default_rng(6).normal(0.2, 0.3, 12)
    padded = np.append(differences, [0.0, 0.0, 0.0])
    assert sign_flip(padded) == pytest.approx(float(sign_flip(differences)))


@pytest.mark.parametrize("n", [1, 3, 40])
def test_no_difference_anywhere_is_no_evidence(n: int) -> None:
    assert sign_flip(np.zeros(n)) == 1.0


@pytest.mark.parametrize("n", [1, 2, 5, 16, 17, 500])
def test_a_constant_difference_has_the_smallest_p_there_is(n: int) -> None:
    found = float(sign_flip(np.full(n, 0.1)))
    assert found >= smallest_p(n)
    assert found == pytest.approx(smallest_p(n), abs=3 / DRAWS if n > 16 else 0)


def test_five_queries_are_too_few_for_any_finding() -> None:
    assert [smallest_p(n) for n in (0, 1, 5, 6)] == [1, 1, 1 / 16, 1 / 32]
    assert [smallest_p(n) for n in (16, 17, 500)] == [2.0**-15, 1e-4, 1e-4]


def test_what_cannot_be_tested_is_an_error() -> None:
    with pytest.raises(ParameterError, match="scores must be finite"):
        sign_flip(np.array([0.1, np.nan]))


def p_of(differences: Floats, sizes: Floats, mean: float) -> float:
    """P of one hypothetical mean difference, over all signs, with t itself."""
    shifted = differences - mean * sizes
    rows = np.array([*itertools.product((1, -1), repeat=len(shifted))]) * shifted
    spread = np.sqrt((rows**2).sum(axis=1) - rows.sum(axis=1) ** 2 / len(shifted))
    with np.errstate(divide="ignore"):
        t = np.abs(rows.sum(axis=1)) / spread
    return float((t >= t[0] * (1 - 1e-9)).mean())


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("n", [6, 9, 12, 16])
def test_limits_are_where_the_studentised_test_begins_to_reject(
    n: int,
    clustered: bool,  # noqa: FBT001
) -> None:
    dice = np.random.default_rng(n)
    sizes = dice.integers(1, 4, n).astype(float) if clustered else np.ones(n)
    clusters = np.repeat(np.arange(n), sizes.astype(int))
    values = dice.normal(0.1, 0.3, len(clusters)).round(2)
    row = flipped(values[None], clusters=clusters)[0]
    low, high = row.limits(0.05)
    totals = row.totals
    assert row.p == pytest.approx(p_of(totals, sizes, 0.0), abs=1e-12)
    for limit, outwards in ((low, -1e-7), (high, 1e-7)):
        assert p_of(totals, sizes, limit - outwards) > 0.05
        assert p_of(totals, sizes, limit + outwards) <= 0.05


@given(st.lists(st.sampled_from([-0.6, -0.1, 0.1, 0.25]), max_size=8))
def test_p_is_exact_where_few_of_many_queries_differ(moved: list[float]) -> None:
    values = np.zeros(60)
    values[: len(moved)] = moved
    if not moved:
        assert sign_flip(values) == 1.0
        return
    every = np.array([*itertools.product((1, -1), repeat=len(moved))]) @ moved
    expected = (np.abs(every) >= abs(sum(moved)) - 1e-12).mean()
    assert float(sign_flip(values)) == expected


def test_p_is_exact_up_to_16_queries_that_differ() -> None:
    moved = np.random.default_rng(9).normal(0.1, 0.3, 16)
    among = np.concatenate([moved, np.zeros(44)])
    assert float(sign_flip(among)) == pytest.approx(float(sign_flip(moved)), abs=1e-12)


@pytest.mark.parametrize("n", [9, 30])
def test_rows_that_know_the_same_queries_share_their_numbers(n: int) -> None:
    values = np.random.default_rng(8).normal(0.1, 0.3, (3, n))
    known = np.ones((3, n), np.bool_)
    for row, same in zip(flipped(values, known=known), flipped(values), strict=True):
        assert (row.p, row.limits(0.05)) == (same.p, same.limits(0.05))
        assert row.counts.tolist() == same.counts.tolist()
    known[:, 5:], values[:, 5:] = False, 0.0
    for row, same in zip(
        flipped(values, known=known), flipped(values[:, :5]), strict=True
    ):
        assert row.n == 5
        assert row.mean == pytest.approx(same.mean)


def test_a_query_that_is_not_there_is_left_out() -> None:
    values = np.random.default_rng(8).normal(0.1, 0.3, (2, 30))
    known = np.ones((2, 30), np.bool_)
    known[1, 20:], values[1, 20:] = False, 0.0
    kept = values.copy()
    row = flipped(values, known=known)[1]
    assert (values == kept).all()
    alone = flipped(values[1:, :20])[0]
    assert row.n == 20
    assert row.mean == pytest.approx(alone.mean)
    assert row.limits(0.05) == pytest.approx(alone.limits(0.05), abs=0.02)
