"""Saved evaluations: they follow the published schema and come back exactly."""

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import karat
from karat import Evaluation
from karat.extend import FormatError, UnknownNameError, UsageError
from karat.results.loading import from_dict

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/schema/evaluation-3.schema.json").read_text())
METRICS = ["recall@1", "recall@k", "rr", "ndcg@10", "utility", "judged@2", "num_ret"]

ids = st.sampled_from(["a", "b", "c", "d", "é", "7"])
queries = st.sampled_from(["q1", "q2", "q3", "question four"])
runs = st.dictionaries(queries, st.dictionaries(ids, st.floats(0, 1)), min_size=1)
golds = st.dictionaries(
    queries, st.dictionaries(ids, st.integers(-1, 3), min_size=1), min_size=1
)


def check(saved: object) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(saved)


def example() -> Evaluation:
    run = {"q1": {"a": 2.0, "b": 2.0}, "q2": {"c": 1.0}}
    gold = {"q1": {"a": 1, "c": 2}, "q2": {"x": 0}, "q3": {"a": 1}}
    return karat.evaluate(run, gold=gold, metrics=METRICS, force=True)


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    runs, golds, st.sampled_from(["skip", "zero"]), st.sampled_from(["skip", "zero"])
)
def test_every_evaluation_follows_the_schema_and_comes_back(
    run: dict[str, Any], gold: dict[str, Any], undefined: str, missing: str
) -> None:
    policies: Any = {"undefined": undefined, "missing": missing, "force": True}
    try:
        result = karat.evaluate(run, gold=gold, metrics=METRICS, **policies)
    except karat.KaratError:
        return  # no common query at all
    text = result.to_json()
    check(json.loads(text))
    again = from_dict(json.loads(text))
    assert again.to_json() == text
    assert again.warnings == result.warnings
    assert again.policies == result.policies
    assert list(again.traces) == list(result.traces)
    for metric in METRICS:
        same = again[metric].scores.tobytes() == result[metric].scores.tobytes()
        assert same or np.array_equal(
            again[metric].scores, result[metric].scores, equal_nan=True
        )
        assert again[metric].interval == result[metric].interval
        assert again[metric].bounds == result[metric].bounds
    assert str(again) == str(result)


def test_failures_tags_and_cutoffs_come_back() -> None:
    samples = [
        {"id": "q1", "retrieved": ["a"], "relevant": ["a"], "k": 3, "tags": ["vague"]},
        {"id": "q2", "retrieved": ["b"], "relevant": ["a"], "k": 5},
    ]
    result = karat.evaluate(samples, metrics=["recall@k"], threshold=1)
    column = result["recall@k"]
    column = replace(
        column,
        scores=np.array([1.0, np.nan]),
        failures={1: "the judge timed out"},
    )
    result = replace(result, columns={"recall@k": column})
    saved = json.loads(result.to_json())
    check(saved)
    again = from_dict(saved)
    assert again.to_json() == result.to_json()
    assert again == result
    assert again["recall@k"].failures == {1: "the judge timed out"}
    assert again["recall@k"].cutoffs == (3, 5)
    assert again.status("recall@k", 1) == "failed"
    assert again.facts["q1"].tags == ("vague",)


def test_a_saved_file_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(example().to_json(), "utf-8")
    assert karat.load(path).to_json() == example().to_json()
    assert karat.load(str(path)).means["rr"] == example().means["rr"]


def test_one_of_several_runs_is_named(tmp_path: Path) -> None:
    path = tmp_path / "board.json"
    runs = [replace(example(), run=name).to_dict() for name in ("keyword", "dense")]
    path.write_text(json.dumps(runs))
    check(json.loads(path.read_text()))
    assert karat.load(path, run="dense").run == "dense"
    with pytest.raises(
        UsageError, match=r"holds 2 runs: keyword, dense; karat evaluate"
    ):
        karat.load(path)
    with pytest.raises(UnknownNameError, match="did you mean 'dense'"):
        karat.load(path, run="dence")


