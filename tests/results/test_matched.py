"""What matching says besides the scores, and what evaluate refuses."""

from typing import Any

import pytest

import karat
from karat.extend import Claims, ParameterError
from tests.judging.models import Model, session_of, support

SAMPLE = {"id": "q", "retrieved": ["a"], "relevant": ["a"]}


def test_a_matcher_without_its_kind_of_gold_says_so() -> None:
    result = karat.evaluate([SAMPLE], metrics=["rr", "containment@5"])
    (notice,) = [n for n in result.warnings if n.kind == "no answers"]
    assert notice.count == 1
    assert result["containment@5"].undefined == 1
    assert result["rr"].mean == 1.0


def test_nothing_is_said_where_every_query_has_its_gold() -> None:
    assert not karat.evaluate([SAMPLE], metrics=["rr"]).warnings


@pytest.mark.parametrize("wrong", [None, 3])
def test_what_is_no_matcher_is_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="match must be"):
        karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, match=wrong)


def test_claims_that_are_not_found_are_no_matter_of_names() -> None:
    samples = [
        {"query": f"q{n}", "contexts": ["Ovens are hot."], "claims": [f"Rye {n}."]}
        for n in range(30)
    ]
    judge = Claims(session_of(Model(support({}))))
    found = karat.evaluate(samples, metrics="context_recall", judge=judge)
    assert found["context_recall"].mean == 0
    assert {notice.kind for notice in found.warnings} == {"numbered", "uncalibrated"}


def test_a_query_without_claims_is_noticed_once() -> None:
    samples = [
        {"id": "q1", "contexts": ["Rye."], "claims": ["Rye."]},
        {"id": "q2", "contexts": ["Rye."], "reference": " "},
    ]
    judge = Claims(session_of(Model(support({}))))
    found = karat.evaluate(samples, metrics="context_recall", judge=judge)
    assert [n.kind for n in found.warnings] == ["claims", "uncalibrated"]
