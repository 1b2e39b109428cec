"""Agreement figures, each against a published value or another library."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from karat.data.arrays import Floats
from karat.errors import DataError
from karat.judging.agreement import (
    agreement,
    cohen_kappa,
    flips,
    krippendorff_alpha,
)
from karat.judging.ordering import kendall_tau, order_agreement

graded = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60
)


def columns(pairs: list[tuple[int, int]]) -> tuple[Floats, Floats]:
    both = np.array(pairs, float)
    return both[:, 0], both[:, 1]


@given(graded)
@settings(deadline=None)
def test_kappa_equals_statsmodels(pairs: list[tuple[int, int]]) -> None:
    from statsmodels.stats.inter_rater import cohens_kappa  # noqa: PLC0415

    one, other = columns(pairs)
    table = np.zeros((4, 4))
    np.add.at(table, (one.astype(int), other.astype(int)), 1)
    chance = np.outer(table.sum(1), table.sum(0)) / table.sum()
    if chance.trace() == table.sum():
        assert math.isnan(cohen_kappa(one, other))
        return
    plain = cohens_kappa(table, return_results=False)
    weighted = cohens_kappa(table, wt="fc", return_results=False)
    assert cohen_kappa(one, other) == pytest.approx(plain, abs=1e-12)
    assert cohen_kappa(one, other, quadratic=True) == pytest.approx(weighted, abs=1e-12)


def test_kappa_of_the_textbook() -> None:
    # Cohen's example as it is mostly told: 50 proposals, 20 + 15 agreed on.
    one = np.repeat([1.0, 1, 0, 0], [20, 5, 10, 15])
    other = np.repeat([1.0, 0, 1, 0], [20, 5, 10, 15])
    assert cohen_kappa(one, other) == pytest.approx(0.4)


def krippendorff_by_definition(one: Floats, other: Floats) -> float:
    """Pair by pair, as the definition says, with no table."""
    values = [*one, *other]
    counts = {value: values.count(value) for value in values}

    def distance(a: float, b: float) -> float:
        low, high = sorted((a, b))
        between = sum(n for value, n in counts.items() if low <= value <= high)
        return float((between - (counts[low] + counts[high]) / 2) ** 2)

    observed = sum(distance(a, b) for a, b in zip(one, other, strict=True)) / len(one)
    pairs = [
        (a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i < j
    ]
    expected = sum(distance(a, b) for a, b in pairs) / len(pairs)
    return float("nan") if expected == 0 else 1 - observed / expected


@given(graded)
@settings(deadline=None, max_examples=50)
def test_alpha_equals_its_definition(pairs: list[tuple[int, int]]) -> None:
    one, other = columns(pairs)
    expected = krippendorff_by_definition(one, other)
    assert krippendorff_alpha(one, other) == pytest.approx(expected, nan_ok=True)


def test_alpha_does_not_mind_what_grades_are_called() -> None:
    one, other = np.array([0.0, 1, 2, 3, 1]), np.array([0.0, 1, 3, 2, 2])
    names = np.array([0.0, 10, 11, 500])
    renamed = krippendorff_alpha(names[one.astype(int)], names[other.astype(int)])
    assert renamed == pytest.approx(krippendorff_alpha(one, other))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=20)
)
@settings(deadline=None)
def test_tau_equals_scipy(pairs: list[tuple[int, int]]) -> None:
    from scipy.stats import kendalltau  # noqa: PLC0415

    one, other = columns(pairs)
    expected = kendalltau(one, other).statistic
    assert kendall_tau(one, other) == pytest.approx(expected, nan_ok=True)


def test_the_order_of_systems_has_an_interval_that_holds_its_tau() -> None:
    rng = np.random.default_rng(3)
    quality = np.linspace(0.2, 0.8, 6)[:, None]
    human = (rng.random((6, 200)) < quality).astype(float)
    judged = np.where(rng.random(human.shape) < 0.9, human, 1 - human)
    order = order_agreement(human, judged)
    assert order.low <= order.tau <= order.high
    assert order.tau > 0.8
    assert order.low > 0.5
    assert order_agreement(human, judged) == order


def test_queries_that_one_side_cannot_score_are_left_out() -> None:
    human = np.array([[0.1, np.nan, 0.2], [0.5, 0.9, 0.6]])
    order = order_agreement(human, np.nan_to_num(human, nan=1.0))
    assert (order.systems, order.queries) == (2, 2)
    with pytest.raises(DataError, match="two systems"):
        order_agreement(human[:1], human[:1])


def test_what_both_labelled_is_compared_and_nothing_else() -> None:
    people = {"q1": {"a": 3, "b": 0, "c": 1}, "q2": {"a": 1}, "q3": {"z": 1}}
    judge = {"q1": {"a": 2, "b": 0, "d": 3}, "q2": {"a": 1}}
    found = agreement(people, judge)
    assert found.n == 3
    assert found.equal == pytest.approx(2 / 3)
    rates = {rate.name: (rate.rate, rate.n) for rate in found.rates}
    assert rates == {
        "people say 0": (1.0, 1),
        "people say 1": (1.0, 1),
        "people say 3": (0.0, 1),
        "relevant, judge agrees": (1.0, 2),
        "not relevant, judge agrees": (1.0, 1),
    }
    assert all(r.interval and r.interval.low <= r.rate for r in found.rates)


def test_nothing_in_common_is_a_sentence() -> None:
    sentence = re.escape("people and judge have labelled no document in common")
    with pytest.raises(DataError, match=sentence):
        agreement({"q": {"a": 1}}, {"q": {"b": 1}})


def test_flips_count_changed_grades() -> None:
    before = {"q": {"a": 1, "b": 2, "c": 0}}
    after = {"q": {"a": 1, "b": 3, "c": 0}}
    changed = flips(before, after)
    assert (changed.changed, changed.n) == (1, 3)
    assert changed.rate == pytest.approx(1 / 3)
    assert math.isnan(flips({}, {}).rate)


def test_the_table_shows_every_figure() -> None:
    people = {"q": {"a": 3, "b": 0}}
    order = order_agreement(np.array([[0.1], [0.2]]), np.array([[0.1], [0.2]]))
    changed = flips(people, people)
    text = agreement(people, people, order=order, flipped=changed).table().as_text()
    for word in ("kappa", "quadratic", "alpha", "tau", "asked again", "people say 3"):
        assert word in text
