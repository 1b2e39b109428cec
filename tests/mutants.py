"""`make mutants`: change one thing in a copy of the sources; do the tests notice?

    python -m tests.mutants [--rooms stats,gates.py] [--count 70] [--seed 0] [--jobs 2]

A mutant that no test of its room notices survives. Only tests that run the changed line
can notice it: one run of the room under coverage says which they are.
Each room begins with two controls: a module that cannot be imported must not survive,
and the copy as it is must.
Mutants that mean the same as the original are listed in `mutants_equal.txt`.
"""

import argparse
import ast
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "karat"
EQUAL = Path(__file__).with_name("mutants_equal.txt")
# A room, and the tests that are there for it.
ROOMS = {
    "metrics": ("tests/metrics", "tests/oracles"),
    "data": ("tests/data", "tests/metrics", "tests/oracles/test_diversity.py"),
    "matching": ("tests/matching", "tests/diagnosis/test_doctor.py"),
    "stats": ("tests/stats",),
    "comparison": ("tests/comparison", "tests/cli/test_compare.py"),
    "gates.py": ("tests/comparison", "tests/cli/test_compare.py"),
    "diagnosis": ("tests/diagnosis",),
    "results": (
        "tests/results",
        "tests/judging/test_failed_claims.py",
        "tests/cli/test_evaluate.py::test_what_trec_eval_would_do_otherwise_is_said",
        "tests/cli/test_suite.py::test_what_has_not_changed_is_not_scored_again",
        "tests/cli/test_suite.py::test_what_is_kept_is_private_and_may_be_damaged",
        "tests/cli/test_suite_cache.py",
    ),
    "planning.py": (
        *("tests/public/test_planning.py", "tests/public/test_row_scorer.py"),
        *("tests/matching/test_choice.py", "tests/cli/test_evaluate.py"),
        "tests/judging/test_claims.py",
    ),
    "compat/trec_eval.py": (
        *("tests/compat/test_trec_eval.py", "tests/compat/test_trec_eval_options.py"),
        *(
            "tests/compat/test_trec_eval_profiles.py",
            "tests/compat/test_pytrec_eval.py",
        ),
    ),
    "data/policies.py": ("tests/data", "tests/metrics"),
}
NOT_RUN = "not slow and not llm and not frameworks and not browser and not spark"
# Each mutant has a process of its own, forked from one that has loaded these.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["pytest", "hypothesis", "numpy", "scipy.stats", "statsmodels.api", "ir_measures"]
)
# Keyword arguments that say what is so anyway, or only how quickly it is done.
HINTS = {"strict", "slots"}
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
    """One change: the module, which node of it, its line, and which change of that."""

    path: Path
    node: int
    line: int
    change: int

    def made(self) -> tuple[str, str]:
        """What it is called, and the source of its module."""
        source = self.path.read_text("utf-8")
        tree = ast.parse(source)
        node: Any = [*ast.walk(tree)][self.node]
        # An argument is shown with its name, and of a branch only what decides it.
        named = [k for k in ast.walk(tree) if isinstance(k, ast.keyword)]
        shown = next((k for k in named if k.value is node), node)
        before = ast.unparse(getattr(shown, "test", shown))
        changes(node)[self.change](node)
        after = ast.unparse(getattr(shown, "test", shown))
        name = self.path.relative_to(SOURCE).as_posix()
        # The line itself, not its number, which every edit above it would change.
        line = source.splitlines()[self.line - 1].strip()
        return f"{name}: {line}: {before} -> {after}", ast.unparse(tree)


def changes(node: ast.AST) -> list[Callable[[Any], None]]:
    """How a node could be otherwise."""
    ways: list[Callable[[Any], None]] = []
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHERS:
        ways.append(lambda it: it.ops.__setitem__(0, OTHERS[type(it.ops[0])]()))
    operator = getattr(node, "op", None)
    if isinstance(node, ast.expr | ast.stmt) and type(operator) in OTHERS:
        ways.append(lambda it: setattr(it, "op", OTHERS[type(it.op)]()))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        ways.append(lambda it: setattr(it, "value", it.value + 1))
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        ways.append(lambda it: setattr(it, "value", not it.value))
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        ways.append(lambda it: setattr(it, "test", ast.UnaryOp(ast.Not(), it.test)))
    return ways


def modules(room: str) -> list[Path]:
    """The modules of a room."""
    place = SOURCE / room
    return [place] if place.suffix else sorted(place.rglob("*.py"))


def mutants(room: str, seed: int) -> list[Mutant]:
    """Every mutant of a room, in an order that edits of other lines do not change."""
    order = {}
    for path in modules(room):
        source = path.read_text("utf-8")
        lines, tree = source.splitlines(), ast.parse(source)
        keywords = [node for node in ast.walk(tree) if isinstance(node, ast.keyword)]
        hints = {id(each.value) for each in keywords if each.arg in HINTS}
        for number, node in enumerate(ast.walk(tree)):
            for change in range(0 if id(node) in hints else len(changes(node))):
                mutant = Mutant(path, number, getattr(node, "lineno", 0), change)
                place = (lines[mutant.line - 1], getattr(node, "col_offset", 0), change)
                order[mutant] = sha256(f"{seed} {path.name} {place}".encode()).digest()
    return sorted(order, key=order.__getitem__)


