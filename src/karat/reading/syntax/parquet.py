"""Parquet files, folders of them, and Arrow (Feather) files."""

from collections.abc import Iterable
from fnmatch import fnmatch
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from karat.data.queries import Dataset
from karat.reading.columnar.arrow_arrays import load_pyarrow
from karat.reading.columnar.arrow_source import (
    ParquetSource,
    TableSource,
    Tabular,
    reading,
)
from karat.reading.columnar.tables import load_table, read_records, split_table
from karat.reading.format import Format
from karat.reading.streams import Records, Source

_PARQUET = b"PAR1"
_ARROW = b"ARROW1"
_STREAM = b"\xff\xff\xff\xff"


class Parquet(Format):
    """A table in columns: one row per document, or one per query with lists."""

    name = "parquet"
    extensions = (".parquet", ".pq", ".arrow", ".feather")
    binary = True
    layout = "rows"

    def sniff(self, head: bytes, name: str) -> bool:
        """Whether the first bytes are those of Parquet or of Arrow's files."""
        del name
        return head.startswith((_PARQUET, _ARROW, _STREAM))

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
        found = glob(path, recursive=True)  # noqa: PTH207
        folders = (_files(Path(name)) for name in found if Path(name).is_dir())
        files = [*_visible(name for name in found if Path(name).is_file())]
        if files := [*files, *chain.from_iterable(folders)]:
            return ParquetSource(path, files)
        if found or has_magic(path):
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
    with reading(source.path):
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
    with reading(path):
        memory = pyarrow.memory_map(path) if data is None else pyarrow.py_buffer(data)
        ipc = pyarrow.ipc
        opened = ipc.open_file if head == _ARROW else ipc.open_stream
        table = opened(memory).read_all()
        # Its buffers are read directly, and Arrow does not look into them by itself.
        table.validate(full=True)
        return TableSource(table, path)


PARQUET = Parquet()
