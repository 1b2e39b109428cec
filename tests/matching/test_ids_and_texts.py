"""Ids on one side and texts on the other: an error names the corpus, which joins them.

Never zeros: nothing could have matched.
"""

from typing import Any

import pytest

import karat
from karat.extend import DataError

TEXTS = {
    "doc_1": "Rye is a grain grown in the north of Europe.",
    "doc_2": "Oats are eaten by horses and by people.",
    "doc_3": "Barley is what most beer is made of.",
}
IDS = [*TEXTS]


def runs(documents: list[str], field: str) -> dict[str, Any]:
    """One run in several forms; `field` says what a document is in records."""
    queries = ("q1", "q2")
    scored = {document: 3.0 - place for place, document in enumerate(documents)}
    return {
        "lists": dict.fromkeys(queries, documents),
        "scores": dict.fromkeys(queries, scored),
        "named": [{"id": q, f"retrieved_{field}s": documents} for q in queries],
        "records": [
            {"id": q, "retrieved": [{field: d} for d in documents]} for q in queries
        ],
    }


def golds(documents: list[str], field: str) -> dict[str, Any]:
    name = {"id": "relevant_ids", "text": "passages"}[field]
    queries = ("q1", "q2")
    return {
        "lists": dict.fromkeys(queries, documents[:1]),
        "records": [{"id": q, name: documents[:1]} for q in queries],
    }


CASES = [
    (run, gold, other)
    for mine, his in (("id", "text"), ("text", "id"))
    for run in runs(IDS if mine == "id" else [*TEXTS.values()], mine).values()
    for gold in golds(IDS if his == "id" else [*TEXTS.values()], his).values()
    for other in ("auto", "chunk", "span")
]


@pytest.mark.parametrize(("run", "gold", "match"), CASES)
def test_the_corpus_that_is_named_joins_them(run: Any, gold: Any, match: str) -> None:
    """It is an error or, with a matcher of texts and gold of ids, a notice."""
    options = {"gold": gold, "match": match, "metrics": ["recall@1", "recall@3"]}
    try:
        said = str(karat.evaluate(run, **options).warnings)
    except DataError as error:
        said = str(error)
    assert "corpus=" in said
    assert "--corpus" in said
    joined = karat.evaluate(run, corpus=TEXTS, **options)
    assert joined.means == {"recall@1": 1.0, "recall@3": 1.0}


def test_answers_are_not_looked_for_in_ids() -> None:
    gold = [{"id": "q", "answers": ["north of Europe"]}]
    with pytest.raises(DataError, match="--corpus"):
        karat.evaluate({"q": IDS}, gold, metrics=["containment@3"])
    found = karat.evaluate({"q": IDS}, gold, metrics=["containment@3"], corpus=TEXTS)
    assert found.means == {"containment@3": 1.0}


def test_grades_of_texts_name_the_corpus_too() -> None:
    gold = {"q": {TEXTS["doc_1"]: 1}}
    with pytest.raises(DataError, match="--corpus"):
        karat.evaluate({"q": IDS}, gold)
    found = karat.evaluate({"q": IDS}, gold, metrics="rr", corpus=TEXTS)
    assert found.means == {"rr": 1.0}


def test_words_that_are_not_found_are_no_ids() -> None:
    run = {"q": [*TEXTS.values()]}
    gold = {"q": ["Spelt"]}
    result = karat.evaluate(run, gold, match="chunk", metrics="hit@3")
    assert result.means == {"hit@3": 0.0}


def test_grades_and_missing_texts_survive_the_corpus() -> None:
    """Gold of three documents, of which the corpus has two."""
    run = {"q": [TEXTS["doc_2"], TEXTS["doc_1"]]}
    gold = {"q": {"doc_1": 2, "doc_2": 1, "doc_9": 1}}
    result = karat.evaluate(run, gold, corpus=TEXTS, metrics=["ndcg@2"])
    # Gains 1, 2 against 2, 1.
    assert result.means["ndcg@2"] == pytest.approx(
        (1 + 2 / 1.585) / (2 + 1 / 1.585), 1e-3
    )
    assert any(notice.kind == "corpus" for notice in result.warnings)
