"""The worked examples of the documents karat answers to, to the digits they print."""

import json
from math import log2
from typing import Any

import numpy as np
import pytest

import karat
from karat.extend import NDCG, Hits
from tests.oracles import exact

RANKING = ["doc-7", "doc-3", "doc-1", "doc-9", "doc-2"]
RELEVANT = ["doc-3", "doc-9"]

PARIS = "Paris is the capital of France."
TOWER = "The Eiffel Tower was built in 1889."
EUROPE = "France is in Europe."
LOUVRE = "The Louvre is in Paris."
NAPOLEON = "Napoleon was born in Corsica."


def one(run: Any, metric: str, **options: Any) -> float:
    (score,) = karat.evaluate(run, metrics=[metric], **options)[metric].scores
    return float(score)


def sample(output: object, **facts: object) -> list[dict[str, object]]:
    return [
        {"id": "q-1", "expected_output": RELEVANT, "actual_output": output, **facts}
    ]


OUTPUTS = {
    "objects": {"retrieved": [{"id": name, "text": "..."} for name in RANKING]},
    "bare array": RANKING,
    "JSON string of objects": json.dumps(
        {"retrieved": [{"id": name, "text": "..."} for name in RANKING]}
    ),
    "JSON string of a bare array": json.dumps(RANKING),
}


@pytest.mark.parametrize("shape", OUTPUTS)
def test_the_ranking_table_of_the_worked_comparison(shape: str) -> None:
    run = sample(OUTPUTS[shape], metadata={"k": 5})
    assert one(run, "hit@5") == 1.0
    assert one(run, "recall@5") == 1.0
    assert one(run, "rr") == 0.5
    assert round(one(run, "ndcg@5"), 2) == 0.65


def test_the_ranking_table_by_its_own_names_for_the_metrics() -> None:
    names = {
        "retrieval-hit-at-k": 1.0,
        "retrieval-recall-at-k": 1.0,
        "retrieval-mrr": 0.5,
        "retrieval-ndcg-at-k": 0.65,
    }
    evaluation = karat.evaluate(sample(RANKING, metadata={"k": 5}), metrics=list(names))
    means = [round(mean, 2) for mean in evaluation.means.values()]
    assert means == list(names.values())


def test_the_parts_of_the_ndcg_of_the_worked_comparison() -> None:
    case = exact.by_id(RANKING, dict.fromkeys(RELEVANT, 1))
    hits = Hits(**_columns(ranks=[2, 4], grades=[1.0, 1.0], retrieved=5))
    gained, ideal = NDCG(k=5).dcg(hits)[0], NDCG(k=5).ideal(hits)[0]
    assert gained == pytest.approx(float(exact.dcg(case, 5)), abs=1e-15)
    assert round(gained, 2) == round(1 / log2(3) + 1 / log2(5), 2) == 1.06
    assert round(ideal, 2) == round(1 + 1 / log2(3), 2) == 1.63


def _columns(ranks: list[int], grades: list[float], retrieved: int) -> dict[str, Any]:
    return {
        "query": np.zeros(len(ranks), np.int64),
        "rank": np.array(ranks),
        "grade": np.array(grades),
        "gold_count": np.array([len(grades)]),
        "gold_grade": np.array(grades),
        "retrieved": np.array([retrieved]),
    }


def test_graded_gains_are_linear_and_pay_the_better_document_higher_up() -> None:
    graded = {"doc-3": 3, "doc-9": 1}
    expected = (3 / log2(3) + 1 / log2(5)) / (3 + 1 / log2(3))
    score = one(sample(RANKING, expected_output=graded), "ndcg@5")
    assert score == pytest.approx(expected, abs=1e-12)
    swapped = ["doc-7", "doc-9", "doc-1", "doc-3", "doc-2"]
    assert one(sample(swapped, expected_output=graded), "ndcg@5") < score


@pytest.mark.parametrize(("rank", "printed"), [(1, 1.0), (2, 0.5), (4, 0.25)])
def test_the_first_hit_scores_one_over_its_rank(rank: int, printed: float) -> None:
    ranking = [f"x-{n}" for n in range(5)]
    ranking[rank - 1] = "doc-3"
    assert one(sample(ranking), "rr") == printed


