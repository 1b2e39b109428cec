"""The chance that harmless words would do as well, against other ways to count it."""

from itertools import combinations, product

import pytest
from hypothesis import given, settings, strategies as st

from karat.judging.noise import Tally, by_chance, holm


@st.composite
def tallies(draw: st.DrawFn, most: int = 5) -> Tally:
    tried, harmless = draw(st.integers(1, most)), draw(st.integers(0, 3))
    worked = draw(st.integers(0, tried))
    return Tally(worked, tried, draw(st.integers(0, harmless)), harmless)


@given(tallies(most=30))
@settings(deadline=None)
def test_one_passage_is_the_exact_test_of_fisher(tally: Tally) -> None:
    from scipy.stats import fisher_exact  # noqa: PLC0415

    worked, tried, wavered, harmless = tally
    table = [[worked, tried - worked], [wavered, harmless - wavered]]
    expected = fisher_exact(table, alternative="greater").pvalue
    assert by_chance([tally]) == pytest.approx(expected, abs=1e-12)


@given(st.lists(tallies(most=3), min_size=1, max_size=3))
@settings(deadline=None)
def test_several_passages_are_shuffled_each_by_itself(passages: list[Tally]) -> None:
    def shuffles(tally: Tally) -> list[int]:
        size = tally.tried + tally.harmless
        ways = combinations(range(size), tally.worked + tally.wavered)
        return [sum(place < tally.tried for place in way) for way in ways]

    seen = sum(tally.worked for tally in passages)
    every = [*product(*map(shuffles, passages))]
    expected = sum(sum(way) >= seen for way in every) / len(every)
    assert by_chance(passages) == pytest.approx(expected, abs=1e-12)


def test_nothing_that_worked_is_no_evidence() -> None:
    assert by_chance([Tally(0, 4, 0, 3)] * 10) == 1.0
    assert by_chance([]) == 1.0


def test_a_judge_that_always_wavers_is_no_evidence() -> None:
    assert by_chance([Tally(4, 4, 3, 3)] * 10) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
@settings(deadline=None)
def test_the_correction_equals_statsmodels(chances: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests  # noqa: PLC0415

    expected = multipletests(chances, method="holm")[1]
    assert holm(chances) == pytest.approx([*expected], abs=1e-12)
