"""What is sent besides the prompt, and replies that reach their longest length."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from karat.data.judgements import Failure, Usage
from karat.errors import Refused
from karat.extend import JudgeSession, Prompt, Reply, Settings, UsageError, grade_pool
from karat.judging.splitting import split
from karat.llm.journal import PromptKeys
from karat.llm.openai_client import OpenAIClient
from tests.llm.fault_server import FaultServer, completion
from tests.llm.judges import run_jobs_sync
from tests.llm.test_openai_client import ask, error

SENTENCE = "the reply was cut off at 4,096 tokens; --max-tokens allows more"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KARAT_ALLOWED_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)


def cut(text: str, tokens: int = 4096) -> dict[str, Any]:
    """A reply that reached the limit."""
    body = completion(text)
    body["choices"][0]["finish_reason"] = "length"
    body["usage"]["completion_tokens"] = tokens
    return body


def test_a_reply_may_be_4096_tokens_long_unless_told() -> None:
    with FaultServer(answer=lambda _: (200, completion("yes"))) as server:
        ask(OpenAIClient("tiny", base_url=server.url))
        ask(OpenAIClient("tiny", base_url=server.url, parameters={"max_tokens": 9}))
        ask(OpenAIClient("tiny", base_url=server.url, parameters={"max_tokens": None}))
        sent = [request.get("max_tokens") for request in server.requests]
    assert sent == [4096, 9, None]


def test_what_is_sent_is_part_of_what_names_a_reply() -> None:
    def name(**parameters: Any) -> bytes:
        client = OpenAIClient("m", "http://127.0.0.1:1/v1", parameters=parameters)
        assert ("max_tokens" in client.parameters) == (
            "max_completion_tokens" not in parameters
            and parameters.get("max_tokens", 1) is not None
        )
        return PromptKeys(client).of(Prompt("", "?"))

    others = [name(), name(reasoning_effort="low"), name(seed=1), name(seed=None)]
    assert len({*others}) == 4
    # A whole reply is right whatever length it might have had.
    limits = [name(max_tokens=9), name(max_tokens=None), name(max_completion_tokens=9)]
    assert {*limits} == {name()}


@pytest.mark.parametrize("also_refused", [False, True])
def test_a_model_that_thinks_is_told_the_limit_under_its_other_name(
    also_refused: bool,  # noqa: FBT001
) -> None:
    def thinking(request: dict[str, Any]) -> tuple[int, object]:
        if "max_tokens" in request:
            said = "Unsupported parameter: 'max_tokens' is not supported with this "
            return 400, error(f"{said}model. Use 'max_completion_tokens' instead.")
        if also_refused and "max_completion_tokens" in request:
            return 400, error("max_completion_tokens: extra fields not permitted")
        return 200, completion("fine")

    with FaultServer(answer=thinking) as server:
        client = OpenAIClient("o9", server.url, parameters={"max_tokens": 99})
        assert [ask(client).text, ask(client).text] == ["fine", "fine"]
        last = server.requests[-1]
        assert len(server.requests) == 3 + also_refused
    assert "max_tokens" not in last
    assert last.get("max_completion_tokens") == (None if also_refused else 99)


def test_a_context_without_room_for_the_longest_reply_is_asked_without_limit() -> None:
    def small(request: dict[str, Any]) -> tuple[int, object]:
        if "max_tokens" in request:
            said = "'max_tokens' is too large: 4096. This model's maximum context "
            return 400, error(f"{said}length is 4096 tokens")
        return 200, completion("fine")

    with FaultServer(answer=small) as server:
        client = OpenAIClient("tiny", base_url=server.url)
        assert ask(client).text == "fine"
        # A shorter prompt may leave room again.
        assert ask(client).text == "fine"
        assert len(server.requests) == 4


def test_a_prompt_that_is_too_long_all_the_same_is_said_to_be_so() -> None:
    long = error("maximum context length is 8 tokens")
    with FaultServer(answer=lambda _: (400, long)) as server:
        with pytest.raises(Refused, match="too long for model 'tiny'"):
            ask(OpenAIClient("tiny", base_url=server.url))
        assert len(server.requests) == 2


def test_parameters_that_the_library_does_not_know_are_sent() -> None:
    told = {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}}
    with FaultServer(answer=lambda _: (200, completion("yes"))) as server:
        ask(OpenAIClient("tiny", base_url=server.url, parameters=told))
        (request,) = server.requests
    assert {name: request[name] for name in told} == told


def test_a_parameter_that_was_asked_for_is_not_dropped_in_silence() -> None:
    def strict(request: dict[str, Any]) -> tuple[int, object]:
        if "reasoning_effort" in request:
            return 400, error("Unknown parameter", param="reasoning_effort")
        return 200, completion("fine")

    with FaultServer(answer=strict) as server:
        client = OpenAIClient("m", server.url, parameters={"reasoning_effort": "low"})
        with pytest.raises(Refused, match="does not take reasoning_effort='low'") as no:
            ask(client)
    assert no.value.always


def test_a_parameter_with_a_short_name_is_not_found_in_every_word() -> None:
    with FaultServer(answer=lambda _: (400, error("strange words"))) as server:
        client = OpenAIClient("m", base_url=server.url, parameters={"n": 1})
        with pytest.raises(Refused, match="refused the prompt"):
            ask(client)


@pytest.mark.parametrize("name", ["response_format", "stream", "model"])
def test_what_karat_sends_itself_is_no_parameter(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is not a parameter"):
        OpenAIClient("m", "http://127.0.0.1:1/v1", parameters={name: True})


def test_a_reply_that_was_cut_off_says_so() -> None:
    with FaultServer(answer=lambda _: (200, cut('{"grade": '))) as server:
        reply = ask(OpenAIClient("tiny", base_url=server.url))
    assert (reply.cut, reply.usage.completion_tokens) == (True, 4096)


def test_a_model_that_only_thought_is_not_asked_again_and_again(tmp_path: Path) -> None:
    settings = Settings(journal=tmp_path / "journal.sqlite", first_wait=0)
    with FaultServer(answer=lambda _: (200, cut(""))) as server:
        session = JudgeSession(OpenAIClient("tiny", base_url=server.url), settings)
        (found,) = session.run_jobs([lambda: split(None, "Bread rises.")])
        assert len(server.requests) == 1
    assert found == Failure(
        "the reply was cut off at 4,096 tokens before it said anything; --max-tokens "
        "allows more, and pays again only for what was cut off",
        "refused",
    )


def replies_of(*bodies: dict[str, Any]) -> Iterator[tuple[int, object]]:
    return iter([(200, body) for body in bodies])


def test_a_reply_cut_off_twice_fails_with_what_to_do_then_and_ever_after(
    tmp_path: Path,
) -> None:
    settings = Settings(journal=tmp_path / "journal.sqlite")
    answers = replies_of(cut('{"claims": ["a'), cut('{"claims": ["b'))
    with FaultServer(answer=lambda _: next(answers)) as server:
        client = OpenAIClient("tiny", base_url=server.url)
        first = run_jobs_sync([lambda: split(None, "Bread rises.")], client, settings)
        again = run_jobs_sync([lambda: split(None, "Bread rises.")], client, settings)
        asked = [request["messages"][1]["content"] for request in server.requests]
    assert (
        first
        == again
        == [
            Failure(
                f"{SENTENCE}, and pays again only for what was cut off", "invalid", 2
            )
        ]
    )
    assert len(asked) == 2
    assert "could not be used: it was cut off before its end." in asked[1]


def test_a_cut_off_reply_is_repaired_even_where_it_holds_an_answer(
    tmp_path: Path,
) -> None:
    settings = Settings(journal=tmp_path / "journal.sqlite")
    whole = json.dumps({"claims": ["Bread rises"]})
    draft = json.dumps({"claims": ["It rises", "It is bread"]})
    answers = replies_of(
        *(cut('{"claims": ["Brea'), completion(whole)),
        *(cut(f"<think>{draft} But wait"), completion(whole)),
    )
    with FaultServer(answer=lambda _: next(answers)) as server:
        client = OpenAIClient("tiny", base_url=server.url)
        repaired = run_jobs_sync(
            [lambda: split(None, "Bread rises.")], client, settings
        )
        drafted = run_jobs_sync([lambda: split(None, "It rises.")], client, settings)
        assert len(server.requests) == 4
    assert repaired == drafted == [{"Bread rises": 1.0}]


@pytest.mark.parametrize("end", ["length", "MAX_TOKENS", "max_tokens", "model_length"])
def test_a_draft_that_was_cut_off_is_graded_neither_way(end: str) -> None:
    reply = completion('{"reason": "a draft", "grade": 3}')
    reply["choices"][0]["finish_reason"] = end
    with FaultServer(answer=lambda _: (200, reply)) as server:
        client = OpenAIClient("tiny", base_url=server.url)
        graded = grade_pool(
            {"q": {"d": "Rye."}},
            {"q": "Bread?"},
            JudgeSession(client, Settings(journal=None)),
        )
    assert graded.grades == {"q": {}}
    assert "cut off" in graded.failures["q", "d"]


def test_a_reply_of_unknown_length_was_cut_off_all_the_same() -> None:
    judge = split(None, "Bread rises.")
    next(judge)
    judge.send(Reply("{", Usage(), cut=True))
    with pytest.raises(ValueError, match=r"^the reply was cut off; --max-tokens"):
        judge.send(Reply("{", Usage(), cut=True))


def test_a_run_is_announced_before_its_first_reply() -> None:
    seen: list[tuple[int, int, int]] = []
    with FaultServer(answer=lambda _: (200, completion('{"claims": []}'))) as server:

        def look(progress: Any) -> None:
            seen.append((progress.done, progress.total, len(server.requests)))

        settings = Settings(journal=None, progress=look)
        session = JudgeSession(OpenAIClient("tiny", base_url=server.url), settings)
        session.run_jobs([lambda: split(None, "Bread rises.")])
        session.run_jobs([])
    assert seen == [(0, 1, 0), (1, 1, 1)]
