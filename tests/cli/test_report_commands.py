"""Pages, charts and labels from the command line."""

import json
from pathlib import Path

import pytest

from karat import evaluate, read_gold
from karat.cli import judge_session
from tests.cli.conftest import Karat
from tests.judging.models import Model
from tests.reports.test_page import data_of, rows_of, texts_of

BOTH = ("keyword.run", "dense.run", "--gold", "gold.qrels")
TEXTS = ("--queries", "queries.jsonl", "--corpus", "corpus.jsonl")


def label_file(folder: Path, *labels: tuple[str, str, int]) -> str:
    signed = {"who": "Ann Lee", "when": "2026-11-15T10:00:00Z"}
    (folder / "labels.jsonl").write_text(
        "".join(
            json.dumps({"query": q, "document": d, "grade": g, **signed}) + "\n"
            for q, d, g in labels
        ),
        "utf-8",
    )
    return "labels.jsonl"


def test_evaluate_writes_a_page(karat: Karat, folder: Path) -> None:
    done = karat("evaluate", *BOTH, *TEXTS, "-m", "recall@5", "-o", "r.html")
    assert done.code == 0
    assert "karat: wrote r.html" in done.err
    page = (folder / "r.html").read_text("utf-8")
    assert data_of(page)["systems"] == ["keyword.run", "dense.run"]
    assert "How long until I get" in data_of(page)["questions"][0]
    first = rows_of(page)[0]
    assert [len(system["ranking"]) for system in first["systems"]] == [20, 20]
    assert "command" in page


def test_a_page_without_texts(karat: Karat, folder: Path) -> None:
    karat("evaluate", *BOTH, *TEXTS, "--no-text", "-o", "r.html")
    page = (folder / "r.html").read_text("utf-8")
    assert not any(data_of(page)["questions"])
    assert {text for _, text in texts_of(page)} == {None}


def test_compare_writes_a_page(karat: Karat, folder: Path) -> None:
    done = karat("compare", *BOTH, *TEXTS, "-m", "recall@5", "-o", "r.html")
    assert done.code == 0
    page = (folder / "r.html").read_text("utf-8")
    assert "dense.run is better than keyword.run" in page
    assert "How long until" in json.dumps(data_of(page))
    karat("compare", *BOTH, *TEXTS, "-m", "recall@5", "--no-text", "-o", "s.html")
    bare = (folder / "s.html").read_text("utf-8")
    assert "How long until" not in bare + json.dumps(
        [data_of(bare), rows_of(bare), texts_of(bare)]
    )


def test_diagnose_writes_a_page_with_the_cause_of_every_miss(
    karat: Karat, folder: Path
) -> None:
    args = ("diagnose", "dense.run", "--gold", "gold.qrels", *TEXTS, "-k", "5")
    assert karat(*args, "-o", "d.html", "-o", "d.json").code == 0
    page = (folder / "d.html").read_text("utf-8")
    assert "Why gold was missed" in page
    misses = json.loads((folder / "d.json").read_text("utf-8"))["misses"]
    data = data_of(page)
    for miss in misses:
        row = data["queries"].index(miss["query"])
        told = rows_of(page)[row]["notes"][miss["item"]]
        assert any(miss["reason"] in sentence for sentence in told)
        causes = data["facets"]["cause"]
        assert miss["cause"] in [causes["names"][n] for n in causes["rows"][row]]
    # All of them are listed, and each leads to its query.
    assert f"misses: {len(misses)} of {len(misses)}" in page
    assert page.count('<a href="#q=') == len(misses)
    assert 'href="#cause=below+k"' in page
    assert karat(*args, "--no-text", "-o", "n.html").code == 0
    bare = (folder / "n.html").read_text("utf-8")
    assert "my thing never showed up" not in bare + json.dumps(
        [data_of(bare), rows_of(bare), texts_of(bare)]
    )


