"""Whether two boards order the same runs alike."""

import numpy as np
import pytest

import karat
from karat.extend import UsageError

QUERIES = [f"q{n}" for n in range(40)]


def board(strict: float, size: int = 40, names: str = "abcd") -> karat.Leaderboard:
    """Runs that are the better, the earlier their letter; strict gold has them less."""
    dice = np.random.default_rng(int(strict * 10) + size)
    runs = {
        name: {
            query: ["a", "x"] if dice.random() < chance else ["x", "y"]
            for query in QUERIES[-size:]
        }
        for name, chance in zip(names, (0.9, 0.6, 0.3, 0.1), strict=True)
    }
    gold = {query: ["a"] for query in QUERIES[-size:]}
    return karat.leaderboard(runs, gold=gold, metrics=["rr", "unjudged@2"])


def test_boards_of_the_same_runs_are_compared_by_name() -> None:
    one, other = board(0.9), board(0.5, names="abdc")
    same = karat.rank_correlation(one, one)
    assert (same.tau.value, same.tau_ap.value, same.rbo.value) == (1, 1, 1)
    assert (same.runs, same.queries) == (("a", "b", "c", "d"), (40,))
    swapped = karat.rank_correlation(one, other, metric="rr")
    assert swapped.tau.value == pytest.approx(2 / 3)
    assert swapped.tau_ap.value == pytest.approx(7 / 9)
    assert swapped.rbo.value == pytest.approx(1 - 0.1 * 0.81 / 3)
    for part in (swapped.tau, swapped.tau_ap, swapped.rbo):
        assert part.interval is not None
        assert part.interval.low <= part.value <= part.interval.high
    assert str(swapped).startswith("order of 4 runs on 40 queries\n")
    # Of what is not judged, less is better.
    turned = karat.rank_correlation(one, one, other_metric="unjudged@2")
    assert turned.tau.value == 1


def test_boards_may_have_queries_of_their_own() -> None:
    one = board(0.9)
    half = karat.Leaderboard(
        {
            name: karat.evaluate(
                {
                    f"other {q}": ["a"] if n < size else ["x"]
                    for n, q in enumerate("pqrs")
                },
                gold={f"other {q}": ["a"] for q in "pqrs"},
                metrics=["rr"],
            )
            for name, size in (("a", 4), ("b", 3), ("d", 1))
        }
    )
    found = karat.rank_correlation(one, half)
    assert (found.runs, found.queries) == (("a", "b", "d"), (40, 4))
    assert found.tau.value == 1
    with pytest.raises(UsageError, match="two runs or more that both boards have"):
        karat.rank_correlation(one, karat.Leaderboard({"a": one["a"]}))
