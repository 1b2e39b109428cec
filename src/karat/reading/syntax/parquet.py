"""Parquet files, folders of them, and Arrow (Feather) files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from karat.data.gold import Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.reading.columnar.arrow_arrays import load_pyarrow
from karat.reading.columnar.arrow_source import (
    ParquetSource,
    TableSource,
    Tabular,
    reading,
)
from karat.reading.columnar.tables import load_table, split_table
from karat.reading.format import Format, Source
from karat.reading.meaning.native import known_of, sample_cells, scores_say_the_order

__all__ = ["Parquet"]

_PARQUET = b"PAR1"
_ARROW = b"ARROW1"
_STREAM = b"\xff\xff\xff\xff"


class Parquet(Format):
    """A table in columns: one row per document, or one per query with lists."""

    name = "parquet"
    extensions = (".parquet", ".pq", ".arrow", ".feather")
    binary = True

    def sniff(self, head: bytes, name: str) -> bool:
        """Whether the first bytes are those of Parquet or of Arrow's files."""
        del name
        return head.startswith((_PARQUET, _ARROW, _STREAM))

    def sniff_folder(self, folder: Path) -> bool:
        """Whether there are Parquet files in it; together they are one table."""
        return bool(_files(folder))

    def read(self, source: Source) -> Dataset:
        """Read what is needed to know what the table holds; a run is read later."""
        return load_table(_open(source), source, self.name)

    def read_by(self, source: Source, column: str) -> dict[str, Dataset]:
        """The table, split by one of its columns."""
        parts = split_table(_open(source), column, source)
        return {
            name: load_table(part, source.apart(), self.name)
            for name, part in parts.items()
        }

    def write_run(self, run: Run, stream: BinaryIO) -> None:
        """One row per document with its score or rank, or samples if more is known."""
        rankings = dict(run.rankings(Policies()))
        scored = all(scores_say_the_order(ranking) for ranking in rankings.values())
        known = {name for r in rankings.values() for d in r for name in known_of(d)}
        if not known <= {"id", "score"} or not all(rankings.values()):
            self.write_samples(Dataset(run=run), stream)
            return
        rows = [
            (query, document.id, document.score if scored else rank)
            for query, ranking in rankings.items()
            for rank, document in enumerate(ranking, 1)
        ]
        _write(("query_id", "doc_id", "score" if scored else "rank"), rows, stream)

    def write_gold(self, gold: Gold, stream: BinaryIO) -> None:
        """One row per relevant document, or samples where gold is more than ids."""
        only_ids = gold.is_plain
        if not only_ids or not all(map(gold.documents.get, gold.queries)):
            self.write_samples(Dataset(gold=gold), stream)
            return
        rows = [
            (query, document, grade)
            for query in gold.queries
            for document, grade in gold.documents[query].items()
        ]
        _write(("query_id", "doc_id", "grade"), rows, stream)

    def write_samples(self, loaded: Dataset, stream: BinaryIO) -> None:
        """One row per query; lists and mappings are written as JSON."""
        header, rows = sample_cells(loaded)
        cells = [[None if cell == "" else cell for cell in row] for row in rows]
        _write(header, cells, stream)


def _files(folder: Path) -> list[str]:
    """The Parquet files in a folder and below it, without those that hide."""
    found = sorted(folder.rglob("*.parquet"))
    return [str(file) for file in found if not file.name.startswith(("_", "."))]


def _open(source: Source) -> Tabular:
    if Path(source.path).is_dir():
        files = _files(Path(source.path))
        if not files:
            raise source.error("there are no .parquet files in it")
        return ParquetSource(source.path, files)
    load_pyarrow()
    with source.open() as stream:
        head = stream.read(len(_ARROW))
        plain = source.replay is None and _is_plain(source.path, head)
        data = None if plain else head + stream.read()
    if head.startswith(_PARQUET):
        return ParquetSource(source.path, [source.path], data)
    return _open_arrow(source.path, head, data)


def _is_plain(path: str, head: bytes) -> bool:
    """Whether the file itself begins like what it unpacks to: it is not compressed."""
    with Path(path).open("rb") as file:
        return file.read(len(head)) == head


def _open_arrow(path: str, head: bytes, data: bytes | None) -> Tabular:
    pyarrow = load_pyarrow()
    with reading(path):
        memory = pyarrow.memory_map(path) if data is None else pyarrow.py_buffer(data)
        ipc = pyarrow.ipc
        opened = ipc.open_file if head == _ARROW else ipc.open_stream
        return TableSource(opened(memory).read_all(), path)


def _write(
    header: Sequence[str], rows: Sequence[Sequence[Any]], stream: BinaryIO
) -> None:
    from pyarrow import parquet  # noqa: PLC0415  an extra

    columns: Mapping[str, Any] = {
        name: [row[at] for row in rows] for at, name in enumerate(header)
    }
    parquet.write_table(load_pyarrow().table(columns), stream)
