"""What an approximate index loses: told apart from what its ranking loses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from karat.data.arrays import Floats
from karat.data.policies import Policies
from karat.data.runs import Run
from karat.data.scores import Interval
from karat.data.tables import Table, counted, number
from karat.errors import ParameterError
from karat.evaluation import evaluate
from karat.reading.doors import read_run
from karat.retrieving.retrieve import retrieve
from karat.stats import mean_interval

__all__ = ["AnnLoss", "ann_loss"]


@dataclass(frozen=True)
class AnnLoss:
    """Why an approximate index does not find all that is relevant.

    `recall + approximation + ranking = 1`: what it finds, what exact search with the
    same vectors would find besides, and what not even that finds.

    Attributes:
        k: how many documents of each ranking were looked at.
        recall: mean recall@k of the index.
        approximation: what exact search would find besides; a better index or higher
            search effort wins it.
        ranking: what exact search does not find either; better vectors win it.
        overlap: mean share of exact search's top k that the index returns.
        interval: 95 % confidence interval of `approximation`.
        per_query: query -> its recall, that of exact search, and its overlap.
    """

    k: int
    recall: float
    approximation: float
    ranking: float
    overlap: float
    interval: Interval | None = None
    per_query: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)

    def table(self) -> Table:
        """The same for people."""
        low_high = " .. ".join(map(number, self.interval or (None,)))
        parts = {
            "found": (self.recall, ""),
            "lost by approximation": (self.approximation, low_high),
            "lost by ranking": (self.ranking, ""),
            "overlap with exact search": (self.overlap, ""),
        }
        return Table(
            columns=["part of recall", f"mean@{self.k}", "95% interval"],
            rows=[[name, number(mean), more] for name, (mean, more) in parts.items()],
            title="index against exact search: "
            + counted(len(self.per_query), "query"),
        )

    def __str__(self) -> str:
        return self.table().as_text()


def ann_loss(
    run: Any,
    exact: Any,
    *,
    gold: Any,
    k: int = 10,
    queries: Any = None,
    **options: Any,
) -> AnnLoss:
    """The part of recall that an index loses by being approximate.

    Args:
        run: what the index found, in any form that `evaluate` takes; or, with
            `queries`, the index itself as `retrieve` takes it.
        exact: the same of exact search: brute force over the same vectors, or the
            exact mode of the index.
        gold: what should have been found.
        k: how many documents of each ranking are looked at.
        queries: what to ask, if these are retrievers.
        options: of `retrieve`, if these are retrievers.

    Example:
        >>> loss = ann_loss({"q": ["a", "x"]}, {"q": ["a", "b"]},
        ...                 gold={"q": ["a", "b", "c", "d"]}, k=2)
        >>> loss.recall, loss.approximation, loss.ranking, loss.overlap
        (0.25, 0.25, 0.5, 0.5)
    """
    if isinstance(k, bool) or k < 1:
        raise ParameterError("ann_loss", "k", "an integer >= 1", k)
    if queries is not None:
        run, exact = (retrieve(r, queries, k, **options) for r in (run, exact))
    runs: list[Run] = [one if isinstance(one, Run) else read_run(one)
                       for one in (run, exact)]  # fmt: skip
    metric = f"recall@{k}"
    scored = [evaluate(one, gold=gold, metrics=metric) for one in runs]
    index, best = (result[metric].scores for result in scored)
    overlap = _overlap(runs[0], runs[1], scored[0].queries, k)
    # A query counts where both were scored: what failed on one side says nothing.
    known = ~(np.isnan(index) | np.isnan(best) | np.isnan(overlap))
    lost: Floats = (best - index)[known]
    rows = zip(scored[0].queries, index, best, overlap, known, strict=True)
    return AnnLoss(
        k,
        _mean(index[known]),
        _mean(lost),
        _mean(1 - best[known]),
        _mean(overlap[known]),
        mean_interval(lost, bounds=(-1.0, 1.0)),
        {
            q: (float(i), float(b), float(o))
            for q, i, b, o, is_known in rows
            if is_known
        },
    )


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _overlap(run: Run, exact: Run, queries: Iterable[str], k: int) -> Floats:
    """The share of each query's exact top k that is in the other run's."""
    tops = []
    for one in (run, exact):
        rankings = one.rankings(Policies())
        tops.append({q: {d.id or d.text for d in r[:k]} for q, r in rankings})
    shares = [
        len(tops[0].get(q, set()) & wanted) / len(wanted)
        if (wanted := tops[1].get(q))
        else np.nan
        for q in queries
    ]
    return np.array(shares, np.float64)
