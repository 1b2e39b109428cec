"""The documents that runs found for one query, side by side as arrays.

A document gets a number when a run first has it; every run is then an array of such
numbers with its ranks or scores beside it, and all that fusion does is arithmetic.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.memory_runs import RankedRun, ScoredRun
from karat.data.policies import Policies
from karat.data.runs import Notice, Run
from karat.errors import DataError, UsageError
from karat.reading.files import gc_paused
from karat.reading.readers import read


@dataclass(frozen=True, eq=False)
class Ranking:
    """What one run has for a query.

    Attributes:
        run: index of the run.
        number: of each document.
        scores: of each document; None where the run has none.
        rank: of each document, from 1.
    """

    run: int
    number: Ints
    scores: Floats | None
    rank: Floats


@dataclass(frozen=True, eq=False)
class Candidates:
    """All documents that any run has for a query.

    Attributes:
        query: its id.
        numbers: document -> its number; below `size`, with gaps.
        size: above every number.
        rankings: of the runs that have the query, in the order of the runs.
    """

    query: str
    numbers: dict[str, int]
    size: int
    rankings: list[Ranking]


def named_runs(runs: Any) -> dict[str, Run]:
    """The runs by name, read where they are files or plain objects.

    Args:
        runs: `{name: run}`, or runs one after the other; a run is whatever
            `karat.evaluate` takes for one.

    Raises:
        UsageError: fewer than two.
    """
    if isinstance(runs, Mapping):
        found = {str(name): _run(run) for name, run in runs.items()}
    elif isinstance(runs, Sequence) and not isinstance(runs, str | bytes):
        found = {}
        for place, source in enumerate(runs, 1):
            run = _run(source)
            name = run.name
            if name in found or name == Run.name:
                name = f"{name} {place}"
            found[name] = run
    else:
        raise UsageError(
            f"runs must be a list or a mapping of names, got {type(runs).__name__}"
        )
    if len(found) < 2:  # noqa: PLR2004
        raise UsageError(f"it takes two runs or more, got {len(found)}")
    return found


def _run(source: Any) -> Run:
    dataset = read(source, "run")
    run = dataset.run
    if run is None:
        raise UsageError(f"there is no run in {source!r:.60}")
    if run is not source:
        run.retrieval = replace(run.retrieval, notices=dataset.notices)
    return run


def order_notices(runs: Mapping[str, Run]) -> tuple[Notice, ...]:
    """What to say of runs whose scores contradict their order: larger is better."""
    text = (
        "of {} {} scores that contradict the order given: are they distances? fusion "
        "takes larger as better; negate them, or pass lists without scores"
    )
    return tuple(
        Notice(
            *("order", notice.count, f"queries {text.format(name, 'have')}"),
            *(notice.examples, f"query {text.format(name, 'has')}"),
        )
        for name, run in runs.items()
        for notice in run.retrieval.notices
        if notice.kind == "order"
    )


def candidates(runs: Sequence[Run], policies: Policies) -> Iterator[Candidates]:
    """Every query that any run has, in order of appearance, with its candidates."""
    tables = [_by_query(run, policies) for run in runs]
    queries = dict.fromkeys(chain.from_iterable(tables))
    counters: list[int] = []
    with gc_paused():
        for query in queries:
            rows = [table.get(query) for table in tables]
            most = sum(len(row) for row in rows if row is not None)
            if len(counters) < most:
                counters = [*range(most)]
            yield _candidates(query, rows, counters, policies)


def _by_query(run: Run, policies: Policies) -> Mapping[str, Any]:
    """The rankings of a run: `{document: score}`, documents in order, or both."""
    if isinstance(run, ScoredRun | RankedRun):
        return run.by_query
    return {
        query: [((d.text if d.id is None else d.id) or "", d.score) for d in documents]
        for query, documents in run.rankings(policies)
    }


def _candidates(
    query: str, rows: Sequence[Any], counters: list[int], policies: Policies
) -> Candidates:
    numbers: dict[str, int] = {}
    rankings = []
    size = 0
    for place, row in enumerate(rows):
        if row is None:
            continue
        documents, scores, ordered = _columns(query, row)
        count = len(documents)
        free = counters[size : size + count]
        if numbers:
            # A new document gets its place among all; a known one keeps its own.
            kept = map(numbers.setdefault, documents, free)
            number = np.fromiter(kept, np.int64, count)
        else:
            numbers = dict(zip(documents, free, strict=True))
            number = np.arange(count)
        size += count
        if scores is None or ordered:
            rank = np.arange(1.0, count + 1.0)
        else:
            rank = _ranks(documents, scores, policies)
        rankings.append(Ranking(place, number, scores, rank))
    return Candidates(query, numbers, size, rankings)


def _columns(query: str, row: Any) -> tuple[Collection[str], Floats | None, bool]:
    """Distinct documents, their scores if any, and whether ranked as given."""
    if isinstance(row, Mapping):
        try:
            scores = np.fromiter(row.values(), np.float64, len(row))
        except (TypeError, ValueError):
            scores = np.full(1, np.nan)
        if not np.isfinite(scores).all():
            raise DataError("a score must be a finite number", query=query)
        return row, scores, False
    if row and isinstance(row[0], tuple):
        first = dict(reversed(row))
        distinct = dict.fromkeys(document for document, _ in row)
        found = [first[document] for document in distinct]
        if any(score is None for score in found):
            return [*distinct], None, True
        return [*distinct], np.array(found, np.float64), True
    distinct = dict.fromkeys(row)
    return (row if len(distinct) == len(row) else [*distinct]), None, True


def _ranks(documents: Collection[str], scores: Floats, policies: Policies) -> Floats:
    """Ranks by score, descending; equal ones by id, descending, or as given."""
    count = len(scores)
    if (scores[:-1] > scores[1:]).all():
        return np.arange(1.0, count + 1.0)
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    if policies.ties == "trec" and (falling[:-1] == falling[1:]).any():
        names = [*documents]
        pairs = zip(scores.tolist(), names, range(count), strict=True)
        order = np.array([place for *_, place in sorted(pairs, reverse=True)])
    rank = np.empty(count)
    rank[order] = np.arange(1.0, count + 1.0)
    return rank
