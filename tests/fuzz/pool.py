"""Runs inputs in processes of their own, and notes what ends or delays them.

    python -m tests.fuzz.pool --count 200000 --seed 1

A process works through its share of the numbers. When a signal ends it, the number it
was at is noted and another process goes on behind it.
"""

import argparse
import asyncio
import contextlib
import io
import logging
import os
import resource
import shutil
import signal
import socket
import ssl
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx

from karat import (
    Dataset,
    KaratError,
    compare,
    evaluate,
    history,
    load,
    read_corpus,
    read_gold,
    read_run,
    read_samples,
)
from karat.cli import main as command_line
from karat.extend import Policies, workbench
from karat.reading.readers import read as read_input, validate
from karat.reading.write import write
from tests.fuzz.inputs import Case, make_case
from tests.fuzz.material import LABELS, SAMPLES, STORE_USES

__all__ = ["Finding", "fuzz", "read"]

_SECONDS = 1.0
_STUCK = 60.0
_MEGABYTES = 512
_OWN = 100
"""About what karat itself takes, loaded and idle, in megabytes."""
_GOLD = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 1}}
_RUN = {"q1": ["d1", "d2"], "q2": ["d9", "d3"]}
_READERS: dict[str, Any] = {
    "run": read_run,
    "gold": read_gold,
    "samples": read_samples,
    "corpus": read_corpus,
}


@dataclass(frozen=True)
class Finding:
    """An input that did harm.

    Attributes:
        number: which one.
        problem: what came of it, in a line; alike for inputs that do the same harm.
    """

    number: int
    problem: str


def read(case: Case) -> None:
    """Do with an input what a user would; every mistake in it is a KaratError."""
    with contextlib.suppress(KaratError):
        match case.kind:
            case "saved":
                _use_saved(next(iter(case.files)))
            case "settings" | "decisions" | "plan" | "address":
                _use_settings(case.value)
            case "store":
                _use_store("store.db", case.value)
            case "request":
                asyncio.run(_use_server("store.db", case.value))
            case "spelling":
                str(evaluate(SAMPLES, metrics=[case.value]).to_json())
            case "written":
                _use_written(case.value)
            case "object":
                _use(case.value, case)
            case _:
                _use("beir" if case.kind == "folder" else next(iter(case.files)), case)


def _use(source: Any, case: Case) -> None:
    if case.role == "validate":
        if isinstance(source, str):
            validate(source, mapping=case.mapping)
            result = evaluate(source, gold=_GOLD, mapping=case.mapping, force=True)
            result.to_json()
        return
    loaded: Any = _READERS[case.role](source, mapping=case.mapping)
    if case.role == "samples":
        evaluate(loaded, metrics=["recall@k", "ndcg@5"], keep=3).to_json()
        for format in ("json", "csv", "yaml"):
            write(loaded, io.BytesIO(), format)
    elif case.role == "gold":
        str(evaluate(_RUN, gold=loaded, force=True))
    elif case.role == "run":
        evaluate(loaded, gold=_GOLD, keep=3, force=True).to_json()
        dict(loaded.rankings(Policies()))
        write(Dataset(run=loaded), io.BytesIO(), "csv")


def _use_saved(path: str) -> None:
    result = load(path)
    str(result), result.to_json(), result.per_query, result.by_tag()
    for metric in (*result, "ndcg@3"):
        with contextlib.suppress(KaratError):
            result.score(metric)
    str(compare(result, result))


def _use_settings(arguments: list[str]) -> None:
    told = io.StringIO()
    with (
        contextlib.redirect_stdout(told),
        contextlib.redirect_stderr(told),
        contextlib.suppress(SystemExit),
    ):
        command_line(arguments)
    if "bug in karat" in told.getvalue():
        raise AssertionError(told.getvalue().split("bug in karat")[0][-200:])


