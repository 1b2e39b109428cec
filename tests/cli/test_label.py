"""`karat label`: pages and plans without any gold, and labels that come back."""

import csv
from pathlib import Path

import pytest

import karat as library
from tests.cli.conftest import Karat
from tests.reports.test_page import data_of, rows_of, texts_of

TEXTS = ("--queries", "queries.jsonl", "--corpus", "corpus.jsonl")


def shown(page: Path) -> list[tuple[str, str]]:
    """The (query, document) of a labelling page, in its order."""
    text = page.read_text("utf-8")
    texts = texts_of(text)
    return [
        (query, texts[number][0])
        for query, row in zip(data_of(text)["queries"], rows_of(text), strict=True)
        for number in row["systems"][0]["ranking"]
    ]


def test_a_page_is_made_without_any_label(karat: Karat, folder: Path) -> None:
    done = karat("label", "new", "dense.run", "keyword.run", *TEXTS, "-o", "l.html")
    assert done.code == 0
    page = folder / "l.html"
    data = data_of(page.read_text("utf-8"))
    assert (data["systems"], data["metrics"], data["blind"]) == (
        ["documents"],
        [],
        True,
    )
    assert data["questions"][0].startswith("How long until I get my money back")
    pairs = shown(page)
    assert f"karat: {len(pairs)} documents of 40 queries to label" in done.err
    # By name: nobody is told what a run found good.
    assert pairs == sorted(pairs)
    karat("pool", "dense.run", "keyword.run", "-k", "10", *TEXTS, "-o", "s.csv")
    with (folder / "s.csv").open(newline="") as stream:
        rows = [(row["query"], row["document"]) for row in csv.DictReader(stream)]
    assert rows == pairs


def test_texts_that_are_not_there_are_missed(karat: Karat) -> None:
    done = karat("label", "new", "dense.run", "-o", "l.html")
    assert done.code == 0
    assert "none of them has a text: add --corpus and --queries" in done.err


@pytest.mark.parametrize("pairs", [(), ("--pairs", "-k", "5")])
def test_people_label_what_was_drawn_in_its_order(
    karat: Karat, folder: Path, pairs: tuple[str, ...]
) -> None:
    files = ("gold.qrels", "dense.run", "keyword.run")
    done = karat(
        *("label", "plan", *files, "--budget", "120", "--seed", "3", *pairs, *TEXTS),
        *("-o", "todo.jsonl", "-o", "todo.csv", "-o", "todo.html"),
    )
    assert done.code == 0, done.err
    plan = library.LabelPlan.load("todo.jsonl")
    assert library.LabelPlan.load("todo.csv") == plan
    assert plan.pairs == bool(pairs)
    drawn = [(label.query, label.document) for label in plan.labels]
    assert shown(folder / "todo.html") == drawn
    assert karat("label", "new", "todo.jsonl", *TEXTS, "-o", "new.html").code == 0
    assert shown(folder / "new.html") == drawn
    sheet = (folder / "todo.csv").read_text("utf-8")
    assert sheet.startswith("query,question,document,text,grade,probability,pool,drawn")
    assert plan.k == (5 if pairs else 0)
    both = karat("label", "new", "dense.run", "todo.jsonl", "-o", "both.html")
    assert (both.code, (folder / "both.html").exists()) == (2, False)
    assert "todo.jsonl is a plan, which says by itself what people label" in both.err
    with (folder / "todo.csv").open(newline="") as stream:
        rows = [*csv.DictReader(stream)]
    with (folder / "todo.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*rows[0]])
        writer.writeheader()
        writer.writerows({**row, "grade": "1"} for row in rows)
    assert karat("label", "apply", "todo.csv", "-o", "people.qrels").code == 0
    labels = library.read_gold("people.qrels").documents
    assert {(q, d) for q, row in labels.items() for d in row} == {*drawn}
    # Labels that somebody gave are not drawn over.
    again = karat("label", "plan", *files, "--budget", "120", "-o", "todo.csv")
    assert again.code == 2
    assert f"todo.csv has {len(drawn)} grades that would be lost" in again.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("new", "dense.run", "-o", "l.pdf"), "one of .csv, .html"),
        (("new", "dense.run"), "missing option '-o'"),
        (
            ("plan", "gold.qrels", "--budget", "9", "-o", "t.jsonl"),
            "karat: label plan: --budget must be at least 76",
        ),
        (("plan", "gold.qrels", "-o", "t.jsonl"), "missing option '--budget'"),
        (
            ("plan", "gold.qrels", "--budget", "20", "-o", "t.jsonl"),
            "budget must be at least 76, which is 10 queries, got 20",
        ),
        (
            ("plan", "gold.qrels", "--budget", "90", "--pairs", "-o", "t.jsonl"),
            "pairs are drawn from what runs retrieved",
        ),
        (("plan", "dense.run", "--budget", "90", "-o", "t.jsonl"), "is a TREC run"),
        (("aply", "l.jsonl"), "no such command 'aply'"),
    ],
)
def test_a_mistake_is_a_sentence(
    karat: Karat, arguments: tuple[str, ...], sentence: str
) -> None:
    done = karat("label", *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err


def test_a_budget_may_be_of_any_size(karat: Karat) -> None:
    plan = ("label", "plan", "gold.qrels", "dense.run", "-o", "t.jsonl")
    assert karat(*plan, "--budget", "9" * 400).code == 0
    assert karat(*plan, "--budget", "9" * 400, "--pairs").code == 0
