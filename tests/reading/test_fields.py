"""Field names: every alias means one thing, and company or role decides the rest."""

from collections import Counter
from pathlib import Path

import pytest

from karat.reading.meaning.aliases import (
    ALIASES,
    FIELDS,
    GOLD,
    RETRIEVED,
    infer,
    is_row,
    known_as,
)
from karat.reading.readers import read


def test_every_alias_means_one_field() -> None:
    names = [
        alias.replace("_", "") for names in ALIASES.values() for alias in names.split()
    ]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_every_field_is_described_and_known_by_its_own_name() -> None:
    assert ALIASES.keys() <= FIELDS.keys()
    assert FIELDS.keys() >= RETRIEVED | GOLD
    own = {name: known_as(name) for name in FIELDS if name not in {"expected", "gold"}}
    assert own == {name: name for name in own}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("id input expected_output actual_output", "id query expected output"),
        ("hypothesis reference", "retrieved_texts reference"),
        (
            "user_input retrieved_contexts reference_contexts response",
            "query retrieved_texts passages response",
        ),
        ("retrieved_context_ids reference_context_ids", "retrieved_ids relevant"),
        ("gold_docs retrieved_docs", "gold retrieved"),
        (
            "question contexts answer ground_truth",
            "query retrieved_texts response ground_truth",
        ),
        ("question contexts answer", "query retrieved_texts response"),
        ("query-id corpus-id score", "id document score"),
        ("query_id id score", "id document score"),
        ("query id rank", "id document rank"),
        ("query doc score", "id document score"),
        ("Q_ID DocID Rank", "id document rank"),
    ],
)
def test_names_are_told_apart(names: str, expected: str) -> None:
    found = infer(names.split())
    assert {theirs: ours for ours, theirs in found.items()} == dict(
        zip(names.split(), expected.split(), strict=True)
    )


def test_the_role_decides_names_that_say_nothing() -> None:
    assert infer(["qid", "docs"], "run") == {"id": "qid", "retrieved": "docs"}
    assert infer(["qid", "docs"], "gold") == {"id": "qid", "gold": "docs"}
    assert infer(["qid", "passages"], "run") == {
        "id": "qid",
        "retrieved_texts": "passages",
    }
    assert infer(["qid", "passages"], "gold") == {"id": "qid", "passages": "passages"}


def test_what_the_user_says_leaves_no_rival() -> None:
    found = infer(
        ["qid", "docs", "contexts", "gold_docs", "x"], None, {"retrieved": "x"}
    )
    assert found == {"id": "qid", "retrieved": "x", "gold": "gold_docs"}
    found = infer(["qid", "gold_docs", "answers", "x"], None, {"relevant": "x"})
    assert found == {"id": "qid", "relevant": "x", "answers": "answers"}


def test_rows_are_told_from_samples() -> None:
    assert is_row(infer(["qid", "docid", "score"]))
    assert not is_row(infer(["qid", "docid", "retrieved"]))
    assert not is_row(infer(["qid", "docs"]))


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("path", "mapping"),
    [
        ("musique100/queries.jsonl", "id query relevant response"),
        (
            "ragchecker/checking_inputs.json",
            "id query retrieved_texts reference response",
        ),
        ("pubmedqa/pqal_first300.json", "id query retrieved_texts"),
        ("chunking_eval/questions_df.csv", "query passages"),
    ],
)
def test_published_data_sets_are_understood(
    path: str, mapping: str, shared_data: Path
) -> None:
    loaded = read(shared_data / path)
    assert set(loaded.mapping) == set(mapping.split())
