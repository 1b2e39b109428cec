"""`make mutants`: change one thing in a copy of the sources; do the tests notice?

    python -m tests.mutants [--rooms stats,gates] [--count 20] [--seed 0]

A mutant that no test of its room notices survives. Each room begins with two controls:
a module that cannot be imported must not survive, and the copy as it is must.
Mutants that mean the same as the original are listed in `mutants_equal.txt`.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "karat"
EQUAL = Path(__file__).with_name("mutants_equal.txt")
# A room, and the tests that are there for it.
ROOMS = {
    "metrics": ("tests/metrics", "tests/oracles"),
    "data": ("tests/data", "tests/metrics"),
    "matching": ("tests/matching",),
    "stats": ("tests/stats",),
    "comparison": ("tests/comparison",),
    "gates.py": ("tests/comparison/test_gates.py", "tests/cli/test_compare.py"),
    "diagnosis": ("tests/diagnosis",),
    "results": ("tests/results",),
    "compat/trec_eval": ("tests/compat",),
}
NOT_RUN = "not slow and not llm and not frameworks and not browser and not spark"
OTHERS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.USub: ast.UAdd,
}


class Mutant(NamedTuple):
    """One change: the room, the module, which node of it, and which change of that."""

    room: str
    path: Path
    node: int
    change: int

    def made(self) -> tuple[str, str]:
        """What it is called, and the source of its module."""
        tree = ast.parse(self.path.read_text("utf-8"))
        node: Any = [*ast.walk(tree)][self.node]
        before, line = ast.unparse(node), node.lineno
        changes(node)[self.change](node)
        after = ast.unparse(ast.fix_missing_locations(node))
        name = self.path.relative_to(SOURCE).as_posix()
        called = f"{name}: line {line}: {before} -> {after}".replace("\n", " ")
        return called[:200], ast.unparse(tree)


def changes(node: ast.AST) -> list[Callable[[Any], None]]:
    """How a node could be otherwise."""
    found: list[Callable[[Any], None]] = []
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHERS:
        found.append(lambda it: it.ops.__setitem__(0, OTHERS[type(it.ops[0])]()))
    operator = getattr(node, "op", None)
    if isinstance(node, ast.expr | ast.stmt) and type(operator) in OTHERS:
        found.append(lambda it: setattr(it, "op", OTHERS[type(it.op)]()))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        found.append(lambda it: setattr(it, "value", it.value + 1))
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        found.append(lambda it: setattr(it, "value", not it.value))
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        found.append(lambda it: setattr(it, "test", ast.UnaryOp(ast.Not(), it.test)))
    return found


def mutants(room: str) -> list[Mutant]:
    """Every mutant of a room."""
    place = SOURCE / room
    paths = [place] if place.suffix else sorted(place.rglob("*.py"))
    return [
        Mutant(room, path, number, change)
        for path in paths
        for number, node in enumerate(ast.walk(ast.parse(path.read_text("utf-8"))))
        for change in range(len(changes(node)))
    ]


def is_killed(room: str, path: Path, source: str, folder: Path) -> bool:
    """Whether a test of the room fails with this source in a copy of the package."""
    copy = folder / "karat" / path.relative_to(SOURCE)
    original = copy.read_text("utf-8")
    copy.write_text(source, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-p", "no:randomly", "-o", f"pythonpath={folder} ."]
    command += ["-m", NOT_RUN, *ROOMS[room]]
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, timeout=600, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        copy.write_text(original, "utf-8")
    return done.returncode != 0


def main() -> None:
    """Print what survives, and how many of each room were killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--count", type=int, default=70, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    equal = {*EQUAL.read_text("utf-8").splitlines()} if EQUAL.exists() else set()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(SOURCE, folder / "karat")
        for room in asked.rooms.split(","):
            every = mutants(room)
            first = every[0].path
            if not is_killed(room, first, "raise SystemExit(1)", folder):
                sys.exit(f"{room}: the control survives: its tests test something else")
            if is_killed(room, first, first.read_text("utf-8"), folder):
                sys.exit(f"{room}: its tests fail without any mutant")
            chosen = random.Random(asked.seed).sample(
                every, min(asked.count, len(every))
            )
            killed = total = 0
            for mutant in chosen:
                called, source = mutant.made()
                if called in equal:
                    continue
                total += 1
                if is_killed(room, mutant.path, source, folder):
                    killed += 1
                else:
                    print(f"survives: {called}", flush=True)  # noqa: T201
            print(f"{room}: {killed} of {total} killed, of {len(every)}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
