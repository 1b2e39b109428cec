"""Clients: any OpenAI-compatible server, any function, and no secret anywhere."""

import asyncio
import json
import logging
import re
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.data.judgements import Failure, Usage
from karat.errors import Refused, Transient
from karat.extend import MissingExtraError, Prompt, Reply, Settings, UsageError
from karat.judging.session import as_client
from karat.llm.http import retry_after
from karat.llm.openai_client import OpenAIClient
from tests.llm.fault_server import FaultServer, completion
from tests.llm.judges import SCHEMA, jobs, run_jobs_sync

CANARY = "sk-canary-0123456789"
PROMPT = Prompt("Be brief.", "Is bread good?", SCHEMA, "support", "1")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KARAT_ALLOWED_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)


def ask(client: Any, prompt: Prompt = PROMPT) -> Reply:
    reply: Reply = asyncio.run(client.complete(prompt))
    return reply


def answering(
    status: int, body: object
) -> Callable[[dict[str, Any]], tuple[int, object]]:
    return lambda _: (status, body)


def error(message: str, **more: object) -> dict[str, object]:
    return {"error": {"message": message, **more}}


def test_a_prompt_is_sent_with_schema_temperature_and_seed() -> None:
    with FaultServer(answer=answering(200, completion("yes"))) as server:
        reply = ask(OpenAIClient("tiny", base_url=server.url))
        (request,) = server.requests
    assert (reply.text, reply.usage, reply.model) == ("yes", Usage(20, 10), "tiny-2026")
    assert reply.id is not None
    assert reply.id.startswith("reply-")
    assert (request["model"], request["temperature"], request["seed"]) == ("tiny", 0, 0)
    assert [m["content"] for m in request["messages"]] == [PROMPT.system, PROMPT.user]
    form = request["response_format"]["json_schema"]
    assert (form["name"], form["schema"], form["strict"]) == ("support", SCHEMA, True)


def test_a_server_without_schemas_is_asked_in_words_and_remembered() -> None:
    def plain(request: dict[str, Any]) -> tuple[int, object]:
        if "response_format" in request:
            return 400, error("'response_format' of type 'json_schema' is not known")
        return 200, completion("{}")

    with FaultServer(answer=plain) as server:
        client = OpenAIClient("tiny", base_url=server.url)
        assert [ask(client).text for _ in range(3)] == ["{}"] * 3
        assert len(server.requests) == 4
        system = server.requests[-1]["messages"][0]["content"]
    assert system.startswith(PROMPT.system)
    assert json.dumps(SCHEMA) in system


def test_a_model_without_temperature_is_asked_without() -> None:
    def modern(request: dict[str, Any]) -> tuple[int, object]:
        if "temperature" in request:
            return 400, error("Unsupported value", param="temperature")
        return 200, completion("fine")

    with FaultServer(answer=modern) as server:
        assert ask(OpenAIClient("o9", base_url=server.url)).text == "fine"
        assert server.requests[-1]["seed"] == 0


def test_a_server_may_refuse_one_thing_after_another() -> None:
    def old(request: dict[str, Any]) -> tuple[int, object]:
        for name in ("response_format", "temperature", "seed"):
            if name in request:
                return 422, error(f"{name}: extra fields not permitted")
        return 200, completion("fine")

    with FaultServer(answer=old) as server:
        assert ask(OpenAIClient("tiny", base_url=server.url)).text == "fine"
        assert len(server.requests) == 4


def test_texts_do_not_follow_a_redirect() -> None:
    with FaultServer(answer=answering(200, completion("got it"))) as thief:
        location = f"location: {thief.url}/chat/completions\r\n"
        with (
            FaultServer(answer=lambda _: (307, {}, location)) as server,
            pytest.raises(Refused, match="check --base-url"),
        ):
            ask(OpenAIClient("tiny", base_url=server.url))
        assert thief.requests == []


