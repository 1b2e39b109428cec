"""What peers said when they were run, for where they are not installed.

Where they are, they are run again and must say the same.
"""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

__all__ = ["Scores", "recorded"]

Scores = dict[str, dict[str, float]]

_PATH = Path(__file__).parents[1] / "golden" / "peers.json"


def recorded(package: str, case: str, ask: Callable[[], Scores]) -> Scores:
    """The scores that a peer gave in a case, by query and measure.

    Args:
        package: the module to import, which names the peer.
        case: names the case.
        ask: asks the peer now.
    """
    said: Scores = json.loads(_PATH.read_text("utf-8"))[package][case]
    if find_spec(package) is not None:
        now = ask()
        assert now.keys() == said.keys()
        for query, scores in now.items():
            assert scores == pytest.approx(said[query], abs=1e-12)
    return said
