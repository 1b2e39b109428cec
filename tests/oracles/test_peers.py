"""karat against pytrec_eval, ir_measures and ranx, wherever definitions agree.

Where they do not, the cause has a test of its own in test_peer_differences.
"""

import shutil
from collections.abc import Mapping
from typing import Any

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings, strategies as st

import karat
from karat import Evaluation
from tests.oracles.cases import Batch, column, random_batch

PYTREC_EVAL = {
    "map": "ap",
    "map_cut_1": "ap@1",
    "map_cut_5": "ap@5",
    "recip_rank": "rr",
    "ndcg": "ndcg",
    "ndcg_cut_1": "ndcg@1",
    "ndcg_cut_5": "ndcg@5",
    "P_1": "precision@1",
    "P_5": "precision@5",
    "recall_1": "recall@1",
    "recall_5": "recall@5",
    "success_1": "hit@1",
    "success_5": "hit@5",
    "relative_P_5": "recall_capped@5",
    "Rprec": "r_precision",
    "Rprec_mult_0.20": "r_precision(mult=0.2)",
    "Rprec_mult_1.40": "r_precision(mult=1.4)",
    "bpref": "bpref",
    "infAP": "infap",
    "iprec_at_recall_0.00": "iprec(0.0)",
    "iprec_at_recall_1.00": "iprec(1.0)",
    "set_P": "set_precision",
    "set_recall": "set_recall",
    "set_F": "set_f",
    "set_map": "set_ap",
    "set_relative_P": "set_relative_precision",
    "Rndcg": "rndcg",
    "ndcg_rel": "ndcg_rel",
    "G": "g",
    "binG": "bing",
    "utility": "utility",
    "num_ret": "num_ret",
    "num_rel": "num_rel",
    "num_rel_ret": "num_rel_ret",
    "num_nonrel_judged_ret": "num_nonrel_judged_ret",
}

IR_MEASURES = {
    "AP": "ap",
    "AP(rel=2)": "ap(threshold=2)",
    "AP@5": "ap@5",
    "RR": "rr",
    "RR@5": "rr@5",
    "RR(rel=2)@5": "rr(threshold=2)@5",
    "nDCG": "ndcg",
    "nDCG@5": "ndcg@5",
    "P@5": "precision@5",
    "P(rel=2)@5": "precision(threshold=2)@5",
    "R@5": "recall@5",
    "Success@5": "hit@5",
    "Rprec": "r_precision",
    "Bpref": "bpref",
    "Bpref(rel=2)": "bpref(threshold=2)",
    "infAP": "infap",
    "SetP": "set_precision",
    "SetR": "set_recall",
    "SetF": "set_f",
    "SetAP": "set_ap",
    "Judged@5": "judged@5",
    "Judged@20": "judged@20",
}

RANX = {
    "precision@5": "precision@5",
    "recall": "recall",
    "recall@5": "recall@5",
    "recall@5-l2": "recall(threshold=2)@5",
    "f1@5": "f1@5",
    "hit_rate@1": "hit@1",
    "hit_rate@5": "hit@5",
    "mrr": "rr",
    "mrr@5": "rr@5",
    "map": "ap",
    "map@5": "ap@5",
    "map-l2": "ap(threshold=2)",
    "ndcg": "ndcg",
    "ndcg@5": "ndcg@5",
    "ndcg_burges": "ndcg(gain=exp)",
    "ndcg_burges@5": "ndcg(gain=exp)@5",
    "r-precision": "r_precision",
}

# Sums and squares of these are exact in single precision too, so that ties are ties.
scores = st.sampled_from([-1.0, 0.0, 0.25, 1.0, 1024.0])
documents = st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "h", "ab", "é", "𝄞"])
found = st.dictionaries(documents, scores, min_size=1)
labelled = st.dictionaries(documents, st.integers(-1, 3), min_size=1)


def as_integers(gold: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, int]]:
    return {
        query: {name: int(grade) for name, grade in labels.items()}
        for query, labels in gold.items()
    }


def assert_agrees(
    evaluation: Evaluation, names: Mapping[str, str], peer: dict[str, dict[str, float]]
) -> None:
    """Equal where karat has a score; peers call it 0 where there can be none."""
    queries = evaluation.queries
    for theirs, ours in names.items():
        wanted = np.array([peer[query][theirs] for query in queries])
        ours_of = np.nan_to_num(column(evaluation, ours).scores, nan=0.0)
        np.testing.assert_allclose(ours_of, wanted, rtol=0, atol=1e-12, err_msg=ours)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(found, labelled), min_size=1, max_size=5))
