"""Rows for the ragas front, and models that judge them without a model."""

import asyncio
import json
import re
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

from karat.compat.ragas import llm_factory
from karat.extend import Settings
from tests.judging.chats import completion

CANARY = "sk-canary-0123456789"


def settings(**changes: Any) -> Settings:
    """Settings for those who cannot wait, and give up all the same only when told.

    With a short timeout a busy machine may be too late any number of times in a row.
    """
    plain: dict[str, Any] = {
        "concurrency": 16,
        "timeout": 60,
        "max_attempts": 1000,
        "patience": 1000,
        "first_wait": 0.01,
        "longest_wait": 0.05,
    }
    return Settings(**{**plain, **changes})


def row(number: int) -> dict[str, Any]:
    """A question about one of many towers."""
    return {
        "user_input": f"How tall is tower {number}?",
        "retrieved_contexts": [f"Tower {number} is {n} m tall." for n in range(3)],
        "reference": f"Tower {number} is 2 m tall, and old.",
    }


ROWS = [row(number) for number in range(60)]


def answer(user: str) -> dict[str, Any]:
    """What is said of a row: its numbers decide, and now and then it is no use."""
    numbers = [int(digit) for digit in re.findall(r"\b\d+(?= m tall)", user)]
    tower = int(re.findall(r"tower (\d+)", user)[0])
    question, *again = user.split("Your last answer could not be used")
    if sha256(question.encode()).digest()[0] % 7 < 2 - len(again):
        return {"nothing": "of use"}
    if "[begin document |" in user:
        return {"reason": "so it is", "verdict": (tower + numbers[-1]) % 2}
    flags = [1, sum(numbers) % 2, tower % 2]
    return {
        "classifications": [
            {"statement": f"claim {n}", "reason": "so it is", "attributed": flag}
            for n, flag in enumerate(flags)
        ]
    }


def reply(user: str, **facts: Any) -> Any:
    """The answer as a client's completion."""
    return completion(json.dumps(answer(user)), **facts)


class Chat:
    """A client with the shape of OpenAI's that answers, and counts, by itself."""

    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)
        self.chat = SimpleNamespace(completions=self)
        self.asked: list[str] = []
        self.forty = asyncio.Event()

    async def create(self, *, model: str, messages: list[Any], **_: Any) -> Any:
        self.asked.append(messages[-1]["content"])
        if len(self.asked) == 40:
            self.forty.set()
        return reply(self.asked[-1], model=model)


def calm(metric: Any) -> list[Any]:
    """What the rows score where nothing ever goes wrong."""
    found: list[Any] = metric(llm_factory("m", client=Chat())).batch_score(ROWS)
    assert not any(result.error for result in found)
    return found
