"""Side-by-side speed against peers: `python bench/run.py [--quick] [BENCH...]`."""

import argparse
import platform
import sys
from collections.abc import Callable, Iterator

import files
import fusion
import in_memory
import judging
import scaling
import significance
from datasets import SHAPES
from timing import Row, show

Measure = Callable[[list[str]], Iterator[Row]]

# Medians of interleaved rounds; x says how many times faster karat is.
_BENCHES: dict[str, tuple[str, Measure]] = {
    "startup": ("start of short commands, whole process", files.measure_startup),
    "dicts": ("dicts of dicts, peers' objects built", in_memory.measure_dicts),
    "reused": ("dicts of dicts, gold prepared once", in_memory.measure_reused),
    "showing": ("what results take to be shown", in_memory.measure_showing),
    "ties": ("dicts of dicts with equal scores", in_memory.measure_ties),
    "lists": ("lists (x of iterating: times the time)", in_memory.measure_lists),
    "trec_files": ("TREC files, whole process, trec-eval", files.measure_trec),
    "layouts": ("TREC files by their scores, CPU", files.measure_layouts),
    "rows": ("CSV and JSONL, whole process, evaluate", files.measure_rows),
    "parquet": ("Parquet files, whole process, evaluate", files.measure_parquet),
    "scaling": ("growth over four sizes (slope 1 = linear)", scaling.measure),
    "judging": ("judging, besides the model", judging.measure),
    "significance": (significance.TITLE, significance.measure),
    "fusion": (fusion.TITLE, fusion.measure),
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
    missed = sum(show(title, measure(sizes)) for title, measure in benches)
    print(f"\n{missed} bars missed" if missed else "\nall bars reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
