"""`karat init` and `karat suite`: an evaluation written down, and run by its name."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import karat as library
from karat.extend import decode_yaml
from tests.cli.conftest import Karat

SUITE = """\
suites:
  main:
    gold: gold.qrels
    queries: queries.jsonl
    retrievers:
      keyword: keyword.run
      dense: dense.run
    metrics: [ndcg@10, recall@5]
"""


def results(folder: Path) -> list[Path]:
    return sorted((folder / "karat-results").iterdir())


def test_a_suite_scores_what_evaluate_does_and_writes_it_down(
    karat: Karat, folder: Path
) -> None:
    text = SUITE.replace("  main:", "  a/main:")
    (folder / "karat.yaml").write_text(text + "    slices: tag\n")
    done = karat("suite")
    assert done.code == 0
    assert "ndcg@10 by tag" in done.out
    (made,) = results(folder)
    assert made.name.endswith("-a-main")
    direct = library.evaluate(
        "dense.run",
        gold="gold.qrels",
        queries="queries.jsonl",
        metrics=["ndcg@10", "recall@5"],
        name="dense",
        judged=True,
        keep=20,
    )
    assert library.load(made / "evaluation.json", run="dense") == direct
    rows = [
        json.loads(line) for line in (made / "per_query.jsonl").read_text().splitlines()
    ]
    assert len(rows) == 80
    assert not (made / "gates.junit.xml").exists()


def test_what_has_not_changed_is_not_scored_again(karat: Karat, folder: Path) -> None:
    (folder / "karat.yaml").write_text(SUITE)
    again = "karat: not scored again, since nothing changed: "
    assert again not in karat("suite").err
    first, second = results(folder)[0], karat("suite")
    assert again + "keyword, dense\n" in second.err
    assert [p.read_bytes() for p in sorted(first.iterdir())] == [
        p.read_bytes() for p in sorted(results(folder)[1].iterdir())
    ]
    run = folder / "dense.run"
    run.write_text(run.read_text().replace("q01 Q0", "q01 Q0", 1) + "\n")
    assert again + "keyword\n" in karat("suite").err
    gold = folder / "gold.qrels"
    gold.write_text(gold.read_text() + "q01 0 nothing 0\n")
    assert again not in karat("suite").err
    (folder / "karat.yaml").write_text(SUITE.replace("recall@5", "recall@4"))
    assert again not in karat("suite").err
    assert again + "keyword, dense\n" in karat("suite").err
    assert again not in karat("suite", "--fresh").err


def test_what_is_kept_is_private_and_may_be_damaged(karat: Karat, folder: Path) -> None:
    (folder / "karat.yaml").write_text(SUITE)
    before = karat("suite").out
    for path in (folder / ".karat").glob("result-*.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.write_text("{}")
    done = karat("suite")
    assert done.out == before
    assert "not scored again" not in done.err


def test_gates_decide_the_exit_code(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates = "    gates: {fail_under: {recall@5: 0.6}}\n"
    (folder / "karat.yaml").write_text(SUITE + gates)
    done = karat("suite")
    assert done.code == 1
    assert "gate failed: keyword: recall@5 is 0.5556, below 0.6" in done.err
    assert "RESULT: fail (1 of 2 gates passed)" in done.err
    assert 'failures="1"' in (results(folder)[0] / "gates.junit.xml").read_text()
    # What is compared with need not pass.
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    (folder / "karat.yaml").write_text(SUITE + gates + "    baseline: keyword\n")
    done = karat("suite")
    assert done.code == 0
    assert "dense compared with keyword" in done.out
    assert "karat: keyword is the baseline, and is not gated" in done.err
    headline = "better on 2 (ndcg@10, recall@5)"
    assert f"karat: pass; {headline}" in (folder / "summary.md").read_text()
    assert headline in (results(folder)[1] / "gates.junit.xml").read_text()


def test_drops_are_measured_from_a_retriever_or_from_a_saved_evaluation(
    karat: Karat, folder: Path
) -> None:
    gates = "    gates:\n      max_drop: {ndcg@10: 0.02}\n      strict: true\n"
    (folder / "karat.yaml").write_text(SUITE + gates + "    baseline: dense\n")
    done = karat("suite")
    assert done.code == 1
    assert "keyword: ndcg@10 dropped by 0.1364" in done.err
    saved = (results(folder)[0] / "evaluation.json").relative_to(folder)
    (folder / "karat.yaml").write_text(SUITE + gates + f"    baseline: {saved}\n")
    done = karat("suite")
    assert done.code == 0
    assert "RESULT: pass (2 of 2 gates passed)" in done.err
    text = (folder / "karat.yaml").read_text()
    more = text.replace("    metrics", "      new: dense.run\n    metrics")
    (folder / "karat.yaml").write_text(more)
    done = karat("suite")
    assert done.code == 3
    assert "gate inconclusive: new: new has no baseline" in done.err
    (folder / "karat.yaml").write_text(SUITE + gates)
    done = karat("suite")
    assert done.code == 2
    assert "karat.yaml:10: max_drop needs a baseline" in done.err


@pytest.mark.parametrize(
    ("option", "code", "counts"),
    [
        ("strict", 1, "0 of 1"),
        ("allow_noise", 0, "0 of 1"),
        ("gate_tags", 1, "14 of 15"),
        ("require_noninferior", 1, "0 of 1"),
    ],
)
def test_a_suite_has_the_gates_of_the_command(
    karat: Karat, folder: Path, option: str, code: int, counts: str
) -> None:
    """One query is lost, which is more than 0.01 and less than 0.03 of 39."""
    lines = (folder / "dense.run").read_text().splitlines()
    (folder / "keyword.run").write_text("\n".join(lines[10:]))
    drop = 0.01 if option in {"strict", "allow_noise"} else 0.03
    gates = f"    gates: {{max_drop: {{rr: {drop}}}, {option}: true}}\n"
    (folder / "karat.yaml").write_text(SUITE + gates + "    baseline: dense\n")
    done = karat("suite")
    assert done.code == code
    assert f"({counts} gates passed)" in done.err


def test_failed_queries_fail_a_suite(karat: Karat, folder: Path) -> None:
    (folder / "search.py").write_text(
        "def search(query):\n"
        "    if 'gift' in query:\n        raise ValueError('no gifts')\n"
        "    return ['delivery-01']\n"
    )
    gates = "    gates: {fail_under: {recall@5: 0.0}}\n"
    suite = SUITE.replace("keyword.run", "search:search").replace(
        "      dense: dense.run\n", ""
    )
    (folder / "karat.yaml").write_text(suite + gates)
    done = karat("suite")
    assert done.code == 3
    assert "RESULT: fail (1 of 2 gates passed)" in done.err
    junit = (results(folder)[0] / "gates.junit.xml").read_text()
    assert 'tests="2" failures="1"' in junit
    assert "no gifts" in junit


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("gold.qrels", "gold.qrel", "karat.yaml:3: gold: there is no file 'gold.qrel'"),
        ("dense.run", "dens.run", ":7: retrievers.dense: there is no file 'dens.run'"),
        ("ndcg@10", "ndgc@10", "karat.yaml:8: unknown metric 'ndgc'; did you mean"),
        ("[ndcg@10, recall@5]", "ndgc@10", "karat.yaml:8: unknown metric 'ndgc'"),
        (
            "    metrics",
            "    baseline: bm25\n    metrics",
            ":8: baseline 'bm25' is neither a retriever (keyword, dense) nor a file",
        ),
        (
            "    metrics",
            "    gates:\n      fail_under:\n        recall@5: 80\n    metrics",
            ":10: fail-under recall@5=80: recall@5 lies between 0 and 1; 0.8?",
        ),
        (
            "    metrics",
            "    gates:\n      fail_under: {rr: 0}\n      gate_tags: true\n    metrics",
            "karat.yaml:10: gate_tags is for max_drop, which is not there",
        ),
        (
            "      dense: dense.run\n    metrics",
            "    baseline: keyword\n    gates: {max_drop: {rr: 0.1}}\n    metrics",
            "max_drop has nothing to compare with baseline 'keyword' by name: keyword",
        ),
        ("    metrics", "    match: exactly\n    metrics", "'exactly'; did you mean"),
        (
            "    metrics",
            "    map: {retreived: hits}\n    metrics",
            "karat.yaml:8: unknown field 'retreived'; did you mean 'retrieved'",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(
    karat: Karat, folder: Path, old: str, new: str, sentence: str
) -> None:
    (folder / "karat.yaml").write_text(SUITE.replace(old, new))
    done = karat("suite")
    assert done.code == 2
    assert sentence in done.err
    assert not (folder / "karat-results").exists()


def test_init_finds_out_what_the_files_are(karat: Karat, folder: Path) -> None:
    (folder / "karat.yaml").write_text("evaluate: {k: 3}\n")
    (folder / "notes.json").write_text('{"a": ')
    done = karat("init")
    assert done.code == 0
    assert "gold.qrels: trec_qrels, gold with 40 queries" in done.out
    assert "queries.jsonl: queries\n" in done.out
    text = (folder / "karat.yaml").read_text()
    assert text.startswith("evaluate: {k: 3}\n\n# Written by karat init")
    assert "    gold: gold.qrels\n    # corpus: corpus.jsonl" in text
    assert "      dense: dense.run\n      keyword: keyword.run\n" in text
    assert "    slices: tag" in text
    # What holds today: of keyword, the lower of the two, 0.6161 and 0.5556.
    assert "    gates:\n      fail_under: {ndcg@10: 0.61, recall@5: 0.55}" in text
    done = karat("suite")
    assert done.code == 0
    assert "RESULT: pass (4 of 4 gates passed)" in done.err
    lines = (folder / "keyword.run").read_text().splitlines(keepends=True)
    (folder / "keyword.run").write_text("".join(lines[: len(lines) // 2]))
    assert karat("suite").code == 1
    again = karat("init")
    assert again.code == 2
    assert "karat.yaml has suites already (main): karat suite runs one" in again.err


def test_init_takes_samples_where_there_is_no_run(karat: Karat, folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != "samples.jsonl":
            path.unlink()
    (folder / "evals").mkdir()
    (folder / "samples.jsonl").rename(folder / "true.jsonl")
    done = karat("init", "-o", "evals/main.yaml")
    assert (
        done.err
        == "karat: wrote evals/main.yaml; next: karat suite -f evals/main.yaml\n"
    )
    assert '      "true": ../true.jsonl\n' in (folder / "evals/main.yaml").read_text()
    assert karat("suite", "-f", "evals/main.yaml").code == 0


def test_init_leaves_room_for_a_retriever_where_there_is_only_gold(
    karat: Karat, folder: Path
) -> None:
    for path in folder.iterdir():
        if path.name not in {"gold.qrels", "queries.jsonl"}:
            path.unlink()
    assert karat("init").code == 0
    text = (folder / "karat.yaml").read_text()
    assert "queries: queries.jsonl\n" in text
    assert "      mine: my.module:search\n" in text
    assert "    # gates:\n    #   fail_under: {recall@5: 0.8}\n" in text
    assert "karat.yaml:8: my.module:search: cannot import my" in karat("suite").err


def test_init_says_that_it_found_nothing(karat: Karat, folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    done = karat("init")
    assert done.code == 2
    assert "found neither samples nor a run and its gold here" in done.err
    assert not [*folder.iterdir()]


def test_init_writes_a_suite_also_where_nothing_can_be_scored(
    karat: Karat, folder: Path
) -> None:
    for path in folder.iterdir():
        path.unlink()
    (folder / "a.run").write_text("q1 Q0 x 1 1.0 a\n")
    (folder / "gold.qrels").write_text("q1 0 d1 1\n")
    done = karat("init")
    assert done.code == 0
    assert "not scored yet, so no gate is on: a.run: no gold id occurs" in done.err
    assert "    # gates:\n" in (folder / "karat.yaml").read_text()


COMPARED = "    baseline: dense\n    gates: {max_drop: {ndcg@10: 0.02}}\n"


def test_a_pull_request_is_told_verdict_queries_and_page(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "karat.yaml").write_text(SUITE + COMPARED)
    assert karat("suite", "--github").code == 1
    (here,) = results(folder)
    text = (here / "comment.md").read_text()
    assert text.startswith("<!-- karat main -->\n\n**karat: fail; worse on")
    assert re.search(r"\| keyword \| .* \| fail \| ndcg@10 dropped by 0.1364", text)
    assert "| recall@5 | worse | 0.7714 | 0.5556 |" in text
    assert "**queries that changed most by ndcg@10, losses first" in text
    assert "| q37 | who can I talk to | 1.0000 | 0.0000 |" in text
    page = f"karat-results/{here.name}/report.html"
    assert text.endswith(f"\n[All queries]({page})\n")
    for name, value in {
        "SERVER_URL": "https://example.org",
        "REPOSITORY": "a/b",
        "RUN_ID": "7",
        "STEP_SUMMARY": "summary.md",
        "OUTPUT": "outputs.txt",
    }.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    done = karat("suite", "--github")
    assert "::error title=karat::keyword: ndcg@10 dropped" in done.out
    made = f"karat-results/{results(folder)[1].name}"
    text = (folder / made / "comment.md").read_text()
    assert "[All queries](https://example.org/a/b/actions/runs/7#artifacts)" in text
    assert (folder / "summary.md").read_text() == text
    outputs = f"folder={made}\ncomment={made}/comment.md\n"
    assert (folder / "outputs.txt").read_text() == outputs


GH = """\
#!/usr/bin/env bash
echo "$*" >> calls.txt
[ "$2" != --paginate ] || cat earlier.txt
"""


@pytest.mark.skipif(os.name == "nt", reason="the action runs bash")
@pytest.mark.parametrize("earlier", ["", "41\n42\n"])
def test_the_action_comments_once_and_then_replaces_it(
    folder: Path, earlier: str
) -> None:
    (folder / "karat.yaml").write_text(SUITE + COMPARED)
    (folder / "earlier.txt").write_text(earlier)
    (folder / "bin").mkdir()
    (folder / "bin/gh").write_text(GH)
    (folder / "bin/gh").chmod(0o755)
    action = decode_yaml(Path(__file__).parents[2].joinpath("action.yml").read_text())
    _, suite, _, comment = action["runs"]["steps"]
    known = {
        "inputs.suite": "main",
        "inputs.file": "karat.yaml",
        "inputs.token": "t",
        "github.repository": "a/b",
        "github.event.pull_request.number": "5",
    }

    def run(step: dict[str, Any]) -> int:
        variables = {
            name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)
            for name, text in step["env"].items()
        }
        path = os.pathsep.join(["bin", str(Path(sys.executable).parent)])
        own = {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "GITHUB_OUTPUT": "o"}
        command = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
        env = {**os.environ, **own, **variables}
        return subprocess.run(command, env=env, check=False).returncode

    assert run(suite) == 1
    for line in (folder / "o").read_text().splitlines():
        name, _, value = line.partition("=")
        known[f"steps.suite.outputs.{name}"] = value
    assert run(comment) == 0
    listed, posted = (folder / "calls.txt").read_text().splitlines()
    assert listed.startswith("api --paginate repos/a/b/issues/5/comments --jq ")
    body = f"--field body=@{known['steps.suite.outputs.comment']}"
    where = "repos/a/b/issues/5/comments"
    if earlier:
        where = "--method PATCH repos/a/b/issues/comments/41"
    assert posted == f"api --silent {where} {body}"


SEARCH = """\
import json
from pathlib import Path

