"""Where peers and karat differ: each cause by name, with both numbers."""

import shutil
import subprocess
from math import isnan, log2
from typing import Any

import ir_measures
import numpy as np
import pytest
import pytrec_eval

import karat
from tests.oracles.cases import column

TIED = {"a": 1.0, "m": 1.0}
A_ONLY = {"a": 1, "m": 0}


def ours(run: Any, gold: Any, metric: str, **policies: Any) -> float:
    evaluation = karat.evaluate(run, gold=gold, metrics=[metric], **policies)
    (score,) = column(evaluation, metric).scores
    return float(score)


def trec(run: Any, gold: Any, measure: str, query: str = "1") -> float:
    family = "iprec_at_recall" if measure.startswith("iprec") else measure
    peer = pytrec_eval.RelevanceEvaluator(gold, {family})
    return float(peer.evaluate(run)[query][measure])


def irm(run: Any, gold: Any, measure: str) -> float:
    wanted = ir_measures.parse_measure(measure)
    return float(ir_measures.calc_aggregate([wanted], gold, run)[wanted])


def test_pytrec_eval_compares_scores_in_single_precision() -> None:
    run = {"1": {"a": 1.000000002, "z": 1.000000001}}
    gold = {"1": {"a": 1, "z": 0}}
    assert trec(run, gold, "recip_rank") == 0.5
    assert ours(run, gold, "rr") == 1.0
    assert ours(run, gold, "rr", profile="trec_eval-10") == 1.0
    assert ours(run, gold, "rr", profile="trec_eval-9") == 0.5


def test_pytrec_eval_leaves_out_a_query_that_the_run_misses() -> None:
    run = {"1": {"a": 1.0}}
    gold = {"1": {"a": 1}, "2": {"b": 1}}
    assert set(pytrec_eval.RelevanceEvaluator(gold, {"map"}).evaluate(run)) == {"1"}
    scores = karat.evaluate(run, gold=gold, metrics=["ap"])["ap"]
    assert scores.scores.tolist() == [1.0, 0.0]
    assert scores.mean == irm(run, gold, "AP") == 0.5
    skipped = karat.evaluate(run, gold=gold, metrics=["ap"], missing="skip")["ap"]
    assert (skipped.mean, skipped.n) == (1.0, 1)


def test_ranx_refuses_a_query_without_gold_that_the_others_ignore(ranx: Any) -> None:
    run, gold = {"1": {"a": 1.0}, "2": {"a": 1.0}}, {"1": {"a": 1}}
    if __debug__:  # it asserts, which -O leaves out
        with pytest.raises(AssertionError):
            rx(ranx, run, gold, "mrr@5")
    assert trec(run, gold, "recip_rank") == irm(run, gold, "RR") == 1.0
    assert ours(run, gold, "rr") == 1.0


def test_peers_rank_a_document_whose_score_is_no_number() -> None:
    run, gold = {"1": {"a": float("nan"), "b": 1.0}}, {"1": {"a": 1}}
    assert trec(run, gold, "recip_rank") == 0.5
    assert irm(run, gold, "RR@10") == 1.0
    with pytest.raises(karat.KaratError, match="finite"):
        ours(run, gold, "rr")


def test_peers_score_zero_where_nothing_is_relevant_and_karat_nothing() -> None:
    run = {"1": {"a": 1.0}, "2": {"b": 1.0}}
    gold = {"1": {"a": 1}, "2": {"b": 0}}
    for measure, metric in {"map": "ap", "recip_rank": "rr", "ndcg": "ndcg"}.items():
        assert trec(run, gold, measure, "2") == 0.0
        scores = karat.evaluate(run, gold=gold, metrics=[metric])[metric]
        assert isnan(scores.scores[1])
        assert (scores.mean, scores.n, scores.undefined) == (1.0, 1, 1)
        zeroed = karat.evaluate(run, gold=gold, metrics=[metric], undefined="zero")
        assert zeroed[metric].mean == 0.5
    assert irm(run, gold, "AP") == 0.5


def test_pytrec_eval_rounds_recall_levels_as_version_9_did() -> None:
    # R = 4: 0.3 of it is 1.2 items, which 9 takes for two and 10 for one.
    gold = {"1": dict.fromkeys("abcd", 1)}
    run = {"1": {"a": 9.0, "x": 8.0, "y": 7.0, "b": 6.0}}
    assert trec(run, gold, "iprec_at_recall_0.30") == 0.5
    assert ours(run, gold, "iprec(recall=0.3)") == 1.0
    assert ours(run, gold, "iprec(recall=0.3, rounding=up)") == 0.5


