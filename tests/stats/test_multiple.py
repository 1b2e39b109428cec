"""Corrections for several tests, against statsmodels and by enumeration."""

import itertools

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from karat.data.arrays import Floats
from karat.errors import ParameterError
from karat.stats.multiple_tests import benjamini_hochberg, holm, max_t
from karat.stats.sign_flip import sign_flip


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


def test_a_test_that_was_not_made_does_not_count() -> None:
    p = np.array([0.01, np.nan, 0.03])
    assert holm(p) == pytest.approx([0.02, np.nan, 0.03], nan_ok=True)
    assert benjamini_hochberg(p) == pytest.approx([0.02, np.nan, 0.03], nan_ok=True)
    assert np.isnan(holm(np.array([np.nan]))).all()
    assert not len(holm(np.array([])))


def enumerated(differences: Floats, *, step_down: bool) -> list[float]:
    """Westfall and Young's adjusted p over all signs, with t itself, one by one."""
    systems, queries = differences.shape

    def statistics(signs: tuple[int, ...]) -> Floats:
        rows = differences * signs
        spread = rows.std(axis=1, ddof=1)
        t: Floats = np.abs(rows.mean(axis=1)) * np.sqrt(queries) / spread
        return t

    every = np.array([*map(statistics, itertools.product((1, -1), repeat=queries))])
    observed = every[0]
    order = np.argsort(-observed)
    adjusted, largest = np.zeros(systems), 0.0
    for step, system in enumerate(order):
        rivals = order[step:] if step_down else order
        count = (every[:, rivals].max(axis=1) >= observed[system] * (1 - 1e-12)).mean()
        largest = max(largest, count)
        adjusted[system] = largest
    return adjusted.tolist()


@pytest.mark.parametrize("step_down", [True, False])
@pytest.mark.parametrize("n", [5, 9])
def test_max_t_equals_its_definition(n: int, *, step_down: bool) -> None:
    dice = np.random.default_rng(n)
    rows = dice.normal(0, 0.2, n) + dice.normal([[0.0], [0.2], [0.4]], 0.2, (3, n))
    found = max_t(rows, step_down=step_down)
    assert found == pytest.approx(enumerated(rows, step_down=step_down))


def test_max_t_of_one_system_is_its_sign_flip_test() -> None:
    row = np.random.default_rng(0).normal(0.05, 0.2, (1, 60))
    assert max_t(row).tolist() == sign_flip(row).tolist()


def test_max_t_finds_no_less_than_holm_and_stepping_down_no_less_than_one_step() -> (
    None
):
    dice = np.random.default_rng(1)
    noise = dice.normal(0, 0.2, 80)
    rows = noise + dice.normal(np.linspace(0, 0.08, 8)[:, None], 0.1, (8, 80))
    found = max_t(rows)
    alone = sign_flip(rows)
    assert (found <= holm(alone) + 0.005).all()
    assert (found <= max_t(rows, step_down=False)).all()
    assert (found >= alone).all()


def test_max_t_keeps_the_order_of_systems_and_the_same_bytes() -> None:
    rows = np.random.default_rng(2).normal(0.02, 0.2, (4, 50))
    first = max_t(rows)
    assert first.tobytes() == max_t(rows.copy()).tobytes()
    assert max_t(rows[::-1])[::-1] == pytest.approx(first, abs=1e-12)


def test_a_system_equal_to_the_baseline_is_never_found() -> None:
    rows = np.array([np.zeros(20), np.full(20, 0.1)])
    found = max_t(rows)
    assert found[0] == 1.0
    assert found[1] < 0.001


def test_max_t_flips_clusters_together() -> None:
    clusters = np.repeat(np.arange(6), 10)
    rows = np.random.default_rng(3).normal(0.1, 0.1, (2, 6))[:, clusters]
    assert max_t(rows, clusters=clusters).min() >= 2.0**-5


def test_max_t_takes_systems_by_queries() -> None:
    with pytest.raises(ParameterError, match="systems by queries"):
        max_t(np.ones(4))
    with pytest.raises(ParameterError, match="finite, at least one"):
        max_t(np.array([[0.1, np.nan]]))
