"""Cost against size: the slope of log time over log rows is 1 when cost is linear."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import karat
from datasets import SCALING, load_dicts, load_lists, prepare
from measures import METRICS
from peers import with_karat
from timing import Bar, Row, clock, in_process

__all__ = ["measure"]

_BAR = Bar(1.1, at_most=True)


def measure(sizes: list[str]) -> Iterator[Row]:
    """A row for each kind of input and size, then the slope of the kind."""
    del sizes  # growth has sizes of its own
    rows = [shape.rows for shape in SCALING.values()]
    for kind, prepared in _KINDS.items():
        took = in_process({name: prepared(name) for name in SCALING})
        seconds = [timed.seconds for timed in took.values()]
        for name, each, count in zip(SCALING, seconds, rows, strict=True):
            yield Row(name, clock(each), kind, "", each / count * 1e9, "ns/row")
        slope = float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])
        yield Row("slope", "", kind, "", slope, "", _BAR)


def _dicts(name: str) -> Callable[[], object]:
    return partial(with_karat, *load_dicts(name))


def _lists(name: str) -> Callable[[], object]:
    return partial(with_karat, *load_lists(name))


def _files(name: str) -> Callable[[], object]:
    folder = prepare(name)
    run, gold = folder / "run.txt", folder / "qrels.txt"
    return partial(karat.evaluate, run, gold=gold, metrics=METRICS)


_KINDS = {"dicts": _dicts, "lists": _lists, "TREC files": _files}
