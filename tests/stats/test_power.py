"""Power and sample size against statsmodels."""

import math

import pytest
from hypothesis import given, strategies as st
from statsmodels.stats.power import TTestPower

from karat.stats.power import minimum_detectable_effect, power_of, queries_needed

SIZES = (2, 3, 4, 8, 15, 50, 126, 1000, 100_000)


@pytest.mark.parametrize("queries", SIZES)
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_power_equals_statsmodels(queries: int, level: float) -> None:
    for effect in (0.0, 0.01, 0.1, 0.5, 1.0, 4.0):
        expected = float(TTestPower().power(effect, queries, 1 - level))
        found = power_of(0.2 * effect, 0.2, queries, level=level)
        # SciPy's noncentral t is NaN here and there.
        if not math.isnan(expected):
            assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("queries", SIZES)
@pytest.mark.parametrize("power", [0.3, 0.8, 0.95])
def test_the_detectable_effect_has_the_power(queries: int, power: float) -> None:
    effect = minimum_detectable_effect(queries, 0.2, power=power)
    assert power_of(effect, 0.2, queries) == pytest.approx(power, abs=1e-9)
    assert effect == 2 * minimum_detectable_effect(queries, 0.1, power=power)


@given(st.floats(0.001, 0.5), st.floats(0.05, 0.4))
def test_as_many_queries_as_needed_and_no_more(difference: float, sd: float) -> None:
    needed = int(queries_needed(difference, sd))
    assert needed == queries_needed(-difference, sd)
    assert power_of(difference, sd, needed) >= 0.8
    assert needed == 2 or power_of(difference, sd, needed - 1) < 0.8


def test_the_ends_of_the_scale() -> None:
    assert queries_needed(0.05, 0.2) == 128
    assert queries_needed(0.0, 0.2) == math.inf
    assert queries_needed(0.1, 0.0) == 2
    assert queries_needed(1e-6, 0.2) > 1e11
    assert minimum_detectable_effect(1, 0.2) == math.inf
    assert minimum_detectable_effect(20, 0.0) == 0.0
    assert power_of(0.1, 0.2, 1) == 0.0
    assert (power_of(0.1, 0.0, 5), power_of(0.0, 0.0, 5)) == (1.0, 0.0)
