"""The ragas front gives the original's numbers where ids and texts are compared."""

import json
import math
import signal
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from rapidfuzz.distance import Hamming, Jaro, JaroWinkler, Levenshtein

from karat import KaratError
from karat.compat import ragas
from karat.compat.ragas import (
    DistanceMeasure,
    EvaluationDataset,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    NonLLMStringSimilarity,
    SingleTurnSample,
    evaluate,
)
from karat.extend import UsageError

GOLDEN = Path(__file__).parents[1] / "golden" / "ragas.json"
CASES = json.loads(GOLDEN.read_text("utf-8"))["cases"]
METRICS: dict[str, type[Any]] = {
    "id_based_context_recall": IDBasedContextRecall,
    "id_based_context_precision": IDBasedContextPrecision,
    "non_llm_context_recall": NonLLMContextRecall,
    "non_llm_context_precision_with_reference": NonLLMContextPrecisionWithReference,
    "non_llm_string_similarity": NonLLMStringSimilarity,
}
COMPARED = [case for case in CASES if case["system"] == "ragas 0.4.3 legacy"]
TABLES = [case for case in CASES if case["system"] == "ragas 0.4.3 evaluate()"]

DISTANCES = {
    "levenshtein": Levenshtein,
    "hamming": Hamming,
    "jaro": Jaro,
    "jaro_winkler": JaroWinkler,
}
TEXTS = st.lists(st.text("abé", max_size=6), max_size=4)
IDS = st.lists(st.one_of(st.integers(-2, 3), st.sampled_from(["a1", "0", "é", "-1"])))


@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case["id"])
def test_every_vector_of_compared_ids_and_texts_is_met(case: Mapping[str, Any]) -> None:
    def run() -> Any:
        metric = METRICS[case["metric"]](**case["config"])
        return metric.single_turn_score(SingleTurnSample(**case["inputs"]))

    if "error" in case["expected"]:
        with pytest.raises(KaratError):
            run()
    elif case["expected"].get("nan"):
        assert math.isnan(run())
    else:
        assert run() == pytest.approx(case["expected"]["value"], abs=1e-12)


@pytest.mark.parametrize("case", TABLES, ids=lambda case: case["id"])
def test_every_vector_of_evaluate_is_met(case: Mapping[str, Any]) -> None:
    dataset = EvaluationDataset.from_list(case["inputs"]["rows"])
    expected = case["expected"]
    with warnings.catch_warnings(record=True, action="always") as told:
        result = evaluate(dataset, metrics=[METRICS[case["metric"]]()])
    assert len(told) == result.columns[case["metric"]].failed
    rows = [None if math.isnan(value) else value for value in result[case["metric"]]]
    assert rows == expected["rows"]
    assert str(result) == expected["printed"]
    assert result.columns[case["metric"]].mean == expected["mean"]


@given(retrieved=IDS, reference=IDS)
def test_ids_are_compared_as_sets_of_text(
    retrieved: list[int | str], reference: list[int | str]
) -> None:
    found, wanted = ({str(value) for value in ids} for ids in (retrieved, reference))
    sample = SingleTurnSample(
        retrieved_context_ids=retrieved, reference_context_ids=reference
    )
    common = len(found & wanted)
    recall = IDBasedContextRecall().single_turn_score(sample)
    precision = IDBasedContextPrecision().single_turn_score(sample)
    assert recall == common / len(wanted) if wanted else math.isnan(recall)
    assert precision == common / len(found) if found else math.isnan(precision)


