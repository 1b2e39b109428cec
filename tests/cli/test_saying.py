"""Lines beside the tables: no id plays a trick on the terminal, no pipe complains."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Karat

TRICK = "q\x1b[2J\x1b]0;title\x07\r\u202e\nkarat: 1 gate passed"
MARKS = ("\x1b", "\x07", "\r", "\u202e")
RUN = {TRICK: {TRICK: 1.0, "b": 1.0}, "q2": {"a": 1.0}}


@pytest.fixture
def files(folder: Path) -> Path:
    """A run and gold whose ids are out to harm, under names that are, too."""
    gold = {query: dict.fromkeys(row, 1) for query, row in RUN.items()}
    (folder / "run\x1b[2J.json").write_text(json.dumps(RUN))
    (folder / "gold.json").write_text(json.dumps(gold))
    sample = {"id": TRICK, "retrieved": [TRICK] * 2, "relevant": [TRICK], TRICK: 1}
    (folder / "samples.jsonl").write_text(json.dumps({**sample, "tags": [TRICK]}))
    (folder / "bad\x1b[2J.json").write_text('{"q": [')
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("validate", "run\x1b[2J.json"),
        ("validate", "run\x1b[2J.json", "--gold", "gold.json"),
        ("validate", "samples.jsonl"),
        ("validate", "samples.jsonl", "--map", "retrieved=nothing"),
        ("validate", "bad\x1b[2J.json"),
        ("convert", "run\x1b[2J.json", "out\x1b[2J.csv"),
        ("evaluate", "bad\x1b[2J.json", "--gold", "gold.json"),
        ("evaluate", "run\x1b[2J.json", "--gold", "gold.json", "--explain", "nobody"),
        ("evaluate", "run\x1b[2J.json", "--gold", "gold.json", "-o", "o\x1b[2J.md"),
        ("evaluate", "run\x1b[2J.json", "--gold", "gold.json", "--explain", TRICK),
        ("evaluate", "samples.jsonl", "--slice", "tag", "--fail-under", "rr=0.5"),
    ],
)
def test_no_trick_reaches_the_terminal(
    arguments: tuple[str, ...], files: Path, karat: Karat
) -> None:
    del files
    done = karat(*arguments)
    said = done.out + done.err
    assert not any(mark in said for mark in MARKS)
    assert "\nkarat: 1 gate passed" not in done.out
    assert "unexpected" not in done.err


@pytest.mark.parametrize("colour", [True, False])
def test_a_failed_gate_is_red_where_colour_is_welcome(
    colour: bool,  # noqa: FBT001
    karat: Karat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "" if colour else "1")
    monkeypatch.setattr("click._compat.isatty", lambda _: True)
    gate = ("--fail-under", "rr=0.99")
    done = karat("evaluate", "dense.run", "-g", "gold.qrels", *gate)
    assert done.code == 1
    assert ("\x1b[31m" in done.err) == colour


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--json"], ["--explain", "q02"]])
def test_a_reader_who_leaves_is_no_failed_gate(more: list[str], folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "karat", "evaluate", "dense.run", *more]
    done = subprocess.run(
        [*command, "-g", "gold.qrels"],
        cwd=folder,
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_a_closed_stream_is_no_traceback(folder: Path) -> None:
    code = "import os, sys; os.close({}); os.execv(sys.executable, sys.argv[1:])"
    karat = [sys.executable, "-m", "karat", "evaluate", "-g", "gold.qrels", "-m", "rr"]
    for stream, source, expected in ((0, "-", 2), (1, "dense.run", 0)):
        command = [sys.executable, "-c", code.format(stream), *karat, source]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
        assert done.returncode == expected
        assert b"unexpected" not in done.stderr


def test_long_work_counts_its_steps(
    karat: Karat, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []

    def show(items: Iterable[Any], total: int, doing: str) -> Iterator[Any]:
        done = [*items]
        assert len(done) == total
        counted.append((doing, total))
        return iter(done)

    monkeypatch.setattr("karat.cli.outputs.track", show)
    gold = ("-g", "gold.qrels", "-m", "ndcg@10,rr")
    assert karat("compare", "keyword.run", "dense.run", *gold, "-o", "c.md").code == 0
    assert counted == [
        ("scoring runs", 2),
        ("comparing by metrics", 2),
        ("writing files", 1),
    ]
    counted.clear()
    assert karat("diagnose", "dense.run", "-g", "gold.qrels").code == 0
    assert counted == [("looking for causes", 26), ("writing files", 0)]
