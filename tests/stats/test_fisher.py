"""The chance that harmless words would do as well, against other ways to count it."""

from itertools import combinations, product

import pytest
from hypothesis import given, settings, strategies as st

from karat.stats.exact_tests import Stratum, fisher_test


@st.composite
def tallies(draw: st.DrawFn, most: int = 5) -> Stratum:
    tried, harmless = draw(st.integers(1, most)), draw(st.integers(0, 3))
    worked = draw(st.integers(0, tried))
    return Stratum(worked, tried, draw(st.integers(0, harmless)), harmless)


@given(tallies(most=30))
@settings(deadline=None)
def test_one_passage_is_the_exact_test_of_fisher(tally: Stratum) -> None:
    from scipy.stats import fisher_exact  # noqa: PLC0415

    worked, tried, wavered, harmless = tally
    table = [[worked, tried - worked], [wavered, harmless - wavered]]
    expected = fisher_exact(table, alternative="greater").pvalue
    assert fisher_test([tally]) == pytest.approx(expected, abs=1e-12)


@given(st.lists(tallies(most=3), min_size=1, max_size=3))
@settings(deadline=None)
def test_several_passages_are_shuffled_each_by_itself(passages: list[Stratum]) -> None:
    def shuffles(tally: Stratum) -> list[int]:
        size = tally.treatments + tally.controls
        ways = combinations(range(size), tally.successes + tally.control_successes)
        return [sum(place < tally.treatments for place in way) for way in ways]

    seen = sum(tally.successes for tally in passages)
    every = [*product(*map(shuffles, passages))]
    expected = sum(sum(way) >= seen for way in every) / len(every)
    assert fisher_test(passages) == pytest.approx(expected, abs=1e-12)


def test_nothing_that_worked_is_no_evidence() -> None:
    assert fisher_test([Stratum(0, 4, 0, 3)] * 10) == 1.0
    assert fisher_test([]) == 1.0


def test_a_judge_that_always_wavers_is_no_evidence() -> None:
    assert fisher_test([Stratum(4, 4, 3, 3)] * 10) == 1.0
