"""How things are timed and shown: interleaved rounds, medians, ratios, bars."""

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

__all__ = [
    "Bar",
    "Process",
    "Row",
    "Timed",
    "clock",
    "faster",
    "in_process",
    "show",
    "whole_process",
]

T = TypeVar("T")

_LEAST_SPAN = 0.02
_LAUNCH = Path(__file__).with_name("launch.py")


@dataclass(frozen=True)
class Bar:
    """What a figure has to reach, at least or at most."""

    limit: float
    at_most: bool = False

    def holds(self, figure: float) -> bool:
        """Whether the figure reaches the bar."""
        return figure <= self.limit if self.at_most else figure >= self.limit

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.limit:g}"


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
        work: the work size.
        ours: what was measured of karat.
        other: whom it is compared with.
        theirs: what was measured of the other.
        figure: the number the bar is about.
        unit: its unit.
        bar: what the figure has to reach, if anything.
    """

    work: str
    ours: str
    other: str
    theirs: str
    figure: float
    unit: str = "x"
    bar: Bar | None = None

    @property
    def missed(self) -> bool:
        """Whether there is a bar and the figure fails it."""
        return self.bar is not None and not self.bar.holds(self.figure)

    def __str__(self) -> str:
        text = (
            f"{self.work:<12}{self.ours:>10}   {self.other:<14}{self.theirs:>10}"
            f"{self.figure:>9.3g} {self.unit:<6}"
        )
        if self.bar is not None:
            text += f"{self.bar!s:>8}  {'MISSED' if self.missed else 'ok'}"
        return text.rstrip()


@dataclass(frozen=True)
class Timed(Generic[T]):
    """The median seconds of a function and what it returned."""

    seconds: float
    value: T


@dataclass(frozen=True)
class Process:
    """Wall and CPU seconds and peak bytes of one command, and what it printed."""

    seconds: float
    cpu: float
    peak: float
    output: str


def in_process(
    candidates: Mapping[str, Callable[[], T]], *, rounds: int = 7, budget: float = 12.0
) -> dict[str, Timed[T]]:
    """Median CPU seconds of each function; a round runs every function in turn.

    Short functions are repeated within a round until the clock can be trusted. A
    function that has used up its budget of seconds is left out of further rounds.
    """
    values = {name: call() for name, call in candidates.items()}
    gc.collect()
    gc.freeze()
    repeats = {
        name: max(1, int(_LEAST_SPAN / _each(call, 1)))
        for name, call in candidates.items()
    }
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, call in candidates.items():
            if sum(samples[name]) < budget:
                samples[name].append(_each(call, repeats[name]))
    gc.unfreeze()
    return {n: Timed(statistics.median(samples[n]), values[n]) for n in candidates}


def whole_process(
    commands: Mapping[str, list[str]], *, rounds: int = 5, budget: float = 24.0
) -> dict[str, Process]:
    """Median seconds and peak memory of commands, from start to end, interleaved."""
    samples: dict[str, list[Process]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            if sum(run.seconds for run in samples[name]) < budget:
                samples[name].append(_launch(command))
    return {
        name: Process(
            statistics.median(run.seconds for run in runs),
            statistics.median(run.cpu for run in runs),
            statistics.median(run.peak for run in runs),
            runs[0].output,
        )
        for name, runs in samples.items()
    }


def faster(
    work: str, ours: float, other: str, theirs: float, bar: float | None = None
) -> Row:
    """A row that says how many times faster ours is; the bar is a least factor."""
    limit = None if bar is None else Bar(bar)
    return Row(work, clock(ours), other, clock(theirs), theirs / ours, bar=limit)


def clock(seconds: float) -> str:
    """A duration in the unit people read: milliseconds below a second."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def show(title: str, rows: Iterable[Row]) -> int:
    """Print rows under a title as they come; how many missed their bar."""
    print(f"\n{title}", flush=True)
    missed = 0
    for row in rows:
        print(f"  {row}", flush=True)
        missed += row.missed
    return missed


def _each(call: Callable[[], object], repeats: int) -> float:
    # Of the processor, not of the clock: others may be at work on this machine.
    started = time.process_time()
    for _ in range(repeats):
        call()
    return max(time.process_time() - started, 1e-9) / repeats


def _launch(command: list[str]) -> Process:
    # Installed packages have their bytecode; the clone's must not be made every time.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        ran = subprocess.run(
            [sys.executable, "-S", str(_LAUNCH), str(figures), *command],
            check=False,
            capture_output=True,
            env=kept,
            text=True,
        )
        if ran.returncode:
            raise SystemExit(f"{' '.join(command)}\n{ran.stderr}")
        return Process(**json.loads(figures.read_text("utf-8")), output=ran.stdout)
