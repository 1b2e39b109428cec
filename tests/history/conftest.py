"""A store that is gone after the test."""

from collections.abc import Iterator

import pytest

from karat.history import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(":memory:") as made:
        yield made
