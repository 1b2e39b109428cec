"""What a saved evaluation may hold: each bound is tried from both sides."""

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import karat
from karat.extend import FormatError, UnknownNameError

SAMPLES: list[dict[str, Any]] = [
    {
        "id": "q1",
        "query": "Who bakes?",
        "k": 3,
        "tags": ["bread"],
        "retrieved": [
            {"id": "a", "text": "The baker bakes bread at night."},
            {"id": "b", "text": "Rye is a grain."},
        ],
        "relevant": [
            {"id": "a", "subtopics": {"x": 1}},
            {"id": "c", "subtopics": {"y": 2}},
        ],
        "passages": ["The baker bakes bread.", "Rye is a grain."],
    },
    {
        "id": "q2",
        "retrieved": [{"id": "c", "text": "Oats."}],
        "relevant": [{"id": "a", "subtopics": {"x": 1}}],
        "passages": ["Oats grow."],
    },
]
RESULT = karat.evaluate(
    SAMPLES, metrics=["recall@k", "alpha_ndcg", "coverage@2"], match="id"
)
SAVED = json.loads(RESULT.to_json())

ID, SPAN = "evaluation/matches/id", "evaluation/matches/span"
COVERAGE = f"{SPAN}/hits/coverage"
COLUMN = "evaluation/columns/recall@k"


def with_value(path: str, value: Any) -> Any:
    """The saved evaluation with another value at one place."""
    saved = copy.deepcopy(SAVED)
    holder = saved
    *steps, last = path.split("/")
    for step in steps:
        holder = holder[int(step) if isinstance(holder, list) else step]
    holder[int(last) if isinstance(holder, list) else last] = value
    return saved


def loaded(saved: Any, folder: Path) -> karat.Evaluation:
    path = folder / "result.json"
    path.write_text(json.dumps(saved), "utf-8")
    return karat.load(path)


def verdict(**values: Any) -> dict[str, Any]:
    return {"0": [{"claim": "claim-1", **values}]}


def times(value: Any) -> dict[str, Any]:
    return {"milliseconds": {"q1": value}}


NOTICE = {"kind": "ties", "text": "ties"}
RANK, ENTRY = "has a rank that is not >= 1", "a count not >= 0"


