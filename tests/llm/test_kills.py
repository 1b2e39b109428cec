"""A run that is killed again and again ends as if it never had been.

`KARAT_KILLS=100 pytest tests/llm/test_kills.py` is what `make soak` runs.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.llm.fault_server import FaultServer
from tests.llm.judges import right
from tests.llm.worker import CONCURRENCY

KILLS = int(os.environ.get("KARAT_KILLS", "10"))
ROWS = 60 * KILLS
DELAY = 0.02


def start(url: str, folder: Path, rows: int = ROWS) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.llm.worker", url]
    places = [str(folder / "journal.sqlite"), str(folder / "out.json"), str(rows)]
    return subprocess.Popen(
        [*command, *places],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )


def asks(row: int) -> str:
    return f"grade {row} {row + 1_000_000}"


@pytest.mark.slow
def test_no_kill_loses_a_judgement_or_pays_for_it_twice(tmp_path: Path) -> None:
    chance = random.Random(int(time.time()))
    held: dict[int, int] = {}
    with FaultServer(delay=DELAY) as server:
        for _ in range(KILLS):
            worker = start(server.url, tmp_path)
            assert worker.stdout is not None
            printed = worker.stdout.readline()
            time.sleep(chance.uniform(0, 0.12))
            worker.send_signal(signal.SIGKILL)
            printed += worker.stdout.read()
            worker.wait()
            worker.stdout.close()
            # A last line without its end was not printed in full.
            for line in printed.split("\n")[:-1]:
                held.setdefault(int(line), server.paid[asks(int(line))])
        killed_with = len(held)
        final = start(server.url, tmp_path)
        out, _ = final.communicate()
        assert final.returncode == 0
        assert all(server.paid[asks(row)] == paid for row, paid in held.items())
        assert server.paid.total() <= ROWS + KILLS * CONCURRENCY
        assert all(server.paid[asks(row)] for row in range(ROWS))
    assert 0 < killed_with < ROWS
    assert len(out.splitlines()) == ROWS
    expected = json.dumps([{str(k): v for k, v in row.items()} for row in right(ROWS)])
    assert (tmp_path / "out.json").read_text("utf-8") == expected
    database = sqlite3.connect(tmp_path / "journal.sqlite")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


@pytest.mark.slow
def test_two_processes_on_one_journal_pay_for_each_prompt_once(tmp_path: Path) -> None:
    with FaultServer(delay=DELAY) as server:
        folders = [tmp_path / "one", tmp_path / "two", tmp_path / "three"]
        for folder in folders:
            folder.mkdir()
            (folder / "journal.sqlite").symlink_to(tmp_path / "journal.sqlite")
        workers = [start(server.url, folder, rows=100) for folder in folders]
        # One that dies while others wait for its reply keeps nobody waiting.
        assert workers[0].stdout is not None
        workers[0].stdout.readline()
        workers[0].kill()
        workers[0].communicate()
        lines = [len(worker.communicate()[0].splitlines()) for worker in workers[1:]]
        assert [worker.returncode for worker in workers[1:]] == [0, 0]
        assert lines == [100, 100]
        assert set(server.paid) == {asks(row) for row in range(100)}
        assert server.paid.total() <= 100 + CONCURRENCY
    outs = [(folder / "out.json").read_text("utf-8") for folder in folders[1:]]
    assert outs[0] == outs[1]


@pytest.mark.slow
def test_control_c_keeps_what_was_answered(tmp_path: Path) -> None:
    with FaultServer(delay=DELAY) as server:
        worker = start(server.url, tmp_path)
        assert worker.stdout is not None
        worker.stdout.readline()
        worker.send_signal(signal.SIGINT)
        worker.communicate()
        assert worker.returncode != 0
        # Every call that was answered in full before the interrupt is in the journal,
        # but for those that were under way.
        before = server.paid.total()
        final = start(server.url, tmp_path)
        final.communicate()
        assert final.returncode == 0
        assert server.paid.total() <= ROWS + CONCURRENCY
        assert before > 0
