"""Saved evaluations: they follow the published schema and come back exactly."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import karat
from karat.errors import FormatError, UnknownNameError, UsageError
from karat.results.evaluation import Evaluation
from karat.results.loading import from_dict

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/schema/evaluation-2.schema.json").read_text())
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


def test_the_published_schema_is_the_one_that_files_are_checked_by() -> None:
    name = "evaluation-2.schema.json"
    used = (ROOT / "src/karat/results" / name).read_text("utf-8")
    assert (ROOT / "docs/schema" / name).read_text("utf-8") == used


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
    one = example().to_dict()
    path.write_text(json.dumps([{**one, "run": "keyword"}, {**one, "run": "dense"}]))
    check(json.loads(path.read_text()))
    assert karat.load(path, run="dense").run == "dense"
    with pytest.raises(UsageError, match=r"holds 2 runs; name one with run=: keyword"):
        karat.load(path)
    with pytest.raises(UnknownNameError, match="did you mean 'dense'"):
        karat.load(path, run="dence")


def without(key: str) -> Callable[[Any], Any]:
    return lambda saved: {k: v for k, v in saved.items() if k != key}


def changed(**values: Any) -> Callable[[Any], Any]:
    return lambda saved: {**saved, **values}


def with_mean(saved: Any) -> Any:
    saved["metrics"]["rr"]["mean"] = 0.9
    return saved


def with_text_as_score(saved: Any) -> Any:
    saved["queries"][0]["scores"]["rr"] = "0.5"
    return saved


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (changed(schema_version=3), "newer karat: its schema_version is 3, .* reads 2"),
        (changed(schema_version=1), "an older karat.*; evaluate the run again"),
        (changed(schema_version="1"), "not a saved evaluation"),
        (without("schema_version"), "not a saved evaluation"),
        (lambda _: [1, 2], "not a saved evaluation"),
        (lambda _: {"q1": {"a": 1}}, "not a saved evaluation"),
        (without("queries"), "not a whole evaluation: 'queries' is missing"),
        (changed(queries=[{}]), "not a whole evaluation"),
        (changed(policies={"undefined": "maybe"}), "must be one of 'skip'"),
        (changed(policies={"colour": 1}), "colour"),
        (changed(metrics=[]), "not a whole evaluation"),
        (with_mean, "contradicts itself: rr is 0.9"),
        (with_text_as_score, r"queries\[0\].scores.rr must be a finite number"),
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
    for number, (holder, key) in enumerate(places(saved)):
        before = holder[key]
        for wrong in (WRONG[number % len(WRONG)], WRONG[(number + 3) % len(WRONG)]):
            holder[key] = wrong
            valid = validator.is_valid(saved)
            try:
                from_dict(saved).to_json()
            except FormatError:
                refused += 1
            else:
                # What is not read, or has a default, may be odd.
                assert valid or key in {"policies", "level"}, f"{key} = {wrong!r}"
        holder[key] = before
    assert refused > 100
    assert from_dict(saved).to_json() == example().to_json()


def test_other_averages_and_policies_come_back() -> None:
    run, gold = {"q1": ["q1", "a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["b"]}
    result = karat.evaluate(run, gold=gold, metrics=["gm_ap", "num_q"], profile="beir")
    saved = json.loads(result.to_json())
    check(saved)
    assert from_dict(saved) == result


def test_rows_of_the_usual_form_are_refused_like_others() -> None:
    whole = json.loads(example().to_json())
    for path, value in (
        (("id",), 7),
        (("missing",), 0),
        (("scores", "rr"), "1"),
        (("scores", "rr"), 1e200),
        (("matches", "id", "retrieved"), -1),
        (("matches", "id", "items", 0), ["a"]),
        (("matches", "id", "items", 0), ["a", 1.0, 0]),
        (("matches", "id", "items", 0), [1, 1.0]),
    ):
        saved = copy.deepcopy(whole)
        place = saved["queries"][0]
        for row in saved["queries"]:
            row.pop("own_k", None)
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        with pytest.raises(FormatError, match="is not a whole evaluation: queries"):
            from_dict(saved)
