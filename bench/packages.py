"""What packages cost that karat uses or could: `python -m bench.packages [NAME...]`.

CPU time of the import beyond that of starting Python, the least of five; and the size
on disk, without and with what it depends on. Not installed: left out.
"""

import sys
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from subprocess import run

from packaging.requirements import Requirement

MODULES = {"pyyaml": "yaml", "scipy": "scipy.stats", "resvg-py": "resvg_py"}
NAMES = (
    *("numpy", "click", "rich", "pyyaml", "rapidfuzz", "pyarrow", "pandas"),
    *("httpx", "bm25s", "scipy", "numba", "polars"),
)


def seconds(statement: str) -> float:
    """The least CPU time of Python with a statement."""
    times = []
    for _ in range(5):
        before = getrusage(RUSAGE_CHILDREN)
        run([sys.executable, "-c", statement], check=True)
        after = getrusage(RUSAGE_CHILDREN)
        times.append(sum(after[:2]) - sum(before[:2]))
    return min(times)


def megabytes(name: str) -> float:
    """The size of a package's files."""
    files = distribution(name).files or ()
    paths = [Path(str(file.locate())) for file in files]
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6


def with_dependencies(name: str, seen: set[str]) -> set[str]:
    """A package and all that it needs."""
    if name not in seen:
        seen.add(name)
        for text in requires(name) or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                with_dependencies(needed.name.lower(), seen)
    return seen


def main() -> None:
    """Print a line for each package."""
    alone = seconds("")
    print(f"Python {sys.version.split()[0]} alone: {1000 * alone:.0f} ms")
    for name in sys.argv[1:] or NAMES:
        try:
            every = with_dependencies(name, set())
            size, whole = megabytes(name), sum(map(megabytes, every))
        except PackageNotFoundError as missing:
            print(f"{name}: {missing}")
            continue
        time = seconds(f"import {MODULES.get(name, name)}") - alone
        print(f"{name} {distribution(name).version}: {1000 * time:.0f} ms, ", end="")
        print(f"{size:.0f} MB, {whole:.0f} MB with dependencies", flush=True)


if __name__ == "__main__":
    main()
