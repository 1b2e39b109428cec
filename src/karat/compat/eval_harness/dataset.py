"""Samples, rankings and saved outputs, read under the conditions of the original.

Much of it is how PHP sees the world, because that is what the numbers depend on: an
array with the keys 0, 1, 2... is a list there, whether it came from `[]` or `{}`.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf, isnan
from typing import Any, NoReturn, TypeAlias, TypeGuard

from karat.extend import DataError, decode_text, decode_yaml, open_binary

SCHEMA_VERSION = "eval-harness.dataset.v1"
BLANK = " \t\n\r\0\x0b"
"""What PHP's trim() takes off."""

PathLike: TypeAlias = str | os.PathLike[str]

# PHP's is_numeric(): blanks around are fine, words such as inf and nan are not.
_NUMERIC = re.compile(
    r"[ \t-\r]*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[ \t-\r]*"
)


class EvalHarnessException(DataError):  # noqa: N818  the original's name
    """The root of what eval-harness raises; a `karat.KaratError` and a ValueError."""


class MetricException(EvalHarnessException):
    """A sample that a metric cannot score, or a metric that cannot be."""


class DatasetSchemaException(EvalHarnessException):
    """A dataset that does not follow the schema."""


class EvalRunException(EvalHarnessException):
    """A run that cannot be carried out."""


@dataclass(frozen=True)
class DatasetSample:
    """One question: what the system under test is given, and what it should find.

    Attributes:
        id: unique in its dataset.
        input: handed to the system under test as it is.
        expected_output: relevant ids, gains by id, or an answer: the metric decides.
        metadata: `k` and `tags` are read; the rest is yours.
    """

    id: str
    input: Mapping[str, Any]
    expected_output: Any
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GoldenDataset:
    """Samples under a name, and the metrics that score them once it is registered."""

    name: str
    samples: tuple[DatasetSample, ...]
    metrics: tuple[Any, ...] = ()
    schema_version: str = SCHEMA_VERSION


Dataset = GoldenDataset
"""As it is called before it is registered."""


@dataclass(frozen=True)
class RankedRetrieval:
    """A ranking as the system under test printed it, each id once at its first rank."""

    ids: list[str]
    texts: list[str]

    @classmethod
    def from_actual_output(
        cls, actual_output: str, sample_id: str
    ) -> "RankedRetrieval":
        """Read `["doc-7", {"id": "doc-3", "text": "..."}]`, bare or in `retrieved`.

        Example:
            >>> RankedRetrieval.from_actual_output('["b", "a", "b"]', "q-1").ids
            ['b', 'a']
        """
        refusal = partial(MetricException, query=sample_id)
        if not isinstance(actual_output, str):
            kind = type(actual_output).__name__
            raise refusal(f"the output must be JSON text, got {kind}")
        value = _read_json(actual_output.strip(BLANK), refusal, "the output is ")
        entries = _php_list(value)
        if entries is None and isinstance(value, Mapping):
            entries = _php_list(value.get("retrieved"))
        if entries is None:
            raise refusal(
                "the output must be a JSON list, or an object with a list 'retrieved'"
            )
        # RankedRetrieval::fromActualOutput drops later copies of an id with their text.
        texts: dict[str, str] = {}
        for entry in entries:
            fields = entry if isinstance(entry, Mapping) else {"id": entry}
            identity, text = fields.get("id"), fields.get("text")
            if not _is_id(identity):
                raise refusal(
                    "a retrieved entry must be a non-empty id or an object with one, "
                    f"got {str(entry)[:60]!r}"
                )
            texts.setdefault(identity, text if isinstance(text, str) else "")
        return cls(list(texts), list(texts.values()))

    @staticmethod
    def relevance_gains_from_expected(
        expected_output: Any, sample_id: str
    ) -> dict[str, float]:
        """Gains by id, from a list of ids, a mapping or the JSON text of either.

        Example:
            >>> RankedRetrieval.relevance_gains_from_expected(["doc-3"], "q-1")
            {'doc-3': 1.0}
        """
        refusal = partial(MetricException, query=sample_id)
        if isinstance(expected_output, str):
            expected_output = _read_json(
                expected_output, refusal, "expected_output is "
            )
        ids = _php_list(expected_output)
        if not ids and not (ids is None and isinstance(expected_output, Mapping)):
            raise refusal("expected_output must hold at least one relevant id")
        if ids is None:
            gains = {}
            for key, gain in expected_output.items():
                if not _is_numeric(gain) or type(key) not in {str, int} or key == "":
                    raise refusal(
                        "expected_output must map non-empty ids to numbers, "
                        f"got {str(gain)[:60]!r} for {str(key)[:60]!r}"
                    )
                # By way of text an integer of any length becomes a float, as in PHP.
                gains[str(key)] = float(str(gain))
            return gains
        if not all(map(_is_id, ids)):
            raise refusal("the ids in expected_output must be non-empty strings")
        return dict.fromkeys(ids, 1.0)


