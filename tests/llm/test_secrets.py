"""Keys and other secrets: read once, and nowhere to be seen."""

import base64
import json
import sqlite3
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from karat.errors import Refused, Transient
from karat.extend import CallError, ChatClient, Reply, Settings, UsageError
from karat.judging.session import as_client
from karat.llm.chat_client import read_reply
from karat.llm.credentials import mask, read_key, redact, request_headers
from karat.llm.http import check_endpoint, connection_error
from karat.llm.openai_client import OpenAIClient
from tests.llm.fault_server import FaultServer, completion
from tests.llm.judges import jobs, run_jobs_sync
from tests.llm.test_openai_client import CANARY, answering, ask, error

SPELLINGS: list[Callable[[str], str]] = [
    str,
    repr,
    json.dumps,
    lambda text: json.dumps(json.dumps(text)),
    lambda text: quote(text, safe=""),
    lambda text: repr(text.encode()),
    lambda text: "".join(f"\\u{ord(letter):04X}" for letter in text),
    lambda text: " ".join(text.split()),
    lambda text: text.strip().encode().hex(),
    lambda text: text.strip().encode().hex(":").upper(),
    lambda text: ", ".join(map(hex, text.strip().encode())),
    lambda text: " ".join(text.strip()),
    lambda text: "-".join(text.strip()),
    lambda text: "\n".join(text.strip()),
]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KARAT_ALLOWED_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("spell", SPELLINGS)
@pytest.mark.parametrize("secret", [CANARY, "sk-12 3\n45'67\"/89é", f" {CANARY}\n"])
def test_a_secret_is_found_however_it_is_written(
    secret: str, spell: Callable[[str], str]
) -> None:
    shown = redact(f"Bearer {spell(secret)}, indeed", [secret])
    assert shown.startswith("Bearer ")
    assert shown.endswith(", indeed")
    assert "***" in shown
    # Quotes and escapes around a secret are no part of it.
    assert len(shown) <= len("Bearer u0020***u000A, indeed") + 4


@pytest.mark.parametrize("before", ["", "u", "user:", "Bearer "])
def test_a_secret_in_base64_is_found(before: str) -> None:
    encoded = base64.b64encode(f"{before}{CANARY}".encode()).decode()
    shown = redact(f"Authorization: Basic {encoded}!", [CANARY])
    assert "***" in shown
    assert base64.b64encode(CANARY.encode()).decode()[4:20] not in shown
    assert len(shown) < len(f"Authorization: Basic {encoded}!") - 15


def test_a_part_of_a_given_secret_is_found() -> None:
    text = "Incorrect API key provided: sk-canary-01...; keys begin with sk-c"
    found = redact(text, [CANARY])
    assert found == "Incorrect API key provided: ***...; keys begin with sk-c"
    assert redact(f"x{CANARY[3:14]}y", [CANARY]) == "x***y"
    # Values of the environment may be paths and words.
    assert mask(text, [CANARY]) == text


AROUND = st.text(alphabet="xyz \n\\%'")


@given(AROUND, st.text(alphabet="abcdef0123-\\%u", min_size=8), AROUND)
def test_a_secret_goes_and_the_rest_stays(before: str, secret: str, after: str) -> None:
    assert mask(f"{before}{after}", ["abcdef0123"]) == f"{before}{after}"
    assert secret not in mask(f"{before} {secret} {after}", [secret])
    shown = mask(f"{before} abcdef%30123 {after}", ["abcdef0123"])
    assert shown == f"{before} *** {after}"


def test_a_short_key_is_found_as_a_word_and_not_in_replies() -> None:
    assert redact("key abc12, not abc123", ["abc12"]) == "key ***, not abc123"
    assert redact("one of no kind", ["no"]) == "one of no kind"
    said = completion("none of them")
    reply = read_reply(said, "http://a/v1", "m", ["none"])
    assert isinstance(reply, Reply)
    assert reply.text == "none of them"


