"""Whoever answers for the ragas front: clients of all kinds, and what they raise."""

import asyncio
import gc
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import openai
import pytest

from karat.compat.ragas import (
    ContextRecall,
    LLMContextRecall,
    SingleTurnSample,
    evaluate,
    llm_factory,
)
from karat.errors import Refused
from karat.extend import JOURNAL, DryRun, JudgeSession, UsageError
from karat.llm.openai_client import OpenAIClient
from tests.compat.ragas_models import (
    CANARY,
    ROWS,
    Chat,
    answer,
    calm,
    settings,
)
from tests.judging.chats import client_of
from tests.llm.fault_server import FaultServer
from tests.llm.judges import Scripted

pytestmark = pytest.mark.usefixtures("alone")


def test_the_error_of_a_function_is_the_cause_of_ours() -> None:
    def judge(_: str) -> str:
        raise KeyError("my own mistake")

    with pytest.raises(Refused, match="judge raised KeyError") as caught:
        ContextRecall(judge).score(**ROWS[0])
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_key_that_is_none_changes_no_reply() -> None:
    for key in ("1", "none", "so it is"):
        found = ContextRecall(llm_factory("m", client=Chat(api_key=key))).score(
            **ROWS[1]
        )
        said = {verdict.reason for verdict in found.verdicts}
        assert said == {"***" if key == "so it is" else "so it is"}
        assert found.value == calm(ContextRecall)[1].value


def test_a_refusal_is_no_reply() -> None:
    message = SimpleNamespace(content=None, refusal="I will not.")
    choices = [SimpleNamespace(message=message, finish_reason="stop")]
    client = Chat()
    client.create = AsyncMock(return_value=SimpleNamespace(choices=choices))  # type: ignore[method-assign]
    with pytest.raises(Refused, match="'m' declined to answer"):
        ContextRecall(llm_factory("m", client=client)).score(**ROWS[0])


def plain_calls(library: Any, server: FaultServer) -> None:
    client = library(api_key=CANARY, base_url=server.url, max_retries=0)
    llm = llm_factory("tiny", client=client, settings=settings(journal=None))
    expected = calm(ContextRecall)[:20]
    for _ in range(3):
        assert ContextRecall(llm).batch_score(ROWS[:20]) == expected
        assert ContextRecall(llm).score(**ROWS[0]) == expected[0]

    async def notebook() -> None:
        assert ContextRecall(llm).score(**ROWS[0]) == expected[0]
        assert ContextRecall(llm).score(**ROWS[1]) == expected[1]
        assert await ContextRecall(llm).abatch_score(ROWS[:2]) == expected[:2]

    asyncio.run(notebook())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("library", [openai.AsyncOpenAI, openai.OpenAI])
def test_a_real_client_serves_one_plain_call_after_another(library: Any) -> None:
    with FaultServer(right=answer) as server:
        plain_calls(library, server)
    # An async client leaves connections of event loops that are closed by now. Nobody
    # can close those; they go here, where nobody minds.
    gc.collect()


def test_only_an_async_client_is_asked_several_things_at_once() -> None:
    for library, at_once in ((openai.AsyncOpenAI, 16), (openai.OpenAI, 1)):
        llm = llm_factory("m", client=library(api_key=CANARY))
        assert llm.client.endpoint == "https://api.openai.com/v1"
        assert (llm.settings.concurrency, llm.settings.journal) == (at_once, JOURNAL)


def test_an_async_client_is_not_shared_by_two_running_loops() -> None:
    llm = llm_factory("m", client=Chat())

    async def notebook() -> None:
        await ContextRecall(llm).ascore(**ROWS[0])
        with pytest.raises(Refused, match=r"await here too.*ascore\(\.\.\.\)"):
            ContextRecall(llm).score(**ROWS[0])
        await ContextRecall(llm).ascore(**ROWS[1])

    asyncio.run(notebook())


def told() -> list[tuple[str, Callable[[FaultServer], Any]]]:
    return [
        ("a name", lambda _: "tiny"),
        ("a client", lambda server: OpenAIClient("tiny", base_url=server.url)),
        ("another client", lambda _: Scripted(lambda p: json.dumps(answer(p.user)))),
        ("a bench", lambda server: JudgeSession.of(OpenAIClient("tiny", server.url))),
    ]


@pytest.mark.parametrize("kind", told(), ids=lambda kind: kind[0])
def test_whoever_judges_for_karat_judges_here(
    kind: tuple[str, Callable[[FaultServer], Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(right=answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        llm = kind[1](server)
        assert ContextRecall(llm).score(**ROWS[3]) == calm(ContextRecall)[3]
        (name,) = evaluate(ROWS[:1], [LLMContextRecall()], llm=llm).results
        assert name == "context_recall"
        sent = [request.get("response_format") for request in server.requests]
    names = {form["json_schema"]["name"] for form in sent if form}
    assert names == (set() if kind[0] == "another client" else {"attribution"})


def test_what_is_no_model_is_said() -> None:
    with pytest.raises(UsageError, match="an AsyncOpenAI does not say which model"):
        ContextRecall(openai.AsyncOpenAI(api_key=CANARY)).score(**ROWS[0])
    with pytest.raises(UsageError, match="stream is not a parameter"):
        llm_factory("m", client=Chat(), stream=True)
    with pytest.raises(UsageError, match="a dry run asks nobody"):
        ContextRecall(DryRun(Scripted())).score(**ROWS[0])


def test_a_timeout_ends_the_waiting_for_a_client_too() -> None:
    async def never(**_: Any) -> Any:
        await asyncio.sleep(60)

    metric = LLMContextRecall(llm_factory("m", client=client_of(never)))
    with pytest.raises(TimeoutError):
        asyncio.run(
            metric.single_turn_ascore(SingleTurnSample(**ROWS[0]), timeout=0.01)
        )