def test_judge_writes_a_page_with_the_reason_of_every_grade(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model(lambda _: json.dumps({"grade": 2, "reason": "because <b>"}))
    monkeypatch.setattr(judge_session, "OpenAIClient", lambda *_, **__: model)
    args = ("judge", "dense.run", *TEXTS, "--model", "m", "-k", "2")
    done = karat(*args, "-o", "j.html", "-o", "j.qrels")
    assert done.code == 0, done.err
    page = (folder / "j.html").read_text("utf-8")
    assert "40 documents graded" in page or "80 documents graded" in page
    first = rows_of(page)[0]["notes"]
    assert [*first.values()] == [["the judge: because <b>"]] * 2
    assert (folder / "j.qrels").exists()
    claims = karat("judge", "samples.jsonl", "--claims", "--model", "m", "-o", "c.html")
    assert claims.code == 2
    assert "karat evaluate SAMPLES -m context_recall" in claims.err


def test_the_values_of_headers_are_not_in_the_page(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = ("--header", "key:hunter2", "--header=other:hunter3")
    monkeypatch.setattr("sys.argv", ["karat", "evaluate", *BOTH, *secret])
    karat("evaluate", *BOTH, *secret, "-o", "r.html")
    page = (folder / "r.html").read_text("utf-8")
    assert "hunter" not in page
    assert "--header &#x27;***&#x27; &#x27;--header=***&#x27;" in page


def test_plot_draws_runs_and_saved_evaluations(karat: Karat, folder: Path) -> None:
    done = karat("plot", *BOTH, "-m", "recall@10", "-o", "curve.svg")
    assert done.code == 0
    assert "recall over k" in (folder / "curve.svg").read_text("utf-8")
    several = karat("plot", *BOTH, "-m", "recall@5,ndcg@10", "-o", "curve.svg")
    assert "a chart shows one metric: recall@5" in several.err
    karat("evaluate", "dense.run", "--gold", "gold.qrels", "-o", "d.json")
    assert karat("plot", "d.json", "--kind", "headroom", "-o", "h.svg").code == 0
    assert "not retrieved" in (folder / "h.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-o", "curve.gif"), "a chart is written as .svg or .png"),
        (("-m", "recal@5", "-o", "c.svg"), "did you mean 'recall'"),
        (("--kind", "pie", "-o", "c.svg"), "'pie' is not one of"),
    ],
)
def test_plot_says_what_is_wrong(
    karat: Karat, arguments: tuple[str, ...], sentence: str
) -> None:
    done = karat("plot", *BOTH, *arguments)
    assert done.code == 2
    assert sentence in done.err


def test_labels_are_merged_and_signed(karat: Karat, folder: Path) -> None:
    labels = label_file(folder, ("q01", "new-1", 3), ("q01", "returns-01", 2))
    done = karat("label", "apply", labels, "--gold", "gold.qrels", "-o", "new.qrels")
    assert done.code == 0
    assert "1 label added; 1 changed, 0 unchanged" in done.err
    assert "q01 returns-01: 1 -> 2" in done.err
    lines = (folder / "new.qrels").read_text("utf-8")
    assert "q01 human:Ann_Lee@2026-11-15 new-1 3" in lines
    again = read_gold("new.qrels")
    assert again.labellers()["human:Ann_Lee@2026-11-15"] == 2


def test_samples_keep_what_was_retrieved(karat: Karat, folder: Path) -> None:
    sample = {"id": "q1", "retrieved": ["z", "a"], "relevant": {"a": 1}}
    (folder / "s.jsonl").write_text(json.dumps(sample) + "\n", "utf-8")
    labels = label_file(folder, ("q1", "z", 1))
    done = karat("label", "apply", labels, "--gold", "s.jsonl", "-o", "new.jsonl")
    assert done.code == 0
    assert evaluate("new.jsonl", metrics=["precision@2"]).means["precision@2"] == 1.0


def test_broken_labels_are_named(karat: Karat, folder: Path) -> None:
    (folder / "labels.jsonl").write_text('{"query": "q01"', "utf-8")
    args = ("label", "apply", "labels.jsonl", "--gold", "gold.qrels")
    done = karat(*args, "-o", "new.qrels")
    assert done.code == 2
    assert "labels.jsonl:1: broken JSON at column 16" in done.err
    assert not (folder / "new.qrels").exists()
