"""Results and data for other tools, and from them."""

import math
from typing import Any, NamedTuple

import pytest

import karat
import karat.compat.ir_measures

DIVERSITY = ("alpha_nDCG@5", "ERR_IA@5", "NRBP", "AP_IA", "StRecall@5", "P_IA@5")
GOLD = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d4": 1}, "q3": {"d9": 1}}
RUN = {"q1": {"d1": 0.5, "d2": 0.9, "d5": 0.9}, "q2": {"d4": 0.1, "d5": 0.7}}


def test_flat_names_fit_any_tracker() -> None:
    run = karat.retrieve(lambda _: ["d1"], {"q1": "rye", "q2": "oats"}, cache=None)
    metrics = ["recall@5", "ndcg(gain=exp)@10", "rr"]
    flat = karat.flat_metrics(karat.evaluate(run, gold=GOLD, metrics=metrics))
    assert all(name.replace("_", "").isalnum() for name in flat)
    assert {"recall_at_5", "recall_at_5_low", "recall_at_5_n", "rr"} <= flat.keys()
    assert "ndcg_gain_exp_at_10" in flat
    assert flat["latency_p50_ms"] >= 0
    assert flat["latency_calls_at_once"] == 1
    assert all(math.isfinite(value) for value in flat.values())


def test_a_mean_of_nothing_is_left_out() -> None:
    result = karat.evaluate({"q": ["a"]}, gold={"q": {"a": 0}}, metrics=["rr"])
    assert karat.flat_metrics(result) == {}


def test_ratings_of_rank_eval_are_read() -> None:
    requests = [
        {
            "id": query,
            "request": {"query": {"match": {"text": "rye"}}},
            "ratings": [
                {"_index": "docs", "_id": d, "rating": grade}
                for d, grade in row.items()
            ],
        }
        for query, row in GOLD.items()
    ]
    assert karat.read_gold({"requests": requests}).documents == GOLD


class TrecQrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str


class TrecQuery(NamedTuple):
    query_id: str
    title: str
    description: str

    def default_text(self) -> str:
        return self.title


class GenericDoc(NamedTuple):
    doc_id: str
    text: str


def test_iterators_of_ir_datasets_are_read() -> None:
    rows = [(q, d, grade, "0") for q, row in GOLD.items() for d, grade in row.items()]
    gold = karat.read_gold(TrecQrel(*row) for row in rows)
    assert gold.documents == GOLD
    corpus = karat.read_corpus(GenericDoc(d, f"Text of {d}.") for d in ("d1", "d2"))
    assert corpus["d2"] == "Text of d2."
    asked: list[str] = []

    def search(query: str) -> list[str]:
        asked.append(query)
        return ["d1"]

    queries = (TrecQuery(q, f"title of {q}", "long") for q in GOLD)
    karat.retrieve(search, queries, cache=None)
    assert asked == ["title of q1", "title of q2", "title of q3"]


def test_ir_measures_gets_the_numbers_of_its_own_provider() -> None:
    ir_measures: Any = pytest.importorskip("ir_measures")
    names = ["nDCG@10", "AP", "AP(rel=2)", "RR", "P@2", "R@5", "Success@1", "Rprec"]
    measures = [ir_measures.parse_measure(name) for name in names]
    ours = karat.compat.ir_measures.provider()
    assert all(map(ours.supports, measures))
    theirs = ir_measures.pytrec_eval
    for measure in measures:
        per_query = [
            {m.query_id: m.value for m in p.iter_calc([measure], GOLD, RUN)}
            for p in (ours, theirs)
        ]
        assert per_query[0] == pytest.approx(per_query[1]), measure
    mine = ours.calc_aggregate(measures, GOLD, RUN)
    assert mine == pytest.approx(theirs.calc_aggregate(measures, GOLD, RUN))


def test_ir_measures_asks_karat_first_once_it_is_registered() -> None:
    ir_measures: Any = pytest.importorskip("ir_measures")
    before = [*ir_measures.DefaultPipeline.providers]
    try:
        one = karat.compat.ir_measures.register()
        assert karat.compat.ir_measures.register() is one
        assert ir_measures.DefaultPipeline.providers[0] is one
        measure = ir_measures.nDCG @ 10
        found = ir_measures.calc_aggregate([measure], GOLD, RUN)
        assert found[measure] == pytest.approx(
            ir_measures.pytrec_eval.calc_aggregate([measure], GOLD, RUN)[measure]
        )
        for name in DIVERSITY:
            measure = ir_measures.parse_measure(name)
            assert one.supports(measure)
            assert 0 < ir_measures.calc_aggregate([measure], GOLD, RUN)[measure] <= 1
    finally:
        ir_measures.DefaultPipeline.providers[:] = before
