"""Corrections for several tests, against statsmodels and by enumeration."""

import itertools

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from karat.extend import Floats, Ints
from karat.stats.multiple_tests import benjamini_hochberg, holm, max_t
from karat.stats.sign_flip import flipped, sign_flip


@pytest.mark.slow
@pytest.mark.parametrize("tests", [1, 2, 5, 40])
def test_corrections_equal_statsmodels(tests: int) -> None:
    # Rounded, so that some are equal; squared, so that some are small.
    p = (np.random.default_rng(tests).random(tests) ** 2).round(2)
    for ours, method in (
        (holm(p), "holm"),
        (benjamini_hochberg(p), "fdr_bh"),
    ):
        assert ours == pytest.approx(multipletests(p, method=method)[1], abs=1e-12)


def test_corrections_by_hand() -> None:
    p = np.array([0.04, 0.01, 0.5, 0.03])
    assert holm(p) == pytest.approx([0.09, 0.04, 0.5, 0.09])
    expected = [0.04 * 4 / 3, 0.04, 0.5, 0.04 * 4 / 3]
    assert benjamini_hochberg(p) == pytest.approx(expected)
    for correct in (holm, benjamini_hochberg):
        assert correct(np.array([0.9, 0.8])).max() <= 1
        assert correct(np.array([0.2])).tolist() == [0.2]


def test_a_test_that_was_not_made_does_not_count() -> None:
    p = np.array([0.01, np.nan, 0.03])
    assert holm(p) == pytest.approx([0.02, np.nan, 0.03], nan_ok=True)
    assert benjamini_hochberg(p) == pytest.approx([0.02, np.nan, 0.03], nan_ok=True)
    assert np.isnan(holm(np.array([np.nan]))).all()
    assert not len(holm(np.array([])))


def adjusted(rows: Floats, clusters: Ints | None = None) -> Floats:
    return np.array([one.p for one in max_t(flipped(rows, clusters=clusters))])


def enumerated(differences: Floats) -> list[float]:
    """Westfall and Young's adjusted p over all signs, with t itself, one by one."""
    queries = differences.shape[1]

    def statistics(signs: tuple[int, ...]) -> Floats:
        rows = differences * signs
        spread = rows.std(axis=1, ddof=1)
        t: Floats = np.abs(rows.mean(axis=1)) * np.sqrt(queries) / spread
        return t

    every = np.array([*map(statistics, itertools.product((1, -1), repeat=queries))])
    largest = every.max(axis=1)
    return [float((largest >= one * (1 - 1e-12)).mean()) for one in every[0]]


@pytest.mark.parametrize("n", [5, 9])
def test_max_t_equals_its_definition(n: int) -> None:
    dice = np.random.default_rng(n)
    rows = dice.normal(0, 0.2, n) + dice.normal([[0.0], [0.2], [0.4]], 0.2, (3, n))
    assert adjusted(rows) == pytest.approx(enumerated(rows))


def test_systems_that_equal_the_baseline_share_the_level_of_the_family() -> None:
    assert max_t(flipped(np.zeros((2, 20)))) == [(1.0, 0.025)] * 2


def test_max_t_of_one_system_is_its_sign_flip_test() -> None:
    row = np.random.default_rng(0).normal(0.05, 0.2, (1, 60))
    (found,) = max_t(flipped(row))
    assert found.p == sign_flip(row)[0]
    assert found.alpha == pytest.approx(0.05, abs=2e-4)


def test_max_t_is_between_no_correction_and_bonferroni() -> None:
    dice = np.random.default_rng(1)
    noise = dice.normal(0, 0.2, 80)
    rows = noise + dice.normal(np.linspace(0, 0.08, 8)[:, None], 0.1, (8, 80))
    alone = sign_flip(rows)
    assert (adjusted(rows) <= 8 * alone + 0.005).all()
    assert (adjusted(rows) >= alone).all()


def test_a_system_is_found_alone_at_its_level_where_it_is_found_in_the_family() -> None:
    dice = np.random.default_rng(5)
    for _ in range(60):
        shift = dice.uniform(0, 0.12, (4, 1))
        rows = flipped(dice.normal(shift, 0.2, (4, int(dice.integers(2, 40)))))
        for row, one in zip(rows, max_t(rows), strict=True):
            assert (one.p <= 0.05) == (row.p <= one.alpha)
            assert one.alpha > 0
            low, high = row.limits(one.alpha)
            assert (one.p <= 0.05) == (not low <= 0 <= high)


@pytest.mark.parametrize("systems", [1, 3])
def test_a_p_of_just_alpha_is_found_alone_too(systems: int) -> None:
    rows = flipped(np.full((systems, 5), 0.1))
    for alpha, found in ((0.0625, True), (0.0624, False)):
        for row, one in zip(rows, max_t(rows, alpha), strict=True):
            assert one.p == row.p == 0.0625
            assert (row.p <= one.alpha) is found


def test_max_t_keeps_the_order_of_systems_and_the_same_bytes() -> None:
    rows = np.random.default_rng(2).normal(0.02, 0.2, (4, 50))
    first = adjusted(rows)
    assert first.tobytes() == adjusted(rows.copy()).tobytes()
    assert adjusted(rows[::-1])[::-1] == pytest.approx(first, abs=1e-12)


def test_a_system_equal_to_the_baseline_is_never_found() -> None:
    rows = np.array([np.zeros(20), np.full(20, 0.1)])
    found = adjusted(rows)
    assert found[0] == 1.0
    assert found[1] < 0.001


def test_max_t_flips_clusters_together() -> None:
    clusters = np.repeat(np.arange(6), 10)
    rows = np.random.default_rng(3).normal(0.1, 0.1, (2, 6))[:, clusters]
    assert adjusted(rows, clusters).min() >= 2.0**-5
