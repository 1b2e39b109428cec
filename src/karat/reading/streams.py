"""Inputs: files and standard input, decompressed if their first bytes say so."""

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from glob import has_magic
from itertools import islice
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, cast

from karat.data.tables import counted
from karat.errors import DataError, FormatError, MissingExtraError, MissingFieldError
from karat.reading.problems import Notes

STDIN = "-"
BLOCK = 1 << 20
LONGEST_LINE = 1 << 26
"""No line is so long: a few kilobytes may unpack to gigabytes without an end."""

LONGEST_VALUE = 1 << 30
"""So long may one JSON value be."""

_PIECE = 1 << 18
# What is unpacked at once where a codec sets no limit: 32,768 times as much at most.
_SLICE = 1 << 12
_LONGEST = 1000
_BATCH = 256

Role: TypeAlias = Literal["run", "gold", "samples", "queries", "corpus"]
"""What a file is taken for, where its contents could be either."""


Records: TypeAlias = Iterator[tuple[int | None, Any]]
"""Records with the line each stands on, where lines are known."""
Batches: TypeAlias = Iterator[tuple[Sequence[int | None], list[Any]]]
"""Some lines at a time, and the record on each of them."""


@dataclass(frozen=True, eq=False)
class Source:
    """An input as a format sees it: where it lies, and what the user said of it.

    Attributes:
        path: as the user wrote it; messages show it.
        role: what the file is taken for, if the user said.
        mapping: our field name -> the input's field name, where the user said.
        notes: where problems and notices go.
        replay: the bytes from the start, when the path cannot be opened twice.
        optional: our names in the mapping that may be about another input only.
    """

    path: str
    role: Role | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    replay: BinaryIO | None = None
    optional: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """How reports call what is read from here."""
        if self.path == STDIN:
            return "stdin"
        from pathlib import Path  # noqa: PLC0415  each of these takes long to load

        path = Path(self.path)
        while has_magic(path.name):
            path = path.parent
        return path.name or path.resolve().name

    def mapping_for(self, names: Iterable[str]) -> dict[str, str]:
        """The mapping for a table or record with these fields.

        A field that may be another input's is left to the inference where it is not
        there.
        """
        there = {*names}
        return {
            ours: theirs
            for ours, theirs in self.mapping.items()
            if ours not in self.optional
            or theirs in there
            or theirs.partition(".")[0] in there
        }

    def apart(self) -> "Source":
        """The same input for one of its parts, which keeps its notices to itself."""
        return replace(self, notes=Notes())

    def open(self) -> BinaryIO:
        """The bytes from the start, decompressed. Only once for a pipe."""
        return open_binary(self.path) if self.replay is None else self.replay

    def read(self, most: int = -1) -> bytes:
        """All bytes, or so many of them."""
        with self.open() as stream:
            return stream.read(most)

    def error(
        self,
        problem: str,
        *,
        line: int | None = None,
        query: object = None,
        hint: str | None = None,
    ) -> FormatError:
        """A problem of this input, with its place."""
        return FormatError(problem, path=self.path, line=line, query=query, hint=hint)

    def mistaken(self, what: str, usage: str) -> FormatError:
        """An input that is something else than what was asked for.

        Args:
            what: says what it is.
            usage: how it is used with another file, where it was given alone.
        """
        asked = {"run": "a run was", "gold": "gold was", "samples": "samples were"}
        wanted = asked.get(self.role or "", "something else was")
        if self.role == "samples":
            return self.error(f"{what}, but {wanted} asked for", hint=f"try {usage}")
        return self.error(f"{what}, but {wanted} asked for: swapped files?")

    def lacks(self, field: str, problem: str) -> MissingFieldError:
        """A field that the user named and this input does not have."""
        return MissingFieldError(problem, field, path=self.path)


