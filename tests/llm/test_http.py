"""The way to a server and back: what may go wrong there is said in a sentence."""

import asyncio
import gzip
import math
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from karat.data.judgements import Failure
from karat.errors import Refused, Transient
from karat.extend import FunctionClient, Prompt, Reply, Settings, UsageError
from karat.llm.http import ServerError
from karat.llm.journal import PromptKeys
from karat.llm.openai_client import OpenAIClient
from tests.llm.fault_server import FaultServer, completion
from tests.llm.judges import run_jobs_sync
from tests.llm.test_openai_client import PROMPT, answering, ask, error

PASSAGE = "The oven temperature, a seed of rye, a grammar of max_tokens and billing."
QUOTED = Prompt("Be brief.", f"Grade this:\n{PASSAGE}\nReply.", PROMPT.schema, "grade")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KARAT_ALLOWED_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def saying(*pieces: bytes) -> Iterator[str]:
    """A server that takes one request, says this, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def answer() -> None:
            caller, _ = door.accept()
            with caller:
                caller.recv(1 << 16)
                for piece in pieces:
                    caller.sendall(piece)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{door.getsockname()[1]}/v1"
        thread.join()


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n", b'{"choices"'],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"],
        [b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nnot"],
        [b"hello?\r\n\r\n"],
    ],
)
def test_an_answer_that_was_lost_may_have_been_paid_for(pieces: list[bytes]) -> None:
    with (
        saying(*pieces) as url,
        pytest.raises(Transient, match="broke before the reply was complete") as caught,
    ):
        ask(OpenAIClient("tiny", base_url=url))
    assert caught.value.paid
    assert "is the server running" not in str(caught.value)


def test_a_call_that_nobody_took_is_not_paid_for() -> None:
    with FaultServer(answer=answering(200, completion("yes"))) as server:
        client = OpenAIClient("tiny", base_url=server.url)
        ask(client)
    with pytest.raises(Transient, match="is the server running") as caught:
        ask(client)
    assert not caught.value.paid


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 400, 500])
def test_a_reply_without_end_is_not_read_to_its_end(status: int) -> None:
    packed = gzip.compress(bytes(40 * 2**20))
    head = f"HTTP/1.1 {status} X\r\ncontent-encoding: gzip\r\ncontent-length: "
    with (
        saying(f"{head}{len(packed)}\r\n\r\n".encode() + packed) as url,
        pytest.raises(Transient, match="is longer than 16 MB") as caught,
    ):
        ask(OpenAIClient("tiny", base_url=url))
    assert caught.value.paid


def test_connections_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def thrice(client: OpenAIClient) -> list[Reply]:
        async with client.session():
            return [await client.complete(PROMPT) for _ in range(3)]

    server = FaultServer(answer=answering(200, completion("yes")))
    callers, talk = [], server._talk

    async def counted(*streams: Any) -> None:
        callers.append(streams)
        await talk(*streams)

    monkeypatch.setattr(server, "_talk", counted)
    with server:
        client = OpenAIClient("tiny", base_url=server.url)
        assert len(asyncio.run(thrice(client))) == 3
    assert (len(server.requests), len(callers)) == (3, 1)


def quoting(request: dict[str, Any]) -> tuple[int, object]:
    """A server that quotes what it does not like."""
    user = request["messages"][-1]["content"]
    if PASSAGE in user:
        return 400, error(f"this content is against the rules: {user}")
    return 200, completion("fine")


def test_words_in_a_quoted_prompt_do_not_steer_the_client() -> None:
    with FaultServer(answer=quoting) as server:
        client = OpenAIClient("tiny", server.url, parameters={"temperature": 0.5})
        with pytest.raises(Refused, match=r"refused the prompt \(400") as caught:
            ask(client, QUOTED)
        assert not caught.value.always
        assert ask(client).text == "fine"
        # Nothing was proven yet, so parts were left out in turn, and to no avail.
        assert len(server.requests) <= 20
        last = server.requests[-1]
    assert not client.left_out
    assert {"temperature", "seed", "max_tokens", "response_format"} <= last.keys()


@pytest.mark.parametrize("status", [400, 402, 403, 429, 500])
def test_a_quoted_bill_is_no_bill(status: int) -> None:
    said = {"message": f"not this: {PASSAGE.upper()}"}
    found = ServerError(status, said).explain("http://a/v1", "m")
    assert ("no credit left" in str(found)) == (status == 402)
    coded = {"message": "check your plan", "type": "insufficient_quota"}
    own = ServerError(status, coded).explain("a", "m")
    assert "no credit left" in str(own)


def test_a_limit_per_minute_that_advertises_a_plan_is_waited_for() -> None:
    said = {"message": "Limit 3/min; see /account/billing", "code": "rate_limit_exceed"}
    assert isinstance(ServerError(429, said).explain("http://a/v1", "m"), Transient)


@pytest.mark.parametrize(
    ("body", "requests"),
    [
        ({"message": "no", "param": "messages[1].content"}, 1),
        ({"message": "a seed", "code": "content_filter"}, 1),
        ({"message": 'flagged "a SEED, of rye" at 5'}, 2),
        ({"message": r"flagged: Grade this:\nThe oven temperature"}, 2),
        ({"message": "against the rules"}, 1),
    ],
)
def test_a_prompt_that_is_refused_costs_no_part_of_others(
    body: dict[str, str], requests: int
) -> None:
    def moody(request: dict[str, Any]) -> tuple[int, object]:
        is_refused = PASSAGE in request["messages"][-1]["content"]
        return (400, {"error": body}) if is_refused else (200, completion("fine"))

    with FaultServer(answer=moody) as server:
        client = OpenAIClient("tiny", base_url=server.url)
        known = Prompt("Be brief.", "Is tea good?", PROMPT.schema, "grade")
        assert ask(client, known).text == "fine"
        with pytest.raises(Refused, match="refused the prompt"):
            ask(client, QUOTED)
        assert len(server.requests) == 1 + requests
    assert not client.left_out


def test_a_part_is_dropped_for_good_only_once_that_helped() -> None:
    def picky(request: dict[str, Any]) -> tuple[int, object]:
        if "seed" in request:
            return 400, error("seed? never heard of it")
        if "bread" in request["messages"][-1]["content"]:
            return 400, error("not this text")
        return 200, completion("fine")

    with FaultServer(answer=picky) as server:
        client = OpenAIClient("tiny", base_url=server.url)
        with pytest.raises(Refused, match="not this text"):
            ask(client)
        assert not client.left_out
        assert ask(client, Prompt("Be brief.", "Is tea good?")).text == "fine"
        assert client.left_out == {"seed"}


def test_half_a_character_is_sent_as_a_sign_for_it() -> None:
    half = Prompt("Be \ud83d brief.", "Is \udfff good?")
    with FaultServer(answer=answering(200, completion("yes"))) as server:
        client = OpenAIClient("tiny", base_url=server.url)
        assert ask(client, half).text == "yes"
        sent = [message["content"] for message in server.requests[0]["messages"]]
    assert sent == ["Be \ufffd brief.", "Is \ufffd good?"]
    whole = Prompt(*sent)
    assert PromptKeys(client).of(half) != PromptKeys(client).of(whole)


def test_the_version_of_an_interface_is_part_of_its_address() -> None:
    with FaultServer(answer=answering(200, completion("yes"))) as server:
        one, two = (
            OpenAIClient("m", f"{server.url}?api-version={n}") for n in ("1", "2")
        )
        ask(one)
        assert "/v1/chat/completions?api-version=1 HTTP" in server.headers[0]
        assert one.endpoint == f"{server.url}?api-version=1"
    assert PromptKeys(one).of(PROMPT) != PromptKeys(two).of(PROMPT)


PROXY = "made with ALL_PROXY.*: a proxy looks like http://"
PEM = r"made with .*SSL_CERT_FILE.*: .*certificates are a PEM file$"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("ALL_PROXY", "foo://127.0.0.1", PROXY),
        ("ALL_PROXY", "http://127.0.0.1:99999", PROXY),
        ("ALL_PROXY", "http://[::1", PROXY),
        ("ALL_PROXY", "http://a\x7f", PROXY),
        ("SSL_CERT_FILE", "/nonexistent", PEM),
        ("SSL_CERT_FILE", __file__, PEM),
    ],
)
def test_an_environment_that_no_connection_can_have_is_said_to_be_so(
    name: str, value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in [other for other in os.environ if other.lower().endswith("_proxy")]:
        monkeypatch.delenv(other)
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=sentence):
        ask(OpenAIClient("tiny", "http://models.invalid/v1"))


def test_a_socks_proxy_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    monkeypatch.delenv("all_proxy", raising=False)
    with pytest.raises(UsageError, match="needs the package socksio"):
        ask(OpenAIClient("tiny", "http://models.invalid/v1"))


@pytest.mark.parametrize(
    ("url", "allowed", "proxied"),
    [
        ("http://models.invalid/v1", None, True),
        ("http://models.invalid/v1", "http://models.invalid", False),
        ("http://models.invalid/v1", "http://models.invalid, proxy", True),
        ("http://127.0.0.1:1/v1", None, False),
        ("http://localhost:1/v1", "localhost, proxy", False),
    ],
)
def test_a_proxy_is_used_only_where_it_may_be(
    url: str,
    allowed: str | None,
    proxied: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    if allowed is not None:
        monkeypatch.setenv("KARAT_ALLOWED_ENDPOINTS", allowed)
    with FaultServer(answer=answering(200, completion("by proxy"))) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
        if proxied:
            assert ask(OpenAIClient("tiny", url)).text == "by proxy"
        else:
            with pytest.raises(Refused, match="cannot reach"):
                ask(OpenAIClient("tiny", url))
        assert len(server.requests) == proxied


@pytest.mark.parametrize(
    "value", [math.inf, {"a": math.nan}, {1, 2}, object(), "\udcff", {"\udcff": 1}]
)
def test_a_parameter_that_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match="parameter 'x' must have a value that JSON"):
        OpenAIClient("tiny", "http://127.0.0.1:1/v1", parameters={"x": value})
    with pytest.raises(UsageError, match="parameter 'x' must have a value that JSON"):
        FunctionClient(str, parameters={"x": value})


def test_a_model_whose_name_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError, match="the model's name"):
        OpenAIClient("tiny\udcff", "http://127.0.0.1:1/v1")


@pytest.mark.parametrize("url", ["http://127.0.0.1/v1\x7f/a", "http://a/v1\udcff"])
def test_an_address_with_signs_that_nobody_sees_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no address of a server"):
        OpenAIClient("tiny", url)


def test_the_library_is_there_before_a_call_is_timed_and_not_without_any() -> None:
    code = (
        "import sys\n"
        "from karat.data.judgements import Prompt, Reply\n"
        "from karat.extend import Settings\n"
        "from tests.llm.judges import run_jobs_sync\n"
        "from karat.llm.openai_client import OpenAIClient\n"
        "class Client(OpenAIClient):\n"
        "    async def complete(self, prompt):\n"
        "        assert 'httpx' in sys.modules\n"
        "        return Reply('yes')\n"
        "def judge():\n"
        "    return (yield Prompt('', 'Is bread good?')).text\n"
        "client = Client('m', 'http://127.0.0.1:1/v1')\n"
        "run_jobs_sync([], client, Settings(journal=None))\n"
        "assert 'httpx' not in sys.modules\n"
        "assert run_jobs_sync([judge], client, Settings(journal=None)) == ['yes']\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_counts_lost_answers_as_calls_paid_for(tmp_path: Path) -> None:
    def judge() -> Any:
        reply = yield PROMPT
        return reply.text

    settings = Settings(journal=tmp_path / "journal.sqlite", max_attempts=1)
    with saying() as url:
        (found,) = run_jobs_sync([judge], OpenAIClient("tiny", base_url=url), settings)
    assert isinstance(found, Failure)
    assert "broke before the reply was complete" in found.reason
