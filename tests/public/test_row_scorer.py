"""One row at a time: the same scores as an evaluation of all rows."""

import pickle  # noqa: TID251
import random
from math import isnan
from typing import Any

import pytest

import karat
from karat.extend import FormatError, UnknownNameError, UsageError

METRICS = ["recall@5", "ndcg@10", "rr", "precision@3", "ap(of=capped)@5"]


def rows() -> tuple[dict[str, Any], dict[str, Any]]:
    chance = random.Random(7)
    names = [f"d{n}" for n in range(12)]
    run: dict[str, Any] = {}
    gold: dict[str, Any] = {}
    for number in range(60):
        query = f"q{number}"
        chosen = chance.sample(names, chance.randint(0, 10))
        scored = number % 2
        run[query] = {d: chance.random() for d in chosen} if scored else chosen
        grades = {d: chance.randint(0, 3) for d in chance.sample(names, 4)}
        gold[query] = grades
    return run, gold


def test_equals_an_evaluation_of_all_rows() -> None:
    run, gold = rows()
    score = pickle.loads(pickle.dumps(karat.row_scorer(METRICS)))
    for kind in (dict, list):
        some = {query: row for query, row in run.items() if type(row) is kind}
        labels = {query: gold[query] for query in some}
        result = karat.evaluate(some, gold=labels, metrics=METRICS, match="id")
        for query, row in some.items():
            scores = score(row, gold[query])
            assert [*scores] == METRICS
            for metric, value in scores.items():
                whole = result[metric][query]
                assert isnan(whole) if value is None else value == whole


@pytest.mark.parametrize("expected", [["b"], ("b",), {"b"}, {"b": 1}, "b", ["b", "b"]])
@pytest.mark.parametrize("retrieved", [["a", "b"], [{"id": "a"}, {"id": "b"}]])
def test_takes_what_rows_hold(retrieved: Any, expected: Any) -> None:
    assert karat.row_scorer("rr")(retrieved, expected) == {"rr": 0.5}


def test_undefined_is_none_and_nothing_found_is_zero() -> None:
    score = karat.row_scorer(["recall@5"])
    assert score(["a"], []) == {"recall@5": None}
    assert score(["a"], ["x"]) == {"recall@5": 0.0}
    assert score([], ["x"]) == {"recall@5": 0.0}
    assert karat.row_scorer("recall", undefined="zero")(["a"], []) == {"recall": 0.0}


def test_the_letter_is_the_callers_k() -> None:
    assert karat.row_scorer("recall@k", k=1)(["a", "b"], ["b"]) == {"recall@k": 0.0}
    assert karat.row_scorer("recall@k")(["a", "b"], ["b"]) == {"recall@k": 1.0}


def test_texts_by_a_matcher() -> None:
    score = karat.row_scorer("hit@2", match="exact")
    assert score(["Rye is a grain."], ["Rye is a grain."]) == {"hit@2": 1.0}
    assert score(["Rye is a grain."], ["Oats."]) == {"hit@2": 0.0}


def test_mistakes_are_told_where_the_scorer_is_made() -> None:
    with pytest.raises(UsageError, match="did you mean 'recall'"):
        karat.row_scorer("recal@5")
    with pytest.raises(UnknownNameError, match="duplicate"):
        karat.row_scorer("rr", duplicate="keep")
    with pytest.raises(UsageError, match="changes nothing"):
        karat.row_scorer("rr", k=3)
    with pytest.raises(FormatError, match="must have a list of documents"):
        karat.row_scorer("rr")(None, ["a"])
