"""Kills a process that writes, again and again; nothing that it says is done is lost.

    python -m tests.killed history 250

Each time a process is forked, which writes and says what it has done, and is killed at
some moment. Another then reads what is there. What is written: the journal of replies,
a saved result, a history store, and the cache of retrieved documents.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

# A process with threads must not be forked.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from karat import evaluate, history, load, retrieve
from karat.extend import Conversation, Prompt, Settings
from tests.llm.fault_server import verdicts
from tests.llm.judges import Scripted, grade, right, run_jobs_sync

AT_ONCE = 4
ROWS = 400
"""So many steps for each kill: more than a process makes before it is killed."""
LONGEST = 0.1
HELD = "held: "
GOLD = {f"q{n}": {"d1": 1} for n in range(4)}
RUN = {query: [f"d{n}" for n in range(8)] for query in GOLD}
Say = Callable[[object], object]


def write_journal(rows: int, say: Say) -> None:
    """Judge all rows; say what is asked, and what has its verdict then."""
    asked = set()

    def answer(prompt: Prompt) -> str:
        asked.add(prompt.user)
        say(prompt.user)
        return json.dumps(verdicts(prompt.user))

    def told(number: int) -> Conversation[dict[int, int]]:
        verdict = yield from grade(number, number + 1_000_000)
        if (user := f"grade {number} {number + 1_000_000}") in asked:
            say(f"{HELD}{user}")
        return verdict

    settings = Settings(journal=Path("journal.sqlite"), concurrency=AT_ONCE)
    jobs = [partial(told, number) for number in range(rows)]
    assert run_jobs_sync(jobs, Scripted(answer), settings) == right(rows)


def write_cache(rows: int, say: Say) -> None:
    """Retrieve for all queries; say what is asked."""

    def search(query: str) -> list[str]:
        say(query)
        time.sleep(0.004)
        return [f"{query}-{n}" for n in range(3)]

    queries = {f"q{n}": f"question {n}" for n in range(rows)}
    run = retrieve(
        search, queries, version="1", cache=Path("c.sqlite"), concurrency=AT_ONCE
    )
    assert run.sample_ids()[0] == "question 0-0"
    assert not run.failures


def write_saved(rows: int, say: Say) -> None:
    """Save one result after the other to one file."""
    known = int(load("result.json").run) if Path("result.json").exists() else 0
    result = evaluate(RUN, gold=GOLD, metrics=["rr", "ndcg@5"], keep=8)
    for number in range(known + 1, known + rows):
        replace(result, run=str(number)).save("result.json")
        say(number)


def write_history(rows: int, say: Say) -> None:
    """Push a run, and label its documents."""
    with history.open("history.db") as store:
        result = evaluate(RUN, gold=GOLD, metrics=["rr", "ndcg@5"], keep=8)
        store.push(result)
        for number in range(rows):
            label = {"query": f"q{number % 4}", "document": f"d{number % 8}"}
            grade = random.randrange(3)
            (added,) = store.label([{**label, "grade": grade, "who": "ann"}]).labels
            say(added)


def check_calls(said: Sequence[str], kills: int) -> None:
    """What has its verdict is not asked again, nor is more than was under way."""
    asked: Counter[str] = Counter()
    held: set[str] = set()
    for line in said:
        assert line not in held, f"{line} is asked again"
        if line.startswith(HELD):
            held.add(line.removeprefix(HELD))
        else:
            asked[line] += 1
    assert asked.total() - len(asked) <= kills * AT_ONCE


def check_saved(said: Sequence[str], _: int) -> None:
    """The file is whole, and no older than what was said."""
    if said:
        result = load("result.json")
        assert int(result.run) >= max(map(int, said))
        assert result.means == evaluate(RUN, GOLD, metrics=[*result]).means


def check_history(said: Sequence[str], _: int) -> None:
    """Every label is there, and scores are those of a fresh evaluation."""
    if said:
        with history.open("history.db") as store:
            assert {*map(int, said)} <= {label.id for label in store.labels()}
            (run,) = store.runs()
            gold = store.gold()
        metrics = ["rr", "ndcg@5"]
        assert run.means == evaluate(RUN, gold=gold, metrics=metrics).means


KINDS: dict[str, tuple[Callable[[int, Say], None], Callable[[Any, int], None]]] = {
    "journal": (write_journal, check_calls),
    "saved": (write_saved, check_saved),
    "history": (write_history, check_history),
    "cache": (write_cache, check_calls),
}


def forked(work: Callable[[Say], object]) -> tuple[int, int]:
    """A process that does something, and where what it says can be read."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        code = 1
        try:
            work(lambda line: os.write(write, f"{line}\n".encode()))
            code = 0
        except BaseException:  # noqa: BLE001
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    os.close(write)
    return child, read


def ended(
    child: int, read: int, wait: Callable[[Any], list[str]] = list
) -> tuple[int, list[str]]:
    """How a process ended, and the whole lines that it said."""
    with os.fdopen(read, encoding="utf-8") as stream:
        lines = wait(stream)
        lines += stream
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, [line[:-1] for line in lines if line.endswith("\n")]


def kill_soon(child: int, stream: Any) -> list[str]:
    """Kill a process, half of the time after it has said something."""
    lines = [stream.readline()] if random.random() < 0.5 else []
    time.sleep(random.uniform(0, LONGEST))
    os.kill(child, signal.SIGKILL)
    return lines


def soak(kind: str, kills: int) -> tuple[int, int]:
    """Kill, and read what is left; how many were killed, and what they had done."""
    write, check = KINDS[kind]
    rows, killed = ROWS * kills, 0
    said: list[str] = []
    for number in range(1, kills + 1):
        child, read = forked(partial(write, rows))
        code, lines = ended(child, read, partial(kill_soon, child))
        assert code in {0, -signal.SIGKILL}, f"{kind}: kill {number} finds it ended"
        killed += code != 0
        said += lines
        code, _ = ended(*forked(partial(_checked, check, said, number)))
        assert code == 0, f"{kind}: something is lost after kill {number}"
    steps = sum(not line.startswith(HELD) for line in said)
    code, lines = ended(*forked(partial(write, max(ROWS, steps))))
    assert (code, bool(lines) or check is check_calls) == (0, True)
    said += lines
    assert ended(*forked(partial(_checked, check, said, kills))) == (0, [])
    return killed, steps


def _checked(
    check: Callable[[Any, int], None], said: Sequence[str], kills: int, _: Say
) -> None:
    check(said, kills)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        killed, steps = soak(sys.argv[1], int(sys.argv[2]))
    sys.stdout.write(f"{sys.argv[1]}: {killed} killed in {steps} steps, none lost\n")