def test_k_is_the_samples_own_then_the_callers_then_five() -> None:
    late = [f"x-{n}" for n in range(5)] + RELEVANT
    assert one(sample(late, metadata={"k": 7}), "recall@k", k=6) == 1.0
    assert one(sample(late), "recall@k", k=6) == 0.5
    assert one(sample(late), "recall@k") == 0.0


def test_the_single_recall_of_chunks() -> None:
    pair = {
        "hypothesis": json.dumps([PARIS, TOWER, EUROPE, LOUVRE, NAPOLEON]),
        "reference": json.dumps([PARIS, TOWER, LOUVRE]),
    }
    assert one([pair], "recall@5") == 1.0
    assert one([pair], "recall") == 1.0
    assert one([pair], "recall@3") == 2 / 3


def test_the_batch_of_chunk_recalls_by_exact_text() -> None:
    hypotheses = [
        [PARIS, EUROPE, NAPOLEON],
        ["The sky is blue.", "Water is wet."],
        ["Unrelated 1.", "Unrelated 2.", "Unrelated 3.", LOUVRE],
    ]
    references = [[PARIS, TOWER], ["The sky is blue.", "Water is wet."], [LOUVRE]]
    samples = [
        {"hypothesis": json.dumps(found), "reference": json.dumps(wanted)}
        for found, wanted in zip(hypotheses, references, strict=True)
    ]
    for match in ("auto", "exact"):
        evaluation = karat.evaluate(samples, metrics=["recall@3"], match=match)
        assert evaluation["recall@3"].scores.tolist() == [0.5, 1.0, 0.0]
    by_letter = karat.evaluate(samples, metrics=["recall_at_k"], k=3)
    assert list(by_letter.means.values()) == [0.5]


def test_the_id_based_context_recall() -> None:
    sample = {
        "retrieved_context_ids": ["doc_1", "doc_2", "doc_3"],
        "reference_context_ids": ["doc_1", "doc_4", "doc_5", "doc_6"],
    }
    assert one([sample], "recall") == 0.25


def test_the_id_based_context_recall_works_with_integer_ids() -> None:
    sample = {
        "retrieved_context_ids": [1, 2, 3],
        "reference_context_ids": [1, 4, 5, 6],
    }
    assert one([sample], "recall") == 0.25


def test_the_context_recall_of_equal_texts() -> None:
    sample = {
        "retrieved_contexts": [PARIS],
        "reference_contexts": [
            PARIS,
            "The Eiffel Tower is one of the most famous landmarks in Paris.",
        ],
    }
    assert one([sample], "recall") == 0.5


def formula(relevances: list[int], k: int) -> float:
    """DCG = rel[0] + sum of rel[i] / log2(i + 1), over that of the sorted list."""

    def dcg(values: list[int]) -> float:
        tail = sum(value / log2(i + 1) for i, value in enumerate(values[:k]) if i)
        return values[0] + tail

    ideal = dcg(sorted(relevances, reverse=True))
    return dcg(relevances) / ideal if ideal else 0.0


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10])
@pytest.mark.parametrize(
    "relevances", [[0, 1, 0, 1, 0], [1], [0, 0, 0, 1], [1, 1, 0, 1, 1, 0, 1], [0, 0]]
)
def test_ndcg_any_is_the_formula_of_its_page(relevances: list[int], k: int) -> None:
    ranking = [f"d{n}" for n in range(len(relevances))]
    gold = [name for name, r in zip(ranking, relevances, strict=True) if r]
    run = {"q": ranking, "other": ["d0"]}
    labels = {"q": [*gold, "never found"], "other": ["d0"]}
    score = karat.evaluate(run, gold=labels, metrics=[f"NDCG_any@{k}"])
    found = next(iter(score.columns.values())).scores[0]
    assert found == pytest.approx(formula(relevances, k), abs=1e-12)


def test_lists_of_lists_give_pooled_and_single_recalls_at_several_k() -> None:
    gold = [["doc1", "doc2"], ["doc3"]]
    retrieved = [["doc1", "doc3", "doc2"], ["doc4", "doc3"]]
    names = ["Recall@1", "Recall@5", "Recall_all@1", "Recall_all@5"]
    evaluation = karat.evaluate(retrieved, gold=gold, metrics=names)
    singles = [column.scores.tolist() for column in evaluation.columns.values()]
    assert singles == [[0.5, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    assert list(evaluation.means.values()) == [0.25, 1.0, 0.0, 1.0]
