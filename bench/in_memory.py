"""Dicts and lists in memory: every size beside the peers, and scores full of ties."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import numpy as np
import pytrec_eval

import karat
from datasets import TINY, Gold, Lists, Scores, load_dicts, load_lists
from measures import METRICS, TREC_REQUEST
from peers import PEERS, Means, agree, means_of, with_karat, with_pytrec_eval
from timing import Bar, Row, clock, faster, in_process

__all__ = [
    "measure_dicts",
    "measure_lists",
    "measure_reused",
    "measure_showing",
    "measure_ties",
]

T = TypeVar("T")

_TINY_BARS = {"1x10": 1.0, "10x10": 1.0}
_DICT_BARS = {
    **_TINY_BARS,
    "small": 2.0,
    "beir": 6.0,
    "dl": 5.0,
    "marco": 18.0,
    "large": 7.0,
}
_REUSED_BARS = {**_TINY_BARS, "small": 1.0, "beir": 6.0, "dl": 5.0, "marco": 18.0}
_OTHER_BARS = {"ranx": 15.0, "ir_measures": 10.0}
_LIST_BARS = {"small": 3.0, "beir": 7.0, "dl": 6.0, "marco": 25.0, "large": 8.0}
_TIE_BARS = {"4,000 equal": 1.0, "two decimals": 1.0}
_PRINT_BAR = Bar(20, at_most=True)
_FLOOR_BARS = {"marco": Bar(3, at_most=True)}


def measure_dicts(sizes: list[str]) -> Iterator[Row]:
    """A row for each size and peer; of the smallest inputs, one beside pytrec_eval."""
    for size in (*TINY, *sizes):
        run, gold = load_dicts(size)
        peers = [*PEERS] if size in sizes else ["pytrec_eval"]
        tools = {"karat": with_karat, **{name: PEERS[name] for name in peers}}
        # The first call of ranx compiles and is not timed, though each process pays it.
        took = in_process({name: partial(tools[name], run, gold) for name in tools})
        ours = took["karat"]
        bars = {"pytrec_eval": _DICT_BARS.get(size), **_OTHER_BARS}
        for name in peers:
            agree(ours.value, name, took[name].value)
            yield faster(size, ours.seconds, name, took[name].seconds, bars[name])


def measure_reused(sizes: list[str]) -> Iterator[Row]:
    """A row for each size, with the gold prepared once on both sides."""
    for size in (*TINY, *sizes):
        run, gold = load_dicts(size)
        ours = karat.Evaluator(gold, METRICS)
        theirs = pytrec_eval.RelevanceEvaluator(gold, set(TREC_REQUEST))
        took = in_process(
            {
                "karat": partial(_means, ours, run),
                "pytrec_eval": partial(_means_of_scores, theirs, run),
            }
        )
        mine, other = took.values()
        agree(mine.value, "pytrec_eval", other.value)
        bar = _REUSED_BARS.get(size)
        yield faster(size, mine.seconds, "pytrec_eval", other.seconds, bar)


def _means(evaluator: karat.Evaluator, run: Scores) -> Means:
    return evaluator.evaluate(run).means


def _means_of_scores(evaluator: pytrec_eval.RelevanceEvaluator, run: Scores) -> Means:
    return means_of(evaluator.evaluate(run))


def measure_showing(sizes: list[str]) -> Iterator[Row]:
    """What printing, warnings and JSON take, in percent of the evaluation."""
    size = next((size for size in ("marco", "beir") if size in sizes), sizes[0])
    run, gold = load_dicts(size)

    def evaluate() -> karat.Evaluation:
        return karat.evaluate(run, gold=gold, metrics=METRICS)

    # What is derived is kept: each is asked of an evaluation of its own.
    ways = {
        "print": str,
        "warnings": lambda r: r.warnings,
        "json": lambda r: r.to_json(),
    }
    took = in_process(
        {
            "evaluate": evaluate,
            **{name: partial(_then, evaluate, ways[name]) for name in ways},
        }
    )
    alone = took["evaluate"].seconds
    for name in ways:
        more = max(0.0, took[name].seconds - alone)
        share = 100 * more / alone
        work = f"{size} {name}"
        yield Row(work, clock(more), "evaluate", clock(alone), share, "%", _PRINT_BAR)


def _then(make: Callable[[], T], show: Callable[[T], object]) -> T:
    made = make()
    show(made)
    return made


def measure_lists(sizes: list[str]) -> Iterator[Row]:
    """Two rows for each size: beside pytrec_eval, and beside merely iterating."""
    for size in (*TINY, *sizes):
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
        bar = _LIST_BARS.get(size)
        yield faster(size, ours.seconds, "pytrec_eval", theirs.seconds, bar)
        if size in sizes:
            yield Row(
                size,
                clock(ours.seconds),
                "iterating",
                clock(floor.seconds),
                ours.seconds / floor.seconds,
                bar=_FLOOR_BARS.get(size),
            )


def measure_ties(sizes: list[str]) -> Iterator[Row]:
    """Rows of dicts in which many documents share their score."""
    del sizes  # ties have sizes of their own
    for name, (run, gold) in {
        "4,000 equal": _all_equal(4_000),
        "two decimals": _two_decimals("beir"),
    }.items():
        took = in_process(
            {
                "karat": partial(with_karat, run, gold),
                "pytrec_eval": partial(with_pytrec_eval, run, gold),
            }
        )
        ours, theirs = took.values()
        agree(ours.value, "pytrec_eval", theirs.value)
        yield faster(name, ours.seconds, "pytrec_eval", theirs.seconds, _TIE_BARS[name])


def _all_equal(depth: int) -> tuple[Scores, Gold]:
    """One query whose documents, all of them judged, share one score."""
    documents = np.random.default_rng(0).permutation(depth).astype(str).tolist()
    return {"q": dict.fromkeys(documents, 1.0)}, {"q": dict.fromkeys(documents, 1)}


def _two_decimals(size: str) -> tuple[Scores, Gold]:
    """The same run with scores between 0 and 1, rounded as many systems log them."""
    run, gold = load_dicts(size)
    source = np.random.default_rng(0)
    rounded = {
        query: dict(zip(scores, falling.tolist(), strict=True))
        for query, scores in run.items()
        if len(falling := np.sort(source.random(len(scores)).round(2))[::-1])
    }
    return rounded, gold


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
