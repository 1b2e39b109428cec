"""Where columns come from: tables in memory, Parquet files, Arrow files.

A source hands out its rows in pieces that may be read at the same time. Only the
columns asked for are read, a few thousand rows at once.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

from karat.errors import FormatError
from karat.reading.columnar.arrow_arrays import Place, load_pyarrow

__all__ = [
    "Batch",
    "ParquetSource",
    "Piece",
    "TableSource",
    "Tabular",
    "each",
    "reading",
]

T = TypeVar("T")

_ROWS = 1 << 16
"""Rows read at once: few enough to stay in the processor's cache."""

_PIECE_ROWS = 1 << 20
_MOST_THREADS = 8


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows in a row: an Arrow record batch, and where it comes from."""

    rows: Any
    path: str | None
    first: int

    def place(self, column: str) -> Place:
        """How messages name one of its columns."""
        return Place(self.path, column, self.first)


Piece: TypeAlias = Callable[[], Iterator[Batch]]


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
    def pieces(self, columns: Sequence[str], coded: Sequence[str] = ()) -> list[Piece]:
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

    def pieces(self, columns: Sequence[str], coded: Sequence[str] = ()) -> list[Piece]:
        """Slices of the table; nothing is copied."""
        del coded
        some = self._table.select(list(columns))
        starts = range(0, self.size, _PIECE_ROWS)
        return [partial(self._read, some, first) for first in starts]

    def _read(self, table: Any, first: int) -> Iterator[Batch]:
        part = table.slice(first, _PIECE_ROWS)
        for rows in part.to_batches(max_chunksize=_ROWS):
            yield Batch(rows, self.path, first)
            first += rows.num_rows


@dataclass(frozen=True, slots=True)
class _Part:
    """A Parquet file: its name, the bytes if they are in memory, and its footer."""

    name: str
    data: Any
    metadata: Any = None

    def open(self, coded: Sequence[str] = ()) -> Any:
        """Arrow's reader for the file."""
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415  an extra

        where = (
            self.name if self.data is None else load_pyarrow().BufferReader(self.data)
        )
        return ParquetFile(
            where,
            metadata=self.metadata,
            memory_map=True,
            pre_buffer=False,
            read_dictionary=[*coded],
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
        files: names of the files; their rows follow each other.
        data: the bytes, when there is one file and it is in memory.
    """

    def __init__(self, path: str, files: Sequence[str], data: Any = None) -> None:
        self.path = path
        self._parts: list[_Part] = []
        for file in files:
            with reading(file):
                opened = _Part(file, data).open()
            schema = opened.schema_arrow
            if not self._parts:
                self.schema = schema
            for name in {*self.schema.names} - {*schema.names}:
                raise FormatError(f"has no column {name!r}; {files[0]} has", path=file)
            self._parts.append(_Part(file, data, opened.metadata))
        self.size = sum(part.metadata.num_rows for part in self._parts)

    def pieces(self, columns: Sequence[str], coded: Sequence[str] = ()) -> list[Piece]:
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
) -> Iterator[Batch]:
    with reading(part.name):
        batches = part.open(coded).iter_batches(
            _ROWS, row_groups=[*groups], columns=[*columns], use_threads=alone
        )
        for rows in batches:
            # Columns come in the order of the file, whatever the order asked for.
            yield Batch(rows.select([*columns]), part.name, first)
            first += rows.num_rows


def each(work: Callable[[Piece], T], pieces: Sequence[Piece]) -> list[T]:
    """What the work makes of every piece, in order, done on all processors."""
    if len(pieces) <= 1:
        return [work(piece) for piece in pieces]
    with ThreadPoolExecutor(_threads()) as pool:
        return list(pool.map(work, pieces))


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what Arrow says of a broken file into an error that names the file."""
    pyarrow = load_pyarrow()
    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(f"cannot be read: {reason}", path=path) from error


def _threads() -> int:
    return min(os.cpu_count() or 1, _MOST_THREADS)
