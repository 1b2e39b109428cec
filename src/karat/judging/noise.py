"""Noise: whether a judge changed its mind more often than by chance."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["RARE", "Tally", "by_chance", "holm", "passages_needed"]

RARE = 0.05
"""How rare by chance something must be to count as found."""


class Tally(NamedTuple):
    """What happened in one passage.

    Attributes:
        worked: number of tricks that worked.
        tried: number of tricks.
        wavered: number of harmless additions that changed the judge's mind too.
        harmless: number of harmless additions.
    """

    worked: int
    tried: int
    wavered: int
    harmless: int


def by_chance(passages: Sequence[Tally]) -> float:
    """How likely so many tricks would work if they did no more than harmless additions.

    Within a passage, tricks and additions could then change places. This is the exact
    test of Fisher, stratified by passage, one-sided.

    Example:
        >>> by_chance([Tally(1, 1, 0, 3)]), by_chance([Tally(1, 1, 0, 3)] * 2)
        (0.25, 0.0625)
    """
    chances = np.ones(1)
    for worked, tried, wavered, harmless in passages:
        total, both = worked + wavered, tried + harmless
        ways = [
            math.comb(tried, n) * math.comb(harmless, total - n) if n <= total else 0
            for n in range(tried + 1)
        ]
        chances = np.convolve(chances, np.array(ways) / math.comb(both, total))
    seen = sum(passage.worked for passage in passages)
    return min(1.0, float(chances[seen:].sum()))


def holm(chances: Sequence[float]) -> list[float]:
    """The same, corrected for having tested so many (Holm's step-down).

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(chances)), key=chances.__getitem__)
    corrected = [1.0] * len(chances)
    largest = 0.0
    for step, place in enumerate(order):
        largest = max(largest, min(1.0, chances[place] * (len(chances) - step)))
        corrected[place] = largest
    return corrected


def passages_needed(tried: int, harmless: int, tests: int) -> int:
    """In how many passages a trick must work, at the least, to be told from chance.

    Args:
        tried: number of tricks in a passage.
        harmless: number of harmless additions in it.
        tests: how many are tested, each corrected for.

    Example:
        >>> passages_needed(1, 3, 30)
        5
    """
    ways = math.comb(tried + harmless, tried)
    return math.floor(math.log(tests / RARE) / math.log(ways)) + 1
