"""Metrics of retrieved sets, and the counts behind them."""

import numpy as np
import pytest

from karat.extend import Metric, ParameterError
from karat.metrics.sets import (
    NumNonrelJudgedRet,
    NumRel,
    NumRelRet,
    NumRet,
    SetAP,
    SetF,
    SetPrecision,
    SetRecall,
    SetRelativePrecision,
    Utility,
)
from tests.metrics.judged_runs import one

# Five retrieved, two of the three relevant among them, one rejected, two unknown.
HITS = one("xanby", {"a": 1, "b": 2, "c": 1, "n": 0, "u": -1})


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (SetPrecision(), 2 / 5),
        (SetPrecision(threshold=2), 1 / 5),
        (SetRecall(), 2 / 3),
        (SetAP(), 4 / 15),
        (SetF(), 2 * (2 / 5) * (2 / 3) / (2 / 5 + 2 / 3)),
        (SetF(beta=0.5), 1.5 * (2 / 5) * (2 / 3) / (0.5 * 2 / 5 + 2 / 3)),
        (SetF(beta=0), 2 / 5),
        (SetRelativePrecision(), 2 / 3),
        (NumRet(), 5),
        (NumRel(), 3),
        (NumRel(threshold=2), 1),
        (NumRelRet(), 2),
        (NumNonrelJudgedRet(), 1),
        (NumNonrelJudgedRet(threshold=2), 2),
        (Utility(), 2 - 3),
        (Utility(2, -1, -0.5, 0), 4 - 3 - 0.5),
        (Utility(0, 0, 0, 1, collection=100), 100 - 5 - 1),
    ],
    ids=str,
)
def test_values_by_hand(metric: Metric, value: float) -> None:
    assert metric.score(HITS) == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize(
    ("threshold", "found", "relevant"), [(None, 2, 3), (1, 2, 3), (2, 1, 2), (3, 0, 1)]
)
def test_thresholds_count_where_all_grades_are_positive(
    threshold: float | None, found: int, relevant: int
) -> None:
    hits = one("axb", {"a": 1, "b": 2, "c": 3})
    assert NumRel(threshold).score(hits) == relevant
    assert NumRelRet(threshold).score(hits) == found
    assert SetRecall(threshold).score(hits) == pytest.approx(found / relevant)


def test_a_small_set_is_measured_by_what_it_could_hold() -> None:
    assert SetRelativePrecision().score(one("a", dict.fromkeys("abc", 1.0))) == 1.0


def test_nothing_found_is_zero_and_nothing_relevant_is_undefined() -> None:
    for metric in (SetF(), SetAP(), SetRelativePrecision(), SetRecall()):
        assert metric.score(one("x", {"a": 1})).tolist() == [0.0]
        assert np.isnan(metric.score(one("x", {"n": 0})))
    assert SetPrecision().score(one("x", {"n": 0})).tolist() == [0.0]


@pytest.mark.parametrize("beta", [-1.0, float("inf"), float("nan")])
def test_beta_is_a_number_from_0_on(beta: float) -> None:
    with pytest.raises(ParameterError, match=r"beta must be a number >= 0"):
        SetF(beta)


def test_utility_weights_are_finite() -> None:
    with pytest.raises(ParameterError, match=r"noise must be a finite number"):
        Utility(noise=float("inf"))
