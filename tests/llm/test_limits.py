"""Waits, paces and what is known of an endpoint, one by one."""

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from karat.data.judgements import Usage
from karat.errors import Transient
from karat.extend import ParameterError, Prices, Prompt, Settings
from karat.llm.limits import (
    Backoff,
    EndpointHealth,
    Progress,
    RateLimiter,
    estimate_usage,
)
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


def test_an_endpoint_is_down_when_calls_for_several_prompts_fail_in_a_row() -> None:
    health = EndpointHealth(3)
    for key in (b"a", b"a", b"a", b"b"):
        assert not health.has_failed(key, tried=False)
    # Two prompts may have failed for reasons of their own.
    assert not health.is_down
    health.has_failed(b"c", tried=False)
    assert health.is_down
    assert [health.has_failed(b"a", tried=True) for _ in range(4)] == [False] * 3 + [
        True
    ]
    health.responded()
    assert not health.is_down


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
