"""Gates, to the letter: what they say, and where each begins to fail."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import karat
from karat import Evaluation
from karat.extend import MetricScores, Policies, UsageError, read_metric
from karat.gates import (
    Gate,
    GateResult,
    Kind,
    check_failures,
    check_gates,
    failed_queries,
    read_gate,
)
from tests.comparison.test_compare import GOLD, NEW


def drop(
    changes: list[float], allowed: float, metric: str = "ap", **options: Any
) -> GateResult:
    """What a gate says of scores that were 0.5 and changed by so much."""
    names = [f"q{n}" for n in range(len(changes))]
    worse = read_metric(metric).higher_is_better
    old, new = (
        Evaluation(
            *("run", "gold", names),
            {metric: MetricScores(metric, scores, names, higher_is_better=worse)},
            np.zeros(len(names), bool),
            Policies(),
        )
        for scores in (np.full(len(names), 0.5), 0.5 + np.array(changes))
    )
    gate = Gate(metric, allowed, "drop")
    (result,) = check_gates([gate], [new], baseline=old, **options)
    return result


@pytest.mark.parametrize(
    ("changes", "allowed", "status", "sentence"),
    [
        ([0.0] * 20, 0.0, "pass", "ap has the same score on each of 20 queries"),
        ([0.2, -0.2] * 10, 0.0, "pass", "ap has the same mean on 20 queries"),
        ([0.2] * 20, 0.0, "pass", "ap rose by 0.2000 on 20 queries"),
        ([-0.2] * 20, 0.2, "pass", "ap dropped by 0.2000 on 20 queries"),
        ([-0.2], 0.2, "pass", "ap dropped by 0.2000 on 1 query"),
        (
            [-0.2] * 6 + [0.0] * 14,
            0.01,
            "fail",
            (
                "ap dropped by 0.0600 on 20 queries, more than 0.01: beyond chance "
                "(p = 0.0312); 6 queries lost: q0 -0.2000, q1 -0.2000, q2 -0.2000, "
                "q3 -0.2000, q4 -0.2000, 1 more"
            ),
        ),
        (
            [-0.1, 0.0, -0.3, 0.1, -0.2] + [0.0] * 15,
            0.01,
            "fail",
            (
                "ap dropped by 0.0250 on 20 queries, more than 0.01: it may be chance "
                "(p = 0.3750); 3 queries lost: q2 -0.3000, q4 -0.2000, q0 -0.1000"
            ),
        ),
        # Of 10,000 draws 500 are as extreme: p is 0.05 exactly.
        (
            [0.0] * 31 + [-0.25] * 38 + [0.25] * 22,
            0.01,
            "fail",
            (
                "ap dropped by 0.0440 on 91 queries, more than 0.01: beyond chance "
                "(p = 0.0500); 38 queries lost: q31 -0.2500, q32 -0.2500, q33 -0.2500, "
                "q34 -0.2500, q35 -0.2500, 33 more"
            ),
        ),
        (
            [-0.4] + [0.0] * 19,
            0.01,
            "fail",
            (
                "ap dropped by 0.0200 on 20 queries, more than 0.01: it may be chance "
                "(p = 1.0000); 1 query lost: q0 -0.4000"
            ),
        ),
    ],
)
def test_a_drop_in_words(
    changes: list[float], allowed: float, status: str, sentence: str
) -> None:
    found = drop(changes, allowed)
    assert (found.status, found.sentence) == (status, sentence)
    for name in ("status", "sentence"):
        with pytest.raises(AttributeError, match="cannot assign to field"):
            setattr(found, name, "pass")
    # Noise is put up with where it may be noise.
    noisy = drop(changes, allowed, allow_noise=True)
    chance = "it may be chance" in sentence
    assert noisy.status == ("inconclusive" if chance else status)
    assert noisy.sentence == sentence


def test_a_rise_in_words_where_less_is_better() -> None:
    found = drop([0.2, -0.1] + [0.3] * 6 + [0.0] * 12, 0.01, "unjudged@2")
    assert found.status == "fail"
    assert found.sentence == (
        "unjudged@2 rose by 0.0950 on 20 queries, more than 0.01: beyond chance "
        "(p = 0.0156); 7 queries lost: q2 +0.3000, q3 +0.3000, q4 +0.3000, q5 +0.3000, "
        "q6 +0.3000, 2 more"
    )
    fallen = drop([-0.2] * 20, 0.0, "unjudged@2")
    assert (fallen.status, fallen.sentence) == (
        "pass",
        "unjudged@2 dropped by 0.2000 on 20 queries",
    )


@pytest.mark.parametrize(
    ("metric", "sign", "worse"), [("ap", -1, "drop"), ("unjudged@2", 1, "rise")]
)
def test_proof_ends_where_the_interval_does(metric: str, sign: int, worse: str) -> None:
    changes = [sign * 0.01, -sign * 0.005] * 50
    proof = drop(changes, 0.0026, metric, require_noninferior=True)
    limits = re.search(r"interval ([-+.\d]+) to ([-+.\d]+)\)$", proof.sentence)
    assert limits is not None
    most = max(sign * float(limit) for limit in limits.groups())
    verb = "dropped" if sign < 0 else "rose"
    assert proof.sentence.startswith(
        f"{metric} {verb} by 0.0025 on 100 queries; a {worse} of more than 0.0026 is "
        "not ruled out (95% interval "
    )
    assert proof.status == "fail"
    for least, status in ((most - 0.0002, "fail"), (most + 0.0002, "pass")):
        found = drop(changes, least, metric, require_noninferior=True)
        assert found.status == status
    # How far it may be better is no matter.
    better = drop([-one for one in changes], 0.0, metric, require_noninferior=True)
    assert (better.status, "ruled out" in better.sentence) == ("pass", False)


@pytest.mark.parametrize(
    ("gate", "status", "sentence"),
    [
        (Gate("rr", 0.5), "pass", "rr is 0.5000, not below 0.5"),
        (Gate("rr", 0.51), "fail", "rr is 0.5000, below 0.51"),
        (Gate("rr", 0.5 + 2e-9), "fail", "rr is 0.5000, below 0.5"),
        (
            Gate("rr", 0.4, "low"),
            "pass",
            "rr has a lower limit of 0.4154, not below 0.4",
        ),
        (Gate("rr", 0.42, "low"), "fail", "rr has a lower limit of 0.4154, below 0.42"),
        (Gate("recall[answer]", 0.5), "fail", "recall[answer] has no value"),
    ],
)
def test_a_level_in_words(gate: Gate, status: str, sentence: str) -> None:
    gold = {f"q{n}": ["a"] for n in range(20)}
    run = {query: ["b", "a"] for query in gold}
    found = karat.evaluate(run, gold=gold, metrics="rr")
    if gate.metric != "rr":
        none = MetricScores(gate.metric, np.full(20, np.nan), found.queries)
        found = replace(found, columns={gate.metric: none})
    (result,) = check_gates([gate], [found])
    assert (result.status, result.sentence) == (status, sentence)


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        (Gate("rr", 0.5), "rr >= 0.5"),
        (Gate("rr", 0.25, "low"), "rr lower limit >= 0.25"),
        (Gate("rr", 0.02, "drop"), "rr drop <= 0.02"),
        (Gate("failed queries", 3, "failures"), "failed queries <= 3"),
    ],
)
def test_a_gate_reads_as_a_sentence(gate: Gate, text: str) -> None:
    assert str(gate) == text


@pytest.mark.parametrize("kind", ["mean", "low", "drop"])
def test_a_gate_lies_within_the_bounds_of_its_metric(kind: Any) -> None:
    for text in ("rr=0", "rr=1"):
        assert read_gate(text, kind).value == float(text[3:])
    within = "lies between 0 and 1"
    for value, hint in (
        ("-0.1", ""),
        ("1.5", "; 0.015?"),
        ("100", "; 1?"),
        ("101", ""),
    ):
        with pytest.raises(UsageError) as caught:
            read_gate(f"rr={value}", kind)
        assert str(caught.value).endswith(f"{within}{hint}")
    for text in ("rr=nan", "rr=", "=0.5", "rr=a", "rr<=0.5", "rr"):
        with pytest.raises(UsageError):
            read_gate(text, kind)
    assert read_gate("rbp(p=0.5)=0.25", kind) == Gate("rbp(p=0.5)", 0.25, kind)
    for unbounded in ("num_ret", "utility"):
        assert read_gate(f"{unbounded}=7", kind).value == 7


def test_a_metric_that_was_not_scored_is_named() -> None:
    found = karat.evaluate(NEW, gold=GOLD, metrics=["ndcg@10", "rr"], name="mine")
    options: dict[Kind, str] = {
        "mean": "--fail-under",
        "low": "--fail-under-low",
        "drop": "--max-drop",
    }
    for kind, option in options.items():
        with pytest.raises(UsageError) as caught:
            check_gates([Gate("ap", 0.5, kind)], [found], baseline=found)
        assert str(caught.value) == f"{option} ap: mine was scored by ndcg@10, rr"


def test_failed_queries_are_those_of_the_metric_that_failed_most() -> None:
    names = ["a", "b", "c"]
    columns = {
        metric: MetricScores(metric, np.full(3, np.nan), names, failures=failures)
        for metric, failures in (
            ("rr", {1: "no reply"}),
            ("ap", {0: "timed out", 2: "refused"}),
            ("hit@1", {}),
        )
    }
    one = Evaluation("r", "g", names, columns, np.zeros(3, bool), Policies())
    assert failed_queries(one) == [("a", "timed out"), ("c", "refused")]
    (result,) = check_failures([one], 1)
    assert result.sentence == "2 queries failed, 'a' for one: timed out"
    assert (str(result.gate), check_failures([one], 2)) == ("failed queries <= 1", [])
    good = replace(one, run="good", columns={"hit@1": columns["hit@1"]})
    assert [each.run for each in check_failures([good, one])] == ["r"]


def test_a_baseline_that_was_scored_otherwise_is_refused_unless_forced() -> None:
    old = karat.evaluate(NEW, gold=GOLD, metrics="rr", name="old")
    new = karat.evaluate(NEW, gold=GOLD, metrics="rr", name="new", threshold=2)
    gate = Gate("rr", 1.0, "drop")
    with pytest.raises(UsageError, match="old and new were not scored in the same way"):
        check_gates([gate], [new], baseline=old)
    (forced,) = check_gates([gate], [new], baseline=old, force=True)
    assert forced.status == "pass"
