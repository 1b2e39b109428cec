"""What the local engine says besides the scores, and what evaluate refuses."""

from typing import Any

import pytest

import karat
from karat.errors import ParameterError

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
@pytest.mark.parametrize("option", ["engine", "match"])
def test_what_is_no_engine_or_matcher_is_refused(option: str, wrong: Any) -> None:
    with pytest.raises(ParameterError, match=f"{option} must be"):
        karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, **{option: wrong})
