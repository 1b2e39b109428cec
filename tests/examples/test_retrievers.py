"""The examples with real retrievers run: each in a process of its own, offline."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import karat
from karat.extend import decode_yaml

SCRIPTS = Path(__file__).parents[2] / "examples" / "retrievers"
# Which of them need a library, and what their runs are called.
NAMES = {
    "bm25s_index.py": "bm25s",
    "haystack_pipeline.py": "haystack",
    "langchain_store.py": "langchain",
    "llama_index_store.py": "llama_index",
    "qdrant_collection.py": "qdrant",
}
SCORES = (
    "{'ndcg@10': 1.0, 'rr': 1.0, 'recall@5': 1.0, 'precision@5': 0.2, 'hit@5': 1.0}"
)
WITHOUT = {"opensearch_responses.py", "test_with_pytest.py"}
SRC = Path(karat.__file__).parents[1]
OFFLINE = {
    "ANONYMIZED_TELEMETRY": "False",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "PYTHONPATH": str(SRC),
    "PYTHONWARNINGS": "ignore",
}


def run(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        arguments,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            **OFFLINE,
            "PATH": f"{Path(sys.executable).parent}:/usr/bin",
        },
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tested() -> None:
    assert {path.name for path in SCRIPTS.glob("*.py")} == {*NAMES} | WITHOUT


@pytest.mark.frameworks
@pytest.mark.parametrize("script", NAMES)
def test_a_framework_is_evaluated(script: str, tmp_path: Path) -> None:
    printed = run(sys.executable, str(SCRIPTS / script), folder=tmp_path)
    assert printed.startswith(f"{NAMES[script]} {SCORES}\ntimed: True\n")


def test_recorded_responses_are_evaluated(tmp_path: Path) -> None:
    path = SCRIPTS / "opensearch_responses.py"
    printed = run(sys.executable, str(path), folder=tmp_path)
    assert printed == f"opensearch {SCORES}\ntimed: True\n"


def test_the_test_of_a_retriever_passes(tmp_path: Path) -> None:
    path = SCRIPTS / "test_with_pytest.py"
    plain = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--rootdir=.")
    printed = run(sys.executable, "-m", "pytest", *plain, str(path), folder=tmp_path)
    assert "1 passed" in printed


def test_the_commands_of_the_workflow_run(tmp_path: Path) -> None:
    workflow = decode_yaml((SCRIPTS / "github-actions.yml").read_text())
    steps = [step.get("run", "") for step in workflow["jobs"]["retrieval"]["steps"]]
    commands = [line.split() for line in steps if line.startswith("karat ")]
    assert [words[1] for words in commands] == ["retrieve", "evaluate"]
    (tmp_path / "my_search.py").write_text(
        "def search(query, k):\n    return [query]\n"
    )
    for name, field in (("queries", "query"), ("gold", "relevant")):
        value = "d1" if field == "query" else ["d1"]
        line = json.dumps({"id": "q1", field: value})
        (tmp_path / f"{name}.jsonl").write_text(line + "\n")
    for words in commands:
        run(sys.executable, "-m", *words, folder=tmp_path)
    assert "recall@5" in (tmp_path / "karat.junit.xml").read_text()