def test_pytrec_eval_ignores_the_cutoff_of_reciprocal_rank() -> None:
    run = {"1": {f"d{n:02}": -float(n) for n in range(11)}}
    gold = {"1": {"d10": 1}}
    peer = pytrec_eval.RelevanceEvaluator(gold, {"recip_rank_10"}).evaluate(run)
    assert peer["1"]["recip_rank"] == 1 / 11
    assert ours(run, gold, "rr@10") == 0.0
    assert irm(run, gold, "RR@10") == 0.0


def test_pytrec_eval_has_no_interpolated_precision_of_an_empty_ranking() -> None:
    run: dict[str, dict[str, float]] = {"1": {}, "2": {"a": 1.0}}
    gold = {"1": {"a": 1}, "2": {"a": 1}}
    # The first answer in a process is 0, every other is none.
    answers = [trec(run, gold, "iprec_at_recall_0.00") for _ in range(2)]
    assert isnan(answers[1])
    scores = karat.evaluate(run, gold=gold, metrics=["iprec"])["iprec"]
    assert scores.scores.tolist() == [0.0, 1.0]


def test_pytrec_eval_takes_neither_integer_ids_nor_fractional_grades() -> None:
    numbered: Any = {1: {8: 1}}
    fractional: Any = {"1": {"a": 0.75, "b": 0.25}}
    with pytest.raises(TypeError):
        pytrec_eval.RelevanceEvaluator(numbered, {"map"})
    assert ours({1: {7: 1.0, 8: 0.5}}, numbered, "ap") == 0.5
    with pytest.raises(TypeError):
        pytrec_eval.RelevanceEvaluator(fractional, {"map"})
    ranked = {"1": {"b": 1.0, "a": 0.5}}
    expected = (0.25 + 0.75 / log2(3)) / (0.75 + 0.25 / log2(3))
    score = ours(ranked, fractional, "ndcg")
    assert score == pytest.approx(expected, abs=1e-12)


def test_ir_measures_breaks_ties_both_ways_in_one_call() -> None:
    gold = {"1": A_ONLY}
    assert irm({"1": TIED}, gold, "RR") == 0.5
    assert irm({"1": TIED}, gold, "RR@10") == 1.0
    assert ours({"1": TIED}, gold, "rr") == ours({"1": TIED}, gold, "rr@10") == 0.5


def test_ir_measures_counts_the_judged_documents_of_another_order() -> None:
    gold = {"1": {"a": 1}}
    assert irm({"1": TIED}, gold, "Judged@1") == 1.0
    assert ours({"1": TIED}, gold, "judged@1") == 0.0


def test_ir_measures_cannot_say_how_much_of_nothing_is_judged() -> None:
    run: dict[str, dict[str, float]] = {"1": {}, "2": {"a": 1.0}}
    gold = {"1": {"a": 1}, "2": {"a": 1}}
    with pytest.raises(ZeroDivisionError):
        irm(run, gold, "Judged@5")
    scores = karat.evaluate(run, gold=gold, metrics=["judged@5"])["judged@5"]
    assert isnan(scores.scores[0])
    assert scores.mean == 1.0


def test_ir_measures_calls_a_negative_grade_judged_and_trec_eval_does_not() -> None:
    run, gold = {"1": {"a": 1.0, "b": 0.5}}, {"1": {"a": -1, "b": 1}}
    assert irm(run, gold, "Judged@2") == 1.0
    assert ours(run, gold, "judged@2") == 1.0
    assert ours(run, gold, "unjudged@2") == 0.5


def test_ir_measures_gives_ndcg_no_threshold_and_neither_does_karat() -> None:
    run, gold = {"1": {"a": 1.0, "b": 0.5}}, {"1": {"a": 1, "b": 2}}
    with pytest.raises(KeyError):
        irm(run, gold, "nDCG(rel=2)")
    full = (1 + 2 / log2(3)) / (2 + 1 / log2(3))
    assert ours(run, gold, "ndcg", threshold=2) == pytest.approx(full, abs=1e-12)
    assert ours(run, gold, "ap", threshold=2) == irm(run, gold, "AP(rel=2)") == 0.5


@pytest.mark.skipif(shutil.which("perl") is None, reason="its provider is in Perl")
def test_ir_measures_computes_err_only_for_numbered_queries() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        irm({"q1": {"a": 1.0}}, {"q1": {"a": 1}}, "ERR@5")
    assert ours({"q1": {"a": 1.0}}, {"q1": {"a": 1}}, "err(max_grade=4)@5") == 1 / 16


def rx(ranx: Any, run: Any, gold: Any, measure: str) -> float:
    with np.errstate(invalid="ignore"):
        return float(ranx.evaluate(ranx.Qrels(gold), ranx.Run(run), measure))


