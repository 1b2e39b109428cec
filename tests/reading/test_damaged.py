"""Damaged files and odd values: a sentence about the input, never a crash."""

import io
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import karat
from karat.extend import FormatError, Policies
from karat.reading.readers import read
from karat.reading.write import write

ROWS = {
    "query_id": ["q1", "q1"],
    "doc_id": ["document-1", "document-2"],
    "rank": [1, 2],
}


def ipc(table: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def ranking(run: Any, query: str = "q1") -> list[str | None]:
    return [document.id for document in dict(run.rankings(Policies()))[query]]


@pytest.mark.parametrize(
    "offset", [b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\x00\x00\x00\x31"]
)
@pytest.mark.parametrize("ending", ["arrow", "feather"])
def test_offsets_outside_of_an_arrow_file_are_a_sentence(
    offset: bytes, ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"run.{ending}"
    data = ipc(pa.table(ROWS))
    cuts = b"\x00\x00\x00\x00\x0a\x00\x00\x00\x14\x00\x00\x00"
    assert cuts in data
    path.write_bytes(data.replace(cuts, cuts[:4] + offset + cuts[8:]))
    with pytest.raises(FormatError, match="cannot be read"):
        karat.evaluate(path, gold={"q1": ["document-1"]})


def test_codes_outside_of_a_dictionary_are_a_sentence(tmp_path: Path) -> None:
    codes = pa.array([0, 7], pa.int32())
    coded = pa.DictionaryArray.from_arrays(codes, pa.array(["q1"]), safe=False)
    path = tmp_path / "run.arrow"
    path.write_bytes(ipc(pa.table({**ROWS, "query_id": coded})))
    with pytest.raises(FormatError, match="cannot be read"):
        karat.evaluate(path, gold={"q1": ["document-1"]})


def test_texts_that_are_no_text_are_a_sentence(tmp_path: Path) -> None:
    table = pa.table({"id": [b"q\xff"], "retrieved": [["a"]], "relevant": [["a"]]})
    text = table.column(0).combine_chunks().view(pa.string())
    path = tmp_path / "samples.parquet"
    parquet.write_table(table.set_column(0, "id", text), path)
    with pytest.raises(FormatError, match="cannot be read"):
        karat.evaluate(path)


def test_an_empty_cell_is_found_whatever_the_others_hold(tmp_path: Path) -> None:
    names = pa.array([b"\xff", None]).view(pa.string())
    path = tmp_path / "run.parquet"
    parquet.write_table(pa.table({**ROWS, "doc_id": names}), path)
    with pytest.raises(FormatError, match="row 2: the cell is empty"):
        karat.evaluate(path, gold={"q1": ["a"]})


def test_typed_columns_of_samples_become_text_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "samples.parquet"
    day = date(2024, 1, 31)
    table = pa.table(
        {
            "id": [Decimal(7)],
            "retrieved": [[{"id": b"d1", "score": Decimal("0.5")}]],
            "relevant": [["d1"]],
            "day": [day],
            "nothing": pa.nulls(1),
        }
    )
    parquet.write_table(table, path)
    data = read(path, role="samples")
    assert data.run is not None
    assert ranking(data.run, "7") == ["d1"]
    assert data.queries["7"].metadata["day"] == "2024-01-31"
    for format in ("json", "jsonl", "csv", "yaml"):
        write(data, io.BytesIO(), format)


@pytest.mark.parametrize("column", ["query_id", "doc_id", "rank"])
@pytest.mark.parametrize(
    "cells",
    [
        pa.array([date(2024, 1, 1)] * 2),
        pa.array([{"a": 1}] * 2),
        pa.nulls(2),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([[1], [2]])),
    ],
    ids=["date", "struct", "null", "dictionary"],
)
def test_typed_columns_of_a_run_are_a_sentence(
    column: str, cells: Any, tmp_path: Path
) -> None:
    path = tmp_path / "run.arrow"
    path.write_bytes(ipc(pa.table({**ROWS, column: cells})))
    with pytest.raises(FormatError):
        karat.evaluate(path, gold={"q1": ["document-1"]})


@pytest.mark.parametrize("read", [karat.read_run, karat.read_corpus, karat.load])
def test_a_text_longer_than_a_name_may_be_is_no_file(read: Any) -> None:
    with pytest.raises(FormatError, match="not a path"):
        read("x" * 5000)


@pytest.mark.parametrize("end", [2**53, 2**70, 10**300])
def test_offsets_have_an_end(end: int) -> None:
    spans = [{"source": "a", "start": 3, "end": 9}]
    retrieved = [{"source": "a", "start": 0, "end": end}]
    with pytest.raises(FormatError, match="start and end must be integers"):
        karat.evaluate([{"id": "q1", "retrieved": retrieved, "spans": spans}])


def test_infinity_beside_the_ids_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "samples.yaml"
    path.write_text(
        "- {id: q1, retrieved: [a], relevant: [a], cost: .inf, part: {x: .nan}}\n"
    )
    result = karat.evaluate(path)
    assert "Infinity" not in result.to_json()
    for format in ("json", "jsonl", "csv"):
        with pytest.raises(FormatError, match="cannot hold all of it"):
            write(read(path, role="samples"), io.BytesIO(), format)


@pytest.mark.parametrize("name", ["a\rb", "a\r\nb", "\ra", "a\r", "a,b", 'a"b', "a\nb"])
@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_what_is_written_as_a_table_is_read_again(
    name: str, format: str, tmp_path: Path
) -> None:
    run = karat.read_run({"q1": [name, "z"], name: ["z"]})
    path = tmp_path / f"run.{format}"
    write(karat.Dataset(run=run), path)
    assert ranking(karat.read_run(path)) == [name, "z"]
    assert ranking(karat.read_run(path), name) == ["z"]


def test_an_array_in_place_of_an_id_is_a_sentence() -> None:
    table = pa.table({"id": ["q1"], "retrieved": [["a"]], "relevant": [[["a"]]]})
    with pytest.raises(FormatError, match="relevant id"):
        karat.evaluate(table.to_pandas())


def test_rows_without_columns_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "none.arrow"
    table = pa.table(ROWS).select([])
    assert table.num_rows == 2
    path.write_bytes(ipc(table))
    with pytest.raises(FormatError, match="has rows, but no columns"):
        karat.read_samples(path)
