"""Weights by cross-validation: found where there is something, honest where not."""

import numpy as np
import pytest

import karat
from karat import Run, fuse, search_weights
from karat.extend import DataError, ParameterError

QUERIES = [f"q{number}" for number in range(60)]
GOLD = {query: ["d0"] for query in QUERIES}


def noisy(quality: float, seed: int) -> dict[str, dict[str, float]]:
    dice = np.random.default_rng(seed)
    scores = dice.normal(0, 1, (60, 10))
    scores[:, 0] += quality
    return {
        query: {f"d{number}": float(score) for number, score in enumerate(row)}
        for query, row in zip(QUERIES, scores, strict=True)
    }


def reciprocal_ranks(run: Run) -> dict[str, float]:
    result = karat.evaluate(run, gold=GOLD, metrics=["rr"])
    return dict(zip(QUERIES, result["rr"].scores.tolist(), strict=True))


def mean(run: Run) -> float:
    return float(np.mean([*reciprocal_ranks(run).values()]))


def test_the_better_run_weighs_more() -> None:
    runs = {"good": noisy(2.5, 1), "poor": noisy(0.3, 2)}
    found = search_weights(runs, reciprocal_ranks)
    assert found.weights["good"] > found.weights["poor"]
    assert sum(found.weights.values()) == pytest.approx(1.0)
    assert found.score >= found.even_score
    assert found.score == pytest.approx(mean(found.run))
    assert found.held_out_score == pytest.approx(mean(found.held_out))
    again = fuse(runs, "sum", weights=[*found.weights.values()])
    assert mean(again) == pytest.approx(found.score)
    assert len(found.folds) == 5


def test_what_is_chosen_on_noise_does_not_look_good_on_other_queries() -> None:
    runs = [noisy(0.0, seed) for seed in range(4)]
    found = search_weights(runs, reciprocal_ranks, step=0.25)
    assert found.score > found.held_out_score
    assert found.held_out_score < 0.36


def test_the_same_every_time_and_with_another_method() -> None:
    runs = [noisy(2.0, 1), noisy(1.0, 2)]
    one, other = (search_weights(runs, reciprocal_ranks, "rrf") for _ in range(2))
    assert (one.weights, one.folds) == (other.weights, other.folds)


def test_queries_without_a_score_are_not_used() -> None:
    def partly(run: Run) -> dict[str, float]:
        scored = reciprocal_ranks(run)
        return {q: float("nan") if q == "q3" else s for q, s in scored.items()}

    found = search_weights([noisy(2.0, 1), noisy(1.0, 2)], partly)
    assert np.isfinite(found.held_out_score)
    with pytest.raises(DataError, match="5 folds take at least as many queries"):
        search_weights([noisy(2.0, 1), noisy(1.0, 2)], lambda _: {"q1": 1.0})


def test_steps_make_up_a_whole() -> None:
    with pytest.raises(ParameterError, match="1 by a whole number"):
        search_weights([noisy(2.0, 1), noisy(1.0, 2)], reciprocal_ranks, step=0.3)
