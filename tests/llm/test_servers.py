"""Servers as they are: each by the error bodies that it documents."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from karat.data.judgements import Failure, Usage
from karat.errors import Refused, Transient
from karat.extend import Prompt, Reply, Settings, UsageError
from karat.llm.openai_client import OpenAIClient
from tests.llm.fault_server import FaultServer, completion
from tests.llm.judges import SCHEMA, jobs, run_jobs_sync

CANARY = "sk-canary-0123456789"
PROMPT = Prompt("Be brief.", "Is bread good?", SCHEMA, "support", "1")
Answer = tuple[int, object]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KARAT_ALLOWED_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)


def ask(client: OpenAIClient, prompt: Prompt = PROMPT) -> Reply:
    return asyncio.run(client.complete(prompt))


def refusing(
    name: str, status: int, body: object
) -> Callable[[dict[str, Any]], Answer]:
    """A server that takes all but one part of a request."""

    def answer(request: dict[str, Any]) -> Answer:
        roles = {message["role"] for message in request["messages"]}
        if name in request or (name == "system" and "system" in roles):
            return status, body
        return 200, completion("fine")

    return answer


def forbidden(name: str) -> dict[str, Any]:
    return {
        "type": "extra_forbidden",
        "loc": ["body", name],
        "input": 0,
        "msg": "Extra inputs are not permitted",
    }


PICKY = {
    "Mistral": (
        "seed",
        422,
        {
            "object": "error",
            "message": {"detail": [forbidden("seed")]},
            "type": "invalid_request_error",
            "code": None,
        },
    ),
    "FastAPI": ("seed", 422, {"detail": [forbidden("seed")]}),
    "Gemini": (
        "seed",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "status": "INVALID_ARGUMENT",
                    "message": 'Invalid JSON payload received. Unknown name "seed"',
                }
            }
        ],
    ),
    "Groq": (
        "response_format",
        400,
        {
            "error": {
                "message": "This model does not support response format `json_schema`",
                "type": "invalid_request_error",
            }
        },
    ),
    "OpenAI": (
        "max_tokens",
        400,
        {
            "error": {
                "message": "Unsupported parameter: 'max_tokens' is not supported "
                "with this model. Use 'max_completion_tokens' instead.",
                "param": "max_tokens",
                "code": "unsupported_parameter",
            }
        },
    ),
    "DeepSeek": (
        "response_format",
        400,
        {"error": {"message": "This response_format type is unavailable now"}},
    ),
    "LiteLLM": (
        "seed",
        400,
        {
            "error": {
                "message": "litellm.UnsupportedParamsError: does not support "
                "parameters: ['seed'], for model=m",
                "type": "None",
                "param": "None",
                "code": "400",
            }
        },
    ),
    "a bare 400": ("response_format", 400, ""),
    "an empty error": ("response_format", 422, {"error": {"message": "Bad Request"}}),
    "vLLM with Gemma": (
        "system",
        400,
        {
            "object": "error",
            "message": "System role not supported",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    "a chat template": (
        "system",
        500,
        {
            "error": {
                "message": "jinja2 error: Conversation roles must alternate "
                "user/assistant; system messages are not supported"
            }
        },
    ),
}


@pytest.mark.parametrize("server_name", PICKY)
def test_a_part_that_a_server_does_not_take_is_found_out_once(server_name: str) -> None:
    name, status, body = PICKY[server_name]
    with FaultServer(answer=refusing(name, status, body)) as server:
        client = OpenAIClient("m", server.url)
        assert [ask(client).text for _ in range(3)] == ["fine"] * 3
        assert len(server.requests) == 4
        last = server.requests[-1]
    assert client.left_out == {"system role" if name == "system" else name}
    if name == "system":
        (message,) = last["messages"]
        assert message == {"role": "user", "content": "Be brief.\n\nIs bread good?"}


def test_dropped_parts_are_said(caplog: pytest.LogCaptureFixture) -> None:
    with FaultServer(
        answer=refusing("seed", 422, {"detail": [forbidden("seed")]})
    ) as s:
        ask(OpenAIClient("m", s.url))
        assert f"{s.url} does not take seed; it is left out" in caplog.text


def test_a_bare_refusal_of_one_prompt_costs_no_schema() -> None:
    def moody(request: dict[str, Any]) -> Answer:
        return (
            (400, "")
            if "bread" in request["messages"][-1]["content"]
            else (200, completion("fine"))
        )

    with FaultServer(answer=moody) as server:
        client = OpenAIClient("m", server.url)
        tea = Prompt("Be brief.", "Is tea good?", SCHEMA)
        assert ask(client, tea).text == "fine"
        with pytest.raises(Refused, match="refused the prompt"):
            ask(client)
        # The server has taken all but the schema of this kind of prompt before.
        assert len(server.requests) == 3
        with pytest.raises(Refused, match="refused the prompt"):
            ask(client, Prompt("Be brief.", "Is bread good?", SCHEMA))
        assert len(server.requests) == 4
    assert not client.left_out


WORDLESS = {
    "a bare 400": (400, ""),
    "a code alone": (
        400,
        {"error": {"code": 3210, "message": "Anfrage ung\u00fcltig"}},
    ),
    "another language": (422, {"message": "\u8bf7\u6c42\u53c2\u6570\u9519\u8bef"}),
    "a number of its own": (400, {"message": "invalid request 7f3a-NUMBER"}),
    "all of its parts": (400, {"message": "unsupported: seed, temperature, stream"}),
}


@pytest.mark.parametrize("words", WORDLESS)
@pytest.mark.parametrize(
    "parts",
    [
        ("response_format",),
        ("seed",),
        ("temperature",),
        ("system",),
        ("max_tokens",),
        ("response_format", "temperature"),
        ("response_format", "seed", "system"),
    ],
)
def test_a_part_refused_in_any_words_is_found_by_leaving_it_out(
    words: str, parts: tuple[str, ...]
) -> None:
    status, body = WORDLESS[words]
    number = iter(range(1000))

    def answer(request: dict[str, Any]) -> Answer:
        roles = {message["role"] for message in request["messages"]}
        if any(name in request or name in roles for name in parts):
            told = json.dumps(body).replace("NUMBER", str(next(number)))
            return status, json.loads(told)
        return 200, completion("fine")

    with FaultServer(answer=answer) as server:
        client = OpenAIClient("m", server.url)
        assert ask(client).text == "fine"
        first = len(server.requests)
        assert first <= 10
        assert ask(client).text == "fine"
        assert len(server.requests) == first + 1
    names = {"system role" if name == "system" else name for name in parts}
    assert names <= client.left_out
    if len(parts) == 1:
        assert names == client.left_out


def test_a_schema_is_not_sent_where_it_is_switched_off() -> None:
    with FaultServer(answer=lambda _: (200, completion("fine"))) as server:
        client = OpenAIClient("m", server.url, parameters={"response_format": None})
        assert ask(client).text == "fine"
        assert "response_format" not in server.requests[0]
    assert "JSON schema" in server.requests[0]["messages"][0]["content"]
    with pytest.raises(UsageError, match="response_format is not a parameter to set"):
        OpenAIClient("m", server.url, parameters={"response_format": {}})


def test_a_parameter_of_the_users_that_is_refused_without_a_word_is_named() -> None:
    with FaultServer(answer=refusing("top_k", 400, "")) as server:
        client = OpenAIClient("m", server.url, parameters={"top_k": 5})
        with pytest.raises(Refused, match="does not take top_k=5") as caught:
            ask(client)
    # What was answered without it is billed.
    assert (caught.value.always, caught.value.tokens) == (True, (20, 10))


def replying(body: object, _: dict[str, Any]) -> Answer:
    return 200, body


def test_an_error_that_was_billed_is_counted_whatever_follows() -> None:
    billed = {"prompt_tokens": 5, "completion_tokens": 2}

    def answer(request: dict[str, Any]) -> Answer:
        if "seed" in request:
            return 200, {"error": {"message": "no seed", "code": 400}, "usage": billed}
        return 200, completion("fine")

    with FaultServer(answer=answer) as server:
        assert ask(OpenAIClient("m", server.url)).usage == Usage(25, 12)
    for code, kind in ((400, Refused), ("429", Transient), (None, Transient)):
        body = {"error": {"message": "no", "code": code}, "usage": billed}
        with (
            FaultServer(answer=partial(replying, body)) as server,
            pytest.raises(kind, match=r": no\b") as caught,
        ):
            ask(OpenAIClient("m", server.url))
        calls = len(server.requests)
        assert caught.value.tokens == (5 * calls, 2 * calls)


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_a_stream_that_breaks_off_is_tried_again(lost: int) -> None:
    whole = events("{", '"grade": 1', "}").split("\n\n")
    broken = "\n\n".join(whole[: -1 - lost])
    with FaultServer(answer=lambda _: (200, broken)) as server:
        client = OpenAIClient("m", server.url)
        if lost < 3:
            # Its end has come, and only the count of tokens is missing.
            assert ask(client).text == '{"grade": 1}'
            return
        with pytest.raises(Transient, match="not complete") as caught:
            ask(client)
    assert caught.value.paid


def test_a_stream_that_ends_in_an_error_is_no_reply() -> None:
    error = 'data: {"error": {"message": "worker died", "code": 502}}\n\n'
    broken = events("{").split("data: [DONE]")[0].replace('"stop"', "null") + error
    with (
        FaultServer(answer=lambda _: (200, broken)) as server,
        pytest.raises(Transient, match="502 Bad Gateway: worker died"),
    ):
        ask(OpenAIClient("m", server.url))


def events(*pieces: str, end: str = "stop") -> str:
    chunks: list[dict[str, Any]] = [
        {"id": "c1", "model": "m-1", "choices": [{"delta": {"content": piece}}]}
        for piece in pieces
    ]
    chunks.append({"choices": [{"delta": {}, "finish_reason": end}]})
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    chunks.append({"choices": [], "usage": usage})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([": keep-alive\n\n", *lines, "data: [DONE]\n\n"])


def test_a_server_that_only_streams_is_read() -> None:
    def streaming(request: dict[str, Any]) -> Answer:
        if not request.get("stream"):
            message = "This model only support stream mode, please enable the stream"
            return 400, {"error": {"message": f"{message} parameter."}}
        assert request["stream_options"] == {"include_usage": True}
        return 200, events("ye", "s")

    with FaultServer(answer=streaming) as server:
        client = OpenAIClient("m", server.url)
        for _ in range(2):
            reply = ask(client)
            found = (reply.text, reply.usage, reply.id, reply.model, reply.cut)
            assert found == ("yes", Usage(7, 3), "c1", "m-1", False)
        assert len(server.requests) == 3


def test_a_stream_that_nobody_asked_for_is_read_and_may_be_cut() -> None:
    with FaultServer(answer=lambda _: (200, events("ye", end="length"))) as server:
        reply = ask(OpenAIClient("m", server.url))
    assert (reply.text, reply.cut) == ("ye", True)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_an_answer_among_the_thoughts_is_found(field: str) -> None:
    message = {"content": None, field: '{"grade": 1}'}
    body = {"choices": [{"message": message, "finish_reason": "stop"}]}
    with FaultServer(answer=lambda _: (200, body)) as server:
        assert ask(OpenAIClient("m", server.url)).text == '{"grade": 1}'
    message[field] = 'So it is {"grade": 3}. But wait'
    with (
        FaultServer(answer=lambda _: (200, body)) as server,
        pytest.raises(Transient, match="is empty"),
    ):
        ask(OpenAIClient("m", server.url))
    body["choices"][0]["finish_reason"] = "length"
    with (
        FaultServer(answer=lambda _: (200, body)) as server,
        pytest.raises(Refused, match="before it said anything"),
    ):
        ask(OpenAIClient("m", server.url))


@pytest.mark.parametrize("status", [403, 404])
def test_moderation_of_one_prompt_fails_that_row_only(
    status: int, tmp_path: Path
) -> None:
    def moderated(request: dict[str, Any]) -> Answer:
        user = request["messages"][-1]["content"]
        if user.startswith("grade 3 "):
            return status, {"error": {"message": "Your input was flagged: violence"}}
        numbers = [int(word) for word in user.split() if word.isdigit()]
        verdicts = [{"id": n, "grade": n % 2} for n in numbers]
        return 200, completion(json.dumps({"verdicts": verdicts}))

    settings = Settings(journal=tmp_path / "journal.sqlite", concurrency=1)
    with FaultServer(answer=moderated) as server:
        results = run_jobs_sync(jobs(6), OpenAIClient("m", server.url), settings)
    failed = [row for row, result in enumerate(results) if isinstance(result, Failure)]
    assert failed == [3]
    failure = results[3]
    assert isinstance(failure, Failure)
    assert "Your input was flagged: violence" in failure.reason


def test_a_prompt_forbidden_first_of_all_fails_alone_the_next_time(
    tmp_path: Path,
) -> None:
    def strict(request: dict[str, Any]) -> Answer:
        user = request["messages"][-1]["content"]
        if user.startswith("grade 0 "):
            return 403, {"error": {"message": "not this one"}}
        numbers = [int(word) for word in user.split() if word.isdigit()]
        verdicts = [{"id": n, "grade": n % 2} for n in numbers]
        return 200, completion(json.dumps({"verdicts": verdicts}))

    settings = Settings(journal=tmp_path / "journal.sqlite", concurrency=4)
    with FaultServer(answer=strict, delay=0.0) as server:
        with suppress(Refused):
            run_jobs_sync(jobs(4)[::-1], OpenAIClient("m", server.url), settings)
        results = run_jobs_sync(jobs(4), OpenAIClient("m", server.url), settings)
    assert [isinstance(result, Failure) for result in results] == [True, *[False] * 3]
    assert "not this one" in str(results[0])


def test_a_key_that_is_refused_at_once_stops_all_and_shows_the_words() -> None:
    message = f"Project does not have access to model m (key {CANARY})"
    with FaultServer(answer=lambda _: (403, {"error": {"message": message}})) as server:
        client = OpenAIClient("m", server.url, api_key=CANARY)
        with pytest.raises(Refused, match="does not have access") as caught:
            ask(client)
    assert caught.value.always
    assert CANARY not in str(caught.value)


def test_headers_of_ones_own_are_sent_and_not_shown() -> None:
    with FaultServer(answer=lambda _: (400, {"message": f"odd {CANARY}"})) as server:
        client = OpenAIClient("m", server.url, headers={"X-Gateway-Key": CANARY})
        assert CANARY not in repr(client)
        with pytest.raises(Refused) as caught:
            ask(client)
        assert f"x-gateway-key: {CANARY}" in server.headers[0].lower()
    assert CANARY not in str(caught.value)
    assert CANARY not in json.dumps(dict(client.parameters))


@pytest.mark.parametrize("headers", [{"bad name": "x"}, {"x": "a\nb"}, {"": "x"}])
def test_headers_that_cannot_be_sent_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="header"):
        OpenAIClient("m", "http://127.0.0.1:1/v1", headers=headers)


def test_a_deployment_behind_a_gateway_gets_the_key_as_azure_wants_it() -> None:
    with FaultServer(answer=lambda _: (200, completion("yes"))) as server:
        url = server.url.replace("/v1", "/openai/deployments/judge")
        ask(OpenAIClient("m", url, api_key=CANARY))
        assert f"api-key: {CANARY}" in server.headers[0].lower()


def test_a_prompt_that_the_server_cut_is_a_failure_with_the_cure() -> None:
    body = completion("yes")
    body["usage"] = {"prompt_tokens": 2048, "completion_tokens": 3}
    prompt = Prompt("Be brief.", "Which of these? " + "Rye bread keeps long. " * 2000)
    with FaultServer(answer=lambda _: (200, body)) as server:
        with pytest.raises(Refused, match="num_ctx") as caught:
            ask(OpenAIClient("m", server.url), prompt)
        short = Prompt("Be brief.", "Rye bread keeps long. " * 300)
        assert ask(OpenAIClient("m", server.url), short).text == "yes"
    assert "read 2,048 tokens of a prompt of about" in str(caught.value)
    assert caught.value.tokens == (2048, 3)


def test_a_detail_does_not_quote_what_was_sent_as_input() -> None:
    detail = [{"loc": ["body", "messages", 1], "msg": "too rude", "input": "secret"}]
    with (
        FaultServer(answer=lambda _: (422, {"detail": detail})) as server,
        pytest.raises(Refused, match="too rude") as caught,
    ):
        ask(OpenAIClient("m", server.url))
    assert "secret" not in str(caught.value)


def test_a_busy_server_in_a_list_is_waited_for() -> None:
    body = [{"error": {"code": 429, "message": "Resource has been exhausted"}}]
    with (
        FaultServer(answer=lambda _: (429, body)) as server,
        pytest.raises(Transient, match="Resource has been exhausted"),
    ):
        ask(OpenAIClient("m", server.url))
