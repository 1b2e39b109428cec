"""Samples from a list of records, without a file."""

from collections.abc import Iterable, Mapping
from typing import Any

from karat import Dataset
from karat.extend import Source
from karat.reading.meaning.records import Samples
from karat.reading.source import Notes, Role

__all__ = ["load_records"]


def load_records(
    records: Iterable[Any],
    *,
    role: Role | None = None,
    mapping: Mapping[str, str] | None = None,
    name: str = "samples",
) -> Dataset:
    """What a list of sample dictionaries holds."""
    samples = Samples(Source(name, role, dict(mapping or {}), Notes()))
    for record in records:
        samples.take(record)
    return samples.finish("objects")
