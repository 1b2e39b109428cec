"""Statistics of comparisons: sign-flip tests, the bootstrap, and all pairs of runs."""

import time
import tracemalloc
from collections.abc import Iterator

import numpy as np
import scipy.stats

import karat
from karat.stats.rank_correlation import bootstrap_means
from karat.stats.sign_flip import DRAWS, sign_flip
from timing import Bar, Row, clock, faster, in_process

__all__ = ["TITLE", "measure"]

TITLE = (
    "statistics (1,000 queries; SciPy's permutations scaled up from 2,000 of 1 metric)"
)

_QUERIES, _METRICS = 1_000, 10
_SAMPLED = 2_000
_RESAMPLES = 10_000
_COMPARED = (
    *("ndcg@5", "ndcg@10", "recall@5", "recall@10", "precision@5"),
    *("hit@1", "hit@5", "rr", "ap", "rbp"),
)


def measure(sizes: list[str]) -> Iterator[Row]:
    """Rows for tests, resamples and all pairs of many runs."""
    dice = np.random.default_rng(0)
    one = dice.random((_METRICS, _QUERIES))
    other = (one + dice.normal(0.004, 0.1, one.shape)).clip(0, 1)
    yield _sign_flip(one, other)
    yield from _bootstrap(one)
    if "large" in sizes:
        yield from _all_pairs(10_000, 17)


def _sign_flip(one: np.ndarray, other: np.ndarray) -> Row:
    differences = other - one
    took = in_process(
        {
            "karat": lambda: sign_flip(differences),
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
    scale = _METRICS * DRAWS / _SAMPLED
    ours, theirs = took["karat"].seconds, took["scipy"].seconds * scale
    return faster("10k x 10", ours, "scipy perm.", theirs, 100)


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


def _all_pairs(queries: int, runs: int) -> Iterator[Row]:
    """`compare(all_pairs=True)` of runs that were scored, and the memory it takes."""
    names = [f"q{number}" for number in range(queries)]
    gold = {name: ["d0", "d1", "d2"] for name in names}
    scored = []
    for number in range(runs):
        dice = np.random.default_rng(number)
        order = dice.random((queries, 30))
        order[:, :3] -= (0.3 + 0.02 * number) * dice.random((queries, 3))
        found = [[f"d{one}" for one in row] for row in order.argsort(axis=1).tolist()]
        run = dict(zip(names, found, strict=True))
        options = {"metrics": _COMPARED, "name": f"run {number}"}
        scored.append(karat.evaluate(run, gold=gold, **options))
    began = time.process_time()
    compared = karat.compare(*scored, all_pairs=True)
    took = time.process_time() - began
    tracemalloc.start()
    karat.compare(*scored[:3], all_pairs=True)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    work = f"{queries // 1000}k x {runs} x {len(compared.differences) // 136}"
    yield Row(work, clock(took), "all pairs", "", took, "s", Bar(10, at_most=True))
    yield Row(work, "", "memory of 3", "", peak, "MB", Bar(100, at_most=True))
