"""How many modules there are, how long they are, and who imports them."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

MOST_LINES, LEAST_LINES = 600, 30
# One line each: what the version is, and that `python -m karat` is the command.
SHORT = {"karat.version", "karat.__main__"}
# What is measured today. A change may lower these numbers, and not raise them.
MOST_IMPORTED = 69
MOST_WITH_ONE_IMPORTER = 38

LAZY = re.compile(r"(karat(?:\.\w+)+)(?::\w+)?")


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in SOURCES}


def test_no_module_is_too_long_or_too_short() -> None:
    odd = {}
    for module, path in MODULES.items():
        length = len(path.read_text("utf-8").splitlines())
        may_be_short = path.stem == "__init__" or module in SHORT
        if not (0 if may_be_short else LEAST_LINES) <= length <= MOST_LINES:
            odd[module] = length
    assert odd == {}


def imported(path: Path) -> Iterator[str]:
    """The modules of karat that a module imports, or names to be imported later."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.Constant) and (
            lazy := LAZY.fullmatch(str(node.value))
        ):
            yield lazy[1]


@pytest.mark.slow
def test_few_modules_serve_one_other() -> None:
    importers: dict[str, set[str]] = {module: set() for module in MODULES}
    for module, path in MODULES.items():
        for other in imported(path):
            if other in MODULES and other != module:
                importers[other].add(module)
    alone = [
        module
        for module, others in importers.items()
        if len(others) == 1 and MODULES[module].stem != "__init__"
    ]
    assert len(alone) <= MOST_WITH_ONE_IMPORTER, alone


def test_a_first_evaluation_imports_little() -> None:
    code = (
        "import sys, karat; karat.evaluate({'q': {'a': 1.0}}, gold={'q': {'a': 1}}); "
        "print(*(m for m in sys.modules if m.split('.')[0] == 'karat'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.split()) <= MOST_IMPORTED, done.stdout
