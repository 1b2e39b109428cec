"""`karat diagnose` and `karat doctor` as a user meets them."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import karat
from karat.cli import karat as command
from karat.extend import MismatchError
from karat.leaderboards import evaluation_of

SAMPLES = [
    {"id": "q1", "query": "rye?", "retrieved": ["x", "y", "d1"], "relevant": ["d1"]},
    {"id": "q2", "query": "oats?", "retrieved": ["D2", "x"], "relevant": ["d2"]},
]
CORPUS = {
    "d1": "Rye is a grain of the north.",
    "d2": "Oats.",
    "x": "Hay.",
    "y": "Wool.",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = (json.dumps(sample) for sample in SAMPLES)
    (tmp_path / "samples.jsonl").write_text("\n".join(lines))
    rows = (json.dumps({"id": n, "text": text}) for n, text in CORPUS.items())
    (tmp_path / "corpus.jsonl").write_text("\n".join(rows))
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_diagnose_shows_causes_and_writes_files(folder: Path) -> None:
    shown = run("diagnose", "samples.jsonl", "-k", "2", "-o", "d.json", "-o", "d.md")
    assert "below k" in shown
    assert "wrong id form" in shown
    assert "not examined, needs --corpus" in shown
    saved = karat.Diagnosis.load(folder / "d.json")
    assert saved.totals == {"wrong id form": 1, "below k": 1}
    assert "| below k |" in (folder / "d.md").read_text()


@pytest.mark.usefixtures("folder")
def test_json_is_pure_and_no_text_keeps_texts_out() -> None:
    shown = run("diagnose", "samples.jsonl", "--corpus", "corpus.jsonl", "--json")
    assert json.loads(shown)["kind"] == "diagnosis"
    arguments = ("-k", "2", "--corpus", "corpus.jsonl", "--json", "--no-text")
    hidden = run("diagnose", "samples.jsonl", *arguments)
    assert "Rye" not in hidden
    assert "rye" not in hidden


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("diagnose", "samples.jsonl", "-k", "0"), "k must be an integer >= 1"),
        (("diagnose", "samples.jsonl", "-o", "d.pdf"), "one of .html, .json, .md"),
        (("diagnose", "nothing.jsonl"), "nothing.jsonl"),
        (("doctor", "samples.jsonl", "-o", "samples.jsonl"), "one of .json"),
        (("doctor", "nothing.qrels"), "nothing.qrels"),
    ],
)
def test_mistakes_are_sentences(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(karat.KaratError, match=said.replace(".", r"\.")):
        CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_doctor_finds_and_corrects(folder: Path) -> None:
    rows = [{"id": "q1", "relevant": ["d1", "gone"]}, {"id": "q2", "relevant": ["D2"]}]
    lines = "\n".join(json.dumps(row) for row in rows)
    (folder / "gold.jsonl").write_text(lines)
    arguments = ("--corpus", "corpus.jsonl", "--fix", "better.jsonl", "-o", "f.json")
    shown = run("doctor", "gold.jsonl", *arguments)
    assert "dangling id" in shown
    assert "other id form" in shown
    kinds = [one.kind for one in karat.GoldFindings.load(folder / "f.json").findings]
    assert kinds == ["dangling id", "other id form"]
    better = karat.read_gold(folder / "better.jsonl")
    assert {q: [*row] for q, row in better.documents.items()} == {
        "q1": ["d1", "gone"],
        "q2": ["d2"],
    }
    shown = run("doctor", "gold.jsonl", "--corpus", "corpus.jsonl", "--json")
    assert json.loads(shown)["kind"] == "findings"


@pytest.mark.parametrize("name", ["diagnose", "doctor"])
def test_a_corpus_of_something_else_is_refused(folder: Path, name: str) -> None:
    (folder / "other.jsonl").write_text('{"id": "page-77", "text": "Wool."}\n')
    with pytest.raises(MismatchError, match=r"no document of the gold .* 'page-77'"):
        run(name, "samples.jsonl", "--corpus", "other.jsonl")


def test_queries_of_something_else_are_noticed(folder: Path) -> None:
    (folder / "queries.jsonl").write_text('{"id": "q77", "query": "wool?"}\n')
    options = ("samples.jsonl", "--queries", "queries.jsonl")
    shown = run("diagnose", *options)
    assert "queries: 1 query with a text or tags, which the gold does not" in shown


def test_gold_without_anything_relevant_is_said_to_be(folder: Path) -> None:
    (folder / "zero.qrels").write_text("q1 0 d1 0\n")
    (folder / "a.run").write_text("q1 Q0 d1 1 0.5 a\n")
    shown = run("diagnose", "a.run", "--gold", "zero.qrels")
    assert "no gold item is relevant, so none can be missed" in shown
    assert "curves" not in shown


def test_a_page_is_made_of_what_was_scored_for_the_diagnosis(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def counted(*given: Any) -> karat.Evaluation:
        calls.append(given)
        return evaluation_of(*given)

    monkeypatch.setattr("karat.diagnosis.diagnose.evaluation_of", counted)
    run("diagnose", "samples.jsonl", "-k", "2", "-o", "d.html", "-o", "d.json")
    assert len(calls) == 1
    assert "Why gold was missed" in (folder / "d.html").read_text()
    assert karat.Diagnosis.load(folder / "d.json").evaluation is None