def _use_written(names: list[str]) -> None:
    run = read_run({"q1": names, names[0]: names[::-1]})
    for format in ("csv", "tsv", "jsonl", "yaml"):
        path = f"written.{format}"
        write(Dataset(run=run), path, format)
        again = read_input(path, role="run").run
        rankings = [dict(r.rankings(Policies())) for r in (run, again) if r]
        found = [{q: [d.id for d in ds] for q, ds in r.items()} for r in rankings]
        assert found[0] == found[-1], f"{format} is read as something else"


@cache
def _pushed() -> Any:
    return evaluate(SAMPLES, metrics=["rr"], keep=3)


def _use_store(path: str, chosen: list[int]) -> None:
    with history.open(path) as store:
        uses: list[Callable[[], Any]] = [
            lambda: store.runs("help", tag="rye"),
            lambda: [store.evaluation(n).to_json() for n in (1, 2)],
            lambda: [store.evaluation(n, "q1") for n in (1, 2)],
            lambda: compare(store.scores(1), store.scores(2)).to_dict(),
            lambda: store.rankings(1, 2),
            lambda: store.query_scores("q1", "help"),
            lambda: store.intervals("rr", [1, 2]),
            lambda: store.texts(["d1", "d9"], "help"),
            lambda: store.gold("help"),
            lambda: store.gold("help", 1),
            lambda: store.gold_changes(0, store.gold_version("help"), "help"),
            lambda: store.labels("help"),
            lambda: store.tokens.find("x"),
            lambda: store.label(LABELS, project="help"),
            lambda: store.undo(1, who="ann", project="help"),
            lambda: store.replace_gold(read_gold(_GOLD), project="help"),
            lambda: store.push(_pushed(), project="help"),
            lambda: _use_settings(["history", path, "--project=help", "--output=site"]),
        ]
        assert len(uses) == STORE_USES
        for number in chosen:
            with contextlib.suppress(KaratError):
                uses[number]()


async def _use_server(path: str, requests: list[Any]) -> None:
    app = workbench(path, name="owner")
    desk = app.state.desk
    session = desk.sign_in(desk.link)
    for method, address, asked, headers, body in requests:
        sent = {"authorization": f"Bearer {session}", **headers}
        scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "server": ("127.0.0.1", 8600),
            "raw_path": address,
            "query_string": asked,
            "headers": [
                (name.encode(), text.encode("latin-1", "replace"))
                for name, text in sent.items()
            ],
        }
        answers: list[Any] = []

        async def receive(body: bytes = body) -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: Any, answers: list[Any] = answers) -> None:
            answers.append(message)

        await app(scope, receive, send)
        status = answers[0]["status"]
        assert status < 500, f"{method} {address!r} is answered with {status}"
        assert not answers[-1].get("more_body"), f"{address!r} has no end"
    desk.close()


async def _at_once(call: Callable[..., Any], *args: Any, **_: Any) -> Any:
    return call(*args)


def _nothing(*_: Any, **__: Any) -> None:
    """In place of what takes long."""


async def _answer(_: Any, request: httpx.Request) -> httpx.Response:
    status, _, content = Path("answer").read_bytes().partition(b" ")  # noqa: ASYNC240
    return httpx.Response(int(status), content=content, request=request)


def _refuse(*_: Any, **__: Any) -> None:
    raise ConnectionRefusedError("no network here")


def fuzz(
    seed: int, numbers: range, processes: int = 2, only: str | None = None
) -> list[Finding]:
    """What some inputs did that they should not."""
    shares = [numbers[start::processes] for start in range(processes)]
    memory = Path("/dev/shm")  # where files take no disk
    place = memory if memory.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        notes = [Path(folder, str(number)) for number in range(processes)]
        running = {
            _start(seed, share, note, only): (share, note)
            for share, note in zip(shares, notes, strict=True)
        }
        findings: list[Finding] = []
        while running:
            for child in [*running]:
                share, note = running[child]
                done, status = os.waitpid(child, os.WNOHANG)
                if not done and time.time() - note.stat().st_mtime > _STUCK:
                    os.kill(child, signal.SIGKILL)
                elif done:
                    del running[child]
                    rest, found = _outcome(share, note, status)
                    findings += found
                    if rest:
                        running[_start(seed, rest, note, only)] = (rest, note)
            time.sleep(0.05)
    return sorted(findings, key=lambda finding: finding.number)


