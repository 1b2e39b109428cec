"""Where Arrow's columns come from: tables in memory, Parquet files, Arrow files.

A table hands out its rows in pieces that may be read at the same time. Only the
columns asked for are read, a few thousand rows at once.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, TypeAlias
from urllib.parse import unquote

from karat.errors import FormatError
from karat.reading.columnar.arrow_arrays import (
    Place,
    column_of,
    groups_of,
    load_pyarrow,
    numbers_of,
    ranks_of,
)
from karat.reading.columnar.blocks import Batch, Field, Piece, RunSource

_ROWS = 1 << 16
"""Rows read at once: few enough to stay in the processor's cache."""

_PIECE_ROWS = 1 << 20
_UNREADABLE = (UnicodeDecodeError, OverflowError)
_MOST_THREADS = 8


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Some rows in a row: an Arrow record batch, and where it comes from."""

    rows: Any
    path: str | None
    first: int

    def column(self, name: str) -> tuple[Any, Place]:
        """One of its columns, and how messages name it."""
        return self.rows.column(name), Place(self.path, name, self.first)


TablePiece: TypeAlias = Callable[[], Iterator[RecordBatch]]


class Tabular(ABC):
    """A table whose columns can be read one by one.

    Attributes:
        path: the file as the user wrote it, if there is one.
        schema: Arrow's schema.
        size: number of rows.
    """

    path: str | None
    schema: Any
    size: int

    @abstractmethod
    def pieces(
        self, columns: Sequence[str], coded: Sequence[str] = ()
    ) -> list[TablePiece]:
        """The rows of some columns, in pieces that follow each other.

        Args:
            columns: what to read.
            coded: columns of few distinct texts, which may come dictionary-encoded.
        """

    def table(self, columns: Sequence[str]) -> Any:
        """Some columns as one table in memory."""
        schema = load_pyarrow().schema([self.schema.field(name) for name in columns])
        batches = [batch.rows for piece in self.pieces(columns) for batch in piece()]
        with reading(self.path or "table"):
            return load_pyarrow().Table.from_batches(batches, schema)


class TableSource(Tabular):
    """A table in memory."""

    def __init__(self, table: Any, path: str | None = None) -> None:
        self.path = path
        self.schema = table.schema
        self.size = table.num_rows
        self._table = table

    def pieces(
        self, columns: Sequence[str], coded: Sequence[str] = ()
    ) -> list[TablePiece]:
        """Slices of the table; nothing is copied."""
        del coded
        some = self._table.select(list(columns))
        starts = range(0, self.size, _PIECE_ROWS)
        return [partial(self._read, some, first) for first in starts]

    def _read(self, table: Any, first: int) -> Iterator[RecordBatch]:
        part = table.slice(first, _PIECE_ROWS)
        for rows in part.to_batches(max_chunksize=_ROWS):
            yield RecordBatch(rows, self.path, first)
            first += rows.num_rows


class Stream(Tabular):
    """Record batches that come one after the other, and only once."""

    path = None

    def __init__(self, first: Any, others: Iterator[Any]) -> None:
        self.schema = first.schema
        self.size = first.num_rows
        self._batches = chain([first], others)

    def pieces(
        self, columns: Sequence[str], coded: Sequence[str] = ()
    ) -> list[TablePiece]:
        """All batches as one piece."""
        del coded
        return [partial(self._read, [*columns])]

    def _read(self, columns: list[str]) -> Iterator[RecordBatch]:
        first, waiting, rows = 0, list[Any](), 0
        for batch in self._batches:
            if lost := {*columns} - {*batch.schema.names}:
                problem = f"has no column {min(lost)!r} from row {first + rows + 1} on"
                raise FormatError(f"{problem}; the first rows have")
            part = batch.select(columns)
            if waiting and (rows >= _ROWS or part.schema != waiting[0].schema):
                yield RecordBatch(_joined(waiting), None, first)
                first, waiting, rows = first + rows, [], 0
            waiting.append(part)
            rows += part.num_rows
        if waiting:
            yield RecordBatch(_joined(waiting), None, first)


def _joined(batches: Sequence[Any]) -> Any:
    """One batch of several: each costs as much as thousands of rows do."""
    if len(batches) == 1:
        return batches[0]
    table = load_pyarrow().Table.from_batches(batches)
    return table.combine_chunks().to_batches()[0]


@dataclass(frozen=True, slots=True)
class _Part:
    """A Parquet file.

    Attributes:
        name: its path, or its path on a file system that is not this machine's.
        data: the bytes, if they are in memory.
        system: Arrow's file system, if it is not this machine's.
        folders: columns whose values its folders name, as in `system=bm25/`.
        metadata: its footer.
    """

    name: str
    data: Any = None
    system: Any = None
    folders: Mapping[str, str] = field(default_factory=dict)
    metadata: Any = None

    def open(self, coded: Sequence[str] = ()) -> Any:
        """Arrow's reader for the file."""
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415  an extra

        where: Any = self.name
        if self.data is not None:
            where = load_pyarrow().BufferReader(self.data)
        elif self.system is not None:
            where = self.system.open_input_file(self.name)
        return ParquetFile(
            where,
            metadata=self.metadata,
            memory_map=True,
            pre_buffer=False,
            read_dictionary=[name for name in coded if name not in self.folders],
        )

    def groups(self) -> Iterator[tuple[list[int], int]]:
        """Row groups that follow each other, and the number of their first row."""
        groups: list[int] = []
        first = size = 0
        for group in range(self.metadata.num_row_groups):
            groups.append(group)
            size += self.metadata.row_group(group).num_rows
            if size >= _PIECE_ROWS // 2:
                yield groups, first
                groups, first, size = [], first + size, 0
        if groups:
            yield groups, first


