"""Several runs side by side: fused into one, or pooled for people to label.

A document gets a number when a run first has it; every run is then an array of such
numbers with its ranks or scores beside it, and all that fusion does is arithmetic.
Reciprocal rank fusion needs nothing but ranks and is hard to beat without labels. Sums
of scores can be better where scores mean something and are brought to one scale first.
A document that a run does not have gets nothing from it.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.memory_runs import RankedRun, ScoredRun, rank_order
from karat.data.policies import Policies
from karat.data.runs import Document, Notice, Retrieval, Run, ranks_of
from karat.errors import DataError, ParameterError, UnknownNameError, UsageError
from karat.reading.files import gc_paused
from karat.reading.readers import read

Method = Literal["rrf", "borda", "sum", "mnz", "anz", "min", "max", "med"]
Norm = Literal["min-max", "z", "sum", "rank", "none"]

METHODS: dict[str, str] = {
    "rrf": "sum of 1 / (k + rank)",
    "borda": "points for every document below; those not ranked share the rest",
    "sum": "sum of scores (CombSUM)",
    "mnz": "sum of scores, times the number of runs that have the document (CombMNZ)",
    "anz": "mean of the scores of the runs that have the document (CombANZ)",
    "min": "smallest score of the runs that have the document (CombMIN)",
    "max": "largest score (CombMAX)",
    "med": "median score (CombMED)",
}
"""How documents are ranked anew."""

NORMS: dict[str, str] = {
    "min-max": "from 0 for the worst to 1 for the best; 1 for all if they are equal",
    "z": "less their mean, by their standard deviation; 0 for all if they are equal",
    "sum": "less the smallest, by the sum of that; equal shares if they are equal",
    "rank": "1 for the first, in equal steps down to 1 / n for the last",
    "none": "as they are",
}
"""How the scores of a query's ranking are brought to one scale."""

_BY_RANK = ("rrf", "borda")
_RRF = 60


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
        raise UsageError(f"fuse takes two or more runs, got {len(by_name)}")
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


class Fusion:
    """A rule that makes one ranking of several; its parameters are those of `fuse`."""

    def __init__(
        self,
        method: str,
        norm: str | None,
        weights: Sequence[float] | None,
        k: float,
        runs: int,
    ) -> None:
        if method not in METHODS:
            raise UnknownNameError("fusion method", str(method), METHODS)
        if norm is not None and norm not in NORMS:
            raise UnknownNameError("norm", str(norm), NORMS)
        if norm is not None and method in _BY_RANK:
            must_be = f"left out, for {method} reads ranks only"
            raise ParameterError("fuse", "norm", must_be, norm)
        if not (k >= 0 and math.isfinite(k)):
            raise ParameterError("fuse", "k", "0 or more", k)
        self.method, self.k = method, float(k)
        self.norm = norm or "min-max"
        self.weights = _weights(weights, runs)

    def contribution(self, ranking: Ranking, documents: int) -> Floats:
        """What a run gives its documents, of so many candidates, before weights."""
        if self.method == "rrf":
            return 1.0 / (self.k + ranking.rank)
        place, count = ranking.rank, len(ranking.rank)
        if place.max(initial=0) > count:
            # Ranks with gaps, which only lists have: steps are from one to the next.
            place = np.arange(1.0, count + 1.0)
        if self.method == "borda":
            # What the others get is taken off here, and given to all.
            return documents + 1.0 - place - _unranked(documents, count)
        if self.norm == "rank" or ranking.scores is None or not count:
            return 1.0 - (place - 1.0) / count
        return _normalised(ranking.scores, self.norm)

    def totals(self, query: Candidates, parts: Sequence[Floats]) -> Floats:
        """The new score of every number that a document has; 0 for the others."""
        size, method = query.size, self.method
        rows = []
        for ranking, part in zip(query.rankings, parts, strict=True):
            weight = self.weights[ranking.run]
            rows.append((ranking.number, part if weight == 1.0 else part * weight))
        if method in ("min", "max", "med"):
            return _pick(rows, size, method)
        total = np.zeros(size)
        # Within a run no number comes twice, so that adding at them loses nothing.
        for number, part in rows:
            total[number] += part
        if method in ("mnz", "anz"):
            having = np.zeros(size)
            for number, _ in rows:
                having[number] += 1.0
            if method == "mnz":
                return total * having
            return np.divide(total, having, out=total, where=having > 0)
        if method == "borda":
            documents = len(query.numbers)
            for ranking in query.rankings:
                share = _unranked(documents, len(ranking.rank))
                total += self.weights[ranking.run] * share
        return total


