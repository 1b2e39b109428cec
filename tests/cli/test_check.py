"""`karat label questions.jsonl`: questions that people keep, fix or drop."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import karat as library
from karat.extend import Settings
from tests.cli.conftest import Karat
from tests.generating.scripted import Scripted, World
from tests.reports.test_page import data_of

APPLY = ("label", "apply", "questions.jsonl", "decisions.jsonl", "-o", "kept.jsonl")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifty questions in a file; thirty of them were drawn."""
    path = tmp_path_factory.mktemp("made") / "questions.jsonl"
    world = World(60, {})
    model, settings = Scripted(world), Settings(journal=None)
    library.generate(world.corpus, 50, model=model, hops=[1], settings=settings).save(
        path
    )
    return path


@pytest.fixture
def questions(made: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """The questions by id, and their file in the current folder."""
    shutil.copy(made, folder)
    return records(made)


def records(path: Path) -> dict[str, dict[str, Any]]:
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return {row["id"]: row for row in rows}


def decide(path: Path, *decisions: dict[str, Any]) -> None:
    same = {"who": "Ann Lee", "when": "2026-11-16T09:00:00Z"}
    lines = [json.dumps({**same, **decision}) for decision in decisions]
    path.write_text("\n".join(lines), "utf-8")


def drawn(questions: dict[str, dict[str, Any]]) -> list[str]:
    return [q for q, row in questions.items() if "checked" in row["metadata"]]


def checked(gold: str, query: str) -> list[str]:
    result = library.evaluate({query: ["d1"]}, gold=gold, metrics=["mrr"])
    return [str(one) for one in result.warnings if one.kind == "checked"]


def test_those_drawn_come_first_and_in_random_order(
    karat: Karat, folder: Path, questions: dict[str, dict[str, Any]]
) -> None:
    done = karat("label", "questions.jsonl", "-o", "check.html")
    assert (done.code, done.out) == (0, "")
    assert "karat: wrote check.html" in done.err
    assert "karat: 50 questions, first 30 that were drawn at random" in done.err
    page = (folder / "check.html").read_text("utf-8")
    data = data_of(page)
    first, rest = data["queries"][:30], data["queries"][30:]
    assert "The first 30 questions were drawn at random" in page
    assert {*first} == {*drawn(questions)}
    assert first != drawn(questions)
    assert rest == [query for query in questions if query not in first]
    row = questions[first[0]]
    assert data["drafts"][0]["reference"] == row["reference"]
    assert data["drafts"][0]["checks"] == row["metadata"]["checks"]
    assert karat("label", "check", "questions.jsonl", "-o", "again.html").code == 0
    assert data_of((folder / "again.html").read_text("utf-8")) == data


def test_decisions_leave_a_file_that_says_how_many_were_good(
    karat: Karat, folder: Path, questions: dict[str, dict[str, Any]]
) -> None:
    sample = drawn(questions)
    others = [query for query in questions if query not in sample]
    fix, reworded, *kept = sample[1:]
    decide(
        folder / "decisions.jsonl",
        # Of two decisions the last one counts.
        {"query": sample[0], "decision": "keep"},
        {"query": sample[0], "decision": "drop", "why": "nobody asks that"},
        {"query": fix, "decision": "fix", "question": "Why?", "reference": "So."},
        {"query": reworded, "decision": "fix", "question": "Why not?"},
        *({"query": query, "decision": "keep"} for query in kept),
        # What was not drawn is dropped, and says nothing of the rest.
        *({"query": query, "decision": "drop"} for query in others[:10]),
    )
    done = karat(*APPLY)
    # Clopper and Pearson: 0.7347 .. 0.9789.
    share = "30 questions were checked by people: 90% are good, 95% interval 73% to 98%"
    assert done.code == 0
    assert "karat: 37 kept, 2 fixed, 11 dropped" in done.err
    assert f"karat: {share}" in done.err
    left = records(folder / "kept.jsonl")
    assert [*left] == [
        query for query in questions if query not in (sample[0], *others[:10])
    ]
    assert (left[fix]["query"], left[fix]["reference"]) == ("Why?", "So.")
    assert not {"checks", "claim_spans"} & left[fix]["metadata"].keys()
    assert "claims" not in left[fix]
    assert left[reworded]["claims"] == questions[reworded]["claims"]
    by = "human:Ann_Lee@2026-11-16"
    assert left[fix]["metadata"]["decision"] == {"is": "fix", "by": by}
    untouched = left[others[10]]
    assert untouched.pop("metadata") == {
        **questions[others[10]].pop("metadata"),
        "checked_good": 27,
        "checked_size": 30,
    }
    assert untouched == questions[others[10]]
    # Every result says it, also one on a part of the questions; dropped or not.
    assert checked("kept.jsonl", fix) == [share]
    # A second look changes what is left, not how good the questions were.
    decide(folder / "more.jsonl", {"query": kept[0], "decision": "drop"})
    more = ("label", "apply", "kept.jsonl", "more.jsonl", "-o", "less.jsonl")
    assert f"karat: {share}" in karat(*more).err
    assert [*records(folder / "less.jsonl")] == [q for q in left if q != kept[0]]
    assert (
        "38 questions, first 0 that" in karat("label", "less.jsonl", "-o", "c.html").err
    )


def test_whoever_stops_halfway_goes_on_later(
    karat: Karat, folder: Path, questions: dict[str, dict[str, Any]]
) -> None:
    sample = drawn(questions)
    drop = {"query": sample[0], "decision": "drop"}
    decide(folder / "decisions.jsonl", drop, {"query": sample[1], "decision": "keep"})
    assert "2 questions were checked by people: 50% are good" in karat(*APPLY).err
    done = karat("label", "kept.jsonl", "-o", "check.html")
    assert "49 questions, first 28 that were drawn at random" in done.err
    decide(
        folder / "more.jsonl", *({"query": q, "decision": "keep"} for q in sample[2:])
    )
    more = ("label", "apply", "kept.jsonl", "more.jsonl", "-o", "all.jsonl")
    assert "30 questions were checked by people: 97% are good" in karat(*more).err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("gold.qrels", "-o", "c.html"),
            "gold.qrels: is no file of generated questions",
        ),
        (("dense.run", "-o", "c.html"), "labelled with karat label new RUN"),
        (
            ("queries.jsonl", "-o", "c.html"),
            "queries.jsonl: is no file of generated questions; karat generate writes",
        ),
        (("question.jsonl", "-o", "c.html"), "did you mean 'questions.jsonl'?"),
        (
            ("questions.jsonl", "-o", "c.csv"),
            "-o c.csv: the extension chooses the format, one of .html",
        ),
        (("questions.jsonl",), "missing option '-o'"),
        (("questions.jsonl", "-o", "questions.jsonl"), "one of .html"),
        (("apply", "decisions.jsonl", "-o", "k.jsonl"), "name the questions they are"),
        (
            ("apply", "gold.qrels", "decisions.jsonl", "-o", "k.jsonl"),
            "gold.qrels: is no file of generated questions",
        ),
        (
            ("apply", "questions.jsonl", "decisions.jsonl", "-o", "k.qrels"),
            "holds no texts; name a .jsonl",
        ),
    ],
)
def test_a_mistake_is_a_sentence(
    karat: Karat,
    folder: Path,
    questions: dict[str, dict[str, Any]],
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    del questions
    decide(folder / "decisions.jsonl", {"query": "q1", "decision": "keep"})
    done = karat("label", *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err


@pytest.mark.parametrize(
    ("decision", "sentence"),
    [
        (
            {"query": "q99", "decision": "keep"},
            "decides on 'q99', not in questions.jsonl; is it the file that the page",
        ),
        (
            {"query": "q1", "decision": "keep", "gold_fingerprint": "0"},
            "decides on another question than 'q1' of questions.jsonl",
        ),
        (
            {"query": "q1", "decision": "good"},
            "a decision is keep, fix or drop, got 'good'",
        ),
        ({"query": "q1", "grade": 1}, "a decision needs a query"),
        (
            {"query": "q1", "decision": "fix", "question": " "},
            "leaves 'q1' without a question",
        ),
    ],
)
def test_a_wrong_decision_is_named_with_its_line(
    karat: Karat,
    folder: Path,
    questions: dict[str, dict[str, Any]],
    decision: dict[str, Any],
    sentence: str,
) -> None:
    del questions
    decide(folder / "decisions.jsonl", {"query": "q2", "decision": "keep"}, decision)
    done = karat(*APPLY)
    assert done.code == 2
    assert "decisions.jsonl:2: " in done.err
    assert sentence in done.err
    assert not (folder / "kept.jsonl").exists()
