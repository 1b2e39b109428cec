"""From scores to ranks: how many documents of a ranking come before a given one."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from itertools import chain, compress, count, islice
from math import isfinite
from operator import methodcaller
from typing import Any

import numpy as np

from karat.data.arrays import Floats, Ints, as_floats
from karat.data.policies import Policies

Scores = Mapping[str, Any]

# From so many scores on, NumPy sorts those in disorder quicker than Python.
_MANY = 100
# By so many scores one sees whether a ranking comes in order.
_FIRST = 8
# Whole numbers from here on differ where floats are equal.
_INEXACT = 2.0**53
_VALUES = methodcaller("values")


def rank_order(
    scores: Iterable[float], documents: Sequence[str | bytes], policies: Policies
) -> list[int]:
    """The positions of the documents, best score first and ties as the policy says.

    Documents that are the same keep their order.
    """
    keys: list[Any] = _as_compared(scores, policies).tolist()
    if policies.ties != "input":
        keys = [*zip(keys, documents, strict=True)]
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)


def count_before(
    rankings: Sequence[Scores],
    found: Ints,
    names: Sequence[str],
    item: Ints,
    scores: Sequence[Any],
    policies: Policies,
) -> tuple[Ints, Ints]:
    """How many documents come before each, and which share their score with others.

    Rankings have `found` documents each; `item` says which of the names they have.
    """
    better, tied = _count_better(rankings, found, scores, policies)
    if len(tied):
        ends = found.cumsum()
        for number in np.unique(ends.searchsorted(tied, "right")).tolist():
            mine = slice(int(ends[number] - found[number]), int(ends[number]))
            equal = {*_as_compared(scores[mine], policies).tolist()}
            before = _count_in_ties(rankings[number], equal, policies)
            better[mine] += [before[names[label]] for label in item[mine].tolist()]
    return better, tied


def _count_better(
    rankings: Sequence[Scores],
    found: Ints,
    scores: Sequence[Any],
    policies: Policies,
    *,
    exact: bool = True,
) -> tuple[Ints, Ints]:
    """How many scores are better than each, and which have equals."""
    better: list[int] = []
    tied: list[int] = []
    checksum = 0.0
    compared = scores if exact else _as_compared(scores, policies).tolist()
    ranges: Iterator[Any] = zip(compared, compared, strict=True)
    if exact and policies.precision == "single":
        ranges = _equal_in_single(scores)
    for ranking, number in zip(rankings, found.tolist(), strict=True):
        ordered = [*ranking.values()]
        checksum = sum(ordered, checksum)
        if number:
            # Most come best first: reversed, the sort has only to look.
            ordered.reverse()
            first = ordered[:_FIRST]
            if not exact or (len(ordered) > _MANY and first != sorted(first)):
                floats = (
                    as_floats(ordered) if exact else _as_compared(ordered, policies)
                )
                ordered = np.sort(floats).tolist()
            else:
                ordered.sort()
            for low, high in islice(ranges, number):
                end = bisect_right(ordered, high)
                if end > 1 and ordered[end - 2] >= low:
                    tied.append(len(better))
                better.append(len(ordered) - end)
    # Very large scores have an infinite sum, too.
    if not isfinite(checksum) and not all(
        map(isfinite, chain.from_iterable(map(_VALUES, rankings)))
    ):
        raise ValueError
    if exact and not abs(checksum) < _INEXACT:
        return _count_better(rankings, found, scores, policies, exact=False)
    return np.array(better, np.int64), np.array(tied, np.int64)


def _equal_in_single(scores: Sequence[Any]) -> Iterator[tuple[float, float]]:
    """The least and the largest number that is the same as each in single precision."""
    single = as_floats(scores).astype(np.float32)
    exact = single.astype(np.float64)
    edges = []
    for side in (-np.inf, np.inf):
        middle = (exact + np.nextafter(single, np.float32(side))) / 2
        inside = middle.astype(np.float32) == single
        edges.append(np.where(inside, middle, np.nextafter(middle, exact)).tolist())
    return zip(*edges, strict=True)


def _count_in_ties(
    ranking: Scores, scores: AbstractSet[float], policies: Policies
) -> dict[str, int]:
    """For each document with one of the scores: how many of its equals come first."""
    equals: dict[float, list[str]] = {score: [] for score in scores}
    compared = _as_compared(ranking.values(), policies).tolist()
    if len(equals) == 1:
        alike = map(scores.__contains__, compared)
        equals = {score: [*compress(ranking, alike)] for score in equals}
    else:
        for document, score in zip(ranking, compared, strict=True):
            if score in equals:
                equals[score].append(document)
    before: dict[str, int] = {}
    for documents in equals.values():
        if policies.ties == "trec":
            documents.sort(reverse=True)
        before.update(zip(documents, count()))
    return before


def _as_compared(scores: Iterable[Any], policies: Policies) -> Floats:
    """The scores as floats, in the precision in which they are compared."""
    floats = as_floats(scores)
    if policies.precision == "single":
        with np.errstate(over="ignore"):
            return floats.astype(np.float32).astype(np.float64)
    return floats
