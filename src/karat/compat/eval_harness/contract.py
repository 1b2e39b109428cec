"""What a retriever must print, what a sample must hold, and what a metric gives back.

Much of it is how PHP sees the world, because that is what the numbers depend on: an
array with the keys 0, 1, 2... is a list there, whether it came from `[]` or `{}`.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from karat.extend import DataError

__all__ = [
    "BLANK",
    "DatasetSample",
    "DatasetSchemaException",
    "EvalHarnessException",
    "EvalRunException",
    "Metric",
    "MetricException",
    "MetricScore",
    "RankedRetrieval",
    "php_list",
    "read_json",
]

BLANK = " \t\n\r\0\x0b"
"""What PHP's trim() takes off."""

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
class MetricScore:
    """What a metric says of one sample: a number from 0 to 1, and how it came about."""

    score: float
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        score: object = self.score
        if not isinstance(score, int | float) or not 0.0 <= score <= 1.0:
            raise MetricException(f"a score must be from 0 to 1, got {score!r}")


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


class Metric(ABC):
    """What a metric of your own must offer; inheriting from this is not required."""

    @abstractmethod
    def name(self) -> str:
        """What reports call it."""

    @abstractmethod
    def score(self, sample: DatasetSample, actual_output: str) -> MetricScore:
        """Score what the system under test gave for a sample."""


@dataclass(frozen=True)
class RankedRetrieval:
    """A ranking as the system under test printed it, each id once at its first rank.

    Attributes:
        ids: best first.
        texts: theirs, empty where there is none.
    """

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
        if not isinstance(actual_output, str):
            raise MetricException(
                f"the output must be JSON text, got {type(actual_output).__name__}",
                query=sample_id,
            )
        try:
            value = read_json(actual_output.strip(BLANK))
        except ValueError as error:
            raise MetricException(
                f"the output is not valid JSON: {error}", query=sample_id
            ) from None
        entries = php_list(value)
        if entries is None and isinstance(value, Mapping):
            entries = php_list(value.get("retrieved"))
        if entries is None:
            raise MetricException(
                "the output must be a JSON list, or an object with a list 'retrieved'",
                query=sample_id,
            )
        # RankedRetrieval::fromActualOutput drops later copies of an id with their text.
        texts: dict[str, str] = {}
        for entry in entries:
            texts.setdefault(*_read_entry(entry, sample_id))
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
        if isinstance(expected_output, str):
            try:
                expected_output = read_json(expected_output)
            except ValueError as error:
                raise MetricException(
                    f"expected_output is not valid JSON: {error}", query=sample_id
                ) from None
        ids = php_list(expected_output)
        if not ids and not (ids is None and isinstance(expected_output, Mapping)):
            raise MetricException(
                "expected_output must hold at least one relevant id", query=sample_id
            )
        if ids is None:
            pairs = expected_output.items()
            return dict(_read_gain(key, gain, sample_id) for key, gain in pairs)
        if not all(isinstance(name, str) and name for name in ids):
            raise MetricException(
                "the ids in expected_output must be non-empty strings", query=sample_id
            )
        return dict.fromkeys(ids, 1.0)


def php_list(value: object) -> list[Any] | None:
    """The elements of what PHP takes for a list; None of anything else."""
    if isinstance(value, list | tuple):
        return list(value)
    # array_is_list(): keys 0..n-1 in order make a list, and no keys at all do so too.
    if isinstance(value, Mapping) and [*map(str, value)] == [
        str(place) for place in range(len(value))
    ]:
        return list(value.values())
    return None


def read_json(text: str) -> Any:
    """The value of a JSON text as PHP reads it; ValueError says what is wrong.

    Of equal keys the last one holds. NaN and halves of surrogate pairs are refused.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text or not text.isascii():
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair") from None
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _read_entry(entry: object, sample_id: str) -> tuple[str, str]:
    fields = entry if isinstance(entry, Mapping) else {"id": entry}
    identity, text = fields.get("id"), fields.get("text")
    if not isinstance(identity, str) or not identity:
        raise MetricException(
            "a retrieved entry must be a non-empty id or an object with one, "
            f"got {str(entry)[:60]!r}",
            query=sample_id,
        )
    return identity, text if isinstance(text, str) else ""


def _read_gain(key: object, gain: object, sample_id: str) -> tuple[str, float]:
    if isinstance(gain, str):
        numeric = _NUMERIC.fullmatch(gain) is not None
    else:
        numeric = isinstance(gain, int | float) and not isinstance(gain, bool)
    if not numeric or type(key) not in {str, int} or key == "":
        raise MetricException(
            "expected_output must map non-empty ids to numbers, "
            f"got {str(gain)[:60]!r} for {str(key)[:60]!r}",
            query=sample_id,
        )
    # By way of text an integer of any length becomes a float, as in PHP.
    return str(key), float(str(gain))
