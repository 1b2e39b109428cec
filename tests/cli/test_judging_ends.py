"""How a judged command ends: by itself, by a limit, by a fault or by the user."""

import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from karat.llm.journal import Journal
from karat.llm.limits import Backoff
from tests.cli.conftest import Done, Karat
from tests.cli.served import answering, carried_out, started, written
from tests.judging.models import support
from tests.llm.fault_server import FaultServer

pytest.importorskip("httpx")

Run: TypeAlias = Callable[..., Done]
KNOWS = support({"Dough rises": [1]})
SAMPLES = [
    {
        "id": f"q{number}",
        "query": f"How is bread {number} made?",
        "contexts": ["Dough rises.", "Ovens are hot."],
        "reference": f"Dough rises. Bread {number} is salted.",
    }
    for number in range(6)
]
JUDGED = ("-m", "context_recall", "--model", "tiny", "--concurrency", "1")
CALLS = 2 * len(SAMPLES)


@pytest.fixture
def run(folder: Path, karat: Karat, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a judged command with samples of bread."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    samples = written(folder, SAMPLES)

    def carry_out(*arguments: str, url: str) -> Done:
        return karat("evaluate", samples, *JUDGED, "--base-url", url, *arguments)

    return carry_out


def test_headers_are_sent_and_shown_nowhere(
    run: Run, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "gateway-secret-123"
    with answering(KNOWS) as server:
        done = run("--header", f"X-Gateway-Key: {secret}", "-v", url=server.url)
        assert done.code == 0
        assert f"x-gateway-key: {secret}" in server.headers[0].lower()
        wrong = run("--header", secret, url=server.url)
    assert wrong.code == 2
    assert "expected NAME:VALUE" in wrong.err
    assert secret not in f"{done.out}{done.err}{wrong.err}{caplog.text}"
    for file in (folder / ".karat").iterdir():
        assert secret.encode() not in file.read_bytes()


def complaining(status: int, message: str) -> FaultServer:
    return FaultServer(answer=lambda _: (status, {"error": {"message": message}}))


@pytest.mark.slow
def test_a_judged_command_says_what_it_paid_and_pays_once(tmp_path: Path) -> None:
    words = ("evaluate", written(tmp_path, SAMPLES), *JUDGED, "--prices", "1,2")
    with answering(KNOWS) as server:
        done = carried_out(words, tmp_path, OPENAI_BASE_URL=server.url)
        again = carried_out(words, tmp_path, OPENAI_BASE_URL=server.url)
        told = {"OPENAI_BASE_URL": server.url, "KARAT_OFFLINE": "1"}
        offline = carried_out(words, tmp_path, **told)
        assert len(server.requests) == CALLS
    assert done.code == again.code == offline.code == 0
    assert done.out == again.out == offline.out
    assert done.err == (
        "karat: splitting 6 references and judging 6 samples took 12 calls, 360 tokens"
        ", cost 0.00048; 0 replies were kept already\n"
    )
    assert again.err == offline.err
    assert again.err == (
        "karat: splitting 6 references and judging 6 samples took no call; 12 replies "
        "were kept already\n"
    )


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        (
            ("--max-calls", "3"),
            "3 calls is reached; stopped while splitting references, 3 of 6 done;",
        ),
        (
            # The first replies may have 20 tokens each; then 10 are known to do.
            ("--max-cost", "0.000055", "--prices", "0,1", "--max-tokens", "20"),
            "a reply may take 10 tokens); stopped while splitting references, 5 of 6",
        ),
    ],
)
def test_a_limit_ends_with_3_and_the_next_run_goes_on(
    run: Run, limit: tuple[str, ...], sentence: str
) -> None:
    with answering(KNOWS) as server:
        done = run(*limit, url=server.url)
        assert (done.code, done.out) == (3, "")
        assert sentence in done.err
        assert "run the same again to continue" in done.err
        paid = len(server.requests)
        assert 0 < paid < CALLS
        assert run(url=server.url).code == 0
        assert len(server.requests) == CALLS


def test_an_endpoint_that_is_down_ends_with_3(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backoff, "wait", lambda *_: 0.0)
    with complaining(500, "oops") as server:
        done = run(url=server.url)
    assert (done.code, done.out) == (3, "")
    assert "seems to be down, the last attempt says: " in done.err
    assert (
        "500 Internal Server Error: oops; stopped while splitting references, 0 of 6 "
        "done and 4 failed; all is" in done.err
    )
    assert done.err.endswith("run the same again to continue\n")


