"""The same data gives the same scores and notices, in whatever form it comes."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st

from tests.reading.forms import data_set, forms, outcome

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@given(st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_every_form_gives_the_same_scores_and_notices(seed: int) -> None:
    run, gold = data_set(Random(seed))
    with TemporaryDirectory() as folder:
        inputs = dict(forms(run, gold, Path(folder)))
        wanted = outcome(inputs["dict"])
        for name, data in inputs.items():
            assert outcome(data) == wanted, name