class Batched(Iterator[tuple[int | None, Any]]):
    """Records that come many at a time.

    Attributes:
        batches: lines and records.
        header: the names of columns, where a record is a list of cells.
    """

    def __init__(self, batches: Batches, header: list[str] | None = None) -> None:
        self.batches = batches
        self.header = header
        self._each = (
            pair for some in batches for pair in zip(*self.named(*some), strict=True)
        )

    def __next__(self) -> tuple[int | None, Any]:
        return next(self._each)

    def named(
        self, lines: Sequence[int | None], rows: list[Any]
    ) -> tuple[Sequence[int | None], list[Any]]:
        """The same lines with their cells under the names of the columns."""
        if self.header is None:
            return lines, rows
        cells = ([cell or None for cell in row] for row in rows)
        return lines, [dict(zip(self.header, row, strict=True)) for row in cells]


def in_batches(records: Records) -> Batches:
    """Records that come one by one; a problem with one comes up behind those before."""
    wrong: DataError | None = None
    while wrong is None:
        some: list[tuple[int | None, Any]] = []
        try:
            some.extend(islice(records, _BATCH))
        except DataError as error:
            wrong = error
        if not some and wrong is None:
            return
        if some:
            yield [line for line, _ in some], [record for _, record in some]
    raise wrong


def open_binary(source: str | os.PathLike[str] | bytes) -> BinaryIO:
    """The bytes of a file from the start; gzip, bzip2 and zstd are decompressed.

    Args:
        source: a path, `-` for standard input, or the bytes themselves.

    Raises:
        FormatError: the file cannot be opened, or (while reading) is broken.
        MissingExtraError: it is a zstd file and zstandard is not installed.
    """
    if isinstance(source, bytes):
        return _unpacked(io.BytesIO(source), path_of(source))
    name = os.fspath(source)
    if len(name) > _LONGEST or "\n" in name:
        size = counted(len(name), "character")
        problem = f"cannot be opened: it is a text of {size}, not a path"
        raise FormatError(problem, path=name)
    if name == STDIN:
        return _unpacked(_standard_input(), name)
    if not name:
        raise FormatError("the path is empty", hint="- is standard input")
    if os.path.isdir(name):  # noqa: PTH112  a str stays as the user wrote it
        raise FormatError(
            "is a folder, not a file", path=name, hint="name a file in it"
        )
    try:
        return _unpacked(open(name, "rb"), name)  # noqa: PTH123
    except FileNotFoundError:
        raise FormatError("no such file", path=name, hint=_similar(name)) from None
    except PermissionError:
        hint = "check who may read it"
        raise FormatError("permission denied", path=name, hint=hint) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FormatError(f"cannot be opened: {reason}", path=name) from None


def _standard_input() -> io.BufferedReader:
    if sys.stdin is None:
        raise FormatError("standard input is closed", path=STDIN)
    # Whoever has read it must not close it.
    return io.BufferedReader(Pieces(blocks(sys.stdin.buffer)))


