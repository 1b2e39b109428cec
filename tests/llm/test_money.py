"""Every token that a server bills is counted, and no limit of cost is passed unseen."""

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from karat.data.judgements import Failure, Usage
from karat.extend import (
    CallError,
    Conversation,
    IncompleteError,
    Prices,
    Prompt,
    Reply,
    Settings,
)
from karat.llm.journal import Journal
from karat.llm.limits import Budget, Progress, estimate_usage
from karat.llm.openai_client import OpenAIClient
from tests.llm.fault_server import FaultServer
from tests.llm.judges import SCHEMA, Scripted, estimate, jobs, right, run_jobs_sync

BILLED = {"prompt_tokens": 500, "completion_tokens": 4096}


@pytest.fixture
def how(tmp_path: Path) -> Callable[..., Settings]:
    def settings(**options: Any) -> Settings:
        given = {"journal": tmp_path / "journal.sqlite", "first_wait": 0.0, **options}
        return Settings(**given)

    return settings


def choice(message: Mapping[str, Any], end: str = "stop") -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": end}], "usage": BILLED}


@pytest.mark.parametrize(
    "body",
    [
        choice({"content": ""}, "length"),
        choice({"content": None}),
        choice({"content": "half"}, "content_filter"),
        choice({"content": None, "refusal": "I will not."}),
        {"choices": [], "usage": BILLED},
    ],
)
def test_a_reply_of_no_use_is_billed_and_counted(
    body: dict[str, Any], how: Callable[..., Settings]
) -> None:
    seen: list[Progress] = []
    settings = how(
        max_attempts=2, prices=Prices(1, 1), progress=seen.append, concurrency=1
    )
    with FaultServer(answer=lambda _: (200, body)) as server:
        (failure,) = run_jobs_sync(jobs(1), OpenAIClient("m", server.url), settings)
        calls = len(server.requests)
    assert isinstance(failure, Failure)
    counted = (seen[-1].prompt_tokens, seen[-1].completion_tokens)
    assert counted == (500 * calls, 4096 * calls)
    with Journal(settings.journal) as journal:
        (contents,) = journal.contents()
    assert (contents.prompt_tokens, contents.completion_tokens) == counted


def test_replies_that_are_all_cut_off_stop_the_run_with_the_cure(
    how: Callable[..., Settings],
) -> None:
    body = choice({"content": ""}, "length")
    with FaultServer(answer=lambda _: (200, body)) as server:
        client = OpenAIClient("m", server.url)
        with pytest.raises(IncompleteError) as caught:
            run_jobs_sync(jobs(200), client, how(concurrency=2))
        assert len(server.requests) <= 6
    assert "5 replies in a row were cut off at 4,096 tokens" in str(caught.value)
    assert "--max-tokens" in str(caught.value)


def test_a_whole_reply_between_cut_ones_lets_the_run_go_on(
    how: Callable[..., Settings],
) -> None:
    class Sometimes(Scripted):
        async def complete(self, prompt: Prompt) -> Reply:
            number = int(prompt.user.split()[1])
            reply = await super().complete(prompt)
            if number % 3 == 0:
                return reply
            return Reply("{", Usage(1, 1), cut=True)

    results = run_jobs_sync(jobs(16), Sometimes(), how(concurrency=1))
    assert sum(isinstance(result, Failure) for result in results) == 10


class Sized(Scripted):
    """Its replies have this many tokens, and could have 4,096."""

    def __init__(self, tokens: int) -> None:
        super().__init__(parameters={"max_tokens": 4096})
        self._tokens = tokens

    async def complete(self, prompt: Prompt) -> Reply:
        reply = await super().complete(prompt)
        await asyncio.sleep(0.001)
        return Reply(reply.text, Usage(0, self._tokens))


@pytest.mark.parametrize("limit", [0.1, 0.01, 0.001])
def test_a_small_budget_is_used_up_nearly_whole(
    limit: float, how: Callable[..., Settings]
) -> None:
    seen: list[Progress] = []
    settings = how(
        concurrency=16, prices=Prices(0, 1), max_cost=limit, progress=seen.append
    )
    with pytest.raises(IncompleteError, match="a reply may take 100 tokens") as caught:
        run_jobs_sync(jobs(2000), Sized(100), settings)
    assert f"pass the limit of {limit:g}" in str(caught.value)
    assert seen[-1].cost is not None
    assert 0.9 * limit <= seen[-1].cost <= limit


@pytest.mark.parametrize("short", [0, 1, 20, 300])
@pytest.mark.parametrize("concurrency", [1, 8, 64])
@pytest.mark.parametrize("reply_tokens", [None, 30])
def test_a_limit_of_cost_is_passed_by_one_reply_at_most(
    short: int,
    concurrency: int,
    reply_tokens: int | None,
    how: Callable[..., Settings],
) -> None:
    """However short the first replies are, and however short they were expected."""

    class Growing(Sized):
        async def complete(self, prompt: Prompt) -> Reply:
            self._tokens = 100 if self.calls.total() < short else 4096
            tokens = self._tokens
            reply = await super().complete(prompt)
            return Reply(reply.text, Usage(0, tokens))

    seen: list[Progress] = []
    prices, limit = Prices(0, 1), 0.5
    settings = how(
        concurrency=concurrency,
        prices=prices,
        max_cost=limit,
        reply_tokens=reply_tokens,
        progress=seen.append,
    )
    with pytest.raises(IncompleteError, match=r"pass the limit of 0\.5"):
        run_jobs_sync(jobs(2000), Growing(0), settings)
    assert seen[-1].cost is not None
    assert limit - 0.005 <= seen[-1].cost <= limit + prices.cost(Usage(0, 4096))


