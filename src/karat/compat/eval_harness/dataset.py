"""Datasets and saved outputs, read under the conditions of the original."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isnan
from typing import Any, TypeAlias

from karat.compat.eval_harness.contract import (
    BLANK,
    DatasetSample,
    DatasetSchemaException,
    EvalHarnessException,
    EvalRunException,
    php_list,
    read_json,
)
from karat.extend import (
    DataError,
    FormatError,
    decode_text,
    decode_yaml,
    open_binary,
)

__all__ = [
    "SCHEMA_VERSION",
    "Dataset",
    "PathLike",
    "load_dataset",
    "load_dataset_file",
    "load_outputs",
    "load_outputs_file",
    "read_samples",
]

SCHEMA_VERSION = "eval-harness.dataset.v1"

PathLike: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class Dataset:
    """A dataset as its YAML defines it.

    Attributes:
        name: what it is registered under.
        samples: in the order of the file.
        schema_version: the only one there is, unless the file says so itself.
    """

    name: str
    samples: tuple[DatasetSample, ...]
    schema_version: str = SCHEMA_VERSION


def load_dataset(yaml_text: str) -> Dataset:
    r"""Read a dataset from YAML and check it; the first problem is the error.

    Example:
        >>> text = "name: d\nsamples: [{id: a, input: {}, expected_output: [x]}]"
        >>> load_dataset(text).samples[0].expected_output
        ['x']
    """
    try:
        value = _without_nan(decode_yaml(yaml_text))
    except FormatError as error:
        raise _as(DatasetSchemaException, error) from None
    fields = value if isinstance(value, Mapping) else {}
    version = fields.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise DatasetSchemaException(
            f"'schema_version' must be {SCHEMA_VERSION!r}, got {version!r}"
        )
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise DatasetSchemaException("a dataset needs a non-empty string 'name'")
    samples = php_list(fields.get("samples"))
    if not samples:
        raise DatasetSchemaException("a dataset needs a non-empty list 'samples'")
    return Dataset(name, read_samples(samples))


def read_samples(
    samples: Iterable[DatasetSample | Mapping[str, Any]],
) -> tuple[DatasetSample, ...]:
    """Check samples: each with an id of its own, an input and an expected output."""
    read: dict[str, DatasetSample] = {}
    for index, fields in enumerate(samples):
        if isinstance(fields, DatasetSample):
            sample = fields
        else:
            sample = _read_sample(fields, index)
        if sample.id in read:
            raise DatasetSchemaException(
                f"sample at index {index} has the id of another", query=sample.id
            )
        read[sample.id] = sample
    return tuple(read.values())


def load_outputs(text: str, source: str = "saved outputs") -> dict[str, str]:
    """Read what a system under test once printed: its output by sample id.

    Args:
        text: JSON or YAML with `outputs`: a mapping of id to output, or a list of
            `{"id": ..., "actual_output": ...}`.
        source: the file's name; `.json` and `.yaml` decide how the text is read.

    Example:
        >>> load_outputs('{"outputs": {"q-1": "[]"}}')
        {'q-1': '[]'}
    """
    value = _decode_outputs(text, source)
    if not isinstance(value, Mapping) or "outputs" not in value:
        raise EvalRunException("must be an object with a field 'outputs'", path=source)
    outputs = value["outputs"]
    if isinstance(outputs, Mapping):
        pairs = list(outputs.items())
    elif isinstance(outputs, list):
        pairs = [
            _read_output(entry, index, source) for index, entry in enumerate(outputs)
        ]
    else:
        raise EvalRunException("'outputs' must be an object or a list", path=source)
    read: dict[str, str] = {}
    for key, output in pairs:
        # Keys that YAML reads as integers are ids all the same.
        identity = str(key) if type(key) is int else key
        if not isinstance(identity, str) or not identity:
            raise EvalRunException(
                "a sample id must be a non-empty string", path=source
            )
        if not isinstance(output, str):
            raise EvalRunException(
                f"the output must be a string, got {type(output).__name__}",
                path=source,
                query=identity,
            )
        if identity in read:
            raise EvalRunException("has two outputs", path=source, query=identity)
        read[identity] = output
    return read


def load_dataset_file(path: PathLike) -> Dataset:
    """Read a dataset from a YAML file; errors name the file."""
    try:
        return load_dataset(_read_text(path))
    except DataError as error:
        raise _as(DatasetSchemaException, error, path) from None


def load_outputs_file(path: PathLike) -> dict[str, str]:
    """Read saved outputs from a JSON or YAML file."""
    try:
        return load_outputs(_read_text(path), os.fspath(path))
    except FormatError as error:
        raise _as(EvalRunException, error, path) from None


def _read_text(path: PathLike) -> str:
    with open_binary(path) as stream:
        return decode_text(stream.read())


def _as(
    exception: type[EvalHarnessException], error: DataError, path: object = None
) -> EvalHarnessException:
    """The same problem under one of the original's names."""
    return exception(
        error.problem,
        path=error.path or path,
        line=error.line,
        query=error.query,
        hint=error.hint,
    )


def _without_nan(value: Any) -> Any:
    # symfony/yaml reads .nan as +INF.
    if isinstance(value, float):
        return inf if isnan(value) else value
    if isinstance(value, dict):
        return {key: _without_nan(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_nan(part) for part in value]
    return value


def _read_sample(fields: object, index: int) -> DatasetSample:
    if not isinstance(fields, Mapping):
        raise DatasetSchemaException(f"sample at index {index} must be a mapping")
    identity = fields.get("id")
    if not isinstance(identity, str) or not identity:
        raise DatasetSchemaException(
            f"sample at index {index} needs a non-empty string 'id'"
        )
    if "expected_output" not in fields:
        raise DatasetSchemaException("'expected_output' is missing", query=identity)
    return DatasetSample(
        identity,
        _read_mapping(fields.get("input"), "input", identity),
        fields["expected_output"],
        _read_mapping(fields.get("metadata", {}), "metadata", identity),
    )


def _read_mapping(value: object, field: str, identity: str) -> Mapping[str, Any]:
    # Keys 0..n-1 make a list of a mapping, and an empty list is an empty mapping.
    if (elements := php_list(value)) == []:
        return {}
    if elements is not None or not isinstance(value, Mapping):
        raise DatasetSchemaException(f"{field!r} must be a mapping", query=identity)
    return value


def _decode_outputs(text: str, source: str) -> Any:
    if not text.strip(BLANK):
        raise EvalRunException("must not be empty", path=source)
    name = source.lower()
    if not name.endswith((".yaml", ".yml")):
        try:
            return read_json(text)
        except ValueError as error:
            if name.endswith(".json"):
                raise EvalRunException(
                    f"not valid JSON: {error}", path=source
                ) from None
    try:
        return decode_yaml(text)
    except FormatError as error:
        raise _as(EvalRunException, error, source) from None


def _read_output(entry: object, index: int, source: str) -> tuple[Any, Any]:
    if not isinstance(entry, Mapping):
        raise EvalRunException(
            f"entry at index {index} must be an object with id and actual_output",
            path=source,
        )
    identity = entry.get("id")
    if not isinstance(identity, str):
        raise EvalRunException(
            f"entry at index {index} needs a non-empty string 'id'", path=source
        )
    return identity, entry.get("actual_output")
