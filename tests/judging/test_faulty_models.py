"""A model that fails and babbles a third of the time changes no score."""

import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import karat
from karat import Evaluation
from karat.errors import Transient
from karat.extend import Claims, JudgeSession, Prompt, Reply, Settings
from tests.judging.models import Model, claims_in, contexts_in, verdicts

QUERIES = 500
REPAIRED = "could not be used"


def digit(*parts: object) -> int:
    """A number that looks random and never changes."""
    return zlib.crc32(repr(parts).encode())


def samples() -> list[dict[str, Any]]:
    return [
        {
            "id": f"q{n}",
            "contexts": [f"context {n} {rank}" for rank in range(1, 6)],
            "claims": [f"claim {n} {number}" for number in range(1, 5)],
        }
        for n in range(QUERIES)
    ]


def right(prompt: Prompt) -> str:
    said: dict[int, dict[str, Any]] = {}
    for number in claims_in(prompt):
        text = prompt.user.split(f"[begin claim {number} |")[1].split("\n")[1]
        rank = digit(text) % 7
        said[number] = {"alone": [rank] if rank in contexts_in(prompt) else []}
    return verdicts(said)


CONTENT: list[Callable[[str], str]] = [
    lambda _: "",
    lambda _: "I am sorry, I cannot do that.",
    lambda text: text[:-9],
    lambda text: text.replace('"claim": 1', '"claim": 99'),
    lambda text: text.replace('"claim": 2', '"claim": 1'),
    lambda text: text.replace('"alone": [', '"alone": [42, ').replace(", ]", "]"),
    lambda text: text.replace("verdicts", "answers"),
    lambda text: f"{text} or perhaps {text.replace('1', '2')}",
]


class Faulty(Model):
    """Fails on the way or answers nonsense for three prompts in ten, at first."""

    def __init__(self) -> None:
        super().__init__(right)
        self.tries: Counter[str] = Counter()

    async def complete(self, prompt: Prompt) -> Reply:
        reply = await super().complete(prompt)
        self.tries[prompt.user] += 1
        chance = digit(prompt.user) % 20
        if chance < 3 and self.tries[prompt.user] < 3:
            raise Transient("the line is bad")
        if chance in {3, 4, 5} and REPAIRED not in prompt.user:
            spoil = CONTENT[digit("how", prompt.user) % len(CONTENT)]
            return Reply(spoil(reply.text))
        return reply


def judged(model: Model, journal: Path) -> Evaluation:
    settings = Settings(journal=journal, first_wait=0.0, concurrency=32)
    return karat.evaluate(
        samples(),
        metrics=["context_recall", "context_recall@2", "rr", "ndcg@5", "ap"],
        judge=Claims(JudgeSession(model, settings)),
    )


def without_usage(evaluation: Evaluation) -> dict[str, Any]:
    everything = evaluation.to_dict()
    del everything["evaluation"]["matches"]["claims"]["usage"]
    return everything


@pytest.mark.slow
def test_two_thousand_claims_through_a_faulty_model_score_the_same(
    tmp_path: Path,
) -> None:
    faulty = Faulty()
    spoilt = judged(faulty, tmp_path / "faulty.sqlite")
    clean = judged(Model(right), tmp_path / "clean.sqlite")
    assert len(faulty.asked) > QUERIES * 1.3
    assert spoilt["context_recall"].failed == 0
    assert spoilt["context_recall"].n == QUERIES
    assert 0.2 < spoilt.means["context_recall"] < 0.9
    assert without_usage(spoilt) == without_usage(clean)
    # Replies of no use were paid for, and nothing else makes a difference.
    assert spoilt.usage.replies == len({*faulty.tries}) > clean.usage.replies == QUERIES


@pytest.mark.slow
def test_running_it_again_asks_nothing_and_changes_no_byte(tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    first = judged(Faulty(), journal)
    silent = Faulty()
    assert judged(silent, journal).to_json() == first.to_json()
    assert silent.asked == []
