"""TREC files, whole processes: `karat trec-eval` beside a pytrec_eval script."""

import sys
from collections.abc import Iterator
from pathlib import Path

from datasets import prepare
from measures import TREC_REQUEST
from timing import Bar, Process, Row, clock, faster, whole_process

__all__ = ["RIVAL", "TITLE", "agree", "measure", "memory", "trec_means"]

TITLE = "TREC files, whole process, karat trec-eval (median; x = times faster)"
RIVAL = str(Path(__file__).with_name("rival.py"))

_PYTREC_BARS = {"marco": 6.0, "large": 5.0}
_PEAK_BARS = {"marco": Bar(120, at_most=True)}
_PACKED_BARS = {"marco": Bar(1.6, at_most=True)}
_WALL_BARS = {"small": Bar(250, at_most=True)}
_LAST_DIGIT = 1.01e-4


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
        expected = trec_means(theirs.output)
        agree(trec_means(ours.output), expected)
        agree(trec_means(packed.output), expected)
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


def trec_means(output: str) -> dict[str, float]:
    """The means in what trec_eval, or an imitation of it, prints."""
    lines = (line.split() for line in output.splitlines())
    return {words[0]: float(words[2]) for words in lines if words[1:2] == ["all"]}


def agree(ours: dict[str, float], theirs: dict[str, float]) -> None:
    """Stop when a printed mean differs by more than its last decimal."""
    for name, mean in theirs.items():
        if abs(ours[name] - mean) > _LAST_DIGIT:
            raise SystemExit(f"{name}: karat {ours[name]}, pytrec_eval {mean}")


def _karat(qrels: str, run: str) -> list[str]:
    measures = [word for measure in TREC_REQUEST for word in ("-m", measure)]
    return [sys.executable, "-m", "karat", "trec-eval", *measures, qrels, run]