@pytest.mark.parametrize(
    ("path", "allowed", "refused", "sentence"),
    [
        ("evaluation/own_k/0", 1, 0, r"own_k\[0\] must be >= 1, got 0"),
        ("evaluation/labelled_by", {"me": 0}, {"me": -1}, ENTRY),
        ("evaluation/labelled_by", {"me": 2**31 - 1}, {"me": 2**31}, "an integer"),
        ("evaluation/facts/q1/k", 1, 0, "a k that is not >= 1"),
        (
            "evaluation/notices",
            [NOTICE | {"count": 0}],
            [NOTICE | {"count": -1}],
            ENTRY,
        ),
        ("evaluation/latency", times(0), times(-1), "milliseconds must be >= 0"),
        ("evaluation/latency", times(1e9), times("inf"), "milliseconds must be >= 0"),
        ("evaluation/latency", times(1), {"milliseconds": {"q9": 1}}, "q9 is of no"),
        (f"{COLUMN}/scores", [1 + 1e-13, 0], [1 + 1e-11, 0], "between 0.0 and 1.0"),
        (f"{COLUMN}/scores", [0.5, -1e-13], [0.5, -1e-11], "between 0.0 and 1.0"),
        (f"{COLUMN}/bounds", [0, 0.6], [0, 0.4], "not between 0.0 and 0.4"),
        (f"{COLUMN}/bounds", ["-inf", "inf"], ["inf", "-inf"], "between inf and -inf"),
        (f"{COLUMN}/bounds", [-1, 1e150], [-1, 1e151], "must be a finite number"),
        (f"{COLUMN}/failures", {"1": "x"}, {"2": "x"}, "failures.2 is of no query"),
        (f"{COLUMN}/undefined", 1, -1, "or its count is less than 0"),
        (f"{COLUMN}/higher_is_better", None, 1, "must be true or false, got int 1"),
        (f"{ID}/hits/rank/0", 1, 0, r"rank\[0\] must be >= 1, got 0"),
        (f"{ID}/hits/rank/0", 2**31 - 1, 2**31, r"rank\[0\] must be an integer"),
        (f"{ID}/hits/query/0", 0, 2, r"query\[0\] must be >= 0 and < 2, got 2"),
        (f"{ID}/hits/item/0", 1, 2, "hits.item has an item of another query"),
        (f"{ID}/hits/item/0", 0, 3, r"item\[0\] must be >= 0 and < 3, got 3"),
        (f"{ID}/hits/gold_count", [2, 1], [2, 0], "must add up to 3"),
        (f"{ID}/hits/gold_grade/0", 1e150, 1e151, r"gold_grade\[0\] must be a finite"),
        (f"{ID}/hits/gold_grade/0", -1e150, -1e151, "gold_grade.0. must be a finite"),
        (f"{ID}/hits/gold_grade", [1, 2, 1], [1, 2], "gold_grade must have 3 entries"),
        (f"{ID}/hits/retrieved/1", 0, -1, r"retrieved\[1\] must be >= 0, got -1"),
        (f"{ID}/hits/subtopics/item/0", 2, 3, r"item\[0\] must be >= 0 and < 3"),
        (f"{ID}/hits/subtopics/topic/0", 0, -1, r"topic\[0\] must be >= 0, got -1"),
        (f"{ID}/hits/subtopics/grade", [1, 1, 1], [1], "grade must have 3 entries"),
        (f"{ID}/missing", [False, True], [False], "missing must have 2 entries"),
        (f"{ID}/extra", 0, -1, ENTRY),
        (f"{ID}/failures", {"1": "x"}, {"2": "x"}, "failures.2 is of no query"),
        (f"{ID}/usage", {"1": {}}, {"2": {}}, "usage.2 is of no query"),
        (f"{ID}/usage", {"0": {"replies": 0}}, {"0": {"replies": -1}}, ENTRY),
        (f"{ID}/verdicts", verdict(alone=[1]), verdict(alone=[0]), RANK),
        (f"{ID}/verdicts", verdict(together=[1]), verdict(together=[0]), RANK),
        (f"{ID}/verdicts", verdict(partial=[1]), verdict(partial=[0]), RANK),
        (f"{ID}/verdicts", verdict(against=[1]), verdict(against=[0]), RANK),
        (
            *(f"{ID}/verdicts", verdict(disagreement=1), verdict(disagreement=1.1)),
            "disagreement must be between 0 and 1",
        ),
        (
            *(f"{ID}/verdicts", verdict(disagreement=0), verdict(disagreement=-0.1)),
            "disagreement must be between 0 and 1",
        ),
        (f"{COVERAGE}/query/2", 1, 2, r"query\[2\] must be >= 0 and < 2, got 2"),
        (f"{COVERAGE}/query", [0, 0, 1], [1, 0, 1], "rows must be sorted"),
        (f"{COVERAGE}/rank", [2, 2, 1], [2, 1, 1], "rows must be sorted"),
        (f"{COVERAGE}/rank/0", 1, 0, r"rank\[0\] must be >= 1, got 0"),
        (f"{COVERAGE}/item", [2, 2], [1, 0], "rows must be sorted"),
        (f"{COVERAGE}/item/1", 2, 3, r"item\[1\] must be >= 0 and < 3, got 3"),
        (f"{COVERAGE}/item_rank/0", 1, 0, r"item_rank\[0\] must be >= 1, got 0"),
        (f"{COVERAGE}/size/0", 0, -1, r"size\[0\] must be >= 0, got -1"),
        (f"{COVERAGE}/size", [1, 1], [1], "size must have 2 entries"),
        (f"{COVERAGE}/tokens", [1, 1, 1], [1, 1], "tokens must have 3 entries, got 2"),
        (f"{COVERAGE}/sound", [True, False], [True], "sound must have 2 entries"),
        ("metrics/recall@k/mean", 0.25 + 1e-11, 0.25 + 1e-9, "contradicts itself"),
        ("gold", "samples", "other", "its gold is 'other' and 'samples'"),
    ],
)
def test_a_bound_has_two_sides(
    tmp_path: Path, path: str, allowed: Any, refused: Any, sentence: str
) -> None:
    if "scores" not in path:
        loaded(with_value(path, allowed), tmp_path)
    else:
        saved = with_value(path, allowed)
        saved["metrics"]["recall@k"]["mean"] = sum(allowed) / 2
        loaded(saved, tmp_path)
    with pytest.raises(FormatError, match=sentence):
        loaded(with_value(path, refused), tmp_path)


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        (0, "it has no schema_version"),
        (True, "it has no schema_version"),
        (1, "was saved by an older karat: its schema_version is 1, this karat reads 3"),
        (4, "was saved by a newer karat: its schema_version is 4, .*; upgrade karat"),
    ],
)
def test_other_versions_are_told_apart(
    tmp_path: Path, version: Any, sentence: str
) -> None:
    with pytest.raises(FormatError, match=sentence):
        loaded({**SAVED, "schema_version": version}, tmp_path)


