"""What the oracle tests share."""

import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


@pytest.fixture(scope="session")
def ranx() -> Iterator[Any]:
    """The library ranx, interpreted: compiling what is asked of it takes a minute."""
    if find_spec("ranx") is None:
        pytest.skip("ranx is not installed")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        yield import_module("ranx")
