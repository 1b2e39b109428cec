"""The order of systems by people and by a judge."""

import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from karat.extend import Floats
from karat.judging.agreement import Order, order_agreement
from karat.stats.rank_correlation import kendall_taus, spearman_rho


def order_of(human: Floats, judged: Floats) -> Order:
    names = [f"s{n}" for n in range(len(human))]
    one, other = (dict(zip(names, rows, strict=True)) for rows in (human, judged))
    return order_agreement(one, other, "rr", human.shape[1])


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=20)
)
@settings(deadline=None)
def test_tau_equals_scipy(pairs: list[tuple[int, int]]) -> None:
    from scipy.stats import kendalltau  # noqa: PLC0415

    both = np.array(pairs, float)
    one, other = both[:, 0], both[:, 1]
    expected = kendalltau(one, other).statistic
    assert float(kendall_taus(one, other)) == pytest.approx(expected, nan_ok=True)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=20)
)
@settings(deadline=None)
def test_rho_equals_scipy(pairs: list[tuple[int, int]]) -> None:
    from scipy.stats import rankdata  # noqa: PLC0415

    both = np.array(pairs, float)
    ranks = [rankdata(both[:, side]) for side in (0, 1)]
    if any(np.ptp(row) == 0 for row in ranks):
        assert math.isnan(spearman_rho(both[:, 0], both[:, 1]))
        return
    expected = np.corrcoef(*ranks)[0, 1]
    assert spearman_rho(both[:, 0], both[:, 1]) == pytest.approx(expected)


def test_the_order_of_systems_has_an_interval_that_holds_its_tau() -> None:
    rng = np.random.default_rng(3)
    quality = np.linspace(0.2, 0.8, 6)[:, None]
    human = (rng.random((6, 200)) < quality).astype(float)
    judged = np.where(rng.random(human.shape) < 0.9, human, 1 - human)
    order = order_of(human, judged)
    assert order.interval is not None
    assert order.interval.low <= order.tau <= order.interval.high
    assert order.tau > 0.8
    assert order.interval.low > 0.5
    assert order_of(human, judged) == order


def test_queries_that_one_side_cannot_score_are_left_out() -> None:
    human = np.array([[0.1, np.nan, 0.2], [0.5, 0.9, 0.6]])
    order = order_of(human, np.nan_to_num(human, nan=1.0))
    assert (len(order.people), order.queries, order.labelled) == (2, 2, 3)
    assert "order over 2 of 3 queries: those where both" in " ".join(order.notes())


def test_the_order_has_no_number_where_there_is_none() -> None:
    tied = order_of(np.ones((3, 4)), np.eye(3, 4))
    assert math.isnan(tied.tau)
    assert tied.interval is None
    assert "by one of the labels all runs score" in tied.notes()[-1]
    unscored = order_of(np.full((2, 3), np.nan), np.ones((2, 3)))
    assert math.isnan(unscored.tau)
    assert unscored.queries == 0
    dash = "\N{EN DASH}"
    assert unscored.rows()[0] == ["order of 2 runs, tau", dash, "", "0"]
    assert unscored.rows()[1][1] == dash
    assert "rests on 0 of 3 queries" in unscored.notes()[0]
    facts = json.loads(json.dumps(unscored.to_dict(), allow_nan=False))
    assert facts["tau"] is None
    assert facts["judge"] == {"s0": None, "s1": None}


def test_an_order_that_every_draw_confirms_is_not_said_to_be_certain() -> None:
    human = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    order = order_of(human, human)
    assert (order.tau, order.interval) == (1.0, None)
    one = order_of(human[:, :1], human[:, :1])
    assert (one.tau, one.rows()[0][2]) == (1.0, "")


def test_a_reader_sees_which_run_is_better_by_whom() -> None:
    people = {"dense": np.array([0.9, 0.6]), "keyword": np.array([0.7, 0.5])}
    judge = {"dense": np.array([0.7, 0.7]), "keyword": np.array([0.8, 0.9])}
    order = order_agreement(people, judge, "ndcg@10", 2)
    assert order.notes()[0] == (
        "ndcg@10 by people: dense 0.7500 > keyword 0.6000; "
        "by the judge: keyword 0.8500 > dense 0.7000"
    )
    assert order.reversed
    assert order.notes()[-1].startswith("order reversed: the runs come out")
    facts = order.to_dict()
    assert (facts["metric"], facts["reversed"]) == ("ndcg@10", True)
    assert facts["people"] == pytest.approx({"dense": 0.75, "keyword": 0.6})
    same = order_agreement(people, people, "ndcg@10", 2)
    assert not same.reversed
    assert "reversed" not in " ".join(same.notes())


def test_the_interval_of_tau_is_that_of_all_ways_to_draw_the_queries() -> None:
    rng = np.random.default_rng(5)
    human, judged = rng.random((4, 4)), rng.random((4, 4))
    drawn = [
        float(kendall_taus(human[:, rows].mean(axis=1), judged[:, rows].mean(axis=1)))
        for rows in map(list, product(range(4), repeat=4))
    ]
    interval = order_of(human, judged).interval
    assert interval is not None
    # 256 equally likely draws. Tau moves in thirds, so limits have a mass of their own.
    assert np.less(drawn, interval.low - 1e-9).mean() <= 0.03
    assert np.less_equal(drawn, interval.low + 1e-9).mean() >= 0.02
    assert np.greater(drawn, interval.high + 1e-9).mean() <= 0.03
    assert np.greater_equal(drawn, interval.high - 1e-9).mean() >= 0.02
