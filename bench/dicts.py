"""Dicts of dicts in memory: `{query: {document: score}}` scored by every tool."""

from collections.abc import Iterator
from functools import partial

from datasets import load_dicts
from peers import PEERS, agree, with_karat
from timing import Row, faster, in_process

__all__ = ["TITLE", "measure"]

TITLE = "dicts of dicts, in memory, peers' objects built (median; x = times faster)"

_PYTREC_BARS = {"small": 1.5, "beir": 7.0, "dl": 5.0, "marco": 20.0, "large": 7.0}
_OTHER_BARS = {"ranx": 15.0, "ir_measures": 10.0}


def measure(sizes: list[str]) -> Iterator[Row]:
    """A row for each size and peer."""
    for size in sizes:
        run, gold = load_dicts(size)
        tools = {"karat": with_karat, **PEERS}
        # The first call of ranx compiles and is not timed, though each process pays it.
        took = in_process({name: partial(tools[name], run, gold) for name in tools})
        ours = took["karat"]
        bars = {"pytrec_eval": _PYTREC_BARS[size], **_OTHER_BARS}
        for name in PEERS:
            agree(ours.value, name, took[name].value)
            yield faster(size, ours.seconds, name, took[name].seconds, bars[name])
