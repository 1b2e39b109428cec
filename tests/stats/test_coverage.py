"""Does a 95 % interval hold the true mean 95 times in 100? Simulated, seed fixed.

The bound is 0.935: with 600 draws a method that covers 95 % has a standard error of
0.009, so chance alone may take that much.
"""

import numpy as np
import pytest

from karat.extend import Floats
from karat.stats import mean_interval

DRAWS = 600
HONEST = 0.935

RANKS = 1 / np.arange(1.0, 11.0)
POPULATIONS: dict[str, tuple[Floats, Floats]] = {
    "reciprocal ranks, easy": (
        np.array([1, 1 / 2, 1 / 3, 1 / 5, 0]),
        np.array([0.80, 0.10, 0.05, 0.03, 0.02]),
    ),
    "reciprocal ranks, medium": (
        np.append(RANKS, 0),
        np.array([36, 12, 8, 6, 5, 4, 3, 3, 2, 1, 20]) / 100,
    ),
    "reciprocal ranks, hard": (np.append(RANKS, 0), np.array([0.015] * 10 + [0.85])),
    "recall, sparse": (
        np.array([0, 1 / 3, 1 / 2, 1]),
        np.array([0.90, 0.04, 0.03, 0.03]),
    ),
    "recall, saturated": (np.array([0, 0.5, 1]), np.array([0.01, 0.04, 0.95])),
    "precision of one relevant document": (np.array([0, 0.2]), np.array([0.3, 0.7])),
}
SIZES = (5, 20, 30, 120)


@pytest.mark.slow
@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("n", SIZES)
def test_intervals_of_skewed_scores_cover_the_mean(population: str, n: int) -> None:
    scores, chances = POPULATIONS[population]
    truth = float(scores @ chances)
    dice = np.random.default_rng(20260101)
    samples = dice.choice(scores, size=(DRAWS, n), p=chances)
    assert covered(samples, truth) >= HONEST


@pytest.mark.parametrize("correlation", [0.05, 0.3])
@pytest.mark.parametrize("clusters", [5, 10, 40])
def test_intervals_over_conversations_cover_the_mean(
    clusters: int, correlation: float
) -> None:
    truth = 0.6
    shape = 1 / correlation - 1
    dice = np.random.default_rng(20260102)
    held = 0
    for _ in range(DRAWS):
        groups = np.repeat(np.arange(clusters), dice.integers(8, 26, clusters))
        ease = dice.beta(truth * shape, (1 - truth) * shape, clusters)
        hits = (dice.random(len(groups)) < ease[groups]).astype(float)
        found = mean_interval(hits, binary=True, clusters=groups)
        held += found is not None and found.low <= truth <= found.high
    assert held / DRAWS >= HONEST


def test_t_alone_would_not_cover_skewed_scores() -> None:
    scores, chances = POPULATIONS["recall, saturated"]
    truth = float(scores @ chances)
    samples = np.random.default_rng(20260103).choice(scores, (DRAWS, 30), p=chances)
    errors = np.abs(samples.mean(axis=1) - truth)
    halves = 2.045 * samples.std(axis=1, ddof=1) / np.sqrt(30)
    assert np.mean(errors <= halves) < 0.85


def covered(samples: Floats, truth: float) -> float:
    intervals = [mean_interval(sample) for sample in samples]
    return float(
        np.mean([i is not None and i.low <= truth <= i.high for i in intervals])
    )
