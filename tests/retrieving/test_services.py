"""Retrievers behind an address, on the command line, and runs that are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from click.testing import CliRunner

import karat
from karat.cli import karat as command
from karat.errors import Refused
from karat.extend import DataError, Settings, UsageError

QUERIES = {"q1": "rye", "q2": 'oats "and" {k}'}
QUICK = Settings(first_wait=0.001, longest_wait=0.01)
SRC = Path(karat.__file__).parents[1]


class Service(BaseHTTPRequestHandler):
    """Answers as Elasticsearch does; stumbles over the first call of each query."""

    seen: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append({"key": self.headers.get("X-Key"), **body})
        stumbles = sum(one["q"] == body["q"] for one in self.seen) == 1
        self.send_response(503 if stumbles else 200)
        self.end_headers()
        hits = [{"_id": f"{body['q']}-{n}", "_score": 9 - n} for n in range(body["k"])]
        self.wfile.write(json.dumps({"hits": {"hits": hits}}).encode())

    def do_GET(self) -> None:
        self.send_response(404 if "nowhere" in self.path else 200)
        self.end_headers()
        size = 17 << 20 if "huge" in self.path else 0
        with suppress(OSError):
            self.wfile.write(b" " * size)
            self.wfile.write(json.dumps({"found": [{"uid": self.path}]}).encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def service() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    seen: list[dict[str, Any]] = []
    kind = type("Seen", (Service,), {"seen": seen})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_service_is_asked_by_http(
    service: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, seen = service
    monkeypatch.setenv("SEARCH_KEY", "k-1")
    run = karat.retrieve(
        f"{url}/search",
        QUERIES,
        k=2,
        options={"q": "{query}", "k": "{k}"},
        headers={"X-Key": "$SEARCH_KEY"},
        cache=None,
        settings=QUICK,
    )
    assert run.failures == {}
    assert run.sample_ids() == ["rye-0", f"{QUERIES['q2']}-0"]
    assert {one["key"] for one in seen} == {"k-1"}
    assert len(seen) == 4


def test_a_service_is_asked_by_its_address(
    service: tuple[str, list[dict[str, Any]]],
) -> None:
    mapping = {"retrieved": "found", "document": "uid"}
    url = f"{service[0]}/search?q={{query}}"
    run = karat.retrieve(url, ["a b"], mapping=mapping, cache=None)
    assert run.sample_ids() == ["/search?q=a+b"]
    with pytest.raises(Refused, match="status 404"):
        karat.retrieve(f"{service[0]}/nowhere?q={{query}}", ["a"], cache=None)
    with pytest.raises(UsageError, match="nothing sends the query"):
        karat.retrieve(service[0], ["a"], cache=None)
    with pytest.raises(UsageError, match="no user and no password"):
        karat.retrieve("http://me:secret@127.0.0.1/?q={query}", ["a"], cache=None)
    with pytest.raises(Refused, match="is no server's address"):
        karat.retrieve("http://xn--a/?q={query}", ["a"], cache=None)
    with pytest.raises(UsageError, match="is an address such as"):
        karat.retrieve("my.module:search", ["a"], cache=None)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("what is C#?", "what%20is%20C%23%3F"),
        ("a/../../admin", "a%2F%2E%2E%2F%2E%2E%2Fadmin"),
        ("..", "%2E%2E"),
        ("100% of {k} & more", "100%25%20of%20%7Bk%7D%20%26%20more"),
        ("größte", "gr%C3%B6%C3%9Fte"),
    ],
)
def test_a_query_is_quoted_in_the_address(
    service: tuple[str, list[dict[str, Any]]], query: str, path: str
) -> None:
    mapping = {"retrieved": "found", "document": "uid"}
    run = karat.retrieve(f"{service[0]}/s/{{query}}", [query], mapping=mapping)
    assert run.sample_ids() == [f"/s/{path}"]
    url = f"{service[0]}/s?f=a&f=b&q={{query}}&n={{k}}"
    run = karat.retrieve(url, [query], 3, mapping=mapping)
    (name,) = run.sample_ids()
    sent = parse_qsl(urlsplit(name).query)
    assert sent == [("f", "a"), ("f", "b"), ("q", query), ("n", "3")]


def test_an_answer_of_more_than_16_mb_is_refused(
    service: tuple[str, list[dict[str, Any]]],
) -> None:
    with pytest.raises(DataError, match="answered with more than 16 MB"):
        karat.retrieve(f"{service[0]}/huge?q={{query}}", ["a"])


SEARCH = """
from pathlib import Path
import time