def without(key: str) -> Callable[[Any], Any]:
    return lambda saved: {k: v for k, v in saved.items() if k != key}


def changed(**values: Any) -> Callable[[Any], Any]:
    return lambda saved: {**saved, **values}


def put(path: str, value: Any) -> Callable[[Any], Any]:
    """Puts a value at a place, such as `evaluation.missing.0`."""

    def damage(saved: Any) -> Any:
        *steps, last = path.split("/")
        holder = saved
        for step in steps:
            holder = holder[int(step) if isinstance(holder, list) else step]
        if isinstance(holder, list):
            holder[int(last)] = value
        else:
            holder[last] = value
        return saved

    return damage


HITS = "evaluation/matches/id/hits"
KEPT: dict[str, Any] = {"queries": ["q1"], "count": [1]}
WHOLE = "is not a whole evaluation: evaluation"


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (changed(schema_version=4), "newer karat: its schema_version is 4, .* reads 3"),
        (changed(schema_version=2), "an older karat.*; evaluate the run again"),
        (changed(schema_version="1"), "not a saved evaluation"),
        (without("schema_version"), "not a saved evaluation"),
        (lambda _: [1, 2], "not a saved evaluation"),
        (lambda _: {"q1": {"a": 1}}, "not a saved evaluation"),
        (without("metrics"), "not a whole evaluation: the head: 'metrics' is missing"),
        (without("evaluation"), "evaluation must be an object, got nothing"),
        (changed(evaluation={}), "not a whole evaluation: evaluation: 'columns' is"),
        (changed(colour=1), "the head has a field that karat does not know: 'colour'"),
        (put("evaluation/policies/undefined", "maybe"), "must be one of 'skip'"),
        (put("evaluation/policies/depth", 0), "evaluation.policies: .* integer >= 1"),
        (put("evaluation/policies/colour", 1), "colour"),
        (changed(metrics=[]), "not a whole evaluation"),
        (changed(metrics={}), "contradicts itself: judged@2 is not in both"),
        (changed(run="other"), "contradicts itself: its run is 'other' and "),
        (put("metrics/rr/mean", 0.9), "contradicts itself: rr is 0.9"),
        (put("metrics/rr/n", 7), "contradicts itself: rr is .* over 7"),
        (
            put("evaluation/columns/rr/scores/0", "0.5"),
            rf"{WHOLE}.columns.rr.scores\[0\] must be a finite number, got str '0.5'",
        ),
    ],
)
def test_a_file_that_is_something_else_is_refused(
    damage: Callable[[Any], Any], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "result.json"
    saved = copy.deepcopy(json.loads(example().to_json()))
    path.write_text(json.dumps(damage(saved)))
    with pytest.raises(FormatError, match=sentence) as caught:
        karat.load(path)
    assert str(path) in str(caught.value)


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        karat.load(tmp_path / "none.json")
    path = tmp_path / "broken.json"
    path.write_text('{"schema_version": 1,')
    with pytest.raises(FormatError, match=r"broken.json:1: broken JSON"):
        karat.load(path)


WRONG: list[Any] = [None, "x", [], {}, -1, 1.5, True, 2**70, [None], {"a": None}]


def places(value: Any) -> list[tuple[Any, Any]]:
    pairs = [*value.items()] if isinstance(value, dict) else [*enumerate(value)]
    found = [(value, key) for key, _ in pairs]
    for _, entry in pairs:
        if isinstance(entry, dict | list):
            found += places(entry)
    return found


def test_what_the_schema_refuses_is_refused_in_a_sentence() -> None:
    saved = json.loads(example().to_json())
    validator = jsonschema.Draft202012Validator(SCHEMA)
    refused = 0
    # Rows are for people: nobody reads them again.
    rows = saved.pop("queries")
    found = places(saved)
    saved["queries"] = rows
    for number, (holder, key) in enumerate(found):
        before = holder[key]
        for wrong in (WRONG[number % len(WRONG)], WRONG[(number + 3) % len(WRONG)]):
            holder[key] = wrong
            valid = validator.is_valid(saved)
            try:
                from_dict(saved).to_json()
            except FormatError:
                refused += 1
            else:
                assert valid, f"{key} = {wrong!r}"
        holder[key] = before
    assert refused > 200
    assert from_dict(saved).to_json() == example().to_json()


def test_other_averages_and_policies_come_back() -> None:
    run, gold = {"q1": ["q1", "a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["b"]}
    result = karat.evaluate(run, gold=gold, metrics=["gm_ap", "num_q"], profile="beir")
    saved = json.loads(result.to_json())
    check(saved)
    assert from_dict(saved) == result


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("evaluation/queries/0", 7, r"queries\[0\] must be a text, got int 7"),
        ("evaluation/queries/0", "q2", "queries has an id twice"),
        ("evaluation/queries", ["q1"], "missing must have 1 entries, got 3"),
        ("evaluation/missing/0", 0, r"missing\[0\] must be true or false, got int 0"),
        ("evaluation/missing/0", "false", r"missing\[0\] must be true or false"),
        ("evaluation/own_k/1", 0, r"own_k\[1\] must be >= 1, got 0"),
        ("evaluation/fingerprints", ["x"], "fingerprints must have 3 entries"),
        ("evaluation/facts", {"q9": {"id": "q9", "k": 1}}, "facts.q9 is of no query"),
        ("evaluation/facts", {"q1": {"id": "q1", "k": 0}}, "a k that is not >= 1"),
        ("evaluation/kept", None, r"kept must be an object, got nothing"),
        ("evaluation/kept", {"queries": ["q9"], "count": [0]}, "kept.q9 is of no"),
        ("evaluation/kept", {"queries": ["q1"], "count": [-1]}, "kept: .* count >= 0"),
        ("evaluation/kept", KEPT | {"id": [7]}, r"kept.id\[0\] must be a text"),
        ("evaluation/kept", KEPT | {"id": ["a", "b"]}, "kept: id must have 1 entries"),
        ("evaluation/labelled_by", {"me": -1}, "a count not >= 0"),
        ("evaluation/columns/rr/scores/0", 1e200, r"scores\[0\] must be a finite"),
        ("evaluation/columns/rr/scores/0", 10**400, r"scores\[0\] must be a finite"),
        ("evaluation/columns/rr/scores/0", "inf", r"scores\[0\] must be a finite"),
        ("evaluation/columns/rr/scores/0", 1.5, "rr.scores are not between 0.0 and 1"),
        ("evaluation/columns/rr/scores", [1], "rr.scores must have 3 entries, got 1"),
        ("evaluation/columns/rr/bounds", [1, 0], "rr.scores are not between 1.0 and 0"),
        ("evaluation/columns/rr/bounds", [0], "bounds must be a list of 2 entries"),
        ("evaluation/columns/rr/failures", {"3": "x"}, "rr.failures.3 is of no query"),
        ("evaluation/columns/rr/failures", {"-1": "x"}, "an object by whole numbers"),
        (
            "evaluation/columns/rr/average",
            "median",
            "one of 'mean', 'geometric', 'sum'",
        ),
        ("evaluation/columns/rr/metric", "ap", "columns.rr is not of rr"),
        ("evaluation/matchers/rr", "text", "matches lacks those that rr reads"),
        (f"{HITS}/query/0", -1, r"hits.query\[0\] must be >= 0 and < 3, got -1"),
        (f"{HITS}/query/0", 3, r"hits.query\[0\] must be >= 0 and < 3, got 3"),
        (f"{HITS}/rank/0", 0, r"hits.rank\[0\] must be >= 1, got 0"),
        (f"{HITS}/rank/0", True, r"hits.rank\[0\] must be an integer, got bool True"),
        (f"{HITS}/rank/0", 2**70, r"hits.rank\[0\] must be an integer"),
        (f"{HITS}/item/0", 99, r"hits.item\[0\] must be >= 0 and < \d, got 99"),
        (f"{HITS}/grade/0", None, r"hits.grade\[0\] must be a number, got nan"),
        (f"{HITS}/gold_grade/0", None, r"hits.gold_grade\[0\] must be a number"),
        (f"{HITS}/retrieved/0", -1, r"hits.retrieved\[0\] must be >= 0, got -1"),
        (f"{HITS}/gold_count/0", 3, "hits.gold_count must add up to 4"),
        (f"{HITS}/joint", [True, False, True], "hits.joint must have"),
        ("evaluation/matches/id/items/0", 1, r"items\[0\] must be a text, got int 1"),
        ("evaluation/matches/id/usage", {"5": {}}, "id.usage.5 is of no query"),
    ],
)
def test_parts_that_do_not_fit_are_refused_by_their_place(
    path: str, value: Any, sentence: str
) -> None:
    saved = put(path, value)(json.loads(example().to_json()))
    with pytest.raises(FormatError, match=f"{WHOLE}.*{sentence}"):
        from_dict(saved)


def test_rows_that_are_not_sorted_are_refused() -> None:
    run, gold = {"q1": ["a", "b"]}, {"q1": ["a", "b"], "q2": ["a"]}
    saved = karat.evaluate(run, gold=gold, metrics=["rr"]).to_dict()
    hits = saved["evaluation"]["matches"]["id"]["hits"]
    hits["rank"].reverse()
    with pytest.raises(FormatError, match=r"id.hits: rows must be sorted by query"):
        from_dict(saved)
    hits["rank"].reverse()
    hits["item"][0] = 2
    with pytest.raises(FormatError, match=r"hits.item has an item of another query"):
        from_dict(saved)


def test_rows_for_people_are_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    text = example().to_json()
    start, end = text.index('"queries": [\n') + 12, text.rindex("\n  ]")
    path.write_text(f"{text[:start]}\n    no JSON at all{text[end:]}", "utf-8")
    assert karat.load(path) == example()
    path.write_text(text[:-20], "utf-8")
    with pytest.raises(FormatError, match="broken JSON"):
        karat.load(path)


def test_ranks_with_gaps_bounds_and_documents_come_back(tmp_path: Path) -> None:
    run = [
        {"query_id": "q1", "doc_id": "a", "rank": 1},
        {"query_id": "q1", "doc_id": "b", "rank": 4},
    ]
    gold = {"q1": ["b"]}
    result = karat.evaluate(run, gold=gold, metrics=["rr", "num_ret"], keep=5)
    assert [d.rank for d in result.kept["q1"]][-1] == 4
    result.save(tmp_path / "result.json")
    again = karat.load(tmp_path / "result.json")
    assert again == result
    assert again.kept == result.kept
    assert again["num_ret"].bounds == result["num_ret"].bounds == (0.0, math.inf)


def test_other_saved_results_are_not_called_old_evaluations(tmp_path: Path) -> None:
    path = tmp_path / "comparison.json"
    gold = {f"q{n}": {"a": 1} for n in range(20)}
    runs = [{q: ["a"] for q in gold}, {q: ["b", "a"] for q in gold}]
    karat.compare(*runs, gold=gold, metrics="rr").save(path)
    what = r"is a saved result \(comparison\), not"
    with pytest.raises(FormatError, match=f"{what} an evaluation"):
        karat.load(path)
    with pytest.raises(FormatError, match=f"{what} what was retrieved"):
        karat.evaluate(path, gold=gold)


@pytest.mark.parametrize("gold", [None, {"q1": {"a": 1}}])
@pytest.mark.parametrize("several", [False, True])
def test_a_saved_evaluation_is_no_run(
    tmp_path: Path, gold: Any, *, several: bool
) -> None:
    path = tmp_path / "result.json"
    saved = example().to_dict()
    path.write_text(json.dumps([saved, saved] if several else saved))
    with pytest.raises(FormatError, match=r"is a saved evaluation: karat compare"):
        karat.evaluate(path, gold=gold)


@pytest.mark.parametrize("name", ["x.xlsx", "x.md", "x.json.gz"])
def test_an_extension_of_another_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"extension chooses the format, one of .json"):
        example().save(tmp_path / name)
    assert not [*tmp_path.iterdir()]
