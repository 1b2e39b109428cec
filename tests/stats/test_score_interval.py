"""Tango's interval against its definition."""

import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, strategies as st

from karat.extend import Floats
from karat.stats.paired import score_interval

COUNTS = st.integers(0, 60)


def differences(gained: int, lost: int, same: int) -> Floats:
    return np.repeat([1.0, -1.0, 0.0], [gained, lost, same])


def score(difference: float, gained: int, lost: int, n: int) -> float:
    """The score statistic, its nuisance parameter found by maximising likelihood."""

    def unlikely(chance: float) -> float:
        parts = ((gained, chance + difference), (lost, chance))
        rest = (n - gained - lost, 1 - 2 * chance - difference)
        return -sum(k * math.log(p) for k, p in (*parts, rest) if k)

    low, high = max(0.0, -difference), (1 - difference) / 2
    best = scipy.optimize.minimize_scalar(
        unlikely,
        bounds=(low + 1e-12, high - 1e-12),
        method="bounded",
        options={"xatol": 1e-12},
    ).x
    variance = n * (2 * best + difference * (1 - difference))
    return float((gained - lost - n * difference) / math.sqrt(variance))


@pytest.mark.parametrize(
    ("gained", "lost", "n"),
    [(1, 7, 21), (9, 1, 100), (40, 31, 200), (3, 3, 12), (0, 5, 30), (20, 4, 24)],
)
def test_the_limits_are_where_the_score_test_begins_to_reject(
    gained: int, lost: int, n: int
) -> None:
    found = score_interval(differences(gained, lost, n - gained - lost))
    z = 1.959963984540054
    assert score(found.low, gained, lost, n) == pytest.approx(z, abs=1e-4)
    assert score(found.high, gained, lost, n) == pytest.approx(-z, abs=1e-4)
    assert found.low < (gained - lost) / n < found.high


def test_an_interval_as_published() -> None:
    # Fagerland, Lydersen and Laake (2014): 1 and 7 of 21 pairs differ.
    found = score_interval(differences(1, 7, 13))
    assert found[:2] == pytest.approx((-0.517, -0.026), abs=0.0005)


@given(COUNTS, COUNTS, COUNTS, st.floats(0.5, 0.99))
def test_the_other_way_round_is_the_mirror_image(
    gained: int, lost: int, same: int, level: float
) -> None:
    if not gained + lost + same:
        return
    found = score_interval(differences(gained, lost, same), level)
    mirrored = score_interval(differences(lost, gained, same), level)
    assert (found.low, found.high) == pytest.approx((-mirrored.high, -mirrored.low))
    assert -1.0 <= found.low < found.high <= 1.0


def test_all_ties_and_all_wins_still_leave_room() -> None:
    z2 = 1.959963984540054**2
    assert score_interval(np.zeros(30)).high == pytest.approx(z2 / (30 + z2))
    won = score_interval(np.ones(30))
    assert won.high == 1.0
    assert won.low < 0.9