def test_pytrec_eval_agrees_on_every_measure_ties_and_negative_grades_included(
    rows: list[tuple[dict[str, float], dict[str, int]]],
) -> None:
    # One query that surely matches: a run sharing no id with its gold is refused.
    pairs = [({"a": 1.0}, {"a": 1}), *rows]
    run = {f"q{n}": scores for n, (scores, _) in enumerate(pairs)}
    gold = {f"q{n}": labels for n, (_, labels) in enumerate(pairs)}
    evaluation = karat.evaluate(run, gold=gold, metrics=list(PYTREC_EVAL.values()))
    evaluator = pytrec_eval.RelevanceEvaluator(gold, _requested(PYTREC_EVAL))
    assert_agrees(evaluation, PYTREC_EVAL, evaluator.evaluate(run))


def _requested(names: Mapping[str, str]) -> set[str]:
    families = ("map_cut", "ndcg_cut", "P", "recall", "success", "relative_P")
    levels = ("iprec_at_recall", "Rprec_mult")
    requested: set[str] = set()
    for name in names:
        family, _, cutoff = name.rpartition("_")
        if family in families:
            requested.add(f"{family}.{cutoff}")
        else:
            requested.add(family if family in levels else name)
    return requested


@pytest.fixture(scope="module")
def graded() -> Batch:
    return complete(random_batch(11, 400, (-1, 0, 0, 1, 2, 3)))


@pytest.fixture(scope="module")
def untied() -> Batch:
    return complete(random_batch(12, 400, (-1, 0, 0, 1, 2, 3), ties=False))


def complete(batch: Batch) -> Batch:
    """Only queries for which something was retrieved: peers disagree on the others."""
    kept = [query for query in batch.gold if batch.scores.get(query)]
    return Batch(
        {query: batch.scores[query] for query in kept},
        {query: batch.rankings[query] for query in kept},
        {query: batch.gold[query] for query in kept},
        {query: batch.cases[query] for query in kept},
    )


def test_pytrec_eval_agrees_on_a_threshold(graded: Batch) -> None:
    measures = {
        "map": "ap",
        "recip_rank": "rr",
        "bpref": "bpref",
        "infAP": "infap",
        "Rprec": "r_precision",
        "set_F": "set_f",
        "P_5": "precision@5",
        "recall_5": "recall@5",
        "success_5": "hit@5",
        "ndcg_cut_5": "ndcg@5",
        "binG": "bing",
        "num_rel": "num_rel",
        "num_nonrel_judged_ret": "num_nonrel_judged_ret",
    }
    evaluator = pytrec_eval.RelevanceEvaluator(
        as_integers(graded.gold), _requested(measures), relevance_level=2
    )
    evaluation = karat.evaluate(
        graded.scores, gold=graded.gold, metrics=list(measures.values()), threshold=2
    )
    assert_agrees(evaluation, measures, evaluator.evaluate(graded.scores))


def test_pytrec_eval_agrees_on_recall_levels_rounded_as_version_9_rounds(
    graded: Batch,
) -> None:
    measures = {
        f"iprec_at_recall_{tenth / 10:.2f}": f"iprec(recall={tenth / 10}, rounding=up)"
        for tenth in range(1, 11)
    }
    measures["11pt_avg"] = "iprec_avg(rounding=up)"
    evaluator = pytrec_eval.RelevanceEvaluator(
        as_integers(graded.gold), _requested(measures)
    )
    evaluation = karat.evaluate(
        graded.scores, gold=graded.gold, metrics=list(measures.values())
    )
    assert_agrees(evaluation, measures, evaluator.evaluate(graded.scores))


def test_the_profile_trec_eval_9_is_pytrec_eval_down_to_its_single_precision() -> None:
    draw = np.random.default_rng(14)
    batch = random_batch(15, 400, (-1, 0, 0, 1, 2, 3))
    # A few steps of 1e-8 around 1 are all one number in single precision, or two.
    run = {
        query: {name: 1.0 + 1e-8 * int(draw.integers(-3, 4)) for name in found}
        for query, found in batch.scores.items()
        if found
    }
    evaluation = karat.evaluate(
        run,
        gold=batch.gold,
        metrics=list(PYTREC_EVAL.values()),
        profile="trec_eval-9",
    )
    evaluator = pytrec_eval.RelevanceEvaluator(
        as_integers(batch.gold), _requested(PYTREC_EVAL)
    )
    peer = evaluator.evaluate(run)
    for theirs, ours in PYTREC_EVAL.items():
        ours_of = column(evaluation, ours)
        wanted = [peer[q][theirs] if q in peer else np.nan for q in batch.gold]
        np.testing.assert_allclose(
            ours_of.scores, wanted, rtol=0, atol=1e-12, err_msg=ours
        )
        assert ours_of.n == len(peer) < len(batch.gold)


