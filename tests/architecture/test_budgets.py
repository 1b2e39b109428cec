"""What the house may cost: lines, modules, public names, and the way through it.

`budgets.toml` has a budget with a reason for each; raising one is a visible change.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tests.architecture.walk import PAGE, Walk, section

import karat
from karat import extend

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "karat"
BUDGETS = tomllib.loads(Path(__file__).with_name("budgets.toml").read_text("utf-8"))
PRIVATE = re.compile(r"(?:from|import) karat\.(?!extend\b|compat\b|history\b|scale\b)")


def rooms() -> dict[str, list[Path]]:
    """The modules of each folder, and each module beside the folders."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        found[path.relative_to(SOURCE).parts[0].removesuffix(".py")].append(path)
    return found


def lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def test_every_room_keeps_its_budget() -> None:
    budgets = BUDGETS["rooms"]
    single = {name for name, paths in rooms().items() if len(paths) == 1}
    over = []
    for name, paths in rooms().items():
        budget = budgets["single modules"] if name in single else budgets[name]
        size = sum(map(lines, paths))
        if size > budget["lines"] or len(paths) > budget["modules"]:
            over.append(f"{name}: {size} lines in {len(paths)} modules, {budget}")
    assert not over, over


def test_the_whole_house_keeps_its_budget() -> None:
    paths = [path for room in rooms().values() for path in room]
    assert sum(map(lines, paths)) <= BUDGETS["house"]["lines"]
    assert len(paths) <= BUDGETS["house"]["modules"]
    names = {*karat.__all__, *extend.__all__}
    assert len(names) <= BUDGETS["house"]["public_names"]


def test_few_public_names_are_defined_in_two_modules() -> None:
    count: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        if "compat" in path.parts or path.parts[-2] == "cli":
            continue  # fronts have the names of others, commands are all `command`
        # A function with overloads is one.
        names = {
            node.name
            for node in ast.parse(path.read_text("utf-8")).body
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[0] != "_"
        }
        count.update(names)
    twice = sorted(name for name, times in count.items() if times > 1)
    assert len(twice) <= BUDGETS["house"]["names_defined_twice"], twice


def test_only_public_modules_list_their_names() -> None:
    listing = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"(?m)^__all__\b", path.read_text("utf-8"))
        and path.name not in {"__init__.py", "extend.py"}
        and "compat" not in path.parts
    ]
    assert listing == []


def test_tests_import_private_modules_no_more_than_they_did() -> None:
    private = 0
    for path in (ROOT / "tests").rglob("*.py"):
        for line in path.read_text("utf-8").splitlines():
            private += PRIVATE.match(line.strip()) is not None
    assert private <= BUDGETS["house"]["private_imports_in_tests"]


@pytest.fixture(scope="module")
def ways() -> dict[str, Walk]:
    """In a process of its own, whose caches no other test has filled."""
    code = (
        "import json; from dataclasses import asdict; "
        "from tests.architecture.walk import walks; "
        "print(json.dumps({name: asdict(walk) for name, walk in walks()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    found = json.loads(done.stdout)
    return {
        name: Walk(**{**walk, "rooms": tuple(walk["rooms"])})
        for name, walk in found.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("call", BUDGETS["walks"])
def test_the_way_of_a_call_is_no_longer_than_it_was(
    call: str, ways: dict[str, Walk]
) -> None:
    budget = BUDGETS["walks"][call]
    assert ways[call].functions <= budget["functions"]
    assert ways[call].modules <= budget["modules"]


@pytest.mark.slow
def test_the_page_tells_the_ways_of_now(ways: dict[str, Walk]) -> None:
    assert section(ways) in PAGE.read_text("utf-8"), "run make walk"