def test_failures_end_with_3_and_say_the_first(run: Run) -> None:
    def useless(prompt: Any) -> str:
        spoilt = prompt.name == "split" and "Bread 4" in prompt.user
        return "no JSON" if spoilt else KNOWS(prompt)

    with answering(useless) as server:
        done = run(url=server.url)
        assert done.code == 3
        assert "context_recall  0.5000" in done.out
        assert (
            "karat: 1 query could not be judged, 'q4': the reference could not be "
            "split: it holds no whole JSON object; --retry-errors asks again, and "
            "another --model may do better\n" in done.err
        )
        assert run("--max-failures", "1", url=server.url).code == 0
        explained = run("--explain", "q4", url=server.url)
        assert explained.code == 3
        assert "failed: the reference could not be split" in explained.out
        assert "1 query could not be judged, 'q4'" in explained.err
        allowed = run("--explain", "q4", "--max-failures", "1", url=server.url)
        assert (allowed.code, allowed.out) == (0, explained.out)
        fine = run("--explain", "q3", url=server.url)
        assert fine.code == 0
        assert fine.err == (
            "karat: splitting 1 reference and judging 1 sample took no call; 2 replies "
            "were kept already\n"
        )
    with answering(KNOWS) as server:
        stopped = run("--max-calls", "1", "--explain", "q4", url=server.url)
    assert (stopped.code, stopped.out) == (3, "")
    assert "limit of 1 call is" in stopped.err


@pytest.mark.parametrize("width", [100, 80, 60])
def test_an_explanation_stays_within_the_width_and_tells_claims_from_documents(
    width: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    with answering(support({})) as server:
        done = run("--explain", "q3", url=server.url)
        asked = run("--explain", "How is  bread 3 made?", url=server.url)
        silent = run("--explain", "q3", "--no-text", url=server.url)
    assert done.code == asked.code == silent.code == 0
    assert max(map(len, done.out.splitlines())) <= width
    assert asked.out == done.out
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "document rank grade" in lines
    assert "missed: Bread 3 is salted \N{EN DASH} 1" in lines
    assert "claim-2" not in done.out
    assert "read 3" not in silent.out


@pytest.mark.parametrize(
    ("status", "said", "sentence"),
    [
        (401, "bad key", "refuses the key (401 Unauthorized); check OPENAI_API_KEY"),
        (404, "The model 'tiny' does not exist", "does not know model 'tiny'; check"),
        (404, "Not Found", "check --base-url, which usually ends in /v1"),
        (405, "POST", "check --base-url, which usually ends in /v1"),
        (400, "unknown parameter top_k", "does not take top_k=5 for model 'tiny'"),
    ],
)
def test_what_no_call_can_mend_ends_with_2(
    run: Run, status: int, said: str, sentence: str
) -> None:
    with complaining(status, said) as server:
        done = run("--parameter", "top_k=5", url=server.url)
        assert len(server.requests) == 1
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1


def test_a_web_page_is_no_endpoint(run: Run) -> None:
    with FaultServer(answer=lambda _: (200, "<html>Welcome</html>")) as server:
        done = run(url=server.url)
    assert done.code == 2
    assert "(it answers with a web page); check --base-url" in done.err


def test_a_server_that_is_not_there_is_told_at_once(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backoff, "wait", lambda *_: pytest.fail("it waits"))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        done = run(url=url)
    assert (done.code, done.out) == (2, "")
    assert f"cannot reach {url}; is the server running, and is --base-url" in done.err


def test_an_address_without_http_says_what_is_missing(run: Run) -> None:
    done = run(url="127.0.0.1:8080/v1")
    assert done.code == 2
    assert "http:// or https:// is missing before the address" in done.err


def test_an_offline_miss_ends_with_2(run: Run) -> None:
    done = run("--offline", url="http://127.0.0.1:1/v1")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "karat: offline, but splitting 6 references takes replies of 'tiny' at "
        "http://127.0.0.1:1/v1 that are not in "
        f"{Path('.karat', 'journal.sqlite')}, the first for query 'q0'; run once "
        "without offline to get them\n"
    )


def test_an_offline_miss_counts_what_is_missing(run: Run) -> None:
    with answering(KNOWS) as server:
        assert run("--max-calls", "4", url=server.url).code == 3
        part = run("--offline", url=server.url)
        assert run("--max-calls", "6", url=server.url).code == 3
        rest = run("--offline", url=server.url)
    assert part.code == rest.code == 2
    assert len(part.err.splitlines()) == len(rest.err.splitlines()) == 1
    assert "but splitting 2 of 6 references takes replies" in part.err
    assert "the first for query 'q4'" in part.err
    assert "but judging 2 of 6 samples takes replies" in rest.err
    assert "the first for query 'q4'" in rest.err