def by_query(
    names: Mapping[str, str], gold: dict[str, dict[str, int]], run: object
) -> dict[str, dict[str, float]]:
    measures = {ir_measures.parse_measure(name): name for name in names}
    peer: dict[str, dict[str, float]] = {query: {} for query in gold}
    for found in ir_measures.iter_calc(list(measures), gold, run):
        peer[found.query_id][measures[found.measure]] = found.value
    return peer


def test_ir_measures_agrees_where_its_providers_have_no_ties_to_break(
    untied: Batch,
) -> None:
    evaluation = karat.evaluate(
        untied.scores, gold=untied.gold, metrics=list(IR_MEASURES.values())
    )
    peer = by_query(IR_MEASURES, as_integers(untied.gold), untied.scores)
    assert_agrees(evaluation, IR_MEASURES, peer)


def test_ir_measures_agrees_on_ties_where_it_asks_pytrec_eval(graded: Batch) -> None:
    others = {"RR@5", "RR(rel=2)@5", "Judged@5", "Judged@20"}
    names = {name: ours for name, ours in IR_MEASURES.items() if name not in others}
    evaluation = karat.evaluate(
        graded.scores, gold=graded.gold, metrics=list(names.values())
    )
    assert_agrees(
        evaluation, names, by_query(names, as_integers(graded.gold), graded.scores)
    )


@pytest.mark.skipif(shutil.which("perl") is None, reason="its provider is in Perl")
def test_ir_measures_agrees_on_err_and_exponential_gain_to_its_five_decimals(
    untied: Batch,
) -> None:
    gold = {query[1:]: labels for query, labels in untied.gold.items()}
    run = {query[1:]: scores for query, scores in untied.scores.items()}
    names = {
        "nDCG(dcg='exp-log2')@5": "ndcg(gain=exp)@5",
        "ERR@5": "err(max_grade=4)@5",
        "nDCG(dcg='exp-log2')@20": "ndcg(gain=exp)@20",
        "ERR@20": "err(max_grade=4)@20",
    }
    peer = by_query(names, as_integers(gold), run)
    evaluation = karat.evaluate(run, gold=gold, metrics=list(names.values()))
    for theirs, ours in names.items():
        wanted = [peer[query][theirs] for query in evaluation.queries]
        scores = np.nan_to_num(column(evaluation, ours).scores, nan=0.0)
        np.testing.assert_allclose(scores, wanted, rtol=0, atol=5.1e-6, err_msg=ours)


def test_ranx_agrees_where_there_are_no_ties(ranx: Any, untied: Batch) -> None:
    evaluation = karat.evaluate(
        untied.scores, gold=untied.gold, metrics=list(RANX.values())
    )
    peer = ranx.evaluate(
        ranx.Qrels(as_integers(untied.gold)),
        ranx.Run(untied.scores),
        list(RANX),
        return_mean=False,
    )
    # ranx sorts the queries by their ids.
    order = np.argsort(np.array(list(untied.gold)), kind="stable")
    for theirs, ours in RANX.items():
        scores = np.nan_to_num(column(evaluation, ours).scores, nan=0.0)[order]
        np.testing.assert_allclose(
            scores, peer[theirs], rtol=0, atol=1e-12, err_msg=ours
        )


@pytest.mark.parametrize(
    "name",
    [
        *("recall@5-l2", "precision@5-l2", "map-l2", "map@10-l2", "mrr@5-l3"),
        *("f1@10-l2", "hit_rate@3-l2", "r-precision-l2", "dcg_burges@10", "dcg_burges"),
        *("ndcg@10-l2", "ndcg_burges@10-l3", "dcg@10-l2"),
    ],
)
def test_spellings_of_ranx_mean_what_they_mean_there(
    ranx: Any, untied: Batch, name: str
) -> None:
    gold = as_integers(untied.gold)
    with np.errstate(invalid="ignore"):
        peer = ranx.evaluate(ranx.Qrels(gold), ranx.Run(untied.scores), name)
    ours = karat.evaluate(untied.scores, gold=gold, metrics=[name], undefined="zero")
    (mean,) = ours.means.values()
    assert mean == pytest.approx(float(peer), abs=1e-12)
