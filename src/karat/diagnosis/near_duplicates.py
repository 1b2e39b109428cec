"""Near-duplicates: texts that say the same in nearly the same letters."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from rapidfuzz.fuzz import ratio

from karat.data.arrays import Ints
from karat.matching.coverage.alphabet import (
    Source,
    Texts,
    hash_grams,
    places_inside,
)

__all__ = ["ALIKE", "group_alike", "similarity"]

ALIKE = 0.87
"""The share of letters that near-duplicates have in common, in the same order."""

_LETTERS = 6
_BINS = 64
# So many different texts with the same band are compared with a new one.
_COMPARED = 8
_EMPTY: Final = np.uint32(0xFFFFFFFF)
_MIX: Final = np.uint32(0x9E3779B1)
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


def similarity(one: str, other: str) -> float:
    """The share of letters that two texts have in common, in the same order.

    Example:
        >>> similarity("Rye is a grain.", "rye, is a GRAIN")
        1.0
    """
    return ratio(Source(one).letters, Source(other).letters) / 100


def group_alike(texts: Sequence[str]) -> list[int]:
    """For each text, the place of the first one that it is a near-duplicate of.

    A text that is like none before it stands for itself, and so does one without
    letters. Only texts that share small hashes of their letters are compared, so that
    many texts take little longer than reading them.

    Example:
        >>> group_alike(["Rye is a grain.", "Oats are another.", "Rye is a grain!"])
        [0, 1, 0]
    """
    letters = [Source(text).letters for text in texts]
    first: dict[str, int] = {}
    group = [first.setdefault(text, place) for place, text in enumerate(letters)]
    distinct = [place for place, own in enumerate(group) if own == place]
    bands = _bands([letters[place] for place in distinct])
    buckets: dict[int, list[int]] = {}
    for place, row in zip(distinct, bands.tolist(), strict=True):
        own = letters[place]
        if not own:
            continue
        seen: set[int] = set()
        for key in row:
            for other in buckets.get(key, ()):
                if other not in seen:
                    seen.add(other)
                    if ratio(own, letters[other], score_cutoff=100 * ALIKE):
                        group[place] = min(group[place], other)
        if group[place] == place:
            for key in row:
                bucket = buckets.setdefault(key, [])
                if len(bucket) < _COMPARED:
                    bucket.append(place)
    return [
        place if not letters[place] else group[own] for place, own in enumerate(group)
    ]


def _bands(letters: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Keys, some of which two texts share if they are alike.

    Each text's n-grams fall into bins by their hash, and the smallest of each bin is
    kept: two texts agree in a bin about as often as their n-grams agree. Bins of short
    texts that stay empty borrow from the next one. Three bins make a key.
    """
    # Texts shorter than an n-gram are padded, so that they have one.
    whole = Texts([text.ljust(_LETTERS, "\0") for text in letters])
    text, place = places_inside(whole, _LETTERS)
    hashes = hash_grams(whole.codes, _LETTERS)[place] * _MIX
    hashes ^= hashes >> np.uint32(15)
    hashes *= np.uint32(0x85EBCA6B)
    least = np.full(len(letters) * _BINS, _EMPTY, np.uint32)
    bin_of: Ints = text * _BINS + (hashes >> np.uint32(26)).astype(np.int64)
    np.minimum.at(least, bin_of, hashes)
    table = least.reshape(-1, _BINS)
    for _ in range(_BINS):
        empty = table == _EMPTY
        if not empty.any():
            break
        table = np.where(empty, np.roll(table, -1, axis=1) + np.uint32(1), table)
    # Of 64 bins the last one is left over: 21 keys of three bins each.
    one, two, three = table[:, : _BINS - 1].astype(np.uint64).reshape(-1, 21, 3).T
    keys = (one * _FACTOR ^ two) * _FACTOR ^ three
    return (keys + np.arange(21, dtype=np.uint64)[:, None] * _FACTOR).T
