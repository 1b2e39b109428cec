"""Agreement figures, each against a published value or another library."""

import json
import math
import re
from itertools import product

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


def test_alpha_of_the_textbook() -> None:
    # Krippendorff's own example of two observers and ten units; two grades have but one
    # order, so that ordered and unordered grades agree alike.
    one = np.array([0.0, 1, 0, 0, 0, 0, 0, 0, 1, 0])
    other = np.array([1.0, 1, 1, 0, 0, 1, 0, 0, 0, 0])
    assert krippendorff_alpha(one, other) == pytest.approx(0.095, abs=5e-4)


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


def test_the_order_has_no_number_where_there_is_none() -> None:
    tied = order_agreement(np.ones((3, 4)), np.eye(3, 4))
    assert math.isnan(tied.tau)
    assert math.isnan(tied.low)
    unscored = order_agreement(np.full((2, 3), np.nan), np.ones((2, 3)))
    assert math.isnan(unscored.tau)
    assert unscored.queries == 0
    dash = "\N{EN DASH}"
    assert unscored.row() == ["order of 2 runs, tau", dash, "", "0"]


def test_the_order_by_one_query_has_no_interval() -> None:
    order = order_agreement(np.array([[0.1], [0.2]]), np.array([[0.3], [0.9]]))
    assert order.tau == 1.0
    assert math.isnan(order.low)
    assert order.row()[2] == ""


def test_the_interval_of_tau_is_that_of_all_ways_to_draw_the_queries() -> None:
    rng = np.random.default_rng(5)
    human, judged = rng.random((4, 4)), rng.random((4, 4))
    drawn = [
        kendall_tau(human[:, rows].mean(axis=1), judged[:, rows].mean(axis=1))
        for rows in map(list, product(range(4), repeat=4))
    ]
    order = order_agreement(human, judged)
    # 256 equally likely draws. Tau moves in thirds, so limits have a mass of their own.
    assert np.less(drawn, order.low - 1e-9).mean() <= 0.03
    assert np.less_equal(drawn, order.low + 1e-9).mean() >= 0.02
    assert np.greater(drawn, order.high + 1e-9).mean() <= 0.03
    assert np.greater_equal(drawn, order.high - 1e-9).mean() >= 0.02


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


@given(st.lists(st.lists(graded, min_size=1, max_size=1), min_size=1, max_size=6))
@settings(deadline=None, max_examples=30)
def test_the_figures_of_many_queries_are_those_of_all_their_documents(
    queries: list[list[list[tuple[int, int]]]],
) -> None:
    people, judge = (
        {
            f"q{n}": {f"d{m}": pair[side] for m, pair in enumerate(pairs)}
            for n, (pairs,) in enumerate(queries)
        }
        for side in (0, 1)
    )
    one, other = columns([pair for (pairs,) in queries for pair in pairs])
    found = agreement(people, judge)
    assert (found.n, found.queries) == (len(one), len(queries))
    wanted = (
        float((one == other).mean()),
        cohen_kappa(one, other),
        cohen_kappa(one, other, quadratic=True),
        krippendorff_alpha(one, other),
    )
    told = (found.equal, found.kappa, found.weighted_kappa, found.alpha)
    assert told == pytest.approx(wanted, nan_ok=True)


def test_the_interval_of_kappa_is_that_of_all_ways_to_draw_the_queries() -> None:
    people = {
        "q1": {"a": 0, "b": 1, "c": 3},
        "q2": {"a": 2, "b": 0},
        "q3": {"a": 1, "b": 1, "c": 0, "d": 3},
        "q4": {"a": 0, "b": 3, "c": 2},
    }
    judge = {
        "q1": {"a": 0, "b": 2, "c": 3},
        "q2": {"a": 1, "b": 1},
        "q3": {"a": 1, "b": 0, "c": 0, "d": 3},
        "q4": {"a": 1, "b": 3, "c": 2},
    }
    drawn = []
    for draw in product(people, repeat=4):
        pairs = [(people[q][d], judge[q][d]) for q in draw for d in people[q]]
        drawn.append(cohen_kappa(*columns(pairs), quadratic=True))
    interval = agreement(people, judge).figures.weighted_kappa.interval
    assert interval is not None
    # 256 equally likely draws; 2,000 random ones find nearly the same quantiles.
    assert interval[:2] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.03)


def test_rates_of_one_document_per_query_have_the_interval_of_wilson() -> None:
    from statsmodels.stats.proportion import proportion_confint  # noqa: PLC0415

    people = {f"q{n}": {"d": 1} for n in range(20)}
    judge = {f"q{n}": {"d": int(n < 15)} for n in range(20)}
    rate = next(r for r in agreement(people, judge).rates if r.name == "people say 1")
    assert (rate.rate, rate.n) == (0.75, 20)
    assert rate.interval is not None
    expected = proportion_confint(15, 20, method="wilson")
    assert rate.interval[:2] == pytest.approx(expected)


def test_documents_of_one_query_do_not_make_a_judge_surer() -> None:
    def spread(documents: int) -> float:
        names = [f"d{n}" for n in range(documents)]
        people = {f"q{n}": dict.fromkeys(names, 1) for n in range(20)}
        judge = {f"q{n}": dict.fromkeys(names, int(n < 15)) for n in range(20)}
        interval = agreement(people, judge).rates[0].interval
        assert interval is not None
        return interval.high - interval.low

    assert spread(50) >= spread(1)


def test_one_grade_only_is_all_chance_and_no_number() -> None:
    people = {f"q{n}": {"d": 2} for n in range(3)}
    found = agreement(people, people)
    assert found.equal == 1.0
    assert all(map(math.isnan, (found.kappa, found.weighted_kappa, found.alpha)))
    assert [figure.interval for figure in found.figures[1:]] == [None] * 3
    lines = found.table().as_text().splitlines()
    dash = "\N{EN DASH}"
    assert ["Cohen's", "kappa", dash, "3"] in [line.split() for line in lines]
    assert any("one and the same grade throughout" in line for line in lines)
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["kappa"] is None
    assert facts["intervals"]["kappa"] is None


def test_perfect_agreement_is_never_said_to_be_certain() -> None:
    people = {f"q{n}": {"a": 0, "b": 3} for n in range(5)}
    found = agreement(people, people)
    assert (found.kappa, found.alpha) == (1.0, 1.0)
    assert found.figures.kappa.interval is None
    interval = found.figures.equal.interval
    assert interval is not None
    assert interval.low < 1.0


def test_one_query_gives_figures_but_no_interval() -> None:
    found = agreement({"q": {"a": 0, "b": 3, "c": 1}}, {"q": {"a": 0, "b": 3, "c": 2}})
    assert found.kappa == pytest.approx(4 / 7)
    assert found.figures.kappa.interval is None
    # One query says nothing of others but what the bounds say.
    assert all(rate.interval and rate.interval[:2] == (0, 1) for rate in found.rates)


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
    # One query says nothing of others.
    assert changed.plain() == {"changed": 1, "n": 3, "interval": (0.0, 1.0)}
    assert math.isnan(flips({}, {}).rate)


def test_the_table_shows_every_figure() -> None:
    people = {"q": {"a": 3, "b": 0}}
    order = order_agreement(np.array([[0.1], [0.2]]), np.array([[0.1], [0.2]]))
    changed = flips(people, people)
    text = agreement(people, people, order=order, flipped=changed).table().as_text()
    for word in ("kappa", "quadratic", "alpha", "tau", "asked again", "people say 3"):
        assert word in text
