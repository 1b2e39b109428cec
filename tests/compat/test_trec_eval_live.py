"""karat's trec_eval 9 against pytrec_eval, which embeds the original."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from karat.compat.trec_eval import trec_eval_lines
from karat.data.memory_runs import ScoredRun
from tests.compat.trec_files import Qrels, read_qrels, read_rankings

Rankings = Mapping[str, Mapping[str, float]]


def assert_equal_to_pytrec_eval(
    qrels: Qrels, rankings: Rankings, level: int, *, judged_only: bool = False
) -> None:
    """Every value of every topic, as printed."""
    whole = {
        topic: {document: int(grade) for document, grade in row.items()}
        for topic, row in qrels.items()
    }
    evaluator = pytrec_eval.RelevanceEvaluator(
        whole,
        pytrec_eval.supported_measures,
        relevance_level=level,
        judged_docs_only_flag=judged_only,
    )
    theirs = evaluator.evaluate(rankings)
    lines = trec_eval_lines(
        qrels,
        ScoredRun(rankings),
        measures=["all_trec"],
        version="9",
        per_query=True,
        level=level,
        judged_only=judged_only,
        summary=False,
    )
    compared = 0
    for line in lines:
        name, topic, value = line.split("\t")
        if not name.startswith("relstring"):
            number = theirs[topic][name.strip()]
            shown = f"{number:.0f}" if name.startswith("num_") else f"{number:6.4f}"
            # What is 0 / 0 has a sign in C and none in Python.
            assert value.replace("-nan", " nan") == shown, (name, topic, number)
            compared += 1
    assert compared == 90 * len(theirs)


@pytest.mark.shared_data
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        ("cacm/qrels.cacm.txt", "cacm/cacm-bm25.txt"),
        ("cast21/qrels.gz", "cast21/org_convdr.run.gz"),
        ("cast21/qrels.gz", "cast21/org_convdr_bert.run.gz"),
        ("cast21/qrels.gz", "cast21/org_manual_bm25.run.gz"),
    ],
)
def test_real_runs_agree(qrels: str, run: str, level: int, shared_data: Path) -> None:
    rankings, _ = read_rankings(shared_data / run)
    assert_equal_to_pytrec_eval(read_qrels(shared_data / qrels), rankings, level)


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_random_runs_full_of_ties_agree(seed: int, judged_only: bool) -> None:  # noqa: FBT001
    draw = np.random.default_rng(seed)
    grades = [(0, 1), (0, 1, 2, 3), (-2, -1, 0, 1, 2), (0, 0, 12)][seed % 4]
    documents = [f"d{number}" for number in range(int(draw.integers(5, 300)))]
    qrels: Qrels = {}
    rankings: dict[str, dict[str, float]] = {}
    for number in range(10):
        judged = draw.permutation(documents)[: draw.integers(1, len(documents))]
        found = draw.permutation(documents)[: draw.integers(1, len(documents))]
        labels = draw.choice(grades, len(judged)).astype(float)
        scores = draw.integers(0, [3, 50, 10**6][number % 3], len(found)) / 7
        # The original reads past its memory where no grade is 0 or more.
        qrels[f"q{number}"] = dict(zip(judged.tolist(), labels.tolist(), strict=True))
        qrels[f"q{number}"]["d0"] = 0.0
        rankings[f"q{number}"] = dict(zip(found.tolist(), scores.tolist(), strict=True))
    level = 1 + seed % 3
    assert_equal_to_pytrec_eval(qrels, rankings, level, judged_only=judged_only)


def test_scores_are_compared_in_single_precision_by_version_9_only() -> None:
    qrels = {"q": {"a": 1.0, "z": 0.0}}
    run = ScoredRun({"q": {"a": 1.000000002, "z": 1.000000001}})
    for version, value in [("9", "0.5000"), ("10", "1.0000")]:
        [line] = trec_eval_lines(qrels, run, measures=["recip_rank"], version=version)
        assert line.split() == ["recip_rank", "all", value]