def search(query, k=5):
    with Path("asked.txt").open("a") as log:
        log.write(query + "\\n")
    time.sleep(0.002)
    if query == "bad":
        raise ValueError("no shard")
    return [{"id": f"d{n}", "text": "A text.", "score": 1 - n / 10} for n in range(k)]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_search.py").write_text(SEARCH)
    lines = [{"id": f"q{n}", "query": f"question {n}"} for n in range(4)]
    lines.append({"id": "q9", "query": "bad"})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "queries.jsonl").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_search", raising=False)
    return tmp_path


def test_the_command_writes_a_run_with_latency_and_failures(folder: Path) -> None:
    arguments = ["retrieve", "my_search:search", "--queries", "queries.jsonl"]
    done = CliRunner().invoke(command, [*arguments, "-k", "3", "-o", "run.jsonl"])
    assert done.exit_code == 3
    assert "p95 (ms)" in done.output
    assert "q9: python:my_search.search raised ValueError: no shard" in done.output
    allowed = [*arguments, "-o", "run.trec", "--max-failures", "1"]
    done = CliRunner().invoke(command, allowed)
    assert done.exit_code == 0
    assert "holds no latency or failures" in done.output
    run = karat.read_run(folder / "run.jsonl")
    assert [*run.failures] == ["q9"]
    assert run.latency is not None
    assert run.latency.n == 3
    gold = {q: ["d1"] for q in ("q0", "q1", "q9")}
    result = karat.evaluate(run, gold=gold, metrics="rr")
    assert result["rr"].mean == 0.5
    assert result["rr"].failed == 1
    assert result.latency is not None
    text = (folder / "run.jsonl").read_text()
    (folder / "again.json").write_text("")
    done = CliRunner().invoke(command, ["convert", "run.jsonl", "again.json"])
    assert karat.read_run(folder / "again.json").failures == run.failures
    assert '"failure": "python' in text


@pytest.mark.parametrize("spelled", ["--journal", "--cache"])
def test_answers_are_kept_where_the_command_says(folder: Path, spelled: str) -> None:
    arguments = ["retrieve", "my_search:search", "--queries", "queries.jsonl"]
    arguments += ["-o", "run.jsonl", "--index-version", "1", spelled, "kept.sqlite"]
    assert CliRunner().invoke(command, arguments).exit_code == 3
    assert (folder / "kept.sqlite").is_file()
    assert not (folder / ".karat").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["my_search:serch"], "did you mean 'search'?"),
        (["my_serch:search"], "cannot import my_serch: Module"),
        (["broken:search"], "broken:search: cannot import broken: ZeroDivisionError"),
        (["my_search"], "is spelled MODULE:NAME"),
        (["my_search.py:search"], "did you mean my_search:search?"),
        ([], "name one retriever"),
        (["http://127.0.0.1:9/s"], "is asked with --http http://127.0.0.1:9/s"),
        (["--http", "http://127.0.0.1:9/", "--body", "{"], "--body must be JSON"),
    ],
)
def test_the_command_says_what_is_wrong(
    folder: Path, arguments: list[str], sentence: str
) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    shared = ["--queries", str(folder / "queries.jsonl"), "-o", "run.jsonl"]
    done = subprocess.run(
        [sys.executable, "-m", "karat", "retrieve", *arguments, *shared],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )
    assert done.returncode == 2
    assert sentence in done.stderr


@pytest.mark.slow
def test_a_run_that_is_killed_asks_no_query_twice_but_those_in_flight(
    folder: Path,
) -> None:
    kills, concurrency = int(os.environ.get("KARAT_KILLS", "10")), 4
    total = 150 * kills
    lines = [{"id": f"q{n}", "query": f"question {n}"} for n in range(total)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "queries.jsonl").write_text(text)
    arguments = [sys.executable, "-m", "karat", "retrieve", "my_search:search"]
    arguments += ["--queries", "queries.jsonl", "-o", "run.jsonl"]
    arguments += ["--index-version", "1"]
    arguments += ["--concurrency", str(concurrency)]
    log = folder / "asked.txt"
    log.touch()
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    for _ in range(kills):
        before = log.stat().st_size
        process = subprocess.Popen(
            arguments, env=environment, stderr=subprocess.DEVNULL
        )
        while log.stat().st_size < before + 500 and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(arguments, env=environment, check=True, capture_output=True)
    asked = log.read_text().splitlines()
    assert {*asked} == {line["query"] for line in lines}
    assert len(asked) - len({*asked}) <= kills * concurrency
