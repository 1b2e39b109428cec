"""Readers that leave, full disks and kills: no file is lost, no exit code changes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from karat import load
from karat.cli import COMMANDS
from karat.history import Store
from tests.cli.conftest import EXAMPLE
from tests.llm.fault_server import FaultServer, completion

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full"),
]

OLD = "# what was there before\n"
GATE = ("--fail-under", "ndcg@10=0.99")
SEARCH = "def search(query, k):\n    return ['account-01', 'account-02']\n"
GRADE = '{"grade": 2, "reason": "by script"}'
SUITE = """\
suites:
  main:
    gold: gold.qrels
    retrievers: {dense: dense.run}
    metrics: [ndcg@10]
    gates: {fail_under: {ndcg@10: 0.99}}
"""
LABEL = {"query": "q01", "document": "account-01", "grade": 2, "at": "2026-11-15"}

# The command, its exit code, and the files that it writes over what was there.
WRITERS: dict[str, tuple[list[str], int, list[str]]] = {
    "evaluate": (
        ["evaluate", "dense.run", "-g", "gold.qrels", *GATE],
        1,
        ["o.json", "o.html", "o.csv", "o.md", "o.jsonl", "o.txt", "o.junit.xml"],
    ),
    "compare": (
        ["compare", "keyword.run", "dense.run", "-g", "gold.qrels", *GATE],
        1,
        ["c.json", "c.html", "c.tex", "c.junit.xml"],
    ),
    "diagnose": (["diagnose", "samples.jsonl"], 0, ["d.html", "d.json", "d.md"]),
    "doctor": (
        ["doctor", "gold.qrels", "--corpus", "corpus.jsonl", "--fix", "fix.qrels"],
        0,
        ["f.json", "f.md"],
    ),
    "plot": (["plot", "dense.run", "-g", "gold.qrels"], 0, ["p.svg"]),
    "convert": (["convert", "dense.run", "r.jsonl"], 0, []),
    "fuse": (
        ["fuse", "keyword.run", "dense.run", "-g", "gold.qrels"],
        0,
        ["h.run.gz"],
    ),
    "retrieve": (
        ["retrieve", "mine:search", "--queries", "queries.jsonl"],
        0,
        ["r.run"],
    ),
    "label": (
        ["label", "apply", "labels.jsonl", "-g", "gold.qrels"],
        0,
        ["labelled.qrels"],
    ),
    "judge": (
        [
            *("judge", "two.run", "--queries", "queries.jsonl"),
            *("--corpus", "corpus.jsonl", "--model", "tiny", "-k", "1"),
        ],
        0,
        ["graded.qrels", "judged.html"],
    ),
    "agree": (
        ["agree", "keyword.run", "dense.run"],
        0,
        ["a.html", "a.csv", "a.json", "a.md", "a.txt"],
    ),
    "pool": (["pool", "keyword.run", "dense.run"], 0, ["sheet.csv", "pool.qrels"]),
    "push": (["push", "saved.json", "--to", "store.sqlite"], 0, []),
    "history": (["history", "pushed.sqlite"], 0, ["newest.json"]),
    "baseline": (["baseline", "set", "saved.json", "--commit"], 0, []),
    "init": (["init"], 0, []),
    "suite": (["suite", "-f", "suite.yaml"], 1, []),
    "validate": (["validate", "dense.run", "bad.run"], 2, []),
    "demo": (["demo", "--copy", "copy"], 0, []),
    "trec-eval": (["trec-eval", "gold.qrels", "dense.run"], 0, []),
    "matchers": (["matchers"], 0, []),
    "metrics": (["metrics"], 0, []),
    "cache": (["cache"], 0, []),
}
SILENT = {"convert", "plot", "retrieve", "label", "pool"}
ALSO = {
    "doctor": ["fix.qrels"],
    "convert": ["r.jsonl"],
    "baseline": ["karat-baseline.json"],
    "init": ["karat.yaml"],
}


def test_every_command_is_here() -> None:
    # A server ends when it is told to; questions are killed in tests/generating.
    assert {*WRITERS} == {*COMMANDS} - {"generate", "serve"}


@pytest.fixture(params=WRITERS)
def written(
    request: pytest.FixtureRequest, tmp_path: Path
) -> tuple[str, list[str], dict[str, Any]]:
    """A command with the files it writes, and how it ended in every way."""
    arguments, _, targets = WRITERS[request.param]
    folder = tmp_path / "files"
    shutil.copytree(EXAMPLE, folder)
    for name, text in {
        "mine.py": SEARCH,
        "suite.yaml": SUITE,
        "labels.jsonl": json.dumps(LABEL),
        "bad.run": "q1 Q0 d1 1 high tag\n",
        "two.run": "q01 Q0 account-01 1 2 tag\nq02 Q0 account-02 1 1 tag\n",
    }.items():
        (folder / name).write_text(text)
    if request.param in {"baseline", "push", "history"}:
        save(folder)
    if request.param == "history":
        with Store(folder / "pushed.sqlite") as store:
            store.push(load(folder / "saved.json"))
    files = [*targets, *ALSO.get(request.param, [])]
    for name in files:
        (folder / name).write_text(OLD)
    outputs = [word for name in targets for word in ("-o", name)]
    environment = {k: v for k, v in os.environ.items() if k[:5] != "KARAT"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "OPENAI_API_KEY": "none"}
    with FaultServer(answer=lambda _: (200, completion(GRADE))) as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.cli.interrupted"),
                *(str(folder), str(tmp_path / "work"), *arguments, *outputs),
            ],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
            env={**environment, "OPENAI_BASE_URL": server.url},
        )
    return request.param, files, dict(map(json.loads, done.stdout.splitlines()))


def save(folder: Path) -> None:
    command = [sys.executable, "-m", "karat", "evaluate", "dense.run", "-g"]
    subprocess.run(
        [*command, "gold.qrels", "-o", "saved.json"],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def test_no_disturbance_costs_a_file_or_changes_an_exit_code(
    written: tuple[str, list[str], dict[str, Any]],
) -> None:
    command, files, ways = written
    code = WRITERS[command][1]
    whole = ways.pop("whole")
    assert whole["code"] == code, whole["err"]
    new = {name: whole["files"][name] for name in files}
    assert OLD not in new.values()
    # Folders of a suite are named by the time.
    sizes = {len(text) for text in whole["files"].values()}
    for way, done in ways.items():
        assert "Traceback" not in done["err"], (way, done["err"])
        now = {name: done["files"][name] for name in files}
        assert all(text in (OLD, new[name]) for name, text in now.items()), way
        others = {n: len(t) for n, t in done["files"].items() if ".sqlite" not in n}
        assert all(n in files or size in sizes for n, size in others.items()), way
        if way.startswith("killed"):
            assert done["code"] in (-9, -25, code), way
        elif way.startswith("full disk"):
            assert done["code"] == (2 if files else done["code"]), way
            assert not files or "cannot " in done["err"], (way, done["err"])
        else:
            expected = 2 if way == "full output" and command not in SILENT else code
            assert (done["code"], now) == (expected, new), (way, done["err"])
