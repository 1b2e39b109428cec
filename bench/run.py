"""Side-by-side speed against peers: `python bench/run.py [--quick] [BENCH...]`."""

import argparse
import platform
import sys
from types import ModuleType

import dicts
import fusion
import judging
import lists
import parquet
import scaling
import significance
import trec_files
from datasets import SHAPES
from timing import show

_BENCHES: dict[str, ModuleType] = {
    "dicts": dicts,
    "lists": lists,
    "trec_files": trec_files,
    "parquet": parquet,
    "scaling": scaling,
    "judging": judging,
    "significance": significance,
    "fusion": fusion,
}
_LONG = ("marco", "large")


def main() -> int:
    """Run the chosen benchmarks; the exit code is 1 when a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=", ".join(_BENCHES))
    parser.add_argument("--quick", action="store_true", help="leave out the long sizes")
    parser.add_argument("--sizes", nargs="+", choices=SHAPES, help="only these sizes")
    chosen = parser.parse_args()
    unknown = set(chosen.benches) - set(_BENCHES)
    if unknown:
        parser.error(
            f"unknown {', '.join(sorted(unknown))}; have {', '.join(_BENCHES)}"
        )
    sizes = chosen.sizes or [s for s in SHAPES if not (chosen.quick and s in _LONG)]
    print(f"Python {platform.python_version()} on {platform.machine()}")
    benches = [_BENCHES[name] for name in chosen.benches or _BENCHES]
    missed = sum(show(bench.TITLE, bench.measure(sizes)) for bench in benches)
    print(f"\n{missed} bars missed" if missed else "\nall bars reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
