"""The eval-harness front gives the original's numbers, details and refusals."""

import json
import math
from collections.abc import Mapping
from math import inf, log2, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import karat
from karat.compat.eval_harness import (
    ALIASES,
    DatasetSample,
    DatasetSchemaException,
    EvalHarnessException,
    EvalReport,
    EvalRunException,
    MetricException,
    MetricScore,
    RankedRetrieval,
    SampleFailure,
    SampleResult,
    load_dataset,
    load_outputs,
    score,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "eval_harness.json"
LEFT_OUT = {"row-hash", "wilson-interval", "sampling-precision"}
IDS = tuple(alias for alias in ALIASES if alias.startswith("retrieval-"))
CONTAINMENT = "answer-containment-at-k"


def plain(value: Any) -> Any:
    """The value with its floats that JSON has no words for."""
    if isinstance(value, dict):
        if set(value) == {"__float__"}:
            return float(value["__float__"])
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


CASES = [
    plain(case)
    for case in json.loads(GOLDEN.read_text("utf-8"))["cases"]
    if case["metric"] not in LEFT_OUT
]


def same(expected: Any, got: Any) -> bool:
    """Equal, floats to 1e-12; PHP writes an empty mapping as an empty list."""
    if isinstance(expected, dict):
        return list(expected) == list(got) and all(
            same(expected[key], got[key]) for key in expected
        )
    if isinstance(expected, list):
        if not expected:
            return len(got) == 0
        return len(expected) == len(got) and all(map(same, expected, got))
    if isinstance(expected, float):
        both_nan = math.isnan(expected) and math.isnan(got)
        return both_nan or expected == got or abs(expected - got) <= 1e-12
    return type(expected) is type(got) and bool(expected == got)


def scored(case: Mapping[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
    expected, metadata = inputs.get("expected_output"), inputs.get("metadata")
    if "dataset_yaml" in inputs:
        (sample,) = load_dataset(inputs["dataset_yaml"]).samples
        expected, metadata = sample.expected_output, dict(sample.metadata)
    options = {key: inputs[key] for key in ("case_sensitive",) if key in inputs}
    outcome = score(
        case["metric"],
        expected,
        inputs["actual_output"],
        metadata,
        k=inputs.get("ctor_k"),
        default_k=inputs.get("config_k"),
        **options,
    )
    return {"score": outcome.score, "details": dict(outcome.details)}


def loaded(inputs: dict[str, Any]) -> dict[str, Any]:
    dataset = load_dataset(inputs["dataset_yaml"])
    samples = [
        {
            "id": sample.id,
            "input": dict(sample.input),
            "expected_output": sample.expected_output,
            "metadata": dict(sample.metadata),
        }
        for sample in dataset.samples
    ]
    version = dataset.schema_version
    return {"name": dataset.name, "schema_version": version, "samples": samples}


def reported(inputs: dict[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    results = [
        SampleResult(
            DatasetSample(row["id"], {}, None, row.get("metadata") or {}),
            "",
            {name: MetricScore(value) for name, value in row["scores"].items()},
        )
        for row in inputs["samples"]
    ]
    failures = [SampleFailure(**failure) for failure in inputs.get("failures", [])]
    report = EvalReport("d", results, failures, started_at=0.0, finished_at=1.0)
    everything = {**report.to_dict(), "markdown": report.to_markdown()}
    return {key: everything[key] for key in wanted}


def outcome_of(case: Mapping[str, Any]) -> dict[str, Any]:
    inputs = case["inputs"]
    match case["metric"]:
        case "yaml-dataset-loader":
            return loaded(inputs)
        case "saved-outputs-loader":
            outputs = load_outputs(inputs["text"], inputs["source"])
            entries = [{"id": i, "actual_output": o} for i, o in outputs.items()]
            return {"entries": entries}
        case "report":
            return reported(inputs, case["expected"])
        case _:
            return scored(case, inputs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_vector_of_the_original_is_met(case: Mapping[str, Any]) -> None:
    expected = case["expected"]
    if "error_class" in expected:
        with pytest.raises(EvalHarnessException) as raised:
            outcome_of(case)
        assert type(raised.value).__name__ == expected["error_class"]
    else:
        assert same(expected, outcome_of(case))


def test_the_comparison_would_notice_a_difference() -> None:
    assert not same({"score": 0.5}, {"score": 0.5 + 1e-11})
    assert not same({"relevant": [7]}, {"relevant": ["7"]})
    assert not same({"k": 5, "dcg": nan}, {"k": 5, "dcg": inf})
    assert len(CASES) == 137


names = st.sampled_from([f"d{n}" for n in range(8)])
rankings = st.lists(names, max_size=12)
golds = st.dictionaries(names, st.floats(-3, 5).map(lambda x: round(x, 3)), min_size=1)


def by_hand(ranking: list[str], gains: dict[str, float], k: int) -> dict[str, float]:
    """The formulas of the page, and what the original makes of the rest."""
    unique = list(dict.fromkeys(ranking))
    top = unique[:k]
    found = [name for name in top if name in gains]
    ranks = [rank for rank, name in enumerate(unique, 1) if name in gains]
    dcg = sum(gains.get(name, 0) / log2(i + 2) for i, name in enumerate(top))
    best = sorted(gains.values(), reverse=True)[:k]
    idcg = sum(gain / log2(i + 2) for i, gain in enumerate(best))
    return {
        "retrieval-hit-at-k": float(bool(found)),
        "retrieval-recall-at-k": len(found) / len(gains),
        "retrieval-mrr": 1 / ranks[0] if ranks else 0.0,
        "retrieval-ndcg-at-k": max(0.0, min(1.0, dcg / idcg)) if idcg > 0 else 0.0,
    }


@given(rankings, golds, st.integers(1, 14))
def test_any_ranking_scores_as_the_formulas_say(
    ranking: list[str], gains: dict[str, float], k: int
) -> None:
    for alias, expected in by_hand(ranking, gains, k).items():
        got = score(alias, gains, json.dumps(ranking), k=k).score
        assert got == pytest.approx(expected, abs=1e-9), alias


def test_the_worked_comparison_of_the_page() -> None:
    output = json.dumps(["doc-7", "doc-3", "doc-1", "doc-9", "doc-2"])
    scores = {alias: score(alias, ["doc-3", "doc-9"], output).score for alias in IDS}
    assert list(scores.values())[:3] == [1.0, 1.0, 0.5]
    assert round(scores["retrieval-ndcg-at-k"], 2) == 0.65


def test_the_native_number_is_one_call_away_and_may_differ() -> None:
    gains, output = {"a": 0, "b": 2}, ["a", "x", "b"]
    front = score("retrieval-mrr", gains, json.dumps(output)).score
    native = karat.evaluate({"q": output}, gold={"q": gains}, metrics=["rr"])
    assert front == 1.0
    assert native.means["rr"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("own", [0, -1, "2", 2.5, True, None, [2]])
def test_a_k_of_the_sample_that_is_no_cutoff_is_passed_over(own: object) -> None:
    details = score("retrieval-recall-at-k", ["a"], "[]", {"k": own}, k=3).details
    assert details["k"] == 3


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("k", [0, -1, 2.0, "2", True])
def test_a_bad_k_of_the_constructor_is_refused_by_every_metric(
    alias: str, k: Any
) -> None:
    with pytest.raises(MetricException, match="k must be a positive integer"):
        score(alias, "[1]" if alias == CONTAINMENT else ["a"], "[]", k=k)


def test_a_bad_k_of_the_constructor_does_not_matter_where_the_sample_has_one() -> None:
    assert score("retrieval-hit-at-k", ["a"], '["a"]', {"k": 1}, k=0).score == 1.0


@pytest.mark.parametrize("gain", ["3", " 3", "3 ", "+3", "3.", "3e0", 3, 3.0])
def test_gains_are_what_php_calls_numeric(gain: object) -> None:
    details = score("retrieval-ndcg-at-k", {"a": gain, "b": 1}, '["a"]').details
    assert details["dcg"] == 3.0


@pytest.mark.parametrize("gain", ["", " ", "high", "0x3", "1_0", "inf", "nan", "٣", []])
def test_anything_else_is_no_gain(gain: object) -> None:
    with pytest.raises(MetricException, match="ids to numbers"):
        score("retrieval-ndcg-at-k", {"a": gain}, '["a"]')


def test_a_gain_with_more_digits_than_a_float_has_is_infinite() -> None:
    details = score("retrieval-ndcg-at-k", {"a": 10**400, "b": 1}, '["b"]').details
    assert (details["dcg"], details["idcg"]) == (1.0, inf)


@pytest.mark.parametrize(
    "output",
    ["", "[", "NaN", "[NaN]", '["\\ud800"]', '["\ud800"]', "[" * 100_000, "\ufeff[]"],
)
def test_an_output_that_is_no_json_is_refused(output: str) -> None:
    with pytest.raises(MetricException, match="not valid JSON"):
        score("retrieval-mrr", ["a"], output)


@pytest.mark.parametrize("output", [None, ["a"], b"[]"])
def test_an_output_that_is_no_text_is_refused(output: Any) -> None:
    with pytest.raises(MetricException, match="must be JSON text"):
        score("retrieval-mrr", ["a"], output)


@pytest.mark.parametrize("alias", IDS)
def test_an_answer_where_ids_should_be_is_refused(alias: str) -> None:
    with pytest.raises(MetricException, match="expected_output is not valid JSON"):
        score(alias, "30 days", '["a"]')


def test_of_equal_keys_the_last_one_holds() -> None:
    output = '{"retrieved": ["x"], "retrieved": ["a"]}'
    assert score("retrieval-hit-at-k", ["a"], output).score == 1.0


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("7", 7),
        ("-7", -7),
        ("0", 0),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", "9223372036854775808"),
        ("07", "07"),
        ("-0", "-0"),
        ("+7", "+7"),
        (" 7", " 7"),
        ("7.0", "7.0"),
    ],
)
def test_ids_that_are_integers_to_php_show_as_such(name: str, key: object) -> None:
    assert score("retrieval-hit-at-k", [name], "[]").details["relevant"] == [key]


def test_integer_keys_of_a_yaml_mapping_are_ids() -> None:
    text = "name: d\nsamples: [{id: s, input: {}, expected_output: {3: 2, 9: 1}}]"
    (sample,) = load_dataset(text).samples
    gains = RankedRetrieval.relevance_gains_from_expected(sample.expected_output, "s")
    assert gains == {"3": 2.0, "9": 1.0}


@pytest.mark.parametrize("word", [".nan", ".NaN", ".inf", ".INF"])
def test_yaml_has_no_nan_for_the_original(word: str) -> None:
    text = f"name: d\nsamples: [{{id: s, input: {{}}, expected_output: {{a: {word}}}}}]"
    assert load_dataset(text).samples[0].expected_output == {"a": inf}


@pytest.mark.parametrize(
    ("span", "text", "held"),
    [
        ("a b", "A\u2003\u180e\x85B", True),
        ("a b", "a\x1cb", False),
        ("a", "\0 A \0", True),
        ("\u00a0", "anything", True),
        ("\u00a0", "\u00a0", False),
        ("İ", "i\u0307", True),
        ("STRASSE", "straße", False),
    ],
)
def test_texts_are_folded_as_php_folds_them(span: str, text: str, held: bool) -> None:  # noqa: FBT001
    output = json.dumps([{"id": "d", "text": text}])
    assert score(CONTAINMENT, span, output).score == held


def test_the_matched_rank_is_the_first_within_k() -> None:
    output = json.dumps([{"id": str(n), "text": "ab"[n > 1]} for n in range(4)])
    found = score(CONTAINMENT, "b", output, k=4).details
    cut = score(CONTAINMENT, "b", output, k=2)
    assert found["matched_rank"] == 3
    assert (cut.score, cut.details["matched_rank"]) == (0.0, None)


@pytest.mark.parametrize("alias", ["recall", "retrieval-recal-at-k", "", "exact-match"])
def test_an_unknown_alias_is_named_with_one_that_exists(alias: str) -> None:
    with pytest.raises(MetricException, match="unknown metric"):
        score(alias, ["a"], "[]")


@pytest.mark.parametrize("value", [-0.1, 1.1, nan, None, "1"])
def test_a_score_outside_0_to_1_is_refused(value: Any) -> None:
    with pytest.raises(MetricException, match="from 0 to 1"):
        MetricScore(value)


SAMPLE = "{id: a, input: {}, expected_output: x}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "name: ''\nsamples: [5]",
        "name: d",
        "name: d\nsamples: []",
        "name: d\nsamples: x",
        f"name: d\nsamples: {{first: {SAMPLE}}}",
        f"schema_version: 1\nname: d\nsamples: [{SAMPLE}]",
        f"schema_version: ~\nname: d\nsamples: [{SAMPLE}]",
        "name: d\nsamples: [{id: '', input: {}, expected_output: x}]",
        "name: d\nsamples: [{id: a, input: {}}]",
        "name: d\nsamples: [{id: a, input: {0: x}, expected_output: x}]",
        "name: d\nsamples: [{id: a, input: {}, expected_output: x, metadata: ~}]",
        "name: d\nname: e\nsamples: []",
        "name: !!python/object:os.system d",
    ],
)
def test_a_dataset_off_the_schema_is_refused(text: str) -> None:
    with pytest.raises(DatasetSchemaException):
        load_dataset(text)


@pytest.mark.parametrize("empty", ["{}", "[]"])
def test_an_empty_list_is_an_empty_mapping(empty: str) -> None:
    text = f"name: d\nsamples: [{{id: a, input: {empty}, expected_output: x, more: 1}}]"
    assert load_dataset(text).samples[0].input == {}


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ('{"outputs": {"0": "zero", "1": "one"}}', "o.json"),
        ("outputs: {0: zero, 1: one}", "o.YML"),
        ("{outputs: {'0': zero, '1': one}}", "no extension"),
        (
            "outputs: [{id: '0', actual_output: zero}, {id: '1', actual_output: one}]",
            "no extension",
        ),
    ],
)
def test_saved_outputs_come_in_several_shapes(text: str, source: str) -> None:
    assert load_outputs(text, source) == {"0": "zero", "1": "one"}


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("5", "o.json"),
        ("[]", "o.json"),
        ('{"outputs": 5}', "o.json"),
        ('{"outputs": {"a": ["x"]}}', "o.json"),
        ('{"outputs": {"": "x"}}', "o.json"),
        ('{"outputs": ["x"]}', "o.json"),
        ('{"outputs": [{"id": 5, "actual_output": "x"}]}', "o.json"),
        ('{"outputs": [{"id": "", "actual_output": "x"}]}', "o.json"),
        ('{"outputs": [{"id": "a"}]}', "o.json"),
        ("outputs: {a: 5}", "o.yaml"),
        ("outputs: [", "o.yaml"),
        ("{outputs: {a: x}}", "o.json"),
        ('{"outputs":', "no extension"),
    ],
)
def test_other_saved_outputs_are_refused(text: str, source: str) -> None:
    with pytest.raises(EvalRunException, match=source):
        load_outputs(text, source)
