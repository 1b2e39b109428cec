"""Arrow's columns: arrays of ids and numbers, tables, Parquet files, and runs of them.

Buffers are read directly: `Array.to_numpy` would import pandas where it is installed,
which takes longer than scoring a million rows. Only the columns asked for are read.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import partial
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Ints
from karat.data.runs import A_RANK, LAST_RANK
from karat.errors import FormatError, MissingExtraError
from karat.reading.columns.ids import (
    ByteColumn,
    Column,
    NumberColumn,
    starts,
)
from karat.reading.columns.rankings import Rankings
from karat.reading.columns.run import ColumnarRun
from karat.reading.source import Source

_PARQUET = b"PAR1"
_ARROW = b"ARROW1"


def load_pyarrow(purpose: str = "reading Parquet") -> Any:
    """The pyarrow package, or an error that says how to get it."""
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra
    except ImportError:
        raise MissingExtraError(purpose, "parquet") from None
    return pa


@dataclass(frozen=True, slots=True)
class Place:
    """Where an array comes from, for messages; `row` is the number of its first."""

    path: str | None
    column: str
    row: int = 0

    def error(self, problem: str, at: int | None = None) -> FormatError:
        """What is wrong with the column, and in which of the array's rows."""
        row = "" if at is None else f", row {self.row + at + 1}"
        return FormatError(f"column {self.column!r}{row}: {problem}", path=self.path)

    def refuse_nulls(self, array: Any) -> None:
        """Say where the first empty cell is, if there is one."""
        if array.null_count:
            raise self.error(
                "the cell is empty", array.is_null().to_pylist().index(True)
            )


def ids_of(array: Any, place: Place, *, blank: bool = False) -> Column:
    """The ids in an array of texts or whole numbers; `blank` lets texts be empty."""
    pyarrow = load_pyarrow()
    if pyarrow.types.is_dictionary(array.type):
        if array.null_count or array.dictionary.null_count:
            return ids_of(array.dictionary_decode(), place, blank=blank)
        codes = numbers_of(array.indices, place)
        return ids_of(array.dictionary, place, blank=True).view(codes)
    kind = str(array.type)
    if pyarrow.types.is_integer(array.type):
        return NumberColumn(numbers_of(array, place))
    if kind.removeprefix("large_").removesuffix("_view") not in {"string", "binary"}:
        raise place.error(f"ids must be texts or whole numbers, these are {kind}")
    if not blank:
        place.refuse_nulls(array)
    elif array.null_count:
        # Not by Arrow, which reads what lies beneath an empty cell of a damaged file.
        blank_cell = b"" if "binary" in kind else ""
        cells = [blank_cell if cell is None else cell for cell in array.to_pylist()]
        array = pyarrow.array(cells, array.type)
    if "view" in kind:
        array = array.cast(kind.replace("_view", ""))
    if not len(array):
        return ByteColumn.of([])
    _, offsets, data = array.buffers()
    wide = np.int64 if kind.startswith("large") else np.int32
    cuts = np.frombuffer(offsets, wide)[array.offset : array.offset + len(array) + 1]
    empty = data is None or not data.size
    texts = np.zeros(0, np.uint8) if empty else np.frombuffer(data, np.uint8)
    column = ByteColumn.between(texts, cuts)
    if not blank and not column.length.all():
        raise place.error("the id is empty", int(column.length.argmin()))
    return column


def runs_of(array: Any, place: Place) -> tuple[ByteColumn, Ints]:
    """The id of each run of equal ids in an array, and its first row."""
    column = ids_of(array, place)
    encoded = load_pyarrow().types.is_dictionary(array.type) and not array.null_count
    start = starts(numbers_of(array.indices, place)) if encoded else column.starts()
    ids = column.view(start).texts()
    if not ids.length.all():
        raise place.error("the id is empty", int(start[ids.length.argmin()]))
    return ids, start


def numbers_of(array: Any, place: Place) -> npt.NDArray[Any]:
    """The finite numbers in an array, in the type they have."""
    place.refuse_nulls(array)
    types = load_pyarrow().types
    if types.is_boolean(array.type) or types.is_decimal(array.type):
        array = array.cast("double")
    if not (types.is_integer(array.type) or types.is_floating(array.type)):
        raise place.error(f"must hold numbers, these are {array.type}")
    data = array.buffers()[1] or b""
    signed = "i" if types.is_signed_integer(array.type) else "u"
    kind = "f" if types.is_floating(array.type) else signed
    dtype = f"{kind}{array.type.bit_width // 8}"
    values = np.frombuffer(data, dtype)[array.offset :][: len(array)]
    if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
        at = int(np.argmin(finite))
        raise place.error(f"must be a finite number, got {values[at]}", at)
    return values


def rank_column(array: Any, place: Place) -> Ints:
    """The complements of the ranks in an array, which are from 0 or from 1."""
    values = numbers_of(array, place)
    wrong = (values < 0) | (values > LAST_RANK) | (values != np.floor(values))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise place.error(f"{A_RANK}, got {values[at]}", at)
    return ~values.astype(np.int64)


