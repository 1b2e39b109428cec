"""Documents with names of their own inside a list, by path and by mapping."""

from typing import Any

import pytest

import karat
from karat.errors import MissingFieldError
from karat.extend import FormatError, MismatchError, Policies
from karat.reading.meaning.values import value_at
from tests.reading.records import load_records

OWN = {
    "id": "q1",
    "topk": [{"chunk_uid": "a", "sim": 0.4}, {"chunk_uid": "b", "sim": 0.3}],
    "relevant": ["b"],
}
LANGCHAIN = {
    "id": "q1",
    "source_documents": [
        {"page_content": "Gloves fit.", "metadata": {"source": "sizes.md"}},
        {"page_content": "Send them back.", "metadata": {"source": "returns.md"}},
    ],
    "relevant": ["returns.md"],
}


@pytest.mark.parametrize(
    ("record", "mapping"),
    [
        (OWN, {"retrieved": "topk.chunk_uid"}),
        (OWN, {"retrieved": "topk.chunk_uid", "retrieved_scores": "topk.sim"}),
        (OWN, {"retrieved": "topk", "document": "chunk_uid", "score": "sim"}),
        (OWN, {"document": "chunk_uid", "score": "sim"}),
        (LANGCHAIN, {"retrieved": "source_documents.metadata.source"}),
        (LANGCHAIN, {"document": "metadata.source"}),
    ],
)
def test_documents_of_any_shape_can_be_named(
    record: dict[str, Any], mapping: dict[str, str]
) -> None:
    loaded = load_records([record], mapping=mapping)
    assert karat.evaluate(loaded, metrics="rr").means == {"rr": 0.5}
    assert mapping.items() <= loaded.mapping.items()


def test_scores_and_texts_inside_documents_are_kept() -> None:
    mapping = {"document": "metadata.source"}
    run = load_records([LANGCHAIN], mapping=mapping).run
    assert run is not None
    ((_, documents),) = run.rankings(Policies())
    assert [(d.id, d.text) for d in documents] == [
        ("sizes.md", "Gloves fit."),
        ("returns.md", "Send them back."),
    ]


def test_gold_documents_can_be_named_too() -> None:
    record = {"id": "q1", "relevant": [{"uid": "b", "stars": 2}]}
    loaded = load_records([record], mapping={"document": "uid", "grade": "stars"})
    assert loaded.gold is not None
    assert loaded.gold.documents == {"q1": {"b": 2.0}}


def test_a_name_found_nowhere_is_an_error() -> None:
    with pytest.raises(MissingFieldError, match="no record has the field 'uid'"):
        load_records([{"id": "q1", "retrieved": ["a"]}], mapping={"document": "uid"})


def test_a_path_goes_through_objects_and_lists() -> None:
    assert value_at({"a.b": 1, "a": {"b": 2}}, "a.b") == 1
    assert value_at({"a": {"b": 2}}, "a.b") == 2
    assert value_at({"a": '{"b": 2}'}, "a.b") == 2
    assert value_at({"a": [{"b": [{"c": 1}]}]}, "a.b.c") == [[1]]
    assert value_at({"a": [{"c": 1}]}, "a.b") is None
    assert value_at({"a": []}, "a.b") == []
    assert value_at({"a": 3}, "a.b") is None


def test_lists_without_ids_must_be_equally_long() -> None:
    with pytest.raises(MismatchError, match="run has 2 queries and the gold 1"):
        karat.evaluate([["a"], ["b"]], gold=[["a"]])
    with pytest.raises(MismatchError, match="run has 1 query and the gold 2"):
        karat.evaluate([["a"]], gold=[{"a": 2}, {"b": 1}])
    with pytest.raises(MismatchError, match="by position"):
        karat.evaluate([{"retrieved": ["a"]}], gold=[["a"], ["b"]])
    named = karat.evaluate({"0": ["a"], "1": ["b"]}, gold=[["a"]], metrics="rr")
    assert named.means == {"rr": 1.0}


@pytest.mark.parametrize("run", [["a", "b"], {"q1": "a"}])
def test_a_text_is_no_ranking(run: Any) -> None:
    with pytest.raises(FormatError, match=r"one query\? write \[\['a', 'b'\]\]"):
        karat.evaluate(run, gold={"q1": ["a"]})
