"""Mistakes that once gave a wrong number without a word."""

from typing import Any

import pytest

import karat
from karat.errors import DataError, FormatError, MismatchError
from karat.reading.meaning.values import unpack
from karat.results.evaluation import Evaluation
from tests.reading.conftest import Save

Record = dict[str, Any]


def said(result: Evaluation, kind: str) -> str:
    """The one notice of a kind."""
    (notice,) = (notice for notice in result.warnings if notice.kind == kind)
    return str(notice)


@pytest.mark.parametrize("field", ["answer", "response", "actual_output"])
def test_a_generated_answer_is_never_gold(field: str) -> None:
    sample = {"id": "q1", "contexts": ["Shipping is free.", "Refunds in 30 days."]}
    generated = {field: "Shipping is free."}
    with pytest.raises(MismatchError, match="no gold id occurs"):
        karat.evaluate([{**sample, **generated, "relevant": ["refunds.md"]}])
    with pytest.raises(DataError, match=f"--map answers={field}"):
        karat.evaluate([{**sample, **generated}])
    mapping = {"answers": field}
    result = karat.evaluate([{**sample, **generated}], mapping=mapping, metrics=["rr"])
    assert result.means == {"rr": 1.0}


def test_labels_beat_answers_even_where_no_id_matches() -> None:
    sample = {"retrieved": [{"id": "a", "text": "It is Paris."}], "answers": ["Paris"]}
    with pytest.raises(MismatchError, match="no gold id occurs"):
        karat.evaluate([{**sample, "relevant": ["other-7"]}], metrics=["rr"])


@pytest.mark.parametrize(
    "column", ["is_relevant", "human_score", "relevant", "Relevance-Label"]
)
@pytest.mark.parametrize("labels", [("0", "1"), ("False", "True"), ("no", "yes")])
def test_grade_0_is_not_relevant_in_a_table(
    save: Save, column: str, labels: tuple[str, str]
) -> None:
    no, yes = labels
    gold = save("gold.csv", f"query_id,doc_id,{column}\nq1,a,{no}\nq1,b,{yes}\n")
    result = karat.evaluate({"q1": ["a", "b"]}, gold=gold, metrics=["rr"])
    assert result.means == {"rr": 0.5}


@pytest.mark.parametrize("field", ["rating", "is_relevant", "humanScore", "label"])
def test_grade_0_is_not_relevant_inside_a_list(field: str) -> None:
    wanted = [{"id": "a", field: 0}, {"id": "b", field: 3}]
    sample = {"id": "q1", "retrieved": ["a", "b"], "relevant": wanted}
    assert karat.evaluate([sample], metrics=["rr"]).means == {"rr": 0.5}


def test_grades_may_be_listed_beside_the_ids() -> None:
    sample = {"id": "q1", "retrieved": ["a", "b"], "relevant_ids": ["a", "b"]}
    result = karat.evaluate([{**sample, "relevance_scores": [0, 3]}], metrics=["rr"])
    assert result.means == {"rr": 0.5}
    with pytest.raises(FormatError, match="as long as that of the relevant documents"):
        karat.evaluate([{**sample, "relevance_scores": [0]}])


def test_numbers_that_may_be_grades_are_named(save: Save) -> None:
    csv = save("gold.csv", "query_id,doc_id,verdict\nq1,a,0\nq1,b,1\n")
    rows = [
        {"query_id": "q1", "doc_id": "a", "verdict": 0},
        {"query_id": "q1", "doc_id": "b", "verdict": 1},
    ]
    nested = {"q1": [{"id": "a", "verdict": 0}, {"id": "b", "verdict": 1}]}
    pandas = pytest.importorskip("pandas")
    for gold in (csv, rows, nested, pandas.DataFrame(rows)):
        result = karat.evaluate({"q1": ["a", "b"]}, gold=gold, metrics=["rr"])
        assert said(result, "unread") == (
            "2 values of 'verdict' are not read as a grade, every gold id counts as "
            "relevant; --map grade=verdict reads them (for example 0, 1)"
        )
        mapping = {"grade": "verdict"}
        result = karat.evaluate(
            {"q1": ["a", "b"]}, gold=gold, metrics=["rr"], mapping=mapping
        )
        assert result.means == {"rr": 0.5}
        assert not result.warnings


def test_a_list_of_numbers_beside_a_list_of_ids_is_named() -> None:
    sample = {"id": "q", "retrieved": ["a"], "relevant": ["a", "b"], "stars": [0, 3]}
    result = karat.evaluate([sample], metrics=["rr"])
    assert "--map relevant_grades=stars" in said(result, "unread")
    mapping = {"relevant_grades": "stars"}
    assert karat.evaluate([sample], metrics=["rr"], mapping=mapping).means["rr"] == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['d3' 'd1']", ["d3", "d1"]),
        ("['d3'\n 'd1']", ["d3", "d1"]),
        ("[\"it's\" 'd 1']", ["it's", "d 1"]),
        ("[3 1]", [3, 1]),
        ("[0.5  0.  ]", [0.5, 0.0]),
    ],
)
def test_arrays_are_read_as_pandas_writes_them(text: str, value: list[Any]) -> None:
    assert unpack(text) == value


def test_an_array_that_was_shortened_is_refused() -> None:
    with pytest.raises(FormatError, match="shortened by NumPy"):
        unpack("['d1' 'd2' ... 'd998' 'd999']")


@pytest.mark.parametrize("cell", ["d3 d1", "d3;d1"])
def test_ids_joined_by_anything_are_noticed(save: Save, cell: str) -> None:
    run = save("run.csv", f"id,retrieved\nq1,{cell}\n")
    result = karat.evaluate(run, gold={"q1": ["d1"]}, metrics=["rr"], force=True)
    assert "read as one id" in said(result, "joined")
