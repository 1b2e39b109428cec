"""How far a score could go: what a ranking lacks, and what the unjudged may add."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints, place_by, ratio, sum_by
from karat.data.hits import Hits, is_relevant
from karat.data.matches import Matches
from karat.data.runs import Document, Labels, ranks_of
from karat.metrics.gains import NDCG
from karat.metrics.precision_recall import Hit, Precision, Recall
from karat.metrics.ranking import AveragePrecision, ReciprocalRank

_BINARY: tuple[Any, ...] = AveragePrecision, Recall, Hit, ReciprocalRank, Precision
# So many ways to grade the unjudged documents of a query are all tried.
_MOST_WAYS = 256
# Where k documents are relevant or not, there are k ways: so many grades at a time.
_CELLS = 1 << 22
_LABEL_NEXT = 20
_EVERY = slice(None)


class Gains(NamedTuple):
    """The relevant gold items of some queries, and where a run has them."""

    query: Ints  # index of each item's query, ascending
    name: list[str]  # of the item
    gain: Floats  # what it is worth
    rank: Ints  # its first rank; 0: not found
    size: int  # number of queries

    def within(self, k: int | None) -> Bools:
        """Which items are in the top k, or anywhere."""
        return (self.rank > 0) & (self.rank <= (self.rank if k is None else k))


class Headroom(NamedTuple):
    """What each query lacks to a perfect score, by its causes; NaN without gold.

    All gains that could be had are 1. Part of them is not among the documents
    retrieved, part is retrieved but below k, part is within the top k but not in the
    best order, and the rest is the score.
    """

    score: Floats  # nDCG at k
    ordering: Floats  # what the best order of the top k would add
    cutoff: Floats  # what moving up from below k would add
    candidates: Floats  # what is not among the documents retrieved

    def means(self, **more: Floats) -> dict[str, float]:
        """The mean of each part, over the queries with gold; empty without any."""
        known = ~np.isnan(self.score)
        parts = {**self._asdict(), **more}.items()
        return {name: float(p[known].mean()) for name, p in parts if known.any()}


def gains_of(matches: Matches, places: Ints, threshold: float | None = None) -> Gains:
    """The relevant items of the queries at these places, in their order."""
    hits = matches.hits
    start = hits.gold_count.cumsum() - hits.gold_count
    count = hits.gold_count[places]
    query = np.repeat(np.arange(len(places)), count)
    # The items of each place, one after the other.
    item = np.arange(len(query)) + (start[places] - (count.cumsum() - count))[query]
    relevant = (hits.gold_grade[item] > 0) & is_relevant(
        hits.gold_grade[item], threshold
    )
    query, item = query[relevant], item[relevant]
    return Gains(
        query,
        [*map(matches.items.__getitem__, item.tolist())],
        hits.gold_grade[item],
        hits.first_rank[item],
        len(places),
    )


def headroom(gains: Gains, k: int) -> Headroom:
    """What each query's ranking lacks to a perfect nDCG at k, by its causes."""
    retrieved, top = gains.within(None), gains.within(k)
    score = ndcg_at(gains, gains.rank, k)
    reachable, within = ideal(gains, retrieved, k), ideal(gains, top, k)
    return Headroom(score, within - score, reachable - within, 1.0 - reachable)


def ndcg_at(gains: Gains, rank: Ints, k: int) -> Floats:
    """The nDCG at k of the items at other ranks; 0 stands for not found."""
    rows = np.flatnonzero(rank > 0)
    order = rows[np.lexsort((-gains.gain[rows], rank[rows], gains.query[rows]))]
    query = gains.query[order]
    slot = np.maximum(rank[order], place_by(query, gains.size))
    paid = _discounted(query, gains.gain[order], slot, k, gains.size)
    return ratio(paid, _best(gains, _EVERY, k))


def ideal(gains: Gains, rows: Bools, k: int) -> Floats:
    """The nDCG at k if only these items were retrieved, in the best order."""
    return ratio(_best(gains, rows, k), _best(gains, _EVERY, k))


def _best(gains: Gains, rows: Bools | slice, k: int) -> Floats:
    query, gain = gains.query[rows], gains.gain[rows]
    order = np.lexsort((-gain, query))
    query = query[order]
    slot = place_by(query, gains.size)
    return _discounted(query, gain[order], slot, k, gains.size)


def _discounted(query: Ints, gain: Floats, slot: Ints, k: int, size: int) -> Floats:
    paid = slot <= k
    return sum_by(query[paid], gain[paid] / np.log2(slot[paid] + 1), size)


@dataclass(frozen=True)
class Bound:
    """The lowest and highest value of a metric, over all ways to judge the unjudged."""

    score: float | None  # the mean as it is, unjudged documents being worth nothing
    worst: float | None  # the mean if they were judged as unluckily as can be
    best: float | None  # the mean if as luckily
    exact: bool = True  # whether these are reached; else nothing leads outside
    n: int = 0  # how many queries are in the means: those with relevant gold


