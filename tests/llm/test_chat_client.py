"""A client that its user brings: what it says and raises, as any other endpoint's."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import openai
import pytest

import karat
from karat.data.judgements import Usage
from karat.errors import Refused, Transient
from karat.extend import (
    CallError,
    ChatClient,
    Claims,
    JudgeSession,
    Prompt,
    Reply,
    Settings,
    UsageError,
)
from karat.llm.openai_client import OpenAIClient
from tests.judging.chats import client_of, completion, failing, status_error
from tests.llm.fault_server import FaultServer, completion as sent, verdicts
from tests.llm.judges import jobs, right

CANARY = "sk-canary-0123456789"
PROMPT = Prompt("Be brief.", "Is bread good?")
SAMPLE = {
    "id": "q1",
    "query": "What is rye?",
    "retrieved_contexts": ["Ovens are hot.", "Rye is a grain."],
    "claims": ["Rye is a grain.", "Rye is blue."],
}


class APIConnectionError(Exception):
    """Has the name of OpenAI's."""


class APITimeoutError(APIConnectionError):
    """Has the name of OpenAI's."""


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (status_error(429), Transient, "answered 429 Too Many Requests"),
        (status_error(503), Transient, "answered 503"),
        (status_error(400), Refused, "refused the prompt"),
        (status_error(402), Refused, "no credit left"),
        (APIConnectionError("Connection error."), Transient, "cannot reach python:"),
        (APITimeoutError("Request timed out."), Transient, "timed out"),
        (ConnectionResetError("reset"), Transient, "raised ConnectionResetError: res"),
        (TimeoutError(), Transient, "raised TimeoutError"),
        (KeyError("choices"), Refused, "raised KeyError: 'choices'"),
    ],
)
def test_what_a_client_raises_passes_or_does_not(
    error: Exception, kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence) as caught:
        asyncio.run(ChatClient("m", failing(error)).complete(PROMPT))
    if isinstance(caught.value, Transient):
        assert caught.value.paid == isinstance(error, APITimeoutError)


def test_a_client_is_given_the_time_that_its_server_asks_for() -> None:
    error = status_error(429, **{"Retry-After": "7"})
    with pytest.raises(Transient) as caught:
        asyncio.run(ChatClient("m", failing(error)).complete(PROMPT))
    assert (caught.value.retry_after, caught.value.alive) == (7.0, True)


def test_tokens_id_and_model_are_read_where_a_client_tells_them() -> None:
    with (
        FaultServer(answer=lambda _: (200, sent("yes"))) as server,
        openai.OpenAI(api_key=CANARY, base_url=server.url) as client,
    ):
        found = asyncio.run(ChatClient("tiny", client).complete(PROMPT))
    assert (found.usage, found.model) == (Usage(20, 10), "tiny-2026")
    assert str(found.id).startswith("reply-")
    mock = MagicMock()
    mock.chat.completions.create = AsyncMock()
    mock.chat.completions.create.return_value.choices[0].message.content = "yes"
    found = asyncio.run(ChatClient("tiny", mock).complete(PROMPT))
    assert (found.text, found.usage, found.id) == ("yes", Usage(), None)
    assert ChatClient("tiny", mock).endpoint == "python:unittest.mock.MagicMock"


def choice(message: object, finish: str = "stop") -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish}]}


NINE = {"usage": {"prompt_tokens": 3, "completion_tokens": 9}}
COMPLETIONS: list[tuple[dict[str, Any], object]] = [
    (sent("yes"), "yes"),
    (choice({"content": [{"type": "text", "text": "y"}, {"text": "es"}, 7]}), "yes"),
    ({**choice({"content": "ye"}, "length"), **NINE}, "ye"),
    ({**choice({"content": ""}, "length"), **NINE}, Refused),
    (choice({"content": None, "refusal": "I will not."}), Refused),
    (choice({"content": "ye"}, "content_filter"), Refused),
    (choice({"content": " "}), Transient),
    (choice({"content": {"text": "yes"}}), Transient),
    (choice(None), Transient),
    ({"choices": []}, Transient),
    ({"error": {"code": 402, "message": "pay"}}, Refused),
    ({"choices": None, "error": {"code": 503, "message": "busy"}}, Transient),
    ({**choice({"content": "yes"}), "error": {"code": 500}}, "yes"),
    ({"error": {"code": "strange"}}, Transient),
]


def outcome(client: Any) -> tuple[object, ...]:
    try:
        reply: Reply = asyncio.run(client.complete(PROMPT))
    except CallError as error:
        return type(error), False, str(error).replace(client.endpoint, "it")
    return reply.text, reply.cut, reply.usage, reply.id, reply.model


