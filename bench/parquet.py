"""Parquet, whole processes: `karat evaluate` beside pytrec_eval through pandas."""

import sys
from collections.abc import Iterator

from datasets import prepare
from measures import METRICS
from timing import Bar, Row, faster, whole_process
from trec_files import RIVAL, memory

__all__ = ["TITLE", "measure"]

TITLE = "Parquet files, whole process, karat evaluate (median; x = times faster)"

_PYTREC_BARS = {"marco": 12.0}
_PEAK_BARS = {"marco": Bar(500, at_most=True)}


def measure(sizes: list[str]) -> Iterator[Row]:
    """Two rows for each size: speed and memory beside pytrec_eval."""
    metrics = [word for name in METRICS for word in ("-m", name)]
    for size in sizes:
        folder = prepare(size)
        qrels, run = str(folder / "qrels.parquet"), str(folder / "run.parquet")
        karat = [sys.executable, "-m", "karat", "evaluate", run, "--gold", qrels]
        took = whole_process(
            {
                "karat": [*karat, *metrics],
                "pytrec_eval": [sys.executable, RIVAL, qrels, run],
            }
        )
        ours, theirs = took.values()
        bar = _PYTREC_BARS.get(size)
        yield faster(size, ours.seconds, "pytrec_eval", theirs.seconds, bar)
        yield memory(size, ours, theirs, _PEAK_BARS.get(size))
