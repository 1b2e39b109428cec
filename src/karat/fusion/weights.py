"""Weights for fusion, chosen by labels and checked on queries they were not chosen on.

The best weights on a set of queries look better there than they are. So the queries are
dealt into folds: those of each fold are fused with the weights that are best on all the
others, and the mean over them is what to expect of new queries.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.data.arrays import Floats
from karat.data.memory_runs import ScoredRun
from karat.data.runs import Run
from karat.errors import DataError, ParameterError
from karat.fusion.fuse import FusedScores, Fusion, contributions, named_runs

_SEED = 20_240_229
# With more runs, tenths would be too many combinations to try.
_FEW_RUNS = 3


@dataclass(frozen=True, eq=False)
class WeightSearch:
    """Weights for fusion, and what they are worth.

    Attributes:
        weights: by name of the run, best on all queries; they add up to 1.
        score: mean score with them on the same queries, which flatters them.
        held_out_score: mean score of queries fused with weights chosen on others.
        even_score: mean score with equal weights.
        folds: the weights chosen without each fold, in the order of the runs.
        run: all queries fused with `weights`.
        held_out: each query fused with weights chosen on others, to be evaluated.
    """

    weights: Mapping[str, float]
    score: float
    held_out_score: float
    even_score: float
    folds: tuple[tuple[float, ...], ...]
    run: Run
    held_out: Run


def search_weights(
    runs: Any,
    score: Callable[[Run], Mapping[str, float]],
    method: str = "sum",
    *,
    norm: str | None = None,
    k: float = 60,
    step: float | None = None,
    folds: int = 5,
    seed: int = _SEED,
) -> WeightSearch:
    """Find weights for fusion by cross-validation.

    Args:
        runs: as for `fuse`.
        score: the score of every query of a run, by its id; such as
            `lambda run: {q: ... for q in queries}` from an evaluation. Queries that it
            leaves out, or scores NaN, are not used.
        method: as for `fuse`.
        norm: as for `fuse`.
        k: as for `fuse`.
        step: between weights that are tried; natively 0.1 for two or three runs and
            0.25 for more.
        folds: into how many parts the queries are dealt.
        seed: of the dealing.

    Raises:
        DataError: fewer queries with a score than folds.

    Example:
        >>> from karat.extend import Policies
        >>> good, bad = {"q": {"a": 2, "b": 1}}, {"q": {"a": 1, "b": 2}}
        >>> runs = [{f"{i}": run["q"] for i in range(9)} for run in (good, bad)]
        >>> def found_first(run):
        ...     return {q: float(d[0].id == "a") for q, d in run.rankings(Policies())}
        >>> search_weights(runs, found_first).held_out_score
        1.0
    """
    sources = named_runs(runs)
    names = [*sources]
    rule = Fusion(method, norm, None, k, len(names))
    if step is None:
        step = 0.1 if len(names) <= _FEW_RUNS else 0.25
    grid = [*_simplex(len(names), step)]
    prepared = [*contributions(rule, sources)]

    def fused(weights: Mapping[str, list[float]]) -> Run:
        """Every query, fused with weights of its own."""
        made = {}
        for query, parts in prepared:
            rule.weights = weights[query.query]
            made[query.query] = FusedScores(query.numbers, rule.totals(query, parts))
        return ScoredRun(made, method)

    everywhere = [query.query for query, _ in prepared]
    tried = [score(fused(dict.fromkeys(everywhere, weights))) for weights in grid]
    queries = [q for q in everywhere if all(_has_score(scores, q) for scores in tried)]
    if len(queries) < max(folds, 2):
        raise DataError(
            f"{folds} folds take at least as many queries with a score, "
            f"got {len(queries)}"
        )
    table = np.array([[scores[query] for query in queries] for scores in tried])
    fold = np.random.default_rng(seed).permutation(len(queries)) % folds
    chosen = [_best(table[:, fold != part]) for part in range(folds)]
    picked = np.array(chosen)[fold]
    best = _best(table)
    even = dict.fromkeys(everywhere, [1.0 / len(names)] * len(names))
    even_scores = score(fused(even))
    apart = dict.fromkeys(everywhere, grid[best])
    apart.update(zip(queries, (grid[place] for place in picked.tolist()), strict=True))
    return WeightSearch(
        weights=dict(zip(names, grid[best], strict=True)),
        score=float(table[best].mean()),
        held_out_score=float(table[picked, np.arange(len(queries))].mean()),
        even_score=float(np.mean([even_scores[query] for query in queries])),
        folds=tuple(tuple(grid[place]) for place in chosen),
        run=fused(dict.fromkeys(everywhere, grid[best])),
        held_out=fused(apart),
    )


def _has_score(scores: Mapping[str, float], query: str) -> bool:
    return query in scores and not np.isnan(scores[query])


def _best(table: Floats) -> int:
    """The weights with the largest mean; of equals those in the middle of the grid."""
    means = table.mean(axis=1)
    equals = np.flatnonzero(means >= means.max() - 1e-12)
    return int(equals[len(equals) // 2])


def _simplex(runs: int, step: float) -> Iterator[list[float]]:
    """All weights in such steps that add up to 1."""
    parts = round(1.0 / step) if 0.0 < step <= 1.0 else 0
    if parts < 1 or abs(parts * step - 1.0) > 1e-9:  # noqa: PLR2004
        raise ParameterError("search_weights", "step", "1 by a whole number", step)

    def split(runs: int, left: int) -> Iterator[list[int]]:
        if runs == 1:
            yield [left]
            return
        for first in range(left + 1):
            for rest in split(runs - 1, left - first):
                yield [first, *rest]

    for counts in split(runs, parts):
        yield [count / parts for count in counts]
