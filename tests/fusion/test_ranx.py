"""Fusion equals ranx where definitions agree; every disagreement has a test."""

import numpy as np
import pytest
import ranx

from karat import fuse
from karat.extend import Policies

# numba warns of its own casts in ranx.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:unsafe cast")]

Scores = dict[str, dict[str, float]]


def made(seed: int, queries: int = 6, depth: int = 15) -> list[Scores]:
    """Runs over the same queries, without equal scores, negative ones among them."""
    dice = np.random.default_rng(seed)
    return [
        {
            f"q{q}": {
                f"d{d}": float(dice.normal()) for d in dice.permutation(40)[:depth]
            }
            for q in range(queries)
        }
        for _ in range(4)
    ]


def ours(runs: list[Scores], method: str, **options: object) -> Scores:
    fused = fuse(runs, method, **options)  # type: ignore[arg-type]
    return {
        query: {str(d.id): float(d.score or 0.0) for d in documents}
        for query, documents in fused.rankings(Policies())
    }


def theirs(
    runs: list[Scores], method: str, norm: str | None, **params: object
) -> Scores:
    made = [ranx.Run(run, name=str(place)) for place, run in enumerate(runs)]
    fused = ranx.fuse(made, norm=norm, method=method, params=params)
    return {query: dict(found.items()) for query, found in fused.run.items()}


def same(one: Scores, other: Scores) -> bool:
    assert {*one} == {*other}
    return all(
        one[query] == pytest.approx(other[query], rel=1e-9, abs=1e-9) for query in one
    )


NORMS = {"min-max": "min-max", "z": "zmuv", "sum": "sum", "rank": "rank", "none": None}


@pytest.mark.parametrize("method", ["sum", "mnz", "anz", "min", "max", "med"])
@pytest.mark.parametrize("norm", NORMS)
def test_score_fusions_equal_ranx(method: str, norm: str) -> None:
    runs = made(1)
    assert same(ours(runs, method, norm=norm), theirs(runs, method, NORMS[norm]))


@pytest.mark.parametrize("k", [10, 60])
def test_reciprocal_rank_fusion_equals_ranx(k: int) -> None:
    runs = made(2)
    assert same(ours(runs, "rrf", k=k), theirs(runs, "rrf", None, k=k))


def test_borda_equals_ranx() -> None:
    runs = made(3)
    assert same(ours(runs, "borda"), theirs(runs, "bordafuse", None))


def test_weighted_sums_equal_ranx() -> None:
    runs, weights = made(4), [0.5, 0.0, 2.0, 1.0]
    weighted = ours(runs, "sum", weights=weights)
    assert same(weighted, theirs(runs, "wsum", "min-max", weights=weights))


def test_disagreement_equal_scores_in_min_max_are_1_not_0() -> None:
    # A run with one document for a query says that it is its best: with 0 it would
    # count as not found.
    runs: list[Scores] = [{"q": {"a": 5.0}}, {"q": {"b": 2.0, "c": 1.0}}]
    assert ours(runs, "sum")["q"] == {"a": 1.0, "b": 1.0, "c": 0.0}
    assert theirs(runs, "sum", "min-max")["q"] == {"a": 0.0, "b": 1.0, "c": 0.0}


def test_disagreement_equal_scores_in_sum_norm_share_1_not_0() -> None:
    runs: list[Scores] = [{"q": {"a": 5.0, "b": 5.0}}, {"q": {"c": 2.0, "d": 1.0}}]
    assert ours(runs, "sum", norm="sum")["q"]["a"] == 0.5
    assert theirs(runs, "sum", "sum")["q"]["a"] == 0.0


def test_disagreement_equal_scores_rank_by_id_not_as_sorted() -> None:
    runs: list[Scores] = [{"q": {"a": 1.0, "b": 1.0}}, {"q": {"c": 1.0}}]
    mine, other = ours(runs, "rrf")["q"], theirs(runs, "rrf", None)["q"]
    assert (mine["b"], mine["a"]) == pytest.approx((1 / 61, 1 / 62))
    assert sorted(other.values()) == pytest.approx(sorted(mine.values()))
    assert other["a"] > other["b"]


def test_disagreement_weighted_mnz_weighs_scores_not_their_number() -> None:
    runs: list[Scores] = [{"q": {"a": 4.0, "b": 1.0}}, {"q": {"a": 2.0, "c": 1.0}}]
    weights = [3.0, 1.0]
    mine = ours(runs, "mnz", norm="none", weights=weights)["q"]
    other = theirs(runs, "wmnz", None, weights=weights)["q"]
    assert mine["a"] == (3 * 4 + 2) * 2
    assert other["a"] == (4 + 2) * (3 + 1)


def test_disagreement_runs_may_have_different_queries() -> None:
    runs: list[Scores] = [{"q1": {"a": 2.0}}, {"q2": {"b": 1.0}}]
    assert ours(runs, "rrf") == {"q1": {"a": 1 / 61}, "q2": {"b": 1 / 61}}
    with pytest.raises(AssertionError, match="query ids do not match"):
        theirs(runs, "rrf", None)


def test_disagreement_the_smallest_norm_of_zero_is_found_again() -> None:
    # ranx takes a sum of exactly 0 for "not seen yet" and computes it again: no harm.
    runs: list[Scores] = [{"q": {"a": 1.0, "b": 0.0}}, {"q": {"b": 0.0, "a": 3.0}}]
    assert same(ours(runs, "mnz"), theirs(runs, "mnz", "min-max"))
