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
from karat.data.runs import Document, Notice, Run, ranks_of
from karat.data.score_ranks import rank_order
from karat.errors import DataError, UsageError
from karat.reading.files import gc_paused
from karat.reading.readers import read


@dataclass(frozen=True, eq=False)
class Ranking:
    """What a run, by its index, has for a query: numbers of documents, and ranks."""

    run: int
    number: Ints
    scores: Floats | None
    rank: Floats


@dataclass(frozen=True, eq=False)
class Candidates:
    """All documents that any run has for a query, with numbers below `size`."""

    query: str
    numbers: dict[str, int]
    size: int
    rankings: list[Ranking]


def named_runs(runs: Any) -> dict[str, Run]:
    """Two or more runs by name, read where they are files or plain objects."""
    if isinstance(runs, Mapping):
        by_name = {str(name): _run(run) for name, run in runs.items()}
    elif isinstance(runs, Sequence) and not isinstance(runs, str | bytes):
        by_name = {}
        for place, source in enumerate(runs, 1):
            run = _run(source)
            name = run.name
            if name in by_name or name == Run.name:
                name = f"{name} {place}"
            by_name[name] = run
    else:
        raise UsageError(
            f"runs must be a list or a mapping of names, got {type(runs).__name__}"
        )
    if len(by_name) < 2:  # noqa: PLR2004
        raise UsageError(f"it takes two runs or more, got {len(by_name)}")
    return by_name


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


def candidates(runs: Sequence[Run]) -> Iterator[Candidates]:
    """Every query that any run has, in order of appearance, with its candidates."""
    tables = [_by_query(run) for run in runs]
    queries = dict.fromkeys(chain.from_iterable(tables))
    counters: list[int] = []
    with gc_paused():
        for query in queries:
            rows = [table.get(query) for table in tables]
            most = sum(len(row) for row in rows if row is not None)
            if len(counters) < most:
                counters = [*range(most)]
            yield _candidates(query, rows, counters)


def _by_query(run: Run) -> Mapping[str, Any]:
    """The rankings of a run: `{document: score}`, or ids or documents in order."""
    if isinstance(run, ScoredRun) or (isinstance(run, RankedRun) and not run.ranks):
        return run.by_query
    return dict(run.rankings(Policies()))


def _candidates(query: str, rows: Sequence[Any], counters: list[int]) -> Candidates:
    numbers: dict[str, int] = {}
    rankings = []
    size = 0
    for place, row in enumerate(rows):
        if row is None:
            continue
        documents, scores, rank = _columns(query, row)
        count = len(documents)
        free = counters[size : size + count]
        if numbers:
            # A new document gets its place among all; another one keeps its own.
            places = map(numbers.setdefault, documents, free)
            number = np.fromiter(places, np.int64, count)
        else:
            numbers = dict(zip(documents, free, strict=True))
            number = np.arange(count)
        size += count
        rankings.append(Ranking(place, number, scores, rank))
    return Candidates(query, numbers, size, rankings)


def _columns(query: str, row: Any) -> tuple[Collection[str], Floats | None, Floats]:
    """Distinct documents, their scores if any, and their ranks."""
    if isinstance(row, Mapping):
        try:
            scores = np.fromiter(row.values(), np.float64, len(row))
        except (TypeError, ValueError):
            scores = np.full(1, np.nan)
        if not np.isfinite(scores).all():
            raise DataError("a score must be a finite number", query=query)
        return row, scores, _ranks(row, scores)
    if row and isinstance(row[0], Document):
        first: dict[str, Document] = {}
        for document in row:
            name = document.text if document.id is None else document.id
            first.setdefault(name or "", document)
        listed = [document.score for document in first.values()]
        rank = np.array(ranks_of(first.values()), np.float64)
        return first, None if None in listed else np.array(listed, np.float64), rank
    distinct = dict.fromkeys(row)
    return distinct, None, np.arange(1.0, len(distinct) + 1.0)


def _ranks(documents: Collection[str], scores: Floats) -> Floats:
    rank = np.arange(1.0, len(scores) + 1.0)
    if (scores[:-1] > scores[1:]).all():
        return rank
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    if (falling[:-1] == falling[1:]).any():
        order = np.array(rank_order(scores.tolist(), [*documents], Policies()))
    by_document = np.empty_like(rank)
    by_document[order] = rank
    return by_document
