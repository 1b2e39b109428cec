"""What a person sees while a model judges, and what is said at the end."""

import io
import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from karat.cli.command import log, say
from karat.cli.judge_session import JudgingProgress
from karat.data.judgements import Usage
from karat.extend import Prices
from karat.llm.limits import Budget, Progress, Stage
from karat.reports import terminal as bars

JOURNAL = Path("kept.sqlite")
SPLITTING = Stage("splitting", "reference")
SAMPLES = Stage("judging", "sample")
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What commands with -v before left behind is not heard here."""
    level = log.level
    log.setLevel(logging.WARNING)
    yield
    log.setLevel(level)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class AtOnce:
    """A timer for which time is up at once."""

    def __init__(self, seconds: float, act: Callable[[], None]) -> None:
        del seconds
        self.start = act

    def cancel(self) -> None: ...
    def join(self) -> None: ...


class Never(AtOnce):
    """A timer for which time is never up."""

    def __init__(self, seconds: float, act: Callable[[], None]) -> None:
        super().__init__(seconds, lambda: None)
        del act


def meter(calls: int = 0, prices: Prices | None = None) -> JudgingProgress:
    budget = Budget(prices)
    for _ in range(calls):
        budget.reserve(Usage(), Usage())
        budget.settle(Usage(), Usage(400, 100))
    return JudgingProgress(budget, JOURNAL)


def shown(
    monkeypatch: pytest.MonkeyPatch,
    runs: Sequence[Progress],
    timer: type = AtOnce,
    width: str = "100",
) -> str:
    """What a terminal of this width is sent while these are the last of runs."""
    terminal = Terminal()
    monkeypatch.setattr(bars, "Timer", timer)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", width)
    judging = meter()
    for run in runs:
        judging(Progress(0, run.total, stage=run.stage))
        judging(run)
    judging.close()
    return terminal.getvalue()


@pytest.mark.parametrize("width", ["120", "80", "60"])
def test_the_bar_shows_rows_calls_tokens_cost_and_the_time_left(
    width: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = Progress(7, 24, 1, 8, 2, 12_000, 900, 0.0056, 75.0, SPLITTING)
    text = CODES.sub("", shown(monkeypatch, [far], width=width))
    bar = "\N{BOX DRAWINGS HEAVY HORIZONTAL}"
    for part in ("splitting", bar, "7/24", "1 failed", "8 calls", "12,900", "0.0056"):
        assert part in text
    assert re.search(r"1:15\s+left", text)
    lines = text.replace("\r", "\n").split("\n")
    assert lines[-2].startswith("karat: splitting 7 of 24 references (1 failed)")
    assert max(map(len, lines[:-2])) <= int(width)


@pytest.mark.parametrize("done", [2, 3])
def test_the_terminal_is_left_clean(done: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, [Progress(3, 3), Progress(done, 3)])
    assert "3/3" in text
    assert f"{done}/3" in text
    # The cursor is back, and the line it stood in is empty.
    assert text.endswith("\x1b[?25h\r\x1b[1A\x1b[2K")


def test_what_is_over_soon_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, [Progress(2, 2)], Never) == ""


def test_elsewhere_a_line_each_minute_says_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter(range(0, 10_000, 7))
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)))
    monkeypatch.setattr("karat.cli.judge_session.time", clock)
    judging = meter(calls=1)
    for done in range(101):
        judging(Progress(done, 100, calls=done))
    said = capsys.readouterr().err.splitlines()
    # In 707 seconds, at the first row after each minute.
    assert len(said) == 11
    assert said[0] == "karat: judging rows 8/100, 8 calls, 0 tokens"
    assert "\x1b" not in "".join(said)


@pytest.mark.parametrize(
    ("runs", "calls", "prices", "line"),
    [
        (
            [
                Progress(12, 12, cached=1, stage=SPLITTING),
                Progress(11, 11, cached=2, stage=SAMPLES),
                Progress(1, 1, stage=SAMPLES),
            ],
            24,
            Prices(0.15, 0.6),
            (
                "splitting 12 references and judging 12 samples took 24 calls, 12,000 "
                "tokens, cost 0.00288; 3 replies were kept"
            ),
        ),
        (
            [Progress(3, 12, failed=2, cached=1)],
            1,
            None,
            "judging 3 of 12 rows (2 failed) took 1 call, 500 tokens; 1 reply was kept",
        ),
        (
            [Progress(6, 6, cached=9, stage=SAMPLES)],
            0,
            Prices(0.15, 0.6),
            "judging 6 samples took no call; 9 replies were kept",
        ),
    ],
)
def test_at_the_end_one_line_says_what_was_paid(
    runs: list[Progress],
    calls: int,
    prices: Prices | None,
    line: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    judging = meter(calls, prices)
    for run in runs:
        judging(Progress(0, run.total, stage=run.stage))
        judging(run)
    judging.close()
    assert capsys.readouterr().err == f"karat: {line} already\n"


def test_an_interrupt_says_what_is_kept_and_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    judging = meter(calls=2)
    judging(Progress(0, 4))
    judging(Progress(1, 4))
    with pytest.raises(SystemExit) as stop, closing(judging):
        raise KeyboardInterrupt
    assert stop.value.code == 130
    assert capsys.readouterr().err == (
        "karat: interrupted; judging 1 of 4 rows took 2 calls, 1,000 tokens, and all "
        "replies are kept in kept.sqlite: run the same command again to go on\n"
    )


def test_lines_that_are_said_meanwhile_stand_above_the_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(bars, "Timer", AtOnce)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    judging = meter()
    judging(Progress(0, 3))
    say("karat: a call failed", err=True)
    judging.close()
    lines = CODES.sub("", terminal.getvalue()).replace("\r", "\n").split("\n")
    assert "karat: a call failed" in [line.strip() for line in lines]