def fuse(
    runs: Any,
    method: Method = "rrf",
    *,
    weights: Sequence[float] | None = None,
    k: float = 60,
    norm: Norm | None = None,
    depth: int | None = None,
    name: str | None = None,
) -> Run:
    """Make one run of several.

    Queries are those of any run. Ranks follow scores as everywhere in karat: larger
    first, equal ones by document id, descending; lists are ranked as given.

    Args:
        runs: two or more, one after the other or `{name: run}`; each whatever
            `karat.evaluate` takes for a run.
        method: how documents are ranked anew: `rrf`, `borda`, `sum`, `mnz`, `anz`,
            `min`, `max` or `med` (`karat.fusion.METHODS` says what they do).
        weights: one per run, in their order; what a run gives is multiplied by it.
        k: the constant of `rrf`.
        norm: how scores are brought to one scale: `min-max` (natively), `z`, `sum`,
            `rank` or `none`.
        depth: how many documents of each query are kept; natively all.
        name: of the new run; natively the method.

    Returns:
        A run with scores, to be evaluated or written like any other.

    Raises:
        UsageError: fewer than two runs, or an option that cannot be.
        DataError: a run without scores where the method reads scores.

    Example:
        >>> lexical, dense = {"q1": ["a", "b", "c"]}, {"q1": ["c", "a", "d"]}
        >>> fused = fuse([lexical, dense])
        >>> [[d.id for d in found] for _, found in fused.rankings(Policies())]
        [['a', 'c', 'b', 'd']]
    """
    sources = named_runs(runs)
    rule = Fusion(method, norm, weights, k, len(sources))
    if depth is not None and depth < 1:
        raise ParameterError("fuse", "depth", "an integer >= 1", depth)
    fused: dict[str, Mapping[str, float]] = {}
    for query, parts in contributions(rule, sources):
        scores = FusedScores(query.numbers, rule.totals(query, parts))
        fused[query.query] = scores if depth is None else scores.top(depth)
    run = ScoredRun(fused, method if name is None else name)
    run.retrieval = Retrieval(notices=order_notices(sources))
    return run


def contributions(
    rule: Fusion, runs: Mapping[str, Run]
) -> Iterator[tuple[Candidates, list[Floats]]]:
    """The candidates of every query, and what each run gives them, before weights."""
    names, by_rank = [*runs], rule.method in _BY_RANK or rule.norm == "rank"
    for query in candidates([*runs.values()]):
        for ranking in query.rankings:
            if not by_rank and ranking.scores is None and len(ranking.number):
                raise DataError(
                    f"run {names[ranking.run]!r} has no scores, which {rule.method} "
                    "reads",
                    query=query.query,
                    hint="rrf, borda and the norm 'rank' go by ranks alone",
                )
        documents = len(query.numbers)
        yield query, [rule.contribution(r, documents) for r in query.rankings]


class FusedScores(Mapping[str, float]):
    """Document -> new score; kept as numbers and an array until someone looks."""

    __slots__ = ("_numbers", "_totals")

    def __init__(self, numbers: dict[str, int], totals: Floats) -> None:
        self._numbers = numbers
        self._totals = totals

    def __getitem__(self, document: str) -> float:
        return float(self._totals[self._numbers[document]])

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def values(self) -> list[float]:  # type: ignore[override]
        """The scores, in the order of the documents."""
        numbers = np.fromiter(self._numbers.values(), np.int64, len(self._numbers))
        scores: list[float] = self._totals[numbers].tolist()
        return scores

    def items(self) -> list[tuple[str, float]]:  # type: ignore[override]
        """Documents and scores."""
        return [*zip(self._numbers, self.values(), strict=True)]

    def top(self, depth: int) -> Mapping[str, float]:
        """The best documents, best first; equal ones by id, descending."""
        documents, scores = [*self._numbers], np.array(self.values())
        if len(scores) > depth:
            least = -np.partition(-scores, depth - 1)[depth - 1]
            rows = np.flatnonzero(scores >= least)
            documents, scores = [documents[i] for i in rows.tolist()], scores[rows]
        order = rank_order(scores.tolist(), documents, Policies())
        return {documents[place]: float(scores[place]) for place in order[:depth]}