@pytest.mark.parametrize("weight", [0.5, 1.9, 4])
def test_prompts_of_more_tokens_than_estimated_pass_no_limit_together(
    weight: float, how: Callable[..., Settings]
) -> None:
    expected = estimate_usage(Prompt("Grade each number.", "grade 1 1000001", SCHEMA))
    sent = int(expected.prompt_tokens * weight)

    class Heavy(Sized):
        async def complete(self, prompt: Prompt) -> Reply:
            reply = await super().complete(prompt)
            return Reply(reply.text, Usage(sent, 1))

    seen: list[Progress] = []
    prices, limit = Prices(1, 0), 0.02
    settings = how(concurrency=64, prices=prices, max_cost=limit, progress=seen.append)
    with pytest.raises(IncompleteError):
        run_jobs_sync(jobs(2000), Heavy(1), settings)
    assert seen[-1].cost is not None
    assert seen[-1].cost <= limit + prices.cost(Usage(sent, 0))


def test_calls_at_the_start_do_not_pass_the_limit_while_the_client_prepares(
    how: Callable[..., Settings],
) -> None:
    class Prepared(Sized):
        def prepare(self) -> None:
            pass

    client = Prepared(4096)
    settings = how(concurrency=64, prices=Prices(0, 100), max_cost=2.0)
    with pytest.raises(IncompleteError):
        run_jobs_sync(jobs(100), client, settings)
    assert client.calls.total() == 4


def limited(tokens: int | None, model: str = "tiny") -> Scripted:
    parameters = {} if tokens is None else {"max_tokens": tokens}
    return Scripted(model=model, parameters={"temperature": 0, **parameters})


def test_a_whole_reply_is_used_under_any_limit(how: Callable[..., Settings]) -> None:
    run_jobs_sync(jobs(5), limited(100), how())
    for same in (limited(200), limited(None), limited(50)):
        assert run_jobs_sync(jobs(5), same, how()) == right(5)
        assert same.calls.total() == 0
        assert estimate(jobs(5), same, how()).calls == 0
        offline = how(offline=True)
        assert run_jobs_sync(jobs(5), same, offline) == right(5)
    other = limited(200, "other")
    assert run_jobs_sync(jobs(5), other, how()) == right(5)
    assert other.calls.total() == 5


def test_a_larger_limit_pays_only_for_what_was_cut_off(
    how: Callable[..., Settings],
) -> None:
    class Short(Scripted):
        async def complete(self, prompt: Prompt) -> Reply:
            reply = await super().complete(prompt)
            if prompt.user.startswith(("grade 3", "grade 7")):
                return Reply("{", Usage(1, 1), cut=True)
            return reply

    short = Short(parameters={"max_tokens": 9})
    results = run_jobs_sync(jobs(10), short, how(concurrency=1))
    assert sum(isinstance(result, Failure) for result in results) == 2
    longer = Scripted(parameters={"max_tokens": 99})
    assert run_jobs_sync(jobs(10), longer, how()) == right(10)
    assert {user.split()[1] for user in longer.calls} == {"3", "7"}


def test_a_useless_reply_of_a_smaller_limit_is_asked_again_on_request(
    how: Callable[..., Settings],
) -> None:
    useless = Scripted(lambda _: "no JSON", parameters={"max_tokens": 9})
    run_jobs_sync(jobs(1), useless, how())
    longer = Scripted(parameters={"max_tokens": 99})
    run_jobs_sync(jobs(1), longer, how())
    assert longer.calls.total() == 0
    assert run_jobs_sync(jobs(1), longer, how(retry_errors=True)) == right(1)


def ask(text: str) -> Conversation[str]:
    return (yield Prompt("", text, SCHEMA, name="ask")).text


def test_an_estimate_counts_schemas_and_learns_the_size_of_replies(
    how: Callable[..., Settings],
) -> None:
    prompt = Prompt("", "why?", SCHEMA, name="ask")
    bare = Prompt("", "why?", name="ask")
    size = len(json.dumps(SCHEMA))
    more = estimate_usage(prompt).prompt_tokens - estimate_usage(bare).prompt_tokens
    assert more == -(-size // 4)
    rows = [partial(ask, f"question {number}") for number in range(10)]
    client = Sized(40)
    assert estimate(rows, client, how()).completion_tokens == 2560
    assumed = estimate(rows, client, how(), assume=lambda _: "x" * 80)
    assert assumed.completion_tokens == 300
    run_jobs_sync(rows[:5], client, how())
    learned = estimate(rows, client, how(), assume=lambda _: "x" * 80)
    assert (learned.calls, learned.completion_tokens) == (5, 200)
    assert estimate(rows, client, how(reply_tokens=7)).completion_tokens == 35


def test_a_budget_says_why_a_call_is_too_much() -> None:
    budget = Budget(Prices(0, 1_000_000), max_cost=10)
    budget.reserve(Usage(0, 4), Usage(0, 4))
    budget.settle(Usage(0, 4), Usage(0, 6))
    assert budget.reserve(Usage(0, 9), Usage(0, 5)) == (
        "the next call could pass the limit of 10 (6 is spent, and a reply may take 5 "
        "tokens)"
    )


def test_a_call_error_carries_what_was_billed() -> None:
    error = CallError("cut off", tokens=(500, 4096))
    assert (error.tokens, CallError("no").tokens) == ((500, 4096), None)
