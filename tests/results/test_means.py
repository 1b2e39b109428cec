"""How scores become one number, how parts become a whole, and what is told of both."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import karat
from karat import Evaluation
from karat.extend import MetricScores, UsageError

GAP = math.nan


def scores(values: list[float], average: Any = "mean", **others: Any) -> MetricScores:
    return MetricScores("ap", np.array(values), average=average, **others)


@pytest.mark.parametrize(
    ("values", "mean", "geometric", "total"),
    [
        ([1.0, 0.25], 0.625, 0.5, 1.25),
        ([1.0, GAP, 0.25], 0.625, 0.5, 1.25),
        ([GAP, 0.5], 0.5, 0.5, 0.5),
        ([1.0, 0.0], 0.5, 1e-5**0.5, 1.0),
        ([0.0], 0.0, 1e-5, 0.0),
    ],
)
def test_a_mean_is_over_what_is_defined(
    values: list[float], mean: float, geometric: float, total: float
) -> None:
    assert scores(values).mean == mean
    assert scores(values, "geometric").mean == pytest.approx(geometric)
    assert scores(values, "sum").mean == total
    assert scores(values).n == len(values) - sum(map(math.isnan, values))


@pytest.mark.parametrize("average", ["mean", "geometric", "sum"])
@pytest.mark.parametrize("values", [[], [GAP], [GAP, GAP]])
def test_nothing_defined_has_no_mean(values: list[float], average: Any) -> None:
    column = scores(values, average)
    assert math.isnan(column.mean)
    assert (column.n, column.interval) == (0, None)


def test_intervals_hold_their_mean() -> None:
    values = [0.1, 0.4, 0.5, 0.9, 0.3, 0.6, 0.2, 0.8]
    for average in ("mean", "geometric"):
        column = scores(values, average)
        assert column.interval is not None
        low, high = column.interval
        assert 0 < low < column.mean < high < 1
    assert scores(values, "sum").interval is None
    # One score says nothing but the bounds, and a geometric mean has a floor.
    assert scores([0.5]).interval == (0.0, 1.0)
    assert scores([0.5], "geometric").interval == pytest.approx((1e-5, 1.0))
    assert scores([0.5], bounds=(0.0, math.inf)).interval is None


def test_a_metric_looks_as_deep_as_its_cutoff() -> None:
    depths = {"recall@5": 5, "recall": None, "rr": None, "ndcg(gain=exp)@10": 10}
    for metric, depth in depths.items():
        assert replace(scores([1.0]), metric=metric).depth == depth
    own = replace(scores([1.0]), metric="recall@k", cutoffs=(3, 7))
    assert own.depth == 7


def parts(**other: Any) -> list[Evaluation]:
    """Two evaluations of other queries that can be merged, the second changed."""
    one, two = (
        karat.evaluate({query: ["b", "a"]}, gold={query: ["a"]}, metrics="rr", name="r")
        for query in ("q1", "q2")
    )
    return [one, replace(two, **other)]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"run": "s"}, "evaluations of different run cannot be merged: r and s"),
        ({"gold": "s"}, "evaluations of different gold cannot be merged: gold and s"),
        ({"matchers": {"rr": "text"}}, "evaluations of different matchers cannot be"),
        ({"matches": {}}, "evaluations with and without hits cannot be merged"),
        ({"queries": ["q1"]}, "query 'q1' is in two of the evaluations"),
    ],
)
def test_parts_of_another_whole_are_refused(other: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Evaluation.merge(parts(**other))


def test_a_whole_knows_what_its_parts_know() -> None:
    merged = Evaluation.merge(parts(labelled_by={"human": 2, "model": 1}))
    assert merged.labelled_by == {"human": 3, "model": 1}
    assert (merged.queries, merged.means) == (["q1", "q2"], {"rr": 0.5})
    assert merged.own_k is None
    samples: list[dict[str, Any]] = [
        {"id": query, "retrieved": ["Rye."], "passages": ["Rye."]} for query in "ab"
    ]
    one, two = (karat.evaluate([sample], metrics="rr") for sample in samples)
    assert one.labels is not None
    labels = Evaluation.merge([one, two]).labels
    assert labels is not None
    assert (labels.queries, [*labels.passages]) == (["a", "b"], ["a", "b"])
    # Half of the gold would be taken for all of it.
    assert Evaluation.merge([one, replace(two, labels=None)]).labels is None


def test_what_is_no_metric_is_in_no_result() -> None:
    (result, _) = parts()
    for other in (5, None, "", "rr@", b"rr", ("rr",), "ap"):
        assert other not in result
    assert "RR" in result


def test_a_title_names_run_and_gold_unless_they_are_one() -> None:
    (result, _) = parts()
    assert result.title == "r against gold"
    assert replace(result, run="x", gold="x").title == "x"


def test_a_run_that_nobody_named_has_its_tag(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 a 1 1 BM25\n")
    result = karat.evaluate(path, gold={"q1": ["a"]}, metrics="rr")
    assert result.tag == "BM25"
    named = karat.evaluate(path, gold={"q1": ["a"]}, metrics="rr", name="mine")
    assert named.tag == ""
    assert parts()[0].tag == ""


@pytest.mark.parametrize(
    ("missing", "policy", "said"),
    [
        (1, "zero", "1 gold query is not in the run and scores 0 (for example q1)"),
        (1, "skip", "1 gold query is not in the run and is left out (for example q1)"),
        (
            *(4, "zero"),
            "4 gold queries are not in the run and score 0 (for example q1, q2, q3)",
        ),
        (
            *(2, "skip"),
            "2 gold queries are not in the run and are left out (for example q1, q2)",
        ),
    ],
)
def test_missing_queries_are_counted_and_named(
    missing: int, policy: Any, said: str
) -> None:
    gold = {f"q{n}": ["a"] for n in range(missing + 1)}
    result = karat.evaluate({"q0": ["a"]}, gold=gold, metrics="rr", missing=policy)
    assert [str(notice) for notice in result.warnings] == [said]


def test_failed_queries_are_counted_and_named() -> None:
    gold = {f"q{n}": ["a"] for n in range(5)}
    result = karat.evaluate(gold, gold=gold, metrics="rr")

    def told(count: int) -> list[str]:
        failures = dict.fromkeys(range(count), "no reply")
        column = replace(result["rr"], failures=failures)
        failed = replace(result, columns={"rr": column})
        return [str(notice) for notice in failed.warnings]

    first, more = "q0: no reply", "q1: no reply, q2: no reply"
    failed = "queries failed and are in no mean (for example"
    assert told(1) == [f"1 query failed and is in no mean (for example {first})"]
    assert told(5) == [f"5 {failed} {first}, {more})"]
    assert told(0) == []
