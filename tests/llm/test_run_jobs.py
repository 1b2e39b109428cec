"""What running many jobs promises, with clients that need no server."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from karat.data.judgements import Failure
from karat.errors import Refused, Transient
from karat.extend import (
    Conversation,
    IncompleteError,
    InvalidReply,
    OfflineMissError,
    Prices,
    Prompt,
    Settings,
    UsageError,
)
from karat.llm import journal
from karat.llm.run_jobs import Calls, run_jobs
from tests.llm.fault_server import verdicts
from tests.llm.judges import Scripted, estimate, grade, jobs, right, run_jobs_sync


@pytest.fixture
def how(tmp_path: Path) -> Callable[..., Settings]:
    """Settings with short waits and a journal of the test's own."""

    def settings(**changes: Any) -> Settings:
        quick = {"first_wait": 0.001, "longest_wait": 0.002, "concurrency": 4}
        path = tmp_path / ".karat" / "journal.sqlite"
        return Settings(**{"journal": path, **quick, **changes})

    return settings


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long calls wait, while the clock stands still and nobody does."""
    recorded: list[float] = []

    async def wait(_: object, seconds: float, __: object = None) -> None:
        recorded.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(Calls, "wait", wait)
    frozen = SimpleNamespace(monotonic=lambda: 1000.0)
    monkeypatch.setattr("karat.llm.limits.time", frozen)
    return recorded


def failing(times: int, error: Exception) -> Callable[[Prompt], str]:
    """Fails so many times for each prompt, then answers."""
    seen: dict[str, int] = {}
    honest = Scripted()._answer

    def answer(prompt: Prompt) -> str:
        seen[prompt.user] = seen.get(prompt.user, 0) + 1
        if seen[prompt.user] <= times:
            raise error
        return honest(prompt)

    return answer


def test_rows_keep_their_order_and_calls_their_limit(
    how: Callable[..., Settings],
) -> None:
    client = Scripted()
    assert run_jobs_sync(jobs(50), client, how(concurrency=7)) == right(50)
    assert client.most_at_once == 7


def test_no_rows_are_no_work(how: Callable[..., Settings]) -> None:
    assert run_jobs_sync([], Scripted(), how()) == []


def test_equal_prompts_are_sent_once(how: Callable[..., Settings]) -> None:
    client = Scripted()
    assert run_jobs_sync([partial(grade, 3)] * 40, client, how()) == [{3: 1}] * 40
    assert client.calls.total() == 1


def test_a_second_run_makes_no_call(how: Callable[..., Settings]) -> None:
    told: list[Any] = []
    run_jobs_sync(jobs(30), Scripted(), how())
    client = Scripted()
    assert run_jobs_sync(jobs(30), client, how(progress=told.append)) == right(30)
    assert client.calls.total() == 0
    assert (told[-1].cached, told[-1].calls, told[-1].eta) == (30, 0, None)


def test_it_works_inside_a_running_loop(how: Callable[..., Settings]) -> None:
    async def notebook() -> list[dict[int, int] | Failure]:
        return run_jobs_sync(jobs(5), Scripted(), how())

    assert asyncio.run(notebook()) == right(5)


def test_it_can_be_awaited_and_two_runs_share_a_loop(
    how: Callable[..., Settings],
) -> None:
    async def both() -> list[list[dict[int, int] | Failure]]:
        client = Scripted()
        return list(
            await asyncio.gather(
                run_jobs(jobs(5), client, how()), run_jobs(jobs(9), client, how())
            )
        )

    assert asyncio.run(both()) == [right(5), right(9)]


def test_a_passing_failure_is_tried_again(how: Callable[..., Settings]) -> None:
    client = Scripted(failing(3, Transient("busy", alive=True)))
    assert run_jobs_sync(jobs(5), client, how()) == right(5)
    assert set(client.calls.values()) == {4}


def test_a_lasting_failure_is_a_value_with_its_reason(
    how: Callable[..., Settings],
) -> None:
    client = Scripted(failing(99, Transient("the line is bad", alive=True)))
    failures = run_jobs_sync(jobs(2), client, how(max_attempts=3))
    assert failures == [Failure("the line is bad", "transient", 3)] * 2
    # It replays as it was offline, and is tried again by itself when it may call.
    assert run_jobs_sync(jobs(2), Scripted(), how(offline=True)) == failures
    assert run_jobs_sync(jobs(2), Scripted(), how()) == right(2)


def test_what_was_refused_is_asked_again_only_on_request(
    how: Callable[..., Settings],
) -> None:
    client = Scripted(failing(99, Refused("too long", detail="secret words")))
    failures = run_jobs_sync(jobs(2), client, how())
    assert failures == [Failure("too long: secret words", "refused", 1)] * 2
    idle = Scripted()
    assert run_jobs_sync(jobs(2), idle, how()) == failures
    assert idle.calls.total() == 0
    assert run_jobs_sync(jobs(2), Scripted(), how(retry_errors=True)) == right(2)


def test_a_useless_reply_is_asked_again_only_on_request(
    how: Callable[..., Settings],
) -> None:
    babbler = Scripted(lambda _: "I think so.")
    failures = run_jobs_sync([partial(grade, 1)] * 2, babbler, how())
    assert failures == [Failure("the reply has not the right form", "invalid", 2)] * 2
    assert babbler.calls.total() == 2
    idle = Scripted()
    assert run_jobs_sync([partial(grade, 1)] * 2, idle, how()) == failures
    assert idle.calls.total() == 0
    wiser = Scripted()
    assert (
        run_jobs_sync([partial(grade, 1)] * 2, wiser, how(retry_errors=True))
        == [{1: 1}] * 2
    )
    assert wiser.calls.total() == 1


def test_a_useless_reply_takes_no_good_one_with_it(
    how: Callable[..., Settings],
) -> None:
    def judge() -> Conversation[None]:
        for number in (1, 2, 3):
            yield from grade(number)

    def answer(prompt: Prompt) -> str:
        return (
            "what?" if "grade 3" in prompt.user else json.dumps(verdicts(prompt.user))
        )

    run_jobs_sync([judge], Scripted(answer), how())
    again = Scripted()
    run_jobs_sync([judge], again, how(retry_errors=True))
    assert all("grade 3" in asked for asked in again.calls)


def test_a_judge_may_live_with_a_failed_call(how: Callable[..., Settings]) -> None:
    def lenient() -> Conversation[str]:
        try:
            yield Prompt("", "anything")
        except Refused as error:
            return f"without an answer: {error}"
        return "answered"

    client = Scripted(failing(9, Refused("no")))
    assert run_jobs_sync([lenient], client, how()) == ["without an answer: no"]


def test_a_refusal_for_all_stops_at_once(how: Callable[..., Settings]) -> None:
    client = Scripted(failing(99, Refused("the key is wrong", always=True)))
    with pytest.raises(Refused, match="the key is wrong"):
        run_jobs_sync(jobs(500), client, how())
    assert client.calls.total() <= 4
    assert run_jobs_sync(jobs(5), Scripted(), how()) == right(5)


def test_a_first_prompt_that_is_forbidden_does_not_stop_the_others(
    how: Callable[..., Settings],
) -> None:
    honest = Scripted()._answer

    def answer(prompt: Prompt) -> str:
        if prompt.user.startswith(("grade 0 ", "grade 5 ")):
            raise Refused("403", always=True, unless_answered=True, forbidden=True)
        return honest(prompt)

    for _ in range(2):
        found = run_jobs_sync(jobs(9), Scripted(answer), how(concurrency=1))
        failed = [n for n, row in enumerate(found) if isinstance(row, Failure)]
        assert failed == [0, 5]
    # The first might have been about the key, so it is asked for again; the other not.
    assert run_jobs_sync(jobs(9), Scripted(), how())[0] == right(9)[0]
    assert isinstance(run_jobs_sync(jobs(9), Scripted(), how())[5], Failure)


@pytest.mark.parametrize("rows", [1, 3, 500])
def test_a_key_that_is_refused_everywhere_ends_the_run_and_is_not_kept(
    rows: int, how: Callable[..., Settings]
) -> None:
    facts: dict[str, Any] = {"always": True, "forbidden": True}
    client = Scripted(failing(99, Refused("refuses the key", **facts)))
    with pytest.raises(Refused, match="refuses the key"):
        run_jobs_sync(jobs(rows), client, how())
    assert client.calls.total() <= 4 + 5
    assert run_jobs_sync(jobs(rows), Scripted(), how()) == right(rows)


def test_an_endpoint_that_is_down_is_tried_by_one_call_at_a_time(
    how: Callable[..., Settings],
) -> None:
    at_once: list[int] = []

    class Down(Scripted):
        async def complete(self, prompt: Prompt) -> Any:
            at_once.append(self.at_once + 1)
            return await super().complete(prompt)

    client = Down(failing(99, Transient("connection refused")))
    with pytest.raises(IncompleteError, match="seems to be down"):
        run_jobs_sync(jobs(100), client, how(concurrency=8))
    # Eight at first, and then four tries, each by itself.
    assert at_once == [*range(1, 9), 1, 1, 1, 1]


def test_a_bug_in_a_judge_is_raised(how: Callable[..., Settings]) -> None:
    def broken() -> Conversation[int]:
        yield Prompt("", "anything")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_jobs_sync([broken, *jobs(20)], Scripted(), how())


def test_an_endpoint_that_is_down_is_noticed_and_nothing_is_lost(
    how: Callable[..., Settings],
) -> None:
    honest = Scripted()._answer
    answered: list[str] = []

    def answer(prompt: Prompt) -> str:
        if len(answered) >= 20:
            raise Transient("connection refused")
        answered.append(prompt.user)
        return honest(prompt)

    client = Scripted(answer)
    # The waits are longer than it takes to store the last replies.
    settings = how(concurrency=8, first_wait=0.1, longest_wait=0.1)
    with pytest.raises(IncompleteError) as caught:
        run_jobs_sync(jobs(300), client, settings)
    assert "http://127.0.0.1:1/v1 seems to be down" in str(caught.value)
    assert "connection refused" in str(caught.value)
    assert (caught.value.done, caught.value.total) == (20, 300)
    assert client.calls.total() < 20 + 8 * 3
    again = Scripted()
    assert run_jobs_sync(jobs(300), again, how()) == right(300)
    assert again.calls.total() == 280


def test_while_an_endpoint_is_down_no_row_fails_for_it(
    how: Callable[..., Settings],
) -> None:
    client = Scripted(failing(99, Transient("connection refused")))
    with pytest.raises(IncompleteError) as caught:
        run_jobs_sync(jobs(100), client, how(concurrency=8, max_attempts=1, patience=5))
    # The first four could have been to blame themselves.
    assert (caught.value.done, caught.value.failed) == (0, 4)


def test_a_short_outage_is_waited_out(how: Callable[..., Settings]) -> None:
    seen: list[str] = []
    honest = Scripted()._answer

    def answer(prompt: Prompt) -> str:
        seen.append(prompt.user)
        if 30 <= len(seen) < 41:
            raise Transient("connection refused")
        return honest(prompt)

    client = Scripted(answer)
    assert run_jobs_sync(jobs(100), client, how(concurrency=8)) == right(100)


def test_one_prompt_that_always_breaks_the_server_does_not_stop_the_others(
    how: Callable[..., Settings],
) -> None:
    honest = Scripted()._answer

    def answer(prompt: Prompt) -> str:
        if prompt.user.startswith("grade 3 "):
            raise Transient("500")
        return honest(prompt)

    found = run_jobs_sync(jobs(9), Scripted(answer), how(concurrency=1))
    assert [isinstance(row, Failure) for row in found].count(True) == 1
    assert found[3] == Failure("500", "transient", 6)


def test_a_slow_answer_is_given_up(how: Callable[..., Settings]) -> None:
    class Slow(Scripted):
        async def complete(self, prompt: Prompt) -> Any:
            if self.calls[prompt.user] == 0:
                self.calls[prompt.user] += 1
                await asyncio.sleep(60)
            return await super().complete(prompt)

    assert run_jobs_sync(jobs(3), Slow(), how(timeout=0.05)) == right(3)


def test_retry_after_is_never_undercut(
    how: Callable[..., Settings], waits: list[float]
) -> None:
    client = Scripted(failing(1, Transient("busy", 20, alive=True)))
    assert run_jobs_sync(jobs(1), client, how()) == right(1)
    before, after_failure, again = waits
    assert (before, again) == (0, 20)
    assert 20 <= after_failure <= 22


def test_when_one_call_is_asked_to_wait_no_other_starts(
    how: Callable[..., Settings], waits: list[float]
) -> None:
    calls: list[str] = []
    honest = Scripted()._answer

    def answer(prompt: Prompt) -> str:
        calls.append(prompt.user)
        if len(calls) == 10:
            raise Transient("busy", 20, alive=True)
        return honest(prompt)

    assert run_jobs_sync(jobs(40), Scripted(answer), how(concurrency=2)) == right(40)
    assert len(calls) == 41
    # One call may have been under way already; all others wait.
    assert waits[:10] == [0] * 10
    assert len([seconds for seconds in waits if seconds >= 20]) >= 30


def test_a_long_wait_is_announced_once(
    how: Callable[..., Settings],
    waits: list[float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = Scripted(failing(1, Transient("busy", 540, alive=True)))
    assert run_jobs_sync(jobs(4), client, how()) == right(4)
    assert max(waits) >= 540
    (record,) = caplog.records
    assert record.getMessage() == (
        "http://127.0.0.1:1/v1 asks to wait for 9 min; nothing is asked until then"
    )


def test_a_very_long_retry_after_stops_the_run(
    how: Callable[..., Settings],
) -> None:
    client = Scripted(failing(1, Transient("busy", 7200, alive=True)))
    with pytest.raises(IncompleteError, match="come back in 120 min"):
        run_jobs_sync(jobs(4), client, how())


def test_the_rate_limit_is_kept(
    how: Callable[..., Settings], waits: list[float]
) -> None:
    settings = how(requests_per_minute=600)
    assert run_jobs_sync(jobs(15), Scripted(), settings) == right(15)
    # Ten a second: ten go at once, the other five a tenth of a second apart.
    assert waits == pytest.approx([0] * 10 + [0.1, 0.2, 0.3, 0.4, 0.5])


def test_the_limit_of_calls_stops_and_the_rest_follows(
    how: Callable[..., Settings],
) -> None:
    client = Scripted()
    with pytest.raises(IncompleteError, match="the limit of 7 calls is reached"):
        run_jobs_sync(jobs(20), client, how(max_calls=7))
    assert client.calls.total() == 7
    rest = Scripted()
    assert run_jobs_sync(jobs(20), rest, how(max_calls=13)) == right(20)
    assert rest.calls.total() == 13


def test_the_limit_of_cost_is_never_passed(how: Callable[..., Settings]) -> None:
    told: list[Any] = []
    prices = Prices(prompt=1e6, completion=1e6)
    settings = how(prices=prices, max_cost=400, reply_tokens=30, progress=told.append)
    with pytest.raises(IncompleteError, match="limit of 400"):
        run_jobs_sync(jobs(50), Scripted(), settings)
    assert told[-1].cost is not None
    # Each call costs 30, and is expected to cost more before it is made.
    assert 300 <= told[-1].cost <= 400
    with pytest.raises(UsageError, match="needs prices"):
        how(max_cost=1)


def test_too_many_failures_stop(how: Callable[..., Settings]) -> None:
    client = Scripted(lambda _: "nonsense")
    with pytest.raises(IncompleteError, match=r"4 rows failed, and 3 may .*right form"):
        run_jobs_sync(jobs(50), client, how(max_failures=3, concurrency=1))


def test_offline_a_missing_reply_is_an_error_that_names_the_journal(
    how: Callable[..., Settings],
) -> None:
    run_jobs_sync(jobs(3), Scripted(), how())
    client = Scripted()
    assert run_jobs_sync(jobs(3), client, how(offline=True)) == right(3)
    missing = r"offline, but judging 1 of 4 rows takes replies of 'tiny' at .* not in "
    with pytest.raises(
        OfflineMissError, match=missing + r".*journal.sqlite;"
    ) as caught:
        run_jobs_sync(jobs(4), client, how(offline=True))
    assert "1000003" not in str(caught.value)
    assert client.calls.total() == 0


def test_an_estimate_counts_what_is_not_kept_yet(
    how: Callable[..., Settings], tmp_path: Path
) -> None:
    prices = Prices(prompt=1.0, completion=2.0)
    before = estimate(jobs(10), Scripted(), how(prices=prices))
    assert (before.rows, before.calls, before.cached, before.unseen) == (10, 10, 0, 10)
    assert not (tmp_path / ".karat").exists()
    assert before.cost == pytest.approx(
        (before.prompt_tokens + 2 * before.completion_tokens) / 1e6
    )
    run_jobs_sync(jobs(4), Scripted(), how())
    client = Scripted()
    after = estimate(jobs(10), client, how(), assume=client._answer)
    assert (after.calls, after.cached, after.unseen) == (6, 4, 0)
    assert client.calls.total() == 0


@pytest.mark.parametrize("concurrency", [1, 4, 64])
def test_a_full_disk_stops_and_loses_only_what_was_under_way(
    concurrency: int, how: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    pragmas = journal._PRAGMAS
    with monkeypatch.context() as small:
        small.setattr(journal, "_PRAGMAS", (*pragmas, "max_page_count=24"))
        client = Scripted()
        with pytest.raises(IncompleteError, match=r"is the disk full\?") as caught:
            run_jobs_sync(jobs(2000), client, how(concurrency=concurrency))
    paid, lost = client.calls.total(), caught.value.lost
    assert 10 < paid < 2000
    replies = "1 reply" if lost == 1 else f"{lost} replies"
    told = f"{replies} paid for could not be kept, the rest is kept, run the same again"
    assert told in str(caught.value)
    rest = Scripted()
    assert run_jobs_sync(jobs(2000), rest, how()) == right(2000)
    assert rest.calls.total() == 2000 - paid + lost


def test_every_reply_is_on_disk_before_a_judge_sees_it(
    how: Callable[..., Settings],
) -> None:
    path = how().journal
    assert path is not None
    kept: list[int] = []

    def watchful(number: int) -> Conversation[None]:
        yield Prompt("", f"question {number}")
        with sqlite3.connect(path) as reader:
            found = reader.execute(
                "SELECT count(*) FROM replies WHERE prompt LIKE ?",
                (f"%question {number}",),
            )
            kept.append(found.fetchone()[0])
        reader.close()

    run_jobs_sync([partial(watchful, n) for n in range(30)], Scripted(), how())
    assert kept == [1] * 30


def test_a_reply_with_half_a_character_is_the_same_when_it_comes_back(
    how: Callable[..., Settings],
) -> None:
    def echo() -> Conversation[str]:
        return (yield Prompt("", "odd \ud800")).text

    first = run_jobs_sync([echo], Scripted(lambda _: "a\ud800\x00b"), how())
    assert run_jobs_sync([echo], Scripted(), how()) == first


def test_an_invalid_reply_is_an_error_of_karat() -> None:
    assert issubclass(InvalidReply, ValueError)
    with pytest.raises(UsageError, match="concurrency must be 1 or more, got 0"):
        Settings(concurrency=0)
