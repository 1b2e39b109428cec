"""Switches that can change a number: what they may be, and that none is mistaken."""

from typing import Any

import numpy as np
import pytest

import karat
from karat.extend import (
    ParameterError,
    Policies,
    UnknownNameError,
    UsageError,
    policies_for,
)

NAN, INFINITE = float("nan"), float("inf")


IMPOSSIBLE: dict[str, list[Any]] = {
    "threshold": [NAN, INFINITE, 10**400, "2", True, [1]],
    "depth": [0, -1, 1.5, True],
    "force": ["no", 1, []],
    "judged_only": ["no", 1, []],
    "undefined": ["", 0, [], {}],
    "profile": [3, []],
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_switch_is_named(name: str) -> None:
    for value in IMPOSSIBLE[name]:
        with pytest.raises(ParameterError, match=f"evaluate: {name} must be "):
            policies_for(**{"profile": None, name: value})


def test_a_profile_is_some_switches() -> None:
    assert policies_for(None) == Policies()
    assert policies_for("eval-harness").changes() == {
        "duplicates": "collapse",
        "threshold": 0.0,
        "profile": "eval-harness",
    }


def test_one_document_is_deep_enough() -> None:
    run, gold = {"q": ["a", "b"]}, {"q": ["a", "b"]}
    result = karat.evaluate(run, gold, metrics=["recall@5"], depth=1)
    assert result.means == {"recall@5": 0.5}


@pytest.mark.parametrize("value", [1, 1.0, np.int64(1), np.float32(1)])
def test_a_refused_switch_is_not_taken_for_its_equal(value: Any) -> None:
    with pytest.raises(ParameterError):
        policies_for(None, threshold=True)
    assert repr(policies_for(None, threshold=value)) == repr(Policies(threshold=1))


@pytest.mark.parametrize(("threshold", "recall"), [(None, 0.5), (0, 0.25), (-1, 0.2)])
def test_any_threshold_counts(threshold: float | None, recall: float) -> None:
    gold = {"q": {"a": 1, "b": 2.5, "c": 0, "d": 0.0, "e": -1}}
    run = {"q": ["a", "x"]}
    result = karat.evaluate(run, gold=gold, metrics=["recall@5"], threshold=threshold)
    assert result.means == {"recall@5": recall}


def test_a_document_with_a_gain_of_0_is_relevant_to_eval_harness() -> None:
    gold = {"q": {"a": 0.0, "b": 1.0}}
    for profile, recall in (("eval-harness", 0.5), (None, 0.0)):
        result = karat.evaluate(
            {"q": ["a"]}, gold=gold, metrics="recall", profile=profile, force=True
        )
        assert result.means == {"recall": recall}


def test_a_profile_or_a_switch_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no profile ragas"):
        policies_for("Ragas")
    with pytest.raises(UnknownNameError, match="did you mean 'trec_eval-9'"):
        policies_for("trec_eval-8")
    with pytest.raises(UnknownNameError, match="did you mean 'ties'"):
        policies_for(None, tie="trec")
    with pytest.raises(ParameterError, match="ties must be one of 'trec', 'input'"):
        Policies(ties="ascending")  # type: ignore[arg-type]


def test_a_switch_on_top_of_a_profile_changes_that_alone() -> None:
    changed = policies_for("trec_eval-10", missing="zero", depth=None)
    assert changed.changes() == {
        "undefined": "zero",
        "duplicates": "error",
        "profile": "trec_eval-10",
    }
    assert policies_for("beir").changes() == {
        "undefined": "zero",
        "missing": "skip",
        "precision": "single",
        "profile": "beir",
        "identical": "ignore",
    }
