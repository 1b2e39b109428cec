"""`karat pool`: what people should label, the sheet for it, and gold made of that."""

import csv
from pathlib import Path

import pytest

import karat as library
from karat.extend import FormatError, ParameterError
from karat.fusion.fuse import choose_pool
from tests.cli.conftest import Karat

RUNS = [
    library.read_run(run)
    for run in (
        {"q1": ["a", "b", "c", "d"], "q2": ["x", "y"]},
        {"q1": ["e", "b", "c", "a"], "q2": ["y", "z"]},
    )
]


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return [*csv.DictReader(stream)]


def test_a_pool_has_the_top_of_every_run_once() -> None:
    pool = choose_pool(RUNS, k=2)
    assert {query: [*row] for query, row in pool.items()} == {
        "q1": ["a", "e", "b"],
        "q2": ["x", "y", "z"],
    }
    assert [*choose_pool(RUNS, k=4)["q1"]] == ["a", "e", "b", "c", "d"]
    assert [*choose_pool(RUNS, k=4, by="rrf")["q1"]] == ["b", "a", "c", "e", "d"]


def test_a_budget_is_spent_evenly() -> None:
    for budget, sizes in ((1, [1]), (2, [1, 1]), (5, [3, 2]), (99, [5, 3])):
        pool = choose_pool(RUNS, budget=budget)
        assert [len(row) for row in pool.values()] == sizes
    with pytest.raises(ParameterError, match="budget must be an integer >= 1, got 0"):
        choose_pool(RUNS, budget=0)


def test_what_has_a_label_is_left_out() -> None:
    pool = choose_pool(RUNS, k=1, labelled={"q1": {"a": 1}, "q2": {"x": 0, "y": 1}})
    assert pool == {"q1": {"e": None}}


def test_a_sheet_is_labelled_and_becomes_gold(karat: Karat, folder: Path) -> None:
    done = karat(
        *("pool", "keyword.run", "dense.run", "-k", "3", "--budget", "60"),
        *("--queries", "queries.jsonl", "--corpus", "corpus.jsonl"),
        *("-o", "sheet.csv", "-o", "pool.qrels"),
    )
    assert done.code == 0
    assert "karat: 60 documents of 40 queries to label" in done.err
    rows = read_rows(folder / "sheet.csv")
    assert len(rows) == 60
    assert all(row["text"] and row["question"] and not row["grade"] for row in rows)
    names = [(row["query"], row["document"]) for row in rows]
    assert names == sorted(names)
    pool = library.read_gold("pool.qrels").documents
    assert {grade for row in pool.values() for grade in row.values()} == {-1.0}
    assert {(q, d) for q, row in pool.items() for d in row} == {*names}
    for place, row in enumerate(rows[:10]):
        row["grade"] = str(place % 3)
    with (folder / "sheet.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    made = karat("label", "apply", "sheet.csv", "-o", "new.qrels")
    assert made.code == 0
    assert "10 labels added" in made.err
    gold = library.read_gold("new.qrels").documents
    assert [grade for row in gold.values() for grade in row.values()] == [
        *(float(place % 3) for place in range(10))
    ]
    again = karat("pool", "dense.run", "-k", "3", "-g", "new.qrels", "-o", "rest.csv")
    rest = read_rows(folder / "rest.csv")
    assert again.code == 0
    assert not {(r["query"], r["document"]) for r in rest} & {*names[:10]}


def test_documents_without_ids_are_known_by_their_texts(
    karat: Karat, folder: Path
) -> None:
    (folder / "texts.jsonl").write_text(
        '{"id": "=q", "retrieved_contexts": ["Rye is a grain.", "=1+1 is two."]}\n'
    )
    done = karat("pool", "texts.jsonl", "-o", "sheet.csv")
    assert done.code == 0
    text = (folder / "sheet.csv").read_text()
    assert "'=1+1 is two." in text
    filled = text.replace('""', "").replace(",\n", ",2\n").replace(",\r\n", ",2\r\n")
    (folder / "sheet.csv").write_text(filled)
    gold = library.apply_labels("sheet.csv").gold
    assert [item.text for item in gold.passages["=q"]] == [
        "=1+1 is two.",
        "Rye is a grain.",
    ]
    wrong = karat("pool", "texts.jsonl", "-o", "pool.qrels")
    assert wrong.code == 2
    assert "documents without ids go into a sheet only" in wrong.err


def test_a_sheet_that_cannot_be_read_is_said(folder: Path) -> None:
    (folder / "odd.csv").write_text("query,document,text,grade\nq,d,t,good\n")
    with pytest.raises(
        FormatError, match=r"odd.csv:2: grade must be a number, got str 'go"
    ):
        library.apply_labels("odd.csv")
    (folder / "odd.csv").write_text("query,document,text,grade\nq,d,t,\n")
    with pytest.raises(FormatError, match="has no row with a grade yet"):
        library.apply_labels("odd.csv")
    (folder / "odd.csv").write_text("query,grade\n")
    with pytest.raises(FormatError, match="has no column document, text"):
        library.apply_labels("odd.csv")


def test_a_pool_goes_somewhere(karat: Karat) -> None:
    done = karat("pool", "dense.run")
    assert (done.code, done.out) == (2, "")
    assert "name a sheet, as in -o sheet.csv" in done.err


def test_a_sheet_with_grades_is_not_overwritten(karat: Karat, folder: Path) -> None:
    assert karat("pool", "dense.run", "-o", "sheet.csv").code == 0
    assert karat("pool", "dense.run", "-o", "sheet.csv").code == 0
    sheet = folder / "sheet.csv"
    head, row, *rest = sheet.read_text("utf-8").splitlines()
    sheet.write_text("\n".join([head, row + "2", *rest]), "utf-8")
    done = karat("pool", "dense.run", "-o", "sheet.csv")
    assert done.code == 2
    assert "has 1 grade that would be lost; karat label apply sheet.csv" in done.err
