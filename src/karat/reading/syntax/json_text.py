"""JSON and JSON Lines."""

import io
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from karat.data.queries import Dataset
from karat.errors import FormatError
from karat.reading.decoding import decode_json, decode_text
from karat.reading.format import LOOSE, Format
from karat.reading.meaning.shapes import Records, interpret
from karat.reading.problems import placed
from karat.reading.streams import Source

__all__ = ["JSON", "JSON_LINES"]

_BOM = b"\xef\xbb\xbf"
_LINES_OF_JSON = "extra data"
_BATCH = 1 << 18
_MARK_VALUE = "between two lines"
_MARK_TEXT = _MARK_VALUE.encode()
_MARK = b',"' + _MARK_TEXT + b'",'


class Json(Format):
    """One JSON value: samples, or documents by query."""

    name = "json"
    extensions = (".json",)
    shares = (".jsonl", ".ndjson", *LOOSE)
    layout = "nested"

    def sniff(self, head: bytes, name: str) -> bool:
        """It starts with a bracket."""
        del name
        return head.removeprefix(_BOM).lstrip()[:1] in {b"{", b"["}

    def records(self, source: Source) -> Any:
        """The whole value; several of them, one per line, are read as lines."""
        data = source.read()
        try:
            return decode_json(decode_text(data))
        except FormatError as error:
            if _LINES_OF_JSON not in error.problem or data.lstrip()[:1] != b"{":
                raise
            return _records(io.BytesIO(data), source)

    def read(self, source: Source) -> Dataset:
        """What the value or the lines hold."""
        found = self.records(source)
        lines = isinstance(found, Iterator)
        return interpret(found, source, JSON_LINES.name if lines else self.name)

    def write(self, value: Any, stream: BinaryIO) -> None:
        """One value, with a line for each of its parts."""
        stream.write(_encoded(value, indent=1) + b"\n")


class JsonLines(Format):
    """One JSON value per line: samples, or rows of one document each."""

    name = "jsonl"
    extensions = (".jsonl", ".ndjson")
    shares = (".json", *LOOSE)
    layout = "records"

    def sniff(self, head: bytes, name: str) -> bool:
        """The first line is a value of its own, and more follow or the name says so."""
        first, _, more = head.removeprefix(_BOM).lstrip().partition(b"\n")
        named = name.endswith(self.extensions)
        if first[:1] not in {b"{", b"["} or not (named or more.strip()):
            return False
        try:
            decode_json(decode_text(first))
        except FormatError as error:
            # A broken line is still a line; a lone bracket opens JSON in many lines.
            return (
                named
                and first.strip() not in {b"{", b"["}
                and "nested" not in str(error)
            )
        return True

    def records(self, source: Source) -> Records:
        """The value of each line."""
        with source.open() as stream:
            yield from _records(stream, source)

    def write(self, value: Any, stream: BinaryIO) -> None:
        """One record per line."""
        stream.writelines(_encoded(record) + b"\n" for record in value)


def _records(stream: BinaryIO, source: Source) -> Records:
    """The value of each line that is not blank, with the line's number."""
    number = 1
    quick = True
    while some := stream.readlines(_BATCH):
        values = _decode_at_once(some, quick=quick)
        if values is None and quick:
            quick = False
            values = _decode_at_once(some, quick=quick)
        if values is None:
            yield from _decode_each(some, number, source)
        else:
            yield from enumerate(values, number)
        number += len(some)


def _decode_each(lines: list[bytes], first: int, source: Source) -> Records:
    for number, data in enumerate(lines, first):
        if not data.strip():
            continue
        try:
            value = decode_json(decode_text(data, number), number)
        except FormatError as error:
            source.notes.problem(placed(error, path=source.path))
        else:
            yield number, value


def _decode_at_once(lines: list[bytes], *, quick: bool) -> list[Any] | None:
    """The values of lines in half the time, as one list; None where any is wrong.

    A mark is put between any two lines. Where each of them is an entry of the list, and
    every second one, each line is a value of its own.

    Args:
        lines: some lines of a file.
        quick: do not look at each object for keys given twice: as long as there are as
            many keys as colons, there are none.
    """
    data = _MARK.join(lines)
    marks = len(lines) - 1
    if data.count(_MARK_TEXT) != marks or _BOM in data:
        return None
    try:
        values = decode_json(f"[{decode_text(data)}]", each_key_once=not quick)
    except FormatError:
        return None
    if len(values) != 2 * marks + 1 or values[1::2] != [_MARK_VALUE] * marks:
        return None
    values = values[::2]
    if quick and sum(map(_count_keys, values)) != data.count(b":"):
        return None
    return cast("list[Any]", values)


def _count_keys(value: Any) -> int:
    """How many keys a value has; no more than there are."""
    if type(value) is list and {*map(type, value)} == {dict}:
        return sum(map(len, value))
    if type(value) is not dict:
        return 0
    inner = (v for v in value.values() if type(v) is dict or type(v) is list)
    return len(value) + sum(map(_count_keys, inner))


def _encoded(value: object, indent: int | None = None) -> bytes:
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    # Half a character, as broken JSON may hold, is written the way JSON writes it.
    return text.encode("utf-8", "backslashreplace")


JSON = Json()
JSON_LINES = JsonLines()
