"""Ranks agree with pytrec_eval, which wraps trec_eval 9, on real and on tricky runs."""

from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from karat.extend import Labels, Policies, open_binary
from karat.reading.trec import TrecRun, read_qrels

GOLDEN = Path(__file__).parents[1] / "golden" / "trec"
SETS = sorted(path.stem for path in GOLDEN.glob("*.run"))
SINGLE = Policies(precision="single")


def average_precision(run: TrecRun, labels: Labels) -> dict[str, float]:
    found = run.locate(labels, judged=False, policies=SINGLE)
    scores = {}
    for number, (query, wanted) in enumerate(labels.items()):
        if found.retrieved[number] >= 0:
            ranks = found.rank[found.query == number]
            total = sum((j + 1) / rank for j, rank in enumerate(ranks.tolist()))
            scores[query] = total / max(1, sum(grade > 0 for grade in wanted.values()))
    return scores


def oracle(path: Path, labels: Labels) -> dict[str, dict[str, float]]:
    run: dict[str, dict[str, float]] = {}
    with open_binary(path) as stream:
        for line in stream.read().decode().splitlines():
            query, _, document, _, score = line.split()[:5]
            run.setdefault(query, {})[document] = float(score)
    grades = {q: {d: int(g) for d, g in wanted.items()} for q, wanted in labels.items()}
    scores = pytrec_eval.RelevanceEvaluator(grades, {"map", "num_ret"}).evaluate(run)
    return {query: scores[query] for query in labels if query in scores}


def check(run: Path, qrels: Path, block: int) -> None:
    labels = read_qrels(qrels)
    expected = oracle(run, labels)
    ours = TrecRun(run, block=block)
    got = average_precision(ours, labels)
    assert got.keys() == expected.keys()
    for query, score in got.items():
        assert score == pytest.approx(expected[query]["map"], abs=1e-12), query
    found = ours.locate(labels, judged=True, policies=SINGLE)
    sizes = found.retrieved[found.retrieved >= 0].tolist()
    assert sizes == [scores["num_ret"] for scores in expected.values()]
    assert (np.diff(found.query * 1_000_000 + found.rank) > 0).all()


@pytest.mark.parametrize("block", [500, 1 << 20])
@pytest.mark.parametrize("name", SETS)
def test_tricky_runs(name: str, block: int) -> None:
    check(GOLDEN / f"{name}.run", GOLDEN / f"{name}.qrels", block)


def test_there_are_tricky_runs() -> None:
    assert len(SETS) >= 5


@pytest.mark.shared_data
@pytest.mark.parametrize("block", [4000, 1 << 20])
@pytest.mark.parametrize(
    ("run", "qrels"),
    [
        ("cacm/cacm-bm25.txt", "cacm/qrels.cacm.txt"),
        ("cast21/org_convdr.run.gz", "cast21/qrels.gz"),
        ("cast21/org_convdr_bert.run.gz", "cast21/qrels.gz"),
        ("cast21/org_manual_bm25.run.gz", "cast21/qrels.gz"),
        ("trec_eval_test/results.test", "trec_eval_test/qrels.test"),
        ("trec_eval_test/results.trunc", "trec_eval_test/qrels.rel_level"),
    ],
)
def test_real_runs(run: str, qrels: str, block: int, shared_data: Path) -> None:
    check(shared_data / run, shared_data / qrels, block)
