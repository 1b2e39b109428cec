"""`karat validate`: all that is wrong with a file, and where; or what it holds."""

from pathlib import Path

import pytest

from tests.cli.conftest import Karat

BROKEN = """\
{"id": "a", "retrieved": ["x"], "relevant": ["x"]}
{"id": "a", "retrieved": ["x"], "relevant": ["x"]}
not json
{"id": "b", "retrieved": 7, "relevant": ["x"]}
{"id": "c", "retrieved": ["x"], "relevant": ["y"], "k": 0}
"""


def test_a_sound_file_is_described(karat: Karat) -> None:
    done = karat("validate", "dense.run", "gold.qrels", "samples.yaml")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert "dense.run: trec_run, a run with 40 queries and 800 documents" in lines
    gold = "gold with 40 queries and 302 documents, graded 0 to 3"
    assert f"gold.qrels: trec_qrels, {gold}" in lines
    mapping = next(line for line in lines if "fields read as" in line)
    assert "retrieved=actual_output" in mapping
    assert "k=metadata.k" in mapping


def test_every_problem_is_reported_with_its_line(karat: Karat, folder: Path) -> None:
    (folder / "broken.jsonl").write_text(BROKEN)
    done = karat("validate", "broken.jsonl")
    assert (done.code, done.out) == (2, "")
    problems = done.err.splitlines()
    assert [line.split(": ")[1] for line in problems] == [
        f"broken.jsonl:{line}" for line in (2, 3, 4, 5)
    ]
    assert "query id 'a' occurs twice, first in line 1" in problems[0]
    assert "k must be an integer >= 1, got int 0" in problems[3]


def test_problems_are_bounded(karat: Karat, folder: Path) -> None:
    (folder / "broken.jsonl").write_text(BROKEN)
    done = karat("validate", "broken.jsonl", "--limit", "2")
    assert done.err.count("broken.jsonl:") == 3
    assert "more problems after these 2; --limit shows more" in done.err


def test_a_broken_file_does_not_hide_the_next(karat: Karat, folder: Path) -> None:
    (folder / "broken.jsonl").write_text(BROKEN)
    done = karat("validate", "broken.jsonl", "none.run", "dense.run")
    assert done.code == 2
    assert "dense.run: trec_run" in done.out
    assert "none.run: no such file" in done.err


def test_run_and_gold_are_held_against_each_other(karat: Karat, folder: Path) -> None:
    lines = (folder / "dense.run").read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("q01", "q02"))]
    extra = ["q99 Q0 billing-01 1 2.0 x", "q99 Q0 billing-02 2 2.0 x"]
    (folder / "less.run").write_text("\n".join([*kept, *extra]) + "\n")
    done = karat("validate", "less.run", "--gold", "gold.qrels")
    assert (done.code, done.err) == (0, "")
    assert "less.run against gold.qrels, matched by id:" in done.out
    assert "38 of 40 gold queries are in the run" in done.out
    assert "76 of 90 relevant items are found" in done.out
    assert "missing: 2 gold queries are not in the run" in done.out
    assert "extra: 1 " in done.out
    assert "ties: " not in done.out


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ((" 0 ", " 0 chunk-"), "no gold id occurs anywhere in the run"),
        (("q", "topic"), "run and gold have no query in common"),
    ],
)
def test_what_does_not_belong_together_is_wrong(
    karat: Karat, folder: Path, change: tuple[str, str], sentence: str
) -> None:
    gold = (folder / "gold.qrels").read_text()
    (folder / "other.qrels").write_text(gold.replace(*change))
    done = karat("validate", "dense.run", "-g", "other.qrels")
    assert done.code == 2
    assert sentence in done.err
    assert done.err.count("dense.run:") == 1


def test_a_run_where_gold_is_meant_is_wrong(karat: Karat) -> None:
    done = karat("validate", "dense.run", "--role", "gold")
    assert done.code == 2
    assert "swapped" in done.err


def test_queries_alone_can_be_checked(karat: Karat) -> None:
    done = karat("validate", "queries.jsonl", "--role", "queries")
    assert done.code == 0
    assert done.out.startswith("queries.jsonl: jsonl, 40 queries\n")


def test_every_line_of_a_trec_file_is_checked(karat: Karat, folder: Path) -> None:
    (folder / "broken.run").write_text(
        "q1 Q0 a 1 3.0 x\nq1 Q0 b 2 nan x\nq1 Q0 c 3\nq1 Q0 d 4 1.0 x\nq1 Q0 e 5 - x\n"
    )
    (folder / "broken.qrels").write_text(
        "q1 0 d1 1\nq1 0 d2 high\nq1 d3 1\nq1 0 d4 1\n"
    )
    done = karat("validate", "broken.run", "broken.qrels")
    assert (done.code, done.out) == (2, "")
    places = [line.split(": ")[1] for line in done.err.splitlines()]
    assert places == [
        *("broken.run:2", "broken.run:3", "broken.run:5"),
        *("broken.qrels:2", "broken.qrels:3"),
    ]
    few = karat("validate", "broken.run", "--limit", "1")
    assert "more problems after these 1" in few.err


def test_ties_and_duplicates_of_a_run_alone_are_told(
    karat: Karat, folder: Path
) -> None:
    (folder / "odd.run").write_text(
        "q1 Q0 a 1 3.0 x\nq1 Q0 b 2 2.0 x\nq1 Q0 c 3 2.0 x\nq1 Q0 a 4 1.0 x\n"
    )
    done = karat("validate", "odd.run")
    assert done.code == 0
    assert "  ties: 2 documents share their score" in done.out
    assert "  duplicates: 1 document was retrieved" in done.out
    (folder / "odd.qrels").write_text("q1 0 c 1\n")
    done = karat("validate", "odd.run", "--gold", "odd.qrels")
    assert "  ties: 1 " in done.out


def test_a_corpus_and_queries_are_recognised(karat: Karat, folder: Path) -> None:
    (folder / "texts.jsonl").write_text('{"id": "1", "text": "Rye grows."}\n')
    (folder / "odd.jsonl").write_text('{"id": "1", "text": "Rye?", "hitz": ["a"]}\n')
    done = karat("validate", "corpus.jsonl", "queries.jsonl", "texts.jsonl")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "corpus.jsonl: a corpus with 62 documents",
        "queries.jsonl: 40 queries",
        "texts.jsonl: 1 text by id: queries, or a corpus",
    ]
    done = karat("validate", "odd.jsonl")
    assert done.code == 2
    assert "no field holds retrieved documents" in done.err