def path_of(source: object) -> str:
    """How errors call an input: by its path, if it has one."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else "the data"


def blocks(stream: BinaryIO, size: int = BLOCK) -> Iterator[bytes]:
    """The rest of a stream, in blocks of one size; only the last may be shorter."""
    while block := stream.read(size):
        yield block


def lines_in(stream: BinaryIO, size: int = BLOCK) -> Iterator[list[bytes]]:
    """The lines of a stream, those of about so many bytes at a time.

    Raises:
        FormatError: a line does not end within `LONGEST_LINE`.
    """
    parts, length, number = list[bytes](), 0, 1
    for block in blocks(stream, size):
        end = block.rfind(b"\n") + 1
        if end:
            lines = io.BytesIO(b"".join((*parts, block[:end]))).readlines()
            yield lines
            parts, length, number = [], 0, number + len(lines)
        parts.append(block[end:])
        length += len(block) - end
        if length > LONGEST_LINE:
            raise FormatError(
                f"the line does not end within {LONGEST_LINE >> 20} MB", line=number
            )
    if length:
        yield [b"".join(parts)]


def read_lines(stream: BinaryIO) -> bytes:
    """All bytes, in lines that end."""
    return b"".join(b"".join(lines) for lines in lines_in(stream))


def read_value(stream: BinaryIO) -> bytes:
    """All bytes of one value.

    Raises:
        FormatError: it is longer than `LONGEST_VALUE`.
    """
    data = stream.read(LONGEST_VALUE + 1)
    if len(data) > LONGEST_VALUE:
        raise FormatError(
            f"one value of more than {LONGEST_VALUE >> 20} MB", hint="use JSON Lines"
        )
    return data


def _similar(name: str) -> str:
    if os.path.islink(name):  # noqa: PTH114
        return f"it is a link to {os.readlink(name)!r}, which is not there"  # noqa: PTH115
    from difflib import get_close_matches  # noqa: PLC0415  for mistakes only

    folder, file = os.path.split(name)
    try:
        close = get_close_matches(file, os.listdir(folder or "."), n=1)  # noqa: PTH208
    except OSError:
        return f"there is no folder {folder!r} either"
    if close:
        return f"did you mean {os.path.join(folder, close[0])!r}?"  # noqa: PTH118
    return f"looked in {os.path.abspath(folder)}"  # noqa: PTH100


def _unpacked(stream: Any, name: str) -> BinaryIO:
    """The stream, or what it unpacks to."""
    if isinstance(stream, io.BytesIO):
        head = stream.getvalue()[:4]
    else:
        head = stream.peek(4)[:4]
    for magic, kind, codec in _CODECS:
        if head.startswith(magic):
            raw = Pieces(_unpack(stream, codec(), kind, name), stream)
            return cast("BinaryIO", io.BufferedReader(raw, BLOCK))
    return cast("BinaryIO", stream)


class Pieces(io.RawIOBase):
    """A stream of pieces of bytes.

    Args:
        pieces: what is read, one after the other.
        owner: what is closed with it.
    """

    def __init__(self, pieces: Iterator[bytes], owner: BinaryIO | None = None) -> None:
        self._pieces = pieces
        self._owner = owner
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Close what the pieces are from."""
        if self._owner is not None:
            self._owner.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes."""
        if not self._ready:
            self._ready = memoryview(next(self._pieces, b""))
        size = min(len(self._ready), len(buffer))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


class _Codec(NamedTuple):
    """How to unpack one part, what is raised if it is broken, and how much at once."""

    start: Callable[[], Any]
    error: type[Exception]
    limit: tuple[int, ...] = (BLOCK,)
    piece: int = _PIECE


def _unpack(stream: BinaryIO, codec: _Codec, kind: str, name: str) -> Iterator[bytes]:
    """What a compressed stream unpacks to, part after part."""

    def broken(reason: str) -> FormatError:
        problem = f"is a broken {kind} file: {reason}"
        return FormatError(problem, path=name, hint="copy or compress it again")

    packed = stream.read(codec.piece)
    while packed:
        engine = codec.start()
        while not engine.eof:
            if not packed and getattr(engine, "needs_input", True):
                packed = stream.read(codec.piece)
                if not packed:
                    raise broken("it ends in the middle")
            try:
                data = engine.decompress(packed, *codec.limit)
            except codec.error as error:
                raise broken(str(error)) from None
            packed = getattr(engine, "unconsumed_tail", b"")
            if data:
                yield data
        # Tape drives fill up with zeros; anything else must be one more part.
        packed = engine.unused_data.lstrip(b"\0")
        while not packed and (more := stream.read(codec.piece)):
            packed = more.lstrip(b"\0")


def _gzip() -> _Codec:
    import zlib  # noqa: PLC0415

    return _Codec(partial(zlib.decompressobj, 16 + zlib.MAX_WBITS), zlib.error)


def _bzip2() -> _Codec:
    import bz2  # noqa: PLC0415

    return _Codec(bz2.BZ2Decompressor, OSError)


def _zstd() -> _Codec:
    try:
        import zstandard  # noqa: PLC0415  an extra
    except ImportError:
        raise MissingExtraError("reading .zst files", "zstd") from None
    engine = zstandard.ZstdDecompressor().decompressobj
    return _Codec(engine, zstandard.ZstdError, (), _SLICE)


_CODECS: tuple[tuple[bytes, str, Callable[[], _Codec]], ...] = (
    (b"\x1f\x8b", "gzip", _gzip),
    (b"BZh", "bzip2", _bzip2),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd),
)
