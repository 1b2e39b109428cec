"""`karat generate`: what a user types, sees, and pays for."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Karat
from tests.generating.scripted import FAULTS, World
from tests.llm.fault_server import FaultServer

ONE_IN_FIVE = 5


@pytest.fixture
def world(folder: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A corpus in the current folder, with a fault in one passage of five."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    faults = {n: FAULTS[n // ONE_IN_FIVE % 12] for n in range(0, 2000, ONE_IN_FIVE)}
    world = World(2000, faults)
    write_corpus(world, folder / "corpus.jsonl")
    return world


def write_corpus(world: World, path: Path) -> None:
    lines = (json.dumps({"id": d, "text": t}) for d, t in world.corpus.items())
    path.write_text("\n".join(lines), "utf-8")


@pytest.fixture
def server(world: World) -> Iterator[FaultServer]:
    with FaultServer(right=world.answer, delay=0.05) as server:
        yield server


def generated(url: str, *more: str) -> list[str]:
    model = ("--model", "writer", "--judge", "judge", "--base-url", url)
    return ["generate", "corpus.jsonl", *model, "-o", "questions.jsonl", *more]


def test_the_first_minute(server: FaultServer, karat: Karat) -> None:
    done = karat(*generated(server.url, "-n", "20", "--hops", "1"))
    assert done.code == 0
    assert ", kept 20: " in done.out
    assert "karat: wrote questions.jsonl" in done.err
    assert "one model" not in done.err
    assert "gold with 20 queries" in karat("validate", "questions.jsonl").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "m"], "say where to write with -o"),
        (["-o", "q.jsonl"], "no model to ask"),
        (["--model", "m", "-o", "q.qrels"], "holds no texts; name a .jsonl"),
        (["--model", "m", "-o", "corpus.jsonl"], "is an input, and would be overwr"),
        (["--hops", "3"], "is not one of '1', '2', '1,2'"),
        (["--model", "m", "-o", "q.jsonl", "--style", "no.txt"], "no.txt"),
    ],
)
def test_mistakes_are_named_before_anything_is_paid(
    world: World, karat: Karat, arguments: list[str], said: str
) -> None:
    del world
    done = karat("generate", "corpus.jsonl", *arguments)
    assert done.code == 2
    assert said in done.err


def test_one_model_alone_is_remarked_and_too_few_are_incomplete(
    server: FaultServer, karat: Karat
) -> None:
    write_corpus(World(8, {}), Path("corpus.jsonl"))
    arguments = generated(server.url, "-n", "7", "--hops", "1")
    place = arguments.index("--judge")
    del arguments[place : place + 2]
    done = karat(*arguments)
    assert done.code == 3
    # Two of eight leak, in each of three styles; the others repeat themselves.
    assert done.out == "asked 24, kept 6: 12 duplicate, 6 leak\n"
    assert "karat: 1 question is missing: passages, or attempts" in done.err
    assert "karat: 6 questions were written and judged by one model" in done.err


def test_a_dry_run_says_what_it_would_take(world: World, karat: Karat) -> None:
    del world
    done = karat("generate", "corpus.jsonl", "--model", "m", "-n", "10", "--dry-run")
    assert done.out.startswith("this would take: 80 calls (0 replies kept already)")


def test_a_dry_run_counts_questions_about_one_passage_apart(
    world: World, karat: Karat
) -> None:
    del world
    write_corpus(World(8, {}), Path("corpus.jsonl"))
    given = ("--model", "m", "--hops", "1", "-n", "24", "--dry-run")
    done = karat("generate", "corpus.jsonl", *given)
    # Eight passages in three styles; four other passages are graded for each.
    stages = "writing 24 questions and certifying 24 questions and grading 96 documents"
    assert f"{24 * (1 + 3 + 4)} calls (0 replies kept already) for {stages}" in done.out


@pytest.mark.slow
def test_two_hundred_questions_take_few_calls_and_a_kill_pays_none_twice(
    server: FaultServer, folder: Path
) -> None:
    arguments = generated(server.url, "-n", "200", "--hops", "1", "--concurrency", "16")
    command = [sys.executable, "-m", "karat", *arguments]
    chance = random.Random(3)
    for _ in range(4):
        worker = subprocess.Popen(command, cwd=folder, env={**os.environ})
        enough = server.paid.total() + chance.randint(50, 350)
        while server.paid.total() < enough and worker.poll() is None:
            time.sleep(0.01)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    before = server.paid.total()
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    )
    assert ", kept 200: " in done.stdout
    # Those that were under way when a process was killed were paid again, no others.
    assert 0 < before < server.paid.total()
    again = server.paid.total() - len(server.paid)
    assert again <= 4 * 16
    assert len(server.paid) <= 12 * 200
    written = (folder / "questions.jsonl").read_text("utf-8")
    offline = subprocess.run(
        [*command, "--offline"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert offline.stdout == done.stdout
    assert (folder / "questions.jsonl").read_text("utf-8") == written
    sys.stdout.write(f"{done.stdout}{len(server.paid)} calls\n")


@pytest.mark.slow
def test_faults_of_the_server_change_nothing(world: World, folder: Path) -> None:
    written = []
    for name, rate in (("calm", 0.0), ("stormy", 0.2)):
        faults = ("busy", "error", "overloaded", "reset", "truncated", "empty")
        with FaultServer(rate, faults, right=world.answer) as server:
            journal = ("--journal", f"{name}.sqlite", "--concurrency", "32")
            arguments = generated(server.url, "-n", "30", "--hops", "1", *journal)
            command = [sys.executable, "-m", "karat", *arguments]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            written.append((folder / "questions.jsonl").read_text("utf-8"))
            assert (server.met.total() > server.met["none"]) == (rate > 0)
    assert written[0] == written[1]
