"""Metrics read at points of recall, or at multiples of R."""

from typing import Any

import numpy as np
import pytest

from karat.extend import InterpolatedAverage, InterpolatedPrecision, ParameterError
from karat.metrics.recall_points import RPrecision, items_needed
from tests.metrics.judged_runs import one

GRADES = dict.fromkeys("abcd", 1.0)
# Found at ranks 2, 4 and 5 of four: precision 1/2, 2/4, 3/5.
HITS = one("xaybcz", GRADES)


def test_interpolated_precision_is_the_best_from_the_point_on() -> None:
    for recall, best in [(0, 0.6), (0.25, 0.6), (0.75, 0.6), (1, 0)]:
        assert InterpolatedPrecision(recall).score(HITS).tolist() == [best]


def test_recall_points_round_to_the_nearest_item_or_up_as_version_9_did() -> None:
    relevant = np.array([4, 4, 30])
    assert items_needed(0.6, relevant).tolist() == [2, 2, 18]
    assert items_needed(0.1, relevant).tolist() == [0, 0, 3]
    assert items_needed(0.1, relevant, "up").tolist() == [1, 1, 3]
    assert items_needed(0.125, np.array([4])).tolist() == [1]


def test_half_an_item_rounds_up_only_if_it_is_a_half() -> None:
    almost = 0.49999999999999994
    assert items_needed(almost, np.array([1])).tolist() == [0]


def test_the_rounding_decides_where_only_a_tenth_is_asked_for() -> None:
    hits = one("axb", dict.fromkeys("abcdefgh", 1.0))
    nearest, up = (InterpolatedPrecision(0.3, how) for how in ("nearest", "up"))
    assert nearest.score(hits).tolist() == [2 / 3]
    assert up.score(hits).tolist() == [0.0]


def test_the_eleven_point_average_is_the_mean_of_its_points() -> None:
    points = [InterpolatedPrecision(n / 10).score(HITS)[0] for n in range(11)]
    assert InterpolatedAverage().score(HITS) == pytest.approx(np.mean(points))
    three = InterpolatedAverage().over(HITS, (0.2, 0.5, 0.8))
    assert three == pytest.approx((0.6 + 0.6 + 0.6) / 3)


def test_r_precision_looks_at_as_many_documents_as_are_relevant() -> None:
    assert RPrecision().score(HITS).tolist() == [2 / 4]
    assert RPrecision(mult=2).score(HITS).tolist() == [3 / 8]
    # 0.2 * 4 + 0.9 is cut to 1.
    assert RPrecision(mult=0.2).score(HITS).tolist() == [0 / 1]


def test_r_precision_at_no_depth_at_all_is_zero() -> None:
    assert RPrecision(mult=0.05).score(one("a", {"a": 1})).tolist() == [0.0]


@pytest.mark.parametrize("recall", [-0.1, 1.1, float("nan"), True, "0.5", None])
def test_recall_lies_between_0_and_1(recall: Any) -> None:
    with pytest.raises(ParameterError, match=r"recall must be a number >= 0 and <= 1"):
        InterpolatedPrecision(recall)


@pytest.mark.parametrize("mult", [0.0, -1.0, float("inf")])
def test_a_multiple_of_r_is_positive(mult: float) -> None:
    with pytest.raises(ParameterError, match=r"mult must be a number > 0"):
        RPrecision(mult)
