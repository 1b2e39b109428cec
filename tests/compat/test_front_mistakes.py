"""Mistakes of users of the fronts; outcomes were fixed before they were run.

Each is right, or an error of karat that names the thing; none is silently wrong.
"""

import json
import warnings
from collections.abc import Callable
from math import isnan
from typing import Any

import pytest

import karat
from karat.compat import eval_harness, futureagi, longmemeval, pytrec_eval, ragas, remem
from karat.compat.ragas.metrics import LLMContextRecall, NonLLMContextRecall

QRELS: Any = {"q": {"a": 1, "b": 0}}
RUN: Any = {"q": {"a": 1.0, "b": 2.0}}
ROW = {
    "user_input": "Where?",
    "retrieved_contexts": ["In Paris."],
    "reference": "Paris",
}


def trec(
    qrels: Any = QRELS, run: Any = RUN, measures: Any = ("map",), **more: Any
) -> Any:
    return pytrec_eval.RelevanceEvaluator(qrels, measures, **more).evaluate(run)


def judged(reply: Any, row: Any = ROW) -> Any:
    """What ragas' evaluate makes of a model that always says the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ragas.evaluate([row], [LLMContextRecall()], llm=lambda _: reply)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "grades as words": (lambda: trec({"q": {"a": "high"}}), "high"),
    "half a grade": (
        lambda: trec({"q": {"a": 0.5}}),
        "'a' must be an integer, got 0.5",
    ),
    "grades that are lists": (lambda: trec({"q": {"a": [1]}}), "a"),
    "scores as words": (lambda: trec(run={"q": {"a": "good"}}), "good"),
    "scores that are None": (lambda: trec(run={"q": {"a": None}}), "a"),
    "a ranking that is a text": (lambda: trec(run={"q": "a"}), "q"),
    "a score that is no number": (lambda: trec(run={"q": {"a": float("nan")}}), "a"),
    "a measure that is none": (lambda: trec(measures={"ndgc"}), "ndgc"),
    "one measure as a text": (lambda: trec(measures="map"), "map"),
    "a level of nothing": (lambda: trec(relevance_level=0), "relevance_level"),
    "a run of five columns": (
        lambda: pytrec_eval.parse_run(["q Q0 d 1 0.5"]),
        "line 1",
    ),
    "qrels as a run": (lambda: pytrec_eval.parse_run(["q 0 d 1"]), "4 columns"),
    "a run as qrels": (lambda: pytrec_eval.parse_qrel(["q Q0 d 1 0.5 t"]), "6 columns"),
    "qrels with half a grade": (lambda: pytrec_eval.parse_qrel(["q 0 d 0.5"]), "0.5"),
    "a class for a metric": (
        lambda: ragas.evaluate([ROW], [LLMContextRecall]),  # type: ignore[list-item]
        "must be instances",
    ),
    "no metrics": (lambda: ragas.evaluate([ROW], []), "no metrics"),
    "no model": (lambda: ragas.evaluate([ROW], [LLMContextRecall()]), "needs a model"),
    "columns in place of rows": (
        lambda: ragas.evaluate({"user_input": ["Where?"]}, [NonLLMContextRecall()]),  # type: ignore[dict-item]
        "rows must be dictionaries",
    ),
    "contexts that are one text": (
        lambda: ragas.SingleTurnSample(retrieved_contexts="In Paris."),
        "must be a list",
    ),
    "a field that is none": (
        lambda: ragas.SingleTurnSample(context=["In Paris."]),  # type: ignore[call-arg]
        "context",
    ),
    "a distance that is none": (
        lambda: NonLLMContextRecall(distance_measure="levenstein").single_turn_score(
            ragas.SingleTurnSample(retrieved_contexts=["a"], reference_contexts=["a"])
        ),
        "levenstein",
    ),
    "a metric that is not there": (
        lambda: ragas.evaluate([ROW], [LLMContextRecall()], llm=5),
        "int",
    ),
    "two metrics of one name": (
        lambda: ragas.evaluate([ROW], [LLMContextRecall(), LLMContextRecall()]),
        "two metrics",
    ),
    "a cutoff in words": (lambda: remem_recall(["five"]), "k_list"),
    "both kinds of retrieved": (
        lambda: remem.RetrievalRecall().calculate_metric_scores(
            [["a"]], retrieved_docs=[["a"]], retrieved_chunks=[["a"]]
        ),
        "either",
    ),
    "an eval that is none": (
        lambda: futureagi.Evaluator().evaluate("recal_at_k", {"hypothesis": "[]"}),
        "recal_at_k",
    ),
    "samples without an id": (
        lambda: eval_harness.load_dataset("name: d\nsamples: [{input: {}}]"),
        "id",
    ),
}


def remem_recall(ks: list[Any]) -> Any:
    metric = remem.RetrievalRecall()
    return metric.calculate_metric_scores([["a"]], retrieved_docs=[["a"]], k_list=ks)


@pytest.mark.parametrize("title", REFUSED)
def test_a_mistake_is_an_error_that_names_it(
    title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    call, names = REFUSED[title]
    with pytest.raises((karat.KaratError, TypeError)) as caught:
        call()
    assert names in str(caught.value)
    known = isinstance(caught.value, karat.KaratError)
    # Python itself refuses an argument that is not there.
    assert known or "unexpected keyword" in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        *("", "no JSON", "{", "[]", "null", "true", '{"classifications": {}}'),
        '{"classifications": [{"statement": "", "reason": "", "attributed": 1}]}',
        None,
        5,
        b"{}",
    ],
    ids=repr,
)
def test_a_reply_that_says_nothing_is_never_a_score(reply: Any) -> None:
    result = judged(reply)
    assert isnan(result["context_recall"][0])
    assert result.columns["context_recall"].failed == 1


def test_a_row_without_what_a_metric_needs_is_no_score() -> None:
    result = judged("{}", {"user_input": "Where?", "retrieved_contexts": ["Paris."]})
    assert "needs reference" in str(result.results["context_recall"][0].error)


def test_equal_ids_of_another_type_are_the_same_document() -> None:
    assert trec({"q": {"1": 1}}, {"q": {"1": 1.0}})["q"]["map"] == 1.0


def test_grades_of_any_kind_are_read() -> None:
    assert trec({"q": {"a": True, "b": 0}})["q"]["map"] == 0.5
    assert trec({"q": ["a"]})["q"]["map"] == 0.5


def test_a_cutoff_of_nothing_finds_nothing_as_there() -> None:
    assert remem_recall([0])[0] == {"Recall@0": 0.0}


def test_nothing_retrieved_is_the_worst_there_is() -> None:
    assert longmemeval.evaluate_retrieval([], ["a"], ["a", "b"], 5)[0] == 0.0


def test_a_metric_that_ends_the_program_fails_its_sample() -> None:
    class Leaves:
        def name(self) -> str:
            return "leaves"

        def score(self, *_: object) -> Any:
            raise SystemExit(0)

    leaves: Any = Leaves()
    engine = eval_harness.EvalEngine()
    samples = [{"id": "s1", "input": {}, "expected_output": "[]"}]
    engine.dataset("d").with_samples(samples).with_metrics([leaves]).register()
    report = engine.run("d", lambda _: json.dumps([]))
    assert [failure.error for failure in report.failures] == ["0"]
