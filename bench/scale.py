"""Large runs in Parquet: cost and memory against rows, parts against one pass, Spark.

    python bench/scale.py             10^5 to 10^7 rows, against 3 million labels
    python bench/scale.py --rows 8    up to 10^8 rows: 1.4 GB of files
    python bench/scale.py --spark     also Spark, in this machine

Every measurement is a process of its own: CPU seconds of all its threads and children,
and the most memory that it held.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

DEPTH, FILES, QUERIES, DOCUMENTS = 100, 100, 1_000_000, 8_000_000
METRICS = ["ndcg@10", "recall@100", "rr", "ap", "hit@5"]


def prepare(folder: Path, files: int) -> None:
    """Gold of a million queries, and a run of so many of a hundred parts."""
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    names = pa.array(np.char.add("d", np.arange(DOCUMENTS).astype(str)).tolist())
    queries = pa.array([f"q{number}" for number in range(QUERIES)])
    each = QUERIES // FILES
    labels = []
    for part in range(FILES):
        draw = np.random.default_rng(part)
        found = draw.integers(0, DOCUMENTS, (each, DEPTH))
        query = np.arange(part * each, (part + 1) * each)
        half = draw.integers(0, DEPTH // 2, (2, each))
        half[1] += DEPTH // 2
        known = found[np.arange(each), half]
        other = draw.integers(0, DOCUMENTS, (1, each))
        grade = draw.integers(0, 3, 3 * each)
        wanted = np.concatenate((known, other)).T.ravel()
        labels.append((np.repeat(query, 3), wanted, grade))
        file = folder / "runs" / f"part-{part:03}.parquet"
        if part < files and not file.exists():
            score = np.sort(draw.random((each, DEPTH)), 1)[:, ::-1].astype(np.float32)
            columns = {
                "query_id": queries.take(pa.array(np.repeat(query, DEPTH))),
                "doc_id": names.take(pa.array(found.ravel())),
                "score": pa.array(score.ravel()),
            }
            parquet.write_table(pa.table(columns), file, row_group_size=1 << 18)
    if not (folder / "gold.parquet").exists():
        query, wanted, grade = map(np.concatenate, zip(*labels, strict=True))
        _, once = np.unique(query * DOCUMENTS + wanted, return_index=True)
        columns = {
            "query_id": queries.take(pa.array(query[once])),
            "doc_id": names.take(pa.array(wanted[once])),
            "grade": pa.array(grade[once]),
        }
        parquet.write_table(pa.table(columns), folder / "gold.parquet")


def one_pass(gold: str, files: list[str]) -> dict[str, float]:
    import karat

    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            (Path(folder) / Path(file).name).symlink_to(file)
        return karat.evaluate(folder, gold=gold, metrics=METRICS).means


def in_spark(gold: str, files: list[str]) -> dict[str, float]:
    """Beyond what a session and one look at the same rows cost by themselves."""
    from pyspark.sql import SparkSession

    import karat

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config(
        "spark.ui.enabled", "false"
    )
    builder = builder.config("spark.driver.host", "127.0.0.1")
    session = builder.config("spark.driver.memory", "2g").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    run = session.read.parquet(*files)
    through = run.mapInArrow(_count, "rows long")
    # The first job also pays for starting, compiling and the workers.
    through.agg({"rows": "sum"}).collect()
    before = cpu()
    through.agg({"rows": "sum"}).collect()
    middle = cpu()
    means = karat.evaluate(run, gold=gold, metrics=METRICS).means
    after = cpu()
    session.stop()
    return {**means, "passing rows": middle - before, "evaluating": after - middle}


def _count(batches: object) -> object:
    for batch in batches:  # type: ignore[attr-defined]
        yield pa.RecordBatch.from_pydict({"rows": pa.array([batch.num_rows])})


def cpu() -> float:
    """CPU seconds of this process and of all that descend from it."""
    ticks = os.sysconf("SC_CLK_TCK")
    total, parents = 0.0, {}
    stats = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            stats[int(entry.name)] = sum(map(int, fields[11:15])) / ticks
    for process, seconds in stats.items():
        at: int | None = process
        while at and at != os.getpid():
            at = parents.get(at)
        total += seconds if at else 0.0
    return total


WAYS = {"one pass": one_pass, "spark": in_spark}


def child(way: str, gold: str, files: list[str]) -> None:
    """Do it, and print what it took."""
    started = time.time()
    means = WAYS[way](gold, files)
    own, others = (
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    seconds = sum(each.ru_utime + each.ru_stime for each in (own, others))
    # The usage of a process counts the memory of the one that started it, too.
    status = Path("/proc/self/status").read_text("ascii")
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps([means, seconds, peak, time.time() - started]))


def measure(way: str, folder: Path, files: int) -> tuple[dict[str, float], float]:
    names = sorted(map(str, (folder / "runs").glob("*.parquet")))[:files]
    command = [sys.executable, __file__, "--child", way, str(folder / "gold.parquet")]
    told = subprocess.run(
        [*command, *names], check=True, capture_output=True, text=True
    )
    means, seconds, memory, wall = json.loads(told.stdout.splitlines()[-1])
    rows = files * QUERIES // FILES * DEPTH
    print(
        f"{way:10} {rows:>11,} rows  {seconds:7.2f} CPU s  {memory:6.0f} MB  "
        f"{wall:6.1f} s  {means}",
        flush=True,
    )
    return means, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=7, help="largest power of ten")
    parser.add_argument(
        "--folder", type=Path, default=None, help="where files are kept"
    )
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--child", nargs="+")
    options = parser.parse_args()
    if options.child:
        way, gold, *files = options.child
        child(way, gold, files)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        most = 10 ** (options.rows - 6)
        prepare(folder, most)
        sizes = [n for n in (1, 10, 100) if n <= most]
        took = {n: measure("one pass", folder, n) for n in sizes}
        means, _ = measure("parts", folder, min(10, most))
        assert means == took[min(10, most)][0], "parts give the bytes of one pass"
        if len(sizes) > 1:
            first, last = sizes[0], sizes[-1]
            each = (took[last][1] - took[first][1]) / (last - first)
            print(f"{each:.2f} CPU s for each further million rows")
        if options.spark:
            measure("spark", folder, min(10, most))


if __name__ == "__main__":
    main()
