"""The REMem front gives the original's numbers, and errors where it breaks down."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import karat
from karat import KaratError
from karat.compat import longmemeval, remem
from karat.compat.remem import (
    RememChunk,
    RetrievalMetric,
    RetrievalNDCGAny,
    RetrievalRecall,
    RetrievalRecallAll,
    is_chunk_from_original,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "remem.json"
CASES = json.loads(GOLDEN.read_text("utf-8"))["cases"]
METRICS: dict[str, type[RetrievalMetric]] = {
    "Recall": RetrievalRecall,
    "Recall_all": RetrievalRecallAll,
    "NDCG_any": RetrievalNDCGAny,
}
SCORED = [case for case in CASES if case["metric"] in METRICS]
CHUNKS = [case for case in CASES if case["metric"] == "is_chunk_from_original"]

# Chunks and documents that meet every branch of the rule, and each other.
WORDS = st.sampled_from(
    [
        *("", "a", "ab", "b c", "doc-1", "doc-12", "é", "c\nd"),
        *("user: a", "user: ", "assistant: b: c", "user: c\nd", "system: a", "user: é"),
        *("Date: x", "Date: x\na", "Date: x\nuser: a", "Date: x\nassistant: b: c"),
        *('"c\\nd"', '{"role": "user", "content": "c\\nd"}', '{"x": "\\u00e9"}'),
    ]
)
LISTS = st.lists(st.lists(WORDS, max_size=6), max_size=4)


@pytest.mark.parametrize("case", SCORED, ids=lambda case: case["id"])
def test_every_vector_of_the_metrics_is_met(case: Mapping[str, Any]) -> None:
    metric = METRICS[case["metric"]]()
    ks = {} if isinstance(case["k"], str) else {"k_list": case["k"]}
    golds, rankings = case["inputs"]["gold_docs"], case["inputs"]["retrieved_chunks"]
    if "error_class" in case["expected"]:
        with pytest.raises(KaratError):
            metric.calculate_metric_scores(golds, rankings, **ks)
        return
    pooled, per_example = metric.calculate_metric_scores(golds, rankings, **ks)
    assert pooled == case["expected"]["pooled"]
    assert list(pooled) == list(case["expected"]["pooled"])
    for row, expected in zip(per_example, case["expected"]["per_example"], strict=True):
        assert row == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("case", CHUNKS, ids=lambda case: case["id"])
def test_every_vector_of_the_chunk_rule_is_met(case: Mapping[str, Any]) -> None:
    if isinstance(case["expected"], bool):
        assert is_chunk_from_original(**case["inputs"]) is case["expected"]
    else:
        with pytest.raises(KaratError):
            is_chunk_from_original(**case["inputs"])


def is_part(chunk: str, text: str) -> bool:
    """The chunk rule once more, by another way."""
    lines = chunk.split("\n")
    if lines[0][:6] == "Date: ":
        chunk = "\n".join(lines[1:])
    escaped = json.dumps(chunk)
    if chunk[:6] == "user: " or chunk[:11] == "assistant: ":
        start = chunk.index(": ") + 2
        chunk, escaped = ((t + ": ")[start:] for t in (chunk, escaped[1:]))
        chunk, escaped = (t[: t.index(": ")] for t in (chunk, escaped))
    return text.find(chunk) >= 0 or text.find(escaped) >= 0


def dcg(relevant: Sequence[bool]) -> float:
    discounts = [1.0, *(log2(rank) for rank in range(2, len(relevant) + 1))]
    return sum(1 / d for hit, d in zip(relevant, discounts, strict=False) if hit)


def slowly(name: str, gold: list[str], ranking: list[str], k: int) -> float:
    """A score by its definition: sets, loops and Python slices."""
    if not gold:
        return 0.0
    if name == "Recall":
        return len({*gold} & {*ranking[:k]}) / len({*gold})
    if name == "Recall_all":
        found = {g for g in gold if any(is_part(c, g) for c in ranking[:k])}
        return float(len(found) == len(gold))
    relevant = [any(is_part(c, g) for g in gold) for c in ranking]
    ideal = dcg(sorted(relevant, reverse=True)[:k])
    return dcg(relevant[:k][:k]) / ideal if ideal else 0.0


@pytest.mark.slow
@given(
    name=st.sampled_from(sorted(METRICS)),
    golds=LISTS.filter(bool),
    rankings=LISTS,
    ks=st.lists(st.integers(-3, 8), min_size=1, max_size=4),
)
def test_scores_are_what_sets_loops_and_slices_give(
    name: str, golds: list[list[str]], rankings: list[list[str]], ks: list[int]
) -> None:
    ordered = sorted({*ks})
    expected = [
        [slowly(name, gold, ranking, k) for k in ordered]
        for gold, ranking in zip(golds, rankings, strict=False)
    ]
    falls = any(a > b for row in expected for a, b in pairwise(row))
    if name == "Recall_all" and falls:
        with pytest.raises(KaratError, match="must not fall"):
            METRICS[name]().calculate_metric_scores(golds, rankings, ks)
        return
    pooled, rows = METRICS[name]().calculate_metric_scores(golds, rankings, ks)
    assert list(pooled) == [f"{name}@{k}" for k in ordered]
    for row, numbers in zip(rows, expected, strict=True):
        assert [*row.values()] == pytest.approx(numbers, abs=1e-12)
    for place, mean in enumerate(pooled.values()):
        total = sum(numbers[place] for numbers in expected)
        assert mean == pytest.approx(total / len(golds), abs=5.1e-5)


def test_pools_are_rounded_by_python_for_recall_and_by_numpy_for_ndcg() -> None:
    golds = [["hit"]] * 160
    rankings = [["hit"]] + [["miss"]] * 159
    pools: dict[str, float] = {}
    for metric in METRICS.values():
        pools |= metric().calculate_metric_scores(golds, rankings, [1])[0]
    assert pools == {"Recall@1": 0.0063, "Recall_all@1": 0.0063, "NDCG_any@1": 0.0062}


def test_calls_may_name_the_lists_as_the_original_or_its_documentation_does() -> None:
    metric = RetrievalRecall(global_config=object())
    by_place = metric.calculate_metric_scores([["a"]], [["a"]])
    assert list(by_place[0]) == ["Recall@1", "Recall@5", "Recall@10", "Recall@20"]
    for name in ("retrieved_docs", "retrieved_chunks"):
        lists: dict[str, Any] = {name: [["a"]]}
        assert metric.calculate_metric_scores(gold_docs=[["a"]], **lists) == by_place
    with pytest.raises(KaratError, match="either"):
        metric.calculate_metric_scores([["a"]])
    with pytest.raises(KaratError, match="either"):
        metric.calculate_metric_scores([["a"]], [["a"]], retrieved_chunks=[["a"]])


@pytest.mark.parametrize("metric", METRICS.values())
def test_a_mistake_is_said_in_so_many_words(metric: type[RetrievalMetric]) -> None:
    score = metric().calculate_metric_scores
    with pytest.raises(KaratError, match="gold_docs is empty"):
        score([], [], [1])
    with pytest.raises(KaratError, match="k_list is empty"):
        score([["a"]], [["a"]], [])
    with pytest.raises(KaratError, match=r"k must be an integer, got 1\.5"):
        score([["a"]], [["a"]], [1.5])  # type: ignore[list-item]
    assert score([["a"]], [], []) == ({}, [])
    assert score([["a"]], [], [1]) == ({f"{metric.label}@1": 0.0}, [])


def test_documents_of_any_kind_are_compared_for_equality_only() -> None:
    pooled, _ = RetrievalRecall().calculate_metric_scores(
        [[1, None, (2, 3)]], [["1", (2, 3), 1.0]], [1, 2, 3]
    )
    assert pooled == {"Recall@1": 0.0, "Recall@2": 0.3333, "Recall@3": 0.6667}
    with pytest.raises(KaratError, match="a chunk must be text, got int"):
        RetrievalRecallAll().calculate_metric_scores([["1"]], [[1]])


def test_the_chunk_rule_is_a_matcher_for_every_metric_of_karat() -> None:
    sample = {
        "id": "q-1",
        "retrieved_texts": ["nothing", "Date: d\nuser: hello", "hello"],
        "passages": ["hello world", "hello moon"],
    }
    result = karat.evaluate(
        [sample], metrics=["recall@2", "rr", "ndcg_any"], match=RememChunk()
    )
    assert result.means["recall@2"] == 1.0
    assert result.means["rr"] == 0.5
    assert result.matchers["rr"] == "remem_chunk"
    assert result.traces[0].first_ranks == {"passage-1": 2, "passage-2": 2}


def test_the_functions_of_longmemeval_are_at_hand() -> None:
    assert remem.evaluate_retrieval is longmemeval.evaluate_retrieval
    assert (
        remem.evaluate_retrieval_turn2session
        is longmemeval.evaluate_retrieval_turn2session
    )
