"""What a diagnosis and the doctor say of planted faults, to the letter."""

import json

import pytest

from tests.diagnosis.said import CASES, FILE

SAID = json.loads(FILE.read_text("utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_the_same_is_said(case: str) -> None:
    assert [*CASES[case]()] == SAID[case]
