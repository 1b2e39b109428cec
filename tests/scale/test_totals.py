"""Totals are the same bits for any partitioning, and agree with what arrays say."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from karat.extend import UsageError
from karat.scale import Totals, add_totals, total_of
from karat.stats import mean_interval

SCORES = st.lists(
    st.one_of(st.floats(-1000, 1000), st.floats(0, 1), st.just(math.nan)), max_size=60
)


@given(SCORES, st.integers(1, 9), st.randoms())
def test_any_partitioning_adds_up_to_the_same_bits(
    scores: list[float], parts: int, draw: object
) -> None:
    whole = total_of(np.array(scores))
    mixed = sorted(scores, key=lambda _: draw.random())  # type: ignore[attr-defined]
    cuts = [total_of(np.array(mixed[at::parts])) for at in range(parts)]
    assert add_totals(cuts) == whole
    defined = [Fraction(score) for score in scores if not math.isnan(score)]
    if defined:
        exact = float(sum(defined) / len(defined))
        assert whole.mean == pytest.approx(exact, rel=1e-14, abs=1e-20)
    assert (whole.n, whole.undefined) == (len(defined), len(scores) - len(defined))


@pytest.mark.parametrize("binary", [True, False])
def test_intervals_are_those_of_the_scores_themselves(binary: bool) -> None:  # noqa: FBT001
    draw = np.random.default_rng(4)
    scores = draw.random(500)
    scores = (scores < 0.3).astype(float) if binary else scores
    expected = mean_interval(scores, binary=binary)
    found = total_of(scores, binary=binary).interval
    assert found is not None
    assert expected is not None
    assert found.method == expected.method
    assert [*found] == pytest.approx([*expected], abs=1e-12)


def test_few_graded_scores_tell_of_no_interval() -> None:
    assert total_of(np.array([0.1, 0.5])).interval is None
    assert total_of(np.array([])).interval is None
    assert math.isnan(total_of(np.array([math.nan])).mean)


def test_scores_that_cannot_be_added_exactly_are_refused() -> None:
    with pytest.raises(UsageError, match="beyond a million"):
        total_of(np.array([1e9]))


def test_a_person_reads_a_table() -> None:
    totals = Totals("bm25", 3, 1, {"rr": total_of(np.array([1.0, 0.5, math.nan]))})
    assert "bm25: 3 queries" in str(totals)
    assert "0.7500" in str(totals)
    assert totals.means == {"rr": 0.75}
    assert [*totals] == ["rr"]
    assert len(totals) == 1
    assert totals["rr"].n == 2