LINES = map(json.loads, Path("corpus.jsonl").read_text().splitlines())
TEXTS = {line["id"]: line["text"].lower() for line in LINES}
asked = []


def search(query, k=20):
    asked.append(query)
    words = query.lower().split()
    return sorted(TEXTS, key=lambda name: -sum(w in TEXTS[name] for w in words))[:k]


def build(least):
    def few(query):
        words = [word for word in query.lower().split() if len(word) >= least]
        return search(" ".join(words))

    return few
"""

LIVE = """\
suites:
  live:
    gold: gold.qrels
    queries: queries.jsonl
    metrics: [ndcg@10, recall@5]
    retrievers:
      words: live_search:search
      kept: {retriever: "live_search:search", version: "1", k: 30}
"""


@pytest.fixture(autouse=True)
def _no_search() -> Iterator[None]:
    yield
    sys.modules.pop("live_search", None)


def test_a_suite_asks_retrievers(karat: Karat, folder: Path) -> None:
    (folder / "live_search.py").write_text(SEARCH)
    (folder / "karat.yaml").write_text(LIVE)
    done = karat("suite")
    assert done.code == 0, done.err
    assert "p50 (ms)" in done.out
    search = sys.modules["live_search"].search
    run = library.retrieve(search, "queries.jsonl", 20, cache=None)
    direct = library.evaluate(run, gold="gold.qrels", metrics=["ndcg@10", "recall@5"])
    (made,) = results(folder)
    for name in ("words", "kept"):
        saved = library.load(made / "evaluation.json", run=name)
        assert saved.means["ndcg@10"] == direct.means["ndcg@10"]
    assert "<svg" in (made / "report.html").read_text()
    # Only what has a version is trusted to be the same.
    second = karat("suite")
    assert "not scored again, since nothing changed: kept\n" in second.err
    asked = "queries were asked by an earlier run of the suite, under the same version"
    assert f"cached: {asked}: kept 40" in second.out
    served = library.load(results(folder)[1] / "evaluation.json", run="kept")
    assert "cached" in {notice.kind for notice in served.notices}


def test_other_code_scores_again(folder: Path) -> None:
    (folder / "karat.yaml").write_text(SUITE)
    package = Path(library.__file__).parent
    shutil.copytree(package, folder / "site" / "karat")
    plugin = folder / "site" / "half.py"
    plugin.write_text("def half():\n    return 0.5\n")
    about = folder / "site" / "half-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: half\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[karat.metrics]\nhalf = half:half\n")
    formula = folder / "site" / "karat" / "metrics" / "ranking.py"

    def is_scored_again() -> bool:
        done = subprocess.run(
            [sys.executable, "-m", "karat", "suite"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder / "site")},
            capture_output=True,
            text=True,
            check=True,
        )
        return "not scored again" not in done.stderr

    assert [is_scored_again() for _ in range(2)] == [True, False]
    for changed in (formula, plugin):
        changed.write_text(changed.read_text() + "\n# Another formula.\n")
        assert [is_scored_again() for _ in range(2)] == [True, False]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "words: live_search:search",
            "words: live_search:serach",
            "karat.yaml:7: unknown function of live_search 'serach'; did you mean",
        ),
        (
            "words: live_search:search",
            "words: live_serach:search",
            "karat.yaml:7: live_serach:search: cannot import live_serach: Module",
        ),
        ("    queries: queries.jsonl\n", "", "a live retriever needs queries"),
    ],
)
def test_a_retriever_that_is_not_there_is_told_with_its_line(
    karat: Karat, folder: Path, old: str, new: str, sentence: str
) -> None:
    (folder / "live_search.py").write_text(SEARCH)
    (folder / "karat.yaml").write_text(LIVE.replace(old, new))
    done = karat("suite")
    assert done.code == 2
    assert sentence in done.err


def test_a_suite_may_be_a_sweep(karat: Karat, folder: Path) -> None:
    (folder / "live_search.py").write_text(SEARCH)
    head = LIVE.partition("    retrievers")[0]
    sweep = (
        "    sweep:\n      factory: live_search:build\n      grid: {least: [1, 4]}\n"
    )
    (folder / "karat.yaml").write_text(head + sweep)
    done = karat("suite")
    assert done.code == 0, done.err
    assert "2 settings, 40 queries" in done.out
    (made,) = results(folder)
    assert {path.name for path in made.iterdir()} == {"sweep.json", "sweep.html"}
    # Nobody but its owner knows whether it is the same retriever.
    assert "earlier" not in karat("suite").out
    (folder / "karat.yaml").write_text(f'{head}{sweep}      version: "1"\n')
    assert "earlier" not in karat("suite").out
    assert "kept from an earlier sweep: 2 settings" in karat("suite").out
    first, second = (library.Sweep.load(p / "sweep.json") for p in results(folder)[2:])
    assert first == second
    assert "earlier" not in karat("suite", "--fresh").out
    (folder / "karat.yaml").write_text(head + sweep.replace("least", "leest"))
    done = karat("suite")
    assert "karat.yaml:8: unknown parameter of the factory 'leest'; did you" in done.err
    (folder / "karat.yaml").write_text(
        head + sweep + "    gates: {fail_under: {recall@5: 0.5}}\n"
    )
    assert (
        "karat.yaml:9: gates are for retrievers, and there are none"
        in karat("suite").err
    )


class _Service(BaseHTTPRequestHandler):
    """Answers with every article that holds a word of the question."""

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = sys.modules["live_search"].search(question["q"], question["size"])
        answer = json.dumps({"hits": [{"doc": name} for name in found]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_suite_asks_an_address(karat: Karat, folder: Path) -> None:
    (folder / "live_search.py").write_text(SEARCH)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Service)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/search"
    (folder / "karat.yaml").write_text(
        LIVE.replace(
            '      kept: {retriever: "live_search:search", version: "1", k: 30}\n',
            f"      service:\n        retriever: {address}\n"
            '        body: {q: "{query}", size: "{k}"}\n'
            "        map: {retrieved: hits, document: doc}\n",
        )
    )
    try:
        done = karat("suite")
    finally:
        server.shutdown()
        server.server_close()
    assert done.code == 0, done.err
    (made,) = results(folder)
    saved = made / "evaluation.json"
    words, service = (library.load(saved, run=run) for run in ("words", "service"))
    assert service.means == words.means