class ParquetSource(Tabular):
    """One table in one or several Parquet files, or in the bytes of one.

    Args:
        path: how messages call it.
        files: names of the files; their rows follow each other. Folders of the form
            `column=value` are columns too.
        data: the bytes, when there is one file and it is in memory.
        system: Arrow's file system, if it is not this machine's.
    """

    def __init__(
        self, path: str, files: Sequence[str], data: Any = None, system: Any = None
    ) -> None:
        self.path = path
        self.portable = data is None
        self._parts: list[_Part] = []
        for file in files:
            part = _Part(file, data, system, _folders(file))
            with reading(file):
                opened = part.open()
            schema = opened.schema_arrow
            for name in part.folders:
                if name not in schema.names:
                    schema = schema.append(load_pyarrow().field(name, "string"))
            if not self._parts:
                self.schema = schema
            for name in {*self.schema.names} - {*schema.names}:
                raise FormatError(f"has no column {name!r}; {files[0]} has", path=file)
            self._parts.append(replace(part, metadata=opened.metadata))
        self.size = sum(part.metadata.num_rows for part in self._parts)

    def pieces(
        self, columns: Sequence[str], coded: Sequence[str] = ()
    ) -> list[TablePiece]:
        """Row groups, several together where they are small."""
        texts = {"string", "large_string", "binary", "large_binary"}
        coded = [name for name in coded if str(self.schema.field(name).type) in texts]
        spans = [(part, *span) for part in self._parts for span in part.groups()]
        read = partial(_read_groups, columns, coded, len(spans) < _threads())
        return [partial(read, *span) for span in spans]


def _read_groups(
    columns: Sequence[str],
    coded: Sequence[str],
    alone: bool,  # noqa: FBT001
    part: _Part,
    groups: Sequence[int],
    first: int,
) -> Iterator[RecordBatch]:
    with reading(part.name):
        file = part.open(coded)
        own = [name for name in columns if name in file.schema_arrow.names]
        named = [name for name in columns if name not in own]
        # Without any column a batch would not know its rows.
        batches = file.iter_batches(
            _ROWS,
            row_groups=[*groups],
            columns=own or file.schema_arrow.names[:1],
            use_threads=alone,
        )
        for rows in batches:
            for name in named:
                value = load_pyarrow().repeat(part.folders[name], rows.num_rows)
                rows = rows.append_column(name, value)  # noqa: PLW2901
            for name in (name for name in coded if name in own):
                # Nobody has checked yet that its codes are in the dictionary.
                rows.column(name).validate(full=True)
            # Columns come in the order of the file, whatever the order asked for.
            yield RecordBatch(rows.select([*columns]), part.name, first)
            first += rows.num_rows


def _folders(file: str) -> dict[str, str]:
    """The columns that a file's folders name: `system=bm25/part-0.parquet`."""
    pairs = (folder.partition("=") for folder in file.split("/")[:-1])
    return {name: unquote(value) for name, _, value in pairs if name and value}


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what Arrow says of a broken file into an error that names the file."""
    pyarrow = load_pyarrow()
    try:
        yield
    except (pyarrow.ArrowException, OSError, *_UNREADABLE) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(f"cannot be read: {reason}", path=path) from error


def _threads() -> int:
    return min(os.cpu_count() or 1, _MOST_THREADS)


@dataclass(frozen=True)
class RunColumns:
    """Which column of a table holds what of a run.

    Attributes:
        query: the query of each row.
        document: the document retrieved for it.
        score: what decides the rank, larger first.
        rank: what decides it when there is no score, smaller first. With neither, the
            rows are in order.
        text: the document's text; it is only read where texts are asked for.
    """

    query: str
    document: str
    score: str | None = None
    rank: str | None = None
    text: str | None = None

    def named(self, *fields: Field) -> dict[Field, str]:
        """The columns that hold some fields, without those that there are not."""
        value = self.score or self.rank
        names: dict[Field, str | None] = {
            "query": self.query,
            "document": self.document,
            "value": value,
            "text": self.text,
        }
        return {field: name for field in fields if (name := names[field])}


class ArrowSource(RunSource):
    """A run given as a table with one row for each retrieved document."""

    def __init__(self, table: Tabular, columns: RunColumns) -> None:
        self.path = table.path
        self.ranked = columns.score is None and columns.rank is not None
        self.portable = isinstance(table, ParquetSource) and table.portable
        self.columns = columns
        self._table = table

    def pieces(self, *fields: Field) -> list[Piece]:
        """The pieces of the table, with only the columns that hold the fields."""
        names = self.columns.named(*fields)
        coded = [names["query"]] if "query" in names else []
        pieces = self._table.pieces([*dict.fromkeys(names.values())], coded)
        return [partial(read_rows, piece, names, self.ranked) for piece in pieces]


def read_rows(
    piece: TablePiece,
    names: Mapping[Field, str],
    ranked: bool,  # noqa: FBT001
) -> Iterator[Batch]:
    """The batches of a piece of a table, as those of a run."""
    for batch in piece():
        found: dict[str, Any] = {}
        for field_, name in names.items():
            cells = batch.column(name)
            if field_ == "query":
                groups = groups_of(*cells)
                found |= zip(("start", "queries", "which"), groups, strict=True)
            elif field_ == "document":
                found["documents"] = column_of(*cells)
            elif field_ == "text":
                found["texts"] = column_of(*cells, blank=True)
            elif ranked:
                found |= {"values": ~ranks_of(*cells), "ranked": True}
            else:
                found["values"] = numbers_of(*cells)
        yield Batch(**found)
