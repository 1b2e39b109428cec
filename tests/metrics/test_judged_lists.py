"""Metrics that tell judged non-relevant documents from unjudged ones."""

import numpy as np
import pytest

from karat import evaluate
from karat.metrics.incomplete_judgements import BPref, InferredAP, Judged, UnjudgedShare
from tests.metrics.judged_runs import one

EPSILON = 0.00001


def test_bpref_loses_for_each_judged_non_relevant_document_above() -> None:
    grades = {"a": 1, "b": 1, "m": 0, "n": 0, "o": 0}
    # a stands below one of the first two rejected documents, b below both.
    assert BPref().score(one("xmaxnbo", grades)).tolist() == [(1 / 2 + 0) / 2]


def test_bpref_passes_over_documents_nobody_judged() -> None:
    grades = {"a": 1, "n": 0, "u": -1}
    assert BPref().score(one("xyua", grades)).tolist() == [1.0]
    assert BPref().score(one("nxyua", grades)).tolist() == [0.0]


def test_bpref_is_full_where_nothing_was_rejected() -> None:
    assert BPref().score(one("xab", {"a": 1, "b": 1})).tolist() == [1.0]


def test_bpref_takes_grades_below_the_threshold_for_rejected() -> None:
    hits = one("ab", {"a": 1, "b": 2})
    assert BPref().score(hits).tolist() == [1.0]
    assert BPref(threshold=2).score(hits).tolist() == [0.0]


def test_infap_of_full_judgements_is_nearly_average_precision() -> None:
    hits = one("anb", {"a": 1, "b": 1, "n": 0})
    assert InferredAP().score(hits) == pytest.approx((1 + 2 / 3) / 2, abs=1e-5)


def test_infap_expects_of_a_pooled_document_what_the_judged_ones_show() -> None:
    hits = one("aub", {"a": 1, "u": -1, "b": 1})
    share = (1 + EPSILON) / (1 + 2 * EPSILON)
    at_b = 1 / 3 + 2 / 3 * (2 / 2) * share
    assert InferredAP().score(hits) == pytest.approx((1 + at_b) / 2, abs=1e-15)


def test_infap_takes_a_document_outside_the_pool_for_not_relevant() -> None:
    hits = one("axb", {"a": 1, "b": 1})
    share = (1 + EPSILON) / (1 + 2 * EPSILON)
    at_b = 1 / 3 + 2 / 3 * (1 / 2) * share
    assert InferredAP().score(hits) == pytest.approx((1 + at_b) / 2, abs=1e-15)


def test_judged_counts_any_label_among_the_documents_there_are() -> None:
    hits = one("axnu", {"a": 1, "n": 0, "u": -1})
    assert Judged(2).score(hits).tolist() == [1 / 2]
    assert Judged(10).score(hits).tolist() == [3 / 4]
    assert Judged().score(hits).tolist() == [3 / 4]


def test_judged_is_undefined_where_nothing_was_retrieved() -> None:
    assert np.isnan(Judged(5).score(one("", {"a": 1})))


def test_unjudged_counts_negative_grades_and_divides_by_k() -> None:
    hits = one("axnu", {"a": 1, "n": 0, "u": -1})
    assert UnjudgedShare(2).score(hits).tolist() == [1 / 2]
    assert UnjudgedShare(10).score(hits).tolist() == [2 / 10]
    assert UnjudgedShare().score(hits).tolist() == [2 / 4]


@pytest.mark.parametrize("metric", [BPref(), InferredAP()])
def test_without_relevant_gold_there_is_no_score(metric: BPref | InferredAP) -> None:
    assert np.isnan(metric.score(one("an", {"a": 0, "n": 0})))


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        ("contradiction[id]", 2 / 4),
        ("contradiction[id]@2", 1 / 4),
        ("contradiction(threshold=1)[id]", 1 / 3),
        ("contradiction(threshold=0.5)[id]", 2 / 4),
    ],
)
def test_a_claim_is_contradicted_by_as_much_as_it_matters(
    metric: str, score: float
) -> None:
    gold = {"q": {"a": 1, "b": 1, "c": 1, "d": 0.5, "vital": -1, "okay": -0.5}}
    means = evaluate({"q": ["a", "okay", "vital"]}, gold=gold, metrics=metric).means
    assert means == {metric: pytest.approx(score)}


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        ("bpref", 1 / 3),
        ("judged@4", 3 / 4),
        ("unjudged@4", 1 / 4),
        ("num_nonrel_judged_ret", 1),
        ("rbp_resid", 1 - 0.2 * (0.8 + 0.8**2 + 0.8**3)),
        ("contradiction[id]", 1 / 3),
        ("contradiction[id]@4", 0),
    ],
)
def test_metrics_that_read_rejected_documents_find_them_alone(
    metric: str, score: float
) -> None:
    gold = {"q": {"a": 2, "b": 1, "c": 1, "rejected": 0, "contrary": -1}}
    run = {"q": ["unknown", "a", "rejected", "b", "contrary"]}
    means = evaluate(run, gold=gold, metrics=[metric]).means
    assert means == {metric: pytest.approx(score)}
