"""What holds for every metric in the catalogue, or for a declared part of it.

A metric that is added must be put on one side of each partition below, and is then
held to it.
"""

import pickle  # noqa: TID251  metrics travel to worker processes
from collections.abc import Iterable
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings

from karat.extend import CutoffMetric, Floats, Metric, read_metric
from karat.metrics import METRICS
from tests.metrics.judged_runs import Grades, Rankings, hits_of, judged_runs, one

NAMES = sorted(METRICS)
laws = settings(max_examples=100, deadline=None)

DIVERSITY = {
    *("alpha_dcg", "alpha_ndcg", "ap_ia", "err_ia", "nerr_ia", "nnrbp", "nrbp"),
}
USER_MODELS = {
    *("bpm", "insq", "inst", "nerr8", "nerr9", "nerr10", "nerr11", "sdcg"),
}
LOOKS_AT_LENGTH = {
    "accuracy",
    "compat",
    "char_precision",
    "f1",
    "iou",
    "judged",
    "num_ret",
    "p_ia",
    "precision",
    "rbp_resid",
    "rndcg",
    "set_ap",
    "set_f",
    "set_precision",
    "set_relative_precision",
    "unjudged",
    "utility",
}
BLIND_TO_AN_UNJUDGED_TAIL = {
    *DIVERSITY,
    *USER_MODELS,
    "granular_rr",
    "st_recall",
    "dcg",
    "gm_ap",
    "gm_bpref",
    "hits",
    "ideal_dcg",
    "ncg",
    "num_q",
    "q_measure",
    "yaap",
    "ap",
    "bing",
    "bpref",
    "complete",
    "containment",
    "context_precision",
    "context_recall",
    "contradiction",
    "coverage",
    "err",
    "g",
    "hit",
    "infap",
    "iprec",
    "iprec_avg",
    "ndcg",
    "ndcg_any",
    "ndcg_rel",
    "num_nonrel_judged_ret",
    "num_rel",
    "num_rel_ret",
    "r_precision",
    "rbp",
    "recall",
    "recall_all",
    "recall_at_budget",
    "recall_capped",
    "rr",
    "set_recall",
}

LESS_IS_BETTER = {"contradiction", "num_nonrel_judged_ret", "rbp_resid", "unjudged"}
NEITHER_IS_BETTER = {"ideal_dcg", "num_q", "num_rel", "num_ret"}

TOPS_OUT_ELSEWHERE = {
    *DIVERSITY,
    *USER_MODELS,
    "granular_rr",
    "p_ia",
    "dcg",
    "contradiction",
    "hits",
    "ideal_dcg",
    "num_q",
    "yaap",
    "err",
    "infap",  # its epsilon keeps it a hundred-thousandth short
    "num_nonrel_judged_ret",
    "num_rel",
    "num_rel_ret",
    "num_ret",
    "rbp",
    "rbp_resid",
    "unjudged",
    "utility",
}
REACHES_ONE = {
    "st_recall",
    "accuracy",
    "compat",
    "gm_ap",
    "gm_bpref",
    "ncg",
    "q_measure",
    "ap",
    "bing",
    "bpref",
    "char_precision",
    "complete",
    "containment",
    "context_precision",
    "context_recall",
    "coverage",
    "f1",
    "g",
    "hit",
    "iou",
    "iprec",
    "iprec_avg",
    "judged",
    "ndcg",
    "ndcg_any",
    "ndcg_rel",
    "precision",
    "r_precision",
    "recall",
    "recall_all",
    "recall_at_budget",
    "recall_capped",
    "rndcg",
    "rr",
    "set_ap",
    "set_f",
    "set_precision",
    "set_recall",
    "set_relative_precision",
}

