"""Waits, paces and the breaker, one by one."""

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from karat.data.judgements import Prompt, Usage
from karat.errors import ParameterError
from karat.llm import Prices, Progress, Settings, Transient
from karat.llm.limits import Backoff, CircuitBreaker, RateLimiter, estimate_usage
from tests.llm.judges import SCHEMA, Scripted, jobs, run_jobs_sync


@given(st.integers(1, 10_000))
def test_waits_double_up_to_the_longest_and_are_spread(attempt: int) -> None:
    most = min(60.0, 0.5 * 2.0 ** min(attempt - 1, 100))
    waits = [Backoff(0.5, 60.0).wait(attempt) for _ in range(20)]
    assert all(most / 2 <= wait <= most for wait in waits)
    assert len(set(waits)) > 1


@given(st.floats(0, 1000))
def test_a_wait_that_was_asked_for_is_never_undercut(seconds: float) -> None:
    assert Backoff(0.5, 60.0).wait(9, seconds) >= seconds
    assert Backoff(0.5, 60.0).wait(9, seconds) <= seconds * 1.1


@pytest.fixture
def _frozen_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = SimpleNamespace(monotonic=lambda: 1000.0)
    monkeypatch.setattr("karat.llm.limits.time", frozen)


@pytest.mark.usefixtures("_frozen_clock")
def test_a_minutes_calls_are_spread_over_the_minute() -> None:
    rate = RateLimiter(per_minute=120)
    waits = [rate.reserve() for _ in range(6)]
    # Two a second: two at once, then one each half second.
    assert waits == [0, 0, 0.5, 1.0, 1.5, 2.0]


@pytest.mark.usefixtures("_frozen_clock")
def test_without_a_limit_nothing_waits_until_the_endpoint_asks_for_it() -> None:
    rate = RateLimiter(None)
    assert [rate.reserve() for _ in range(100)] == [0.0] * 100
    rate.pause(5)
    rate.pause(2)
    assert rate.reserve() == 5


def breaker(pauses: list[float]) -> CircuitBreaker:
    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    return CircuitBreaker(3, Backoff(1.0, 60.0), pause)


def test_an_open_breaker_lets_one_call_through_at_a_time() -> None:
    async def story() -> None:
        pauses: list[float] = []
        tested = breaker(pauses)
        assert await tested.admit() is False
        for key in (b"a", b"a", b"a", b"b"):
            tested.failed(key, probe=False)
        # Two prompts may have failed for reasons of their own.
        assert not tested.open
        tested.failed(b"c", probe=False)
        assert tested.open
        first, second = (asyncio.create_task(tested.admit()) for _ in range(2))
        await asyncio.sleep(0.01)
        assert (first.done(), second.done()) == (True, False)
        assert first.result() is True
        tested.failed(b"a", probe=True)
        assert await second is True
        # Each probe waits longer than the one before could have.
        assert pauses[0] <= 4.0 <= pauses[1]
        tested.succeeded()
        assert not tested.open
        assert await tested.admit() is False

    asyncio.run(story())


def test_a_breaker_gives_up_after_a_few_probes_and_keeps_nobody_waiting() -> None:
    async def story() -> None:
        tested = breaker([])
        for key in (b"a", b"b", b"c"):
            tested.failed(key, probe=False)
        for _ in range(4):
            assert not tested.broken
            assert await tested.admit() is True
            tested.failed(b"a", probe=True)
        assert tested.broken
        assert await tested.admit() is True
        waiting = asyncio.create_task(tested.admit())
        await asyncio.sleep(0)
        tested.release_all()
        assert await waiting is False

    asyncio.run(story())


@pytest.mark.parametrize(
    ("paid", "tokens"), [(True, lambda ahead: ahead + 30), (False, lambda _: 30)]
)
def test_an_answer_that_was_lost_on_the_way_counts_as_paid(
    *, paid: bool, tokens: Callable[[int], int], tmp_path: Path
) -> None:
    told: list[Progress] = []
    client = Scripted()
    honest = client._answer

    def once(prompt: Prompt) -> str:
        if client.calls[prompt.user] == 1:
            raise Transient("cut off", paid=paid)
        return honest(prompt)

    client._answer = once
    settings = Settings(
        journal=tmp_path / "journal.sqlite",
        first_wait=0,
        prices=Prices(1.0, 1.0),
        progress=told.append,
    )
    run_jobs_sync(jobs(1), client, settings)
    (user,) = client.calls
    ahead = estimate_usage(Prompt("Grade each number.", user, SCHEMA))
    expected = tokens(ahead.prompt_tokens + ahead.completion_tokens)
    assert told[-1].prompt_tokens + told[-1].completion_tokens == expected
    assert told[-1].cost == pytest.approx(expected / 1e6)


def test_prices_are_numbers_from_nought() -> None:
    assert Prices(2, 4).cost(Usage(500_000, 250_000)) == 2.0
    with pytest.raises(ParameterError, match="completion must be 0 or more"):
        Prices(1, float("nan"))


@pytest.mark.parametrize("prices", ["0.15,0.6", (0.15, 0.6), Prices(0.15, 0.6)])
def test_prices_may_be_written_in_several_ways(prices: Any) -> None:
    assert Settings(prices=prices, max_cost=1).prices == Prices(0.15, 0.6)


@pytest.mark.parametrize("prices", ["cheap", "1", (1, 2, 3), 3, ("a", "b"), "1,inf"])
def test_other_prices_are_a_sentence(prices: Any) -> None:
    with pytest.raises(ParameterError, match=r"two numbers per million tokens"):
        Settings(prices=prices)


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": "4"},
        {"concurrency": None},
        {"concurrency": 1.5},
        {"max_calls": True},
        {"max_failures": -1},
        {"timeout": math.inf},
        {"timeout": 0},
        {"requests_per_minute": math.nan},
        {"first_wait": "soon"},
    ],
)
def test_settings_say_what_is_wrong_with_them(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=rf"settings: {next(iter(wrong))} must be"):
        Settings(**wrong)
