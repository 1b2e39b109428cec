"""What an attacker tried: odd servers, files that are no journals, poisoned prompts."""

import asyncio
import json
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from karat.data.judgements import Failure, Usage
from karat.errors import Refused, Transient
from karat.extend import (
    Conversation,
    FormatError,
    FunctionClient,
    IncompleteError,
    Prices,
    Prompt,
    Reply,
    Settings,
    UsageError,
)
from karat.llm.journal import Journal, ProcessLock
from tests.llm.fault_server import verdicts
from tests.llm.judges import Scripted, estimate, jobs, right, run_jobs_sync


@pytest.fixture
def how(tmp_path: Path) -> Callable[..., Settings]:
    def made(**options: object) -> Settings:
        told = {"journal": tmp_path / "journal.sqlite", "first_wait": 0.0, **options}
        return Settings(**told)  # type: ignore[arg-type]

    return made


class Odd(Scripted):
    """Answers rightly, and says odd things about it."""

    def __init__(self, usage: Usage, id: str, model: str) -> None:
        super().__init__()
        self._said = (usage, id, model)

    async def complete(self, prompt: Prompt) -> Reply:
        reply = await super().complete(prompt)
        return Reply(reply.text, *self._said)


@pytest.mark.parametrize(
    "said",
    [
        (Usage(2**63, 1), "id", "tiny"),
        (Usage(2**62, 2**62), "id", "tiny"),
        (Usage(1, 1), "\ud800", "tiny"),
        (Usage(1, 1), "id", "\ud800"),
    ],
)
def test_what_no_journal_can_hold_is_kept_as_far_as_it_goes(
    said: tuple[Usage, str, str], how: Callable[..., Settings]
) -> None:
    heard = run_jobs_sync(jobs(3), Odd(*said), how())
    assert heard == right(3)
    assert all(usage.prompt_tokens < 10**6 for usage in heard.usage)
    again = Scripted()
    assert run_jobs_sync(jobs(3), again, how()) == right(3)
    assert not again.calls
    with Journal(how().journal) as journal:
        assert journal.contents()[0].entries == 3


def poisoned(count: int) -> Callable[[Prompt], str]:
    """Breaks down over the first rows, and answers the others."""

    def answer(prompt: Prompt) -> str:
        if int(prompt.user.split()[1]) < count:
            raise Transient("500 oops")
        return json.dumps(verdicts(prompt.user))

    return answer


@pytest.mark.parametrize("bad", [5, 8, 20])
def test_prompts_that_break_the_server_do_not_keep_the_others_waiting_for_ever(
    bad: int, how: Callable[..., Settings]
) -> None:
    settings = how(concurrency=8, max_attempts=2, longest_wait=0.0)
    for _ in range(6):
        try:
            found = run_jobs_sync(jobs(38), Scripted(poisoned(bad)), settings)
            break
        except IncompleteError:
            continue
    else:
        pytest.fail("the run never ends")
    assert [isinstance(row, Failure) for row in found] == [n < bad for n in range(38)]
    # The same command says the same again.
    again = run_jobs_sync(jobs(38), Scripted(poisoned(bad)), settings)
    assert [isinstance(row, Failure) for row in again] == [n < bad for n in range(38)]


@pytest.mark.parametrize("kind", ["text", "database", "folder", "device"])
def test_a_file_of_somebody_else_is_left_as_it_is(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    if kind == "text":
        path.write_text("dear diary", "utf-8")
    elif kind == "database":
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE theirs (x)")
        database.close()
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    path.chmod(0o755)
    before = path.read_bytes() if path.is_file() else None
    for read_only in (False, True):
        with pytest.raises((FormatError, UsageError)):
            Journal(path, read_only=read_only)
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert before == (path.read_bytes() if path.is_file() else None)
    assert not (tmp_path / "theirs-wal").exists()


def test_an_estimate_and_a_replay_leave_the_journal_as_it_is(
    how: Callable[..., Settings], tmp_path: Path
) -> None:
    run_jobs_sync(jobs(3), Scripted(), how())
    path = tmp_path / "journal.sqlite"
    path.chmod(0o444)
    before, touched = path.read_bytes(), path.stat().st_mtime_ns
    assert estimate(jobs(4), Scripted(), how()).cached == 3
    assert run_jobs_sync(jobs(3), Scripted(), how(offline=True)) == right(3)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, touched)
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    elsewhere = tmp_path / "none.sqlite"
    assert estimate(jobs(1), Scripted(), how(journal=elsewhere)).calls == 1
    assert not elsewhere.exists()


