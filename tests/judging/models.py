"""Models whose every reply is written down."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from karat.extend import JudgeSession, Prompt, Reply, Settings

__all__ = ["Model", "claims_in", "contexts_in", "session_of", "support", "verdicts"]


class Model:
    """Answers prompts by a function, and remembers what it was asked."""

    endpoint = "script"
    model = "scripted"
    parameters: Mapping[str, Any] = {}

    def __init__(self, answer: Callable[[Prompt], str]) -> None:
        self._answer = answer
        self.asked: list[Prompt] = []

    async def complete(self, prompt: Prompt) -> Reply:
        self.asked.append(prompt)
        return Reply(self._answer(prompt))


def session_of(answer: Callable[[Prompt], str] | Model) -> JudgeSession:
    """A session that keeps nothing."""
    model = answer if isinstance(answer, Model) else Model(answer)
    return JudgeSession(model, Settings(journal=None))


def _verdict(prompt: Prompt) -> Any:
    assert prompt.schema is not None
    return prompt.schema["properties"]["verdicts"]["items"]["properties"]


def claims_in(prompt: Prompt) -> list[int]:
    """Numbers of the claims that a prompt asks about."""
    return [*_verdict(prompt)["claim"]["enum"]]


def contexts_in(prompt: Prompt) -> list[int]:
    """Ranks of the contexts that a prompt shows."""
    return [*_verdict(prompt)["alone"]["items"]["enum"]]


def verdicts(said: Mapping[int, Mapping[str, Any]]) -> str:
    """A reply with these verdicts."""
    blank = {"alone": [], "parts": [], "complete": False, "reason": "so it is"}
    return json.dumps(
        {"verdicts": [{"claim": n, **blank, **v} for n, v in said.items()]}
    )


def support(alone: Mapping[str, Sequence[int]]) -> Callable[[Prompt], str]:
    """A model that splits at full stops, and finds claims where it is told to."""

    def answer(prompt: Prompt) -> str:
        if prompt.name == "split":
            text = prompt.user.split("[begin answer")[1].split("]\n", 1)[1]
            text = text.split("\n[end answer")[0]
            return json.dumps(
                {"claims": [c.strip() for c in text.split(".") if c.strip()]}
            )
        shown = {*contexts_in(prompt)}
        said: dict[int, dict[str, Any]] = {}
        for number in claims_in(prompt):
            text = prompt.user.split(f"[begin claim {number} |")[1].split("\n")[1]
            said[number] = {"alone": [r for r in alone.get(text, ()) if r in shown]}
        return verdicts(said)

    return answer
