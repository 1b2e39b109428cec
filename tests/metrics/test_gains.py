"""Metrics over gains, against slow references that walk down the ranking."""

from dataclasses import replace
from fractions import Fraction
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings

from karat import evaluate
from karat.extend import NDCG, Metric, ParameterError, read_metric
from karat.metrics.recall_points import RNDCG, BinaryG, G, NDCGRel
from tests.metrics.judged_runs import Grades, Rankings, hits_of, judged_runs, one

Row = dict[str, float]


def dcg(gains: list[float], depth: int) -> float:
    return sum(gain / log2(rank + 2) for rank, gain in enumerate(gains[:depth]))


def lay_out(ranking: list[str], grades: Row) -> tuple[list[float], list[float]]:
    """Gains down the ranking, and those of the best one."""
    gains = [max(grades.get(document, 0.0), 0.0) for document in ranking]
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    return gains, best


def slow_rndcg(ranking: list[str], grades: Row) -> float | None:
    gains, best = lay_out(ranking, grades)
    if not best:
        return None
    ends = [
        n for n in range(1, len(best) + 1) if best[n:] == [] or best[n] < best[n - 1]
    ]
    points = [dcg(gains, end) / dcg(best, end) for end in ends]
    if len(ranking) > len(best) + 1:
        points.append(dcg(gains, len(gains)) / dcg(best, len(best)))
    return sum(points) / len(points)


def slow_ndcg_rel(ranking: list[str], grades: Row) -> float | None:
    gains, best = lay_out(ranking, grades)
    if not best:
        return None
    ranks = [rank for rank, gain in enumerate(gains, 1) if gain > 0]
    points = [dcg(gains, rank) / dcg(best, rank) for rank in ranks]
    whole = dcg(gains, len(gains)) / dcg(best, len(best))
    return (sum(points) + whole * (len(best) - len(points))) / len(best)


def slow_g(ranking: list[str], grades: Row) -> float | None:
    gains, best = lay_out(ranking, grades)
    if not best:
        return None
    cost = so_far = paid = 0.0
    for rank, gain in enumerate(gains):
        cost += max(best[rank], 1.0) if rank < len(best) else 1.0
        so_far += gain
        paid += gain / log2(2 + cost - so_far) if gain else 0.0
    return paid / sum(best)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "slow"),
    [(RNDCG(), slow_rndcg), (NDCGRel(), slow_ndcg_rel), (G(), slow_g)],
    ids=["rndcg", "ndcg_rel", "g"],
)
@settings(max_examples=200, deadline=None)
@given(judged=judged_runs(grades=(-1, 0, 0.5, 1, 1, 2, 3)))
def test_the_reference_agrees(
    metric: Metric, slow: object, judged: tuple[Rankings, Grades]
) -> None:
    assert callable(slow)
    rankings, labels = judged
    expected = [slow([*rankings[q]], dict(labels[q])) for q in labels]
    scores = metric.score(hits_of(rankings, labels))
    wanted = [np.nan if value is None else value for value in expected]
    np.testing.assert_allclose(scores, wanted, rtol=0, atol=1e-12)


def test_rndcg_averages_ndcg_where_the_ideal_drops() -> None:
    grades = {"a": 2, "b": 1, "c": 1}
    at_1, at_3 = 1 / 2, (1 + 2 / log2(3)) / (2 + 1 / log2(3) + 1 / log2(4))
    for more in ({}, {"n": 0, "u": -1}):
        score = RNDCG().score(one("ba", grades | more))
        assert score == pytest.approx((at_1 + at_3) / 2)


def test_bing_pays_less_the_more_others_stand_before() -> None:
    paid = 1 + 1 / log2(3)
    assert BinaryG().score(one("axb", {"a": 1, "b": 3})) == pytest.approx(paid / 2)


def test_sums_of_one_query_do_not_blur_those_of_another() -> None:
    huge = {"a": 1e12, "b": 1e12}
    small = {"a": 1.0, "b": 1.0}
    both = hits_of({"q0": ["a", "b"], "q1": ["x", "a"]}, {"q0": huge, "q1": small})
    alone = one("xa", small)
    for metric in (RNDCG(), NDCGRel(), G()):
        assert metric.score(both)[1] == pytest.approx(metric.score(alone)[0], abs=1e-6)


def exact_ndcg(ranking: str, grades: dict[str, int]) -> float:
    """Exponential gains in whole numbers of any size, over the highest of them."""
    highest = 2 ** max(grades.values())
    gains = [2 ** grades.get(document, 0) - 1 for document in ranking]
    best = sorted((2**grade - 1 for grade in grades.values()), reverse=True)
    found, ideal = (
        sum(float(Fraction(g, highest)) / log2(r + 1) for r, g in enumerate(row, 1))
        for row in (gains, best)
    )
    return found / ideal


