"""Several runs against one gold: one evaluation each, on one leaderboard."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, compress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from karat.data.arrays import Floats
from karat.data.intervals import Interval
from karat.data.queries import Dataset
from karat.data.runs import Document, Run
from karat.data.tables import Table, counted, number
from karat.errors import DataError, ParameterError, UsageError
from karat.evaluation import check_options, evaluate
from karat.reading.queries import read_queries
from karat.reading.readers import read_corpus, read_run, take_gold
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard
from karat.results.loading import load
from karat.results.notices import trec_eval_differences
from karat.stats import mean_interval

_Kept: TypeAlias = Mapping[str, Sequence[Document]]

_RUNS = (
    "runs must be a mapping from names to runs, as in {'bm25': run}, or a table and "
    "by='COLUMN'"
)

TAUS = (0.7, 0.8, 0.9, 1.0)
"""The shares of a passage at which systems are put in order again."""


def order_flips(
    runs: Mapping[str, Any], evaluations: Sequence[Evaluation], **options: Any
) -> list[str]:
    """A sentence per metric and pair of systems whose order changes with tau.

    Args:
        runs: what each system retrieved, by its name.
        evaluations: what they scored; metrics matched by `span` are looked at.
        options: the options of `evaluate` that they were scored with.
    """
    first = evaluations[0]
    metrics = [
        label
        for label, matcher in first.matchers.items()
        if matcher.startswith("span") and "[" not in label and "gain" not in matcher
    ]
    if not metrics or len(runs) < 2:  # noqa: PLR2004
        return []
    scored = [
        {
            name: evaluate(
                run, **{**options, "metrics": metrics, "match": f"span(tau={tau})"}
            ).means
            for name, run in runs.items()
        }
        for tau in TAUS
    ]
    return [
        f"the order of {one} and {other} by {metric} flips between tau = "
        f"{TAUS[0]:g} and {TAUS[-1]:g}: how much of a passage is enough decides it"
        for metric in metrics
        for one, other in combinations(runs, 2)
        if _flips([means[one][metric] - means[other][metric] for means in scored])
    ]


def _flips(differences: Sequence[float]) -> bool:
    """Whether one is better here and the other there."""
    known = np.array(differences)
    return bool((known > 0).any() and (known < 0).any())


def leaderboard(
    runs: Any,
    gold: Any = None,
    *,
    by: str | None = None,
    mapping: Mapping[str, str] | None = None,
    judged: bool = True,
    **options: Any,
) -> Leaderboard:
    """Score several runs against one gold.

    Args:
        runs: the runs by name, each in any form that `evaluate` takes; pairs of name
            and run, looked at one after the other; or, with `by`, one table.
        gold: what should have been retrieved; None when samples carry their own.
        by: the column that says which system a row of a table is from.
        mapping: our field or column name -> theirs.
        judged: also `judged@k`, where gold holds documents judged non-relevant.
        options: the other options of `evaluate`.

    Example:
        >>> board = leaderboard(
        ...     {"bm25": {"q": ["b", "a"]}, "dense": {"q": ["a"]}}, gold={"q": ["a"]}
        ... )
        >>> [result.run for result in board.ranked("rr")]
        ['dense', 'bm25']
    """
    check_options("leaderboard", options)
    options |= {"gold": gold, "mapping": mapping, "judged": judged}
    options = _read_once(options)
    evaluations: dict[str, Evaluation] = {}
    covered: dict[str, Any] = {}
    notes: list[str] = []
    for name, run in _named(runs, by, mapping):
        if name in evaluations:
            raise UsageError(f"two runs are called {name!r}; a name stands for one run")
        if isinstance(run, Evaluation):
            evaluations[name] = replace(run, run=name)
            continue
        result = evaluations[name] = evaluate(run, name=name, **options)
        if any(matcher.startswith("span") for matcher in result.matchers.values()):
            covered[name] = run
        if isinstance(run, Dataset) and run.format.startswith("trec"):
            notes += trec_eval_differences(result)
    if not evaluations:
        raise UsageError("no runs: name at least one")
    if len(covered) == len(evaluations) > 1:
        notes += order_flips(covered, [*evaluations.values()], **options)
    return Leaderboard(evaluations, tuple(dict.fromkeys(notes)))


def _read_once(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same options with gold, queries and corpus read, for several runs."""
    found = dict(options)
    if found.get("gold") is not None:
        found["gold"] = take_gold(found["gold"], found.get("mapping") or {})
    for name, read in (("queries", read_queries), ("corpus", read_corpus)):
        if found.get(name) is not None and not isinstance(found[name], Mapping):
            found[name] = read(found[name])
    return found


def evaluation_of(
    name: str, given: Any, gold: Any, options: Mapping[str, Any]
) -> Evaluation:
    """The evaluation of a run, as it was given or saved, or scored now."""
    if (scored := _as_scored(given)) is not None:
        return scored
    return leaderboard({name: given}, gold=gold, **{"judged": False, **options})[name]


