"""`karat evaluate` and `compare` by people and a judge combined."""

import json
from pathlib import Path

import pytest

import karat as library
from tests.cli.conftest import Karat

BOTH = ("--judged", "judged.qrels", "--people", "people.qrels", "--plan", "todo.jsonl")


@pytest.fixture
def labels(karat: Karat, folder: Path) -> None:
    """A judge that is too kind to every third document, a plan, and people's labels."""
    gold = library.read_gold("gold.qrels").documents
    lines = [
        f"{query} 0 {name} {min(grade + (place % 3 == 0), 3):g}\n"
        for query, row in gold.items()
        for place, (name, grade) in enumerate(row.items())
    ]
    (folder / "judged.qrels").write_text("".join(lines))
    done = karat(
        *("label", "plan", "judged.qrels", "--budget", "150", "-o", "todo.jsonl")
    )
    assert done.code == 0
    plan = library.LabelPlan.load("todo.jsonl").labels
    lines = [f"{q} 0 {name} {gold[q][name]:g}\n" for q, name, _ in plan]
    (folder / "people.qrels").write_text("".join(lines))


@pytest.mark.usefixtures("labels")
def test_the_command_says_what_the_function_says(karat: Karat, folder: Path) -> None:
    metrics = ("-m", "ndcg@10,precision@5")
    done = karat(
        *("compare", "keyword.run", "dense.run", *BOTH, *metrics, "--width", "0.2"),
        *("--json", "-o", "c.json", "-o", "c.md", "-o", "c.html"),
    )
    assert done.code == 0
    runs = {name: folder / name for name in ("keyword.run", "dense.run")}
    result = library.combine_labels(
        runs,
        judged="judged.qrels",
        people="people.qrels",
        plan="todo.jsonl",
        metrics=["ndcg@10", "precision@5"],
        width=0.2,
    )
    assert json.loads(done.out) == result.to_dict()
    assert library.CombinedScores.load("c.json") == result
    assert (folder / "c.md").read_text("utf-8") == result.write("md")
    assert "combined" in (folder / "c.html").read_text("utf-8")


@pytest.mark.usefixtures("labels")
def test_a_table_of_80_columns_has_every_number(
    karat: Karat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = karat("compare", "keyword.run", "dense.run", *BOTH, "--width", "0.2")
    assert done.code == 0
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("ndcg@10: 40 queries by the judge, ")
    scores = library.combine_labels(
        {"keyword.run": "keyword.run", "dense.run": "dense.run"},
        judged="judged.qrels",
        people="people.qrels",
        plan="todo.jsonl",
    ).scores
    for row in scores:
        form = "{:+.4f}" if row.baseline else "{:.4f}"
        for by in (row.judge, row.people, row.combined):
            assert by.interval is not None
            shown = " .. ".join(map(form.format, by.interval))
            assert any(form.format(by.mean) in one and shown in one for one in lines)


@pytest.mark.usefixtures("labels")
def test_grades_may_be_given_in_the_plan_itself(karat: Karat, folder: Path) -> None:
    gold = library.read_gold("gold.qrels").documents
    rows = map(json.loads, (folder / "todo.jsonl").read_text().splitlines())
    filled = [{**row, "grade": gold[row["query"]][row["document"]]} for row in rows]
    (folder / "filled.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in filled))
    first = karat("evaluate", "dense.run", *BOTH)
    again = karat(
        *("evaluate", "dense.run", "--judged", "judged.qrels"),
        *("--people", "filled.jsonl", "--plan", "filled.jsonl"),
    )
    assert (again.code, again.out) == (0, first.out)


def drop(path: str, lines: int) -> None:
    text = Path(path).read_text().splitlines(keepends=True)
    Path(path).write_text("".join(text[:lines]))


@pytest.mark.usefixtures("labels")
def test_what_cannot_be_combined_is_refused(karat: Karat, folder: Path) -> None:
    def refused(sentence: str, *arguments: str, command: str = "evaluate") -> None:
        done = karat(command, "dense.run", *arguments)
        assert (done.code, done.out) == (2, "")
        assert sentence in done.err

    refused("--gold does not go with --judged", *BOTH, "-g", "gold.qrels")
    refused("--fail-under does not go", *BOTH, "--fail-under", "ndcg@10=0.5")
    refused("--judged takes --people", *BOTH[:2])
    refused("--people is for --judged", *BOTH[2:4], "-g", "gold.qrels")
    refused("name two runs or more", *BOTH, command="compare")
    wrong = ("--plan", "todo.jsonl", "-g", "gold.qrels", "keyword.run")
    refused("a difference such as 0.02, got 'todo.jsonl'", *wrong, command="compare")
    hand = (*BOTH[:2], "--people", "gold.qrels", *BOTH[4:])
    refused("labels by people were not drawn by the plan", *hand)
    refused("how far people and the judge agree: karat judge --agreement", *hand)
    refused("none.jsonl: no such file", *BOTH[:4], "--plan", "none.jsonl")
    refused("holds no records; karat label plan", *BOTH[:4], "--plan", "gold.qrels")
    (folder / "odd.jsonl").write_text('{"query": "q01"}\n{"query" 1}\n')
    refused("odd.jsonl:2: ", *BOTH[:4], "--plan", "odd.jsonl")
    (folder / "odd.jsonl").write_text('{"query": "q01", "document": "a"}\n')
    refused("odd.jsonl: is no plan: each line", *BOTH[:4], "--plan", "odd.jsonl")
    drop("people.qrels", 40)
    refused("it takes 10 to correct a judge", *BOTH)
    drop("judged.qrels", 200)
    refused("the plan is of another pool", *BOTH)


@pytest.mark.usefixtures("labels")
def test_pairs_are_combined_for_metrics_that_add_up(karat: Karat, folder: Path) -> None:
    plan = ("label", "plan", "judged.qrels", "dense.run", "keyword.run", "--pairs")
    assert karat(*plan, "--budget", "60", "-o", "todo.jsonl").code == 0
    gold = library.read_gold("gold.qrels").documents
    drawn = library.LabelPlan.load("todo.jsonl").labels
    lines = [f"{q} 0 {name} {gold[q][name]:g}\n" for q, name, _ in drawn]
    (folder / "people.qrels").write_text("".join(lines))
    done = karat("evaluate", "dense.run", *BOTH, "-m", "precision@5")
    assert done.code == 0, done.err
    assert f"({len(drawn)} labels)" in done.out
    wrong = karat("evaluate", "dense.run", *BOTH, "-m", "ndcg@10")
    assert wrong.code == 2
    assert "ndcg@10 does not add up over documents: it takes whole" in wrong.err
    width = karat("evaluate", "dense.run", *BOTH, "-m", "precision@5", "--width", "0.1")
    assert width.code == 2
    assert "width is about whole queries" in width.err
