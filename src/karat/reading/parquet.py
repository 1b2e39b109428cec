"""Parquet and Arrow (Feather) files, and what a table in columns holds."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fnmatch import fnmatch
from glob import glob, has_magic
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from karat.data.gold import ColumnLabels, Gold
from karat.data.queries import Dataset
from karat.data.runs import Labels, Notice
from karat.errors import FormatError
from karat.reading.arrow import (
    ArrowSource,
    ParquetSource,
    RunColumns,
    TableSource,
    Tabular,
    arrow_errors,
    ids_of,
    load_pyarrow,
    numbers_of,
    runs_of,
)
from karat.reading.columns.ids import ColumnNames
from karat.reading.columns.rankings import Rankings, repeated_pair
from karat.reading.columns.run import ColumnarRun
from karat.reading.format import SHIPPED, Format, starts_like
from karat.reading.meaning.aliases import infer, is_row
from karat.reading.meaning.records import Samples
from karat.reading.meaning.rows import RowColumns
from karat.reading.meaning.shapes import interpret
from karat.reading.meaning.values import COERCED, COERCED_ONE
from karat.reading.source import Records, Source

_PARQUET = b"PAR1"
_ARROW = b"ARROW1"
_LOOK = 5000
_MANY = 1 << 16
"""From so many labels on they stay columns."""

_CODES = ("dictionary", "int", "uint")
_LISTS = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")


class Parquet(Format):
    """A table in columns: one row per document, or one per query with lists."""

    name = "parquet"
    extensions = SHIPPED["parquet"].extensions
    binary = True
    layout = "rows"

    def sniff(self, head: bytes, name: str) -> bool:
        """Whether the first bytes are those of Parquet or of Arrow's files."""
        del name
        return starts_like(self.name, head)

    def sniff_folder(self, folder: Path) -> bool:
        """Whether there are Parquet files in it; together they are one table."""
        return bool(_files(folder))

    def records(self, source: Source) -> Records:
        """One record per row."""
        return ((None, record) for record in read_records(_open(source)))

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

    def write(self, value: Any, stream: BinaryIO) -> None:
        """A column for each name of the header."""
        from pyarrow import parquet  # noqa: PLC0415  an extra

        header, rows = value
        columns = {name: [row[at] for row in rows] for at, name in enumerate(header)}
        if "grade" in columns:
            columns["grade"] = [float(grade) for grade in columns["grade"]]
        parquet.write_table(load_pyarrow().table(columns), stream)


def _files(folder: Path) -> list[str]:
    """The Parquet files in a folder and below it, without those that hide."""
    return _visible(map(str, folder.rglob("*.parquet")))


def _visible(files: Iterable[str]) -> list[str]:
    hidden = ("_", ".")
    return sorted(file for file in files if not Path(file).name.startswith(hidden))


def _open(source: Source) -> Tabular:
    path = source.path
    if "://" in path:
        return _open_remote(source)
    if Path(path).is_dir() or not Path(path).exists():
        paths = glob(path, recursive=True)  # noqa: PTH207
        folders = (_files(Path(name)) for name in paths if Path(name).is_dir())
        files = [*_visible(name for name in paths if Path(name).is_file())]
        if files := [*files, *chain.from_iterable(folders)]:
            return ParquetSource(path, files)
        if paths or has_magic(path):
            raise source.error("there are no .parquet files in it")
    load_pyarrow()
    with source.open() as stream:
        head = stream.read(len(_ARROW))
        plain = source.replay is None and _is_plain(source.path, head)
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


def _is_plain(path: str, head: bytes) -> bool:
    """Whether the file itself begins like what it unpacks to: it is not compressed."""
    with Path(path).open("rb") as file:
        return file.read(len(head)) == head


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


def load_table(table: Tabular, source: Source, format: str) -> Dataset:
    """A run or gold from one row per document, or samples from one row per query."""
    if not table.size:
        raise source.error("has columns, but no rows")
    names = table.schema.names
    if not names:
        raise source.error("has rows, but no columns")
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise source.error(f"two columns are called {twice!r}")
    fields = infer(names, source.role, source.mapping_for(names))
    # A name that the user gave may be one inside the documents of a list.
    inside = is_row(fields) and fields["document"] not in names
    for theirs in () if inside else fields.values():
        if theirs.partition(".")[0] not in names:
            problem = f"there is no column {theirs!r}; {_columns_of(table)}"
            raise source.lacks(theirs, problem)
    if inside or not is_row(fields):
        return load_samples(read_records(table), source, format)
    if str(table.schema.field(fields["document"]).type).startswith(_LISTS):
        ours = "relevant" if source.role == "gold" else "retrieved_ids"
        mapping = {ours: fields["document"], **source.mapping}
        mapping.pop("document", None)
        return load_samples(
            read_records(table), replace(source, mapping=mapping), format
        )
    return _load_rows(table, fields, source, format)