def evaluations_of(
    named: Sequence[tuple[str, Any]],
    gold: Any,
    options: Mapping[str, Any],
    told: Collection[str],
) -> list[Evaluation]:
    """The evaluations of runs; those that are scored now by what the first was.

    Args:
        named: runs by name, as they are given.
        gold: what should have been retrieved.
        options: how to score.
        told: the options that somebody said and wants to count.

    Raises:
        UsageError: somebody says how to score, and there is nothing left to score.
    """
    scored = [(name, _as_scored(given) or given) for name, given in named]
    nothing_new = all(isinstance(given, Evaluation) for _, given in scored)
    if told and nothing_new:
        raise UsageError(
            f"{', '.join(told)} would change nothing: all that is compared was scored "
            "before. Score the runs anew, or leave it out"
        )
    if not nothing_new:
        options = _read_once({**options, "gold": gold})
        gold = options.pop("gold")
    first = evaluation_of(*scored[0], gold, options)
    options = {"metrics": [*first], **options}
    found = [first, *(evaluation_of(*one, gold, options) for one in scored[1:])]
    if len({one.run for one in found}) < len(found):
        # Two branches save runs of one name: their files tell them apart.
        found = [
            one if isinstance(given, Evaluation) else replace(one, run=name)
            for one, (name, given) in zip(found, named, strict=True)
        ]
    return found


def _as_scored(given: Any) -> Evaluation | None:
    """An evaluation, or what is saved in a file of one; None for anything else."""
    if isinstance(given, Evaluation):
        return given
    if isinstance(given, str | Path) and str(given).endswith((".json", ".json.gz")):
        try:
            return load(given)
        except DataError as error:
            if "not a saved evaluation" not in str(error):
                raise
    return None


def _named(
    runs: Any, by: str | None, mapping: Mapping[str, str] | None
) -> Iterator[tuple[str, Any]]:
    if by is not None:
        yield from read_run(runs, by=by, mapping=mapping).items()
    elif isinstance(runs, Mapping):
        yield from ((str(name), run) for name, run in runs.items())
    elif isinstance(runs, Iterable) and not isinstance(runs, str | bytes):
        for one in runs:
            if isinstance(one, str | Path):
                yield Path(one).name, one
            elif isinstance(one, tuple):
                yield one
            else:
                raise UsageError(_RUNS)
    else:
        raise UsageError(_RUNS)


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
    run: Any, exact: Any, gold: Any, *, k: int = 10, queries: Any = None
) -> AnnLoss:
    """The part of recall that an index loses by being approximate.

    Args:
        run: what the index found, in any form that `evaluate` takes; or, with
            `queries`, the index itself as a retriever.
        exact: the same of exact search: brute force over the same vectors, or the
            exact mode of the index.
        gold: what should have been found.
        k: how many documents of each ranking are looked at.
        queries: what to ask, if these are retrievers.

    Example:
        >>> loss = ann_loss({"q": ["a", "x"]}, {"q": ["a", "b"]},
        ...                 gold={"q": ["a", "b", "c", "d"]}, k=2)
        >>> loss.recall, loss.approximation, loss.ranking, loss.overlap
        (0.25, 0.25, 0.5, 0.5)
    """
    if isinstance(k, bool) or k < 1:
        raise ParameterError("ann_loss", "k", "an integer >= 1", k)
    metric = f"recall@{k}"
    scored = [
        evaluate(one, gold=gold, metrics=metric, keep=k)
        if queries is None or isinstance(one, Run)
        else evaluate(retriever=one, queries=queries, gold=gold, metrics=metric, keep=k)
        for one in (run, exact)
    ]
    index, best = (result[metric].scores for result in scored)
    overlap = _overlap(scored[0].kept, scored[1].kept, scored[0].queries)
    # A query counts where both were scored: what failed on one side says nothing.
    known = ~(np.isnan(index) | np.isnan(best) | np.isnan(overlap))
    lost: Floats = (best - index)[known]
    rows = zip(scored[0].queries, index, best, overlap, strict=True)
    return AnnLoss(
        k,
        _mean(index[known]),
        _mean(lost),
        _mean(1 - best[known]),
        _mean(overlap[known]),
        mean_interval(lost, bounds=(-1.0, 1.0)),
        {q: (float(i), float(b), float(o)) for q, i, b, o in compress(rows, known)},
    )


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _overlap(kept: _Kept, exact: _Kept, queries: Iterable[str]) -> Floats:
    """The share of each query's exact top k that is in the other run's."""
    tops = [
        {q: {d.id or d.text for d in ranking} for q, ranking in one.items()}
        for one in (kept, exact)
    ]
    shares = [
        len(tops[0].get(q, set()) & wanted) / len(wanted)
        if (wanted := tops[1].get(q))
        else np.nan
        for q in queries
    ]
    return np.array(shares, np.float64)
