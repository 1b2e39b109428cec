"""A profile decides as the tool it is named after: its golden vectors, natively.

Metric and matcher are those the tool means; everything else is the profile. Vectors
that are about reading odd input, such as a k of -1, are the fronts' to meet.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from karat import evaluate
from karat.compat.remem import RememChunk
from karat.data.policies import PROFILES
from karat.extend import DataError

GOLDEN = Path(__file__).parents[1] / "golden"
ERRORS = {"error", "error_class"}

REMEM = {"Recall": "recall", "Recall_all": "recall_all", "NDCG_any": "ndcg_any"}
HARNESS = {
    "retrieval-hit-at-k": "hit",
    "retrieval-recall-at-k": "recall",
    "retrieval-mrr": "rr",
    "retrieval-ndcg-at-k": "ndcg",
}
FUTUREAGI = {
    "recall_at_k": "recall",
    "precision_at_k": "precision",
    "ndcg_at_k": "ndcg",
    "mrr": "rr",
    "hit_rate": "hit",
}

# No switch says these: a gold text that is given twice must be found twice there; gains
# that are all 0 or negative are undefined here, and score 0 there.
NO_POLICY = {
    *("remem-034-dup-gold", "remem-099-dup-gold-all-hit"),
    *("padosoft-265-graded-all-zero", "padosoft-272-graded-all-negative"),
}


def vectors(
    name: str, metrics: Mapping[str, str], read: Callable[[Any], Any]
) -> list[Any]:
    """What `read` makes of the golden cases that have a score, where it can."""
    cases = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"]
    scored = [
        (case["id"], metrics[case["metric"]], read(case))
        for case in cases
        if case["metric"] in metrics and not ERRORS & {*case["expected"]}
    ]
    return [
        pytest.param(metric, *made, identity in NO_POLICY, id=identity)
        for identity, metric, made in scored
        if made is not None
    ]


def are_ids(rows: Any) -> bool:
    """Whether these are lists of texts."""
    return isinstance(rows, list) and all(
        isinstance(row, list) and all(isinstance(value, str) for value in row)
        for row in rows
    )


def read_remem(case: Any) -> tuple[Any, ...] | None:
    given = case["inputs"]
    golds, rankings = given["gold_docs"], given["retrieved_chunks"]
    ks = [1, 5, 10, 20] if isinstance(case["k"], str) else sorted({*case["k"]})
    if not ks or ks[0] < 1 or not are_ids(golds) or not are_ids(rankings):
        return None
    if len(golds) != len(rankings) or any("" in gold for gold in golds):
        return None
    rows = case["expected"]["per_example"]
    return (
        golds,
        rankings,
        ks,
        [[row[f"{case['metric']}@{k}"] for k in ks] for row in rows],
    )


@pytest.mark.parametrize(
    ("metric", "golds", "rankings", "ks", "expected", "differs"),
    vectors("remem", REMEM, read_remem),
)
def test_remem(
    metric: str,
    golds: Sequence[Sequence[str]],
    rankings: Sequence[Sequence[str]],
    ks: Sequence[int],
    expected: Sequence[Sequence[float]],
    differs: bool,  # noqa: FBT001
) -> None:
    ids = metric == "recall"
    retrieved, wanted = (
        ("retrieved_ids", "relevant") if ids else ("contexts", "passages")
    )
    samples = [
        {"id": f"q{number}", retrieved: ranking, wanted: gold}
        for number, (gold, ranking) in enumerate(zip(golds, rankings, strict=True))
    ]
    result = evaluate(
        samples,
        metrics=[f"{metric}@{k}" for k in ks],
        match="id" if ids else RememChunk(),
        profile="remem",
        force=True,
    )
    scores = [[row[name] for name in result] for row in result.per_query]
    same = scores == [pytest.approx(row, abs=1e-12) for row in expected]
    assert same is not differs


def read_harness(case: Any) -> tuple[Any, ...] | None:
    given = case["inputs"]
    expected = given.get("expected_output")
    gains = expected.values() if isinstance(expected, Mapping) else ()
    plain = all(isinstance(gain, int | float) for gain in gains)
    ranking = json.loads(given["actual_output"])
    if not expected or not plain or "0" in ranking:
        return None
    sample = {"id": "q", "actual_output": given["actual_output"]}
    return {**sample, "expected_output": expected}, case["k"], case["expected"]["score"]


@pytest.mark.parametrize(
    ("metric", "sample", "k", "expected", "differs"),
    vectors("eval_harness", HARNESS, read_harness),
)
def test_eval_harness(
    metric: str,
    sample: Mapping[str, Any],
    k: int | None,
    expected: float,
    differs: bool,  # noqa: FBT001
) -> None:
    asked = metric if k is None else f"{metric}@{k}"
    result = evaluate(
        [sample], metrics=[asked], match="id", profile="eval-harness", force=True
    )
    same = result.means[asked] == pytest.approx(expected, abs=1e-12)
    assert same is not differs


def read_futureagi(case: Any) -> tuple[Any, ...] | None:
    try:
        retrieved, relevant = (
            json.loads(case["inputs"][field]) for field in ("hypothesis", "reference")
        )
    except ValueError:
        return None
    if case["metric"].endswith("_at_k") or are_ids([retrieved, relevant]):
        retrieved, relevant = [retrieved], [relevant]
    k = case["config"].get("k") or len(retrieved[0])
    if not are_ids(retrieved) or not are_ids(relevant) or type(k) is not int or k < 1:
        return None
    return retrieved, relevant, k, case["expected"]["value"]


@pytest.mark.parametrize(
    ("metric", "retrieved", "relevant", "k", "expected", "differs"),
    vectors("futureagi", FUTUREAGI, read_futureagi),
)
def test_futureagi(
    metric: str,
    retrieved: Sequence[Sequence[str]],
    relevant: Sequence[Sequence[str]],
    k: int,
    expected: float,
    differs: bool,  # noqa: FBT001
) -> None:
    asked = metric if metric in {"rr", "hit"} else f"{metric}@{k}"
    result = evaluate(
        list(retrieved),
        gold=list(relevant),
        metrics=[asked],
        match="id",
        profile="futureagi",
        force=True,
    )
    same = result.means[asked] == pytest.approx(expected, abs=1e-12)
    assert same is not differs


def test_most_vectors_are_about_policies() -> None:
    assert len(vectors("remem", REMEM, read_remem)) == 46
    assert len(vectors("eval_harness", HARNESS, read_harness)) == 69
    assert len(vectors("futureagi", FUTUREAGI, read_futureagi)) == 34


def test_remem_reads_a_chunk_again_by_our_matcher_too() -> None:
    # The vector remem-059-dup-retrieved.
    sample = {"contexts": ["doc-A", "doc-A", "doc-B", "doc-B"]}
    samples = [{**sample, "passages": ["doc-A", "doc-B"]}]
    options: dict[str, Any] = {"metrics": ["ndcg_any@4"], "match": "chunk"}
    assert evaluate(samples, profile="remem", **options).means == {"ndcg_any@4": 1.0}
    assert evaluate(samples, **options).means["ndcg_any@4"] < 1


def test_nothing_to_find_is_an_error_for_futureagi() -> None:
    run, gold = {"q1": ["a"], "q2": ["b"]}, {"q1": ["a"], "q2": {"b": 0}}
    with pytest.raises(DataError, match="query 'q2': recall@5 is undefined"):
        evaluate(run, gold=gold, metrics=["recall@5"], profile="futureagi")


@pytest.mark.parametrize("name", ["remem", "eval-harness", "futureagi"])
def test_a_profile_says_its_name(name: str) -> None:
    assert PROFILES[name].profile == name
    result = evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics=["rr"], profile=name)
    assert f"profile={name}" in str(result)