def test_ranx_breaks_ties_by_the_order_of_insertion(ranx: Any) -> None:
    gold, run = {"1": A_ONLY}, {"1": TIED}
    backwards = {"1": {"m": 1.0, "a": 1.0}}
    assert rx(ranx, run, gold, "mrr@5") == 1.0
    assert rx(ranx, backwards, gold, "mrr@5") == 0.5
    assert ours(run, gold, "rr@5") == ours(backwards, gold, "rr@5") == 0.5
    assert ours(run, gold, "rr@5", ties="input") == 1.0


def test_ranx_pairs_queries_of_plain_dictionaries_by_position(ranx: Any) -> None:
    gold = {"1": {"a": 1}, "2": {"b": 1}}
    run = {"2": {"b": 1.0}, "1": {"a": 1.0}}
    assert ranx.evaluate(gold, run, "mrr@5") == 0.0
    assert karat.evaluate(run, gold=gold, metrics=["rr@5"]).means == {"rr@5": 1.0}


def test_ranx_refuses_a_run_that_misses_a_query(ranx: Any) -> None:
    gold = {"1": {"a": 1}, "2": {"b": 1}}
    if __debug__:
        with pytest.raises(AssertionError):
            rx(ranx, {"1": {"a": 1.0}}, gold, "mrr@5")
    evaluation = karat.evaluate({"1": {"a": 1.0}}, gold=gold, metrics=["rr@5"])
    assert evaluation["rr@5"].mean == 0.5


def test_ranx_has_no_bpref_without_judged_nonrelevant_documents(ranx: Any) -> None:
    run = {"1": {"x": 3.0, "a": 2.0, "b": 1.0}}
    gold = {"1": {"a": 1, "b": 1}}
    assert isnan(rx(ranx, run, gold, "bpref"))
    assert ours(run, gold, "bpref") == trec(run, gold, "bpref") == 1.0


def test_ranx_takes_a_negative_grade_for_judged_in_bpref(ranx: Any) -> None:
    run, gold = {"1": {"a": 1.0, "b": 0.5}}, {"1": {"a": -1, "b": 2}}
    assert rx(ranx, run, gold, "bpref") == 0.0
    assert ours(run, gold, "bpref") == trec(run, gold, "bpref") == 1.0


def test_ranx_pays_grades_in_rbp_so_that_it_exceeds_one(ranx: Any) -> None:
    run = {"1": {"a": 3.0, "b": 2.0, "c": 1.0}}
    gold = {"1": {"a": 3, "b": 1, "c": 0}}
    assert rx(ranx, run, gold, "rbp.50") == 1.75
    assert ours(run, gold, "rbp(p=0.5)") == 0.75


def test_ranx_lets_a_threshold_change_gains(ranx: Any) -> None:
    run, gold = {"1": {"a": 1.0, "b": 0.5}}, {"1": {"a": 1, "b": 2}}
    assert rx(ranx, run, gold, "ndcg@5-l2") == pytest.approx(1 / log2(3), abs=1e-12)
    full = (1 + 2 / log2(3)) / (2 + 1 / log2(3))
    assert ours(run, gold, "ndcg@5", threshold=2) == pytest.approx(full, abs=1e-12)


def test_ranx_cuts_fractional_grades_to_integers(ranx: Any) -> None:
    run, gold = {"1": {"a": 1.0}}, {"1": {"a": 0.9}}
    assert rx(ranx, run, gold, "mrr@5") == 0.0
    assert ours(run, gold, "rr@5") == 1.0


def test_ir_measures_takes_what_was_not_retrieved_for_a_score_of_zero() -> None:
    gold = {"1": dict.fromkeys("abc", 1)}
    run = {"1": {"a": 3.0, "x": 2.0, "b": 1.0}}
    below = {"1": {name: score - 10 for name, score in run["1"].items()}}
    assert irm(run, gold, "Compat") == pytest.approx(ours(run, gold, "Compat"))
    assert ours(below, gold, "Compat") == ours(run, gold, "Compat")
    # The ideal puts "c" first there, since 0 is more than -7.
    assert irm(below, gold, "Compat") < 0.6 * irm(run, gold, "Compat")


def test_ir_measures_rounds_recall_levels_as_version_9_did() -> None:
    gold = {"1": dict.fromkeys("abcd", 1)}
    run = {"1": {"a": 9.0, "x": 8.0, "y": 7.0, "b": 6.0}}
    assert irm(run, gold, "IPrec@0.3") == 0.5
    assert ours(run, gold, "iprec(recall=0.3)") == 1.0
