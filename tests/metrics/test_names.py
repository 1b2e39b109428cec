"""Spellings of karat and of others, and what happens to a typo."""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import karat
from karat.errors import SpellingError
from karat.extend import (
    NDCG,
    ParameterError,
    UnknownNameError,
    UsageError,
    read_metric,
)
from karat.metrics import METRICS, NAMES, canonical, read_spelling
from tests.metrics.judged_runs import hits_of

TREC_EVAL = {
    "ndcg_cut_10": "ndcg@10",
    "ndcg_cut.10": "ndcg@10",
    "ndcg": "ndcg",
    "P_10": "precision@10",
    "P.10": "precision@10",
    "recip_rank": "rr",
    "map": "ap",
    "map_cut_10": "ap@10",
    "Rprec": "r_precision",
    "Rprec_mult_0.20": "r_precision(mult=0.2)",
    "iprec_at_recall_0.10": "iprec(recall=0.1)",
    "11pt_avg": "iprec_avg",
    "infAP": "infap",
    "bpref": "bpref",
    "success_5": "hit@5",
    "recall_10": "recall@10",
    "relative_P_5": "recall_capped@5",
    "set_P": "set_precision",
    "set_recall": "set_recall",
    "set_map": "set_ap",
    "set_F": "set_f",
    "set_F.0.5": "set_f(beta=0.5)",
    "set_relative_P": "set_relative_precision",
    "unj_5": "unjudged@5",
    "G": "g",
    "binG": "bing",
    "Rndcg": "rndcg",
    "ndcg_rel": "ndcg_rel",
    "rbp_resid": "rbp_resid",
    "utility": "utility",
    "num_ret": "num_ret",
    "num_rel": "num_rel",
    "num_rel_ret": "num_rel_ret",
    "num_nonrel_judged_ret": "num_nonrel_judged_ret",
}
IR_MEASURES = {
    "nDCG": "ndcg",
    "nDCG@10": "ndcg@10",
    "nDCG(dcg='exp-log2')@10": "ndcg(gain=exp)@10",
    'nDCG(dcg="exp-log2")@10': "ndcg(gain=exp)@10",
    "nDCG(dcg='log2')@10": "ndcg@10",
    "AP": "ap",
    "AP(rel=2)": "ap(threshold=2)",
    "AP(rel=2)@100": "ap(threshold=2)@100",
    "RR": "rr",
    "RR(rel=2)@10": "rr(threshold=2)@10",
    "R@100": "recall@100",
    "R(rel=2)@100": "recall(threshold=2)@100",
    "P@5": "precision@5",
    "P(rel=2)@5": "precision(threshold=2)@5",
    "Success@5": "hit@5",
    "Judged@10": "judged@10",
    "ERR@20": "err@20",
    "RBP(p=0.5)": "rbp(p=0.5)",
    "RBP(rel=1, p=0.5)@10": "rbp(p=0.5, threshold=1)@10",
    "IPrec@0.1": "iprec(recall=0.1)",
    "IPrec(rel=2)@0.1": "iprec(recall=0.1, threshold=2)",
    "SetP": "set_precision",
    "SetP(rel=2)": "set_precision(threshold=2)",
    "SetR": "set_recall",
    "SetAP": "set_ap",
    "SetF(beta=0.5)": "set_f(beta=0.5)",
    "Bpref": "bpref",
    "Rprec": "r_precision",
    "infAP": "infap",
    "NumRet": "num_ret",
    "NumRet(rel=1)": "num_rel_ret(threshold=1)",
    "NumRel": "num_rel",
}
RAG_TOOLS = {
    "retrieval-hit-at-k": "hit@k",
    "retrieval-recall-at-k": "recall@k",
    "retrieval-mrr": "rr",
    "retrieval-ndcg-at-k": "ndcg@k",
    "recall_at_k": "recall@k",
    "precision_at_k": "precision@k",
    "ndcg_at_k": "ndcg@k",
    "recall_at_5": "recall@5",
    "Recall@5": "recall@5",
    "Recall_all@5": "recall_all@5",
    "Recall_any@5": "hit@5",
    "NDCG_any@5": "ndcg_any@5",
    "hit_rate": "hit",
    "hit-rate@5": "hit@5",
    "mrr": "rr",
    "mrr@10": "rr@10",
    "map": "ap",
    "success": "hit",
    "p@3": "precision@3",
    "ndcg_burges@10": "ndcg(gain=exp)@10",
}


