"""What a JSON or YAML value may look like, and what it then is."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from karat import Run
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.extend import FormatError
from karat.reading.meaning.rows import TableReader
from karat.reading.readers import read, read_by

Save = Callable[[str, str | bytes], str]
Ids = Callable[[Run | None], dict[str, list[Any]]]

RUNS = [
    ({"q1": {"d1": 0.5, "d2": 0.75}}, ScoredRun, {"q1": ["d2", "d1"]}),
    ({"q1": {"1": 1, "2": 2}}, ScoredRun, {"q1": ["2", "1"]}),
    ({"q1": ["d2", "d1"], "q2": []}, RankedRun, {"q1": ["d2", "d1"], "q2": []}),
    ({"q1": [2, "1"]}, RankedRun, {"q1": ["2", "1"]}),
    (
        {"q1": [{"id": "d2", "text": "t", "score": 2}, {"id": "d1"}]},
        DocumentRun,
        {"q1": ["d2", "d1"]},
    ),
    ({"q1": [["d2", 0.5], ["d1", 0.25]]}, DocumentRun, {"q1": ["d2", "d1"]}),
    ([["d2", "d1"], []], RankedRun, {"0": ["d2", "d1"], "1": []}),
    ([{"d2": 1, "d1": 0.5}], ScoredRun, {"0": ["d2", "d1"]}),
    (['["d2", "d1"]'], RankedRun, {"0": ["d2", "d1"]}),
    (
        {"outputs": {"q1": '["d2"]', "q2": ["d3"]}},
        RankedRun,
        {"q1": ["d2"], "q2": ["d3"]},
    ),
    ([{"id": "q1", "actual_output": '["d2"]'}], RankedRun, {"q1": ["d2"]}),
    ({"results": [{"qid": 1, "docs": ["d2"]}]}, RankedRun, {"1": ["d2"]}),
    ({"q1": {"retrieved": ["d2"], "query": "?"}}, RankedRun, {"q1": ["d2"]}),
    ({"query_id": "q1", "retrieved": ["d2", "d1"]}, RankedRun, {"q1": ["d2", "d1"]}),
    (
        {"question": ["a", "b"], "contexts": [["t u v"], ["w"]]},
        DocumentRun,
        {"0": ["t u v"], "1": ["w"]},
    ),
    (
        [
            {"qid": "q1", "docid": "d1", "score": 1.5},
            {"qid": "q1", "docid": "d2", "score": 2.5},
        ],
        ScoredRun,
        {"q1": ["d2", "d1"]},
    ),
    (
        [
            {"query": "q1", "id": "d1", "rank": 2, "system": "a"},
            {"query": "q1", "id": "d2", "rank": 1, "system": "a"},
        ],
        TableReader,
        {"q1": ["d2", "d1"]},
    ),
    ([{"query_id": "q", "passages": ["a b c"]}], DocumentRun, {"q": ["a b c"]}),
    ({"run": {"q1": ["d1"]}}, RankedRun, {"q1": ["d1"]}),
]


@pytest.mark.parametrize(("value", "kind", "expected"), RUNS)
@pytest.mark.parametrize("name", ["run.json", "run.txt"])
def test_runs_in_json(
    value: Any, kind: type, expected: object, name: str, save: Save, ids: Ids
) -> None:
    loaded = read(save(name, json.dumps(value)), role="run")
    assert type(loaded.run) is kind
    assert ids(loaded.run) == expected
    assert loaded.format == "json"


GOLDS = [
    {"q1": {"d1": 2, "d2": 0}},
    {"q1": {"d1": 2.0, "d2": False}},
    {"q1": [["d1", 2], ["d2", 0]]},
    {"q1": [{"id": "d1", "relevance": 2}, {"id": "d2", "relevance": 0}]},
    [{"id": "q1", "relevant": {"d1": 2, "d2": 0}}],
    [
        {"qid": "q1", "doc_id": "d1", "rel": 2},
        {"qid": "q1", "doc_id": "d2", "rel": "0"},
    ],
    {"qrels": {"q1": {"d1": 2, "d2": 0}}},
    {"samples": [{"id": "q1", "docs": {"d1": 2, "d2": 0}}]},
    {"queries": {"q1": "?"}, "corpus": {}, "relevant_docs": {"q1": {"d1": 2, "d2": 0}}},
]


@pytest.mark.parametrize("value", GOLDS)
def test_gold_in_json(value: Any, save: Save) -> None:
    loaded = read(save("gold.json", json.dumps(value)), role="gold")
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q1": {"d1": 2.0, "d2": 0.0}}


def test_gold_lists_are_ids_or_texts_by_their_looks(save: Save) -> None:
    loaded = read(save("a.json", '{"q1": ["d1", "d2"]}'), role="gold")
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q1": {"d1": 1.0, "d2": 1.0}}
    loaded = read(save("b.json", '[["The sky is blue."]]'), role="gold")
    assert loaded.gold is not None
    assert loaded.gold.passages["0"][0].text == "The sky is blue."


def test_numbers_by_query_are_gold_when_whole_and_it_is_said(save: Save) -> None:
    loaded = read(save("a.json", '{"q1": {"d1": 1}}'))
    assert loaded.gold is not None
    assert loaded.run is None
    assert [notice.kind for notice in loaded.notices] == ["role"]
    loaded = read(save("b.json", '{"q1": {"d1": 0.5}}'))
    assert loaded.run is not None
    assert [notice.kind for notice in loaded.notices] == ["role"]


def test_llama_index_question_sets_have_texts(save: Save) -> None:
    value = {"queries": {"q1": "Why?"}, "corpus": {}, "relevant_docs": {"q1": ["d1"]}}
    loaded = read(save("a.json", json.dumps(value)))
    assert loaded.queries["q1"].text == "Why?"


@pytest.mark.parametrize(
    ("text", "role", "problem"),
    [
        ("[]", "run", "an empty list"),
        ("{}", "run", "an empty object"),
        ("7", "run", "cannot tell what it is"),
        ('{"q1": 7}', "run", "query 'q1': must have a list of documents"),
        ('{"q1": null}', "gold", "query 'q1': must have a list of documents"),
        ('{"q1": ["a"], "q2": 5}', "run", "query 'q2': must have a list"),
        ('{"q1": {"d1": "x"}}', "run", "query 'q1': score of 'd1' must be a number"),
        ('{"q1": {"d1": 1e999}}', "run", "query 'q1': score of 'd1' must be a finite"),
        ('{"q1": {"d1": 1e999}}', "gold", "query 'q1': grade of 'd1' must be a finite"),
        ('{"": ["a"]}', "run", "query id is empty"),
        ('{"q1": ["a"]}', "samples", "holds documents by query, not samples"),
        ('[{"id": "a", "docs": ["x"]}, 5]', "run", "sample 2: must be an object"),
        ('[{"qid": 1, "doc": "a", "rank": 1}, [5]]', "run", "must be an object"),
        ('[{"a": 1, "b": "x"}]', "run", "no field holds retrieved documents"),
        ('{"samples": []}', "run", "an empty list"),
    ],
)
def test_other_values_are_refused_with_their_place(
    text: str, role: Any, problem: str, save: Save
) -> None:
    path = save("a.txt", text)
    with pytest.raises(FormatError) as caught:
        read(path, role=role)
    assert problem in str(caught.value)
    assert str(caught.value).startswith(path)


ROWS = [
    {"qid": "q", "docid": "a", "score": 1.0, "system": "x"},
    {"qid": "q", "docid": "b", "score": 2.0, "system": "x"},
    {"qid": "q", "docid": "a", "score": 3.0, "system": 7},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps(ROWS)),
        ("a.json", json.dumps({"rows": ROWS})),
        ("a.jsonl", "\n".join(map(json.dumps, ROWS))),
        ("a.yaml", json.dumps(ROWS)),
    ],
)
def test_records_are_split_by_a_field(
    name: str, text: str, save: Save, ids: Ids
) -> None:
    parts = read_by(save(name, text), "system", role="run")
    assert {system: ids(part.run) for system, part in parts.items()} == {
        "x": {"q": ["b", "a"]},
        "7": {"q": ["a"]},
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"q1": ["a"]}', "holds no list of records to split by 'system'"),
        ("[1]", "no field 'system' to split by; fields found: none"),
        ('[{"system": null, "x": 1}]', "'system' is empty, but splits the table"),
        ("[]", "there is nothing to read"),
    ],
)
def test_what_cannot_be_split_says_why(text: str, problem: str, save: Save) -> None:
    with pytest.raises(FormatError) as caught:
        read_by(save("a.json", text), "system")
    assert problem in str(caught.value)


def test_formats_without_columns_cannot_be_split(save: Save) -> None:
    with pytest.raises(FormatError, match="has no column 'system' to split by"):
        read_by(save("a", "q 0 d 1\n"), "system")


def test_records_by_query_may_name_themselves(save: Save, ids: Ids) -> None:
    value = {"a": {"qid": "q1", "docs": ["x"]}, "b": {"qid": "q2", "docs": ["y"]}}
    loaded = read(save("a.json", json.dumps(value)))
    assert ids(loaded.run) == {"q1": ["x"], "q2": ["y"]}
    value["c"] = 5  # type: ignore[assignment]
    with pytest.raises(
        FormatError, match="query 'c': must be an object like the others"
    ):
        read(save("a.json", json.dumps(value)))


@pytest.mark.parametrize("gold", ["answers", "ground_truth", "reference", "claims"])
@pytest.mark.parametrize("retrieved", ["contexts", "retrieved", "retrieved_ids"])
def test_columns_are_known_by_whichever_holds_lists(
    gold: str, retrieved: str, save: Save
) -> None:
    columns = {"id": ["q1", "q2"], gold: ["a b c", "d e f"], retrieved: [["a"], ["b"]]}
    loaded = read(save("samples.json", json.dumps(columns)), role="samples")
    assert loaded.run is not None
    assert loaded.run.queries() == ["q1", "q2"]
