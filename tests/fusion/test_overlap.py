"""Rank-biased overlap against its definition, summed term by term."""

from fractions import Fraction
from math import isnan
from random import Random

import pytest

import karat
from karat.extend import MismatchError, ParameterError


def by_definition(one: list[str], two: list[str], p: Fraction) -> Fraction:
    """The infinite sum, agreement below the ends being what it was (equation 32)."""
    short, long = sorted((one, two), key=len)
    s, last = len(short), len(long)

    def agreement(depth: int) -> Fraction:
        found = len({*short[:depth]} & {*long[:depth]})
        whole = len({*short} & {*long[:s]})
        return (found + Fraction(whole * max(depth - s, 0), s)) / depth

    total = sum((p ** (d - 1) * agreement(d) for d in range(1, last + 1)), Fraction(0))
    return (1 - p) * total + p**last * agreement(last)


@pytest.mark.parametrize("seed", range(40))
def test_it_is_what_its_paper_says(seed: int) -> None:
    random = Random(seed)
    names = [f"d{n}" for n in range(30)]
    one, two = (random.sample(names, random.randint(1, 25)) for _ in range(2))
    p = Fraction(random.choice((1, 5, 8, 9)), 10)
    found = karat.rbo({"q": one}, {"q": two}, p=float(p))["q"]
    assert found == pytest.approx(float(by_definition(one, two, p)), abs=1e-12)
    assert found == karat.rbo({"q": two}, {"q": one}, p=float(p))["q"]


def test_the_same_nothing_in_common_and_nothing_at_all() -> None:
    same = {"q": list("abcdef")}
    assert karat.rbo(same, same) == {"q": pytest.approx(1.0)}
    assert karat.rbo(same, {"q": ["x"]}) == {"q": 0.0}
    assert isnan(karat.rbo(same, {"q": []})["q"])
    scored = {"q": {"b": 1.0, "a": 2.0}, "only here": {"z": 1.0}}
    assert karat.rbo({"q": ["a", "b", "b"]}, scored) == {"q": pytest.approx(1.0)}


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(MismatchError, match="no query in common"):
        karat.rbo({"q": ["a"]}, {"r": ["a"]})
    with pytest.raises(ParameterError, match="p must be between 0 and 1"):
        karat.rbo({"q": ["a"]}, {"q": ["a"]}, p=1)
