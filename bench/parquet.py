"""Parquet, whole processes: `karat evaluate` beside pytrec_eval through pandas."""

import sys
from collections.abc import Iterator

from datasets import prepare
from measures import METRICS, TREC_NAMES
from timing import Bar, Row, faster, whole_process
from trec_files import RIVAL, agree, memory, trec_means

__all__ = ["TITLE", "measure"]

TITLE = "Parquet files, whole process, karat evaluate (median; x = times faster)"

_PYTREC_BARS = {"marco": 12.0}
_PEAK_BARS = {"marco": Bar(500, at_most=True)}


def measure(sizes: list[str]) -> Iterator[Row]:
    """Rows for each size: speed beside two ways of calling pytrec_eval, and memory."""
    metrics = [word for name in METRICS for word in ("-m", name)]
    for size in sizes:
        folder = prepare(size)
        qrels, run = str(folder / "qrels.parquet"), str(folder / "run.parquet")
        karat = [sys.executable, "-m", "karat", "evaluate", run, "--gold", qrels]
        took = whole_process(
            {
                "karat": [*karat, *metrics],
                "pytrec_eval": [sys.executable, RIVAL, qrels, run],
                "by lists": [sys.executable, RIVAL, qrels, run, "lists"],
            }
        )
        ours, theirs, quicker = took.values()
        expected = trec_means(theirs.output)
        expected.pop("recip_rank")  # ours is cut at 10
        agree(_table_means(ours.output), expected)
        bar = _PYTREC_BARS.get(size)
        yield faster(size, ours.seconds, "pytrec_eval", theirs.seconds, bar)
        yield faster(size, ours.seconds, "... by lists", quicker.seconds)
        yield memory(size, ours, theirs, _PEAK_BARS.get(size))


def _table_means(output: str) -> dict[str, float]:
    """The means in karat's table, under the names of trec_eval."""
    lines = (line.split() for line in output.splitlines())
    rows = {words[0]: words[1] for words in lines if len(words) > 1}
    return {trec: float(rows[name]) for name, trec in TREC_NAMES.items()}
