"""Label patches: what a report saves, merged into gold of any kind."""

from typing import Any

import pytest

import karat
from karat.errors import FormatError

GOLD = {"q1": {"a": 1, "b": 0}, "q2": {"c": 2}}


def patch_of(*labels: dict[str, Any], who: str = "Ann Lee") -> dict[str, Any]:
    return {
        "kind": "label patch",
        "schema_version": 1,
        "labelled_by": who,
        "labels": [{"at": "2026-11-15T10:00:00Z", **label} for label in labels],
    }


def test_labels_are_added_changed_or_as_before() -> None:
    patch = patch_of(
        {"query": "q1", "document": "z", "grade": 3},
        {"query": "q1", "document": "b", "grade": 2},
        {"query": "q2", "document": "c", "grade": 2},
    )
    done = karat.apply_labels(patch, GOLD)
    assert done.gold.documents == {"q1": {"a": 1, "b": 2, "z": 3}, "q2": {"c": 2}}
    signed = "human:Ann_Lee@2026-11-15"
    assert done.gold.sources == {"q1": {"z": signed, "b": signed}}
    assert done.changed == (("q1", "b", 0.0, 2.0),)
    assert str(done) == "1 label added; 1 changed, 1 as before"
    assert GOLD["q1"] == {"a": 1, "b": 0}


def test_a_text_becomes_a_passage_where_gold_holds_passages() -> None:
    gold = karat.read_gold([{"id": "q1", "passages": ["Rye grows here."]}])
    label = {"query": "q1", "document": "d7", "text": "So does wheat.", "grade": 1}
    done = karat.apply_labels(patch_of(label), gold)
    assert [(p.text, p.grade, p.source) for p in done.gold.passages["q1"]] == [
        ("Rye grows here.", 1.0, "human"),
        ("So does wheat.", 1.0, "human:Ann_Lee@2026-11-15"),
    ]
    assert done.gold.kinds() == ("passages",)
    del label["text"]
    with pytest.raises(FormatError, match="has no text, and gold holds passages"):
        karat.apply_labels(patch_of(label), gold)


def test_gold_that_changed_since_is_told() -> None:
    gold = karat.read_gold(GOLD)
    label = {"query": "q1", "document": "z", "grade": 1}
    same = {**label, "gold_fingerprint": gold.fingerprint("q1")}
    assert karat.apply_labels(patch_of(same), gold).outdated == ()
    other = {**label, "gold_fingerprint": "0123456789abcdef"}
    done = karat.apply_labels(patch_of(other), gold)
    assert "the gold of 1 query has changed since (q1)" in str(done)


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        ([], "is not a label patch"),
        ({"kind": "label patch", "labels": []}, "of another karat"),
        (patch_of({"query": "q9", "document": "a", "grade": 1}), "labels query 'q9'"),
        (patch_of({"query": "q1", "grade": 1}), r"labels\[0\] must have a query"),
        (patch_of({"query": "q1", "document": "a", "grade": True}), r"labels\[0\]"),
        (patch_of({"query": "q1", "document": "a", "grade": 1e9}), r"labels\[0\]"),
    ],
)
def test_what_is_no_patch_is_refused(patch: Any, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        karat.apply_labels(patch, GOLD)