@dataclass(frozen=True)
class Unjudged:
    """A retrieved document that nobody judged, to be labelled."""

    query: str  # id of the query
    document: str  # id of the document
    rank: int  # where it was retrieved
    text: str | None = None  # what it says, if known


class Bounds(NamedTuple):
    """What unjudged documents leave open, query by query."""

    worst: dict[str, Floats]  # by metric
    best: dict[str, Floats]
    scores: dict[str, Floats]
    exact: Bools  # whether the bounds of nDCG are reached
    judged: Floats  # the share of the top k
    next: tuple[Unjudged, ...]  # to be labelled, by rank

    def means(self) -> dict[str, Bound]:
        """The bounds of the means."""
        means = {}
        for name, scores in self.scores.items():
            if len(scores):
                means[name] = Bound(
                    float(scores.mean()),
                    float(self.worst[name].mean()),
                    float(self.best[name].mean()),
                    not name.startswith("ndcg") or bool(self.exact.all()),
                    len(scores),
                )
        return means


class _Query(NamedTuple):
    """The judged documents of a query and the unjudged ones in its top k, by rank."""

    name: str
    gold: Floats  # the grades of all its labels
    ranks: Ints  # where these documents stand
    grades: Floats  # what they are worth; NaN if unjudged
    unjudged: list[tuple[int, Document]]
    below: int  # how many unjudged documents stand below k
    top: int  # how many documents the top k has


