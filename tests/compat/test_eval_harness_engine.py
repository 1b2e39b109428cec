"""The eval-harness front runs datasets, keeps failures and reports on both."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from karat.compat.eval_harness import (
    ALIASES,
    DatasetSample,
    DatasetSchemaException,
    EvalEngine,
    EvalReport,
    EvalRunException,
    Metric,
    MetricException,
    MetricScore,
    RetrievalRecallAtKMetric,
    SampleFailure,
    SampleResult,
)

YAML = """\
name: rag.retrieval
samples:
  - id: q-1
    input: { question: "What is our refund window?" }
    expected_output: ["doc-3", "doc-9"]
    metadata: { k: 5, tags: [policy] }
  - id: q-2
    input: { question: "And abroad?" }
    expected_output: { "doc-3": 3, "doc-9": 1 }
"""
RANKING = json.dumps(["doc-7", "doc-3", "doc-1", "doc-9", "doc-2"])
IDS = [alias for alias in ALIASES if alias.startswith("retrieval-")]
SAMPLE = DatasetSample("a", {"question": "?"}, ["x"])


class Length(Metric):
    """Says how long the output is, and fails on empty ones."""

    def name(self) -> str:
        return "length"

    def score(self, sample: DatasetSample, actual_output: str) -> MetricScore:
        del sample
        return MetricScore(1 / len(actual_output))


class Broken:
    name = "broken"

    def score(self, sample: DatasetSample, actual_output: str) -> float:
        del sample, actual_output
        return 1.0


def engine_with(*metrics: Any, config: Mapping[str, Any] | None = None) -> EvalEngine:
    engine = EvalEngine(config)
    builder = engine.dataset("rag.retrieval").load_from_yaml_string(YAML)
    builder.with_metrics(metrics or IDS).register()
    return engine


def test_a_dataset_from_a_file_is_run_against_a_callable(tmp_path: Path) -> None:
    (tmp_path / "d.yml").write_text(YAML, "utf-8")
    engine = EvalEngine()
    builder = engine.dataset("rag.retrieval").load_from_yaml(tmp_path / "d.yml")
    dataset = builder.with_metrics(IDS).register()
    asked: list[Mapping[str, Any]] = []

    def system(question: Mapping[str, Any]) -> str:
        asked.append(question)
        return RANKING

    report = engine.run("rag.retrieval", system)
    assert asked == [sample.input for sample in dataset.samples]
    assert report.total_failures == 0
    assert [report.mean_score(alias) for alias in IDS[:3]] == [1.0, 1.0, 0.5]
    assert round(report.mean_score("retrieval-ndcg-at-k"), 4) == 0.6454
    assert engine.registered_dataset_names() == ["rag.retrieval"]


@pytest.mark.parametrize("name", ["o.json", "o.yaml"])
def test_saved_outputs_take_the_place_of_a_system(tmp_path: Path, name: str) -> None:
    outputs = {"outputs": {"q-1": RANKING, "q-2": "[]"}}
    (tmp_path / name).write_text(json.dumps(outputs), "utf-8")
    report = engine_with().run("rag.retrieval", tmp_path / name)
    assert report.mean_score("retrieval-recall-at-k") == 0.5
    assert report.to_dict()["samples"][1]["actual_output"] == "[]"


@pytest.mark.parametrize("outputs", [{"q-1": "[]"}, {"q-1": "", "q-2": "", "q-3": ""}])
def test_saved_outputs_must_be_those_of_the_samples(outputs: dict[str, str]) -> None:
    with pytest.raises(EvalRunException, match=r"q-[23]"):
        engine_with().score_outputs("rag.retrieval", outputs)


def test_a_missing_file_is_named_with_one_like_it(tmp_path: Path) -> None:
    (tmp_path / "outputs.json").touch()
    with pytest.raises(EvalRunException, match=r"did you mean .*outputs\.json"):
        engine_with().run("rag.retrieval", str(tmp_path / "output.json"))
    with pytest.raises(DatasetSchemaException, match="no such file"):
        EvalEngine().dataset("d").load_from_yaml(tmp_path / "none.yml")


def test_a_problem_in_a_file_is_placed_in_it(tmp_path: Path) -> None:
    path = tmp_path / "d.yml"
    path.write_text("name: d\nsamples: [\n", "utf-8")
    with pytest.raises(DatasetSchemaException, match=r"d\.yml:3: "):
        EvalEngine().dataset("d").load_from_yaml(path)
    path.write_text("name: d\nsamples: [{id: q, input: {}}]", "utf-8")
    with pytest.raises(DatasetSchemaException, match=r"d\.yml: query 'q': "):
        EvalEngine().dataset("d").load_from_yaml(path)


def test_all_five_aliases_on_one_dataset_fail_on_one_side_of_every_row() -> None:
    report = engine_with(*ALIASES).run("rag.retrieval", lambda _: RANKING)
    failed = [(failure.sample_id, failure.metric) for failure in report.failures]
    assert failed == [(row, "answer-containment-at-k") for row in ("q-1", "q-2")]
    assert report.metric_aggregate("answer-containment-at-k")["mean"] == 0.0
    assert report.macro_f1() == 1.0


def test_one_bad_output_fails_its_own_pairs_and_the_run_goes_on() -> None:
    outputs = iter([RANKING, "[7]"])
    report = engine_with().run("rag.retrieval", lambda _: next(outputs))
    assert report.total_failures == len(IDS)
    assert {failure.sample_id for failure in report.failures} == {"q-2"}
    assert report.mean_score("retrieval-recall-at-k") == 1.0
    assert "'7'" in report.failures[0].error


@pytest.mark.parametrize("output", [None, ["a"], 5])
def test_a_system_must_return_text(output: Any) -> None:
    with pytest.raises(EvalRunException, match=r"'q-1'.*must return a string"):
        engine_with().run("rag.retrieval", lambda _: output)


def test_what_the_system_raises_ends_the_run() -> None:
    with pytest.raises(KeyError):
        engine_with().run("rag.retrieval", lambda question: str(question["nothing"]))


def test_metrics_of_ones_own_come_by_instance_class_or_alias() -> None:
    engine = EvalEngine()
    engine.register_metric("by instance", Length())
    engine.register_metric("by class", Length)
    engine.register_metric("by function", lambda: Length())  # noqa: PLW0108
    for spec in (Length(), "by instance", "by class", "by function"):
        assert isinstance(engine.resolve_metric(spec), Length)


def test_an_alias_of_the_five_can_be_given_another_meaning() -> None:
    engine = EvalEngine()
    engine.register_metric("retrieval-mrr", Length)
    assert engine.resolve_metric("retrieval-mrr").name() == "length"


@pytest.mark.parametrize("spec", ["retrieval-mr", 5, None, object()])
def test_what_is_no_metric_is_refused(spec: Any) -> None:
    with pytest.raises(MetricException):
        EvalEngine().resolve_metric(spec)


def test_whatever_a_metric_raises_or_returns_is_kept_as_its_failure() -> None:
    report = engine_with(Length(), Broken()).run("rag.retrieval", lambda _: "")
    errors = {failure.metric: failure.error for failure in report.failures}
    assert errors == {
        "length": "division by zero",
        "broken": "score() must return a MetricScore, got float",
    }
    assert report.total_failures == 4


@pytest.mark.parametrize(
    "config",
    [
        {"metrics": {"retrieval": {"default_k": 2}}},
        # As settings files write it.
        {"metrics.retrieval.default_k": 2},
    ],
)
def test_the_configured_k_is_the_last_resort_before_five(
    config: Mapping[str, Any],
) -> None:
    engine = engine_with("retrieval-recall-at-k", config=config)
    report = engine.run("rag.retrieval", lambda _: RANKING)
    scores = [r.metric_scores["retrieval-recall-at-k"] for r in report.sample_results]
    assert [score.details["k"] for score in scores] == [5, 2]


def test_of_two_metrics_of_one_name_the_last_holds() -> None:
    one, two = RetrievalRecallAtKMetric(k=1), RetrievalRecallAtKMetric(k=2)
    report = engine_with(one, two).run("rag.retrieval", lambda _: RANKING)
    scores = report.sample_results[1].metric_scores
    assert scores["retrieval-recall-at-k"].details["k"] == 2


def test_samples_come_as_objects_or_as_mappings() -> None:
    engine = EvalEngine()
    row = {"id": "b", "input": {}, "expected_output": ["x"]}
    builder = engine.dataset("d").with_samples([SAMPLE, row])
    assert [s.id for s in builder.with_metrics(IDS).register().samples] == ["a", "b"]


@pytest.mark.parametrize("samples", [[], [SAMPLE, SAMPLE], [{"id": "a"}], ["a"]])
def test_samples_off_the_schema_are_refused(samples: Any) -> None:
    with pytest.raises(DatasetSchemaException):
        EvalEngine().dataset("d").with_samples(samples)


def test_a_dataset_is_not_registered_before_it_is_whole() -> None:
    engine = EvalEngine()
    with pytest.raises(DatasetSchemaException, match="no samples"):
        engine.dataset("d").with_metrics(IDS).register()
    with pytest.raises(DatasetSchemaException, match="no metrics"):
        engine.dataset("d").with_samples([SAMPLE]).register()
    with pytest.raises(DatasetSchemaException, match="at least one metric"):
        engine.dataset("d").with_metrics([])
    both = engine.dataset("rag.retrieval").load_from_yaml_string(YAML)
    with pytest.raises(DatasetSchemaException, match="both"):
        both.with_samples([SAMPLE]).with_metrics(IDS).register()
    with pytest.raises(DatasetSchemaException, match=r"'rag\.retrieval' in its YAML"):
        engine.dataset("d").load_from_yaml_string(YAML).with_metrics(IDS).register()
    with pytest.raises(EvalRunException, match="no dataset 'd'"):
        engine.run("d", lambda _: RANKING)


def result(tags: object, score: float) -> SampleResult:
    sample = DatasetSample("a", {}, None, {"tags": tags})
    return SampleResult(sample, "", {"m": MetricScore(score)})


def test_cohorts_go_by_tag_and_the_untagged_come_last() -> None:
    tags = [" b ", ["b", "a", "a", 5, ""], "", None, {"x": "a"}]
    results = [result(tag, n / 4) for n, tag in enumerate(tags)]
    cohorts = EvalReport("d", results).cohort_summaries()
    rows = [(c["label"], c["sample_count"], c["metrics"]["m"]["mean"]) for c in cohorts]
    assert rows == [("a", 2, 0.625), ("b", 2, 0.125), ("(untagged)", 2, 0.625)]
    assert [c["name"] for c in cohorts] == ["a", "b", None]


def test_histograms_have_as_many_buckets_as_asked_for() -> None:
    results = [result("", score) for score in (0.0, 0.5, 0.74999999999, 0.75, 1.0)]
    report = EvalReport("d", results)
    assert [b["count"] for b in report.histogram_for_metric("m", 4)] == [1, 0, 1, 3]
    assert [b["count"] for b in report.histogram_for_metric("m", 0)] == [5]
    assert report.percentile("m", 101) == 0.0
    assert report.percentile("m", 100) == 1.0


def test_a_report_escapes_what_it_did_not_write() -> None:
    failure = SampleFailure("<q>|`1`", "m|`", "it's\n<b>\\ `bad`")
    text = EvalReport("a <b>", [result("t|<i>", 1.0)], [failure]).to_markdown()
    assert "# Eval report \N{EM DASH} a &lt;b&gt;" in text
    assert "| t\\|&lt;i&gt; |" in text
    assert "<code>&lt;q&gt;|`1`</code>" in text
    assert text.endswith("- it&#039;s &lt;b&gt;\\\\ \\`bad\\`\n\n")


def test_a_report_is_json_whatever_its_details_hold() -> None:
    details = {"dcg": float("inf"), "where": Path("x"), "list": (1, float("nan"))}
    results = [SampleResult(SAMPLE, "[]", {"m": MetricScore(1.0, details)})]
    value = json.loads(EvalReport("d", results).to_json())
    (sample,) = value["samples"]
    assert sample["scores"]["m"]["details"] == {
        "dcg": None,
        "where": "x",
        "list": [1, None],
    }
    assert value["schema_version"] == "eval-harness.report.v1"
