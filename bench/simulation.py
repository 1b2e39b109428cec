"""Do the statistics keep what they promise? `python bench/simulation.py [--quick]`.

Made populations of scores, most as metrics give them; from each, many samples of
queries. An interval of 95 % should hold the true difference about 95 times in 100, a
test at 0.05 find a difference that is not there at most 5 times, and a correction for
several tests find any such difference at most 5 times. Skewed and sparse populations
are shown, not held to a bar: no method keeps it there with few queries.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from karat.stats.exact_tests import mcnemar

from karat.stats import mean_interval
from karat.stats.multiple_tests import holm, max_t
from karat.stats.paired import difference_interval, t_test
from karat.stats.sign_flip import sign_flip, sign_flip_pairs

__all__ = ["Figure", "coverage", "false_findings", "family_errors", "main"]

Draw = Callable[[np.random.Generator, int], np.ndarray]

_LEVEL = 0.05
_MANY_DRAWS = 2_000
_RANKS = np.append(1 / np.arange(1.0, 11.0), 0)
_EASY = np.array([56, 12, 8, 6, 5, 2, 1, 1, 1, 1, 7]) / 100
_HARD = np.array([36, 12, 8, 6, 5, 4, 3, 3, 2, 1, 20]) / 100


@dataclass(frozen=True)
class Figure:
    """One simulated share, of so many draws, and the bar it is held to, if any."""

    name: str
    n: int
    share: float
    draws: int
    low: float = 0.0
    high: float = 1.0

    @property
    def missed(self) -> bool:
        """Whether the share is outside of its bar; few draws may miss it by chance."""
        chance = (
            3 * np.sqrt(0.05 * 0.95 / self.draws) if self.draws < _MANY_DRAWS else 0
        )
        return not self.low - chance <= self.share <= self.high + chance

    def __str__(self) -> str:
        bar = "reported"
        if (self.low, self.high) != (0.0, 1.0):
            bar = f"[{self.low:g}, {self.high:g}] {'MISSED' if self.missed else 'ok'}"
        return f"  {self.name:<44} n = {self.n:<5}{self.share:>7.3f}  {bar}"


def _reciprocal(same: float, one: np.ndarray, other: np.ndarray) -> Draw:
    """Differences of reciprocal ranks, of which a share stays where it was."""

    def draw(dice: np.random.Generator, n: int) -> np.ndarray:
        moved = dice.choice(_RANKS, n, p=other) - dice.choice(_RANKS, n, p=one)
        return np.where(dice.random(n) < same, 0.0, moved)

    return draw


def _hits(gained: float, lost: float) -> Draw:
    return lambda dice, n: dice.choice([1.0, -1.0, 0.0], n, p=_thirds(gained, lost))


def _thirds(gained: float, lost: float) -> list[float]:
    return [gained, lost, 1 - gained - lost]


def _normal(mean: float, ties: float) -> Draw:
    def draw(dice: np.random.Generator, n: int) -> np.ndarray:
        moved = dice.normal(mean, 0.2, n).clip(-1, 1)
        return np.where(dice.random(n) < ties, 0.0, moved)

    return draw


def _thirds_of_recall(dice: np.random.Generator, n: int) -> np.ndarray:
    values = [0, 1 / 3, -1 / 3, 1 / 2, -1 / 2, 1, -1]
    return dice.choice(values, n, p=[0.4, 0.12, 0.12, 0.1, 0.1, 0.08, 0.08])


def _heavy(dice: np.random.Generator, n: int) -> np.ndarray:
    return (0.05 * dice.standard_t(3, n)).clip(-1, 1)


def _rare_disasters(dice: np.random.Generator, n: int) -> np.ndarray:
    return np.where(dice.random(n) < 0.9, 0.05, -0.45)


def _mixture(dice: np.random.Generator, n: int) -> np.ndarray:
    losses = dice.normal(-0.5, 0.05, n)
    return np.where(dice.random(n) < 0.1, losses, dice.normal(0, 0.05, n))


SYMMETRIC: dict[str, Draw] = {
    "nDCG, 30 % ties": _normal(0.0, 0.3),
    "nDCG, no ties": _normal(0.0, 0.0),
    "reciprocal ranks, half unchanged": _reciprocal(0.5, _HARD, _HARD),
    "reciprocal ranks, independent": _reciprocal(0.0, _HARD, _HARD),
    "recall in thirds and halves": _thirds_of_recall,
    "many small changes, some large": _heavy,
}
SHIFTED: dict[str, Draw] = {
    "nDCG, better by 0.05": _normal(0.05, 0.0),
    "nDCG, better, 30 % ties": _normal(0.05, 0.3),
    "reciprocal ranks, better": _reciprocal(0.2, _HARD, _EASY),
}
SKEWED: dict[str, Draw] = {
    "many small gains, few disasters": _rare_disasters,
    "a tenth lose half": _mixture,
    "beta, few large": lambda dice, n: dice.beta(0.3, 6, n),
    "exponential losses": lambda dice, n: -dice.exponential(0.1, n).clip(0, 1),
    "one in twenty gains": lambda dice, n: (
        (dice.random(n) < 0.05) * dice.choice([1 / 3, 1 / 2, 1], n)
    ),
}
# Their differences have no skew, but few samples of them look so.
SPARSE: dict[str, Draw] = {
    "reciprocal ranks, 90 % unchanged": _reciprocal(0.9, _HARD, _HARD),
}
SIZES = (10, 20, 30, 50, 200)
MANY = 30


def coverage(draws: int) -> Iterator[Figure]:
    """How often intervals of 95 % hold what is true."""
    dice = np.random.default_rng(1)
    for n in SIZES:
        rates = np.linspace(0.05, 0.95, 19)
        held = [_wilson_holds(dice, n, rate, draws // 4) for rate in rates]
        yield Figure("0/1 scores, over p", n, float(np.mean(held)), draws, 0.92)
        pairs = [(gain, loss) for gain in _RATES for loss in _RATES]
        held = [
            _holds(dice, _hits(*pair), pair[0] - pair[1], n, draws // 4, binary=True)
            for pair in pairs
        ]
        yield Figure(
            "difference of 0/1 scores, over p", n, float(np.mean(held)), draws, 0.92
        )
    for name, draw in {**SYMMETRIC, **SPARSE, **SHIFTED, **SKEWED}.items():
        mean = 0.0 if name in {**SYMMETRIC, **SPARSE} else _mean(dice, draw)
        for n in SIZES:
            share = _holds(dice, draw, mean, n, draws)
            bar = (0.93, 0.99 if n >= MANY else 1.0)
            bar = (0.0, 1.0) if name in {**SKEWED, **SPARSE} else bar
            yield Figure(name, n, share, draws, *bar)


_RATES = (0.02, 0.05, 0.1, 0.2, 0.4)


def _mean(dice: np.random.Generator, draw: Draw) -> float:
    return float(np.mean([draw(dice, 500_000).mean() for _ in range(8)]))


def _holds(
    dice: np.random.Generator,
    draw: Draw,
    mean: float,
    n: int,
    draws: int,
    *,
    binary: bool = False,
) -> float:
    held = 0
    for _ in range(draws):
        found = difference_interval(draw(dice, n), binary=binary)
        held += found is not None and found.low <= mean <= found.high
    return held / draws


def _wilson_holds(dice: np.random.Generator, n: int, rate: float, draws: int) -> float:
    held = 0
    for scores in (dice.random((draws, n)) < rate).astype(float):
        found = mean_interval(scores, binary=True)
        held += found is not None and found.low <= rate <= found.high
    return held / draws


def false_findings(draws: int) -> Iterator[Figure]:
    """How often a test at 0.05 finds a difference that is not there."""
    dice = np.random.default_rng(2)
    for name, draw in {**SYMMETRIC, **SPARSE, **SKEWED}.items():
        mean = _mean(dice, draw) if name in SKEWED else 0.0
        high = 1.0 if name in SKEWED else 0.055
        for n in SIZES:
            samples = np.array([draw(dice, n) - mean for _ in range(draws)])
            found = sum(
                int((sign_flip(part) <= _LEVEL).sum())
                for part in np.array_split(samples, -(-draws // 500))
            )
            yield Figure(f"sign-flip: {name}", n, found / draws, draws, high=high)
            found = sum(t_test(sample).p <= _LEVEL for sample in samples)
            # With few queries and many ties, t is near its level, not below it.
            bar = high if n >= MANY else 1.0
            yield Figure(f"t test: {name}", n, found / draws, draws, high=bar)
    for split in (0.05, 0.1, 0.3):
        for n in SIZES:
            samples = (_hits(split, split)(dice, n) for _ in range(draws))
            found = sum(mcnemar(sample) <= _LEVEL for sample in samples)
            yield Figure(
                f"McNemar: {2 * split:g} differ", n, found / draws, draws, high=0.055
            )


def family_errors(draws: int) -> Iterator[Figure]:
    """How often 10 equal systems have any that is found to differ."""
    dice = np.random.default_rng(3)
    for n in (12, 50, 200):
        found = {"MaxT, 9 against a baseline": 0, "Holm, 9 against a baseline": 0}
        found["Holm, all 45 pairs"] = 0
        upper = np.triu_indices(10, 1)
        for _ in range(draws):
            # Queries are hard or easy for all; what is left is each system's own.
            scores = dice.beta(2, 2, n) + dice.normal(0, 0.15, (10, n))
            against = scores[1:] - scores[0]
            pairs = holm(sign_flip_pairs(scores)[upper])
            for name, p in zip(
                found, (max_t(against), holm(sign_flip(against)), pairs), strict=True
            ):
                found[name] += bool((p <= _LEVEL).any())
        for name, count in found.items():
            yield Figure(name, n, count / draws, draws, high=0.055)


def main() -> int:
    """Print every figure; the exit code is 1 when a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws")
    part = 10 if parser.parse_args().quick else 1
    missed = 0
    for title, figures in (
        ("coverage of 95 % intervals", coverage(2_000 // part)),
        ("false findings at 0.05", false_findings(20_000 // part)),
        ("any false finding among 10 systems", family_errors(10_000 // part)),
    ):
        print(title, flush=True)
        for figure in figures:
            print(figure, flush=True)
            missed += figure.missed
    print(f"{missed} bars missed" if missed else "all bars reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
