"""How alike two runs are, without any gold: what both retrieve, in what order."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from karat.data.policies import Policies
from karat.data.runs import Run
from karat.data.tables import DASH, Table, counted, number
from karat.errors import MismatchError, ParameterError
from karat.fusion.fuse import named_runs
from karat.reading.readers import read_run
from karat.results.plain_values import PlainResult
from karat.stats import mean_interval

_PERSISTENCE = 0.9
_SHOWN = 10


@dataclass(frozen=True)
class QueryAgreement:
    """How alike two runs are on one query.

    Attributes:
        query: its id.
        rbo: rank-biased overlap of the rankings; NaN where one retrieved nothing.
        overlap: share of the top k that both have; NaN where neither has any.
        apart: the documents in the top k of one run only.
    """

    query: str
    rbo: float
    overlap: float
    apart: tuple[str, ...]


@dataclass(frozen=True)
class RunAgreement(PlainResult):
    """How alike two runs are: a plain value that saves and loads.

    Attributes:
        run: the name of the one.
        other: the name of the other.
        k: how many documents of each query are looked at for `overlap`.
        queries: those that both have, the least alike first.
        unshared: how many queries only one of them has.
    """

    run: str
    other: str
    k: int
    queries: tuple[QueryAgreement, ...]
    unshared: int = 0
    saved_as: ClassVar[str] = "run agreement"

    def tables(self) -> list[Table]:
        """The means, and the queries that differ most."""
        measures = ("rbo", f"overlap@{self.k}")
        pairs = np.array([(one.rbo, one.overlap) for one in self.queries])
        rows = []
        for measure, column in zip(measures, pairs.T, strict=True):
            scores = column[~np.isnan(column)]
            limits = mean_interval(scores)
            shown = DASH if limits is None else " .. ".join(map(number, limits))
            mean = float(scores.mean()) if len(scores) else None
            rows.append([measure, number(mean), shown])
        title = f"{self.run} and {self.other}: {counted(len(self.queries), 'query')}"
        notes = []
        if self.unshared:
            one = "query is" if self.unshared == 1 else "queries are"
            notes.append(f"{self.unshared} {one} in one run only")
        alike = Table(["", "mean", "95% interval"], rows, title=title, notes=notes)
        most = [one for one in self.queries if one.apart or one.rbo < 1][:_SHOWN]
        count = sum(len(one.apart) for one in self.queries)
        are = f"{counted(count, 'document')} {'is' if count == 1 else 'are'}"
        note = (
            f"{are} in the top {self.k} of one run only: their labels tell them apart"
        )
        rows = [
            [one.query, number(one.rbo), number(one.overlap), str(len(one.apart))]
            for one in most
        ]
        columns = ["query", *measures, "in one run only"]
        title = "queries that differ most"
        apart = Table(columns, rows, title=title, notes=[note])
        return [alike, apart] if most else [alike]


def agree(run: Any, other: Any, *, k: int = 10) -> RunAgreement:
    """Say how alike two runs are, without any gold, and what would tell them apart.

    Args:
        run: what was retrieved, in any form that `karat.evaluate` takes.
        other: the same of another system.
        k: how many documents of each query are looked at for the overlap.

    Raises:
        ParameterError: k is less than 1.
        MismatchError: the runs have no query in common.

    Example:
        >>> found = agree({"q": ["a", "b", "c"]}, {"q": ["b", "a", "x"]}, k=3)
        >>> found.queries[0].apart, round(found.queries[0].overlap, 2)
        (('c', 'x'), 0.67)
    """
    if k < 1:
        raise ParameterError("agree", "k", "an integer >= 1", k)
    named = named_runs([run, other])
    one, two = map(_rankings, named.values())
    queries = []
    for query in _common(one, two):
        first, second = {*one[query][:k]}, {*two[query][:k]}
        longest = max(len(first), len(second))
        queries.append(
            QueryAgreement(
                query,
                _alike(one[query], two[query], _PERSISTENCE),
                len(first & second) / longest if longest else math.nan,
                tuple(sorted(first ^ second)),
            )
        )
    queries.sort(key=lambda own: -1.0 if math.isnan(own.rbo) else own.rbo)
    first_name, second_name = named
    unshared = len(one.keys() ^ two.keys())
    return RunAgreement(first_name, second_name, k, tuple(queries), unshared)


def rbo(run: Any, other: Any, *, p: float = _PERSISTENCE) -> dict[str, float]:
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
    one, two = (_rankings(source) for source in (run, other))
    return {query: _alike(one[query], two[query], p) for query in _common(one, two)}


def _common(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    common = [query for query in one if query in two]
    if not common:
        raise MismatchError(
            "the runs have no query in common",
            hint="check that both use the same query ids",
        )
    return common


def _rankings(source: Any) -> dict[str, list[str]]:
    run = source if isinstance(source, Run) else read_run(source)
    return {
        query: list(dict.fromkeys(d.id or d.text or "" for d in documents))
        for query, documents in run.rankings(Policies())
    }


def _alike(one: Sequence[str], two: Sequence[str], p: float) -> float:
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
