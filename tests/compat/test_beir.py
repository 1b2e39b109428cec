"""The profile `beir`: documents that have the id of their query are not read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval

import karat
from karat.extend import UsageError

METRICS = {"ndcg_cut_10": "ndcg@10", "map_cut_10": "map@10", "recall_10": "recall@10"}


def queries_in_the_corpus() -> tuple[dict[str, Any], dict[str, Any]]:
    draw = np.random.default_rng(5)
    names = [f"d{n}" for n in range(30)]
    run, qrels = {}, {}
    for query in names:
        found = [*draw.permutation(names)[:12].tolist(), query]
        run[query] = dict(zip(found, draw.permutation(13).tolist(), strict=False))
        judged = [*draw.permutation(names)[:9].tolist(), *[query] * (len(run) % 2)]
        qrels[query] = {name: int(draw.integers(0, 3)) for name in judged}
    del run["d3"]
    return run, qrels


def beir(run: Any, qrels: Any) -> dict[str, float]:
    """What BEIR reports: pytrec_eval after the ids of queries are taken out."""
    left = {
        query: {name: float(s) for name, s in row.items() if name != query}
        for query, row in run.items()
    }
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, METRICS.keys())
    rows = evaluator.evaluate(left).values()
    return {
        ours: sum(row[theirs] for row in rows) / len(rows)
        for theirs, ours in METRICS.items()
    }


def test_the_profile_gives_what_beir_reports() -> None:
    run, qrels = queries_in_the_corpus()
    result = karat.evaluate(
        run, gold=qrels, metrics=[*METRICS.values()], profile="beir"
    )
    expected = beir(run, qrels)
    for metric, mean in expected.items():
        assert result[metric].mean == pytest.approx(mean, abs=1e-12)
    native = karat.evaluate(run, gold=qrels, metrics=["ndcg@10"])
    assert native.means["ndcg@10"] != pytest.approx(expected["ndcg@10"], abs=1e-3)
    assert "identical=ignore" in str(result)


def test_every_kind_of_run_ignores_them_alike(tmp_path: Path) -> None:
    run, qrels = queries_in_the_corpus()
    lines = [
        f"{query} Q0 {name} 0 {score} tag\n"
        for query, row in run.items()
        for name, score in row.items()
    ]
    path = tmp_path / "run.trec"
    path.write_text("".join(lines), "utf-8")
    ranked = {
        q: sorted(row, key=row.__getitem__, reverse=True) for q, row in run.items()
    }
    options: dict[str, Any] = {"gold": qrels, "metrics": ["ap", "num_ret", "rr@3"]}
    means = [
        karat.evaluate(given, identical="ignore", **options).means
        for given in (run, ranked, path)
    ]
    assert means[0] == means[1] == means[2]
    assert karat.evaluate(run, **options).means["num_ret"] > means[0]["num_ret"]


def test_mrr_at_ten_of_ms_marco_counts_every_query() -> None:
    run = {"1": ["a"], "2": [*"bcdefghijk", "z"], "4": ["x"]}
    gold = {"1": ["a"], "2": ["z"], "3": ["y"], "4": ["y"]}
    result = karat.evaluate(run, gold=gold, metrics=["MRR@10"])
    assert result.means == {"rr@10": 0.25}
    assert result["rr@10"].n == 4


def test_ragas_is_no_profile_and_it_is_said_why() -> None:
    with pytest.raises(UsageError, match=r"two rules on duplicates; karat\.compat"):
        karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, profile="ragas")
