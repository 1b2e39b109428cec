"""Agreement figures, each against a published value or another library."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import karat
from karat.data.tables import number
from karat.extend import Claims, DataError, Floats
from karat.judging.agreement import agreement, grade_changes, order_agreement
from karat.stats.agreement import Weights, krippendorff_alpha
from karat.trust import compare_claims, compare_grades
from tests.judging.models import session_of, support
from tests.stats.kappas import cohen_kappa

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
    assert cohen_kappa(one, other) == pytest.approx(plain, abs=1e-12)
    names: dict[Weights, str] = {"linear": "linear", "quadratic": "fc"}
    for weights, name in names.items():
        expected = cohens_kappa(table, wt=name, return_results=False)
        found = cohen_kappa(one, other, weights=weights)
        assert found == pytest.approx(expected, abs=1e-12)


@given(graded)
@settings(deadline=None)
def test_all_figures_are_shown_and_rho_equals_scipy(
    pairs: list[tuple[int, int]],
) -> None:
    from scipy.stats import spearmanr  # noqa: PLC0415

    one, other = columns(pairs)
    people, judge = (
        {"q": {str(n): grade for n, grade in enumerate(grades.tolist())}}
        for grades in (one, other)
    )
    found = agreement(people, judge)
    shown = {row[0]: row[1] for row in found.table().rows}
    linear = cohen_kappa(one, other, weights="linear")
    assert shown["kappa, linear"] == number(linear)
    told = found.to_dict()
    if np.ptp(one) and np.ptp(other):
        rho = spearmanr(one, other).statistic
        assert told["spearman"] == pytest.approx(rho, abs=1e-12)
        assert told["linear_kappa"] == pytest.approx(linear, abs=1e-12)
        assert shown["Spearman's rho"] == number(told["spearman"])
    else:
        assert told["spearman"] is None


def test_several_people_have_an_alpha_of_their_own() -> None:
    first = {"q": {"a": 3, "b": 0, "c": 1, "d": 2}, "r": {"x": 0}}
    second = {"q": {"a": 3, "b": 1, "c": 1}, "r": {"x": 0}}
    judge = {"q": {"a": 2, "b": 0, "c": 1, "d": 2}, "r": {"x": 0}}
    found = compare_grades({}, judge, [first, second])
    names = ["a", "b", "c"]
    table = [[*(by["q"][n] for n in names), 0.0] for by in (first, second, judge)]
    alone, together = found.raters
    assert (alone.name, alone.n) == ("alpha, 2 raters", 4)
    assert alone.rate == krippendorff_alpha(*map(np.array, table[:2]))
    assert together.name == "alpha, 2 raters and the judge"
    assert together.rate == krippendorff_alpha(*map(np.array, table))
    assert found.to_dict()["raters"][1]["rate"] == together.rate
    assert together.name in [row[0] for row in found.table().rows]
    # The judge is compared with the label in the middle, the lower of two.
    assert found.n == 5
    assert found.figures.equal.value == 4 / 5
    assert compare_grades({}, judge, first).raters == ()


def test_several_people_decide_on_claims_by_most_and_have_an_alpha() -> None:
    sample = {"id": "q", "contexts": ["Rye."], "claims": ["Rye.", "Salt."]}
    judge = Claims(session_of(support({"Rye.": [1]})))
    result = karat.evaluate([sample], metrics="context_recall", judge=judge)
    people = [{"q": {"Rye.": rye, "Salt.": False}} for rye in (True, True, False)]
    found = compare_claims(result, people)
    assert found.figures.equal.value == 1.0
    assert [rate.name for rate in found.raters] == [
        *("alpha, 3 raters", "alpha, 3 raters and the judge")
    ]
    ratings = [np.array([rye, 0.0]) for rye in (1.0, 1.0, 0.0, 1.0)]
    assert found.raters[1].rate == krippendorff_alpha(*ratings)


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


def test_alpha_of_four_raters_who_left_units_out() -> None:
    # Krippendorff's example of four observers and twelve units, for ordered grades.
    none = float("nan")
    raters = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, none, none, none],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, none, 3],
        [none, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, none],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, none],
    ]
    alpha = krippendorff_alpha(*(np.array(row, float) for row in raters))
    assert alpha == pytest.approx(0.815, abs=5e-4)
    with pytest.raises(DataError, match="two raters"):
        krippendorff_alpha(np.array([1.0]))


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


def test_what_both_labelled_is_compared_and_nothing_else() -> None:
    people = {"q1": {"a": 3, "b": 0, "c": 1}, "q2": {"a": 1}, "q3": {"z": 1}}
    judge = {"q1": {"a": 2, "b": 0, "d": 3}, "q2": {"a": 1}}
    found = agreement(people, judge)
    assert found.n == 3
    assert found.figures.equal.value == pytest.approx(2 / 3)
    rates = {rate.name: (rate.rate, rate.n) for rate in found.rates}
    each = {
        "people say 0, judge too": (1.0, 1),
        "people say 1, judge too": (1.0, 1),
        "people say 3, judge too": (0.0, 1),
    }
    assert rates == {
        **each,
        "relevant, judge agrees": (1.0, 2),
        "not relevant, judge agrees": (1.0, 1),
    }
    drawn = agreement(people, judge, threshold=2).rates
    assert {rate.name: (rate.rate, rate.n) for rate in drawn} == {
        **each,
        "people say 2 or more, judge too": (1.0, 1),
        "people say less than 2, judge too": (1.0, 2),
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
        cohen_kappa(one, other, weights="quadratic"),
        krippendorff_alpha(one, other),
    )
    told = (
        found.figures.equal.value,
        found.figures.kappa.value,
        found.figures.weighted_kappa.value,
        found.figures.alpha.value,
    )
    assert told == pytest.approx(wanted, nan_ok=True)


def test_rates_of_one_document_per_query_have_the_interval_of_proportions() -> None:
    from statsmodels.stats.proportion import proportion_confint  # noqa: PLC0415

    people = {f"q{n}": {"d": 1} for n in range(20)}
    judge = {f"q{n}": {"d": int(n < 15)} for n in range(20)}
    (rate,) = agreement(people, judge).rates
    assert rate.name == "relevant, judge agrees"
    assert (rate.rate, rate.n) == (0.75, 20)
    assert rate.interval is not None
    low, _ = proportion_confint(15, 20, method="wilson")
    # Towards the nearer bound, that of Agresti and Coull.
    _, high = proportion_confint(15, 20, method="agresti_coull")
    assert rate.interval[:2] == pytest.approx((low, high))


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
    assert found.figures.equal.value == 1.0
    assert all(
        map(
            math.isnan,
            (
                found.figures.kappa.value,
                found.figures.weighted_kappa.value,
                found.figures.alpha.value,
            ),
        )
    )
    assert [figure.interval for figure in found.figures[1:]] == [None] * 5
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
    assert (found.figures.kappa.value, found.figures.alpha.value) == (1.0, 1.0)
    assert found.figures.kappa.interval is None
    interval = found.figures.equal.interval
    assert interval is not None
    assert interval.low < 1.0


def test_one_query_gives_figures_but_no_interval() -> None:
    found = agreement({"q": {"a": 0, "b": 3, "c": 1}}, {"q": {"a": 0, "b": 3, "c": 2}})
    assert found.figures.kappa.value == pytest.approx(4 / 7)
    assert found.figures.kappa.interval is None
    # One query says nothing of others but what the bounds say.
    assert all(rate.interval and rate.interval[:2] == (0, 1) for rate in found.rates)


def test_nothing_in_common_is_a_sentence() -> None:
    sentence = re.escape("people and judge have labelled no document in common")
    with pytest.raises(DataError, match=sentence):
        agreement({"q": {"a": 1}}, {"q": {"b": 1}})


MIXED_PEOPLE = {
    "q1": {"a": 0, "b": 1, "c": 3},
    "q2": {"a": 2, "b": 0},
    "q3": {"a": 1, "b": 1, "c": 0, "d": 3},
    "q4": {"a": 0, "b": 3, "c": 2},
}
MIXED_JUDGE = {
    "q1": {"a": 0, "b": 2, "c": 3},
    "q2": {"a": 1, "b": 1},
    "q3": {"a": 1, "b": 0, "c": 0, "d": 3},
    "q4": {"a": 1, "b": 3, "c": 2},
}


def test_the_interval_of_kappa_tells_how_much_it_moves_without_one_query() -> None:
    from scipy.stats import t  # noqa: PLC0415

    def kappa(queries: list[str]) -> float:
        return cohen_kappa(
            *columns(
                [
                    (MIXED_PEOPLE[q][d], MIXED_JUDGE[q][d])
                    for q in queries
                    for d in MIXED_PEOPLE[q]
                ]
            ),
            weights="quadratic",
        )

    whole = kappa([*MIXED_PEOPLE])
    without = [kappa([q for q in MIXED_PEOPLE if q != left]) for left in MIXED_PEOPLE]
    # Tukey: the error is that of the mean of pseudo-values.
    pseudo = [4 * whole - 3 * value for value in without]
    half = t.ppf(0.975, 3) * np.std(pseudo, ddof=1) / 2
    interval = agreement(MIXED_PEOPLE, MIXED_JUDGE).figures.weighted_kappa.interval
    assert interval is not None
    assert interval.method == "jackknife"
    expected = [max(-1, whole - half), min(1, whole + half)]
    assert interval[:2] == pytest.approx(expected)


def test_a_query_without_which_there_is_no_kappa_takes_its_interval_away() -> None:
    people = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1}, "q3": {"a": 1}}
    found = agreement(people, {**people, "q1": {"a": 1, "b": 1}})
    assert not math.isnan(found.figures.kappa.value)
    assert found.figures.kappa.interval is None


def notes(people: dict[str, dict[str, int]], judge: dict[str, dict[str, int]]) -> str:
    return " ".join(agreement(people, judge).notes())


def test_kappa_of_people_who_gave_one_grade_is_explained() -> None:
    people = {f"q{n}": {"a": 1, "b": 1} for n in range(5)}
    judge = {f"q{n}": {"a": n % 2, "b": 1} for n in range(5)}
    assert agreement(people, judge).figures.kappa.value == 0
    assert "people gave one grade only" in notes(people, judge)
    assert "the judge gave one grade only" in notes(judge, people)
    assert "little more than chance" not in notes(people, judge)


def test_poor_agreement_is_said_in_a_sentence() -> None:
    people = {f"q{n}": {"a": 1, "b": 0} for n in range(8)}
    wrong = {f"q{n}": {"a": n % 2, "b": (n + 1) % 2} for n in range(8)}
    assert "this judge agrees with people little more than chance would" in notes(
        people, wrong
    )
    doubtful = {q: people[q] if n < 5 else wrong[q] for n, q in enumerate(people)}
    doubtful["q7"] = {"a": 0, "b": 1}
    assert "may agree with people little more than chance" in notes(people, doubtful)
    nearly = {q: people[q] if q != "q0" else {"a": 1, "b": 1} for q in people}
    assert notes(people, nearly) == ""


def test_the_table_shows_every_figure() -> None:
    people = {"q": {"a": 3, "b": 0}}
    scores = {"one": np.array([0.1]), "two": np.array([0.2])}
    order = order_agreement(scores, scores, "rr", 1)
    found = agreement(people, people, order=order, scale="all as they are")
    text = found.table(grade_changes(people, people, failed=2)).as_text()
    for word in ("kappa", "quadratic", "alpha", "tau", "asked again", "people say 3"):
        assert word in text
    assert "asked again: 2 documents without a grade" in text
    assert "scale: all as they are" in text
    assert "rr by people: two 0.2000 > one 0.1000; by the judge: two" in text
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["order"]["people"] == {"one": 0.1, "two": 0.2}
