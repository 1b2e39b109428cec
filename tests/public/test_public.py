"""What karat and karat.extend export: all of it is there, documented and typed."""

import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import karat
from karat import extend

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("user_script.py")
LAYERS = (karat, extend)


@pytest.mark.parametrize("layer", LAYERS)
def test_every_name_is_there_and_says_what_it_is(layer: ModuleType) -> None:
    assert dir(layer) == sorted(layer.__all__)
    for name in layer.__all__:
        thing = getattr(layer, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Metri'"):
        extend.Metri  # type: ignore[attr-defined]  # noqa: B018


def test_the_script_uses_every_public_name() -> None:
    words = set(re.findall(r"\w+", SCRIPT.read_text("utf-8")))
    unused = [name for layer in LAYERS for name in layer.__all__ if name not in words]
    assert not unused, f"use them in {SCRIPT.name}"


def test_the_script_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert "'best@1': 0.5, 'last_rank': 2.0" in capsys.readouterr().out


def test_importing_the_layer_loads_nothing_behind_it() -> None:
    code = "import karat.extend, sys; print(*[m for m in sys.modules if 'karat' in m])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert set(found.stdout.split()) == {"karat", "karat.extend", "karat.version"}


@pytest.mark.slow
def test_the_script_passes_a_strict_type_checker(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--config-file", os.devnull, "--cache-dir", str(tmp_path), str(SCRIPT)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