@given(
    retrieved=TEXTS.filter(bool),
    reference=TEXTS.filter(bool),
    measure=st.sampled_from(sorted(DISTANCES)),
    threshold=st.sampled_from([0.3, 0.5, 2 / 3, 0.75, 1.0]),
)
def test_texts_are_compared_by_rapidfuzz(
    retrieved: list[str], reference: list[str], measure: str, threshold: float
) -> None:
    far = DISTANCES[measure].normalized_distance
    sample = SingleTurnSample(
        retrieved_contexts=retrieved, reference_contexts=reference
    )
    best = [max(1 - far(r, g) for r in retrieved) for g in reference]
    recall = NonLLMContextRecall(threshold, measure).single_turn_score(sample)
    assert recall == sum(b > threshold for b in best) / len(best)
    hits = [max(1 - far(r, g) for g in reference) >= threshold for r in retrieved]
    above = [sum(hits[: rank + 1]) / (rank + 1) for rank in range(len(hits))]
    average = sum(a for a, hit in zip(above, hits, strict=True) if hit)
    metric = NonLLMContextPrecisionWithReference(threshold, measure)
    assert metric.single_turn_score(sample) == pytest.approx(
        average / (sum(hits) + 1e-10), abs=1e-12
    )


def test_a_distance_measure_may_be_given_in_every_way_the_original_has() -> None:
    sample = SingleTurnSample(
        retrieved_contexts=["kitten"], reference_contexts=["sitting"]
    )

    def recall(**options: Any) -> float:
        return NonLLMContextRecall(threshold=0.7, **options).single_turn_score(sample)

    assert recall() == 0.0
    assert recall(distance_measure="jaro") == 1.0
    assert recall(distance_measure=DistanceMeasure.JARO) == 1.0
    jaro = NonLLMStringSimilarity(distance_measure=DistanceMeasure.JARO)
    assert recall(distance_measure=jaro) == 1.0
    later = NonLLMContextRecall(threshold=0.7)
    later.distance_measure = DistanceMeasure.JARO
    assert later.single_turn_score(sample) == 1.0
    with pytest.raises(UsageError, match="'levenshtein', 'hamming'"):
        recall(distance_measure="soundex")


def test_a_metric_of_your_own_may_be_the_measure() -> None:
    class SameLength:
        def single_turn_score(self, sample: SingleTurnSample) -> float:
            assert sample.reference is not None
            assert sample.response is not None
            return float(len(sample.reference) == len(sample.response))

    sample = SingleTurnSample(
        retrieved_contexts=["xyz", "q"], reference_contexts=["abc", "abcd"]
    )
    recall = NonLLMContextRecall(distance_measure=SameLength())
    precision = NonLLMContextPrecisionWithReference(distance_measure=SameLength())
    assert recall.single_turn_score(sample) == 0.5
    assert precision.single_turn_score(sample) == pytest.approx(1.0, abs=1e-9)


def test_samples_say_what_is_wrong_with_them() -> None:
    with pytest.raises(KaratError, match="retrieved_contexts must be a list, got str"):
        SingleTurnSample(retrieved_contexts="one text")
    with pytest.raises(KaratError, match="reference_contexts must be text, got 7"):
        SingleTurnSample(reference_contexts=[7])  # type: ignore[list-item]
    with pytest.raises(KaratError, match="reference must be text"):
        SingleTurnSample(reference=["a"])  # type: ignore[arg-type]
    with pytest.raises(KaratError, match="id_based_context_recall needs retrieved"):
        IDBasedContextRecall().single_turn_score(SingleTurnSample())
    with pytest.raises(KaratError, match="rows must be dictionaries, got 'a'"):
        EvaluationDataset.from_list(["a"])  # type: ignore[list-item]
    with pytest.raises(KaratError, match="from_list takes dictionaries"):
        EvaluationDataset([{"reference": "a"}])  # type: ignore[list-item]


def test_a_data_set_is_a_sequence_of_samples() -> None:
    rows = [{"user_input": str(n), "reference": "r", "source": "x"} for n in range(3)]
    dataset = EvaluationDataset.from_list(rows)
    assert len(dataset) == 3
    assert [sample.user_input for sample in dataset] == ["0", "1", "2"]
    assert dataset[1].to_dict() == {"user_input": "1", "reference": "r"}
    assert len(dataset[1:]) == 2
    assert dataset.features() == ["user_input", "reference"]
    assert EvaluationDataset([]).features() == []
    assert list(dataset.to_pandas().columns) == ["user_input", "reference"]


