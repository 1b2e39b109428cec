"""`karat agree`: how alike two runs are, without any gold."""

import csv
import json
import math
from pathlib import Path

import pytest

import karat as library
from karat.extend import MismatchError, ParameterError, Policies
from tests.cli.conftest import Karat
from tests.reports.test_page import data_of, texts_of

TEXTS = ("--queries", "queries.jsonl", "--corpus", "corpus.jsonl")


def test_alike_is_what_rbo_and_sets_say(folder: Path) -> None:
    del folder
    result = library.agree("keyword.run", "dense.run", k=5)
    rbo = library.rbo("keyword.run", "dense.run")
    assert {one.query: one.rbo for one in result.queries} == rbo
    assert [one.rbo for one in result.queries] == sorted(rbo.values())
    tops = [
        {
            query: {document.id for document in row[:5]}
            for query, row in library.read_run(path).rankings(Policies())
        }
        for path in ("keyword.run", "dense.run")
    ]
    for one in result.queries:
        first, second = (top[one.query] for top in tops)
        assert {*one.apart} == first ^ second
        assert one.overlap == len(first & second) / max(len(first), len(second))


def test_a_run_is_like_itself_and_unlike_what_it_shares_nothing_with() -> None:
    run = {"q1": ["a", "b"], "q2": ["c"], "only": ["d"]}
    same = library.agree(run, {"q1": ["a", "b"], "q2": ["c"]})
    for one in same.queries:
        assert one.rbo == pytest.approx(1.0)
        assert (one.overlap, one.apart) == (1.0, ())
    assert same.unshared == 1
    assert len(same.tables()) == 1
    assert "1 query is in one run only" in str(same)
    other = library.agree(run, {"q1": ["x"], "q2": []})
    missing, apart = other.queries
    assert math.isnan(missing.rbo)
    assert (missing.apart, apart.apart) == (("c",), ("a", "b", "x"))
    assert (apart.rbo, apart.overlap) == (0.0, 0.0)
    with pytest.raises(MismatchError, match="no query in common"):
        library.agree(run, {"other": ["a"]})
    with pytest.raises(ParameterError, match="k must be an integer >= 1"):
        library.agree(run, run, k=0)


def test_the_command_shows_runs_side_by_side(karat: Karat, folder: Path) -> None:
    done = karat(
        *("agree", "keyword.run", "dense.run", *TEXTS, "--json"),
        *("-o", "a.html", "-o", "a.csv", "-o", "a.json"),
    )
    assert done.code == 0
    result = library.agree("keyword.run", "dense.run")
    assert json.loads(done.out) == result.to_dict()
    assert library.RunAgreement.load("a.json") == result
    page = (folder / "a.html").read_text("utf-8")
    data = data_of(page)
    assert data["systems"] == ["keyword.run", "dense.run"]
    assert data["queries"] == [one.query for one in result.queries]
    assert data["alike"] == [one.rbo for one in result.queries]
    assert data["questions"][0] != ""
    assert all(text for _, text in texts_of(page))
    with (folder / "a.csv").open(newline="") as stream:
        rows = [*csv.DictReader(stream)]
    pairs = [(one.query, name) for one in result.queries for name in one.apart]
    assert [(row["query"], row["document"]) for row in rows] == pairs
    assert all(row["text"] and row["question"] and not row["grade"] for row in rows)


def test_documents_without_ids_are_compared_by_their_texts(
    karat: Karat, folder: Path
) -> None:
    for name, texts in (("a", ["Rye.", "Oats."]), ("b", ["Rye.", "Wheat."])):
        sample = {"id": "q", "question": "Grain?", "retrieved_contexts": texts}
        (folder / f"{name}.jsonl").write_text(json.dumps(sample))
    done = karat("agree", "a.jsonl", "b.jsonl", "-o", "apart.csv")
    assert done.code == 0
    with (folder / "apart.csv").open(newline="") as stream:
        rows = [*csv.DictReader(stream)]
    assert [(row["document"], row["text"]) for row in rows] == [
        ("", "Oats."),
        ("", "Wheat."),
    ]
    assert rows[0]["question"] == "Grain?"


def test_mistakes_are_sentences(karat: Karat) -> None:
    for arguments, sentence in (
        (("dense.run",), "missing argument 'OTHER'"),
        (("dense.run", "gold.qrels"), "holds TREC qrels, but a run was asked for"),
        (("dense.run", "keyword.run", "-k", "0"), "0 is not in the range x>=1"),
        (("dense.run", "keyword.run", "-o", "a.pdf"), "one of .html, .csv, .json"),
    ):
        done = karat("agree", *arguments)
        assert (done.code, done.out) == (2, "")
        assert sentence in done.err
