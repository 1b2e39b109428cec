"""Runs as Python objects: whatever hides in them is found, or said."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import karat
from karat.errors import DataError

GOLD = {"q1": {"a": 1}, "q2": {"b": 1}}
LONG = {f"q{number}": [f"d{place}" for place in range(100)] for number in range(100)}


@pytest.mark.parametrize(
    "score", [float("nan"), float("inf"), None, "high", [1], 10**400, 1j]
)
@pytest.mark.parametrize("document", ["b", "nobody labelled this"])
@pytest.mark.parametrize("ties", ["trec", "input"])
def test_a_score_that_is_none_is_named_found_or_not(
    score: Any, document: str, ties: str
) -> None:
    run = {"q1": {"a": 1.0}, "q2": {"x": 2.0, document: score}}
    with pytest.raises(DataError, match=r"query 'q2': the score of document .* finite"):
        karat.evaluate(run, gold=GOLD, ties=ties)


def test_scores_of_queries_without_gold_are_not_looked_at() -> None:
    known = {"q1": {"a": 1.0, "x": 2.0}, "q2": {"b": 1.0}}
    run = {**known, "q3": {"c": float("nan")}}
    (odd, plain) = (karat.evaluate(r, gold=GOLD, metrics=["rr"]) for r in (run, known))
    assert odd.means == plain.means == {"rr": 0.75}
    assert [str(notice) for notice in odd.warnings if notice.kind == "extra"]


@pytest.mark.parametrize(
    "grade", [float("nan"), float("-inf"), None, "1x", [1], 10**400]
)
def test_a_grade_that_is_none_is_named(grade: Any) -> None:
    gold = {"q1": {"a": 1}, "q2": {"b": grade}}
    with pytest.raises(DataError, match=r"query 'q2': the grade of document 'b' must"):
        karat.evaluate({"q1": ["a"]}, gold=gold)


@pytest.mark.parametrize("duplicates", ["first", "collapse", "keep", "error"])
@pytest.mark.parametrize("thing", [["b"], {"id": "b"}, {"b"}])
def test_a_thing_among_many_ids_is_named(thing: Any, duplicates: str) -> None:
    run = {**LONG, "q2": ["x", thing, "y"]}
    with pytest.raises(DataError, match=r"query 'q2': document id must be a string"):
        karat.evaluate(run, gold=GOLD, duplicates=duplicates)


def test_ids_and_scores_of_numpy_are_like_any_other() -> None:
    ids = np.array(["x", "a"])
    scores = np.array([2, 1], np.float32)
    for ranking in (ids, [*ids], dict(zip(ids, scores, strict=True))):
        result = karat.evaluate({"q1": ranking}, gold=GOLD, metrics=["rr"])
        assert result.per_query[0]["rr"] == 0.5
        assert [notice.kind for notice in result.warnings] == ["missing"]
    exact = {"a": Decimal("1.5"), "x": Decimal(2)}
    assert karat.evaluate({"q1": exact}, gold=GOLD, metrics=["rr"]).means["rr"] == 0.25


def test_a_ranking_without_documents_scores_0_and_is_told() -> None:
    empties: list[Any] = [[], {}]
    for empty in empties:
        result = karat.evaluate({"q1": empty, "q2": empty}, gold=GOLD, metrics=["rr"])
        assert result.means == {"rr": 0.0}
        (notice,) = result.warnings
        assert (
            str(notice) == "2 queries for which nothing was retrieved (such as q1, q2)"
        )


def test_a_giant_id_makes_no_giant_sentence() -> None:
    run = {"q" * 10**6: {"d" * 10**6: float("nan")}}
    with pytest.raises(DataError) as caught:
        karat.evaluate(run, gold={"q" * 10**6: ["d" * 10**6]})
    assert len(str(caught.value)) < 300
