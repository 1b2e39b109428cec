"""`karat push` and `karat history`: runs over commits, scored by the gold of today."""

import html
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import karat.history
from karat import evaluate, history as karat_history, load
from tests.cli.conftest import Karat

DASH = "\N{EN DASH}"
METRICS = "ndcg@10,recall@5"
CI = (
    *("GITHUB_SHA", "GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_SHA"),
    *("CI_COMMIT_REF_NAME", "BUILD_SOURCEVERSION", "BUILD_SOURCEBRANCHNAME"),
)


@pytest.fixture
def pushed(karat: Karat, monkeypatch: pytest.MonkeyPatch) -> Karat:
    """A store with a run of each retriever."""
    for name in CI:
        monkeypatch.delenv(name, raising=False)
    texts = ("--queries", "queries.jsonl", "--corpus", "corpus.jsonl")
    for name, commit in (("keyword", "a1b2c3d4e5"), ("dense", "b2c3d4e5f6")):
        run = (f"{name}.run", "--gold", "gold.qrels", "-m", METRICS)
        karat("evaluate", *run, *texts, "-o", f"{name}.json")
        done = karat("push", f"{name}.json", "--commit", commit, "--branch", "main")
        assert done.code == 0, done.err
    return karat


def test_runs_are_shown_with_a_verdict_against_the_one_before(pushed: Karat) -> None:
    done = pushed("history")
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines() if "main" in line]
    day = rows[0][4]
    assert rows == [
        ["1", "keyword.run", "a1b2c3d", "main", day, "0.6161", DASH, DASH],
        ["2", "dense.run", "b2c3d4e", "main", day, "0.7526", "+0.1364", "better"],
    ]
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_same_result_is_pushed_once(pushed: Karat) -> None:
    done = pushed("push", "dense.json", "--commit", "b2c3d4e5f6", "--branch", "main")
    assert done.out == (
        "dense.json is run 2 of default in karat-history.db (already stored)\n"
    )
    assert len(json.loads(pushed("history", "--json").out)["runs"]) == 2


