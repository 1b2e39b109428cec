"""Thousands of calls through a server that fails a third of the time."""

import json
from pathlib import Path
from typing import Any

import pytest

from karat.extend import Settings
from karat.llm.openai_client import OpenAIClient
from tests.llm.fault_server import FAULTS, FaultServer
from tests.llm.judges import Scripted, jobs, right, run_jobs_sync

ITEMS = 2000
"""Rows, each of which takes a call, or two where a reply must be repaired."""


def settings(folder: Path, **changes: object) -> Settings:
    plain = {
        "journal": folder / "journal.sqlite",
        "concurrency": 32,
        "timeout": 4.0,
        "max_attempts": 12,
        "first_wait": 0.01,
        "longest_wait": 0.05,
    }
    return Settings(**{**plain, **changes})  # type: ignore[arg-type]


@pytest.mark.slow
def test_two_thousand_items_survive_a_server_that_fails_a_third_of_the_time(
    tmp_path: Path,
) -> None:
    told: list[Any] = []
    with FaultServer(rate=0.3) as server:
        client = OpenAIClient("tiny", base_url=server.url)
        found = run_jobs_sync(
            jobs(ITEMS), client, settings(tmp_path, progress=told.append)
        )
        calls = server.asked.total()
        again = run_jobs_sync(jobs(ITEMS), client, settings(tmp_path))
        assert server.asked.total() == calls
    calm = run_jobs_sync(jobs(ITEMS), Scripted(), settings(tmp_path))
    assert found == right(ITEMS)
    assert json.dumps(found) == json.dumps(calm) == json.dumps(again)
    last = told[-1]
    assert (last.done, last.total, last.failed) == (ITEMS, ITEMS, 0)
    # A call may be lost before it reaches the server.
    assert last.calls >= calls > ITEMS * 1.25
    assert last.prompt_tokens >= 20 * ITEMS


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone_loses_nothing(fault: str, tmp_path: Path) -> None:
    with FaultServer(rate=0.5, faults=(fault,)) as server:
        client = OpenAIClient("tiny", base_url=server.url)
        found = run_jobs_sync(jobs(12), client, settings(tmp_path, timeout=0.4))
        assert server.met[fault] > 0
    assert found == right(12)
