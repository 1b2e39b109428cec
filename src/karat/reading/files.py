"""Files and standard input: opened, unpacked, and decoded as text or JSON.

What a file is that karat does not read is said plainly, by its first bytes.
"""

import codecs
import gc
import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn, TypeAlias, cast

from karat.data.tables import counted
from karat.errors import FormatError, MissingExtraError

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
_FOREIGN: Final = (
    (b"%PDF-", "a PDF file"),
    (b"PK\x03\x04", "a zip archive (a spreadsheet, a .docx or an .npz is one)"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"\x7fELF", "a program"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"<!DOCTYPE html", "a web page (HTML)"),
    (b"<html", "a web page (HTML)"),
    (b"<?xml", "an XML file"),
)

_DEEP: Final = 500
_TOKENS: Final = re.compile(
    r'"(?P<text>[^"\\]*(?:\\.[^"\\]*)*)"(?P<colon>\s*:)?'
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<constant>NaN|-?Infinity)"
)

_PICKLE: Final = tuple(b"\x80" + bytes([version]) for version in range(2, 6))


def open_binary(source: str | os.PathLike[str] | bytes) -> BinaryIO:
    """The bytes of a file from the start; gzip, bzip2 and zstd are decompressed.

    Args:
        source: a path, `-` for standard input, or the bytes themselves.

    Raises:
        FormatError: the file cannot be opened, or (while reading) is broken.
        MissingExtraError: it is a zstd file and zstandard is not installed.

    Example:
        >>> import gzip
        >>> open_binary(gzip.compress(b"q1 Q0 d1 1 0.9 bm25")).read()
        b'q1 Q0 d1 1 0.9 bm25'
    """
    if isinstance(source, bytes):
        data: Any = io.BytesIO(source)
        return _unpacked(io.BufferedReader(data), path_of(source))
    name = os.fspath(source)
    if len(name) > _LONGEST or "\n" in name:
        size = counted(len(name), "character")
        problem = f"cannot be opened: it is a text of {size}, not a path"
        raise FormatError(problem, path=name)
    if name == STDIN:
        if sys.stdin is None:
            raise FormatError("standard input is closed", path=STDIN)
        # Whoever has read it must not close it.
        return _unpacked(io.BufferedReader(Pieces(blocks(sys.stdin.buffer))), name)
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


def path_of(source: object) -> str:
    """How errors call an input: by its path, if it has one."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else "the data"


def is_number(word: str | bytes) -> bool:
    """Whether `float` reads it."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def blocks(stream: BinaryIO, size: int = BLOCK) -> Iterator[bytes]:
    """The rest of a stream, in blocks of one size; only the last may be shorter."""
    while block := stream.read(size):
        yield block


def lines_in(stream: BinaryIO, size: int = BLOCK) -> Iterator[list[bytes]]:
    """The lines of a stream, those of about so many bytes at a time."""
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
    return b"".join(map(b"".join, lines_in(stream)))


def read_value(stream: BinaryIO) -> bytes:
    """All bytes of one value."""
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


def _unpacked(stream: io.BufferedReader, name: str) -> BinaryIO:
    """The stream, or what it unpacks to."""
    if (codec := _codec(stream.peek(4))) is None:
        return cast("BinaryIO", stream)
    raw = Pieces(_unpack(stream, codec, name), stream)
    return cast("BinaryIO", io.BufferedReader(raw, BLOCK))


class Pieces(io.RawIOBase):
    """A stream of pieces of bytes."""

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

    kind: str
    start: Callable[[], Any]
    error: type[Exception]
    limit: tuple[int, ...] = (BLOCK,)
    piece: int = _PIECE


