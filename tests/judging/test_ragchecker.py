"""RAGChecker's recorded judgements, replayed, give its published numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.extend import Claims, Prompt
from karat.judging.contexts import CONTEXT_TOKENS
from tests.judging.models import Model, claims_in, contexts_in, session_of, verdicts


def recorded(folder: Path) -> dict[str, Any]:
    path = folder / "ragchecker" / "checking_outputs.json"
    saved: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return saved


def samples(saved: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "id": row["query_id"],
            "query": row["query"],
            "retrieved": [
                {"id": passage["doc_id"], "text": passage["text"]}
                for passage in row["retrieved_context"]
            ],
            "claims": [" ".join(triple) for triple in row["gt_answer_claims"]],
        }
        for row in saved["results"]
    ]


def replay(saved: dict[str, Any]) -> Model:
    """Answers with the recorded entailments of the passages a prompt shows."""
    entailed = {
        " ".join(triple): row["retrieved2answer"][place]
        for row in saved["results"]
        for place, triple in enumerate(row["gt_answer_claims"])
    }

    def answer(prompt: Prompt) -> str:
        said = {}
        for number in claims_in(prompt):
            text = prompt.user.split(f"[begin claim {number} |")[1].split("\n")[1]
            row, shown = entailed[text], contexts_in(prompt)
            said[number] = {"alone": [r for r in shown if row[r - 1] == "Entailment"]}
        return verdicts(said)

    return Model(answer)


@pytest.mark.shared_data
@pytest.mark.parametrize("budget", [CONTEXT_TOKENS, 60])
def test_recall_of_claims_and_precision_are_the_published_ones(
    shared_data: Path, budget: int
) -> None:
    saved = recorded(shared_data)
    model = replay(saved)
    result = karat.evaluate(
        samples(saved),
        metrics=["recall[claims]", "precision(of=retrieved)[claims]", "context_recall"],
        judge=Claims(session_of(model), budget=budget),
    )
    for row, theirs in enumerate(saved["results"]):
        ours = {name: float(result[name].scores[row]) for name in result}
        assert ours["recall[claims]"] == theirs["metrics"]["claim_recall"]
        assert ours["context_recall"] == theirs["metrics"]["claim_recall"]
        assert (
            ours["precision(of=retrieved)[claims]"]
            == theirs["metrics"]["context_precision"]
        )
    published = saved["metrics"]["retriever"]
    means = result.means
    assert round(100 * means["recall[claims]"], 1) == published["claim_recall"]
    assert (
        round(100 * means["precision(of=retrieved)[claims]"], 1)
        == published["context_precision"]
    )
    assert len(model.asked) == (3 if budget == CONTEXT_TOKENS else 14)
