"""Several runs against one gold: one evaluation each, on one leaderboard."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from karat.data.queries import Dataset
from karat.errors import UsageError
from karat.evaluation import evaluate
from karat.planning import read_queries
from karat.reading.doors import read_corpus, read_run, take_gold
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard
from karat.results.notices import trec_eval_differences
from karat.sensitivity import order_flips

__all__ = ["leaderboard"]


def leaderboard(
    runs: Any,
    *,
    gold: Any = None,
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
    if gold is not None:
        gold = take_gold(gold, mapping or {})
    for name, read in (("queries", read_queries), ("corpus", read_corpus)):
        if options.get(name) is not None and not isinstance(options[name], Mapping):
            options[name] = read(options[name])
    options |= {"gold": gold, "mapping": mapping, "judged": judged}
    evaluations: dict[str, Evaluation] = {}
    covered: dict[str, Any] = {}
    notes: list[str] = []
    for name, run in _named(runs, by, mapping):
        if name in evaluations:
            raise UsageError(f"two runs are called {name!r}; a name stands for one run")
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


def _named(
    runs: Any, by: str | None, mapping: Mapping[str, str] | None
) -> Iterator[tuple[str, Any]]:
    if by is not None:
        yield from read_run(runs, by=by, mapping=mapping).items()
    elif isinstance(runs, Mapping):
        yield from ((str(name), run) for name, run in runs.items())
    elif isinstance(runs, Iterable) and not isinstance(runs, str | bytes):
        yield from runs
    else:
        raise UsageError(
            "runs must be a mapping from names to runs, as in {'bm25': run}, or a "
            "table and by='COLUMN'"
        )