def test_a_key_with_a_stray_line_break_is_sent_and_found_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = error(f"bad header Bearer {CANARY}!")
    for key in (None, f" {CANARY}\n"):
        monkeypatch.setenv("OPENAI_API_KEY", f"{CANARY}\n")
        journal = tmp_path / f"{key is None}.sqlite"
        with FaultServer(answer=answering(400, body)) as server:
            client = OpenAIClient("tiny", server.url, api_key=key)
            found = run_jobs_sync(jobs(1), client, Settings(journal=journal))
            assert f"Bearer {CANARY}\r\n" in server.headers[0]
        assert "Bearer ***!" in repr(found)
        assert CANARY.encode() not in journal.read_bytes()


@pytest.mark.parametrize("key", ["sk-cana\nry-12345", "sk-canaryé", "sk-canary 1\x7f"])
def test_a_key_that_fits_no_header_is_refused_without_being_shown(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="the API key holds a space, a line") as no:
        OpenAIClient("tiny", "http://127.0.0.1:1/v1", api_key=key)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(UsageError, match="OPENAI_API_KEY holds a space") as also:
        ask(OpenAIClient("tiny", "http://127.0.0.1:1/v1"))
    for caught in (no, also):
        assert "cana" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("variable", ["OPENAI_ORG_ID", "OPENAI_PROJECT_ID"])
def test_what_else_goes_into_headers_must_fit_too(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "canaryé")
    with pytest.raises(UsageError, match=f"{variable} holds a space.*copy it again$"):
        ask(OpenAIClient("tiny", "http://127.0.0.1:1/v1"))


@pytest.mark.parametrize(
    "problem",
    [
        RuntimeError(f"Illegal header value b'Bearer {CANARY}'"),
        UnicodeEncodeError("ascii", CANARY, 0, 1, CANARY),
    ],
)
def test_a_header_that_cannot_be_sent_is_not_shown(problem: Exception) -> None:
    refusal = connection_error(problem, "http://127.0.0.1:1/v1", "--base-url")
    assert isinstance(refusal, Refused)
    assert refusal.always
    assert "a header cannot be sent" in str(refusal)
    assert CANARY not in f"{refusal}{vars(refusal)}"


def test_a_server_cannot_put_the_key_into_names_or_reasons(tmp_path: Path) -> None:
    escaped = CANARY.replace("c", r"\u0063")
    body = completion(f'{{"grade": 1, "reason": "{escaped} \\n is it"}}')
    body |= {"id": f"id-{CANARY}", "model": f"{CANARY}\ud800"}
    with FaultServer(answer=answering(200, body)) as server:
        client = OpenAIClient("tiny", base_url=server.url, api_key=CANARY)
        reply = ask(client)
        journal = tmp_path / "journal.sqlite"
        run_jobs_sync(jobs(1), client, Settings(journal=journal))
    assert (reply.id, reply.model) == ("id-***", "***\ufffd")
    assert json.loads(reply.text)["reason"] == "*** \n is it"
    with closing(sqlite3.connect(journal)) as kept:
        assert CANARY not in "\n".join(kept.iterdump())


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"api_key": CANARY}, "api_key"),
        ({"metadata": {"apiKey": CANARY}}, "metadata.apiKey"),
        ({"tools": [{"x": [{"Authorization": CANARY}]}]}, "tools.x.Authorization"),
        ({"headers": {"x": CANARY}}, "headers.x"),
        ({"access_token": CANARY}, "access_token"),
        ({"db_password": CANARY}, "db_password"),
    ],
)
def test_a_parameter_that_is_named_like_a_secret_is_refused(
    parameters: dict[str, Any], name: str
) -> None:
    with pytest.raises(
        UsageError, match=f"^{name} is not a parameter.*OPENAI_API"
    ) as no:
        OpenAIClient("tiny", "http://127.0.0.1:1/v1", parameters=parameters)
    assert CANARY not in str(no.value)
    if name != "api_key":
        with pytest.raises(UsageError, match=f"^{name} is not a parameter"):
            ChatClient("tiny", brought(), parameters)


def brought(key: str | None = None) -> Any:
    """A client as its user brings one."""
    client = SimpleNamespace(base_url="http://127.0.0.1:1/v1", api_key=key)
    client.chat = client.completions = client
    client.create = lambda **_: completion("yes")
    return client


