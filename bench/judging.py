"""What judging costs besides the model: kept replies, many calls at once, faults."""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import karat
from karat.data.judgements import Usage
from karat.extend import Claims, Prompt, Reply, Settings, run_sync
from karat.llm.openai_client import OpenAIClient
from karat.llm.run_jobs import run_jobs
from timing import Bar, Row, clock

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.llm.fault_server import FaultServer, verdicts
from tests.llm.judges import grade, jobs, right

__all__ = ["measure"]

_KEPT = 10_000
_AT_ONCE = 64
_FAULTY = 20_000
_LATENCY = 0.02


def measure(sizes: list[str]) -> Iterator[Row]:
    """Kept replies, the driver's own time, and, unless quick, many faults."""
    yield _kept()
    yield _rescored(_KEPT // 2, Bar(1.0, at_most=True))
    yield _rescored(_KEPT)
    yield _at_once()
    if "large" in sizes:
        yield _faults()


class _Model:
    """Answers after a while, like a server far away, at no cost of ours."""

    endpoint, model, parameters = "http://127.0.0.1:1/v1", "tiny", {"seed": 0}

    def __init__(self, latency: float) -> None:
        self._latency = latency

    async def complete(self, prompt: Prompt) -> Reply:
        await asyncio.sleep(self._latency)
        return Reply(json.dumps(verdicts(prompt.user)), Usage(20, 10))


class _Judge(_Model):
    """Finds every claim in the first context."""

    async def complete(self, prompt: Prompt) -> Reply:
        verdict = prompt.schema["properties"]["verdicts"]["items"]["properties"]
        said = {"alone": [1], "parts": [], "complete": False, "reason": "It is there."}
        found = [{"claim": n, **said} for n in verdict["claim"]["enum"]]
        return Reply(json.dumps({"verdicts": found}), Usage(20, 10))


def _kept() -> Row:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(journal=Path(folder) / "journal.sqlite", concurrency=64)
        run_sync(partial(run_jobs, jobs(_KEPT), _Model(0), settings))
        began = time.perf_counter()
        found = run_sync(partial(run_jobs, jobs(_KEPT), _Model(0), settings))
        took = time.perf_counter() - began
    assert found == right(_KEPT)
    return Row(
        f"{_KEPT:,} kept", clock(took), "", "", took, "s", Bar(1.0, at_most=True)
    )


def _rescored(count: int, bar: Bar | None = None) -> Row:
    """The whole way, from samples in memory to scores, without a call.

    Every sample has two claims, and so two judgements.
    """
    samples = [
        {
            "query": f"How long does refund {n} take?",
            "retrieved_contexts": [f"Text {k} says of refund {n}." for k in range(5)],
            "claims": [f"Refund {n} takes two days.", f"Gift card {n} is instant."],
        }
        for n in range(count)
    ]

    def score() -> None:
        judge = Claims(_Judge(0), Settings(journal=path, concurrency=64))
        karat.evaluate(samples, metrics=["context_recall", "rr"], judge=judge)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.sqlite"
        score()
        took = min(_processor_time(score) for _ in range(3))
    return Row(f"{2 * count:,} verdicts", clock(took), "", "", took, "s", bar)


def _at_once() -> Row:
    """Processor time per call, less what the model and the judge take by themselves."""
    count = 6_000

    async def bare() -> None:
        model = _Model(_LATENCY)

        async def work(numbers: Iterator[int]) -> None:
            for number in numbers:
                judge = grade(number, number + 1_000_000)
                with suppress(StopIteration):
                    judge.send(await model.complete(next(judge)))

        numbers = iter(range(count))
        await asyncio.gather(*(work(numbers) for _ in range(_AT_ONCE)))

    def driven() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "journal.sqlite"
            settings = Settings(journal=path, concurrency=_AT_ONCE)
            run_sync(partial(run_jobs, jobs(count), _Model(_LATENCY), settings))

    floor = _processor_time(partial(asyncio.run, bare()))
    each = (_processor_time(driven) - floor) / count * 1000
    return Row(
        f"{_AT_ONCE} at once",
        f"{each:.2f} ms",
        "",
        "",
        each,
        "ms",
        Bar(1, at_most=True),
    )


def _faults() -> Row:
    with FaultServer(rate=0.3) as server, tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            journal=Path(folder) / "journal.sqlite",
            concurrency=32,
            timeout=2.0,
            max_attempts=12,
            first_wait=0.01,
            longest_wait=0.05,
        )
        client = OpenAIClient("tiny", base_url=server.url)
        began = time.perf_counter()
        found = run_sync(partial(run_jobs, jobs(_FAULTY), client, settings))
        took = time.perf_counter() - began
    lost = sum(ours != truth for ours, truth in zip(found, right(_FAULTY), strict=True))
    return Row(
        f"{_FAULTY:,} at 30 %", clock(took), "", "", lost, "lost", Bar(0, at_most=True)
    )


def _processor_time(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