def test_a_list_of_one_needs_no_name_and_a_name_must_be_right(tmp_path: Path) -> None:
    assert loaded([SAVED], tmp_path) == RESULT
    path = tmp_path / "result.json"
    assert karat.load(path, run="samples") == RESULT
    with pytest.raises(UnknownNameError, match="unknown run 'sample'"):
        karat.load(path, run="sample")
    for nothing in ([], [SAVED, 7], 7, None):
        with pytest.raises(FormatError, match="is not a saved evaluation"):
            loaded(nothing, tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.run", "q1 Q0 b 1 2 t\n", r"is a run, not a saved .*karat\.read_run"),
        ("a.qrels", "q1 0 b 1\n", r"is gold, not a saved .*karat\.read_gold"),
        (
            *("a.jsonl", '{"id": "q", "retrieved": ["a"], "relevant": ["a"]}\n'),
            r"is a file of samples, not a saved .*karat\.read_samples",
        ),
        ("a.json", "{}", "is not a saved evaluation: it has no schema_version"),
        ("a.json", '["a"]', "is not a saved evaluation: it has no schema_version"),
    ],
)
def test_what_reads_another_file_is_told(
    tmp_path: Path, name: str, text: str, sentence: str
) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(FormatError, match=sentence) as caught:
        karat.load(path)
    assert str(caught.value).startswith(str(path))


def test_rows_of_every_run_are_skipped(tmp_path: Path) -> None:
    board = karat.Leaderboard({"one": RESULT, "two": replace(RESULT, run="two")})
    path = tmp_path / "board.json"
    path.write_text(board.to_json().replace('"id": "q1", "missing"', "no JSON"))
    assert karat.load(path, run="samples") == RESULT
    assert karat.load(path, run="two").run == "two"


def test_what_is_defined_for_no_query_comes_back(tmp_path: Path) -> None:
    result = karat.evaluate({"q": ["a"]}, gold={"q": {"a": 0}}, metrics="rr")
    again = loaded(result.to_dict(), tmp_path)
    assert (again == result, again["rr"].n) == (True, 0)
    assert math.isnan(again["rr"].mean)


def test_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    """Also those that JSON has no word for, or another one."""
    values = [0.0, -0.0, 2.0**31, -(2.0**40), 1e-300, 0.1 + 0.2, math.nan]
    queries = [f"q{n}" for n in range(len(values))]
    gold = {query: ["a"] for query in queries}
    plain = karat.evaluate(gold, gold=gold, metrics="rr")
    for scores in (values, values[:2] * 3 + [1.0], values[2:4] * 3 + [1.0], [1.0] * 7):
        array = np.array(scores)
        bounds = (-math.inf, math.inf)
        column = replace(plain["rr"], scores=array, bounds=bounds)
        result = replace(plain, columns={"rr": column})
        again = loaded(result.to_dict(), tmp_path)
        assert again["rr"].scores.tobytes() == array.tobytes()
        assert again["rr"].bounds == bounds
        assert json.loads(result.to_json()) == result.to_dict()


def test_only_what_says_something_is_saved() -> None:
    result = karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics="rr")
    assert [*result.to_dict()["evaluation"]] == [
        *("run", "gold", "queries", "columns", "missing", "policies", "matchers"),
        *("matches", "default_matcher", "provenance", "labelled_by"),
        "fingerprints",
    ]
    # What is known of a query whose id is all that is known is nothing.
    known: dict[str, dict[str, Any]] = {
        "text": {"query": "Who?"},
        "k": {"k": 3},
        "tags": {"tags": ["x"]},
        "metadata": {"metadata": {"page": 1}},
    }
    for name, fact in known.items():
        sample = {"id": "q", "retrieved": ["a"], "relevant": ["a"], **fact}
        saved = karat.evaluate([sample], metrics="rr").to_dict()["evaluation"]
        assert [*saved["facts"]["q"]] == ["id", name]


def test_rows_say_what_the_value_says() -> None:
    ids = ['a "b", c', "100 %s", "é\\"]
    gold: dict[str, Any] = {name: {"a": 1} for name in ids} | {"none": {"a": 0}}
    run = {name: ["b", "a"] for name in ids[:2]}
    result = karat.evaluate(run, gold=gold, metrics=["rr", "rbp(p=0.5)"])
    assert '"run": "é",' in replace(result, run="é").to_json()
    saved = json.loads(result.to_json())
    assert saved == result.to_dict()
    assert saved["queries"] == [
        {"id": ids[0], "missing": False, "scores": {"rr": 0.5, "rbp(p=0.5)": 0.25}},
        {"id": ids[1], "missing": False, "scores": {"rr": 0.5, "rbp(p=0.5)": 0.25}},
        {"id": ids[2], "missing": True, "scores": {"rr": 0.0, "rbp(p=0.5)": 0.0}},
        {"id": "none", "missing": True, "scores": {"rr": None, "rbp(p=0.5)": None}},
    ]
