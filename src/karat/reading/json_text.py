"""JSON and JSON Lines."""

import io
import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, BinaryIO

from karat.data.queries import Dataset
from karat.errors import FormatError
from karat.reading.files import (
    QUICK_SCAN,
    SCAN,
    Scan,
    decode_json,
    decode_text,
    lines_in,
    read_value,
)
from karat.reading.format import SHIPPED, Format
from karat.reading.meaning.shapes import interpret
from karat.reading.source import Batched, Batches, Source, placed

_BOM = b"\xef\xbb\xbf"
# Small enough to stay in the cache of a processor.
_BATCH = 1 << 15
_DEL = "\x7f"
_MARK = b',"\x7f",'


class Json(Format):
    """One JSON value: samples, or documents by query."""

    name = "json"
    extensions, shares = SHIPPED["json"][1:3]
    layout = "nested"

    def records(self, source: Source) -> Any:
        """The whole value; several of them, one per line, are read as lines."""
        with source.open() as stream:
            data = read_value(stream)
        try:
            return decode_json(decode_text(data))
        except FormatError:
            if data.lstrip()[:1] != b"{" or not JSON_LINES.sniff(data, ""):
                raise
            return Batched(_batches(lambda: io.BytesIO(data), source))

    def read(self, source: Source) -> Dataset:
        """What the value or the lines hold."""
        value = self.records(source)
        lines = isinstance(value, Iterator)
        return interpret(value, source, JSON_LINES.name if lines else self.name)

    def write(self, value: Any, stream: BinaryIO) -> None:
        """One value, with a line for each of its parts."""
        stream.write(_encoded(value, indent=1) + b"\n")


class JsonLines(Format):
    """One JSON value per line: samples, or rows of one document each."""

    name = "jsonl"
    extensions, shares = SHIPPED["jsonl"][1:3]
    layout = "records"

    def sniff(self, head: bytes, name: str) -> bool:
        """The first line is a value of its own, and more follow or the name says so."""
        first, _, more = head.removeprefix(_BOM).lstrip().partition(b"\n")
        named = name.endswith(self.extensions)
        if first[:1] not in {b"{", b"["} or not (named or more.strip()):
            return False
        try:
            decode_json(decode_text(first))
        except FormatError:
            # A broken line is still a line; a lone bracket opens JSON in many lines.
            return named and first.strip() not in {b"{", b"["}
        return True

    def records(self, source: Source) -> Batched:
        """The value of each line."""
        return Batched(_batches(source.open, source))

    def write(self, value: Any, stream: BinaryIO) -> None:
        """One record per line."""
        stream.writelines(_encoded(record) + b"\n" for record in value)


def _batches(lines: Callable[[], BinaryIO], source: Source) -> Batches:
    """The values of lines that are not blank, many at a time."""
    number, scan = 1, QUICK_SCAN
    with lines() as stream:
        for some in lines_in(stream, _BATCH):
            values = _decode_lines(some, scan)
            if values is None and scan is QUICK_SCAN:
                scan = SCAN
                values = _decode_lines(some, scan)
            if values is None:
                yield from _decode_lines_slowly(some, number, source)
            else:
                yield range(number, number + len(some)), values
            number += len(some)


def _decode_lines_slowly(lines: list[bytes], first: int, source: Source) -> Batches:
    for number, data in enumerate(lines, first):
        if not data.strip():
            continue
        try:
            value = decode_json(decode_text(data.rstrip(), number), number)
        except FormatError as error:
            source.notes.problem(placed(error, path=source.path))
        else:
            yield [number], [value]


def _decode_lines(lines: list[bytes], scan: Scan) -> list[Any] | None:
    """The values of lines, decoded as one list; None where any is odd.

    A mark is put between any two lines. Where each of them is an entry of the list, and
    every second one, each line is a value of its own.
    """
    data, marks = _MARK.join(lines), len(lines) - 1
    if data.count(_MARK[1:-1]) != marks or _BOM in data:
        return None
    text = data.decode(errors="replace")
    try:
        values, end = scan(f"[{text}]", 0)
    except (FormatError, RecursionError, StopIteration, ValueError):
        return None
    whole = end == len(text) + 2 and "\ufffd" not in text
    if not whole or len(values) != 2 * marks + 1 or values[1::2].count(_DEL) != marks:
        return None
    values = values[::2]
    once = scan is SCAN or _have_each_key_once(values, data)
    return values if once else None


def _have_each_key_once(values: list[Any], data: bytes) -> bool:
    """Whether there are as many keys as colons, or as colons behind a quote."""
    colons, keys = data.count(b":"), 0
    groups = [values]
    while groups and keys < colons:
        mappings, inner = list[Any](), list[Any]()
        for group in groups:
            kinds = {*map(type, group)}
            if dict in kinds:
                plain = kinds == {dict}
                mappings += group if plain else [v for v in group if type(v) is dict]
            if list in kinds:
                inner += [v for v in group if type(v) is list]
        keys += sum(map(len, mappings))
        if keys < colons and mappings:
            inner.append([*chain(*map(dict.values, mappings))])
        groups = inner
    if keys == colons:
        return True
    spaced = any(space in data for space in (b" :", b"\t:", b"\r:"))
    return not spaced and keys == data.count(b'":')


def _encoded(value: object, indent: int | None = None) -> bytes:
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    # Half a character, as broken JSON may hold, is written the way JSON writes it.
    return text.encode("utf-8", "backslashreplace")


JSON = Json()
JSON_LINES = JsonLines()
