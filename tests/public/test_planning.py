"""What `evaluate` makes of what it is asked for, where no other room says it."""

import gc
import weakref
from typing import Any

import pytest

import karat
from karat.extend import Claims, DataError, FunctionClient, Settings, UsageError

TEXT = "Rye is a grain."
SAMPLE = {"id": "q", "query": "What is rye?", "retrieved": [{"id": "d", "text": TEXT}]}


def notices(metric: str, **gold: Any) -> str:
    result = karat.evaluate([{**SAMPLE, **gold}], metrics=[metric])
    return "\n".join(map(str, result.warnings))


def test_a_matcher_without_gold_says_what_would_give_it_some() -> None:
    said = notices("recall[chunk]", relevant=["d"])
    assert "1 query has no passages in gold; chunk needs passages: corpus=... " in said
    said = notices("recall[chunk]", answers=["rye"])
    assert said.endswith("chunk needs passages")
    said = notices("recall[contains]", relevant=["d"])
    assert said.endswith("contains needs answers")
    said = notices("recall[contains]", relevant=["d"], reference="Rye is a grain.")
    assert "contains needs answers: --map answers=reference " in said
    said = notices("recall[contains]", relevant=["d"], reference_answer="A grain.")
    assert "contains needs answers: --map answers=reference_answer " in said
    said = notices("recall[chunk]", answers=["rye"], reference="Rye is a grain.")
    assert said.endswith("chunk needs passages")


def test_gold_without_labels_needs_metrics_with_matchers_of_their_own() -> None:
    with pytest.raises(DataError, match="the gold holds no labels"):
        karat.evaluate({"q": ["d"]}, {"q": []}, metrics=["recall", "rr[id]"])
    result = karat.evaluate({"q": ["d"]}, {"q": []}, metrics=["recall[id]"])
    assert result["recall[id]"].undefined == 1
    with pytest.raises(UsageError, match="no metrics: name at least one"):
        karat.evaluate({"q": ["d"]}, {"q": []}, metrics=[])


def no_support(prompt: str) -> str:
    """The reply of a judge to whom one claim is not supported by anything."""
    del prompt
    return (
        '{"verdicts": [{"claim": 1, "alone": [], "parts": [], "complete": false, '
        '"against": [], "reason": "It does not say so."}]}'
    )


@pytest.mark.parametrize("role", ["judge", "match"])
def test_a_client_does_not_outlive_the_evaluation(role: str) -> None:
    client = FunctionClient(no_support)
    gone = weakref.ref(client)
    options: dict[str, Any] = {role: Claims(client, settings=Settings(journal=None))}
    samples = [{**SAMPLE, "claims": ["Rye is sown."]}]
    result = karat.evaluate(samples, metrics=["recall"], **options)
    assert result.means == {"recall": 0.0}
    del client, options, result
    gc.collect()
    assert gone() is None


def test_one_expected_output_is_the_reference_of_a_judge() -> None:
    asked: list[str] = []

    def split(prompt: str) -> str:
        asked.append(prompt)
        return '{"claims": []}'

    def evaluate(**gold: Any) -> None:
        sample = {"id": "q", "query": "Rye?", "contexts": [TEXT], **gold}
        judge = Claims(FunctionClient(split), settings=Settings(journal=None))
        mapping = {"answers": next(iter(gold))}
        metrics = ["recall[claims]"]
        karat.evaluate([sample], metrics=metrics, judge=judge, mapping=mapping)

    evaluate(expected_output="A cereal.")
    assert "A cereal." in asked[0]
    for gold in (
        {"expected_output": ["A cereal.", "A plant."]},
        {"short": "A cereal."},
    ):
        with pytest.raises(DataError, match="there is nothing to judge"):
            evaluate(**gold)


def test_a_mapping_may_be_about_the_runs_only() -> None:
    run = [{"query_id": "q", "uid": "d", "score": 1.0}]
    gold = [{"query_id": "q", "document": "d", "grade": 1}]
    board = karat.leaderboard(
        {"one": run, "two": run}, gold=gold, mapping={"document": "uid"}, metrics="rr"
    )
    assert [result.means for result in board.values()] == [{"rr": 1.0}] * 2
