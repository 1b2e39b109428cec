"""What is read in batches is what is read one by one."""

import io
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.extend import FormatError, Policies, Source
from karat.reading import json_text, readers
from karat.reading.meaning import records
from karat.reading.meaning.rows import TableReader
from karat.reading.source import Batched, Notes


def lines_of(text: str) -> tuple[list[Any], list[str]]:
    """The values with their lines, and all problems."""
    source = Source("x.jsonl", notes=Notes(keep=99))
    lines = partial(io.BytesIO, text.encode())
    found = [*Batched(json_text._batches(lines, source))]
    return found, [str(problem) for problem in source.notes.problems]


# Lines that together are a list of as many values as there are lines.
TORN = ['{"a":[{}', "{}]}", '{"b":1},{"c":2}']
LINES = [
    '{"a": 1}',
    '{"a": 1, "a": 2}',
    '{"a": "x: y"}',
    '{"a": [{"b": 1}, {"b": 2, "b": 3}]}',
    '{"a": [{"b": {"c": 1}}, 7, "d:"]}',
    '["a", "b"]',
    '{"a": NaN}',
    '{"a": "between two lines"}',
    "",
    "  ",
    '{"a": 1} {"b": 2}',
    "7",
    '"text"',
    *TORN,
]


@pytest.mark.parametrize("seed", range(40))
def test_lines_of_json(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(seed)
    plain = LINES[:1] * source.choice((1, 30))
    text = "\n".join(source.choices(plain + LINES, k=source.randint(1, 8)))
    ours = lines_of(text)
    monkeypatch.setattr(json_text, "_decode_lines", lambda *_: None)
    assert ours == lines_of(text)


def test_torn_lines_are_no_values() -> None:
    found, problems = lines_of("\n".join(TORN))
    assert not found
    assert len(problems) == len(TORN)


@pytest.mark.parametrize("seed", range(30))
def test_rows_of_tables(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = random.Random(seed)
    number = source.choice(("score", "distance"))
    header = ["qid", "docid", number]
    header += [n for n in ("rank", "system", "note") if source.random() < 0.4]
    odd = source.choice(("", "", "1_0", "nan", "x", " 3 ", "1e5"))
    rows = [
        {
            "qid": f"q{source.randint(1, 3)}",
            "docid": f"d{source.randint(1, 40)}",
            number: source.choice((f"{source.random():.2f}", "7", odd or "8")),
            "rank": str(place),
            "system": source.choice("ab" if source.random() < 0.1 else "a"),
            "note": "n",
        }
        for place in range(1, source.randint(3, 25))
    ]
    table = tmp_path / "run.csv"
    cells = [[row[name] for name in header] for row in rows]
    table.write_text("\n".join(",".join(row) for row in [header, *cells]))
    records = tmp_path / "run.jsonl"
    chosen = [{name: row[name] for name in header} for row in rows]
    records.write_text("\n".join(map(json.dumps, chosen)))
    ours = [read(path) for path in (table, records)]
    take = TableReader.take

    def one_by_one(self: TableReader, columns: Any, lines: Any) -> None:
        for line, *row in zip(lines, *columns.values(), strict=True):
            cells = zip(columns, row, strict=True)
            take(self, {name: [cell] for name, cell in cells}, [line])

    monkeypatch.setattr(TableReader, "take", one_by_one)
    assert ours == [read(path) for path in (table, records)]


def read(path: Path) -> Any:
    try:
        loaded = readers.read(path, role="run")
        assert loaded.run is not None
        rankings = [*loaded.run.rankings(Policies())]
        return type(loaded.run), rankings, loaded.notices, loaded.mapping
    except FormatError as error:
        return str(error)


@pytest.mark.parametrize(
    "documents",
    [
        [{"id": "a", "score": 0.5}, {"id": "b", "score": 0.25}],
        [{"id": "a", "score": 0.5}, {"id": "b", "score": 0.75}],
        [{"id": "a", "score": 0.5}, {"id": "a", "score": 0.25}],
        [{"id": "a", "score": 1}, {"id": "b", "score": 0.25}],
        [{"doc_id": "a", "similarity": 0.5}],
        [{"id": " ", "score": 0.5}],
        [{"id": "a", "score": 0.5}, {"id": "b", "text": "B."}],
        [{"id": "a", "score": 0.5}, {"id": "b"}],
        [{"id": 7, "score": 0.5}],
        [{"id": "a", "score": float("inf")}],
    ],
)
def test_documents_with_scores(
    documents: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def scored() -> Any:
        samples = [
            {"id": "q1", "retrieved": documents, "relevant": ["a"]},
            {"id": "q2", "retrieved": ["a", "c"], "relevant": ["a"]},
        ]
        try:
            return karat.evaluate(samples, keep=3).to_dict()
        except karat.KaratError as error:
            return str(error)

    ours = scored()
    monkeypatch.setattr(records, "read_plain_documents", lambda _: None)
    assert ours == scored()
