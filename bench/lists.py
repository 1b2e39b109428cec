"""Ranked lists in memory: `{query: [document, ...]}`, best first."""

from collections import deque
from collections.abc import Iterator
from functools import partial

from datasets import Gold, Lists, load_lists
from peers import Means, agree, with_karat, with_pytrec_eval
from timing import Bar, Row, clock, faster, in_process

__all__ = ["TITLE", "measure"]

TITLE = "ranked lists, in memory (median; x = times faster, or of the time to iterate)"

_PYTREC_BARS = {"small": 3.0, "beir": 7.0, "dl": 6.0, "marco": 25.0, "large": 8.0}
_FLOOR_BARS = {"marco": Bar(3, at_most=True)}


def measure(sizes: list[str]) -> Iterator[Row]:
    """Two rows for each size: beside pytrec_eval, and beside merely iterating."""
    for size in sizes:
        run, gold = load_lists(size)
        took = in_process(
            {
                "karat": partial(with_karat, run, gold),
                "pytrec_eval": partial(_with_pytrec_eval, run, gold),
                "iterating": partial(_iterate, run),
            }
        )
        ours, theirs, floor = took.values()
        agree(ours.value, "pytrec_eval", theirs.value)
        bar = _PYTREC_BARS[size]
        yield faster(size, ours.seconds, "pytrec_eval", theirs.seconds, bar)
        yield Row(
            size,
            clock(ours.seconds),
            "iterating",
            clock(floor.seconds),
            ours.seconds / floor.seconds,
            bar=_FLOOR_BARS.get(size),
        )


def _with_pytrec_eval(run: Lists, gold: Gold) -> Means:
    """pytrec_eval takes scores only, so that a ranking becomes falling numbers."""
    falling = [float(-rank) for rank in range(max(map(len, run.values())))]
    scores = {
        query: dict(zip(documents, falling, strict=False))
        for query, documents in run.items()
    }
    return with_pytrec_eval(scores, gold)


def _iterate(run: Lists) -> Means:
    """The least anyone can do with all ids: look at each once, in C."""
    for documents in run.values():
        deque(documents, maxlen=0)
    return {}
