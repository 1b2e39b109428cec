"""Several runs against one gold: one evaluation each, on one leaderboard."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.data.tables import DASH, Table, number, steps
from karat.errors import NotSavedError, UsageError
from karat.evaluation import check_options, evaluate
from karat.planning import read_once
from karat.reading.pair import samples
from karat.reading.readers import read_run
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard
from karat.results.loading import load
from karat.stats.intervals import Figure
from karat.stats.rank_correlation import order_correlation

_RUNS = (
    "runs must be a mapping from names to runs, as in {'bm25': run}, or a table and "
    "by='COLUMN'"
)

TAUS = (0.7, 0.8, 0.9, 1.0)
"""The shares of a passage at which systems are put in order again."""


def order_flips(
    runs: Mapping[str, Any], evaluations: Sequence[Evaluation], **options: Any
) -> list[str]:
    """A sentence per metric and pair of systems whose order changes with tau."""
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
            and run, or runs and evaluations with names of their own, one after the
            other; or, with `by`, one table.
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
    options = read_once(options)
    evaluations: dict[str, Evaluation] = {}
    covered: dict[str, Any] = {}
    notes: list[str] = []
    for name, run in _named(runs, by, mapping):
        if name in evaluations:
            raise UsageError(
                f"two runs are called {name!r}; each run needs a name of its own"
            )
        if isinstance(run, Evaluation):
            evaluations[name] = replace(run, run=name)
            continue
        result = evaluations[name] = evaluate(run, name=name, **options)
        if any(matcher.startswith("span") for matcher in result.matchers.values()):
            covered[name] = run
        if isinstance(run, Dataset) and run.format.startswith("trec"):
            notes += _trec_eval_differences(result)
    if not evaluations:
        raise UsageError("no runs: name at least one")
    if len(covered) == len(evaluations) > 1:
        notes += order_flips(covered, [*evaluations.values()], **options)
    return Leaderboard(evaluations, tuple(dict.fromkeys(notes)))


def _trec_eval_differences(result: Evaluation) -> list[str]:
    """A sentence per policy that makes a mean differ from `karat trec-eval`."""
    policies = result.policies
    if policies.profile is not None and policies.profile.startswith("trec_eval"):
        return []
    lines = []
    # The binary knows no judged@k and no texts, which are undefined for other reasons.
    names = [
        name
        for name in result
        if not name.startswith("judged") and result.matchers[name] == "id"
    ]
    undefined = max((result[name].undefined for name in names), default=0)
    if undefined and policies.undefined != "zero":
        lines.append(
            f"queries without relevant gold ({undefined} of {len(result.queries)}) "
            "count 0 there (here: --undefined zero)"
        )
    missing = int(result.missing.sum())
    if missing:
        lines.append(
            f"queries missing from the run ({missing}) are refused by version 10 "
            "without -c, and left out by version 9 (here: --missing skip)"
        )
    kinds = {notice.kind for notice in result.warnings}
    if "duplicates" in kinds:
        lines.append("documents retrieved twice are refused there")
    if policies.ties != "trec" and "ties" in kinds:
        lines.append("equal scores are ordered by document id there (--ties trec)")
    return [f"trec_eval would differ: {line}" for line in lines]


def evaluation_of(
    name: str,
    given: Any,
    gold: Any,
    options: Mapping[str, Any],
    others: Sequence[Any] = (),
) -> Evaluation:
    """The evaluation of a run, as it was given or saved, or scored now.

    Where there is no gold, one of the other inputs may be it.
    """
    if (scored := as_scored(given)) is not None:
        return scored
    if gold is None and others:
        given = samples(given, mapping=options.get("mapping"), others=others)
    return evaluate(given, gold, name=name, **options)


def evaluations_of(
    named: Sequence[tuple[str, Any]],
    gold: Any,
    options: Mapping[str, Any],
    told: Collection[str],
) -> list[Evaluation]:
    """The evaluations of runs, each under its own name.

    Those that are scored now are scored by what the first was.
    """
    scored = [(name, as_scored(given) or given) for name, given in named]
    runs = [given for _, given in scored if not isinstance(given, Evaluation)]
    if told and not runs:
        raise UsageError(
            f"{', '.join(told)} would change nothing: all of these are scored "
            "already. Score the runs again, or leave it out"
        )
    if runs:
        options = read_once({**options, "gold": gold})
        gold = options.pop("gold")
    paths = [run for run in runs if isinstance(run, str | Path)]
    found: list[Evaluation] = []
    for name, run in steps(scored, len(scored), "scoring runs") if runs else scored:
        found.append(evaluation_of(name, run, gold, options, paths))
        options = {"metrics": [*found[0]], **options}
    if len({*map(attrgetter("run"), found)}) == len(found):
        return found
    names: Counter[str] = Counter()
    for place, (one, (name, given)) in enumerate(zip(found, named, strict=True)):
        # Two branches save runs of one name: their files tell them apart.
        own = one.run if isinstance(given, Evaluation) else name
        names[own] += 1
        again = f" ({names[own]})" if names[own] > 1 else ""
        found[place] = replace(one, run=own + again)
    return found


def as_scored(given: Any) -> Evaluation | None:
    """An evaluation, or what is saved in a file of one; None for anything else."""
    if isinstance(given, Evaluation):
        return given
    if isinstance(given, str | Path) and str(given).endswith((".json", ".json.gz")):
        with suppress(NotSavedError):
            return load(given)
    return None


def name_of(given: Any, otherwise: str = Run.name) -> str:
    """What a run is called: its own name, that of its file, or another."""
    if isinstance(given, Evaluation):
        return given.run
    if isinstance(given, str | Path):
        return Path(given).name
    named = isinstance(given, Run) and given.name != Run.name
    return str(given.name) if named else otherwise


def _named(
    runs: Any, by: str | None, mapping: Mapping[str, str] | None
) -> Iterator[tuple[str, Any]]:
    if by is not None:
        yield from read_run(runs, by=by, mapping=mapping).items()
    elif isinstance(runs, Mapping):
        yield from ((str(name), run) for name, run in runs.items())
    elif isinstance(runs, Iterable) and not isinstance(runs, str | bytes):
        for one in runs:
            if not isinstance(one, str | Path | Run | Evaluation | tuple):
                raise UsageError(_RUNS)
            yield one if isinstance(one, tuple) else (name_of(one), one)
    else:
        raise UsageError(_RUNS)


@dataclass(frozen=True)
class RankCorrelation:
    """How alike two boards order the same runs, each number with its interval."""

    runs: tuple[str, ...]  # names of the runs that both have
    queries: tuple[int, ...]  # on how many; of two numbers, each board has its own
    tau: Figure  # Kendall's tau-b, from -1 to 1
    tau_ap: Figure  # the same from the top down, by the first board
    rbo: Figure  # rank-biased overlap with p = 0.9, from 0 to 1

    def table(self) -> Table:
        """The same for people."""
        rows = []
        for name in ("tau", "tau_ap", "rbo"):
            value, interval = getattr(self, name)
            limits = DASH if interval is None else " .. ".join(map(number, interval))
            rows.append([name, number(value), limits])
        counts = " and ".join(map(str, self.queries))
        title = f"order of {len(self.runs)} runs on {counts} queries"
        return Table(["correlation", "value", "95% interval"], rows, title=title)

    def __str__(self) -> str:
        return self.table().as_text()


def rank_correlation(
    one: Leaderboard,
    other: Leaderboard,
    *,
    metric: str | None = None,
    other_metric: str | None = None,
) -> RankCorrelation:
    """Say how alike two boards order the same runs: two golds, metrics or query sets.

    Runs are known by their names. On the queries that both boards have, where every run
    has a score; boards without a common query are each taken on their own.

    Args:
        one: what runs scored; the reference.
        other: what the same runs scored otherwise.
        metric: by which runs are ordered; the first of `one` by default.
        other_metric: the same for `other`; default: `metric`, if it has it.

    Raises:
        UsageError: the boards have fewer than two runs in common, or no scores.

    Example:
        >>> runs = {"a": {"q": ["x", "y"]}, "b": {"q": ["y", "x"]}}
        >>> boards = [leaderboard(runs, gold={"q": [gold]}) for gold in ("x", "y")]
        >>> rank_correlation(*boards, metric="rr").tau.value
        -1.0
    """
    names = [name for name in one if name in {*other}]
    if len(names) < 2:  # noqa: PLR2004
        raise UsageError(
            "an order takes two runs or more that both boards have; they have "
            f"{', '.join(one)} and {', '.join(other)}"
        )
    by = metric or one.metrics[0]
    scores = [
        _scores_of(board, names, label)
        for board, label in (
            (one, by),
            (other, other_metric or (by if by in other.metrics else other.metrics[0])),
        )
    ]
    common = [query for query in scores[0] if query in scores[1]]
    tables = [np.array([*board.values()]).T for board in scores]
    if common:
        tables = [np.array([board[query] for query in common]).T for board in scores]
    counts = dict.fromkeys(table.shape[-1] for table in tables)
    return RankCorrelation(
        tuple(names),
        tuple(counts if common else (table.shape[-1] for table in tables)),
        *(
            order_correlation(*tables, by=kind, paired=bool(common))
            for kind in ("tau", "tau_ap", "rbo")
        ),
    )


def _scores_of(
    board: Leaderboard, names: Sequence[str], metric: str
) -> dict[str, list[float]]:
    """Query -> the score of every run, larger is better; queries that all have."""
    columns = [board[name][metric] for name in names]
    rows = [dict(zip(c.queries, c.scores.tolist(), strict=True)) for c in columns]
    sign = -1 if columns[0].higher_is_better is False else 1
    found = {
        query: scores
        for query in rows[0]
        if not np.isnan(scores := [sign * row.get(query, np.nan) for row in rows]).any()
    }
    if not found:
        raise UsageError(f"no query has a score by {metric} in all of the runs")
    return found
