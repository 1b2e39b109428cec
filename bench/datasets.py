"""The work sizes of every benchmark: synthetic, seeded, made once, kept on disk."""

import csv
import gzip
import json
import os
import random
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

__all__ = [
    "MILLION",
    "SCALING",
    "SHAPES",
    "TINY",
    "Gold",
    "Lists",
    "Scores",
    "load_dicts",
    "load_lists",
    "prepare",
    "prepare_layouts",
    "prepare_rows",
]

Scores = dict[str, dict[str, float]]
Lists = dict[str, list[str]]
Gold = dict[str, dict[str, int]]

_SEED = 7
_CORPUS = 8_841_823
_FOUND = 0.6
_TOP_HEAVY = 2.5


@dataclass(frozen=True)
class Shape:
    """How large a benchmark is and what its gold looks like.

    Attributes:
        queries: number of queries.
        depth: documents retrieved for each.
        judged: judgements of a query, on average; every query has one at least.
        lost: share of the queries whose run holds no judged document.
        grades: share of each grade among the judgements.
    """

    queries: int
    depth: int
    judged: float
    lost: float = 0.2
    grades: dict[int, float] = field(default_factory=lambda: {1: 1.0})

    @property
    def rows(self) -> int:
        """Number of retrieved documents."""
        return self.queries * self.depth


SHAPES = {
    "small": Shape(100, 10, 3),
    "beir": Shape(1_000, 100, 5),
    "dl": Shape(50, 1_000, 150, lost=0, grades={0: 0.55, 1: 0.25, 2: 0.12, 3: 0.08}),
    "marco": Shape(6_980, 1_000, 1.1),
    "large": Shape(100_000, 100, 3, grades={1: 0.5, 2: 0.5}),
}

TINY = {"1x10": Shape(1, 10, 3, lost=0), "10x10": Shape(10, 10, 3)}
MILLION = {"million": Shape(10_000, 100, 5)}
SCALING = {f"{n}x100": Shape(n, 100, 3) for n in (1_000, 3_000, 9_000, 27_000)}


def prepare(name: str) -> Path:
    """The folder of a work size, with its files made on the first call.

    It holds `run.txt`, `run.txt.gz`, `run.parquet`, `qrels.txt` and `qrels.parquet`,
    under the folder named by `KARAT_BENCH_DIR` (`.bench` of the clone by default).
    """
    shape = (SHAPES | TINY | MILLION | SCALING)[name]
    parent = Path(__file__).resolve().parent.parent / ".bench"
    folder = Path(os.environ.get("KARAT_BENCH_DIR", parent)) / name
    stamp = folder / "made.txt"
    made = f"seed {_SEED}: {shape}\n"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != made:
        folder.mkdir(parents=True, exist_ok=True)
        run, gold = _generate(shape)
        _write(folder, run, gold)
        stamp.write_text(made, encoding="utf-8")
    return folder