@pytest.mark.parametrize("grade", [3, 999, 1001, 1023, 1024, 1100, 2000, 9000])
def test_exponential_gains_of_any_size_give_their_ratio(grade: int) -> None:
    for second, last in ((grade - 1, 1), (grade, grade)):
        grades = {"a": grade, "b": second, "c": grade, "d": last}
        (score,) = NDCG(gain="exp").score(one("xbda", grades))
        assert score == pytest.approx(exact_ndcg("xbda", grades), rel=1e-12)
        assert score > 0


def test_huge_grades_of_one_query_leave_the_others_alone() -> None:
    rankings = {"small": ["x", "a", "b"], "huge": ["x", "b", "a"]}
    grades: Grades = {"small": {"a": 2.5, "b": 1}, "huge": {"a": 2000.5, "b": 1999}}
    both = NDCG(gain="exp").score(hits_of(rankings, grades))
    (alone,) = NDCG(gain="exp").score(one("xab", grades["small"]))
    assert both[0] == alone
    assert 0 < both[1] < 1


def test_the_workings_of_huge_gains_say_what_they_were_divided_by() -> None:
    workings = NDCG(gain="exp").workings(one("ab", {"a": 2000, "b": 1999}))
    assert workings.startswith("DCG 1/log2(2) + 0.5/log2(3) = 1.3155; ideal ")
    assert workings.endswith("; all gains over 2^2000")
    assert "over" not in NDCG(gain="exp").workings(one("ab", {"a": 3, "b": 2}))


@pytest.mark.parametrize("grade", [1, 2, 1000, 1001])
@pytest.mark.parametrize(
    ("metric", "late"),
    [("ndcg", 1 / 2), ("ndcg@2", 0), ("ndcg(gain=exp)", 1 / 2), ("ncg", 1)],
)
def test_gold_of_one_grade_is_the_ideal_of_each_query(
    metric: str, late: float, grade: float
) -> None:
    labels: Grades = {
        "all": dict.fromkeys("abc", grade),
        "none": {},
        "one": {"a": grade},
    }
    rankings = {"all": [*"abc"], "none": [*"abc"], "one": [*"xya"]}
    scores = read_metric(metric).score(hits_of(rankings, labels))
    assert scores.tolist() == pytest.approx([1, np.nan, late], nan_ok=True)


def test_the_ideal_is_cut_at_the_cutoff_of_each_query() -> None:
    hits = one("xab", {"a": 1, "b": 2, "c": 2})
    for k in (2, 3, 1):
        own = replace(hits, own_k=np.array([k]))
        assert own.gold is hits.gold
        assert NDCG("k").score(own) == NDCG(k).score(hits)
        assert NDCG("k").ideal(own) == NDCG(k).ideal(hits)


@pytest.mark.parametrize("grade", [0, -1])
def test_a_rejected_document_that_gains_something_is_looked_for(grade: int) -> None:
    gold = {"q": {"a": 1, "n": grade}}
    for gains, score in ((f"{grade}:1", 1.0), (f"{grade}:0", 1 / log2(3))):
        metric = f"ndcg(gains={gains})"
        means = evaluate({"q": ["n", "a"]}, gold, metrics=metric).means
        assert means == {metric: pytest.approx(score)}


@pytest.mark.parametrize("gains", ["1:-1", "1:inf", "nan:1", "1:1;1:2", "1", "a:1"])
def test_gains_that_are_none_are_refused(gains: str) -> None:
    with pytest.raises(ParameterError, match="grade:gain"):
        NDCG(gains=gains)


def test_hits_share_the_ideal_of_their_own_labels_only() -> None:
    hits = hits_of({"q": ["x", "a", "b"]}, {"q": {"a": 1.0, "b": 3.0}})
    metric = NDCG(k=2)
    before = metric.score(hits)
    again = replace(hits, rank=np.array([1, 2]))
    assert again.gold is hits.gold
    assert metric.score(again) != before
    other = replace(hits, gold_grade=np.array([1.0, 1.0]), grade=np.array([1.0, 1.0]))
    fresh = hits_of({"q": ["x", "a", "b"]}, {"q": {"a": 1.0, "b": 1.0}})
    assert metric.score(other) == metric.score(fresh) != before


@given(judged_runs())
@settings(max_examples=60)
def test_ndcg_of_linear_gains_does_not_change_with_their_unit(
    judged: tuple[Rankings, Grades],
) -> None:
    """Whole grades are ordered by another sort than fractions are."""
    rankings, grades = judged
    halves = {q: {d: g / 2 for d, g in row.items()} for q, row in grades.items()}
    whole, parts = (NDCG(5).score(hits_of(rankings, g)) for g in (grades, halves))
    np.testing.assert_allclose(whole, parts, rtol=1e-12)
