"""Metrics of an imagined reader."""

from fractions import Fraction

import numpy as np
import pytest

from karat import evaluate
from karat.extend import ParameterError, read_metric
from karat.metrics.user_models import (
    ExpectedReciprocalRank,
    RankBiasedPrecision,
    RankBiasedResidual,
)
from tests.metrics.judged_runs import one


def test_rbp_pays_each_rank_what_the_reader_reaches_it_with() -> None:
    hits = one("axb", {"a": 3, "b": 1, "n": 0})
    assert RankBiasedPrecision(p=0.5).score(hits) == pytest.approx(0.5 * (1 + 0.25))
    assert RankBiasedPrecision(2, p=0.5).score(hits) == pytest.approx(0.5)
    assert RankBiasedPrecision(p=0.5, threshold=2).score(hits) == pytest.approx(0.5)


def test_scaled_rbp_pays_grades_over_the_highest_of_the_query() -> None:
    # The value trec_eval 10 prints for a=3, b=1, c=0.
    hits = one("abc", {"a": 3, "b": 1, "c": 0})
    scaled = RankBiasedPrecision(p=0.5, gain="scaled")
    assert scaled.score(hits) == pytest.approx(0.58333333)


def test_the_residual_is_what_unjudged_ranks_could_add() -> None:
    hits = one("axnu", {"a": 1, "n": 0, "u": -1})
    open_ranks = 0.5 * (0.5 + 0.125) + 0.5**4
    assert RankBiasedResidual(p=0.5).score(hits) == pytest.approx(open_ranks)


def test_the_residual_of_a_ranking_judged_throughout_is_zero_as_in_trec_eval() -> None:
    assert RankBiasedResidual().score(one("an", {"a": 1, "n": 0})).tolist() == [0.0]


def test_err_stops_at_good_documents() -> None:
    hits = one("axb", {"a": 4, "b": 2})
    first, second = 15 / 16, 3 / 16
    expected = first + (1 - first) * second / 3
    assert ExpectedReciprocalRank().score(hits) == pytest.approx(expected)
    assert ExpectedReciprocalRank(2).score(hits) == pytest.approx(first)


def test_err_needs_a_scale_that_holds_every_grade() -> None:
    hits = one("a", {"a": 5})
    with pytest.raises(ParameterError, match="at least the highest grade, 5, got 4"):
        ExpectedReciprocalRank().score(hits)
    err = ExpectedReciprocalRank(max_grade=5)
    assert err.score(hits) == pytest.approx(31 / 32)


@pytest.mark.parametrize("highest", [4, 52, 60, 1024, 2000])
def test_err_reads_scales_of_any_length(highest: int) -> None:
    hits = one("xab", {"a": highest, "b": highest - 1})
    stops = [Fraction(2**grade - 1, 2**highest) for grade in (highest, highest - 1)]
    expected = stops[0] / 2 + (1 - stops[0]) * stops[1] / 3
    err = ExpectedReciprocalRank(max_grade=highest)
    assert err.score(hits) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("max_grade", [0, 1_000_001])
def test_a_scale_that_is_none_is_refused(max_grade: int) -> None:
    with pytest.raises(ParameterError, match=r"a number >= 1 and <= 1000000"):
        ExpectedReciprocalRank(max_grade=max_grade)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.5, float("nan")])
def test_persistence_lies_between_0_and_1(p: float) -> None:
    with pytest.raises(ParameterError, match=r"p must be a number > 0 and < 1"):
        RankBiasedPrecision(p=p)
    with pytest.raises(ParameterError, match=r"p must be a number > 0 and < 1"):
        RankBiasedResidual(p=p)


def test_without_relevant_gold_there_is_no_score() -> None:
    hits = one("n", {"n": 0})
    for metric in (RankBiasedPrecision(), ExpectedReciprocalRank()):
        assert np.isnan(metric.score(hits))


@pytest.mark.parametrize("ranking", ["xaxbx", "abx", "xxx", "", "xxxxa"])
def test_granular_rr_is_the_mean_over_what_was_found(ranking: str) -> None:
    """As LlamaIndex' MRR(use_granular_mrr=True) has it."""
    grades = {"a": 1, "b": 2, "n": 0}
    ranks = [rank for rank, name in enumerate(ranking, 1) if grades.get(name, 0) > 0]
    wanted = sum(1 / rank for rank in ranks) / len(ranks) if ranks else 0.0
    metric = read_metric("mrr(use_granular_mrr=True)")
    assert metric.score(one(ranking, grades)) == pytest.approx(wanted, abs=1e-12)
    assert read_metric("granular_mrr@10") == read_metric("granular_rr@10")
    assert np.isnan(metric.score(one(ranking, {"n": 0}))).all()


def test_hundreds_of_queries_score_as_each_does_alone() -> None:
    run = {f"q{n}": [*"xy"[: n % 3], "a"] for n in range(300)}
    gold = {query: ["a"] for query in run}
    scores = evaluate(run, gold=gold, metrics=["sdcg@5"])["sdcg@5"].scores
    alone = evaluate({"q": ["x", "y", "a"]}, gold={"q": ["a"]}, metrics=["sdcg@5"])
    assert scores[2::3] == pytest.approx([alone.means["sdcg@5"]] * 100)
    assert scores[:3].tolist() * 100 == scores.tolist()


@pytest.mark.parametrize("metric", ["sdcg@k", "bpm@k", "rbp@k", "err@k", "accuracy@k"])
def test_the_letter_stands_for_the_cutoff_of_each_query(metric: str) -> None:
    relevant = {"a": 1, "b": 1}
    samples = [
        {"id": f"q{k}", "k": k, "retrieved": [*"xab"], "relevant": relevant}
        for k in (1, 2, 3)
    ]
    scores = evaluate(samples, metrics=metric)[metric].scores
    expected = [
        read_metric(metric.replace("@k", f"@{k}")).score(one("xab", relevant))[0]
        for k in (1, 2, 3)
    ]
    assert scores.tolist() == pytest.approx(expected, nan_ok=True)
    assert scores[0] != scores[1]


def test_grades_up_to_the_lowest_gain_nothing_and_the_highest_gains_all() -> None:
    hits = one("ab", {"a": 0.25, "b": 0.5})
    for spelling, score in [
        ("nerr8(max_grade=0.5)@2", (0.5 + 0.5 * 1) / (1 + 0.5)),
        ("nerr8(max_grade=0.5, min_grade=0.25)@2", 1 / 2),
        ("nerr8(max_grade=1, min_grade=0.5)@2", 0.0),
    ]:
        assert read_metric(spelling).score(hits) == pytest.approx(score)
    with pytest.raises(ParameterError, match=r"at least the highest grade, 0.5"):
        read_metric("nerr8(max_grade=0.4)").score(hits)
    for low in (-0.1, 1, 2):
        with pytest.raises(ParameterError, match=r"from 0 to below max_grade, 1"):
            read_metric(f"nerr8(min_grade={low})")