def run_tests(folder: Path, tests: Sequence[str], *plugins: object) -> int:
    """Run tests, in this process, with the copy in a folder; 0 if all pass."""
    from pytest import main  # noqa: PLC0415, PT013

    sys.path.insert(0, str(folder))
    # To rewrite the tests' assertions for each mutant takes longer than to run them.
    sys.dont_write_bytecode = False
    # The same examples of Hypothesis for every mutant.
    os.environ.update(PYTHONPATH=str(folder), CI="1")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    (folder / "tests.txt").write_text("\n".join(tests), "utf-8")
    options = ["-q", "-x", "-m", NOT_RUN, "-p", "no:cacheprovider", "-p", "no:randomly"]
    options += ["-o", f"pythonpath={folder} .", f"@{folder / 'tests.txt'}"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(main(options, plugins=plugins))


def is_failed(work: Callable[..., int], *arguments: object) -> bool:
    """Whether a process that does this work ends with another status than 0."""
    process = PROCESSES.Process(target=_exit_with, args=(work, *arguments))
    process.start()
    process.join(600)
    process.kill()
    process.join()
    return process.exitcode != 0


def _exit_with(work: Callable[..., int], *arguments: object) -> None:
    sys.exit(work(*arguments))


class Recorder:
    """A plug-in of pytest: names the running test to coverage, and times it."""

    def __init__(self, coverage: Any) -> None:
        """Around a coverage that was started."""
        self.coverage = coverage
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_setup(self, item: Any) -> None:
        """What runs from here on is run by this test."""
        self.coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add the time of a part of a test."""
        self.seconds[report.nodeid] += report.duration


def record(room: str, folder: Path) -> int:
    """Write which tests of a room run which lines, quickest test first."""
    from coverage import Coverage  # noqa: PLC0415

    copies = {
        path: folder / "karat" / path.relative_to(SOURCE) for path in modules(room)
    }
    coverage = Coverage(
        data_file=None,
        config_file=False,
        include=[str(copy) for copy in copies.values()],
    )
    coverage.start()
    sys.path.insert(0, str(folder))
    for path in copies:
        # Or what a module does when it is imported is booked to one test.
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        import_module(".".join(parts).removesuffix(".__init__"))
    recorder = Recorder(coverage)
    status = run_tests(folder, ROOMS[room], recorder)
    coverage.stop()
    order = sorted(recorder.seconds, key=recorder.seconds.__getitem__)
    place = {test: number for number, test in enumerate(order)}
    lines = {
        f"{path}:{line}": sorted(place[test] for test in tests if test)
        for path, copy in copies.items()
        for line, tests in coverage.get_data().contexts_by_lineno(str(copy)).items()
        # A line run by an import is run by all.
        if "" not in tests
    }
    (folder / "tests.json").write_text(json.dumps([order, lines]), "utf-8")
    return status


def is_killed(path: Path, source: str, folder: Path, tests: Sequence[str]) -> bool:
    """Whether one of the tests fails with this source in a copy of the package."""
    copy = folder / "karat" / path.relative_to(SOURCE)
    original = copy.read_text("utf-8")
    copy.write_text(source, "utf-8")
    try:
        return is_failed(run_tests, folder, tests)
    finally:
        copy.write_text(original, "utf-8")


def try_room(room: str, chosen: list[Mutant], folders: list[Path]) -> None:
    """Print what survives of the chosen mutants, and how many were killed."""
    first, folder = modules(room)[0], folders[0]
    if not is_killed(first, "raise SystemExit(1)", folder, ROOMS[room]):
        sys.exit(f"{room}: the control survives: its tests test something else")
    if is_failed(record, room, folder):
        sys.exit(f"{room}: its tests fail without any mutant")
    order, lines = json.loads((folder / "tests.json").read_text("utf-8"))
    equal = {*EQUAL.read_text("utf-8").splitlines()} if EQUAL.exists() else set()
    free: SimpleQueue[Path] = SimpleQueue()
    for each in folders:
        free.put(each)

    def attempt(mutant: Mutant) -> bool | None:
        """Whether a mutant is killed; None for one that means the same."""
        called, source = mutant.made()
        if called in equal:
            return None
        numbers = lines.get(f"{mutant.path}:{mutant.line}")
        tests = ROOMS[room] if numbers is None else [order[n] for n in numbers]
        place = free.get()
        try:
            killed = bool(tests) and is_killed(mutant.path, source, place, tests)
        finally:
            free.put(place)
        if not killed:
            print(f"survives: {called}", flush=True)  # noqa: T201
        return killed

    with ThreadPoolExecutor(len(folders)) as pool:
        outcomes = [
            killed for killed in pool.map(attempt, chosen) if killed is not None
        ]
    print(f"{room}: {sum(outcomes)} of {len(outcomes)} killed", flush=True)  # noqa: T201


def main() -> None:
    """Try mutants of each room."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--count", type=int, default=70, help="mutants of each room")
    parser.add_argument("--skip", type=int, default=0, help="mutants tried before")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name, str(number)) for number in range(options.jobs)]
        for folder in folders:
            shutil.copytree(SOURCE, folder / "karat")
            # Compiled once; what is changed after that is told by its content.
            compile_dir(
                folder, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH
            )
        for room in options.rooms.split(","):
            chosen = mutants(room, options.seed)[options.skip :][: options.count]
            try_room(room, chosen, folders)


if __name__ == "__main__":
    main()