@pytest.mark.parametrize(
    ("status", "body", "always", "sentence"),
    [
        (401, error("bad key"), True, "refuses the key.*check OPENAI_API_KEY"),
        (403, error("no"), True, "refuses the key"),
        (402, error("pay"), True, "no credit left"),
        (429, error("x", code="insufficient_quota"), True, "no credit left"),
        (404, error("model 'tiny' not found"), True, "does not know model 'tiny'"),
        (404, {"detail": "Not Found"}, True, "--base-url, which usually ends in"),
        (405, "", True, "check --base-url"),
        (501, "<html>no</html>", True, "Not Implemented.; check --base-url.*/v1$"),
        (200, " <!doctype html>", True, "with a web page.; check --base-url"),
        (307, {}, True, "check --base-url"),
        (400, error("maximum context length is 8"), False, "too long for model 'tiny'"),
        (413, "", False, "too long for model 'tiny'"),
        (400, error("strange"), False, "refused the prompt .*strange"),
        (200, error("quota", code=402), True, "no credit left"),
        (
            200,
            {"choices": [{"finish_reason": "content_filter", "message": {}}]},
            False,
            "declined to answer",
        ),
    ],
)
def test_a_refusal_says_what_to_do(
    status: int,
    body: object,
    always: bool,  # noqa: FBT001
    sentence: str,
) -> None:
    with (
        FaultServer(answer=answering(status, body)) as server,
        pytest.raises(Refused, match=sentence) as caught,
    ):
        ask(OpenAIClient("tiny", base_url=server.url))
    assert caught.value.always == always


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (429, error("slow down"), "429 Too Many Requests: slow down"),
        (500, "<html>", "500 Internal Server Error"),
        (529, error("overloaded"), "529 Overloaded"),
        (408, {}, "408 Request Timeout"),
        (200, "{", "is not complete JSON"),
        (200, "[" * 100_000, "is not complete JSON"),
        (200, "null", "holds no message"),
        (200, {"choices": [{"message": None}]}, "holds no message"),
        (200, completion("  "), "is empty"),
    ],
)
def test_what_may_pass_is_transient(status: int, body: object, sentence: str) -> None:
    with (
        FaultServer(answer=answering(status, body)) as server,
        pytest.raises(Transient, match=sentence),
    ):
        ask(OpenAIClient("tiny", base_url=server.url))


def test_a_server_that_is_not_there_is_said_to_be_so() -> None:
    with FaultServer() as server:
        url = server.url
    with pytest.raises(Refused, match="running, and is --base-url right") as caught:
        ask(OpenAIClient("tiny", base_url=url))
    assert caught.value.always


