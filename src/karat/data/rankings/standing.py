"""How many scores of its ranking are better than a given one, for many at once."""

from collections.abc import Mapping, Sequence
from itertools import compress, pairwise
from math import isfinite
from struct import Struct
from typing import Any

import numpy as np

from karat.data.arrays import Bools, Floats, Ints

__all__ = ["stand"]

# About so many scores lie side by side at a time.
_BLOCK = 1 << 17


def stand(
    rankings: Sequence[Mapping[str, Any]], query: Ints, score: Floats
) -> tuple[Ints, Bools]:
    """How many scores are better than each, and whether it has equals in its ranking.

    Args:
        rankings: all rankings, document -> score.
        query: index of the ranking that each score is from, ascending.
        score: scores that occur there.

    Raises:
        ValueError: a score of any ranking is not finite.
        TypeError: it is not even a number; so is a `struct.error`.
    """
    held = np.bincount(query, minlength=len(rankings)) > 0
    rows = [*compress(rankings, held.tolist())]
    others = compress(rankings, (~held).tolist())
    # A score that is not a number makes the sum none either.
    if not isfinite(sum(sum(ranking.values()) for ranking in others)):
        raise ValueError
    if not rows:
        return query, query > 0
    row = (held.cumsum() - 1)[query]
    size = np.fromiter(map(len, rows), np.int64, len(rows))
    blocks = size.cumsum() // _BLOCK
    cuts = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(rows)]
    parts = [
        _stand(rows[a:b], size[a:b], row[c:d] - a, score[c:d])
        for (a, b), (c, d) in zip(
            pairwise(cuts), pairwise(row.searchsorted(cuts).tolist()), strict=True
        )
    ]
    better, tied = zip(*parts, strict=True)
    return np.concatenate(better), np.concatenate(tied)


def _stand(
    rows: Sequence[Mapping[str, Any]], size: Ints, row: Ints, score: Floats
) -> tuple[Ints, Bools]:
    end = size.cumsum()
    begin = end - size
    scores = _side_by_side(rows, begin, end)
    last, left = begin[row] - 1, size[row]
    # The last of the better ones: every step halves what is left to search.
    for _ in range(int(size.max(initial=1) - 1).bit_length()):
        half = left >> 1
        last += half * (scores[last + half] > score)
        left -= half
    after = last + 2
    tied = (after < end[row]) & (scores.take(after, mode="clip") == score)
    return last + 1 - begin[row], tied


def _side_by_side(rows: Sequence[Mapping[str, Any]], begin: Ints, end: Ints) -> Floats:
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
