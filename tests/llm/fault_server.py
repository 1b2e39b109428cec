"""An OpenAI-compatible server on loopback that answers, or misbehaves, as told.

It grades numbers: to the prompt `grade 3 7` it replies with a verdict for each number.
A fault depends on the prompt and on how often it came, never on the clock, so that two
runs meet the same faults. `python -m tests.llm.fault_server` runs it as a process.
"""

import asyncio
import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

NAPPING = 5.0
MOST_FAULTS_IN_A_ROW = 4
TRANSPORT = (
    "busy",
    "error",
    "overloaded",
    "reset",
    "slow",
    "truncated",
    "malformed",
    "empty",
    "no choices",
)
CONTENT = ("wrong schema", "wrong ids", "duplicates", "cut content")
FAULTS = TRANSPORT + CONTENT
REPAIR = "[repair]"


def verdicts(user: str) -> dict[str, Any]:
    """The right answer to a prompt: odd numbers are relevant."""
    numbers = [int(word) for word in user.split() if word.isdigit()]
    return {"verdicts": [{"id": n, "grade": n % 2} for n in numbers]}


def spoilt(user: str, fault: str) -> str:
    """A wrong answer of this kind to a prompt."""
    right = verdicts(user)["verdicts"]
    wrong: dict[str, object] = {
        "wrong schema": {"answers": [1, 2, 3]},
        "wrong ids": {"verdicts": [{**v, "id": v["id"] + 100_000} for v in right]},
        "duplicates": {"verdicts": right + right},
    }
    if fault == "cut content":
        return json.dumps(verdicts(user))[:-7]
    return json.dumps(wrong[fault])


class FaultServer:
    """The server; counts what it was asked and what it answered in full."""

    def __init__(
        self,
        rate: float = 0.0,
        faults: tuple[str, ...] = FAULTS,
        delay: float = 0.0,
        answer: Callable[[dict[str, Any]], tuple[Any, ...]] | None = None,
        right: Callable[[str], dict[str, Any]] = verdicts,
    ) -> None:
        self.rate = rate
        self.faults = faults
        self.delay = delay
        self.answer = answer
        self.right = right
        self.asked: Counter[str] = Counter()
        self.paid: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.url = ""
        self._open: list[asyncio.StreamWriter] = []
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self.serve())

    async def serve(self) -> None:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self._ready.set()
        await self._stop.wait()
        # A connection left open is collected later, and fails whichever test runs then:
        # asyncio leaves those open that it accepts while the server closes.
        await asyncio.sleep(0.01)
        server.close()
        for writer in self._open:
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._open.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                sizes = [
                    int(line.split(":")[1])
                    for line in head.lower().split("\r\n")
                    if line.startswith("content-length:")
                ]
                body = await reader.readexactly(sizes[0]) if sizes else b""
                self.headers.append(head)
                await self._respond(writer, json.loads(body or b"{}"))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _respond(
        self, writer: asyncio.StreamWriter, request: dict[str, Any]
    ) -> None:
        self.requests.append(request)
        if self.answer is not None:
            await _send(writer, *self.answer(request))
            return
        user = request["messages"][-1]["content"]
        fault = self._fault(user)
        self.asked[user] += 1
        self.met[fault or "none"] += 1
        if self.delay:
            await asyncio.sleep(self.delay)
        if fault in TRANSPORT:
            await _misbehave(writer, fault, completion(json.dumps(self.right(user))))
            return
        text = spoilt(user, fault) if fault else json.dumps(self.right(user))
        self.paid[user] += 1
        await _send(writer, 200, completion(text))

    def _fault(self, user: str) -> str | None:
        times = self.asked[user]
        chance = random.Random(f"{user} {times}")
        if times >= MOST_FAULTS_IN_A_ROW or chance.random() >= self.rate:
            return None
        # Only the first round is spoilt: a judge may repair a reply once.
        choices = TRANSPORT if REPAIR in user else self.faults
        return chance.choice(choices)


def completion(text: str) -> dict[str, Any]:
    """A reply as OpenAI's servers write it."""
    return {
        "id": f"reply-{abs(hash(text)) % 10**8}",
        "object": "chat.completion",
        "model": "tiny-2026",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text},
            }
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30},
    }


async def _misbehave(
    writer: asyncio.StreamWriter, fault: str | None, good: dict[str, Any]
) -> None:
    match fault:
        case "busy":
            error = {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}
            await _send(writer, 429, error, "retry-after: 0.02\r\n")
        case "error":
            await _send(writer, 500, {"error": {"message": "oops"}})
        case "overloaded":
            await _send(writer, 529, {"error": {"message": "overloaded"}})
        case "reset":
            writer.transport.abort()
            raise ConnectionResetError
        case "slow":
            body = json.dumps(good).encode()
            writer.write(_head(200, len(body)) + body[:10])
            await writer.drain()
            await asyncio.sleep(NAPPING)
            raise ConnectionResetError
        case "truncated":
            body = json.dumps(good).encode()
            writer.write(_head(200, len(body)) + body[: len(body) // 2])
            await writer.drain()
            raise ConnectionResetError
        case "malformed":
            await _send(writer, 200, json.dumps(good)[:-9])
        case "empty":
            await _send(writer, 200, completion(""))
        case "no choices":
            await _send(writer, 200, {"choices": []})


async def _send(
    writer: asyncio.StreamWriter, status: int, body: object, extra: str = ""
) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    data = text.encode()
    writer.write(_head(status, len(data), extra) + data)
    await writer.drain()


def _head(status: int, length: int, extra: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n"
        f"{extra}content-length: {length}\r\n\r\n"
    ).encode()


if __name__ == "__main__":
    server = FaultServer(float(sys.argv[1]) if len(sys.argv) > 1 else 0.3)
    with server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.read()
