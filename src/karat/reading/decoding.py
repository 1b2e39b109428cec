"""Bytes to text and text to JSON values, refusing plainly what is something else."""

import codecs
import gc
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeAlias

from karat.errors import FormatError

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


def foreign_kind(head: bytes) -> str | None:
    """What a file is that karat does not read, by its first bytes.

    Example:
        >>> foreign_kind(b"%PDF-1.7")
        'a PDF file'
    """
    start = head[:32].lstrip()
    for magic, kind in _FOREIGN:
        if head.startswith(magic) or start.lower().startswith(magic.lower()):
            return kind
    if head.startswith(_PICKLE):
        return "a Python pickle, which karat never opens"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or _is_wide(head):
        return "UTF-16 text; save it as UTF-8"
    if b"\x00" in head[:1024]:
        return "a binary file"
    return None


def _is_wide(head: bytes) -> bool:
    """Whether every second byte of the first sixteen is zero: ASCII as UTF-16."""
    start = head[:16]
    wide = len(start) // 2
    return wide > 1 and wide in {start[::2].count(0), start[1::2].count(0)}


def decode_text(data: bytes, line: int = 1) -> str:
    """Bytes as text; a byte order mark is dropped, a wrong byte names its line."""
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
    """The value of a JSON text. Keys given twice, NaN and great depth are errors.

    Args:
        text: the whole text.
        line: the line of the file it stands on, when it is one line of many.

    Example:
        >>> decode_json('{"d1": 2}')
        {'d1': 2}
    """
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
    for found in _TOKENS.finditer(text):
        key = found["text"] if found["colon"] else None
        if found["open"]:
            keys.append(set())
        elif found["close"] and keys:
            keys.pop()
        if found["constant"] or len(keys) > deepest or (keys and key in keys[-1]):
            return text.count("\n", 0, found.start()) + 1
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