def test_commit_and_branch_come_from_ci(
    pushed: Karat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_SHA", "c0ffee")
    monkeypatch.setenv("GITHUB_HEAD_REF", "")
    monkeypatch.setenv("GITHUB_REF_NAME", "feature")
    pushed("push", "dense.json")
    shown = json.loads(pushed("history", "--json", "--branch", "feature").out)
    assert [(run["commit"], run["branch"]) for run in shown["runs"]] == [
        ("c0ffee", "feature")
    ]


def test_the_numbers_are_those_of_a_fresh_comparison(pushed: Karat) -> None:
    shown = json.loads(pushed("history", "--json", "-m", "recall@5").out)
    fresh = karat_compare("keyword.json", "dense.json")["recall@5"]
    assert shown["runs"][1]["difference"]["p"] == fresh.p
    assert shown["runs"][1]["difference"]["difference"] == fresh.difference
    of_tag = json.loads(pushed("history", "--json", "--tag", "billing").out)
    assert of_tag["runs"][1]["difference"]["n"] == 6


def karat_compare(*paths: str) -> Any:
    return karat.compare(*map(load, paths))


def test_a_corrected_gold_scores_all_runs_again(pushed: Karat, folder: Path) -> None:
    lines = (folder / "gold.qrels").read_text("utf-8").splitlines()
    corrected = [re.sub(r" [123]$", " 1", line) for line in lines]
    (folder / "corrected.qrels").write_text("\n".join(corrected) + "\n", "utf-8")
    again = ("history", "--gold", "gold.qrels", "--json")
    assert json.loads(pushed(*again).out)["changes"] == []
    nowhere = ("-o", "none/main.json")
    assert pushed("history", "--gold", "corrected.qrels", *nowhere).code == 2
    done = pushed("history", "--gold", "corrected.qrels")
    assert "gold version 2: 2 means moved" in done.out
    for run in ("keyword", "dense"):
        fresh = evaluate(f"{run}.run", gold="corrected.qrels", metrics=["ndcg@10"])
        mean = fresh.means["ndcg@10"]
        assert f"{mean:.4f}" in done.out


def test_the_newest_run_becomes_a_baseline(pushed: Karat) -> None:
    assert pushed("history", "--branch", "main", "-o", "main.json").code == 0
    run = ("keyword.run", "--gold", "gold.qrels", "-m", METRICS)
    gate = ("--baseline", "main.json", "--max-drop", "ndcg@10=0.02")
    assert pushed("evaluate", *run, *gate).code == 1
    assert load("main.json").means == pytest.approx(load("dense.json").means)


def test_the_site_shows_runs_pairs_and_every_text_once(
    pushed: Karat, folder: Path
) -> None:
    done = pushed("history", "-o", "site")
    assert "wrote 5 pages to site" in done.err
    pages = {
        str(path.relative_to(folder / "site")): path.read_text("utf-8")
        for path in (folder / "site").rglob("*.html")
    }
    assert sorted(pages) == [
        *("index.html", "pairs/1-2.html", "runs/1.html", "runs/2.html"),
        "texts/0.html",
    ]
    for name, text in pages.items():
        assert "<script" not in text
        for address in re.findall(r'href="([^"#]+)', text):
            assert (folder / "site" / name).parent.joinpath(address).exists()
    lines = (folder / "corpus.jsonl").read_text("utf-8").splitlines()
    texts = [html.escape(json.loads(line)["text"]) for line in lines]
    counts = {sum(page.count(text) for page in pages.values()) for text in texts}
    assert counts <= {0, 1}
    assert 1 in counts
    assert 'href="pairs/1-2.html">better' in pages["index.html"]
    anchors = set(re.findall(r'#(d\d+)"', pages["runs/1.html"]))
    assert anchors <= set(re.findall(r'id="(d\d+)"', pages["texts/0.html"]))
    pushed("history", "-o", "bare", "--no-text")
    assert not [*(folder / "bare" / "texts").iterdir()]
    (folder / "index.html").write_text("mine", "utf-8")
    assert "would be overwritten" in pushed("history", "-o", ".").err


def test_what_is_not_scored_or_compared_is_said(pushed: Karat, folder: Path) -> None:
    shallow = evaluate("dense.run", gold="gold.qrels", metrics=["ndcg@10"], keep=5)
    other = evaluate({"x": ["a"]}, {"x": ["a"]}, metrics=["ndcg@10"], keep=5)
    with karat.history.open(folder / "karat-history.db") as store:
        store.push(shallow)
        store.push(other)
    out = " ".join(pushed("history").out.split())
    assert "* ndcg@10 of run 3 is not scored again: reads deeper than the 5" in out
    assert "run 4 is not compared with the one before" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["history", "no.db"], "no.db: there is no such store; karat push"),
        (["history", "--since", "soon"], "since takes a date, as in 2026-01-31, got"),
        (
            ["history", "--since", "2100-01-01"],
            "no run since 2100-01-01; the last is of 20",
        ),
        (["history", "--tag", "none"], "no query of default has the tag 'none'"),
        (["history", "--branch", "x"], "no run of branch x; its branches: main"),
        (["history", "-m", "recall@10"], "no run has 'recall@10'; there are ndcg@10"),
        (["history", "-o", "site.html"], "pages into a folder, as in -o site"),
        (["history", "--project", "x"], "unknown project 'x'"),
        (["push", "gold.qrels"], "is gold, not a saved evaluation"),
        (["push", "dense.json", "--to", "ftp://x"], "--to takes a file or an address"),
        (["push", "dense.json", "--to", "http://127.0.0.1:9"], "cannot be reached"),
    ],
)
def test_mistakes_are_sentences(
    pushed: Karat, arguments: list[str], sentence: str
) -> None:
    done = pushed(*arguments)
    assert done.code == 2
    assert sentence in done.err


