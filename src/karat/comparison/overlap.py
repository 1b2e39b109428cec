"""Rank-biased overlap: how alike two runs are, without any gold."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from karat.data.policies import Policies
from karat.data.runs import Run
from karat.errors import MismatchError, ParameterError
from karat.reading.doors import read_run

__all__ = ["rbo"]


def rbo(run: Any, other: Any, *, p: float = 0.9) -> dict[str, float]:
    """Say how alike two runs rank, the top weighing most: 1 is the same, 0 nothing.

    The extrapolated rank-biased overlap of Webber, Moffat and Zobel (2010): below the
    end of a ranking, the two are taken to go on agreeing as they did. A document counts
    at its first rank; one without an id is known by its text.

    Args:
        run: what was retrieved, in any form that `karat.evaluate` takes.
        other: the same of another system.
        p: how far down it matters: the first 10 ranks weigh 86 % with 0.9.

    Returns:
        The overlap of each query that both runs have; NaN where one retrieved nothing.

    Raises:
        ParameterError: p does not lie between 0 and 1.
        MismatchError: the runs have no query in common.

    Example:
        >>> rbo({"q1": ["a", "b"], "q2": ["a"]}, {"q1": ["a", "b"], "q2": ["x"]})
        {'q1': 1.0, 'q2': 0.0}
    """
    if not 0 < p < 1:
        raise ParameterError("rbo", "p", "between 0 and 1", p)
    one, two = (_rankings(given) for given in (run, other))
    common = [query for query in one if query in two]
    if not common:
        raise MismatchError(
            "the runs have no query in common",
            hint="check that both use the same query ids",
        )
    return {query: _overlap(one[query], two[query], p) for query in common}


def _rankings(given: Any) -> dict[str, list[str]]:
    run = given if isinstance(given, Run) else read_run(given)
    return {
        query: list(dict.fromkeys(d.id or d.text or "" for d in documents))
        for query, documents in run.rankings(Policies())
    }


def _overlap(one: Sequence[str], two: Sequence[str], p: float) -> float:
    short, long = sorted((one, two), key=len)
    if not short:
        return float("nan")
    rank = {name: place for place, name in enumerate(short, 1)}
    depth = np.arange(1, len(long) + 1)
    joins = [max(rank[n], at) for at, n in enumerate(long, 1) if n in rank]
    shared = np.searchsorted(np.sort(joins), depth, "right")
    # Below its end, the shorter ranking would go on as it began.
    beyond = np.maximum(depth - len(short), 0) * shared[len(short) - 1] / len(short)
    agreement = (shared + beyond) / depth
    weighed = (1 - p) * p ** (depth - 1.0) @ agreement
    return float(weighed + agreement[-1] * p ** len(long))