def _outcome(share: range, note: Path, status: int) -> tuple[range, list[Finding]]:
    """What is left of a share, and what was found, once a process has ended."""
    *lines, last = note.read_text("utf-8").split("\n")
    found = [line.split(" ", 1) for line in lines if " " in line]
    findings = [Finding(int(number), problem) for number, problem in found]
    at = int(last or share[0])
    if status:
        code = os.waitstatus_to_exitcode(status)
        what = signal.Signals(-code).name if code < 0 else f"ends with {code}"
        findings.append(Finding(at, what))
    return share[share.index(at) + 1 :], findings


def _start(seed: int, numbers: range, note: Path, only: str | None) -> int:
    """Start a process that works through the numbers and notes how far it is."""
    note.write_text(str(numbers[0]), "utf-8")
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        home = tempfile.mkdtemp(dir=note.parent)
        os.chdir(home)
        _work(seed, numbers, note, only)
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def _work(seed: int, numbers: range, note: Path, only: str | None) -> None:
    warnings.simplefilter("ignore")
    sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    logging.getLogger("karat").setLevel(logging.CRITICAL)
    # What odd addresses lead to is asked for nothing; a request needs no thread.
    ssl.SSLContext.load_verify_locations = _nothing  # type: ignore[method-assign]
    httpx.AsyncHTTPTransport.handle_async_request = _answer  # type: ignore[assignment,method-assign]
    anyio.to_thread.run_sync = _at_once  # type: ignore[assignment]
    socket.getaddrinfo = socket.socket.connect = _refuse  # type: ignore[assignment,method-assign]
    found = ""
    # A process forked from a large one begins with all that one has.
    peak = max(_MEGABYTES, _peak() + _MEGABYTES - _OWN)
    for number in numbers:
        note.write_text(f"{found}{number}", "utf-8")
        case = make_case(seed, number, only)
        home = Path.cwd()
        for name, data in case.files.items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        before = time.process_time()
        try:
            read(case)
        except BaseException as error:  # noqa: BLE001
            found += f"{number} {case.kind}: {_told(error)}\n"
        took = time.process_time() - before
        if took > _SECONDS:
            found += f"{number} {case.kind}: takes more than a second ({took:.1f})\n"
        if _peak() > peak:
            peak = _peak()
            found += f"{number} {case.kind}: takes {peak} MB\n"
        for path in home.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    note.write_text(f"{found}{numbers[-1]}", "utf-8")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _told(error: BaseException) -> str:
    """Where an error came up, last in karat, and what it says."""
    ours = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if f"{os.sep}karat{os.sep}" in frame.filename
    ]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno} " if ours else ""
    return f"{place}{type(error).__name__} {' '.join(str(error).split())[:150]}"


def _main() -> None:
    options = argparse.ArgumentParser(description="Read odd inputs by the thousand.")
    options.add_argument("--count", type=int, default=200_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options.add_argument("--only", help="a kind of input, such as columns or saved")
    given = options.parse_args()
    numbers = range(given.first, given.first + given.count)
    findings = fuzz(given.seed, numbers, given.processes, given.only)
    alike = Counter(" ".join(f.problem.split()[:4]) for f in findings)
    shown: set[str] = set()
    for finding in findings:
        key = " ".join(finding.problem.split()[:4])
        if key not in shown:
            shown.add(key)
            sys.stdout.write(f"{alike[key]:6} x  {finding.number}: {finding.problem}\n")
    sys.stdout.write(f"{given.count} inputs, {len(findings)} findings\n")
    sys.exit(bool(findings))


if __name__ == "__main__":
    _main()
