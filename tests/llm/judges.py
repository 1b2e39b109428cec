"""A small judge for tests, and clients that answer it without a server."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from karat.data.judgements import Usage
from karat.extend import (
    Client,
    Conversation,
    InvalidReply,
    Prompt,
    Reply,
    Settings,
    run_sync,
)
from karat.llm.dry_run import Estimate, rehearse
from karat.llm.run_jobs import Job, Results, run_jobs
from tests.llm.fault_server import REPAIR, verdicts

T = TypeVar("T")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"verdicts": {"type": "array"}},
    "required": ["verdicts"],
    "additionalProperties": False,
}


def estimate(
    jobs: Sequence[Job[T]], client: Client, settings: Settings, **assumed: Any
) -> Estimate:
    """What a run of jobs would take."""
    return run_sync(partial(rehearse, jobs, client, settings, **assumed))[0]


def run_jobs_sync(
    jobs: Sequence[Job[T]], client: Client, settings: Settings | None = None
) -> Results[T]:
    """`run_jobs` for tests that do not await."""
    return run_sync(lambda: run_jobs(jobs, client, settings))


def grade(*numbers: int) -> Conversation[dict[int, int]]:
    """Asks for a grade of each number; asks once more if the reply is no use."""
    user = f"grade {' '.join(map(str, numbers))}"
    reply = yield Prompt("Grade each number.", user, SCHEMA, name="grade")
    try:
        return read(reply.text, numbers)
    except InvalidReply as error:
        user = f"{user}\n{REPAIR} {error}"
    reply = yield Prompt("Grade each number.", user, SCHEMA, name="grade")
    return read(reply.text, numbers)


def read(text: str, numbers: tuple[int, ...]) -> dict[int, int]:
    """One verdict per number, or an error that says what is wrong."""
    try:
        found = [(v["id"], v["grade"]) for v in json.loads(text)["verdicts"]]
    except (ValueError, KeyError, TypeError):
        raise InvalidReply("the reply has not the right form") from None
    if sorted(n for n, _ in found) != sorted(numbers):
        raise InvalidReply("each id must occur once")
    return dict(found)


def jobs(count: int) -> list[Job[dict[int, int]]]:
    """So many judges, each with two numbers of its own."""
    return [partial(grade, n, n + 1_000_000) for n in range(count)]


def right(count: int) -> list[dict[int, int]]:
    """What these judges should find."""
    return [{n: n % 2, n + 1_000_000: n % 2} for n in range(count)]


class Scripted:
    """A client that answers by a function and counts."""

    def __init__(
        self,
        answer: Callable[[Prompt], str] | None = None,
        endpoint: str = "http://127.0.0.1:1/v1",
        model: str = "tiny",
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.model = model
        self.parameters: Mapping[str, Any] = parameters or {}
        self.calls: Counter[str] = Counter()
        self.at_once = 0
        self.most_at_once = 0
        self._answer = answer or (lambda prompt: json.dumps(verdicts(prompt.user)))

    async def complete(self, prompt: Prompt) -> Reply:
        self.calls[prompt.user] += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0)
            return Reply(self._answer(prompt), Usage(20, 10), "reply-1", self.model)
        finally:
            self.at_once -= 1
