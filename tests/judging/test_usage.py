"""What judging took is told, row by row and in total, and who judged."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import karat
from karat import Evaluation
from karat.data.judgements import Usage
from karat.extend import Claims, DryRun, JudgeSession, Prompt, Reply, Settings
from karat.judging import prompts
from karat.llm.limits import estimate_usage
from karat.reading.files import decode_json
from karat.results.loading import from_dict
from tests.judging.models import Model, claims_in, support, verdicts

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "evaluation-3.schema.json"
SAMPLES: list[dict[str, Any]] = [
    {
        "id": name,
        "query": f"What of {name}?",
        "retrieved_contexts": ["Rye is a grain.", "Ovens are hot."],
        "reference": f"Rye is a grain. {name} rises.",
    }
    for name in ("dough", "yeast")
]


class Counting(Model):
    """Counts its tokens: a prompt's characters, and 7 for every reply."""

    parameters: Mapping[str, Any] = {"seed": 0}

    async def complete(self, prompt: Prompt) -> Reply:
        reply = await super().complete(prompt)
        return Reply(reply.text, Usage(len(prompt.user), 7), "id-1", "scripted-0815")


def judged(
    model: Model, settings: Settings | None = None, votes: int = 1
) -> Evaluation:
    judge = JudgeSession(model, settings or Settings(journal=None))
    claims = Claims(judge, votes=votes)
    return karat.evaluate(SAMPLES, metrics=["context_recall"], judge=claims)


def test_each_row_says_what_its_replies_took() -> None:
    model = Counting(support({"Rye is a grain": [1]}))
    result = judged(model)
    for sample, trace in zip(SAMPLES, result.traces, strict=True):
        own = [prompt for prompt in model.asked if sample["id"] in prompt.user]
        assert [prompt.name for prompt in own] == ["split", "support"]
        assert trace.usage == Usage(sum(len(p.user) for p in own), 14, 2)
    total = Usage(sum(len(prompt.user) for prompt in model.asked), 28, 4)
    assert result.usage == total
    tokens = total.prompt_tokens + total.completion_tokens
    assert f"judged with 4 replies of {tokens:,} tokens" in str(result)


def test_every_vote_and_every_repair_counts() -> None:
    def answer(prompt: Prompt) -> str:
        if prompt.name == "split":
            return support({})(prompt)
        if "could not be used" not in prompt.user:
            return "I would rather not say."
        return verdicts({number: {} for number in claims_in(prompt)})

    result = judged(Counting(answer), votes=3)
    assert [trace.usage.replies for trace in result.traces if trace.usage] == [7, 7]


def test_replies_of_no_use_were_paid_for_too() -> None:
    result = judged(Counting(lambda _: "I would rather not say."))
    assert result["context_recall"].failed == 2
    assert [trace.usage.replies for trace in result.traces if trace.usage] == [3, 3]


def test_the_third_reply_may_be_the_first_of_use(tmp_path: Path) -> None:
    settings = Settings(journal=tmp_path / "journal.sqlite")
    good = support({})
    model = Counting(
        lambda prompt: (
            good(prompt) if prompt.user.count("could not be used") > 1 else ""
        )
    )
    result = judged(model, settings)
    assert result["context_recall"].failed == 0
    # Paid for is what was asked, of no use too: to split, and to judge, three times.
    assert [trace.usage.replies for trace in result.traces if trace.usage] == [6, 6]
    assert result.usage.replies == len(model.asked) == 12
    idle = Counting(good)
    assert judged(idle, settings).to_json() == result.to_json()
    assert not idle.asked


def test_a_resumed_run_says_the_same_as_one_that_was_not_stopped(
    tmp_path: Path,
) -> None:
    settings = Settings(journal=tmp_path / "journal.sqlite")
    first = judged(Counting(support({})), settings)
    idle = Counting(support({}))
    assert judged(idle, settings).to_json() == first.to_json()
    assert not idle.asked


def test_a_server_that_does_not_count_is_taken_at_the_estimate() -> None:
    model = Model(support({}))
    result = judged(model)
    expected = sum((estimate_usage(prompt) for prompt in model.asked), Usage())
    assert result.usage.prompt_tokens == expected.prompt_tokens > 0
    assert result.usage.completion_tokens == expected.completion_tokens


def test_the_saved_evaluation_says_who_judged_and_what_it_took() -> None:
    result = judged(Counting(support({})), votes=3)
    saved = decode_json(result.to_json())
    jsonschema.validate(saved, decode_json(SCHEMA.read_text("utf-8")))
    assert saved["evaluation"]["provenance"]["judge"] == {
        "model": "scripted",
        "endpoint": "script",
        "parameters": {"seed": 0},
        "prompts": prompts.VERSION,
        "votes": 3,
        "answered_by": ["scripted-0815"],
    }
    again = from_dict(saved)
    assert again.usage == result.usage
    assert again.to_json() == result.to_json()


@pytest.mark.parametrize("without", [{"judge": None}, {}])
def test_without_a_judge_nothing_is_taken(without: dict[str, Any]) -> None:
    result = karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics="rr", **without)
    assert result.usage == Usage()
    saved = result.to_dict()["evaluation"]["matches"]["id"]
    assert "usage" not in saved
    assert "judged with" not in str(result)


def test_a_rehearsal_takes_nothing() -> None:
    model = Counting(support({}))
    rehearsal = DryRun(model, Settings(journal=None))
    judge = Claims(rehearsal)
    result = karat.evaluate(SAMPLES, metrics=["context_recall"], judge=judge)
    assert rehearsal.total.calls == 4
    assert result.usage == Usage()
    assert model.asked == []