@pytest.mark.parametrize("held", [CANARY, {"a": [f"x{CANARY}"]}, {CANARY: "a"}])
def test_a_parameter_that_holds_a_known_secret_is_refused(
    held: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="'user' holds a secret, and") as given:
        ChatClient("tiny", brought(CANARY), {"user": held})
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with pytest.raises(UsageError, match="'user' holds a secret, and") as known:
        OpenAIClient("tiny", "http://127.0.0.1:1/v1", parameters={"user": held})
    assert CANARY not in f"{given.value}{known.value}"
    with pytest.raises(UsageError, match="'model' holds a secret"):
        OpenAIClient(CANARY, "http://127.0.0.1:1/v1")


def test_parameters_with_harmless_keys_and_tokens_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    told = {
        "max_completion_tokens": 9,
        "prompt_cache_key": "mine",
        "reasoning_effort": "none",
        "stop_token_ids": [1],
        "logit_bias": {"50256": -100},
        "tools": [{"properties": {"key": {"type": "string"}}, "required": ["key"]}],
    }
    client = OpenAIClient("tiny", "http://127.0.0.1:1/v1", parameters=told)
    assert told.items() <= client.parameters.items()


def chained(_: str) -> str:
    raise RuntimeError("outer") from ValueError(CANARY)


def noted(_: str) -> str:
    problem = RuntimeError("outer")
    problem.add_note(CANARY)
    raise problem


def refusing(_: str) -> str:
    raise Refused(f"no {CANARY}", detail=CANARY, always=True)


def busy(_: str) -> str:
    raise Transient("busy", 3.0, paid=True) from ValueError(CANARY)


@pytest.mark.parametrize("function", [chained, noted, refusing, busy])
def test_nothing_that_hangs_on_an_error_shows_a_secret(
    function: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", CANARY)
    with pytest.raises(CallError) as caught:
        ask(as_client(function))
    shown = "".join(traceback.format_exception(caught.value))
    assert CANARY not in shown + repr(vars(caught.value))
    if function is refusing:
        assert str(caught.value) == "no ***: ***"
    if isinstance(caught.value, Transient):
        assert (caught.value.retry_after, caught.value.paid) == (3.0, True)


def test_a_client_that_refuses_for_good_shows_no_secret_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_TOKEN", CANARY)
    with pytest.raises(Refused) as caught:
        run_jobs_sync(jobs(1), as_client(refusing), Settings(journal=None))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_the_classic_addresses_of_azure_get_their_header() -> None:
    for classic in (
        "https://me.openai.azure.com/openai/deployments/judge",
        "https://gateway.example/openai/deployments/judge",
    ):
        assert request_headers(classic, "k")["api-key"] == "k"
        assert "api-key" not in request_headers(classic, "")
    other = "https://me.openai.azure.com/openai/v1"
    assert "api-key" not in request_headers(other, "k")


def test_the_given_key_goes_before_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " theirs\n")
    assert [read_key(" mine"), read_key(" "), read_key(None)] == [
        "mine",
        "theirs",
        "theirs",
    ]


@pytest.mark.parametrize("listed", ["[::1", "http://[::1/v1", "a.example:port"])
def test_a_list_of_endpoints_that_cannot_be_read_is_said_to_be_so(listed: str) -> None:
    with pytest.raises(UsageError, match="must hold hosts or URLs separated by commas"):
        check_endpoint("https://a.example/v1", {"KARAT_ALLOWED_ENDPOINTS": listed})


@pytest.mark.parametrize(
    "text",
    [
        "\\" * 200_000,
        "s " * 100_000,
        "\\u0073" * 100_000,
        "73" * 100_000,
        "-" * 200_000,
    ],
)
def test_no_text_takes_long_to_mask(text: str) -> None:
    began = process_time()
    odd = ("s" * 30, "-" * 30, "\\" * 30, "3" * 30, "a " * 30)
    assert mask(text, [CANARY, *(f"{letters}{CANARY}" for letters in odd)]) == text
    # A second at most; a quadratic search takes hours.
    assert process_time() - began < 20
