"""What a run adds to others, by hand and by its laws."""

import numpy as np
import pytest

import karat
from karat import complementarity, fuse
from karat.extend import DataError, ParameterError

GOLD = {
    "q1": {"a": 1, "b": 2, "c": 1, "n": 0},
    "q2": {"x": 1},
    "q3": {"n": 0},
}
LEXICAL = {"q1": ["a", "z", "b"], "q2": ["z"]}
DENSE = {"q1": ["c", "a"], "q2": ["z", "x"]}
NOTHING = {"q1": ["z"], "q2": ["y"]}


def test_two_runs_by_hand() -> None:
    found = complementarity({"lexical": LEXICAL, "dense": DENSE}, GOLD, k=2)
    lexical, dense = found.runs
    assert found.queries == 2
    assert lexical.recall == pytest.approx((1 / 3 + 0) / 2)
    assert dense.recall == pytest.approx((2 / 3 + 1) / 2)
    assert found.union == pytest.approx((2 / 3 + 1) / 2)
    assert found.oracle == pytest.approx((2 / 3 + 1) / 2)
    assert lexical.alone == 0.0
    assert dense.alone == pytest.approx((1 / 3 + 1) / 2)
    assert found.overlap == {("lexical", "dense"): pytest.approx(1 / 3)}


def made(
    seed: int,
) -> tuple[dict[str, dict[str, dict[str, float]]], dict[str, list[str]]]:
    dice = np.random.default_rng(seed)
    queries = [f"q{number}" for number in range(40)]
    runs = {
        name: {
            query: {f"d{d}": float(dice.random()) for d in dice.permutation(60)[:20]}
            for query in queries
        }
        for name in ("one", "two", "three")
    }
    gold = {query: [f"d{d}" for d in dice.permutation(60)[:5]] for query in queries}
    return runs, gold


@pytest.mark.parametrize("k", [1, 5, 20])
def test_figures_are_those_of_evaluations(k: int) -> None:
    runs, gold = made(k)
    found = complementarity(runs, gold, k=k)
    metric = f"recall@{k}"
    for row, run in zip(found.runs, runs.values(), strict=True):
        result = karat.evaluate(run, gold=gold, metrics=[metric])
        assert row.recall == pytest.approx(result[metric].mean)
    together = karat.evaluate(fuse(runs), gold=gold, metrics=[metric])
    assert found.fused == pytest.approx(together[metric].mean)
    rest = {name: run for name, run in runs.items() if name != "two"}
    without = karat.evaluate(fuse(rest), gold=gold, metrics=[metric])
    assert found.runs[1].fused_gain == pytest.approx(
        together[metric].mean - without[metric].mean
    )
    assert found.runs[1].alone == pytest.approx(
        found.union - complementarity(rest, gold, k=k).union
    )
    best = max(row.recall for row in found.runs)
    assert best <= found.oracle <= found.union <= 1.0
    for row in found.runs:
        assert row.interval is not None
        assert row.interval.low <= row.alone <= row.interval.high


def test_a_copy_adds_nothing_and_takes_all_that_was_its_own() -> None:
    runs, gold = made(7)
    found = complementarity({"one": runs["one"], "copy": runs["one"]}, gold)
    assert [row.alone for row in found.runs] == [0.0, 0.0]
    assert found.union == found.oracle == found.runs[0].recall
    assert found.overlap["one", "copy"] == 1.0


def test_runs_that_find_nothing_have_no_overlap() -> None:
    found = complementarity([NOTHING, NOTHING], GOLD, k=5)
    assert found.union == 0.0
    assert all(map(np.isnan, found.overlap.values()))


def test_a_threshold_says_what_is_relevant() -> None:
    found = complementarity([LEXICAL, DENSE], GOLD, k=3, threshold=2)
    assert found.queries == 1
    assert [row.recall for row in found.runs] == [1.0, 0.0]


def test_the_table_names_runs_and_what_they_make_together() -> None:
    text = complementarity({"lexical": LEXICAL, "dense": DENSE}, GOLD).table().as_text()
    for word in ("lexical", "dense", "recall@10", "only here", "union of all", "fused"):
        assert word in text


def test_gold_without_relevant_documents_is_an_error() -> None:
    with pytest.raises(DataError, match="no query has relevant documents"):
        complementarity([LEXICAL, DENSE], {"q1": {"a": 0}})
    with pytest.raises(ParameterError, match="k must be an integer >= 1"):
        complementarity([LEXICAL, DENSE], GOLD, k=0)