_ROWS = 1 << 18
"""Rows read at once."""

_UNREADABLE = (UnicodeDecodeError, OverflowError)


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Some rows in a row: an Arrow record batch, and where it comes from."""

    rows: Any
    path: str | None
    first: int

    def column(self, name: str) -> tuple[Any, Place]:
        """One of its columns, and how messages name it."""
        return self.rows.column(name), Place(self.path, name, self.first)

    def slice(self, start: int, stop: int) -> "RecordBatch":
        """Some of the rows."""
        rows = self.rows.slice(start, stop - start)
        return RecordBatch(rows, self.path, self.first + start)


class TableSource:
    """A table in memory."""

    def __init__(self, table: Any, path: str | None = None) -> None:
        self.path = path
        self.schema = table.schema
        self.size = table.num_rows
        self._table = table

    def batches(
        self, columns: Sequence[str], coded: Sequence[str] = ()
    ) -> Iterator[RecordBatch]:
        """Slices of the table; nothing is copied."""
        del coded
        first = 0
        for rows in self._table.select(list(columns)).to_batches(max_chunksize=_ROWS):
            yield RecordBatch(rows, self.path, first)
            first += rows.num_rows


@dataclass(frozen=True, slots=True)
class _Part:
    """A Parquet file, in memory (`data`) or on a `system`; `folders` name columns."""

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

    def batches(
        self, columns: Sequence[str], coded: Sequence[str]
    ) -> Iterator[RecordBatch]:
        """The rows of some columns, those of folders among them."""
        first = 0
        with arrow_errors(self.name):
            file = self.open(coded)
            own = [name for name in columns if name in file.schema_arrow.names]
            # Without any column a batch would not know its rows.
            some = own or file.schema_arrow.names[:1]
            for rows in file.iter_batches(_ROWS, columns=some):
                for name in (name for name in columns if name not in own):
                    value = load_pyarrow().repeat(self.folders[name], rows.num_rows)
                    rows = rows.append_column(name, value)  # noqa: PLW2901
                for name in (name for name in coded if name in own):
                    # Nobody has checked yet that its codes are in the dictionary.
                    rows.column(name).validate(full=True)
                # Columns come in the order of the file, whatever the order asked for.
                yield RecordBatch(rows.select([*columns]), self.name, first)
                first += rows.num_rows


class ParquetSource:
    """One table in Parquet files; folders called `column=value` are columns too."""

    def __init__(
        self, path: str, files: Sequence[str], data: Any = None, system: Any = None
    ) -> None:
        self.path = path
        self._parts: list[_Part] = []
        for file in files:
            part = _Part(file, data, system, _folders(file))
            with arrow_errors(file):
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

    def batches(
        self, columns: Sequence[str], coded: Sequence[str] = ()
    ) -> Iterator[RecordBatch]:
        """Row groups, file after file; columns of texts may come as codes."""
        texts = {"string", "large_string", "binary", "large_binary"}
        coded = [name for name in coded if str(self.schema.field(name).type) in texts]
        for part in self._parts:
            yield from part.batches(columns, coded)


Tabular: TypeAlias = TableSource | ParquetSource
"""A table whose columns can be read one by one."""


def _folders(file: str) -> dict[str, str]:
    """The columns that a file's folders name: `system=bm25/part-0.parquet`."""
    pairs = (folder.partition("=") for folder in file.split("/")[:-1])
    return {name: unquote(value) for name, _, value in pairs if name and value}


@contextmanager
def arrow_errors(path: str) -> Iterator[None]:
    """Turn what Arrow says of a broken file into an error that names the file."""
    pyarrow = load_pyarrow()
    try:
        yield
    except (pyarrow.ArrowException, OSError, *_UNREADABLE) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(f"cannot be read: {reason}", path=path) from error


def parquet_files(folder: Path) -> list[str]:
    """The Parquet files in a folder and below it, without those that hide."""
    return _visible(map(str, folder.rglob("*.parquet")))


def _visible(files: Iterable[str]) -> list[str]:
    hidden = ("_", ".")
    return sorted(file for file in files if not Path(file).name.startswith(hidden))


def open_table(source: Source) -> Tabular:
    """The table of a file, a folder or a glob, on this machine or elsewhere."""
    path = source.path
    if "://" in path:
        return _open_remote(source)
    if Path(path).is_dir() or not Path(path).exists():
        paths = glob(path, recursive=True)  # noqa: PTH207
        folders = (parquet_files(Path(name)) for name in paths if Path(name).is_dir())
        files = [*_visible(name for name in paths if Path(name).is_file())]
        if files := [*files, *chain.from_iterable(folders)]:
            return ParquetSource(path, files)
        if paths or has_magic(path):
            raise source.error("there are no .parquet files in it")
    load_pyarrow()
    with source.open() as stream:
        head = stream.read(len(_ARROW))
        plain = isinstance(getattr(stream, "raw", None), io.FileIO)
        data = None if plain else head + stream.read()
    if head.startswith(_PARQUET):
        return ParquetSource(source.path, [source.path], data)
    return _open_arrow(source.path, head, data)