@pytest.mark.parametrize(
    ("theirs", "ours"), [*TREC_EVAL.items(), *IR_MEASURES.items(), *RAG_TOOLS.items()]
)
def test_names_of_others_are_read(theirs: str, ours: str) -> None:
    assert read_metric(theirs) == read_metric(ours)
    assert canonical(ours) == ours


def test_a_matcher_keeps_its_place() -> None:
    assert str(read_spelling("ndcg_cut_10[exact]")) == "ndcg[exact]@10"
    assert str(read_spelling("recall_at_k[fuzzy(0.8)]")) == "recall[fuzzy(0.8)]@k"
    assert str(read_spelling("IPrec[exact]@0.1")) == "iprec(recall=0.1)[exact]"


def test_every_alias_leads_to_a_metric_and_shadows_none() -> None:
    assert not set(NAMES) & set(METRICS)
    assert {type(read_metric(name)).name for name in NAMES} <= set(METRICS)


def test_a_spelling_may_be_handed_over_parsed() -> None:
    assert read_metric(read_spelling("nDCG@10")) == NDCG(10)


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("ndgc@10", "ndcg"),
        ("recal@5", "recall"),
        ("recip_rnk", "recip_rank"),
        ("presicion_at_5", "precision"),
        ("bprref", "bpref"),
    ],
)
def test_a_typo_is_told_what_was_meant(typo: str, meant: str) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean '{meant}'"):
        read_metric(typo)


def test_a_name_like_no_other_is_told_where_the_list_is() -> None:
    with pytest.raises(UnknownNameError, match="`karat metrics` lists them") as caught:
        read_metric("xyzzy@5")
    assert {"ndcg", "map"} <= {*caught.value.known}


def test_a_cutoff_where_there_is_none_is_refused() -> None:
    with pytest.raises(SpellingError, match="bpref takes no cutoff"):
        read_metric("bpref@10")


def test_a_parameter_that_is_none_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown parameter of rbp 'q'"):
        read_metric("rbp(q=0.8)")


@pytest.mark.parametrize(
    "text", ["rbp(p=x)", "err(max_grade=1.5)", "err(x)", "ndcg(gain=2)"]
)
def test_a_parameter_of_the_wrong_kind_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="must be"):
        read_metric(text)


@pytest.mark.parametrize("text", ["", "@5", "(rel=2)", "[exact]"])
def test_what_has_no_name_is_refused(text: str) -> None:
    with pytest.raises(SpellingError, match="expected name"):
        read_metric(text)


@pytest.mark.parametrize("text", ["rbp(p=)", "rbp(=0.5)", "rbp(0.5,)"])
def test_a_parameter_is_not_empty(text: str) -> None:
    with pytest.raises(SpellingError, match="empty parameter"):
        read_metric(text)


def test_more_is_better_but_for_a_few() -> None:
    less = {name for name in METRICS if METRICS[name].higher_is_better is False}
    assert less == {"contradiction", "num_nonrel_judged_ret", "rbp_resid", "unjudged"}
    neither = {name for name in METRICS if METRICS[name].higher_is_better is None}
    assert neither == {"ideal_dcg", "num_q", "num_rel", "num_ret"}


@pytest.mark.parametrize(
    "text",
    [
        "rbp(p=0.8, gain=binary)",
        "rbp_resid(p=0.8)",
        "err(max_grade=4)",
        "compat(p=0.95, normalize=true)",
        "iprec(recall=0, rounding=nearest)",
        "r_precision(mult=1)",
        "q_measure(beta=1)",
        "set_f(beta=1)",
        "alpha_dcg(alpha=0.5)",
        "err_ia(alpha=0.5)",
        "nrbp(alpha=0.5, beta=0.5)",
        "nerr10(p=0.9)",
        "inst(goal=1)",
        "sdcg(max_grade=1, min_grade=0)",
        "complete(tau=0.9)",
        "recall_at_budget(tokens=2000)",
        "iou(overlap=merged)",
        "utility(found=1, noise=-1, missed=0, rest=0, collection=0)",
    ],
)
def test_a_parameter_at_its_default_is_left_out(text: str) -> None:
    assert str(read_metric(text)) == text.partition("(")[0]


