"""One random data set in every form that karat reads."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

import karat
from karat import KaratError

Rankings = dict[str, Any]
Inputs = tuple[Any, Any]

WORDS = ("rye", "oats", "barley", "grain", "bread", "baked", "sold", "here", "fresh")


class ScoredDoc(NamedTuple):
    """A row of a run, as ir_measures and ir_datasets have it."""

    query_id: str
    doc_id: str
    score: float


class Qrel(NamedTuple):
    """A row of gold, as ir_measures and ir_datasets have it."""

    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


def data_set(random: Random) -> tuple[Rankings, Rankings]:
    """A run and gold by query: lists or numbers, ids or texts."""
    texts = random.random() < 0.4
    names = [_text(random) for _ in range(12)] if texts else _ids(random)
    queries = [f"q{number}" for number in range(random.randint(1, 5))]
    scored = not texts and random.random() < 0.5
    graded = not texts and random.random() < 0.5
    run, gold = {}, {}
    for query in queries:
        found = random.sample(names, random.randint(1, 8))
        if not scored and random.random() < 0.2:
            found.append(found[0])
        run[query] = {d: random.randint(0, 8) / 4 for d in found} if scored else found
        wanted = random.sample(names, random.randint(1, 3))
        if not graded and random.random() < 0.2:
            wanted.append(wanted[0])
        gold[query] = {d: random.randint(0, 3) for d in wanted} if graded else wanted
    if random.random() < 0.2:
        del run[random.choice(queries)]
    if not run:
        run = {"other": [names[0]] if not scored else {names[0]: 1.0}}
    return run, gold


def _ids(random: Random) -> list[str]:
    style = random.choice(["d{}", "doc-{}.md", "New York {}", "{}", "a b c {}"])
    return [style.format(number) for number in range(12)]


def _text(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=random.randint(4, 9))) + "."


def forms(run: Rankings, gold: Rankings, folder: Path) -> Iterator[tuple[str, Inputs]]:
    """The name of each form, with the run and the gold in it."""
    yield "dict", (run, gold)
    yield "tuples", tuple({q: _tuple(v) for q, v in d.items()} for d in (run, gold))  # type: ignore[misc]
    for name, dump in _NESTED.items():
        yield name, (_file(folder, name, dump(run)), _file(folder, name, dump(gold)))
    records = _records(run, "retrieved"), _records(gold, "gold")
    yield "records", records
    for name, write in _BY_RECORD.items():
        yield name, tuple(write(some, folder) for some in records)
    if all(isinstance(v, dict) for v in (*run.values(), *gold.values())):
        rows = _rows(run, "score"), _rows(gold, "relevance")
        yield (
            "namedtuples",
            (
                [ScoredDoc(*row.values()) for row in rows[0]],
                [Qrel(*row.values()) for row in rows[1]],
            ),
        )
        yield "rows", rows
        for name, write in _BY_RECORD.items():
            yield f"{name} of rows", tuple(write(some, folder) for some in rows)
    if run.keys() == gold.keys():
        samples = [
            {**first, "gold": second["gold"]}
            for first, second in zip(*records, strict=True)
        ]
        yield "samples", (samples, None)
        for name, write in _BY_RECORD.items():
            yield f"{name} of samples", (write(samples, folder), None)


def ranked_rows(random: Random) -> tuple[list[dict[str, Any]], dict[str, list[int]]]:
    """Rows in any order with a rank column, and the ranks of each query's documents."""
    first = random.randint(0, 1)
    rows, ranks = [], {}
    for number in range(random.randint(1, 4)):
        query = f"q{number}"
        given = sorted(random.sample(range(12), random.randint(1, 6)))
        if number == 0:
            # A table that counts from 0 says so somewhere.
            given[0] = 0
        ranks[query] = [rank + 1 for rank in given]
        rows += [
            {"query_id": query, "doc_id": f"d{n}", "rank": rank + first}
            for n, rank in enumerate(given)
        ]
    random.shuffle(rows)
    return rows, ranks


def row_forms(rows: list[dict[str, Any]], folder: Path) -> Iterator[tuple[str, Any]]:
    """The name of each form, with the rows of a table in it."""
    yield "records", rows
    for name, write in _BY_RECORD.items():
        yield name, write(rows, folder)


def outcome(inputs: Inputs, **options: Any) -> Any:
    """What karat makes of it: every score, the matchers and the notices."""
    run, gold = inputs
    try:
        result = karat.evaluate(run, gold=gold, **options)
    except KaratError as error:
        return type(error).__name__
    kinds = sorted((n.kind, n.count, n.text) for n in result.warnings)
    scores = {name: result[name].scores.tolist() for name in result}
    return repr(scores), dict(result.matchers), kinds


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _records(data: Rankings, field: str) -> list[dict[str, Any]]:
    return [{"id": query, field: value} for query, value in data.items()]


def _rows(data: Rankings, field: str) -> list[dict[str, Any]]:
    return [
        {"query_id": query, "doc_id": document, field: number}
        for query, row in data.items()
        for document, number in row.items()
    ]


def _file(folder: Path, ending: str, content: str | bytes) -> str:
    number = len([*folder.iterdir()])
    path = folder / f"{number}.{ending}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def _jsonl(records: list[dict[str, Any]], folder: Path) -> str:
    return _file(folder, "jsonl", "\n".join(map(json.dumps, records)))


def _csv(records: list[dict[str, Any]], folder: Path) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*records[0]])
    writer.writeheader()
    for record in records:
        cells = {
            name: json.dumps(value) if isinstance(value, list | dict) else value
            for name, value in record.items()
        }
        writer.writerow(cells)
    return _file(folder, "csv", stream.getvalue())


def _yaml(records: list[dict[str, Any]], folder: Path) -> str:
    return _file(folder, "yaml", yaml.safe_dump(records, sort_keys=False))


def _frame(records: list[dict[str, Any]], folder: Path) -> Any:
    import pandas as pd  # noqa: PLC0415

    del folder
    return pd.DataFrame(records)


def _parquet(records: list[dict[str, Any]], folder: Path) -> str:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    path = _file(folder, "parquet", b"")
    cells = [
        {
            name: json.dumps(value) if isinstance(value, dict) else value
            for name, value in record.items()
        }
        for record in records
    ]
    pq.write_table(pa.Table.from_pylist(cells), path)
    return path


_NESTED: dict[str, Callable[[Any], str]] = {
    "json": json.dumps,
    "yaml": lambda value: yaml.safe_dump(value, sort_keys=False),
}
_BY_RECORD: dict[str, Callable[[list[dict[str, Any]], Path], Any]] = {
    "JSONL": _jsonl,
    "CSV": _csv,
    "YAML": _yaml,
    "frame": _frame,
    "Parquet": _parquet,
}