def split_table(table: Tabular, column: str, source: Source) -> dict[str, Tabular]:
    """One table for each value of a column, in order of appearance."""
    if column not in table.schema.names:
        raise source.error(f"no column {column!r} to split by; {_columns_of(table)}")
    load_pyarrow()
    from pyarrow import compute, string  # noqa: PLC0415  an extra

    whole = table.table(table.schema.names)
    values = whole.column(column).cast(string())
    names = [*dict.fromkeys(values.to_pylist())]
    if None in names:
        raise source.error(f"{column!r} is empty, but splits the table")
    rest, equal = whole.drop_columns([column]), compute.equal
    return {
        name: TableSource(rest.filter(equal(values, name)), table.path)
        for name in names
    }


def load_samples(
    records: Iterable[Mapping[str, Any]],
    source: Source,
    format: str,
) -> Dataset:
    """Samples from one record per query."""
    samples = Samples(source)
    for record in records:
        samples.take(record)
    return samples.finish(format)


def _load_rows(
    table: Tabular, fields: Mapping[str, str], source: Source, format: str
) -> Dataset:
    rules = RowColumns(source, fields, table.schema.names)
    mapping = rules.mapping
    if rules.number == "distance":
        records = ((None, record) for record in read_records(table))
        return interpret(records, source, format)
    for record in read_records(table) if rules.unread else ():
        rules.note_unread(map(record.__getitem__, rules.unread))
    run = gold = None
    if rules.role == "gold":
        gold = Gold(_labels(table, mapping), name=source.name)
    else:
        if rules.number == "score":
            _note_order(table, fields, rules)
        columns = RunColumns(
            mapping["id"],
            mapping["document"],
            mapping.get("score"),
            mapping.get("rank"),
            fields.get("text"),
        )
        run = ColumnarRun(ArrowSource(table, columns), source.name)
        if rules.system is not None and rules.system not in fields.values():
            rules.note_systems(_values(table, rules.system))
    notices = (*_coerced(table, mapping), *source.notes.notices())
    return Dataset(run, gold, format=format, mapping=mapping, notices=notices)


def _note_order(table: Tabular, fields: Mapping[str, str], rules: RowColumns) -> None:
    """Look at the order that the first rows have."""
    names = [fields[ours] for ours in ("id", "score", "rank") if ours in fields]
    scores: dict[str, list[float]] = {}
    ranks: dict[str, list[tuple[float, float]]] = {}
    for batch in islice(table.batches(names), 1):
        for record in batch.rows.slice(0, _LOOK).to_pylist():
            query, score, *rank = (record[name] for name in names)
            if not all(isinstance(number, int | float) for number in (score, *rank)):
                return
            scores.setdefault(str(query), []).append(score)
            ranks.setdefault(str(query), []).append((*rank, score)[:2])
    rules.note_order(scores, scores.values(), ranks if "rank" in fields else None)


def _labels(table: Tabular, mapping: Mapping[str, str]) -> Labels:
    """The grade of each document of each query."""
    columns = [mapping[ours] for ours in ("id", "document", "grade") if ours in mapping]
    parts: list[Rankings] = []
    for batch in table.batches(columns):
        queries, start = runs_of(*batch.column(columns[0]))
        documents = ids_of(*batch.column(columns[1]))
        grades = np.ones(len(documents))
        if "grade" in mapping:
            grades = numbers_of(*batch.column(mapping["grade"])).astype(np.float64)
        parts.append(Rankings(queries, start, documents, grades))
    whole = Rankings.join(parts).gathered()
    if twice := repeated_pair(whole):
        problem = f"document {twice[1]!r:.60} has two grades"
        raise FormatError(problem, path=table.path, query=twice[0])
    labels = ColumnLabels(
        ColumnNames(whole.queries),
        whole.size,
        ColumnNames(whole.documents.texts()),
        np.asarray(whole.values),
    )
    if len(labels.grade) > _MANY:
        return labels
    return {query: labels[query] for query in labels}


def read_records(table: Tabular) -> Iterator[dict[str, Any]]:
    """One record for each row."""
    for batch in table.batches(table.schema.names):
        with arrow_errors(table.path or "table"):
            records = batch.rows.to_pylist()
        for record in records:
            yield {name: _present(value) for name, value in record.items()}


def _present(value: Any) -> Any:
    """The value in types that every reader knows, empty fields of structs left out.

    Example:
        >>> _present({"id": b"d1", "score": Decimal("0.5"), "note": None})
        {'id': 'd1', 'score': 0.5}
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {k: _present(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_present(entry) for entry in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def _coerced(table: Tabular, mapping: Mapping[str, str]) -> tuple[Notice, ...]:
    kinds = {ours: str(table.schema.field(mapping[ours]).type) for ours in mapping}
    numbers = [mapping[f] for f in ("id", "document") if "int" in kinds[f][:4]]
    if not numbers:
        return ()
    return (Notice("coerced", table.size, COERCED, tuple(numbers), COERCED_ONE),)


def _values(table: Tabular, column: str) -> set[str]:
    """The distinct values of a column that may name systems."""
    kind = str(table.schema.field(column).type)
    if kind not in {"string", "large_string"} and not kind.startswith(_CODES):
        return set()
    columns = (batch.rows.column(0) for batch in table.batches([column], [column]))
    return {str(value) for part in columns for value in part.unique().to_pylist()}


def _columns_of(table: Tabular) -> str:
    return f"columns found: {', '.join(map(str, table.schema.names))[:300]}"


PARQUET = Parquet()
