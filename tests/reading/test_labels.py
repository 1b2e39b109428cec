"""Labels: what a report saves, merged into gold of any kind."""

import json
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.extend import FormatError

GOLD = {"q1": {"a": 1, "b": 0}, "q2": {"c": 2}}


def signed(*labels: dict[str, Any], who: str = "Ann Lee") -> list[dict[str, Any]]:
    return [{"who": who, "when": "2026-11-15T10:00:00Z", **label} for label in labels]


def test_labels_are_added_changed_or_as_before() -> None:
    labels = signed(
        {"query": "q1", "document": "z", "grade": 3},
        {"query": "q1", "document": "b", "grade": 2},
        {"query": "q2", "document": "c", "grade": 2},
    )
    done = karat.apply_labels(labels, GOLD)
    assert done.gold.documents == {"q1": {"a": 1, "b": 2, "z": 3}, "q2": {"c": 2}}
    ann = "human:Ann_Lee@2026-11-15"
    assert done.gold.sources == {"q1": {"z": ann, "b": ann}}
    assert done.changed == (("q1", "b", 0.0, 2.0),)
    assert str(done) == "1 label added; 1 changed, 1 unchanged"
    assert GOLD["q1"] == {"a": 1, "b": 0}


def test_a_text_becomes_a_passage_where_gold_holds_passages() -> None:
    gold = karat.read_gold([{"id": "q1", "passages": ["Rye grows here."]}])
    label = {"query": "q1", "document": "d7", "text": "So does wheat.", "grade": 1}
    done = karat.apply_labels(signed(label), gold)
    assert [(p.text, p.grade, p.source) for p in done.gold.passages["q1"]] == [
        ("Rye grows here.", 1.0, "human"),
        ("So does wheat.", 1.0, "human:Ann_Lee@2026-11-15"),
    ]
    assert done.gold.kinds() == ("passages",)
    del label["text"]
    with pytest.raises(FormatError, match="has no text, and gold holds passages"):
        karat.apply_labels(signed(label), gold)


def test_gold_that_changed_since_is_told() -> None:
    gold = karat.read_gold(GOLD)
    label = {"query": "q1", "document": "z", "grade": 1}
    same = {**label, "gold_fingerprint": gold.fingerprint("q1")}
    assert karat.apply_labels(signed(same), gold).outdated == ()
    other = {**label, "gold_fingerprint": "0123456789abcdef"}
    done = karat.apply_labels(signed(other), gold)
    assert "the gold of 1 query has changed since (q1)" in str(done)


def test_labels_that_cannot_tell_leave_gold_alone() -> None:
    labels = signed(
        {"query": "q1", "document": "a", "grade": "can't tell", "why": "a list"},
        {"query": "q1", "document": "z", "grade": 2},
        {"query": "q2", "document": "z", "grade": None},
    )
    done = karat.apply_labels(labels, GOLD)
    assert done.gold.documents == {"q1": {"a": 1, "b": 0, "z": 2}, "q2": {"c": 2}}
    assert str(done) == "1 label added; 0 changed, 0 unchanged; 1 can't tell"


def test_lines_and_a_sheet_of_the_same_labels_make_the_same_gold(
    tmp_path: Path,
) -> None:
    labels = signed(
        {"query": "q1", "document": "z", "grade": 3},
        {"query": "q1", "document": "b", "grade": 2, "why": "names it"},
        {"query": "q2", "document": "c", "grade": "can't tell"},
    )
    lines, sheet = tmp_path / "labels.jsonl", tmp_path / "labels.csv"
    lines.write_text("".join(json.dumps(label) + "\n" for label in labels), "utf-8")
    rows = (f"{r['query']},{r['document']},,{r['grade']},Ann Lee" for r in labels)
    days = (f"{row},2026-11-15" for row in rows)
    sheet.write_text("\n".join(["query,document,text,grade,who,when", *days]), "utf-8")
    outcomes = [karat.apply_labels(source, GOLD) for source in (labels, lines, sheet)]
    first = outcomes[0]
    for other in outcomes[1:]:
        assert other.gold.documents == first.gold.documents
        assert other.gold.sources == first.gold.sources
        assert (str(other), other.undecided) == (str(first), 1)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ({"kind": "label patch", "labels": []}, "label 1: a label needs a query"),
        (["q1"], "label 1: a label needs a query"),
        (signed({"query": "q9", "document": "a", "grade": 1}), "labels query 'q9'"),
        (signed({"query": "q1", "grade": 1}), "label 1: a label needs a query, a doc"),
        (
            signed({"query": "q1", "document": "a", "grade": True}),
            "label 1: grade must",
        ),
        (signed({"query": "q1", "document": "a", "grade": 1e9}), "label 1: grade must"),
        (signed({"query": "q1", "document": "a", "grade": "x"}), "label 1: grade must"),
    ],
)
def test_what_is_no_label_is_refused(labels: Any, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        karat.apply_labels(labels, GOLD)


def test_a_wrong_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text('{"query": "q1", "document": "a", "grade": 1}\n{"query": "q1"}\n')
    assert karat.apply_labels(file, GOLD).same == 1
    file.write_text(
        '{"query": "q1", "document": "a", "grade": 1}\n{"query": 2, "grade": 1}\n'
    )
    with pytest.raises(FormatError, match=r"labels.jsonl:2: a label needs"):
        karat.apply_labels(file, GOLD)
