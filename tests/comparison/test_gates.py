"""Gates: what fails a build, what passes, and what cannot be told."""

from typing import Any

import numpy as np
import pytest

import karat as package
from karat.data.queries import Query
from karat.errors import UsageError
from karat.gates import check_gates, outcome_of, read_gate
from karat.results.evaluation import Evaluation
from tests.comparison.test_compare import GOLD, NEW, OLD

METRICS = ["ndcg@10", "rr"]


def evaluated(run: Any, name: str = "run") -> Evaluation:
    return package.evaluate(run, gold=GOLD, metrics=METRICS, name=name)


def status(text: str, kind: Any, run: Any, baseline: Any = None) -> str:
    base = None if baseline is None else evaluated(baseline, "base")
    (result,) = check_gates([read_gate(text, kind)], [evaluated(run)], baseline=base)
    return result.status


def test_levels_and_lower_limits() -> None:
    mean = evaluated(NEW).means["rr"]
    assert status(f"rr={mean - 0.001}", "mean", NEW) == "pass"
    assert status(f"rr={mean + 0.001}", "mean", NEW) == "fail"
    assert status(f"rr={mean - 0.001}", "low", NEW) == "fail"


def test_a_drop_fails_when_it_is_demonstrated() -> None:
    assert status("ndcg@10=0.01", "drop", OLD, NEW) == "fail"
    assert status("ndcg@10=0.01", "drop", NEW, OLD) == "pass"
    assert status("ndcg@10=0.01", "drop", NEW, NEW) == "pass"
    (result,) = check_gates(
        [read_gate("ndcg@10=0.0001", "drop")],
        [evaluated(NEW)],
        baseline=evaluated(NEW, "base"),
        require_noninferior=True,
    )
    assert result.status == "pass"


def test_a_failure_outranks_what_is_inconclusive() -> None:
    gates = [read_gate("rr=0.01"), read_gate("rr=1")]
    assert outcome_of(check_gates(gates, [evaluated(NEW)])) == "fail"
    assert outcome_of(check_gates(gates[:1], [evaluated(NEW)])) == "pass"


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [
        ("rr", "mean", "--fail-under takes METRIC=VALUE"),
        ("rr=80", "low", "--fail-under-low rr=80: rr lies between 0 and 1; 0.8?"),
        ("rr=-1", "drop", "--max-drop rr=-1: a drop of rr lies between 0 and 1"),
    ],
)
def test_a_gate_that_cannot_be_is_refused(text: str, kind: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_gate(text, kind)
    assert sentence in str(caught.value)


def test_a_drop_needs_a_baseline_that_has_the_metric() -> None:
    gate = read_gate("rr=0.1", "drop")
    with pytest.raises(UsageError, match="needs a baseline"):
        check_gates([gate], [evaluated(NEW)])
    base = package.evaluate(NEW, gold=GOLD, metrics=["ap"])
    with pytest.raises(UsageError, match="the baseline was scored by ap"):
        check_gates([gate], [evaluated(NEW)], baseline=base)


@pytest.mark.slow
def test_no_change_hardly_ever_fails_and_a_large_drop_nearly_always_does() -> None:
    dice = np.random.default_rng(3)
    size, failed, caught = 100, 0, 0
    base = dice.beta(2, 2, size)
    old = evaluated(NEW)
    gate = read_gate("rr=0.0", "drop")
    names = [f"q{n}" for n in range(size)]
    missing = np.zeros(size, bool)

    def scored(values: Any) -> Evaluation:
        column = old["rr"].__class__("rr", np.clip(values, 0, 1), names)
        return Evaluation(
            "r", "g", names, {"rr": column}, missing, old.policies, {"rr": "id"}
        )

    baseline = scored(base)
    noise = 0.15
    twice = 2 * 2.8 * noise / np.sqrt(size)
    for _ in range(1000):
        same = scored(base + dice.normal(0, noise, size))
        (result,) = check_gates([gate], [same], baseline=baseline)
        failed += result.status == "fail"
    for _ in range(200):
        worse = scored(base - twice + dice.normal(0, noise, size))
        (result,) = check_gates([gate], [worse], baseline=baseline)
        caught += result.status == "fail"
    assert failed <= 50
    assert caught >= 190


def test_a_rise_is_a_change_for_the_worse_where_less_is_better() -> None:
    # Of the top two, the old run has judged fewer.
    old, new = (
        package.evaluate(run, gold=GOLD, metrics=["unjudged@2", "num_ret"], name=name)
        for run, name in ((OLD, "old"), (NEW, "new"))
    )
    assert new.means["unjudged@2"] < old.means["unjudged@2"]
    gate = read_gate("unjudged@2=0.01", "drop")
    (better,) = check_gates([gate], [new], baseline=old)
    (worse,) = check_gates([gate], [old], baseline=new)
    assert (better.status, worse.status) == ("pass", "fail")
    assert worse.sentence.endswith("a rise of more than 0.01 is demonstrated")
    with pytest.raises(UsageError, match="of unjudged@2 less is better"):
        read_gate("unjudged@2=0.5")


def test_queries_of_one_cluster_are_one_unit_of_a_drop() -> None:
    facts = {
        query: Query(query, metadata={"page": number // 10})
        for number, query in enumerate(GOLD)
    }
    old, new = (
        package.evaluate(run, gold=GOLD, metrics=["rr"], name=name, queries=facts)
        for run, name in ((NEW, "old"), (OLD, "new"))
    )
    gate = read_gate("rr=0.0", "drop")
    (alone,) = check_gates([gate], [new], baseline=old)
    (clustered,) = check_gates([gate], [new], baseline=old, cluster="page")
    assert alone.sentence != clustered.sentence
    with pytest.raises(UsageError, match="no query has a field 'chapter'"):
        check_gates([gate], [new], baseline=old, cluster="chapter")