def _codec(head: bytes) -> _Codec | None:
    """What unpacks a file that begins so, if it is packed."""
    if head.startswith(b"\x1f\x8b"):
        import zlib  # noqa: PLC0415

        start = partial(zlib.decompressobj, 16 + zlib.MAX_WBITS)
        return _Codec("gzip", start, zlib.error)
    if head.startswith(b"BZh"):
        import bz2  # noqa: PLC0415

        return _Codec("bzip2", bz2.BZ2Decompressor, OSError)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        try:
            import zstandard  # noqa: PLC0415  an extra
        except ImportError:
            raise MissingExtraError("reading .zst files", "zstd") from None
        engine = zstandard.ZstdDecompressor().decompressobj
        return _Codec("zstd", engine, zstandard.ZstdError, (), _SLICE)
    return None


def _unpack(stream: BinaryIO, codec: _Codec, name: str) -> Iterator[bytes]:
    """What a compressed stream unpacks to, part after part."""

    def broken(reason: str) -> FormatError:
        problem = f"is a broken {codec.kind} file: {reason}"
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


def foreign_kind(head: bytes) -> str | None:
    """What a file is that karat does not read, by its first bytes."""
    start = head[:32].lstrip()
    for magic, kind in _FOREIGN:
        if head.startswith(magic) or start.lower().startswith(magic.lower()):
            return kind
    if head.startswith(_PICKLE):
        return "a Python pickle, which karat never opens"
    # ASCII as UTF-16: every second byte of the first sixteen is zero.
    wide = len(head[:16]) // 2
    zeros = wide > 1 and wide in {head[:16:2].count(0), head[1:16:2].count(0)}
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or zeros:
        return "UTF-16 text; save it as UTF-8"
    if b"\x00" in head[:1024]:
        return "a binary file"
    return None


def decode_text(data: bytes, line: int = 1) -> str:
    """Bytes as text; a byte order mark is dropped, a wrong byte names its line.

    Example:
        >>> decode_text("Grüße".encode())
        'Grüße'
    """
    body = data.removeprefix(codecs.BOM_UTF8)
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise FormatError(
            f"not valid UTF-8: byte 0x{body[error.start]:02x}",
            line=line + body.count(b"\n", 0, error.start),
            hint="save the file as UTF-8",
        ) from None


def decode_json(text: str, line: int | None = None) -> Any:
    """The value of a JSON text. Keys given twice, NaN and great depth are errors."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        what = error.msg[0].lower() + error.msg[1:]
        raise FormatError(
            f"broken JSON at column {error.colno}: {what}",
            line=(line or 1) + error.lineno - 1,
        ) from None
    except FormatError as error:
        place = line or _line_of(text, sys.maxsize)
        raise FormatError(error.problem, line=place) from None
    except RecursionError:
        place = line or _line_of(text, _DEEP)
        raise FormatError("JSON nested too deeply", line=place) from None
    except ValueError:
        raise FormatError(
            "a number in the JSON has too many digits", line=line
        ) from None


def _line_of(text: str, deepest: int) -> int | None:
    """The line of a key given twice, of NaN, or of a bracket deeper than that."""
    keys: list[set[str]] = []
    for token in _TOKENS.finditer(text):
        key = token["text"] if token["colon"] else None
        if token["open"]:
            keys.append(set())
        elif token["close"] and keys:
            keys.pop()
        if token["constant"] or len(keys) > deepest or (keys and key in keys[-1]):
            return text.count("\n", 0, token.start()) + 1
        if key is not None and keys:
            keys[-1].add(key)
    return None


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise FormatError(f"key {twice[:60]!r} occurs twice in one JSON object")
    return mapping


def _refuse_constant(name: str) -> NoReturn:
    raise FormatError(f"{name} in JSON: numbers must be finite")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_each_key_once, parse_constant=_refuse_constant
)

Scan: TypeAlias = Callable[[str, int], tuple[Any, int]]
"""From a text and a place in it to the value that is there, and where it ends."""

SCAN: Final[Scan] = _DECODER.scan_once  # type: ignore[attr-defined]

QUICK_SCAN: Final[Scan] = json.JSONDecoder(  # type: ignore[attr-defined]
    parse_constant=_refuse_constant
).scan_once
"""The same without looking for keys given twice."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Keep the garbage collector quiet while values are read.

    They are trees: looking for cycles in them again and again costs half the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
