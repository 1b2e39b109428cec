"""What each run adds to the others: should another retriever be added?

Two retrievers of the same quality are worth more together the less they have in common.
The union of what all of them found is the most that any fusion or re-ranking of their
top k can reach; how much of it is lost without one run is what that run alone brings.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from karat.data.arrays import Bools, Floats, Ints, sum_by
from karat.data.gold import ColumnLabels
from karat.data.intervals import Interval
from karat.data.policies import Policies
from karat.data.runs import Run
from karat.data.tables import Table, number
from karat.errors import WITHOUT_LABELS, DataError, ParameterError
from karat.fusion.fuse import fuse, named_runs
from karat.reading.readers import read
from karat.stats import mean_interval
from karat.stats.paired import difference_interval


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