def test_a_server_that_went_away_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer(answer=lambda _: (200, completion("yes"))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        client = OpenAIClient("tiny")
        assert ask(client).text == "yes"
    with pytest.raises(Transient, match="running, and is OPENAI_BASE_URL right"):
        ask(client)


def test_a_server_that_does_not_speak_https_is_said_to_be_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def answer() -> None:
            caller, _ = plain.accept()
            with caller:
                caller.recv(1 << 16)
                caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"https://127.0.0.1:{plain.getsockname()[1]}/v1"
        with pytest.raises(Refused, match="does not speak https; should") as caught:
            ask(OpenAIClient("tiny", base_url=url))
        thread.join()
    assert caught.value.always


def test_a_missing_key_says_what_to_set() -> None:
    with pytest.raises(UsageError, match="set OPENAI_API_KEY, or OPENAI_BASE_URL"):
        ask(OpenAIClient("tiny"))


def test_the_environment_says_where_and_with_which_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FaultServer(answer=answering(200, completion("yes"))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/")
        monkeypatch.setenv("OPENAI_API_KEY", CANARY)
        client = as_client("tiny")
        assert client.endpoint == server.url
        assert ask(client).text == "yes"
        assert f"Bearer {CANARY}" in server.headers[0]


@pytest.mark.parametrize(
    "url",
    [
        f"http://user:{CANARY}@127.0.0.1/v1",
        f"http://127.0.0.1/v1?key={CANARY}",
        CANARY,
        "ftp://127.0.0.1/v1",
        "http://[::1/v1",
        "http://127.0.0.1:99999/v1",
        "http://127.0.0.1:port/v1",
        "http://127.0.0.1 8080/v1",
        "http:///v1",
    ],
)
def test_an_address_with_a_secret_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        OpenAIClient("tiny", base_url=url)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "instead"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1"),
        ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1"),
        (
            "https://generativelanguage.googleapis.com/v1beta/models",
            "https://generativelanguage.googleapis.com/v1beta/openai",
        ),
        ("https://api.mistral.ai", "https://api.mistral.ai/v1"),
        ("https://api.openai.com", "https://api.openai.com/v1"),
        ("https://openrouter.ai/v1", "https://openrouter.ai/api/v1"),
        ("https://api.cohere.com/v2", "https://api.cohere.com/compatibility/v1"),
        (
            "https://bedrock-runtime.us-west-2.amazonaws.com/model/m/converse",
            "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1",
        ),
        ("http://localhost:11434", "http://localhost:11434/v1"),
        ("http://gpu.example:11434/api/generate", "http://gpu.example:11434/v1"),
        ("http://127.0.0.1:1234/api/v0", "http://127.0.0.1:1234/v1"),
        ("http://a.example/v1/chat/completions", "http://a.example/v1"),
    ],
)
def test_an_address_of_another_interface_names_the_compatible_one(
    url: str, instead: str
) -> None:
    with pytest.raises(UsageError, match=f"but at {re.escape(instead)}$"):
        OpenAIClient("tiny", base_url=url)
    assert OpenAIClient("tiny", base_url=instead).endpoint == instead


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "20", "retry-after": "9"}, 0.02),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, completion(f"your key is {CANARY}, isn't it?")),
        (401, error(f"Incorrect API key provided: {CANARY}")),
        (400, error(f"strange header Bearer {CANARY}")),
        (500, f"<html>{CANARY}</html>"),
        (200, f"not json {CANARY}"),
    ],
)
@pytest.mark.parametrize("given", ["environment", "argument"])
def test_no_secret_gets_out(
    status: int,
    body: object,
    given: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    if given == "environment":
        monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    shown = ""
    contexts: list[BaseException | None] = []
    journal = tmp_path / ".karat" / "journal.sqlite"
    settings = Settings(journal=journal, first_wait=0, max_attempts=2)
    with FaultServer(answer=answering(status, body)) as server:
        key = CANARY if given == "argument" else None
        client = OpenAIClient("tiny", base_url=server.url, api_key=key)
        shown += repr(client)
        try:
            shown += repr(run_jobs_sync(jobs(2), client, settings))
        except Refused as refusal:
            shown += "".join(traceback.format_exception(refusal))
            contexts.append(refusal.__context__)
        assert CANARY in server.headers[0]
    shown += caplog.text + "".join(capfd.readouterr())
    assert CANARY not in shown
    # Nothing of the library's, which holds the request, hangs on our errors.
    assert not any(contexts)
    for file in journal.parent.iterdir():
        assert CANARY.encode() not in file.read_bytes()


def test_without_texts_a_reason_does_not_quote_the_server(tmp_path: Path) -> None:
    settings = Settings(journal=tmp_path / "journal.sqlite", no_text=True)
    with FaultServer(answer=answering(400, error("you said: grade 0"))) as server:
        (found,) = run_jobs_sync(
            jobs(1), OpenAIClient("tiny", base_url=server.url), settings
        )
    assert isinstance(found, Failure)
    assert found.reason.endswith("refused the prompt (400 Bad Request)")


def test_a_reply_loses_the_key_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("KEYBOARD", "relevant")
    with FaultServer(answer=answering(200, completion(f"relevant {CANARY}"))) as server:
        assert ask(OpenAIClient("tiny", base_url=server.url)).text == "relevant ***"


def test_headers_are_no_parameters_since_parameters_are_kept() -> None:
    with pytest.raises(UsageError, match="extra_headers is not a parameter"):
        OpenAIClient("tiny", parameters={"extra_headers": {"api-key": CANARY}})


def test_a_missing_library_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    said = r"needs httpx: pip install httpx, or pip install 'karat\[llm\]' \(in a clone"
    with pytest.raises(MissingExtraError, match=said):
        ask(OpenAIClient("tiny", base_url="http://127.0.0.1:1/v1"))


def test_one_client_serves_one_run_after_another(tmp_path: Path) -> None:
    with FaultServer() as server:
        client = OpenAIClient("tiny", base_url=server.url)
        for count in (2, 4, 6):
            settings = Settings(journal=tmp_path / "journal.sqlite")
            assert len(run_jobs_sync(jobs(count), client, settings)) == count
        assert server.paid.total() == 6


def plain(prompt: str) -> str:
    return prompt.upper()


async def patient(prompt: str) -> str:
    await asyncio.sleep(0)
    return prompt.upper()


@pytest.mark.parametrize("function", [plain, patient])
def test_any_function_is_a_client(function: Callable[[str], Any]) -> None:
    client = as_client(function)
    assert ask(client).text == "BE BRIEF.\n\nIS BREAD GOOD?"
    assert client.endpoint == f"python:{__name__}.{function.__name__}"
    assert as_client(client) is client


@pytest.mark.parametrize(
    ("raised", "kind", "sentence"),
    [
        (ConnectionError("gone"), Transient, "raised ConnectionError: gone"),
        (KeyError("choices"), Refused, "raised KeyError: 'choices'"),
        (StopIteration(), Refused, "raised StopIteration: it has no more answers"),
        (Transient("busy"), Transient, "busy"),
        (Refused("no"), Refused, "no"),
    ],
)
def test_what_a_function_raises_is_said(
    raised: Exception, kind: type[Exception], sentence: str
) -> None:
    def function(_: str) -> str:
        raise raised

    with pytest.raises(kind, match=sentence) as caught:
        ask(as_client(function))
    if isinstance(raised, OSError | KeyError):
        assert caught.value.__cause__ is raised


def test_an_error_with_a_secret_in_it_is_not_the_cause_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)

    def function(_: str) -> str:
        raise KeyError(CANARY)

    with pytest.raises(Refused, match=r"raised KeyError: '\*\*\*'") as caught:
        ask(as_client(function))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_function_must_return_text_and_a_judge_must_be_one() -> None:
    with pytest.raises(Refused, match="must return a text, got int"):
        ask(as_client(len))
    with pytest.raises(UsageError, match="got float"):
        as_client(1.5)
    with pytest.raises(UsageError, match="has no name"):
        as_client(" ")
