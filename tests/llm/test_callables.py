"""A function is known by what it does and reads, or in this process only."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.judging import Claims
from karat.llm import Settings
from karat.llm.callables import FunctionClient


def test_an_edited_function_is_asked_anew_and_a_closure_is_never_mistaken() -> None:
    def made(code: str) -> Callable[[str], str]:
        scope: dict[str, Any] = {}
        exec(code, scope)
        function: Callable[[str], str] = scope["f"]
        return function

    def models(*codes: str) -> set[str]:
        return {FunctionClient(made(code)).model for code in codes}

    assert len(models("def f(p): return 'a'", "def f(p): return 'a'")) == 1
    assert len(models("def f(p): return 'a'", "def f(p): return 'b'")) == 2
    assert len(models("def f(p): return p.a()", "def f(p): return p.b()")) == 2
    assert len(models("def f(p, x=1): return x", "def f(p, x=2): return x")) == 2

    def holding(word: str) -> Callable[[str], str]:
        return lambda _: word

    same = {FunctionClient(holding(word)).model for word in "aab"}
    assert len(same) == 3
    assert FunctionClient(holding("a"), model="mine").model == "mine"


CLIENT = object()
READS = "import json\nWORD = {word!r}\ndef helped(): return WORD\n"


@pytest.mark.parametrize(
    "function",
    [
        "def f(p): return WORD",
        "def f(p): return helped()",
        "def f(p): return json.dumps([g() for g in (lambda: helped(),)])",
    ],
)
def test_a_function_is_known_by_what_it_reads(function: str) -> None:
    def named(word: object) -> FunctionClient:
        scope: dict[str, Any] = {"__name__": "page"}
        exec(READS.format(word=word) + function, scope)
        return FunctionClient(scope["f"])

    one, same, other = named("a"), named("a"), named({"a": [1, {2.5}]})
    assert one.model == same.model != other.model
    assert one.persistent
    assert other.persistent


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": {"b": 1}, "c": 2}, {"a": {"b": 1, "c": 2}}),
        ([[1], 2], [[1, 2]]),
        ({(1, 2), (3, 4)}, {(1, 3), (2, 4)}),
        ([1], (1,)),
    ],
)
def test_values_of_another_shape_are_other_values(one: object, other: object) -> None:
    def named(word: object) -> str:
        scope: dict[str, Any] = {"__name__": "page", "WORD": word}
        exec("def f(p): return WORD", scope)
        return FunctionClient(scope["f"]).model

    assert named(one) != named(other)


@pytest.mark.parametrize(
    "code",
    [
        "def f(p): return CLIENT.ask(p)",
        "class C: pass\ndef f(p): return C().ask(p)",
        "LOOP = []\nLOOP.append(LOOP)\ndef f(p): return LOOP",
        "DATA = list(range(200_000))\ndef f(p): return DATA",
        "def f(p, client=CLIENT): return client.ask(p)",
    ],
)
def test_what_cannot_be_seen_is_trusted_in_this_process_only(code: str) -> None:
    scope: dict[str, Any] = {"CLIENT": CLIENT, "__name__": "page"}
    exec(code, scope)
    one, other = FunctionClient(scope["f"]), FunctionClient(scope["f"])
    assert one.model != other.model
    assert not one.persistent
    assert FunctionClient(scope["f"], model="mine").persistent


def test_a_judge_that_nobody_finds_again_is_told(tmp_path: Path) -> None:
    sample = {"id": "q", "contexts": ["A."], "claims": ["b"]}
    reply = '{"verdicts": [{"claim": 1, "alone": [], "parts": [], "complete": false}]}'
    kept = Settings(journal=tmp_path / "journal.sqlite")
    for judge, expected in (
        (Claims(lambda _: reply, kept), True),
        (Claims(lambda _: reply, Settings(journal=None)), False),
        (Claims(FunctionClient(lambda _: reply, model="mine"), kept), False),
    ):
        result = karat.evaluate([sample], metrics=["context_recall"], judge=judge)
        assert ("passing" in {notice.kind for notice in result.warnings}) is expected
