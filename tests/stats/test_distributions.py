"""Quantiles against SciPy, an oracle for tests only."""

import math
import os
import subprocess
import sys

import pytest
import scipy.stats
from hypothesis import given, strategies as st

from karat.stats.distributions import (
    normal_below,
    normal_quantile,
    t_below,
    t_quantile,
)

PROBABILITIES = (1e-9, 0.001, 0.025, 0.3, 0.5, 0.500001, 0.75, 0.975, 0.9995, 1 - 1e-9)
DEGREES = (0.5, 1, 1.7, 2, 3, 4.5, 9, 29, 99.3, 999, 999.999, 1000, 5000, 1e6, 1e12)


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_normal_quantiles_equal_scipy(probability: float) -> None:
    expected = scipy.stats.norm.ppf(probability)
    assert normal_quantile(probability) == pytest.approx(expected, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("probability", PROBABILITIES)
def test_t_quantiles_equal_scipy(probability: float, df: float) -> None:
    expected = scipy.stats.t.ppf(probability, df)
    assert t_quantile(probability, df) == pytest.approx(expected, rel=1e-10, abs=1e-12)


@given(st.floats(0.001, 0.999), st.floats(0.3, 1e5))
def test_t_quantiles_equal_scipy_anywhere(probability: float, df: float) -> None:
    expected = scipy.stats.t.ppf(probability, df)
    assert t_quantile(probability, df) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@given(st.floats(0.001, 0.499), st.floats(0.5, 5000))
def test_t_is_symmetric_and_beyond_the_normal(tail: float, df: float) -> None:
    size = t_quantile(1.0 - tail, df)
    assert size == pytest.approx(-t_quantile(tail, df), rel=1e-9)
    assert size > normal_quantile(1.0 - tail)


def test_the_room_loads_neither_scipy_nor_the_statistics_module() -> None:
    code = (
        "import sys, karat.stats; "
        "sys.exit(bool({'scipy', 'statistics', 'statsmodels'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("t", [-30.0, -20.0, -3.0, -0.4, -1e-3, 0.0, 0.7, 2.0, 40.0])
def test_tails_of_t_equal_scipy(t: float, df: float) -> None:
    expected = float(scipy.stats.t.cdf(t, df))
    found = t_below(t, df)
    assert found == pytest.approx(expected, abs=1e-10)
    if t < 0 and expected > 1e-100:
        assert found == pytest.approx(expected, rel=1e-8, abs=0)


@pytest.mark.parametrize("t", [-0.4, -3.0, -10.0])
@pytest.mark.parametrize("df", [1000, 1300, 2000])
def test_the_expansion_of_tails_keeps_twelve_digits(t: float, df: float) -> None:
    assert t_below(t, df) == pytest.approx(scipy.stats.t.cdf(t, df), rel=1e-12, abs=0)


def test_tails_at_the_ends() -> None:
    assert [t_below(t, df) for t in (-math.inf, math.inf) for df in (3, 1e5)] == [
        0.0,
        0.0,
        1.0,
        1.0,
    ]
    assert math.isnan(t_below(math.nan, 4))
    assert normal_below(0.0) == 0.5
