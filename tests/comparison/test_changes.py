"""Which kind of change it was: planted faults are told apart, and parts add up."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import karat
from karat.diagnosis.headroom import gains_of, headroom
from tests.comparison.planted import Planted, planted

ids = st.sampled_from("abcdefgh")


def found_kind(case: Planted) -> str:
    result = karat.compare(case.before, case.after, gold=case.gold, metrics=["ndcg@10"])
    return result.changes["candidate"].kind


@pytest.mark.slow
def test_planted_faults_are_told_apart() -> None:
    cases = [*planted(400)]
    wrong = [case.fault for case in cases if found_kind(case) != case.kind]
    assert len(wrong) <= 0.05 * len(cases), wrong


def test_each_planted_fault_once() -> None:
    assert [found_kind(case) == case.kind for case in planted(4, seed=5)] == [True] * 4


@settings(max_examples=200, deadline=None)
@given(
    run=st.lists(ids, unique=True),
    grades=st.dictionaries(ids, st.integers(0, 3), min_size=1),
    k=st.integers(1, 6),
)
def test_the_parts_of_the_headroom_add_up(
    run: list[str], grades: dict[str, int], k: int
) -> None:
    result = karat.evaluate(
        {"q": run}, gold={"q": grades}, metrics=[f"ndcg@{k}"], force=True
    )
    parts = headroom(gains_of(result.matches["id"], np.array([0])), k)
    score = result[f"ndcg@{k}"].scores[0]
    if np.isnan(score):
        assert np.isnan(parts.score[0])
        return
    assert parts.score[0] == pytest.approx(score, abs=1e-12)
    values = [part[0] for part in parts]
    assert sum(values) == pytest.approx(1, abs=1e-12)
    assert min(values) >= -1e-12


def test_the_kind_of_change_has_the_depth_of_its_metric() -> None:
    """Deep items are lost: the whole ranking loses coverage, its top does not."""
    gold = {f"q{n}": {f"d{i}": 1 for i in range(20)} for n in range(40)}
    deep = {query: [f"d{i}" for i in range(20)] for query in gold}
    cut = {query: row[:12] for query, row in deep.items()}
    found = karat.compare(deep, cut, gold=gold, metrics=["recall", "ndcg@10", "ap"])
    (whole,), (top,) = found.changes.values(), found.other_depths["candidate"]
    assert (whole.k, whole.kind, top.k, top.kind) == (None, "coverage", 10, "none")
    lost = "320 relevant items no longer retrieved, 0 newly found"
    assert whole.sentence == f"in the whole ranking: coverage regression: {lost}"
    assert top.sentence == (
        "at depth 10: no change of coverage or ranking beyond chance: 0 relevant items "
        "no longer retrieved, 0 newly found (in the whole ranking 320 and 0)"
    )
    assert (whole.lost, top.lost) == (320, 0)
    assert {whole.sentence, top.sentence} < {*found.summary().notes}
    table = found.headroom_table()
    assert table is not None
    assert table.columns[1:] == ["nDCG", "ordering gap", "not retrieved"]
    # Each candidate has its own, and depths of which the same is true share a line.
    both = karat.compare(
        deep, {"cut": cut, "same": deep}, gold=gold, metrics=["recall", "recall@15"]
    )
    assert [change.kind for change in both.changes.values()] == ["coverage", "none"]
    notes = both.summary().notes
    same = "no change of coverage or ranking beyond chance"
    assert f"same: in the whole ranking, at depth 15: {same}: 0 relevant" in str(notes)


def test_parts_that_are_beyond_chance_only_together_are_mixed() -> None:
    """Five queries gain an item and five a better order: p is 0.06 of each alone."""
    gold = {f"q{n}": ["a", "b"] for n in range(10)}
    old = {q: ["a"] if n % 2 else ["x", "a"] for n, q in enumerate(gold)}
    new = {q: ["a", "b"] if n % 2 else ["a", "x"] for n, q in enumerate(gold)}
    change = karat.compare(old, new, gold=gold, metrics=["rr"]).changes["candidate"]
    assert change.kind == "mixed"
    assert change.sentence == (
        "in the whole ranking: coverage improvement and ranking improvement: "
        "0 relevant items no longer retrieved, 5 newly found, the first relevant item "
        "rose from rank 2 to 1 (median) on 5 queries"
    )


def test_first_ranks_follow_items_that_are_new() -> None:
    gold = {f"q{n}": ["a", "b"] for n in range(10)}
    old = {query: ["x", "y", "a"] for query in gold}
    new = {query: ["b", "y", "a"] for query in gold}
    change = karat.compare(old, new, gold=gold, metrics=["rr"]).changes["candidate"]
    assert (change.kind, change.by_ranking[0]) == ("coverage", 0.0)
    assert (change.first_up, change.first_ranks) == (10, (3, 1))


def test_items_are_counted_at_each_depth() -> None:
    gold = {f"q{n}": ["a", "b"] for n in range(20)}
    before = {query: ["x", "y", "a"] for query in gold}
    after = {query: ["a", "b", "x"] for query in gold}
    metrics = ["recall@1", "recall@2", "recall"]
    found = karat.compare(before, after, gold=gold, metrics=metrics)
    kinds = [found.changes["candidate"], *found.other_depths["candidate"]]
    assert [(one.k, one.lost, one.gained) for one in kinds] == [
        (1, 0, 20),
        (2, 0, 40),
        (None, 0, 20),
    ]
    notes = found.summary().notes
    for depth, count in (("at depth 2", 40), ("in the whole ranking", 20)):
        (note,) = (line for line in notes if line.startswith(depth))
        assert f"0 relevant items no longer retrieved, {count} newly found" in note


@pytest.mark.shared_data
def test_a_reranker_changes_the_ranking(shared_data: Path) -> None:
    folder = f"{shared_data}/cast21"
    result = karat.compare(
        f"{folder}/org_convdr.run.gz",
        f"{folder}/org_convdr_bert.run.gz",
        gold=f"{folder}/qrels.gz",
        metrics=["ndcg@10"],
    )
    (change,) = result.changes.values()
    assert change.kind == "ranking"
    assert "newly found (in the whole ranking 0 and 0), the first" in change.sentence


@pytest.mark.shared_data
def test_another_retriever_changes_both(shared_data: Path) -> None:
    folder = f"{shared_data}/musique100"
    result = karat.compare(
        f"{folder}/run.bm25.trec",
        f"{folder}/run.minilm.trec",
        gold=f"{folder}/qrels.trec",
        metrics=["recall@5", "recall"],
    )
    assert result["recall@5"].baseline_mean == pytest.approx(0.498, abs=0.001)
    assert result["recall"].candidate_mean == pytest.approx(0.835, abs=0.001)
    (change,) = result.changes.values()
    assert change.kind == "mixed"
    for _, interval in (change.by_coverage, change.by_ranking):
        assert interval is not None
