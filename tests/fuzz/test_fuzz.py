"""A short run over odd inputs; `make fuzz` is the long one."""

import pytest

from tests.fuzz.inputs import make_case
from tests.fuzz.pool import fuzz


@pytest.mark.slow
def test_no_odd_input_ends_the_process_or_blames_karat() -> None:
    assert fuzz(seed=7, numbers=range(1500)) == []


def test_a_number_always_gives_the_same_input() -> None:
    kinds = set()
    for number in range(60):
        case = make_case(1, number)
        assert case.files == make_case(1, number).files
        kinds.add(case.kind)
    assert len(kinds) > 5
