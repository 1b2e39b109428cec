"""JSON and JSON Lines."""

import json
from collections.abc import Iterable
from typing import BinaryIO

from karat.data.gold import Gold
from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.errors import FormatError
from karat.reading.decoding import decode_json, decode_text
from karat.reading.format import Format, Source
from karat.reading.meaning.native import gold_value, run_value, sample_records
from karat.reading.meaning.shapes import (
    Records,
    load_records_by,
    load_stream,
    load_value,
    load_value_by,
)
from karat.reading.problems import placed

__all__ = ["Json", "JsonLines"]

_BOM = b"\xef\xbb\xbf"
_YAML = (".yaml", ".yml")
_LINES_OF_JSON = "extra data"


class Json(Format):
    """One JSON value: samples, or documents by query."""

    name = "json"
    extensions = (".json",)

    def sniff(self, head: bytes, name: str) -> bool:
        """It starts with a bracket; so may YAML, which then is named so."""
        opening = head.removeprefix(_BOM).lstrip()[:1]
        return opening in {b"{", b"["} and not name.endswith(_YAML)

    def read(self, source: Source) -> Dataset:
        """Read the whole value; several of them, one per line, are read as lines."""
        data = source.read()
        try:
            value = decode_json(decode_text(data))
        except FormatError as error:
            if _LINES_OF_JSON not in error.problem or data.lstrip()[:1] != b"{":
                raise
            return load_stream(_records(data.split(b"\n"), source), source, "jsonl")
        return load_value(value, source, self.name)

    def read_by(self, source: Source, column: str) -> dict[str, Dataset]:
        """A list of records, split by one of their fields."""
        value = decode_json(decode_text(source.read()))
        return load_value_by(value, column, source, self.name)

    def write_run(self, run: Run, stream: BinaryIO) -> None:
        """`{query: {document: score}}`, or lists of ids or documents."""
        _write(run_value(run), stream)

    def write_gold(self, gold: Gold, stream: BinaryIO) -> None:
        """`{query: {document: grade}}`, or samples where gold is more than ids."""
        _write(gold_value(gold), stream)

    def write_samples(self, loaded: Dataset, stream: BinaryIO) -> None:
        """A list of samples."""
        _write({"samples": list(sample_records(loaded))}, stream)


class JsonLines(Format):
    """One JSON value per line: samples, or rows of one document each."""

    name = "jsonl"
    extensions = (".jsonl", ".ndjson")

    def sniff(self, head: bytes, name: str) -> bool:
        """The first line is a value of its own, and more follow or the name says so."""
        first, _, more = head.removeprefix(_BOM).lstrip().partition(b"\n")
        named = name.endswith(self.extensions)
        if first[:1] not in {b"{", b"["} or not (named or more.strip()):
            return False
        if name.endswith(_YAML):
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

    def read(self, source: Source) -> Dataset:
        """Read record after record."""
        with source.open() as stream:
            return load_stream(_records(stream, source), source, self.name)

    def read_by(self, source: Source, column: str) -> dict[str, Dataset]:
        """The records, split by one of their fields."""
        with source.open() as stream:
            records = _records(stream, source)
            return load_records_by(records, column, source, self.name)

    def write_run(self, run: Run, stream: BinaryIO) -> None:
        """One sample per query, with its ranking."""
        self.write_samples(Dataset(run=run), stream)

    def write_gold(self, gold: Gold, stream: BinaryIO) -> None:
        """One sample per query, with its gold."""
        self.write_samples(Dataset(gold=gold), stream)

    def write_samples(self, loaded: Dataset, stream: BinaryIO) -> None:
        """One sample per line."""
        stream.writelines(_encoded(record) + b"\n" for record in sample_records(loaded))


def _records(lines: Iterable[bytes], source: Source) -> Records:
    """The value of each line that is not blank, with the line's number."""
    for number, data in enumerate(lines, 1):
        if data.isspace() or not data:
            continue
        try:
            value = decode_json(decode_text(data, number), number)
        except FormatError as error:
            source.notes.problem(placed(error, path=source.path))
        else:
            yield number, value


def _write(value: object, stream: BinaryIO) -> None:
    stream.write(_encoded(value, indent=1) + b"\n")


def _encoded(value: object, indent: int | None = None) -> bytes:
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    # Half a character, as broken JSON may hold, is written the way JSON writes it.
    return text.encode("utf-8", "backslashreplace")
