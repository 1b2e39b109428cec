"""What runs have in common: how alike two are, and what each adds to the others.

Two retrievers of the same quality are worth more together the less they have in common.
The union of what all of them found is the most that any fusion or re-ranking of their
top k can reach; how much of it is lost without one run is what that run alone brings.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from karat.data.arrays import Bools, Floats, Ints, sum_by
from karat.data.gold import ColumnLabels
from karat.data.intervals import Interval
from karat.data.policies import Policies
from karat.data.runs import Run
from karat.data.tables import DASH, Table, counted, number
from karat.errors import WITHOUT_LABELS, DataError, MismatchError, ParameterError
from karat.fusion.fuse import fuse, named_runs
from karat.reading.readers import read, read_run
from karat.results.plain_values import PlainResult
from karat.stats import mean_interval
from karat.stats.paired import difference_interval

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


@dataclass(frozen=True)
class Contribution:
    """What one run has that the others may not have.

    Attributes:
        run: its name.
        recall: share of the relevant documents in its top k, mean over queries.
        alone: share that no other run has in its top k; as much is lost without it.
        interval: of `alone`, for other queries than these.
        fused_gain: recall@k of all runs fused by reciprocal ranks, less that without
            this one.
        fused_interval: of `fused_gain`.
    """

    run: str
    recall: float
    alone: float
    interval: Interval | None
    fused_gain: float
    fused_interval: Interval | None


@dataclass(frozen=True)
class Complementarity:
    """How far several runs find different things.

    Attributes:
        k: how many documents of each run are looked at.
        queries: number of queries with relevant documents.
        runs: what each run adds, in the order given.
        union: share of the relevant documents that any run has in its top k.
        oracle: recall@k if the best run were known for every query.
        fused: recall@k of all runs fused by reciprocal ranks.
        overlap: pair of runs -> documents relevant and found by both, as a share of
            those found by either; NaN where neither found any.
    """

    k: int
    queries: int
    runs: tuple[Contribution, ...]
    union: float
    oracle: float
    fused: float
    overlap: Mapping[tuple[str, str], float]

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain values."""
        pairs = self.overlap.items()
        plain = {"runs": [asdict(run) for run in self.runs]}
        plain["overlap"] = [{"runs": [*pair], "share": share} for pair, share in pairs]
        return {**vars(self), **plain}

    def table(self) -> Table:
        """One row per run, and below it what all of them make together."""
        rows = [
            [
                run.run,
                number(run.recall),
                number(run.alone) + _limits(run.interval),
                f"{run.fused_gain:+.4f}{_limits(run.fused_interval)}",
            ]
            for run in self.runs
        ]
        recall = f"recall@{self.k}"
        together = (
            f"{recall} of all together: fused (rrf) {number(self.fused)}, union of all "
            f"{number(self.union)}, best run of each query {number(self.oracle)}"
        )
        columns = (
            f"only here: what no other run has in its top {self.k}; "
            f"adds to rrf: {recall} fused with this run, less that without it"
        )
        header = ["run", recall, "only here (95%)", "adds to rrf (95%)"]
        return Table(header, rows, notes=[together, columns])


def complementarity(
    runs: Any, gold: Any, *, k: int = 10, threshold: float | None = None
) -> Complementarity:
    """Measure what each of several runs adds to the others, by recall@k.

    Args:
        runs: as for `fuse`.
        gold: relevant documents by id: whatever `karat.evaluate` takes for gold.
        k: how many documents of each run are looked at.
        threshold: the smallest grade that is relevant; None: any positive one.

    Raises:
        DataError: no query has relevant documents by id.

    Example:
        >>> lexical, dense = {"q": ["a", "x", "b"]}, {"q": ["c", "a", "y"]}
        >>> found = complementarity([lexical, dense], {"q": ["a", "b", "c"]}, k=3)
        >>> found.union, round(found.oracle, 2), round(found.runs[1].alone, 2)
        (1.0, 0.67, 0.33)
    """
    if k < 1:
        raise ParameterError("complementarity", "k", "an integer >= 1", k)
    sources = named_runs(runs)
    relevant = _relevant(gold, threshold)
    if not relevant:
        raise DataError("no query has relevant documents by id")
    in_top_k = np.array([_has(run, relevant, k) for run in sources.values()])
    recalls, union, alone = union_gains(relevant.grades.query, in_top_k)
    names = [*sources]
    whole = _recall(fuse(sources), relevant, k)
    contributions = []
    for row, name in enumerate(names):
        rest = {other: run for other, run in sources.items() if other != name}
        without = recalls[1 - row]
        if len(rest) > 1:
            without = _recall(fuse(rest), relevant, k)
        contributions.append(
            Contribution(
                name,
                float(recalls[row].mean()),
                float(alone[row].mean()),
                mean_interval(alone[row]),
                float((whole - without).mean()),
                difference_interval(whole - without),
            )
        )
    pairs = combinations(zip(names, in_top_k, strict=True), 2)
    overlap = {(a, b): _overlap(one, other) for (a, one), (b, other) in pairs}
    return Complementarity(
        k,
        len(relevant),
        tuple(contributions),
        float(union.mean()),
        float(recalls.max(axis=0).mean()),
        float(whole.mean()),
        overlap,
    )


def union_gains(query: Ints, has: Bools) -> tuple[Floats, Floats, Floats]:
    """Recall of each run, of all together, and what each alone has, query by query."""
    queries = int(query.max()) + 1
    size = np.bincount(query, minlength=queries)
    having = has.sum(axis=0)

    def share(rows: Bools) -> Floats:
        part: Floats = sum_by(query, rows.astype(np.float64), queries) / size
        return part

    recalls = np.array([share(row) for row in has])
    alone = np.array([share(row & (having == 1)) for row in has])
    return recalls, share(having > 0), alone


def _relevant(gold: Any, threshold: float | None) -> ColumnLabels:
    labels = read(gold, "gold").gold
    if labels is None:
        raise DataError(f"there is no gold to compare with; {WITHOUT_LABELS}")
    relevant = {
        query: {
            document: grade
            for document, grade in grades.items()
            if (grade > 0 if threshold is None else grade >= threshold)
        }
        for query, grades in labels.documents.items()
    }
    return ColumnLabels.of({query: row for query, row in relevant.items() if row})


def _has(run: Run, relevant: ColumnLabels, k: int) -> Bools:
    """Whether the run has each relevant document in its top k."""
    located = run.locate(relevant, judged=True, policies=Policies())
    in_top_k = np.zeros(len(relevant.names), np.bool_)
    in_top_k[np.asarray(located.item)[located.rank <= k]] = True
    return in_top_k


def _recall(run: Run, relevant: ColumnLabels, k: int) -> Floats:
    return union_gains(relevant.grades.query, _has(run, relevant, k)[None])[1]


def _overlap(one: Bools, other: Bools) -> float:
    either = int((one | other).sum())
    return float((one & other).sum() / either) if either else float("nan")


def _limits(interval: Interval | None) -> str:
    return "" if interval is None else f" ({interval.low:.3f} to {interval.high:.3f})"