NOT_ZERO_FOR_NOTHING = {
    *("accuracy", "ideal_dcg", "judged", "num_q", "num_rel", "unjudged", "yaap"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_says_which_of_two_scores_is_better(name: str) -> None:
    other = False if name in LESS_IS_BETTER else None
    is_usual = name not in LESS_IS_BETTER | NEITHER_IS_BETTER
    assert METRICS[name].higher_is_better is (True if is_usual else other)


def plain_metric(name: str) -> Metric:
    """The metric as it comes, but with room for all grades."""
    metric = METRICS[name]()
    if any(field.name == "max_grade" for field in fields(metric)):
        metric = replace(metric, max_grade=4)  # type: ignore[call-arg]
    return metric


def variants(name: str) -> list[Metric]:
    """The metric as it comes, and cut or with a threshold where it can be."""
    plain = plain_metric(name)
    found = [plain]
    if isinstance(plain, CutoffMetric):
        found.append(replace(plain, k=3))
    if any(field.name == "threshold" for field in fields(plain)):
        found.append(replace(plain, threshold=2.0))  # type: ignore[call-arg]
    return found


def all_of(names: Iterable[str]) -> list[Metric]:
    return [metric for name in sorted(names) for metric in variants(name)]


def assert_same(metric: Metric, left: Floats, right: Floats) -> None:
    np.testing.assert_allclose(
        left, right, rtol=0, atol=1e-12, equal_nan=True, err_msg=str(metric)
    )


@pytest.mark.parametrize(
    ("one_side", "other_side"),
    [
        (LOOKS_AT_LENGTH, BLIND_TO_AN_UNJUDGED_TAIL),
        (TOPS_OUT_ELSEWHERE, REACHES_ONE),
    ],
)
def test_every_metric_is_on_one_side(one_side: set[str], other_side: set[str]) -> None:
    assert sorted(one_side | other_side) == NAMES
    assert not one_side & other_side


@pytest.mark.slow
@laws
@given(judged=judged_runs())
def test_scores_stay_within_their_bounds(judged: tuple[Rankings, Grades]) -> None:
    hits = hits_of(*judged)
    for metric in all_of(NAMES):
        scores = metric.score(hits)
        lowest, highest = metric.bounds
        assert scores.shape == (hits.size,), metric
        assert scores.dtype == np.float64, metric
        defined = scores[~np.isnan(scores)]
        assert ((defined >= lowest) & (defined <= highest + 1e-12)).all(), metric
        if metric.binary:
            assert {*defined.tolist()} <= {0.0, 1.0}, metric


@pytest.mark.slow
@laws
@given(judged=judged_runs())
def test_an_unjudged_tail_changes_nothing(judged: tuple[Rankings, Grades]) -> None:
    rankings, labels = judged
    longer = {query: [*row, "x", "y", "z"] for query, row in rankings.items()}
    short, long = hits_of(rankings, labels), hits_of(longer, labels)
    for metric in all_of(BLIND_TO_AN_UNJUDGED_TAIL):
        assert_same(metric, metric.score(short), metric.score(long))


@pytest.mark.parametrize("name", sorted(LOOKS_AT_LENGTH))
def test_an_unjudged_tail_changes_what_looks_at_length(name: str) -> None:
    grades = {"a": 2, "b": 1, "n": 0} | dict.fromkeys("cdef", 1.0)
    metric = plain_metric(name)
    assert metric.score(one("anb", grades)) != metric.score(one("anbtuvwxyz", grades))


@pytest.mark.slow
@laws
@given(judged=judged_runs())
def test_the_order_of_queries_changes_nothing(judged: tuple[Rankings, Grades]) -> None:
    rankings, labels = judged
    forth = hits_of(rankings, labels)
    back = hits_of(rankings, dict(reversed([*labels.items()])))
    for metric in all_of(NAMES):
        assert_same(metric, metric.score(forth), metric.score(back)[::-1])


@pytest.mark.slow
@laws
@given(judged=judged_runs())
def test_a_perfect_ranking_reaches_the_top(judged: tuple[Rankings, Grades]) -> None:
    _, labels = judged
    perfect = {
        query: sorted((d for d in row if row[d] > 0), key=row.__getitem__, reverse=True)
        for query, row in labels.items()
    }
    found = np.array([len(row) > 0 for row in perfect.values()])
    hits = hits_of(perfect, labels)
    for name in REACHES_ONE:
        metric = plain_metric(name)
        assert_same(metric, metric.score(hits)[found], np.ones(found.sum()))


@pytest.mark.parametrize("name", sorted(set(NAMES) - NOT_ZERO_FOR_NOTHING))
def test_nothing_retrieved_scores_zero(name: str) -> None:
    hits = one("", {"a": 2, "b": 1, "n": 0})
    for metric in variants(name):
        assert metric.score(hits).tolist() == [0.0]


@pytest.mark.slow
@laws
@given(judged=judged_runs())
def test_rows_of_non_relevant_documents_matter_only_where_said(
    judged: tuple[Rankings, Grades],
) -> None:
    with_all, without = hits_of(*judged), hits_of(*judged, judged=False)
    for metric in all_of(NAMES):
        if not metric.reads_judged:
            assert_same(metric, metric.score(with_all), metric.score(without))


@pytest.mark.parametrize("name", [n for n in NAMES if METRICS[n].reads_judged])
def test_rows_of_non_relevant_documents_matter_where_said(name: str) -> None:
    grades = {"a": 1, "b": 1, "n": 0, "u": -1}
    with_all, without = one("nxuab", grades), one("nxuab", grades, judged=False)
    metric = plain_metric(name)
    assert metric.score(with_all) != metric.score(without)


@pytest.mark.slow
@laws
@given(judged=judged_runs())
def test_a_threshold_of_one_is_any_positive_whole_grade(
    judged: tuple[Rankings, Grades],
) -> None:
    hits = hits_of(*judged)
    for metric in map(plain_metric, NAMES):
        if any(field.name == "threshold" for field in fields(metric)):
            same = replace(metric, threshold=1.0)  # type: ignore[call-arg]
            assert_same(metric, metric.score(hits), same.score(hits))


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_is_a_value_that_can_be_written_and_sent(name: str) -> None:
    for metric in variants(name):
        assert read_metric(str(metric)) == metric
        assert str(read_metric(str(metric))) == str(metric)
        assert pickle.loads(pickle.dumps(metric)) == metric
        assert hash(read_metric(str(metric))) == hash(metric)


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_says_what_it_means(name: str) -> None:
    metric = METRICS[name]
    assert metric.name == name
    assert metric.summary().endswith(".")
    assert len(metric.formula) > 0
    assert len(plain_metric(name).workings(one("nab", {"a": 2, "b": 1, "n": 0}))) > 0