def _open_remote(source: Source) -> Tabular:
    """A file, a folder or a glob on a file system that Arrow or fsspec knows."""
    load_pyarrow()
    # Arrow's own systems take long to load, and few need them.
    from pyarrow import fs  # noqa: PLC0415  an extra

    scheme, _, rest = source.path.partition("://")
    with arrow_errors(source.path):
        try:
            system, root = fs.FileSystem.from_uri(_before_magic(source.path))
            rest = root + source.path[len(_before_magic(source.path)) :]
        except (load_pyarrow().ArrowInvalid, load_pyarrow().ArrowNotImplementedError):
            system = _by_fsspec(scheme, source)
            root = _before_magic(rest)
        info = system.get_file_info(root)
        files = [root]
        if info.type == fs.FileType.Directory:
            chosen = fs.FileSelector(root, recursive=True)
            under = [i.path for i in system.get_file_info(chosen) if i.is_file]
            files = [file for file in under if file.endswith(".parquet")]
            if has_magic(wanted := rest.lstrip("/")):
                files = [file for file in under if fnmatch(file.lstrip("/"), wanted)]
        elif info.type == fs.FileType.NotFound:
            raise source.error("there is no such file or folder")
    if not (files := _visible(files)):
        raise source.error("there are no .parquet files in it")
    return ParquetSource(source.path, files, system=system)


def _by_fsspec(scheme: str, source: Source) -> Any:
    from pyarrow import fs  # noqa: PLC0415  an extra

    try:
        import fsspec  # noqa: PLC0415  an extra

        return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem(scheme)))
    except (ImportError, ValueError) as error:
        problem = f"cannot be opened: {scheme}:// needs a file system: {error}"
        raise source.error(problem) from None


def _before_magic(path: str) -> str:
    """The folder before the first wildcard of a glob, or the path as it is."""
    if not has_magic(path):
        return path
    parts = path.split("/")
    at = next(at for at, part in enumerate(parts) if has_magic(part))
    return "/".join(parts[:at])


def _open_arrow(path: str, head: bytes, data: bytes | None) -> Tabular:
    pyarrow = load_pyarrow()
    with arrow_errors(path):
        memory = pyarrow.memory_map(path) if data is None else pyarrow.py_buffer(data)
        ipc = pyarrow.ipc
        opened = ipc.open_file if head == _ARROW else ipc.open_stream
        table = opened(memory).read_all()
        # Its buffers are read directly, and Arrow does not look into them by itself.
        table.validate(full=True)
        return TableSource(table, path)


class ArrowRun(ColumnarRun):
    """A run or gold given as a table with one row for each document.

    `fields` are our names and the columns; without any number, rows are in order.
    """

    def __init__(
        self, table: Tabular, fields: Mapping[str, str], name: str = "run"
    ) -> None:
        self.name, self.path = name, table.path
        self.fields = fields
        numbers = (ours for ours in ("score", "grade", "rank") if ours in fields)
        self.number = next(numbers, None)
        self.ranked = self.number == "rank"
        self.table = table

    def parts(self, *, texts: bool = False) -> Iterator[Callable[[], Rankings]]:
        """Rows of the table, cut between two queries."""
        names = ["id", "document", self.number or "", "text" if texts else ""]
        read = [*dict.fromkeys(self.fields[n] for n in names if n in self.fields)]
        query = self.fields["id"]
        ready: list[_Runs] = []
        for batch in self.table.batches(read, [query]):
            if ready and len(ready[-1].start) > 1:
                *before, last = ready
                # The last query may go on. Only what is joined is copied.
                if before:
                    yield partial(self._rankings, [*before, last.part(0, 1)], texts)
                    last = last.part(1)
                if len(last.start) > 1:
                    yield partial(self._rankings, [last.part(0, -1)], texts)
                ready = [last.part(-1)]
            ready.append(_Runs(batch, *runs_of(*batch.column(query))))
        if ready:
            yield partial(self._rankings, ready, texts)

    def _rankings(self, parts: Sequence["_Runs"], texts: bool) -> Rankings:  # noqa: FBT001
        fields, rankings = self.fields, []
        for batch, queries, start in parts:
            contents = numbers = None
            if texts and "text" in fields:
                contents = ids_of(*batch.column(fields["text"]), blank=True).texts()
            if self.number is not None:
                column = batch.column(fields[self.number])
                numbers = rank_column(*column) if self.ranked else numbers_of(*column)
            documents = ids_of(*batch.column(fields["document"]))
            some = Rankings(queries, start, documents, numbers, contents)
            rankings.append(some._replace(ranked=self.ranked))
        return Rankings.join(rankings).gathered()


class _Runs(NamedTuple):
    """Rows, and the runs of rows of one query in them."""

    batch: RecordBatch
    queries: ByteColumn
    start: Ints

    def part(self, first: int, end: int | None = None) -> "_Runs":
        """Some of the runs."""
        some, begin = slice(first, end), int(self.start[first])
        stop = self.batch.rows.num_rows if end is None else int(self.start[end])
        rows = self.batch.slice(begin, stop)
        return _Runs(rows, self.queries.view(some), self.start[some] - begin)
