"""Statistics of comparisons: sign-flip tests, the bootstrap, and all pairs of runs."""

import time
import tracemalloc
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import scipy.stats

from karat.stats.bootstrap import bootstrap_means
from karat.stats.multiple_tests import holm
from karat.stats.paired import difference_interval, effect_size, outcomes, t_test
from karat.stats.power import minimum_detectable_effect, queries_needed
from karat.stats.sign_flip import sign_flip, sign_flip_pairs
from timing import Bar, Row, clock, faster, in_process

__all__ = ["TITLE", "measure"]

TITLE = (
    "statistics (1,000 queries; SciPy's permutations scaled up from 2,000 of 1 metric)"
)

_QUERIES, _METRICS = 1_000, 10
_PERMUTATIONS, _SAMPLED = 100_000, 2_000
_RESAMPLES = 10_000


def measure(sizes: list[str]) -> Iterator[Row]:
    """Rows for tests, resamples and all pairs of many runs."""
    dice = np.random.default_rng(0)
    one = dice.random((_METRICS, _QUERIES))
    other = (one + dice.normal(0.004, 0.1, one.shape)).clip(0, 1)
    yield _sign_flip(one, other)
    yield from _bootstrap(one)
    if "large" in sizes:
        yield from _all_pairs(10_000, 17, _METRICS)


def _sign_flip(one: np.ndarray, other: np.ndarray) -> Row:
    differences = other - one
    took = in_process(
        {
            "karat": lambda: sign_flip(differences, draws=_PERMUTATIONS),
            "scipy": lambda: scipy.stats.permutation_test(
                (other[0], one[0]),
                lambda x, y, axis: np.mean(x - y, axis=axis),
                permutation_type="samples",
                vectorized=True,
                n_resamples=_SAMPLED,
                batch=500,
            ),
        },
        rounds=3,
    )
    scale = _METRICS * _PERMUTATIONS / _SAMPLED
    ours, theirs = took["karat"].seconds, took["scipy"].seconds * scale
    return faster("100k x 10", ours, "scipy perm.", theirs, 100)


def _bootstrap(scores: np.ndarray) -> Iterator[Row]:
    # One metric is shown as it is: drawing the random numbers takes most of its time.
    for metrics, bar in ((_METRICS, 5), (1, None)):
        rows = scores[:metrics]
        took = in_process(
            {
                "karat": lambda rows=rows: bootstrap_means(rows, draws=_RESAMPLES),
                "scipy": lambda rows=rows: scipy.stats.bootstrap(
                    (rows,),
                    np.mean,
                    axis=1,
                    n_resamples=_RESAMPLES,
                    method="percentile",
                    batch=500,
                ),
            },
            rounds=3,
        )
        ours, theirs = took["karat"].seconds, took["scipy"].seconds
        yield faster(f"10k x {metrics}", ours, "scipy boot.", theirs, bar)


def _all_pairs(queries: int, runs: int, metrics: int) -> Iterator[Row]:
    """Everything a comparison says of every pair, and the memory it takes."""
    dice = np.random.default_rng(1)
    scores = dice.random((metrics, runs, queries), dtype=np.float64)
    began = time.perf_counter()
    for table in scores:
        _say_all(table)
    took = time.perf_counter() - began
    tracemalloc.start()
    _say_all(scores[0])
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    work = f"{queries // 1000}k x {runs}"
    yield Row(work, clock(took), "all pairs", "", took, "s", Bar(20, at_most=True))
    yield Row(work, "", "memory", "", peak, "MB", Bar(100, at_most=True))


def _say_all(table: np.ndarray) -> None:
    """What a comparison says of every pair of the runs of one metric."""
    runs, queries = table.shape
    holm(sign_flip_pairs(table)[np.triu_indices(runs, 1)])
    for a, b in combinations(range(runs), 2):
        differences = table[b] - table[a]
        difference_interval(differences)
        t_test(differences)
        outcomes(differences)
        effect_size(differences)
        sd = float(differences.std(ddof=1))
        minimum_detectable_effect(queries, sd)
        queries_needed(float(differences.mean()), sd)
