"""What the oracle tests share."""

import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


@pytest.fixture(scope="session")
def ranx() -> Iterator[Any]:
    """The library ranx, whose import warns."""
    if find_spec("ranx") is None:
        pytest.skip("ranx is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield import_module("ranx")