def test_a_damaged_journal_is_a_sentence(
    how: Callable[..., Settings], tmp_path: Path
) -> None:
    run_jobs_sync(jobs(300), Scripted(), how())
    path = tmp_path / "journal.sqlite"
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(FormatError, match="cannot be read as a journal"):
        run_jobs_sync(jobs(300), Scripted(), how())
    with (
        Journal(path) as journal,
        pytest.raises(FormatError, match="cannot be read as a journal"),
    ):
        journal.contents()


class Wordy(Scripted):
    """Its replies have so many tokens, and could have 4,096."""

    def __init__(self, tokens: int) -> None:
        super().__init__(parameters={"max_tokens": 4096})
        self._tokens = tokens

    async def complete(self, prompt: Prompt) -> Reply:
        reply = await super().complete(prompt)
        return Reply(reply.text, Usage(10, self._tokens))


def test_what_calls_under_way_hold_back_is_waited_for(
    how: Callable[..., Settings],
) -> None:
    client = Wordy(100)
    settings = how(concurrency=64, prices=Prices(0, 100), max_cost=2.0)
    # All cost 1.0 together, but a handful at once might have cost more than 2.
    assert run_jobs_sync(jobs(100), client, settings) == right(100)


def test_the_limit_of_cost_holds_for_long_replies_at_once(
    how: Callable[..., Settings],
) -> None:
    client = Wordy(4000)
    prices = Prices(0, 100)
    settings = how(concurrency=64, prices=prices, max_cost=5.0)
    with pytest.raises(IncompleteError, match="could pass the limit of 5"):
        run_jobs_sync(jobs(100), client, settings)
    # Each reply costs 0.4: the twelfth could have passed the limit.
    assert client.calls.total() == 12


def test_a_refusal_without_a_reason_is_still_a_failure(
    how: Callable[..., Settings],
) -> None:
    def refuse(_: Prompt) -> str:
        raise Refused("")

    (found,) = run_jobs_sync(jobs(1), Scripted(refuse), how())
    assert isinstance(found, Failure)
    assert found.reason == "no reason was given"


def test_without_texts_a_refusal_for_all_quotes_none(
    how: Callable[..., Settings],
) -> None:
    def refuse(prompt: Prompt) -> str:
        raise Refused("no credit", detail=prompt.user, always=True)

    with pytest.raises(Refused) as caught:
        run_jobs_sync(jobs(1), Scripted(refuse), how(no_text=True))
    assert str(caught.value) == "no credit"


def test_a_plain_function_is_never_called_beside_itself(
    how: Callable[..., Settings],
) -> None:
    calls: list[str] = []

    def slow(prompt: str) -> str:
        calls.append(prompt)
        time.sleep(0.2)
        return json.dumps(verdicts(prompt.split("\n\n")[1]))

    client = FunctionClient(slow, model="slow")
    assert run_jobs_sync(jobs(1), client, how(timeout=0.05)) == right(1)
    assert len(calls) == 1


def test_who_keeps_a_turn_for_ever_is_not_waited_for_so_long(
    how: Callable[..., Settings], tmp_path: Path
) -> None:
    client = Scripted()
    with ProcessLock(tmp_path / "journal.sqlite") as stopped:
        settings = how(timeout=0.1)
        keys: list[bytes] = []
        run_jobs_sync(jobs(1), client, how(journal=tmp_path / "other.sqlite"))
        with Journal(tmp_path / "other.sqlite") as journal:
            keys += [
                row[0] for row in journal._reader.execute("SELECT key FROM replies")
            ]
        assert stopped.acquire(keys[0])
        assert run_jobs_sync(jobs(1), Scripted(), settings) == right(1)


def test_an_interrupt_at_the_very_start_stops_the_calls(
    how: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Scripted()
    waited = threading.Event.wait
    interrupted: list[bool] = []

    def wait(event: threading.Event, timeout: float | None = None) -> bool:
        if not interrupted and threading.current_thread() is threading.main_thread():
            interrupted.append(True)
            raise KeyboardInterrupt
        return waited(event, timeout)

    def slow() -> Conversation[None]:
        for number in range(1000):
            yield Prompt("Grade.", f"grade {number}")

    async def cell() -> None:
        monkeypatch.setattr(threading.Event, "wait", wait)
        with pytest.raises(KeyboardInterrupt):
            run_jobs_sync([slow], client, how())

    asyncio.run(cell())
    made = client.calls.total()
    time.sleep(0.05)
    assert client.calls.total() == made < 1000
