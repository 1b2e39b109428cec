"""Headroom: what a ranking lacks to a perfect score, by its causes."""

from typing import NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints, place_by, ratio, sum_by
from karat.data.hits import is_relevant
from karat.data.matches import Matches


class Gains(NamedTuple):
    """The relevant gold items of some queries, and where a run has them."""

    query: Ints  # index of each item's query, ascending
    name: list[str]  # of the item
    gain: Floats  # what it is worth
    rank: Ints  # its first rank; 0: not found
    size: int  # number of queries


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
        [matches.items[place] for place in item.tolist()],
        hits.gold_grade[item],
        hits.first_rank[item],
        len(places),
    )


def headroom(gains: Gains, k: int) -> Headroom:
    """What each query's ranking lacks to a perfect nDCG at k, by its causes."""
    retrieved, top = gains.rank > 0, (gains.rank > 0) & (gains.rank <= k)
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
    return ratio(paid, _whole(gains, k))


def ideal(gains: Gains, rows: Bools, k: int) -> Floats:
    """The nDCG at k if only these items were retrieved, in the best order."""
    return ratio(_best(gains, rows, k), _whole(gains, k))


def _whole(gains: Gains, k: int) -> Floats:
    return _best(gains, np.ones(len(gains.query), np.bool_), k)


def _best(gains: Gains, rows: Bools, k: int) -> Floats:
    query, gain = gains.query[rows], gains.gain[rows]
    order = np.lexsort((-gain, query))
    query = query[order]
    slot = place_by(query, gains.size)
    return _discounted(query, gain[order], slot, k, gains.size)


def _discounted(query: Ints, gain: Floats, slot: Ints, k: int, size: int) -> Floats:
    paid = slot <= k
    return sum_by(query[paid], gain[paid] / np.log2(slot[paid] + 1), size)
