"""Which kind of change it was: planted faults are told apart, and parts add up."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import karat
from karat.diagnosis.headroom import gains_of, headroom
from karat.extend import MismatchError, Query
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


def change(gained: int = 0, raised: int = 0, **others: int) -> Any:
    """What changes where so many queries gain their item, and so many have it raised.

    An item that is gained is worth 1, and one that is raised from rank 3 to 1 is worth
    0.5; `lost` and `lowered` are the same the other way.
    """
    rows = {
        "gained": (["x"], ["a"]),
        "raised": (["x", "y", "a"], ["a", "y"]),
        "lost": (["a"], ["x"]),
        "lowered": (["a", "y"], ["x", "y", "a"]),
        "same": (["a"], ["a"]),
    }
    counts = {"same": 20, "gained": gained, "raised": raised, **others}
    old, new = {}, {}
    for kind, count in counts.items():
        for number in range(count):
            old[f"{kind} {number}"], new[f"{kind} {number}"] = rows[kind]
    gold = {query: ["a"] for query in old}
    found = karat.compare(old, new, gold=gold, metrics=["ndcg"], force=True)
    return found.changes["candidate"]


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        # One in 16 may be chance, one in 32 is not.
        ({"raised": 5}, "none"),
        ({"raised": 6}, "ranking"),
        ({"gained": 5}, "none"),
        ({"gained": 6}, "coverage"),
        ({"lost": 6}, "coverage"),
        ({"lowered": 6}, "ranking"),
        # Of 10,000 draws 500 are as extreme: p is 0.05 exactly.
        ({"gained": 38, "lost": 22, "same": 31}, "coverage"),
        ({"gained": 37, "lost": 23, "same": 31}, "none"),
        # Beside the other, a part of p = 0.25 is noise, and one of 0.125 is not.
        ({"gained": 3, "raised": 10}, "ranking"),
        ({"gained": 4, "raised": 10}, "mixed"),
        ({"gained": 10, "raised": 3}, "coverage"),
        ({"gained": 10, "lowered": 8}, "mixed"),
        # A fifth of the whole change is worth a word, less is not.
        ({"gained": 8, "raised": 4}, "mixed"),
        ({"gained": 9, "raised": 4}, "coverage"),
        ({"gained": 4, "raised": 32}, "mixed"),
        ({"gained": 4, "raised": 34}, "ranking"),
        ({"lost": 4, "lowered": 34}, "ranking"),
        ({"lost": 9, "lowered": 4}, "coverage"),
        ({}, "none"),
    ],
)
def test_a_part_counts_beyond_chance_and_from_a_fifth(
    counts: dict[str, int], kind: str
) -> None:
    assert change(**counts).kind == kind


def test_parts_of_a_change_have_means_and_intervals() -> None:
    found = change(gained=6, raised=10, lost=1)
    assert found.by_coverage[0] == pytest.approx((6 - 1) / 37)
    assert found.by_ranking[0] == pytest.approx(10 * 0.5 / 37)
    for mean, interval in (found.by_coverage, found.by_ranking):
        assert interval is not None
        assert -1 <= interval.low < mean < interval.high <= 1
    few = change(gained=30, lost=2, same=0).by_coverage[1]
    assert few == pytest.approx((0.583549, 0.984700), abs=1e-6)
    assert (found.gained, found.lost) == (6, 1)
    assert (found.first_up, found.first_down) == (16, 1)
    # The first rank before is of those that had one.
    assert found.first_ranks == (3, 1)
    assert found.sentence == (
        "in the whole ranking: coverage improvement and ranking improvement: "
        "1 relevant items no longer retrieved, 6 newly found, the first relevant item "
        "rose from rank 3 to 1 (median) on 16 queries"
    )
    only = change(gained=7)
    assert np.isnan(only.first_ranks[0])
    assert only.first_ranks[1] == 1
    assert "rank 1" not in only.sentence
    fallen = change(lowered=9)
    assert (fallen.first_up, fallen.first_down, fallen.first_ranks) == (0, 9, (1, 3))
    assert fallen.sentence.endswith(
        "ranking regression: coverage unchanged, the first relevant item slipped from "
        "rank 1 to 3 (median) on 9 queries"
    )
    assert change(raised=9, lost=9).sentence.startswith(
        "in the whole ranking: coverage regression and ranking improvement: 9 relevant "
    )


def test_nothing_relevant_is_no_change() -> None:
    gold = {f"q{n}": {"a": 0} for n in range(20)}
    run = {query: ["a"] for query in gold}
    (found,) = karat.compare(run, run, gold=gold, metrics=["ndcg"]).changes.values()
    assert found.kind == "none"
    assert np.isnan([found.by_coverage[0], *found.baseline.values()]).all()
    assert (found.by_coverage[1], found.gained, found.first_up) == (None, 0, 0)


def test_equal_digests_of_other_items_are_refused() -> None:
    gold = {"q1": ["a", "b"], "q2": ["a"]}
    one = karat.evaluate(gold, gold=gold, metrics="rr", name="one")
    for other in (
        {"q1": ["a", "c"], "q2": ["a"]},
        {"q1": ["a"], "q2": ["a"]},
        {"q1": ["a", "b"], "q2": ["a", "c"]},
    ):
        two = karat.evaluate(other, gold=other, metrics="rr", name="two")
        two = replace(two, fingerprints=one.digests)
        with pytest.raises(MismatchError, match="list other gold items"):
            karat.compare(one, two)


def test_a_tag_is_a_finding_where_one_in_ten_may_be_false() -> None:
    """Five wins have p = 1/16, four have 1/8."""
    for count, verdict in ((5, "better"), (4, "undecided")):
        queries = {f"q{n}": Query(f"q{n}", tags=("t",)) for n in range(20)}
        gold = {query: ["a"] for query in queries}
        old = {query: ["x", "a"] for query in gold}
        new = old | {query: ["a"] for query in [*gold][:count]}
        options: dict[str, Any] = {"gold": gold, "metrics": "rr", "queries": queries}
        found = karat.compare(old, new, by_tag=True, **options)
        (tag,) = found.slices["t"]
        assert (tag.verdict, tag.adjusted_p) == (verdict, 2.0 ** (1 - count))
        assert (tag.n, tag.left_out, found["rr"].verdict) == (20, 0, "undecided")
        # Where all of a tag differs by less than the margin, that is said of it.
        held = karat.compare(old, new, by_tag=True, margin={"rr": 0.9}, **options)
        assert held.slices["t"][0].verdict == "no different"


def test_twenty_queries_that_changed_most_are_kept() -> None:
    gold = {f"q{n:02}": ["a"] for n in range(30)}
    old = {query: ["a"] for query in gold}
    new = {q: [*"vwxyz"[: (n % 5) + 1], "a"] for n, q in enumerate(gold)}
    new |= {query: ["a"] for query in ("q00", "q05")}
    found = karat.compare(old, new, gold=gold, metrics="rr")
    assert len(found.movers) == 20
    drops = [mover.difference for mover in found.movers]
    assert drops == sorted(drops)
    # Those that changed alike stay in their order.
    assert [mover.query for mover in found.movers][:3] == ["q04", "q09", "q14"]
    assert found.movers[0].ranks == {"a": (1, 6)}
    assert len(found.movers_table().rows) == 10
    few = karat.compare(old, {**old, "q07": ["x", "a"]}, gold=gold, metrics="rr")
    assert [(m.query, m.ranks) for m in few.movers] == [("q07", {"a": (1, 2)})]


def test_queries_in_another_order_move_by_their_own_ranks() -> None:
    gold = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
    turned = dict(reversed(gold.items()))
    old, new = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}, {"q1": ["x", "a"], "q2": ["b"]}
    one = karat.evaluate(old, gold=gold, metrics="rr", name="one")
    two = karat.evaluate(new, gold=turned, metrics="rr", name="two")
    movers = karat.compare(one, two).movers
    assert {mover.query: mover.ranks for mover in movers} == {
        "q1": {"a": (1, 2)},
        "q3": {"c": (1, None)},
    }
    bare = replace(two, matches={}, fingerprints=two.digests, matchers={})
    for pair in ((one, bare), (bare, one)):
        assert {*map(str, (m.ranks for m in karat.compare(*pair).movers))} == {"{}"}


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
