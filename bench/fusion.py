"""Fusion of five runs in memory, against ranx when it is warm."""

from collections.abc import Iterator

import numpy as np

import karat
from timing import Row, faster, in_process

__all__ = ["TITLE", "measure"]

TITLE = "fusion (5 runs, 1,000 documents a query; ranx compiled beforehand)"

_RUNS, _DEPTH, _POOL = 5, 1_000, 2_500
# A quarter of the queries of MS MARCO: all of them take 12 GB, five runs twice.
_SIZES = {"small": 100, "marco": 1_745}
_METHODS = {"rrf": ("rrf", None), "sum": ("sum", "min-max"), "mnz": ("mnz", "min-max")}

Scores = dict[str, dict[str, float]]


def measure(sizes: list[str]) -> Iterator[Row]:
    """A row for each method and size."""
    import ranx

    for size, queries in _SIZES.items():
        if size not in sizes and size != "small":
            continue
        runs = [_made(place, queries) for place in range(_RUNS)]
        theirs = [ranx.Run(run, name=str(place)) for place, run in enumerate(runs)]
        for method, (name, norm) in _METHODS.items():
            took = in_process(
                {
                    "karat": lambda runs=runs, method=method: karat.fuse(runs, method),
                    "ranx": lambda runs=theirs, name=name, norm=norm: ranx.fuse(
                        runs, norm=norm, method=name
                    ),
                },
                rounds=3,
            )
            ours, other = took["karat"].seconds, took["ranx"].seconds
            bar = 5 if size == "marco" else None
            yield faster(f"{method} {queries}", ours, "ranx", other, bar)


def _made(run: int, queries: int) -> Scores:
    """A run over the documents that all five draw from, best first."""
    made = {}
    for query in range(queries):
        dice = np.random.default_rng([run, query])
        documents = dice.permutation(_POOL)[:_DEPTH] + 37 * query
        scores = np.sort(dice.random(_DEPTH))[::-1] * 20
        names = [f"D{document}" for document in documents.tolist()]
        made[f"q{query}"] = dict(zip(names, scores.tolist(), strict=True))
    return made
