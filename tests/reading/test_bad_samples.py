"""Samples with something wrong: each is named by its id, with what it should be."""

from typing import Any

import pytest

from karat.extend import FormatError
from tests.reading.records import load_records

BAD = [
    ({"id": None}, "id is empty"),
    ({"id": ""}, "id is empty"),
    ({"id": " "}, "id is empty"),
    ({"id": ["a"]}, "id must be a string or an integer, got list"),
    ({"id": 1.5}, "id must be a string or an integer, got float 1.5"),
    ({"id": True}, "id must be a string or an integer, got bool True"),
    ({"retrieved": 7}, "the ranking must be a list"),
    ({"retrieved": ["a", None]}, "document id must be a string or an integer"),
    ({"retrieved": ["a", ""]}, "document id is empty"),
    ({"retrieved": ["a", ["b"]]}, "a document cannot be a list, got list ['b']"),
    ({"retrieved": [{}]}, "needs an id or a text"),
    ({"retrieved": [{"id": ["x"]}]}, "document id must be"),
    ({"retrieved": [{"id": "a", "text": 5}]}, "the text of a document must be a text"),
    (
        {"retrieved": [{"id": "a", "score": float("nan")}]},
        "score must be a finite number",
    ),
    ({"retrieved": {"a": float("inf")}}, "score of 'a' must be a finite number"),
    ({"retrieved": {"a": 10**400}}, "must be a finite number"),
    ({"retrieved": {"a": "high"}}, "score of 'a' must be a number, got str 'high'"),
    ({"retrieved": {"a": True}}, "score of 'a' must be a number"),
    ({"retrieved": '["a" "b"]'}, "looks like a list or mapping but is not JSON"),
    ({"output": "no ranking at all", "retrieved": None}, "the ranking must be a list"),
    ({"retrieved": ["a"], "scores": [1, 2]}, "must be equally long, got 1, 2"),
    ({"retrieved": None, "scores": [1]}, "scores need retrieved documents"),
    ({"relevant": [{"title": "t"}]}, "a relevant document needs an id"),
    ({"relevant": {"a": float("nan")}}, "grade of 'a' must be a finite number"),
    ({"relevant": {"a": None}}, "grade of 'a' must be a number"),
    ({"relevant": {"a": {"b": 1}}}, "grade of 'a' must be a number"),
    ({"relevant": [None]}, "relevant id must be"),
    ({"relevant": [[["a"]]]}, "relevant id must be"),
    ({"relevant": {"": 1}}, "document id is empty"),
    ({"relevant": {1: 1, "1": 2}}, "both as number and as text"),
    ({"relevant": [["a", 1], ["a", 2]]}, "'a' has two grades"),
    ({"passages": [""]}, "a gold passage is empty"),
    ({"passages": [[["x"]]]}, "a gold passage must be a text"),
    ({"passages": [{"id": "p", "text": "a"}, {"id": "p", "text": "b"}]}, "same id"),
    ({"spans": ["x"]}, "spans must be objects with doc, start and end"),
    ({"spans": [{"doc": "d", "start": 5, "end": 5}]}, "0 <= start < end"),
    ({"spans": [{"start": 1, "end": 5}]}, "a span needs doc, start and end"),
    ({"k": 0}, "k must be an integer >= 1, got int 0"),
    ({"k": -1}, "k must be an integer >= 1"),
    ({"k": 2.5}, "k must be an integer >= 1, got float 2.5"),
    ({"k": "two"}, "k must be an integer >= 1, got str 'two'"),
    ({"k": True}, "k must be an integer >= 1"),
    ({"metadata": {"k": 0}}, "k must be an integer >= 1"),
    ({"tags": 5}, "tags must be a text or a list of texts"),
]


@pytest.mark.parametrize(("change", "problem"), BAD)
def test_a_bad_value_is_named_with_its_sample(
    change: dict[str, Any], problem: str
) -> None:
    good = {"id": "fine", "retrieved": ["a"], "relevant": ["a"]}
    bad = {"id": "sick", "retrieved": ["a"], "relevant": ["a"], **change}
    with pytest.raises(FormatError) as caught:
        load_records(
            [good, {k: v for k, v in bad.items() if v is not None or k == "id"}]
        )
    assert problem in str(caught.value)
    assert "query 'sick'" in str(caught.value) or "sample 2" in str(caught.value)


def test_an_id_used_twice_says_where_it_was_first() -> None:
    with pytest.raises(
        FormatError, match=r"sample 2: .*'a' occurs twice.* in sample 1"
    ):
        load_records([{"id": "a", "docs": ["x"]}, {"id": "a", "docs": ["y"]}])


def test_a_sample_without_the_id_that_others_have_is_refused() -> None:
    with pytest.raises(FormatError, match="sample 2: has no 'id'"):
        load_records([{"id": "a", "docs": ["x"]}, {"docs": ["y"]}])


def test_missing_fields_are_named_with_those_found_and_a_hint() -> None:
    with pytest.raises(
        FormatError,
        match=r"no field holds retrieved documents; fields found: id, retreived; "
        r"is it 'retreived'\? then --map retrieved=retreived",
    ):
        load_records([{"id": 1, "retreived": ["a"]}], role="run")
    with pytest.raises(
        FormatError, match=r"no field holds gold.*--map relevant=THEIRS"
    ):
        load_records([{"id": 1, "retrieved": ["a"]}], role="samples")
    with pytest.raises(FormatError, match="it is empty"):
        load_records([])
    with pytest.raises(FormatError, match="sample 1: must be an object with fields"):
        load_records(["x"])