@pytest.mark.parametrize(("body", "expected"), COMPLETIONS)
def test_one_rule_says_what_is_a_reply_however_it_comes(
    body: dict[str, Any], expected: object
) -> None:
    attributes = json.loads(
        json.dumps(body), object_hook=lambda fields: SimpleNamespace(**fields)
    )
    with (
        FaultServer(answer=lambda _: (200, body)) as server,
        openai.OpenAI(api_key=CANARY, base_url=server.url) as library,
    ):
        found = outcome(OpenAIClient("tiny", base_url=server.url))
        assert outcome(ChatClient("tiny", library)) == found
    for completed in (body, attributes):
        client = client_of(lambda completed=completed, **_: completed)
        assert outcome(ChatClient("tiny", client)) == found
    assert found[:2] == (expected, expected == "ye")


def judge_of(asked: list[str]) -> Any:
    """A client that finds the first claim in the second context."""
    found = {"claim": 1, "alone": [2], "parts": [], "complete": False, "reason": "x"}
    said = {"verdicts": [found, {**found, "claim": 2, "alone": []}]}

    async def create(*, model: str, messages: list[Any]) -> Any:
        assert model == "gpt-4o-mini"
        asked.append(messages[-1]["content"])
        return completion(json.dumps(said))

    return create


def test_a_client_of_ones_own_judges_claims(tmp_path: Path) -> None:
    asked: list[str] = []
    client = client_of(judge_of(asked), base_url="http://127.0.0.1:1/v1")
    settings = Settings(journal=tmp_path / "journal.sqlite")

    def score() -> Any:
        session = JudgeSession(ChatClient("gpt-4o-mini", client), settings)
        return karat.evaluate([SAMPLE], metrics="rr", judge=Claims(session))

    assert score().means == {"rr": 0.5}
    assert score().means == {"rr": 0.5}
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("facts", "name", "persistent"),
    [
        ({}, None, False),
        ({}, "mine", True),
        ({"base_url": "http://127.0.0.1:1/v1"}, None, True),
        ({"base_url": f"http://u:{CANARY}@127.0.0.1:1/v1"}, None, False),
    ],
)
def test_replies_last_only_where_the_client_can_be_told_from_others(
    facts: dict[str, str],
    name: str | None,
    persistent: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    asked: list[str] = []
    settings = Settings(journal=tmp_path / "journal.sqlite")
    for _ in range(2):
        client = client_of(judge_of(asked), **facts)
        chat = ChatClient("gpt-4o-mini", client, name=name)
        session = JudgeSession(chat, settings)
        karat.evaluate([SAMPLE], metrics="rr", judge=Claims(session))
        assert (chat.persistent, session.loses_replies) == (persistent, not persistent)
        assert session.source == "judge:gpt-4o-mini"
        assert CANARY not in chat.endpoint
    assert len(asked) == (1 if persistent else 2)


def test_an_async_client_goes_from_one_evaluation_to_the_next() -> None:
    asked: list[str] = []
    chat = ChatClient("gpt-4o-mini", client_of(judge_of(asked)))
    judge = Claims(JudgeSession(chat, Settings(journal=None)))

    async def notebook() -> list[float]:
        first = await karat.aevaluate([SAMPLE], metrics="rr", judge=judge)
        second = karat.evaluate([SAMPLE], metrics="rr", judge=judge)
        # From here on it belongs to this loop, and the others have their own.
        await chat.complete(PROMPT)
        with pytest.raises(Refused, match="client of its own, or one that is not"):
            await karat.aevaluate([SAMPLE], metrics="rr", judge=judge)
        return [first.means["rr"], second.means["rr"]]

    assert asyncio.run(notebook()) == [0.5, 0.5]


def test_a_session_tells_that_a_run_begins_awaited_or_not() -> None:
    told: list[Any] = []
    client = client_of(lambda **_: completion(json.dumps(verdicts("0 1000000"))))
    settings = Settings(journal=None, progress=told.append)
    session = JudgeSession(ChatClient("m", client), settings)
    assert (
        session.run_jobs(jobs(1)) == asyncio.run(session.arun_jobs(jobs(1))) == right(1)
    )
    assert [(state.done, state.total) for state in told] == [(0, 1), (1, 1)] * 2
    assert session.run_jobs([]) == asyncio.run(session.arun_jobs([])) == []
    assert len(told) == 4


def test_what_is_no_client_is_said() -> None:
    with pytest.raises(UsageError, match=r"chat\.completions\.create.*got object"):
        ChatClient("m", object())
    with pytest.raises(UsageError, match="messages is not a parameter"):
        ChatClient("m", client_of(print), {"messages": []})
