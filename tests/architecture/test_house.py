"""The rules of the house that a linter does not know."""

import re
import subprocess
import sys
from pathlib import Path

import karat

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MOST_LINES = 600
DRAWERS = {"utils", "helpers", "common", "base", "misc", "core", "manager"}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_test_module_is_too_long_to_read() -> None:
    lengths = {name(path): len(path.read_text("utf-8").splitlines()) for path in TESTS}
    assert {path: n for path, n in lengths.items() if n > MOST_LINES} == {}


def test_no_module_is_a_drawer() -> None:
    assert not [path for path in SOURCES if path.stem in DRAWERS]


def test_broad_excepts_are_two_at_most() -> None:
    broad = re.compile(r"except(?: .*\b(?:Base)?Exception\b.*)?:")
    found = [p for p in SOURCES for _ in broad.findall(p.read_text("utf-8"))]
    assert len(found) <= 2


def test_every_public_name_exists() -> None:
    assert sorted(karat.__all__) == karat.__all__
    for public in karat.__all__:
        assert getattr(karat, public) is not None
    assert dir(karat) == karat.__all__


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_importing_karat_loads_nothing_heavy() -> None:
    heavy = ("numpy", "click", "rich", "yaml", "pyarrow", "pandas", "socket", "asyncio")
    code = f"import karat, sys; print([m for m in {heavy!r} if m in sys.modules])"
    assert python(code) == "[]"


def test_evaluating_loads_no_extra() -> None:
    extras = (
        "pyarrow",
        "pandas",
        "polars",
        "zstandard",
        "rich",
        "scipy",
        "pytrec_eval",
    )
    code = (
        "import karat, sys; karat.evaluate({'q': ['a']}, gold={'q': ['a']}); "
        f"print([m for m in {extras!r} if m in sys.modules])"
    )
    assert python(code) == "[]"


def test_the_command_looks_for_no_plugin_before_it_needs_one() -> None:
    slow = ("importlib.metadata", "numpy.ma", "asyncio", "sqlite3", "rapidfuzz")
    code = (
        "import sys, numpy; before = {*sys.modules}; import karat.cli.evaluate; "
        f"print([m for m in {slow!r} if m in {{*sys.modules}} - before])"
    )
    assert python(code) == "[]"


def test_no_code_is_made_from_data() -> None:
    ways = re.compile(
        r"(?<![\w.])(?:eval|exec|compile|__import__)\(|allow_pickle=True"
        r"|import (?:pickle|marshal|shelve|dill)|\byaml\.(?:unsafe_)?load\("
    )
    assert [name(p) for p in SOURCES if ways.search(p.read_text("utf-8"))] == []


def test_evaluating_opens_no_connection() -> None:
    code = """
import socket, sys
def refuse(*_):
    print("a connection was opened")
socket.socket.connect = socket.socket.connect_ex = refuse
sys.argv = ["karat", "demo"]
import karat.__main__
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "ndcg@10 by tag" in done.stdout
    assert "connection" not in done.stdout


def test_importing_karat_writes_nothing(tmp_path: Path) -> None:
    code = f"import os; os.chdir({str(tmp_path)!r}); import karat; karat.evaluate"
    python(code)
    assert list(tmp_path.iterdir()) == []
