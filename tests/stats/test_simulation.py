"""A short version of bench/simulation.py: the bars, give or take three standard errors.

The whole of it, with some hundred times as many draws, is `make bench-statistics`.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "simulation.py"


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("karat_bench_simulation", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("part", "draws", "least"),
    [
        ("coverage", 40, 200),
        ("errors", 200, 30),
        ("power", 60, 5),
        ("families", 40, 12),
    ],
)
def test_intervals_and_tests_keep_what_they_promise(
    simulation: ModuleType, part: str, draws: int, least: int
) -> None:
    figures = [*getattr(simulation, part)(draws)]
    assert len([figure for figure in figures if figure.barred]) >= least
    assert [str(figure) for figure in figures if figure.missed] == []
