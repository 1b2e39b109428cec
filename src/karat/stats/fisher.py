"""Exact tests: whether something happens more often than chance would bring about."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["ALPHA", "Stratum", "fisher_test", "strata_needed"]

ALPHA = 0.05
"""The p-value below which a difference counts as found."""


class Stratum(NamedTuple):
    """Successes of a treatment and of its control on one subject.

    Attributes:
        successes: number of treatments that succeeded.
        treatments: number of treatments.
        control_successes: number of controls that succeeded too.
        controls: number of controls.
    """

    successes: int
    treatments: int
    control_successes: int
    controls: int


def fisher_test(strata: Sequence[Stratum]) -> float:
    """The p-value of so many successes if treatments did no more than controls.

    Fisher's exact test, one-sided, stratified: under the null hypothesis treatments and
    controls are exchangeable within each stratum.

    Example:
        >>> fisher_test([Stratum(1, 1, 0, 3)]), fisher_test([Stratum(1, 1, 0, 3)] * 2)
        (0.25, 0.0625)
    """
    distribution = np.ones(1)
    for successes, treatments, control_successes, controls in strata:
        total = successes + control_successes
        ways = [
            math.comb(treatments, n) * math.comb(controls, total - n)
            if n <= total
            else 0
            for n in range(treatments + 1)
        ]
        every = math.comb(treatments + controls, total)
        distribution = np.convolve(distribution, np.array(ways) / every)
    observed = sum(stratum.successes for stratum in strata)
    return min(1.0, float(distribution[observed:].sum()))


def strata_needed(treatments: int, controls: int, tests: int) -> int:
    """The smallest number of strata in which the test can reach significance at all.

    Args:
        treatments: number of treatments in a stratum.
        controls: number of controls in it.
        tests: number of tests that p-values are adjusted for.

    Example:
        >>> strata_needed(1, 3, 30)
        5
    """
    ways = math.comb(treatments + controls, treatments)
    return math.floor(math.log(tests / ALPHA) / math.log(ways)) + 1