def test_a_dry_run_counts_in_words_and_for_programs(run: Run) -> None:
    with answering(KNOWS) as server:
        assert run("--max-calls", "2", url=server.url).code == 3
        words = run("--dry-run", "--prices", "0.01,0.02", url=server.url)
        numbers = run("--dry-run", "--prices", "0.01,0.02", "--json", url=server.url)
        bare = run("--dry-run", "--json", url=server.url)
    found = json.loads(numbers.out)
    sent, received = found["prompt_tokens"], found["completion_tokens"]
    cost = f"{found['cost']:.7f}"
    assert cost.startswith("0.0000")
    assert words.out == (
        "this would take: 10 calls (2 replies kept already) for splitting 6 "
        f"references and judging 6 samples, about {sent:,} tokens sent and "
        f"{received:,} received, cost about {cost}\n"
    )
    assert (found["calls"], found["kept"]) == (10, 2)
    assert found["cost"] == pytest.approx((sent * 0.01 + received * 0.02) / 1e6)
    assert json.loads(bare.out)["cost"] is None


def test_texts_go_only_where_they_may(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARAT_ALLOWED_ENDPOINTS", "models.example")
    with answering(KNOWS) as server:
        done = run(url=server.url)
        assert server.requests == []
    assert done.code == 2
    assert "KARAT_ALLOWED_ENDPOINTS allows only models.example" in done.err


@pytest.fixture
def sleeper() -> Iterator[tuple[FaultServer, threading.Event, threading.Event]]:
    """A server that answers three calls, and keeps the fourth waiting to be woken."""
    asleep, awake = threading.Event(), threading.Event()
    calls = iter(range(1_000))

    def before(_: dict[str, Any]) -> None:
        if next(calls) == 3:
            asleep.set()
            awake.wait()

    with answering(KNOWS, before) as server:
        yield server, asleep, awake
        awake.set()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_who_interrupts_is_told_what_is_kept_and_pays_nothing_twice(
    sent: signal.Signals,
    code: int,
    tmp_path: Path,
    sleeper: tuple[FaultServer, threading.Event, threading.Event],
) -> None:
    server, asleep, awake = sleeper
    words = ("evaluate", written(tmp_path, SAMPLES), *JUDGED, "--base-url", server.url)
    process = started(words, tmp_path)
    assert asleep.wait(60)
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert err == (
        "karat: interrupted; splitting 3 of 6 references took 4 calls, 90 tokens, and "
        f"all replies are kept in {Path('.karat', 'journal.sqlite')}: run the same "
        "command again to go on\n"
    )
    with Journal(tmp_path / ".karat" / "journal.sqlite") as journal:
        (kept,) = journal.contents()
    assert (kept.entries, kept.errors) == (3, 0)
    awake.set()
    done = carried_out(words, tmp_path)
    assert done.code == 0
    # One call was under way, and is made again.
    assert len(server.requests) == CALLS + 1
    assert "references and judging 6 samples took 9 calls" in done.err
    assert "3 replies were kept already" in done.err


def test_every_option_reaches_the_call(run: Run, folder: Path) -> None:
    settings = """
judging:
  journal: kept/replies.sqlite
  rpm: 100000
  timeout: 30
  max_attempts: 2
  parameters: {reasoning_effort: low, logprobs: false, seed: null, top: {k: 5}}
"""
    (folder / "karat.yaml").write_text(settings, "utf-8")
    with answering(KNOWS) as server:
        done = run("--max-tokens", "99", url=server.url)
        sent = server.requests[-1]
    assert done.code == 0
    assert "from karat.yaml: " in done.err
    assert sent["max_tokens"] == 99
    assert sent["temperature"] == 0
    assert sent["reasoning_effort"] == "low"
    assert sent["logprobs"] is False
    assert sent["top"] == {"k": 5}
    assert "seed" not in sent
    assert not (folder / ".karat").exists()
    with Journal(folder / "kept" / "replies.sqlite") as journal:
        assert journal.contents()[0].entries == CALLS


def test_what_failed_in_passing_needs_no_more_than_another_run(run: Run) -> None:
    def before(request: dict[str, Any]) -> tuple[int, str] | None:
        return (500, "oops") if "Bread 4" in str(request["messages"]) else None

    with answering(KNOWS, before) as server:
        done = run("--max-attempts", "1", url=server.url)
    assert done.code == 3
    assert "500 Internal Server Error" in done.err
    assert "; run the same again to go on\n" in done.err
    assert "--retry-errors" not in done.err
    with answering(KNOWS, before) as server:
        done = run("--max-attempts", "1", "--explain", "q4", url=server.url)
    assert "; run the same again to go on\n" in done.err


def test_a_reply_cut_off_twice_names_the_option_that_helps(run: Run) -> None:
    body = {
        "choices": [
            {"finish_reason": "length", "message": {"content": '{"claims": ["'}}
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": 4096},
    }
    with FaultServer(answer=lambda _: (200, json.dumps(body))) as server:
        done = run(url=server.url)
    assert done.code == 3
    assert (
        "karat: 5 replies in a row were cut off at 4,096 tokens; raise --max-tokens, "
        "which pays again only for what was cut off; stopped while splitting"
        in done.err
    )
    assert "6 queries have no claims" not in done.out
    assert "uncalibrated" not in done.out