def test_an_empty_store_says_how_to_fill_it(karat: Karat, folder: Path) -> None:
    karat_history.open(folder / "empty.db").close()
    done = karat("history", "empty.db")
    assert done.code == 2
    said = " ".join(done.err.split())
    assert "empty.db holds no runs of default yet; karat push RESULT.json --to" in said
    done = karat("history", "empty.db", "--gold", "gold.qrels")
    assert "unknown project 'default'; known: none" in done.err


@pytest.fixture
def server() -> Iterator[tuple[str, list[Any]]]:
    """A server that takes a push with the right token."""
    calls: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            calls.append((self.path, json.loads(body)["run"]))
            allowed = self.headers.get("Authorization") == "Bearer secret"
            said: Any = {"run": 7, "is_new": True, "differing": ["q1"]}
            if "commit=odd" in self.path:
                said = {"run": 7, "is_new": "yes"}
            self.send_response(201 if allowed else 401)
            self.end_headers()
            answer = said if allowed else {"error": "which token?"}
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: Any) -> None:
            pass

    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}", calls
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_a_push_to_a_server(
    pushed: Karat, server: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, calls = server
    push = ("push", "dense.json", "--to", url, "--project", "a b", "--commit", "c")
    refused = pushed(*push)
    assert refused.code == 2
    assert "answered 401: which token?; KARAT_TOKEN is not set" in refused.err
    monkeypatch.setenv("KARAT_TOKEN", "bad")
    said = " ".join(pushed(*push).err.split())
    assert "answered 401: the token in KARAT_TOKEN is not known there; karat" in said
    monkeypatch.setenv("KARAT_TOKEN", "secret")
    done = pushed(*push, "--branch", "main")
    assert done.out == f"dense.json is run 7 of a b in {url}\n"
    assert "1 query of dense.json had other gold than the store" in done.err
    assert calls[-1] == ("/api/p/a%20b/runs?commit=c&branch=main", "dense.run")


def test_a_server_may_answer_anything(
    pushed: Karat, server: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, calls = server
    monkeypatch.setenv("KARAT_TOKEN", "secret")
    done = pushed("push", "dense.json", "--to", url, "--commit", "odd")
    assert "answered 201: no server of karat serve" in done.err
    done = pushed("push", "dense.json", "--to", url, "--project", "\udcff")
    assert calls[-1][0].startswith("/api/p/%ED%B3%BF/runs?")
    long = f"http://{'a' * 70}.test"
    assert "cannot be reached" in pushed("push", "dense.json", "--to", long).err
    monkeypatch.setenv("KARAT_TOKEN", "sec\nret")
    done = pushed("push", "dense.json", "--to", url)
    assert "header 'Authorization' cannot be sent" in done.err
    assert "ret" not in done.err.replace("retriev", "")


def test_commit_and_branch_come_from_git(pushed: Karat, folder: Path) -> None:
    person = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    for command in (("init", "-b", "trunk"), ("commit", "--allow-empty", "-m", "x")):
        subprocess.run(["git", *person, *command], check=True, capture_output=True)
    pushed("push", "dense.json")
    (run,) = json.loads(pushed("history", "--json", "--branch", "trunk").out)["runs"]
    assert len(run["commit"]) == 40
    assert folder == Path.cwd()


def test_nothing_that_is_shown_becomes_markup(karat: Karat, folder: Path) -> None:
    bad = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'"
    document = {"id": bad, "text": bad}
    sample = {"id": bad, "query": bad, "tags": [bad], "retrieved": [document]}
    own = evaluate([{**sample, "relevant": [bad]}], metrics=["rr"], keep=5, name=bad)
    with karat_history.open(folder / "bad.db") as store:
        for commit in ("1", bad):
            store.push(own, commit=commit, branch=bad, project=bad)
    done = karat("history", "bad.db", "--project", bad, "-o", "bad")
    assert done.code == 0, done.err
    pages = [*(folder / "bad").rglob("*.html")]
    assert len(pages) == 5
    for page in pages:
        text = page.read_text("utf-8")
        assert "<script" not in text
        assert "<img" not in text
