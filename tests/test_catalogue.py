"""Catalogues: listing loads nothing, asking loads one thing, plug-ins come by name."""

import math
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from karat.catalogue import Catalogue
from karat.extend import UnknownNameError
from karat.metrics import METRICS

ROOTS = {"Square-Root": "math:sqrt", "cube_root": "math:cbrt", "mine": "no.module:no"}


def test_what_is_named_as_text_is_imported_when_it_is_asked_for() -> None:
    formulas: Catalogue[object] = Catalogue("formula", ROOTS)
    assert formulas.shipped == ("square_root", "cube_root", "mine")
    assert [*formulas] == ["square_root", "cube_root", "mine"]
    assert "MINE" in formulas
    assert formulas["square-root"] is math.sqrt
    with pytest.raises(ModuleNotFoundError):
        formulas["mine"]


def test_an_unknown_name_is_compared_with_those_that_were_never_loaded() -> None:
    formulas: Catalogue[object] = Catalogue("formula", ROOTS)
    with pytest.raises(UnknownNameError, match="did you mean 'Square-Root'"):
        formulas["squareroot"]


def test_a_plug_in_is_found_by_name_and_loaded_when_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = [EntryPoint("Hypotenuse", "math:hypot", "karat.formulas")]
    found: list[str] = []

    def entry_points(group: str) -> list[EntryPoint]:
        found.append(group)
        return points

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    formulas: Catalogue[object] = Catalogue("formula", ROOTS, "karat.formulas")
    assert formulas["cube_root"] is not None
    assert found == []
    assert formulas["hypotenuse"] is math.hypot
    assert found == ["karat.formulas"]
    assert len(formulas) == len(ROOTS) + 1


def test_every_metric_has_the_name_it_is_listed_under() -> None:
    assert {name: metric.name for name, metric in METRICS.items()} == {
        name: name for name in METRICS.shipped
    }


def test_listing_metrics_loads_no_family_and_asking_for_one_loads_its_own() -> None:
    code = (
        "import sys; from karat.metrics import METRICS, read_metric; len(METRICS);"
        "read_metric('recall@5');"
        "print(*sorted(m[14:] for m in sys.modules if m.startswith('karat.metrics.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["precision_recall"]
