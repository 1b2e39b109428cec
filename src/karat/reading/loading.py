"""The one door for files: what a path holds, whatever its format."""

import io
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from karat.data.queries import Dataset
from karat.errors import DataError, FormatError, ParameterError
from karat.reading.decoding import foreign_kind
from karat.reading.format import Format, Role, Source
from karat.reading.gc_paused import gc_paused
from karat.reading.problems import Notes, placed
from karat.reading.shipped import FORMATS
from karat.reading.streams import STDIN, open_binary

__all__ = ["load", "load_by", "load_with_notes", "sniff"]

T = TypeVar("T")

_HEAD = 1 << 16
_ROLES = ("run", "gold", "samples", "queries")
_PACKED = (".gz", ".zst", ".zstd", ".bz2")


def load(
    source: str | os.PathLike[str],
    *,
    role: Role | None = None,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
) -> Dataset:
    """What a file or folder holds: a run, gold, or samples with both.

    The format is found by content; gzip, bzip2 and zstd are unpacked on the way.

    Args:
        source: a path, or `-` for standard input.
        role: what it is taken for where its content could be either.
        mapping: our field name -> the file's, where the inference should not decide.
        format: the name of the format, where sniffing should not decide.
    """
    return load_with_notes(source, Notes(), role=role, mapping=mapping, format=format)


def load_by(
    source: str | os.PathLike[str],
    column: str,
    *,
    role: Role | None = None,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
) -> dict[str, Dataset]:
    """A table or list of records split by a column, such as the system's name.

    Args:
        source: a path, or `-` for standard input.
        column: the file's name of the column.
        role: what each part is taken for where its content could be either.
        mapping: our field name -> the file's, where the inference should not decide.
        format: the name of the format, where sniffing should not decide.
    """
    found, where = _open(source, Notes(), role, mapping, format)
    parts = _guarded(lambda: found.read_by(where, column), where)
    for value, part in parts.items():
        if part.run is not None:
            # What goes wrong with one of the systems says with which.
            part.run.name = f"{part.run.name}:{value}"
    return parts


def load_with_notes(
    source: str | os.PathLike[str],
    notes: Notes,
    *,
    role: Role | None = None,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
) -> Dataset:
    """The same as `load`, telling problems and notices to the caller's notes."""
    found, where = _open(source, notes, role, mapping, format)
    return _guarded(lambda: found.read(where), where)


def sniff(head: bytes, path: str) -> Format:
    """The format whose files begin like this.

    Example:
        >>> sniff(b'{"q1": ["d1", "d2"]}', "run").name
        'json'
    """
    name = Path(path).name.lower()
    for ending in _PACKED:
        name = name.removesuffix(ending)
    known = FORMATS.values()
    # Binary formats first: what none of them knows is told apart before any text is.
    ordered = (f for binary in (True, False) for f in known if f.binary is binary)
    found = next((f for f in ordered if f.sniff(head, name)), None)
    if found is None or not found.binary:
        kind = foreign_kind(head)
        if kind is not None:
            raise FormatError(f"looks like {kind}", path=path)
        if not head.strip(b"\xef\xbb\xbf \t\r\n"):
            raise FormatError("is empty: there is nothing to read", path=path)
    if found is None:
        # What no format knows is read as what its name says, up to the first problem.
        found = next((f for f in known if name.endswith(f.extensions)), None)
    if found is not None:
        return found
    line = head.strip().partition(b"\n")[0][:60].decode("utf-8", "replace")
    raise FormatError(
        f"cannot tell what it is; it starts with {line!r}",
        path=path,
        hint=f"--format names one of {', '.join(FORMATS)}",
    )


def _open(
    source: str | os.PathLike[str],
    notes: Notes,
    role: Role | None,
    mapping: Mapping[str, str] | None,
    format: str | None,
) -> tuple[Format, Source]:
    if role is not None and role not in _ROLES:
        raise ParameterError("load", "role", f"one of {', '.join(_ROLES)}", role)
    path = os.fspath(source)
    if not path:
        raise FormatError("the path is empty", hint="- is standard input")
    where = Source(path, role, dict(mapping or {}), notes)
    if path != STDIN and Path(path).is_dir():
        return _folder_format(path, format), where
    named = None if format is None else FORMATS[format]
    once = path == STDIN or not Path(path).is_file()
    stream = open_binary(path)
    try:
        head = _read_head(stream)
        found = named or sniff(head, path)
    except DataError:
        stream.close()
        raise
    if once:
        # What cannot be opened twice is read on from behind its head.
        again = io.BufferedReader(_Again(head, stream))
        return found, replace(where, replay=cast("BinaryIO", again))
    stream.close()
    return found, where


def _folder_format(path: str, format: str | None) -> Format:
    if format is not None:
        return FORMATS[format]
    for known in FORMATS.values():
        if known.sniff_folder(Path(path)):
            return known
    raise FormatError(
        "is a folder that holds no data set karat knows",
        path=path,
        hint="a BEIR folder has qrels/test.tsv, a Parquet folder *.parquet files",
    )


def _read_head(stream: BinaryIO) -> bytes:
    head = b""
    while len(head) < _HEAD and (more := stream.read(_HEAD - len(head))):
        head += more
    return head


def _guarded(read: Callable[[], T], where: Source) -> T:
    """Whatever goes wrong while reading names the file."""
    try:
        with gc_paused():
            return read()
    except DataError as error:
        if error.path is not None:
            raise
        raise placed(error, path=where.path) from None
    except OSError as error:
        raise where.error(f"cannot be read: {error.strerror or error}") from None


class _Again(io.RawIOBase):
    """A stream whose first bytes have been read already, from the start."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = memoryview(head)
        self._stream = stream

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)] or self._stream.read(len(buffer))
        self._head = self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)