ROWS: list[dict[str, Any]] = [
    {"retrieved_contexts": ["a"], "reference_contexts": ["a"]},
    {"retrieved_contexts": [], "reference_contexts": ["a"]},
    {"retrieved_contexts": ["a"], "reference_contexts": []},
]


def test_evaluate_keeps_count_of_what_the_mean_leaves_out() -> None:
    rows: list[Any] = [SingleTurnSample(**ROWS[0]), *ROWS[1:]]
    with pytest.warns(UserWarning, match="1 of 3 rows failed"):
        result = evaluate(rows, [NonLLMContextRecall()])
    assert str(result) == "{'non_llm_context_recall': 1.0000}"
    column = result.columns["non_llm_context_recall"]
    assert (column.n, column.failed, column.undefined) == (1, 1, 1)
    assert column.failures == {
        1: "no similarity to compute: retrieved_contexts is empty"
    }
    reason = result.results["non_llm_context_recall"][1].reason
    assert reason == f"failed: {column.failures[1]}"
    assert list(result.to_pandas().columns) == [
        *("retrieved_contexts", "reference_contexts", "non_llm_context_recall"),
    ]
    assert result.scores[0] == {"non_llm_context_recall": 1.0}
    with pytest.raises(KaratError, match="did you mean 'non_llm_context_recall'"):
        result["nonllm_context_recall"]


def test_evaluate_stops_at_a_failure_if_asked() -> None:
    with pytest.raises(KaratError, match="retrieved_contexts is empty"):
        evaluate(ROWS, [NonLLMContextRecall()], raise_exceptions=True)


def test_evaluate_takes_metrics_of_different_names_only() -> None:
    twice = [NonLLMContextRecall(), NonLLMContextRecall(0.9, name="recall_90")]
    assert list(evaluate(ROWS[:1], twice).results) == [
        *("non_llm_context_recall", "recall_90")
    ]
    with pytest.raises(UsageError, match="two metrics are called"):
        evaluate(ROWS, [NonLLMContextRecall(), NonLLMContextRecall(0.9)])
    with pytest.raises(UsageError, match="no metrics"):
        evaluate(ROWS, [])
    with pytest.raises(UsageError, match="must be instances"):
        evaluate(ROWS, [NonLLMContextRecall])  # type: ignore[list-item]


def test_ctrl_c_stops_a_comparison_at_once() -> None:
    class Interrupted:
        def single_turn_score(self, sample: SingleTurnSample) -> float:
            del sample
            seen.append(threading.current_thread())
            signal.raise_signal(signal.SIGINT)
            return 1.0

    seen: list[threading.Thread] = []
    # What is started in the background ignores this signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        metric = NonLLMContextRecall(distance_measure=Interrupted())
        with pytest.raises(KeyboardInterrupt):
            evaluate(ROWS[:1] * 9, [metric])
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [threading.main_thread()]


def test_names_are_where_ragas_has_them() -> None:
    from karat.compat.ragas import dataset_schema, llms, metrics  # noqa: PLC0415
    from karat.compat.ragas.metrics import collections  # noqa: PLC0415

    # In ragas too, the older kind of these is in another module than the newer.
    older = {"ContextPrecision", "ContextRecall", "ContextUtilization"}
    older |= {"context_precision", "context_recall", "context_utilization"}
    names = {*metrics.__all__} - older
    for module in (dataset_schema, metrics, collections):
        for name in names if module is metrics else module.__all__:
            assert getattr(ragas, name) is getattr(module, name)
    assert ragas.llm_factory is llms.llm_factory
    assert sorted(ragas.__all__) == sorted(dir_of(ragas))


def dir_of(package: Any) -> list[str]:
    """Public names of a package that are no modules."""
    names = (name for name in vars(package) if not name.startswith(("_", "@")))
    return [n for n in names if not hasattr(getattr(package, n), "__file__")]
