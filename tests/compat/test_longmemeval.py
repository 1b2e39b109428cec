"""The LongMemEval front gives the original's three numbers."""

import json
from collections.abc import Mapping
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from karat import KaratError
from karat.compat import longmemeval
from karat.compat.longmemeval import (
    evaluate_retrieval,
    evaluate_retrieval_turn2session,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "longmemeval.json"
CASES = json.loads(GOLDEN.read_text("utf-8"))["cases"]
TURNS = st.sampled_from(["a_1", "a_2", "b_1", "b_x_1", "b_x_2", "c_1", "lone"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_vector_of_the_original_is_met(case: Mapping[str, Any]) -> None:
    scores = getattr(longmemeval, case["metric"])(**case["inputs"], k=case["k"])
    expected = [case["expected"][n] for n in ("recall_any", "recall_all", "ndcg_any")]
    assert scores == pytest.approx(expected, abs=1e-12)


def dcg(relevant: list[bool]) -> float:
    return sum(1 / log2(max(rank, 2)) for rank, hit in enumerate(relevant, 1) if hit)


def slowly(
    ranking: list[int], correct: list[str], corpus: list[str], k: int
) -> tuple[float, float, float]:
    """The scores by their definitions."""
    top = [corpus[place] for place in ranking[:k]]
    ideal = dcg(sorted((doc in correct for doc in corpus), reverse=True)[:k])
    found = dcg([doc in correct for doc in top][:k])
    return (
        float(not {*top}.isdisjoint(correct)),
        float({*correct} <= {*top}),
        found / ideal if ideal else 0.0,
    )


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[int], list[str], list[str], int]:
    corpus = draw(st.lists(TURNS, max_size=8))
    ranking = draw(st.permutations(range(len(corpus))))
    depth = draw(st.integers(0, len(corpus)))
    correct = draw(st.lists(TURNS, max_size=3))
    return ranking[:depth], correct, corpus, draw(st.integers(-3, 10))


@given(questions())
def test_scores_are_what_sets_loops_and_slices_give(
    question: tuple[list[int], list[str], list[str], int],
) -> None:
    assert evaluate_retrieval(*question) == pytest.approx(slowly(*question), abs=1e-12)


@given(questions())
def test_turns_are_scored_as_the_sessions_of_a_deeper_ranking(
    question: tuple[list[int], list[str], list[str], int],
) -> None:
    ranking, correct, corpus, k = question
    sessions = ["_".join(turn.split("_")[:-1]) for turn in corpus]
    wanted = ["_".join(turn.split("_")[:-1]) for turn in correct]
    depths = [
        depth
        for depth in range(k, len(corpus) + 1)
        if len({sessions[place] for place in ranking[:depth]}) >= k
    ]
    # Where the ranking has fewer sessions, the original goes one past the corpus.
    depth = depths[0] if depths else max(k, len(corpus) + 1)
    assert evaluate_retrieval_turn2session(*question) == pytest.approx(
        slowly(ranking, wanted, sessions, depth), abs=1e-12
    )


def test_an_array_of_places_will_do() -> None:
    scores = np.array([0.1, 0.9, 0.5])
    ranking = np.argsort(scores)[::-1]
    corpus = np.array(["a", "b", "c"])
    assert evaluate_retrieval(ranking, {"b"}, corpus, k=1) == (1.0, 1.0, 1.0)


def test_a_mistake_is_said_in_so_many_words() -> None:
    with pytest.raises(KaratError, match="places in corpus_ids, which has 2"):
        evaluate_retrieval([5], ["a"], ["a", "b"])
    with pytest.raises(KaratError, match="k must be an integer, got '5'"):
        evaluate_retrieval([0], ["a"], ["a"], k="5")  # type: ignore[arg-type]
    with pytest.raises(KaratError, match="hashable"):
        evaluate_retrieval([0], [["a"]], ["a"])  # type: ignore[list-item]