def load_dataset(yaml_text: str) -> Dataset:
    r"""Read a dataset from YAML and check it; the first problem is the error.

    Example:
        >>> text = "name: d\nsamples: [{id: a, input: {}, expected_output: [x]}]"
        >>> load_dataset(text).samples[0].expected_output
        ['x']
    """
    with raising(DatasetSchemaException):
        value = _without_nan(decode_yaml(yaml_text))
    fields = value if isinstance(value, Mapping) else {}
    version = fields.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise DatasetSchemaException(
            f"'schema_version' must be {SCHEMA_VERSION!r}, got {version!r}"
        )
    if not _is_id(name := fields.get("name")):
        raise DatasetSchemaException("a dataset needs a non-empty string 'name'")
    if not (samples := _php_list(fields.get("samples"))):
        raise DatasetSchemaException("a dataset needs a non-empty list 'samples'")
    return Dataset(name, read_samples(samples))


def read_samples(
    samples: Iterable[DatasetSample | Mapping[str, Any]],
) -> tuple[DatasetSample, ...]:
    """Check samples: each with an id of its own, an input and an expected output."""
    read: dict[str, DatasetSample] = {}
    for index, row in enumerate(samples):
        place = f"sample at index {index}"
        sample = row if isinstance(row, DatasetSample) else _read_sample(row, place)
        if sample.id in read:
            raise DatasetSchemaException(
                f"{place} has the id of another", query=sample.id
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
    refusal = partial(EvalRunException, path=source)
    value = _decode_outputs(text, source)
    if not isinstance(value, Mapping) or "outputs" not in value:
        raise refusal("must be an object with a field 'outputs'")
    entries = value["outputs"]
    if isinstance(entries, Mapping):
        # Keys that YAML reads as integers are ids all the same.
        names = [str(key) if type(key) is int else key for key in entries]
        pairs = zip(names, entries.values(), strict=True)
        entries = [{"id": name, "actual_output": output} for name, output in pairs]
    if not isinstance(entries, list):
        raise refusal("'outputs' must be an object or a list")
    read: dict[str, str] = {}
    for index, entry in enumerate(entries):
        fields = entry if isinstance(entry, Mapping) else {}
        identity, output = fields.get("id"), fields.get("actual_output")
        if not _is_id(identity):
            raise refusal(f"entry at index {index} must have a non-empty string 'id'")
        if not isinstance(output, str):
            kind = type(output).__name__
            raise refusal(f"the output must be a string, got {kind}", query=identity)
        if identity in read:
            raise refusal("has two outputs", query=identity)
        read[identity] = output
    return read


@contextmanager
def raising(
    exception: type[EvalHarnessException], path: object = None
) -> Iterator[None]:
    """Raise any problem with the data under one of the original's names."""
    try:
        yield
    except DataError as error:
        raise exception(
            error.problem,
            path=error.path or path,
            line=error.line,
            query=error.query,
            hint=error.hint,
        ) from None


def read_text(path: PathLike) -> str:
    """The text of a file."""
    with open_binary(path) as stream:
        return decode_text(stream.read())


def _decode_outputs(text: str, source: str) -> Any:
    refusal, name = partial(EvalRunException, path=source), source.lower()
    if not text.strip(BLANK):
        raise refusal("must not be empty")
    if not name.endswith((".yaml", ".yml")):
        try:
            return _read_json(text, refusal)
        except EvalRunException:
            if name.endswith(".json"):
                raise
    with raising(EvalRunException, source):
        return decode_yaml(text)


def _read_sample(fields: object, place: str) -> DatasetSample:
    if not isinstance(fields, Mapping):
        raise DatasetSchemaException(f"{place} must be a mapping")
    if not _is_id(identity := fields.get("id")):
        raise DatasetSchemaException(f"{place} needs a non-empty string 'id'")
    refusal = partial(DatasetSchemaException, query=identity)
    if "expected_output" not in fields:
        raise refusal("'expected_output' is missing")
    read: dict[str, Any] = {}
    for name in ("input", "metadata"):
        read[name] = value = fields.get(name, {} if name == "metadata" else None)
        # Keys 0..n-1 make a list of a mapping, and an empty list is an empty mapping.
        if (elements := _php_list(value)) == []:
            read[name] = {}
        elif elements is not None or not isinstance(value, Mapping):
            raise refusal(f"{name!r} must be a mapping")
    return DatasetSample(identity, expected_output=fields["expected_output"], **read)


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value != ""


def _is_numeric(value: object) -> bool:
    if isinstance(value, str):
        return _NUMERIC.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _php_list(value: object) -> list[Any] | None:
    """The elements of what PHP takes for a list; None of anything else."""
    if isinstance(value, list | tuple):
        return list(value)
    # array_is_list(): keys 0..n-1 in order make a list, and no keys at all do so too.
    if isinstance(value, Mapping) and all(
        str(key) == str(place) for place, key in enumerate(value)
    ):
        return list(value.values())
    return None


def _read_json(
    text: str, refusal: Callable[[str], EvalHarnessException], what: str = ""
) -> Any:
    """The value of a JSON text as PHP reads it: of equal keys the last one holds."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text or not text.isascii():
            # Half of a surrogate pair is no text.
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise refusal(f"{what}not valid JSON: {error}") from None
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _without_nan(value: Any) -> Any:
    # symfony/yaml reads .nan as +INF.
    if isinstance(value, float):
        return inf if isnan(value) else value
    if isinstance(value, dict):
        return {key: _without_nan(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_nan(part) for part in value]
    return value