def test_what_scores_can_be_and_how_they_are_averaged() -> None:
    kinds = METRICS.items()
    binary = {name for name, kind in kinds if kind.binary}
    assert binary == {"hit", "containment", "recall_all", "complete"}
    counts = {"hits", "num_q", "num_ret", "num_rel", "num_rel_ret"}
    counts |= {"num_nonrel_judged_ret", "dcg", "ideal_dcg"}
    infinite = float("inf")
    for name, kind in kinds:
        low, high = -infinite if name in {"yaap", "utility"} else 0.0, infinite
        expected = (low, high) if low or name in counts else (0.0, 1.0)
        assert kind.bounds == expected, name
    averages = {name: kind.average for name, kind in kinds if kind.average != "mean"}
    assert averages == {"gm_ap": "geometric", "gm_bpref": "geometric", "num_q": "sum"}


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("recall@K", "recall@k"),
        ("recall@999999999", "recall@999999999"),
        ("rbp(0.5)", "rbp(p=0.5)"),
        ("rbp(0.5, scaled, 2)", "rbp(p=0.5, gain=scaled, threshold=2)"),
        ("rbp(scaled)", "rbp(gain=scaled)"),
        ("set_f(2, threshold=1.5)", "set_f(beta=2, threshold=1.5)"),
        ("compat(normalize=False)", "compat(normalize=false)"),
        ("complete(tau=1)", "complete(tau=1)"),
        ("iprec(recall=1)", "iprec(recall=1)"),
        ("inst(goal=0.25)", "inst(goal=0.25)"),
        ("err(max_grade=1)", "err(max_grade=1)"),
    ],
)
def test_values_find_their_parameters(text: str, spelling: str) -> None:
    metric = read_metric(text)
    assert str(metric) == spelling
    assert read_metric(spelling) == metric


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recall@0", "k must be an integer >= 1"),
        ("recall@-1", "k must be an integer >= 1"),
        ("recall@1.5", "k must be an integer >= 1"),
        ("recall@1000000000", "k must be an integer >= 1"),
        ("set_f(1, 2, 3)", "too many values for metric"),
        ("rbp(p=0.5, p=0.6)", "p is given twice"),
        ("recall(k=5)", "unknown parameter of recall 'k'"),
        ("compat(normalize=1)", "normalize must be true or false"),
        ("rbp(gain=1)", "gain must be a word"),
        ("complete(tau=0)", "tau must be a number > 0 and <= 1"),
        ("inst(goal=0.24)", "goal must be a number >= 0.25, got 0.24"),
        ("recall(threshold=true)", "threshold must be a number"),
        ("recall[exact](threshold=2)", "expected name"),
        ("r" * 301, "expected name"),
    ],
)
def test_values_that_fit_no_parameter_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        read_metric(text)
    assert len(str(caught.value)) < 450


@pytest.mark.parametrize("name", METRICS)
def test_only_counts_are_defined_where_nothing_is_judged(name: str) -> None:
    hits = hits_of({"q": ["a", "x"], "p": ["a", "x"]}, {"q": {"a": 1}, "p": {}})
    judged, unjudged = METRICS[name]().score(hits)
    assert not np.isnan(judged)
    assert np.isnan(unjudged) == (not name.startswith(("num_", "utility")))


def test_a_measure_that_is_none_is_shown_in_sixty_letters() -> None:
    measure: Any = Decimal("1" * 100)
    with pytest.raises(UsageError) as caught:
        karat.evaluate({"q": ["a"]}, {"q": ["a"]}, metrics=[measure])
    assert str(caught.value).endswith(f"got Decimal '{'1' * 60}'")


@pytest.mark.parametrize(
    ("metrics", "names"),
    [
        ("recall@5,10", ["recall@5", "recall@10"]),
        ("recall@5, 10, rr", ["recall@5", "recall@10", "rr"]),
        ("P_5,10", ["precision@5", "precision@10"]),
        ("rbp(p=0.5, threshold=1)@3,rr", ["rbp(p=0.5, threshold=1)@3", "rr"]),
        (["rr,", "ap,ndcg@3,5"], ["rr", "ap", "ndcg@3", "ndcg@5"]),
        (NDCG(3), ["ndcg@3"]),
    ],
)
def test_metrics_may_stand_in_one_text(metrics: Any, names: list[str]) -> None:
    means = karat.evaluate({"q": ["a"]}, {"q": ["a"]}, metrics=metrics).means
    assert [*means] == names


def test_a_name_of_three_hundred_letters_is_looked_up() -> None:
    with pytest.raises(UnknownNameError):
        read_metric("r" * 300)
