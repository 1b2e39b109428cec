"""A function's replies are for other processes only under a version."""

import json
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.extend import Claims, FunctionClient, Settings

REPLY = json.dumps(
    {"verdicts": [{"claim": 1, "alone": [], "parts": [], "complete": False}]}
)


def test_a_function_is_known_by_its_version_and_a_name_only_names() -> None:
    def reply(_: str) -> str:
        return REPLY

    unknown = [FunctionClient(reply), FunctionClient(reply), FunctionClient(reply, "m")]
    assert not any(client.persistent for client in unknown)
    assert len({client.parameters["version"] for client in unknown}) == 3
    known = FunctionClient(reply, "m", {"seed": 1}, version="1")
    assert known.persistent
    assert known.parameters == {"seed": 1, "version": "1"}
    assert known.model == "m"


def test_replies_of_a_function_are_served_under_a_version_only(tmp_path: Path) -> None:
    calls: list[str] = []

    def reply(prompt: str) -> str:
        calls.append(prompt)
        return REPLY

    def judged(**known: Any) -> int:
        calls.clear()
        settings = Settings(journal=tmp_path / "journal.sqlite")
        sample = {"id": "q", "contexts": ["A."], "claims": ["b"]}
        judge = Claims(FunctionClient(reply, **known), settings)
        karat.evaluate([sample], metrics=["context_recall"], judge=judge)
        return len(calls)

    assert [judged() for _ in range(2)] == [1, 1]
    assert [judged(model="mine") for _ in range(2)] == [1, 1]
    assert [judged(version="1") for _ in range(2)] == [1, 0]
    assert [judged(version="2") for _ in range(2)] == [1, 0]


def test_a_judge_that_nobody_finds_again_is_told(tmp_path: Path) -> None:
    sample = {"id": "q", "contexts": ["A."], "claims": ["b"]}
    kept = Settings(journal=tmp_path / "journal.sqlite")
    for judge, expected in (
        (Claims(lambda _: REPLY, kept), True),
        (Claims(lambda _: REPLY, Settings(journal=None)), False),
        (Claims(FunctionClient(lambda _: REPLY, version="1"), kept), False),
    ):
        result = karat.evaluate([sample], metrics=["context_recall"], judge=judge)
        assert ("passing" in {notice.kind for notice in result.warnings}) is expected


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), KeyError("x")])
def test_whatever_a_judge_raises_reaches_its_user(error: BaseException) -> None:
    def reply(_: str) -> str:
        raise error

    sample = {"id": "q", "contexts": ["A."], "claims": ["b"]}
    judge = Claims(FunctionClient(reply), Settings(journal=None))
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            karat.evaluate([sample], metrics=["context_recall"], judge=judge)
        return
    result = karat.evaluate([sample], metrics=["context_recall"], judge=judge)
    reason = "it called sys.exit(3)" if isinstance(error, SystemExit) else "KeyError"
    assert reason in str([*result["context_recall"].failures.values()])
