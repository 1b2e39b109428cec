"""TREC files, whole processes: `karat trec-eval` beside a pytrec_eval script."""

import sys
from collections.abc import Iterator
from pathlib import Path

from datasets import prepare
from measures import TREC_NAMES, TREC_REQUEST
from timing import Bar, Process, Row, clock, faster, whole_process

__all__ = ["LAST_DIGIT", "RIVAL", "TITLE", "measure", "memory", "printed_means"]

TITLE = "TREC files, whole process, karat trec-eval (median; x = times faster)"
RIVAL = str(Path(__file__).with_name("rival.py"))
LAST_DIGIT = 1.01e-4

_PYTREC_BARS = {"marco": 6.0, "large": 5.0}
_PEAK_BARS = {"marco": Bar(120, at_most=True)}
_PACKED_BARS = {"marco": Bar(1.6, at_most=True)}
_WALL_BARS = {"small": Bar(250, at_most=True)}


def measure(sizes: list[str]) -> Iterator[Row]:
    """Rows for each size: speed and memory beside pytrec_eval, and gz beside plain."""
    for size in sizes:
        folder = prepare(size)
        qrels, run = str(folder / "qrels.txt"), str(folder / "run.txt")
        took = whole_process(
            {
                "karat": _karat(qrels, run),
                "gz": _karat(qrels, f"{run}.gz"),
                "pytrec_eval": [sys.executable, RIVAL, qrels, run],
            }
        )
        ours, packed, theirs = took.values()
        _agree(ours, theirs)
        _agree(packed, theirs)
        bar = _PYTREC_BARS.get(size)
        yield faster(size, ours.seconds, "pytrec_eval", theirs.seconds, bar)
        yield memory(size, ours, theirs, _PEAK_BARS.get(size))
        wall, packed_wall = clock(ours.seconds), clock(packed.seconds)
        ratio, limit = packed.seconds / ours.seconds, _PACKED_BARS.get(size)
        yield Row(f"{size} gz", packed_wall, "plain file", wall, ratio, bar=limit)
        if wall_bar := _WALL_BARS.get(size):
            yield Row(size, wall, "wall clock", "", ours.seconds * 1e3, "ms", wall_bar)


def memory(size: str, ours: Process, theirs: Process, bar: Bar | None) -> Row:
    """A row about peak memory; the bar is about ours alone."""
    here, there = ours.peak / 1e6, theirs.peak / 1e6
    peak = f"{here:.0f} MB"
    return Row(size, peak, "pytrec_eval", f"{there:.0f} MB", here, "MB", bar)


def printed_means(output: str) -> dict[str, float]:
    """The means in what trec_eval, or an imitation of it, prints."""
    lines = (line.split() for line in output.splitlines())
    return {words[0]: float(words[2]) for words in lines if words[1:2] == ["all"]}


def _karat(qrels: str, run: str) -> list[str]:
    measures = [word for measure in TREC_REQUEST for word in ("-m", measure)]
    return [sys.executable, "-m", "karat", "trec-eval", *measures, qrels, run]


def _agree(ours: Process, theirs: Process) -> None:
    here, there = printed_means(ours.output), printed_means(theirs.output)
    for name in TREC_NAMES.values():
        if abs(here[name] - there[name]) > LAST_DIGIT:
            raise SystemExit(f"{name}: karat {here[name]}, pytrec_eval {there[name]}")