def _weights(weights: Sequence[float] | None, runs: int) -> list[float]:
    if weights is None:
        return [1.0] * runs
    factors = [float(weight) for weight in weights]
    if len(factors) != runs:
        must_be = f"one for each of {runs} runs"
        raise ParameterError("fuse", "weights", must_be, factors)
    if not all(math.isfinite(w) and w >= 0 for w in factors) or not any(factors):
        must_be = "0 or more, and not all 0"
        raise ParameterError("fuse", "weights", must_be, factors)
    return factors


def _unranked(documents: int, ranked: int) -> float:
    """Borda's points for a document that a run does not have."""
    return (documents - ranked + 1) / 2.0


def _normalised(scores: Floats, norm: str) -> Floats:
    if norm == "none":
        return scores
    least, most = scores.min(), scores.max()
    if norm == "z":
        scores, span, equal = scores - scores.mean(), scores.std(), 0.0
    elif norm == "sum":
        scores = scores - least
        span, equal = scores.sum(), 1 / len(scores)
    else:
        scores, span, equal = scores - least, most - least, 1.0
    return scores / span if most > least else np.full(len(scores), equal)


def _pick(rows: Sequence[tuple[Ints, Floats]], size: int, method: str) -> Floats:
    """The least, largest or median score of every number that a document has."""
    table = np.full((len(rows), size), -np.inf if method == "max" else np.inf)
    for place, (number, part) in enumerate(rows):
        table[place, number] = part
    if method != "med":
        extremes: Floats = (np.max if method == "max" else np.min)(table, axis=0)
        return extremes
    table.sort(axis=0)
    having = np.isfinite(table).sum(axis=0)
    # An even number has two in the middle.
    column, low, high = np.arange(size), (having - 1).clip(0) // 2, having // 2
    middle = (table[low, column] + table[high, column]) / 2.0
    return np.where(having > 0, middle, 0.0)


def choose_pool(
    runs: Iterable[Run],
    *,
    k: int = 20,
    by: Literal["rank", "rrf"] = "rank",
    budget: int | None = None,
    labelled: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, dict[str, str | None]]:
    """The top k documents of every run, each once, the most promising first.

    Best by any run's rank, or by reciprocal rank fusion; labelled documents are left
    out. A budget is spent evenly: the first document of every query, then the second,
    until it is used up. Documents have the text that a run has of them.
    """
    for name, value in (("k", k), ("budget", budget)):
        if value is not None and value < 1:
            raise ParameterError("pool", name, "an integer >= 1", value)
    ranks: dict[str, dict[str, list[int]]] = {}
    texts: dict[str, dict[str, str | None]] = {}
    for run in runs:
        for query, documents in run.rankings(Policies()):
            own, by_name = ranks.setdefault(query, {}), texts.setdefault(query, {})
            for rank, document in zip(ranks_of(documents), documents, strict=True):
                if rank <= k:
                    name = document.id or document.text or ""
                    own.setdefault(name, []).append(rank)
                    by_name[name] = by_name.get(name) or document.text
    done = labelled or {}
    chosen = []
    for number, (query, own) in enumerate(ranks.items()):
        names = [name for name in own if name not in done.get(query, {})]
        # Sorting keeps documents of the same worth in the order of runs and ranks.
        names.sort(key=lambda name: _worth(own[name], by))
        chosen += [(place, number, query, name) for place, name in enumerate(names)]
    pool: dict[str, dict[str, str | None]] = {query: {} for query in ranks}
    for *_, query, name in sorted(chosen)[:budget]:
        pool[query][name] = texts[query][name]
    return {query: row for query, row in pool.items() if row}


def _worth(ranks: list[int], by: str) -> float:
    """The smaller, the more promising."""
    return min(ranks) if by == "rank" else -sum(1 / (_RRF + rank) for rank in ranks)