def bounds_of(
    labels: Labels,
    rankings: Mapping[str, Sequence[Document]],
    depth: Mapping[str, int],
    k: int,
    threshold: float | None = None,
) -> Bounds:
    """The bounds of nDCG, AP, recall, hit, RR and precision at k.

    For a given set of grades a metric is worst when the unjudged documents have them
    from the last to the first rank, and best the other way round; all sets are tried.
    An unjudged document below k can be one more to be found. Where there are too many
    sets of grades, the bounds of nDCG are wider than need be. Queries without relevant
    gold are left out.
    """
    queries, every = [], set()
    for query, row in labels.items():
        every |= {*row.values()}
        if any(is_relevant(np.array([*row.values()], np.float64), threshold)):
            ranking = rankings.get(query, ())
            queries.append(_read(query, row, ranking, depth.get(query, 0), k))
    grades = tuple(sorted(grade for grade in every if grade > 0)) or (1.0,)
    nothing, exact, judged = [], [], []
    for one in queries:
        nothing.append(np.zeros((1, len(one.unjudged))))
        exact.append(_ways(len(one.unjudged), grades) is not None)
        judged.append(1 - len(one.unjudged) / one.top if one.top else math.nan)
    plain, _ = _hits(queries, nothing)
    size = max(1, _CELLS // k**2)
    starts = range(0, len(queries), size)
    bounds = Bounds({}, {}, {}, np.array(exact), np.array(judged), _next(queries))
    for kind in (NDCG, *_BINARY):
        # nDCG pays every grade what it is worth, whatever counts as relevant.
        metric = kind(k=k) if kind is NDCG else kind(k=k, threshold=threshold)
        name = f"{metric.name}@{k}"
        bounds.scores[name] = metric.score(plain)
        for limits, best in ((bounds.worst, False), (bounds.best, True)):
            parts = [
                _limit(metric, queries[at : at + size], grades, best=best)
                for at in starts
            ]
            limits[name] = np.concatenate([np.zeros(0), *parts])
    return bounds


def label_moves(
    labels: Labels, rankings: Mapping[str, Sequence[Document]], k: int
) -> list[tuple[float, str, Document]]:
    """How far a label of the highest grade can move nDCG@k of its query.

    That is said of every unjudged document in the top k, by its query. A query that has
    no relevant gold scores nothing until a label gives it some.
    """
    queries = [
        _read(query, labels.get(query, {}), ranking, 0, k)
        for query, ranking in rankings.items()
    ]
    top = max((g for row in labels.values() for g in row.values()), default=0) or 1.0
    tried = [top * np.eye(len(q.unjudged) + 1, len(q.unjudged), -1) for q in queries]
    hits, owner = _hits(queries, tried)
    scores = np.nan_to_num(NDCG(k=k).score(hits))
    # The first way of each query leaves all its documents as they are.
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    moves = np.delete(np.abs(scores - scores[first][owner]), first)
    unjudged = ((q.name, document) for q in queries for _, document in q.unjudged)
    return [(move, *one) for move, one in zip(moves.tolist(), unjudged, strict=True)]


def _read(
    query: str,
    labels: Mapping[str, float],
    ranking: Sequence[Document],
    depth: int,
    k: int,
) -> _Query:
    ranks, grades, unjudged, below = [], [], [], max(0, depth - max(k, len(ranking)))
    seen = set()
    for rank, document in zip(ranks_of(ranking), ranking, strict=True):
        name = document.id or document.text or ""
        if name in seen:
            continue
        seen.add(name)
        if name not in labels and rank > k:
            below += 1
            continue
        ranks.append(rank)
        grades.append(labels.get(name, math.nan))
        if name not in labels:
            unjudged.append((rank, document))
    return _Query(
        query,
        np.array([*labels.values()], np.float64),
        np.array(ranks, np.int64),
        np.array(grades, np.float64),
        unjudged,
        below,
        min(k, len(ranking)),
    )


@lru_cache(maxsize=32)
def _ways(count: int, grades: tuple[float, ...]) -> Floats | None:
    """All sets of grades of so many documents, ascending; None if they are too many."""
    if len(grades) > 1 and math.comb(count + len(grades), count) > _MOST_WAYS:
        return None
    sets = [*combinations_with_replacement((0.0, *grades), count)]
    return np.array(sets, np.float64).reshape(len(sets), count)


def _limit(
    metric: Any,
    queries: Sequence[_Query],
    grades: tuple[float, ...],
    *,
    best: bool,
) -> Floats:
    """Each query's lowest or highest score, over all ways to judge the unjudged.

    At best the better grades stand higher, at worst lower, and more is missing.
    """
    graded, top = isinstance(metric, NDCG), grades[-1]
    tried, open_ones = [], []
    for place, query in enumerate(queries):
        way = _ways(len(query.unjudged), grades if graded else (top,))
        if way is None:
            open_ones.append(place)
            tried.append(np.full((1, len(query.unjudged)), top if best else 0.0))
        else:
            tried.append(way[:, :: -1 if best else 1])
    missing = top if graded and not best else None
    hits, owner = _hits(queries, tried, missing)
    scores = metric.score(hits)
    if not best and metric.name in ("recall", "ap"):
        relevant = hits.credits(metric.threshold).relevant
        below = np.array([*map(attrgetter("below"), queries)])[owner]
        scores = scores * relevant / (relevant + below)
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    reduced = np.maximum if best else np.minimum
    limits: Floats = reduced.reduceat(scores, starts)
    if open_ones:
        # The most or least that can be had, by the least or most that there can be.
        rest, own = [queries[n] for n in open_ones], [tried[n] for n in open_ones]
        other = [np.full_like(row, 0.0 if best else top) for row in own]
        ideal = metric.ideal(_hits(rest, other, missing)[0])
        limits[open_ones] = np.minimum(1.0, metric.dcg(_hits(rest, own)[0]) / ideal)
    return limits


def _hits(
    queries: Sequence[_Query], tried: Sequence[Floats], missing: float | None = None
) -> tuple[Hits, Ints]:
    """Hits with every way to grade the unjudged as a query, and the query of each."""
    owner = np.repeat(np.arange(len(queries)), [*map(len, tried)])
    worth = np.concatenate([np.zeros(0), *map(np.ravel, tried)])
    gold = []
    for query in queries:
        # No ideal ranking looks further than all that is retrieved and judged.
        more = 0 if missing is None else min(query.below, query.top)
        open_grades = np.full(len(query.unjudged), math.nan)
        gold.append(
            np.concatenate((query.gold, open_grades, np.full(more, missing or 0.0)))
        )
    ranks, sizes = _repeated([*map(attrgetter("ranks"), queries)], owner)
    grades, _ = _repeated([*map(attrgetter("grades"), queries)], owner)
    gold_grades, gold_count = _repeated(gold, owner)
    for one in (grades, gold_grades):
        one[np.isnan(one)] = worth
    hits = Hits(
        query=np.repeat(np.arange(len(owner)), sizes),
        rank=ranks.astype(np.int64),
        grade=grades,
        gold_count=gold_count,
        gold_grade=gold_grades,
        retrieved=np.array([*map(attrgetter("top"), queries)], np.int64)[owner],
        distinct=True,
    )
    return hits, owner


def _repeated(rows: Sequence[Any], owner: Ints) -> tuple[Floats, Ints]:
    """The row of each owner, one after the other, and how long each is."""
    size = np.array([*map(len, rows)], np.int64)
    own = size[owner]
    behind = np.repeat(np.cumsum(own) - own, own)
    start = np.repeat((np.cumsum(size) - size)[owner], own)
    flat = np.concatenate([np.zeros(0), *rows])
    return flat[start + np.arange(len(start)) - behind], own


def _next(queries: Sequence[_Query]) -> tuple[Unjudged, ...]:
    """The unjudged documents by rank: labels on top move every metric most."""
    every = [
        Unjudged(query.name, document.id or "", rank, document.text)
        for query in queries
        for rank, document in query.unjudged
    ]
    return tuple(sorted(every, key=attrgetter("rank"))[:_LABEL_NEXT])
