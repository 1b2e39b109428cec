"""Fifty clients at once: no error, nothing lost, every column right at the end."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

import karat
from tests.web.conftest import NEW, OLD, Served, result_of

CLIENTS = 50
SECONDS = float(os.environ.get("KARAT_LOAD_SECONDS", "8"))


@pytest.mark.slow
def test_fifty_clients_lose_nothing(serve: Callable[[], Served]) -> None:
    served = serve()
    # Each has a token of its own, so that uploads are not too many for any.
    with karat.history.open(served.path) as store:
        tokens = [store.tokens.add(f"c{n}", "admin") for n in range(CLIENTS)]
    command = [sys.executable, "-m", "karat", "serve", str(served.path), "--port", "0"]
    given: list[tuple[int, int]] = []
    pushed: list[int] = []
    wrong: list[object] = []

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        netloc = urlsplit(server.stdout.readline()).netloc
        end = time.monotonic() + SECONDS

        def work(n: int) -> None:
            link = HTTPConnection(netloc, timeout=60)

            def ask(method: str, address: str, value: object = None) -> bytes:
                body = None if value is None else json.dumps(value)
                headers = {"Authorization": f"Bearer {tokens[n]}"}
                link.request(method, address, body, headers)
                answer = link.getresponse()
                content = answer.read()
                if answer.status not in (200, 201):
                    wrong.append((address, answer.status, content[:200]))
                return content

            turn = 0
            while time.monotonic() < end:
                query = f"q{(n + turn) % 3 + 1}"
                if turn % 5 == 0:
                    own = {**NEW, "q1": ["b", "c", "a"][: turn % 3 + 1]}
                    run = result_of(f"{n}-{turn}", own)
                    said = json.loads(ask("POST", "/api/p/help/runs", run.to_dict()))
                    pushed.append(said["run"])
                grade = (n + turn) % 4
                label = {"query": query, "document": "bcd"[n % 3], "grade": grade}
                done = json.loads(ask("POST", "/api/p/help/labels", label))
                given.append((done["labels"][0], done["version"]))
                ask("GET", f"/p/help/q/{query}")
                ask("GET", ("/p/help", "/p/help/label", "/p/help/gold")[turn % 3])
                turn += 1
            link.close()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.terminate()

    assert not wrong
    assert len(given) >= CLIENTS
    # No two labels made the same version of the gold.
    assert len({version for _, version in given}) == len(given)
    _check(served.path, {label for label, _ in given}, pushed)


def _check(path: Path, given: set[int], pushed: list[int]) -> None:
    """All is there, and every column is that of a fresh evaluation."""
    with karat.history.open(path) as store:
        assert {label.id for label in store.labels("help")} == given
        runs = {run.id: run for run in store.runs("help")}
        assert runs.keys() == {1, 2, *pushed}
        gold = store.gold("help")
        for number, run in runs.items():
            kept = store.evaluation(number).kept
            rankings = {query: [one.id for one in kept.get(query, ())] for query in OLD}
            fresh = karat.evaluate(rankings, gold, metrics=["ndcg@10", "rr@10"])
            for metric, column in store.scores(number).items():
                np.testing.assert_array_equal(column.scores, fresh[metric].scores)
            assert run.means == fresh.means
