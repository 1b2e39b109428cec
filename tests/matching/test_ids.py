"""Matching by ids: what is judged, subtopics, and documents that are their query."""

from typing import Any

import pytest

import karat
from karat import Gold
from karat.extend import DataError, Item, MismatchError


def means(run: Any, gold: Any, metrics: str, **options: Any) -> dict[str, float]:
    return karat.evaluate(run, gold, metrics=metrics, **options).means


@pytest.mark.parametrize(
    ("grades", "told"),
    [((1, 2), True), ((0.5, 0.5), True), ((1, 0), False), ((1, -1), False)],
)
def test_judged_only_says_where_nothing_is_judged_non_relevant(
    grades: tuple[float, float], *, told: bool
) -> None:
    gold = {"q": {"a": grades[0]}, "r": {"a": grades[1]}}
    run = {"q": ["x", "a"], "r": ["x", "a"]}
    result = karat.evaluate(run, gold, metrics="rr", judged_only=True)
    what = "queries have no document judged non-relevant"
    assert [what in str(one) for one in result.warnings] == [True] * told


def test_judged_documents_that_are_not_relevant_stay_in_the_ranking() -> None:
    gold = {"q": {"a": 1, "b": 0, "c": -1}}
    run = {"q": ["x", "c", "b", "a"]}
    assert means(run, gold, "rr") == {"rr": 0.25}
    # A negative grade marks what was pooled, but not judged.
    assert means(run, gold, "rr", judged_only=True) == {"rr": 0.5}


def test_subtopics_are_those_of_the_query() -> None:
    """Each query is scored as it would be alone, whatever stands before it."""
    topics = {
        "q": {"a": {"t1": 1.0, "t2": 1.0}, "b": {"t2": 1.0}},
        "r": {"d": {"t2": 1.0}, "c": {"t9": 1.0}, "b": {"t1": 1.0}},
        "s": {"a": {"t1": 1.0}, "z": {"t5": 1.0}},
    }
    labels = {
        "q": {"a": 1.0, "b": 1.0, "x": 0.0},
        "r": {"b": 1.0, "c": 1.0, "d": 1.0},
        "s": {"a": 1.0},
    }
    run = {"q": ["b", "x", "a"], "r": ["c", "d", "b"], "s": ["y", "a"]}
    metrics = "st_recall@1,st_recall@2,alpha_ndcg@3"
    every = karat.evaluate(run, Gold(labels, subtopics=topics), metrics=metrics)
    for place, query in enumerate(run):
        alone = Gold({query: labels[query]}, subtopics={query: topics[query]})
        one = means({query: run[query]}, alone, metrics)
        assert {m: every[m].scores[place] for m in one} == pytest.approx(one)
    recalls = [every[f"st_recall@{k}"].scores.tolist() for k in (1, 2)]
    assert recalls == [[1 / 2, 1 / 3, 0.0], [1 / 2, 2 / 3, 1.0]]


def test_a_document_that_is_its_query_can_be_left_out() -> None:
    run = {"q": ["x", "q", "a"], "r": ["q", "a"], "s": ["a", "s"]}
    gold = {query: ["a"] for query in run}
    found = karat.evaluate(run, gold, metrics="rr,precision@2", identical="ignore")
    assert found["rr"].scores.tolist() == [1 / 2, 1 / 2, 1]
    plain = karat.evaluate(run, gold, metrics="rr")
    assert plain["rr"].scores.tolist() == [1 / 3, 1 / 2, 1]


def test_ids_that_do_not_occur_are_shown_three_of_them() -> None:
    run = {f"q{n}": [name] for n, name in enumerate("dcba")}
    gold = {f"q{n}": [name] for n, name in enumerate("7654")}
    with pytest.raises(MismatchError) as error:
        karat.evaluate(run, gold)
    assert "the run has 'b', 'c', 'd', the gold '4', '5', '6'" in str(error.value)
    assert "re-chunked documents? match texts (match='chunk')" in str(error.value)
    assert means(run, gold, "rr", force=True) == {"rr": 0.0}


@pytest.mark.parametrize(
    ("run", "gold", "hint"),
    [
        ("doc_17", "Rye is a grain of the north.", "the gold holds texts"),
        ("Rye is a grain of the north.", "doc_17", "the run holds texts"),
        ("Oats are eaten by horses.", "Rye is a grain.", "re-chunked documents"),
    ],
)
def test_ids_on_one_side_and_texts_on_the_other_name_the_corpus(
    run: str, gold: str, hint: str
) -> None:
    with pytest.raises(DataError, match=hint):
        karat.evaluate({"q": {run: 1.0}}, {"q": {gold: 1}}, match="id")


def test_a_query_whose_gold_has_no_ids_is_undefined_by_ids() -> None:
    gold = Gold({"q": {"a": 1.0}}, answers={"p": (Item("1", "rye"),)}, order=("p", "q"))
    run = {"p": ["b"], "q": ["a"]}
    column = karat.evaluate(run, gold, metrics="recall", match="id")["recall"]
    assert (column.mean, column.n, column.undefined) == (1.0, 1, 1)
