"""Real runs with their ties, in columns, scored as pytrec_eval scores them."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import pytrec_eval
from pyarrow import parquet

from karat import evaluate

RUNS = [
    ("cacm/cacm-bm25.txt", "cacm/qrels.cacm.txt"),
    ("cast21/org_convdr.run.gz", "cast21/qrels.gz"),
    ("cast21/org_manual_bm25.run.gz", "cast21/qrels.gz"),
    ("trec_eval_test/results.test", "trec_eval_test/qrels.test"),
]
MEASURES = {
    "ndcg_cut_10": "ndcg@10",
    "map": "ap",
    "recip_rank": "rr",
    "P_10": "precision@10",
}


def words(path: Path) -> list[list[str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [line.split() for line in lines]


def write(file: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    parquet.write_table(pa.table(columns), file, row_group_size=1000)


@pytest.mark.shared_data
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(("run_file", "gold_file"), RUNS)
def test_a_real_run_in_columns_scores_as_pytrec_eval_says(
    run_file: str,
    gold_file: str,
    shuffled: bool,  # noqa: FBT001
    shared_data: Path,
    tmp_path: Path,
) -> None:
    rows = [(w[0], w[2], float(w[4])) for w in words(shared_data / run_file)]
    labels = [(w[0], w[2], int(w[3])) for w in words(shared_data / gold_file)]
    run: dict[str, dict[str, float]] = {}
    gold: dict[str, dict[str, int]] = {}
    for query, document, score in rows:
        run.setdefault(query, {})[document] = score
    for query, document, grade in labels:
        gold.setdefault(query, {})[document] = grade
    if shuffled:
        order = np.random.default_rng(3).permutation(len(rows))
        rows = [rows[at] for at in order]
    files = [str(tmp_path / "run.parquet"), str(tmp_path / "qrels.parquet")]
    write(files[0], ("qid", "docno", "score"), rows)
    write(files[1], ("qid", "docno", "rel"), labels)
    theirs = pytrec_eval.RelevanceEvaluator(gold, {*MEASURES}).evaluate(run)
    mine = evaluate(
        files[0],
        gold=files[1],
        metrics=[*MEASURES.values()],
        undefined="zero",
        # pytrec_eval compares scores in single precision, as trec_eval 9 does.
        profile="trec_eval-9",
    )
    for measure, metric in MEASURES.items():
        expected = [theirs[q][measure] for q in mine.queries if q in theirs]
        scores = [
            s
            for q, s in zip(mine.queries, mine[metric].scores, strict=True)
            if q in theirs
        ]
        assert len(expected) == len(theirs)
        assert np.allclose(expected, scores, rtol=0, atol=1e-12)