def prepare_rows(name: str) -> Path:
    """The same folder with `run.csv`, `run.jsonl` and `samples.jsonl` besides.

    A row is a query, a document and its score; a sample has the documents of a query,
    with their scores, and its gold.
    """
    folder = prepare(name)
    if not (folder / "samples.jsonl").exists():
        run, gold = load_dicts(name)
        rows = [(q, d, score) for q, row in run.items() for d, score in row.items()]
        with (folder / "run.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("qid", "docid", "score"), *rows])
        objects = [{"qid": q, "docid": d, "score": score} for q, d, score in rows]
        _write_lines(folder / "run.jsonl", objects)
        samples = [
            {
                "id": query,
                "retrieved": [{"id": d, "score": s} for d, s in run[query].items()],
                "relevant": labels,
            }
            for query, labels in gold.items()
        ]
        _write_lines(folder / "samples.jsonl", samples)
    return folder


def prepare_layouts() -> Path:
    """A folder with `qrels.txt` and the million lines, their scores in several ways.

    A file `NAME.run` for scores with four decimals, with exponents, as `repr` writes
    what a softmax makes of them, with 19 digits; for lines in the order of ranks, and
    in no order; and for equal scores. `run.parquet` and `qrels.parquet` have whole
    numbers as ids.
    """
    source = prepare("million")
    folder = source / "layouts"
    if not (folder / "qrels.parquet").exists():
        folder.mkdir(exist_ok=True)
        shutil.copy(source / "qrels.txt", folder / "qrels.txt")
        lines = (source / "run.txt").read_text(encoding="utf-8").splitlines()
        words = [line.split(" ") for line in lines]
        scores = np.array([float(word[4]) for word in words])
        for name, texts in {
            "plain": map("{:.4f}".format, scores),
            "exponents": map("{:.8e}".format, scores / 1e6),
            "softmax": map(repr, np.exp(scores / 4 - 25).tolist()),
            "19 digits": map("{:.18f}".format, scores / 101),
            "tied": repeat("1.0"),
        }.items():
            with (folder / f"{name}.run").open("w", encoding="utf-8") as file:
                for word, text in zip(words, texts, strict=False):
                    file.write(" ".join((*word[:4], text, word[5])) + "\n")
        plain = (
            (folder / "plain.run").read_text(encoding="utf-8").splitlines(keepends=True)
        )
        plain.sort(key=lambda line: int(line.split(" ", 4)[3]))
        with (folder / "by rank.run").open("w", encoding="utf-8") as file:
            file.writelines(plain)
        random.Random(_SEED).shuffle(plain)
        with (folder / "shuffled.run").open("w", encoding="utf-8") as file:
            file.writelines(plain)
        _write_numbers(source / "run.parquet", folder / "run.parquet")
        _write_numbers(source / "qrels.parquet", folder / "qrels.parquet")
    return folder


def _write_numbers(source: Path, file: Path) -> None:
    """The table with ids that are whole numbers."""
    table = pq.read_table(source)
    for at, name in enumerate(table.column_names):
        if pa.types.is_string(table.schema.field(name).type):
            numbers = [int(re.sub(r"\D", "", text)) for text in table[name].to_pylist()]
            table = table.set_column(at, name, pa.array(numbers))
    pq.write_table(table, file)


def load_dicts(name: str) -> tuple[Scores, Gold]:
    """A run as `{query: {document: score}}` and its gold; they share no string."""
    folder = prepare(name)
    run = _nested(folder / "run.parquet", "score")
    return run, _nested(folder / "qrels.parquet", "rel")


def load_lists(name: str) -> tuple[Lists, Gold]:
    """A run as `{query: [document, ...]}`, best first, and its gold."""
    run, gold = load_dicts(name)
    return {query: list(scores) for query, scores in run.items()}, gold


def _generate(shape: Shape) -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(_SEED)
    queries = rng.permutation(np.arange(1_000, 1_000 + shape.queries * 10, 10))
    ranks = np.arange(1, shape.depth + 1)
    documents = np.stack(
        [rng.choice(_CORPUS, shape.depth, replace=False) for _ in range(shape.queries)]
    )
    noise = 0.8 * rng.random((shape.queries, shape.depth))
    run = {
        "qid": _ids(np.repeat(queries, shape.depth)),
        "docid": _ids(documents.ravel()),
        "rank": pa.array(np.tile(ranks, shape.queries), pa.int32()),
        "score": pa.array(np.round(ranks[::-1] + noise, 4).ravel()),
    }
    judged = [_judge(rng, shape, row) for row in documents]
    flat = np.concatenate(judged)
    grades = rng.choice(list(shape.grades), len(flat), p=list(shape.grades.values()))
    gold = {
        "qid": _ids(np.repeat(queries, [len(row) for row in judged])),
        "docid": _ids(flat),
        "rel": pa.array(grades, pa.int32()),
    }
    return pa.table(run), pa.table(gold)


def _judge(
    rng: np.random.Generator, shape: Shape, documents: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The judged documents of one query: some retrieved, mostly near the top."""
    count = 1 + rng.poisson(shape.judged - 1)
    places = np.unique((shape.depth * rng.random(count) ** _TOP_HEAVY).astype(int))
    found = documents[places[: max(1, int(_FOUND * count))]]
    if rng.random() < shape.lost:
        found = found[:0]
    others = np.setdiff1d(rng.integers(0, _CORPUS, count + 1), documents)
    return rng.permutation(np.r_[found, others[: max(count - len(found), 0)]])


def _ids(numbers: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _write(folder: Path, run: pa.Table, gold: pa.Table) -> None:
    pq.write_table(run, folder / "run.parquet")
    pq.write_table(gold, folder / "qrels.parquet")
    columns = [run["qid"], _constant("Q0", run), *run.columns[1:]]
    _write_text(folder / "run.txt", [*columns, _constant("run", run)])
    columns = [gold["qid"], _constant("0", gold), *gold.columns[1:]]
    _write_text(folder / "qrels.txt", columns)
    with (
        (folder / "run.txt").open("rb") as plain,
        gzip.open(folder / "run.txt.gz", "wb", compresslevel=6) as packed,
    ):
        shutil.copyfileobj(plain, packed, 1 << 20)


def _write_lines(path: Path, objects: Iterable[object]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in objects)


def _constant(text: str, table: pa.Table) -> pa.Array:
    return pa.repeat(text, table.num_rows)


def _write_text(path: Path, columns: list[pa.Array]) -> None:
    names = [str(index) for index in range(len(columns))]
    options = pa_csv.WriteOptions(
        include_header=False, delimiter=" ", quoting_style="none"
    )
    pa_csv.write_csv(pa.table(columns, names=names), path, options)


def _nested(path: Path, value: str) -> dict[str, dict[str, Any]]:
    table = pq.ParquetFile(path).read(["qid", "docid", value])
    queries = pc.run_end_encode(table["qid"].combine_chunks())
    pairs = zip(table["docid"].to_pylist(), table[value].to_pylist(), strict=True)
    sizes = np.diff(queries.run_ends.to_pylist(), prepend=0).tolist()
    names = queries.values.to_pylist()
    return {
        query: dict(islice(pairs, size))
        for query, size in zip(names, sizes, strict=True)
    }
