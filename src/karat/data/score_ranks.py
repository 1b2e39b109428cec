"""From scores to ranks: how many documents of a ranking come before a given one."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from itertools import chain, compress, count, islice, pairwise
from math import isfinite
from operator import methodcaller, not_
from struct import Struct
from typing import Any

import numpy as np

from karat.data.arrays import Bools, Floats, Ints, as_floats
from karat.data.policies import Policies

Scores = Mapping[str, Any]

# From so many scores on, laying them side by side in arrays pays.
_MANY = 20_000
# Finding one score among them costs about as much as so many of them.
_EACH = 10
# About so many scores lie side by side at a time.
_BLOCK = 1 << 17
# Whole numbers from here on differ where floats are equal.
_INEXACT = 2.0**53
_VALUES = methodcaller("values")


def rank_order(
    scores: Iterable[float], documents: Sequence[str | bytes], policies: Policies
) -> list[int]:
    """The positions of the documents, best score first.

    Documents of equal score are ordered as the policy on ties says; those that are the
    same keep their order.

    Example:
        >>> rank_order([1.0, 2.0, 1.0], ["a", "b", "c"], Policies())
        [1, 2, 0]
    """
    compared = _as_compared(scores, policies)
    if policies.ties == "input":
        return sorted(range(len(compared)), key=compared.__getitem__, reverse=True)
    keys = list(zip(compared, documents, strict=True))
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)


def count_before(
    rankings: Sequence[Scores],
    found: Ints,
    names: Sequence[str],
    item: Ints,
    scores: Sequence[Any],
    policies: Policies,
) -> tuple[Ints, Ints]:
    """How many documents come before each one, and which share their score with others.

    Args:
        rankings: all rankings, document -> score.
        found: how many of the documents are from each ranking.
        names: names of documents.
        item: which of the names the documents have, ranking after ranking.
        scores: their scores.
        policies: how equal scores are ordered, and in which precision scores are
            compared.

    Raises:
        ValueError: a score of any ranking is not finite.
        TypeError: it is not even a number; so is a `struct.error`.
    """
    counted = None
    size = sum(map(len, rankings)) + _EACH * len(scores)
    numbers = found.tolist()
    if policies.precision == "double" and size < _MANY:
        counted = _count_one_by_one(rankings, numbers, scores)
    better, tied = counted or _count_at_once(rankings, numbers, scores, policies)
    if len(tied):
        ends = found.cumsum()
        for number in np.unique(ends.searchsorted(tied, "right")).tolist():
            mine = slice(int(ends[number] - found[number]), int(ends[number]))
            equal = {*_as_compared(scores[mine], policies)}
            before = _count_in_ties(rankings[number], equal, policies)
            better[mine] += [before[names[label]] for label in item[mine].tolist()]
    return better, tied


def _count_in_ties(
    ranking: Scores, scores: AbstractSet[float], policies: Policies
) -> dict[str, int]:
    """For each document with one of the scores: how many of its equals come first."""
    equals: dict[float, list[str]] = {score: [] for score in scores}
    compared = _as_compared(ranking.values(), policies)
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


def _as_compared(scores: Iterable[Any], policies: Policies) -> list[float]:
    """The scores as floats, in the precision in which they are compared."""
    floats = [*map(float, scores)]
    if policies.precision == "single":
        floats = _as_single(np.array(floats)).tolist()
    return floats


def _as_single(scores: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return scores.astype(np.float32).astype(np.float64)


def _count_one_by_one(
    rankings: Sequence[Scores], found: Sequence[int], scores: Sequence[Any]
) -> tuple[Ints, Ints] | None:
    """How many scores are better than each, and which have equals.

    Quick to begin, for short runs. None where whole numbers are so large that they have
    to be compared as floats.
    """
    better: list[int] = []
    tied: list[int] = []
    checksum = 0.0
    rest = iter(scores)
    for ranking, number in zip(rankings, found, strict=True):
        ordered = [*ranking.values()]
        checksum = sum(ordered, checksum)
        if number:
            # Most come best first: reversed, the sort has only to look.
            ordered.reverse()
            ordered.sort()
            for score in islice(rest, number):
                end = bisect_right(ordered, score)
                if end > 1 and ordered[end - 2] == score:
                    tied.append(len(better))
                better.append(len(ordered) - end)
    _refuse_infinite(checksum, rankings)
    if not abs(checksum) < _INEXACT:
        return None
    return np.array(better, np.int64), np.array(tied, np.int64)


def _refuse_infinite(checksum: float, rankings: Sequence[Scores]) -> None:
    """Refuse scores that are not finite: then their sum is not, either."""
    if not isfinite(checksum):
        # Very large scores have an infinite sum, too.
        values = chain.from_iterable(map(_VALUES, rankings))
        if not all(map(isfinite, values)):
            raise ValueError


def _count_at_once(
    rankings: Sequence[Scores],
    found: Sequence[int],
    scores: Sequence[Any],
    policies: Policies,
) -> tuple[Ints, Ints]:
    """The same for long runs: no step per document is taken in Python."""
    rows = [*compress(rankings, found)]
    others = [*compress(rankings, map(not_, found))]
    _refuse_infinite(sum(chain.from_iterable(map(_VALUES, others))), others)
    if not rows:
        nothing: Ints = np.zeros(0, np.int64)
        return nothing, nothing
    single = policies.precision == "single"
    score = _as_single(as_floats(scores)) if single else as_floats(scores)
    row = np.arange(len(rows)).repeat([*filter(None, found)])
    size = np.fromiter(map(len, rows), np.int64, len(rows))
    blocks = size.cumsum() // _BLOCK
    cuts = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(rows)]
    parts = [
        _count_in_block(rows[a:b], size[a:b], row[c:d] - a, score[c:d], single=single)
        for (a, b), (c, d) in zip(
            pairwise(cuts), pairwise(row.searchsorted(cuts).tolist()), strict=True
        )
    ]
    better, tied = zip(*parts, strict=True)
    return np.concatenate(better), np.flatnonzero(np.concatenate(tied))


def _count_in_block(
    rows: Sequence[Scores], size: Ints, row: Ints, score: Floats, *, single: bool
) -> tuple[Ints, Bools]:
    end = size.cumsum()
    begin = end - size
    scores = _side_by_side(rows, begin, end)
    if single:
        scores = _as_single(scores)
    last, left = begin[row] - 1, size[row]
    # The last of the better ones: every step halves what is left to search.
    for _ in range(int(size.max(initial=1) - 1).bit_length()):
        half = left >> 1
        last += half * (scores[last + half] > score)
        left -= half
    after = last + 2
    tied = (after < end[row]) & (scores.take(after, mode="clip") == score)
    return last + 1 - begin[row], tied


def _side_by_side(rows: Sequence[Scores], begin: Ints, end: Ints) -> Floats:
    """The scores of all rows in one array, each row from best to worst."""
    buffer = bytearray(8 * int(end[-1]))
    packs = {n: Struct(f"{n}d").pack_into for n in {*map(len, rows)}}
    for row, place in zip(rows, (8 * begin).tolist(), strict=True):
        packs[len(row)](buffer, place, *row.values())
    scores = np.frombuffer(buffer)
    # NaN is never smaller or equal, and is sorted behind all numbers.
    falling = scores[1:] <= scores[:-1]
    falling[end[:-1] - 1] = True
    if not falling.all():
        mixed = end.searchsorted(np.flatnonzero(~falling), "right").tolist()
        for place in dict.fromkeys(mixed):
            part = scores[begin[place] : end[place]]
            part[:] = np.sort(part)[::-1]
    if not np.isfinite(scores[[begin, end - 1]]).all():
        raise ValueError
    return scores
