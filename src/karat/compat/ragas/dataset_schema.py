"""Samples and data sets, as `ragas.dataset_schema` has them."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isnan
from pathlib import Path
from typing import Any, overload

import numpy as np

from karat.compat.ragas.judging import MetricResult
from karat.extend import (
    DataError,
    FormatError,
    MetricScores,
    MissingExtraError,
    UnknownNameError,
    decode_text,
    write_file,
)

__all__ = ["EvaluationDataset", "EvaluationResult", "SingleTurnSample"]

# What version 0.1 called the fields.
_OLD_NAMES = {
    "question": "user_input",
    "contexts": "retrieved_contexts",
    "answer": "response",
    "ground_truth": "reference",
}
_LISTS = (
    *("retrieved_contexts", "reference_contexts", "multi_responses"),
    *("retrieved_context_ids", "reference_context_ids"),
)


@dataclass(frozen=True, kw_only=True)
class SingleTurnSample:
    """One question with all that is known of it; each metric says what it needs.

    Ids may be text or integers, and `1` is the same id as `"1"`. A number such as 1.0
    is the integer it equals.

    Example:
        >>> SingleTurnSample(retrieved_context_ids=["doc_1", 2.0]).to_dict()
        {'retrieved_context_ids': ['doc_1', 2]}
    """

    user_input: str | None = None
    retrieved_contexts: Sequence[str] | None = None
    reference_contexts: Sequence[str] | None = None
    retrieved_context_ids: Sequence[str | int] | None = None
    reference_context_ids: Sequence[str | int] | None = None
    response: str | None = None
    multi_responses: Sequence[str] | None = None
    reference: str | None = None
    rubrics: Mapping[str, str] | None = None
    persona_name: str | None = None
    query_style: str | None = None
    query_length: str | None = None

    def __post_init__(self) -> None:
        for name in ("user_input", "response", "reference"):
            if (value := getattr(self, name)) is not None:
                _read_text(name, value)
        for name in _LISTS:
            if (values := getattr(self, name)) is None:
                continue
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise DataError(f"{name} must be a list, got {type(values).__name__}")
            read = _read_id if name.endswith("_ids") else _read_text
            object.__setattr__(self, name, [read(name, value) for value in values])

    def to_dict(self) -> dict[str, Any]:
        """The fields that are not None."""
        return {name: getattr(self, name) for name in self.get_features()}

    def get_features(self) -> list[str]:
        """The names of the fields that are not None."""
        return [f.name for f in fields(self) if getattr(self, f.name) is not None]


class EvaluationDataset:
    """Samples in order.

    Example:
        >>> EvaluationDataset.from_list([{"user_input": "Where?", "response": "Here"}])
        EvaluationDataset(features=['user_input', 'response'], len=1)
    """

    def __init__(self, samples: Iterable[SingleTurnSample]) -> None:
        self.samples = list(samples)
        for sample in self.samples:
            if not isinstance(sample, SingleTurnSample):
                raise DataError(
                    "samples must be SingleTurnSample, got " + type(sample).__name__,
                    hint="EvaluationDataset.from_list takes dictionaries",
                )

    @classmethod
    def from_list(cls, data: Iterable[Mapping[str, Any]]) -> "EvaluationDataset":
        """A data set from dictionaries; keys that no sample has are passed over.

        Names of version 0.1 will do, such as `question`, `contexts`, `ground_truth`.
        """
        names = {field.name for field in fields(SingleTurnSample)}
        samples = []
        for row in data:
            if not isinstance(row, Mapping):
                raise DataError(
                    f"rows must be dictionaries, got {row!r:.60}",
                    hint="EvaluationDataset.from_pandas takes a DataFrame",
                )
            old = {_OLD_NAMES[k]: v for k, v in row.items() if k in _OLD_NAMES}
            fitting = {k: v for k, v in (old | {**row}).items() if k in names}
            samples.append(SingleTurnSample(**fitting))
        return cls(samples)

    from_dict = from_list

    @classmethod
    def from_pandas(cls, dataframe: Any) -> "EvaluationDataset":
        """A data set from a DataFrame; an empty cell is no value."""
        rows = dataframe.to_dict(orient="records")
        return cls.from_list(
            {k: v for k, v in row.items() if not (isinstance(v, float) and isnan(v))}
            for row in rows
        )

    @classmethod
    def from_hf_dataset(cls, dataset: Any) -> "EvaluationDataset":
        """A data set from one of the library `datasets`."""
        return cls.from_list(dataset)

    @classmethod
    def from_jsonl(cls, path: str | os.PathLike[str]) -> "EvaluationDataset":
        """A data set from a file with a JSON object on each line."""
        rows = []
        for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
            try:
                rows += [json.loads(decode_text(line))] if line.strip() else []
            except ValueError as error:
                why = f"is not JSON: {error}"
                raise FormatError(why, path=path, line=number) from None
        return cls.from_list(rows)

    def to_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Write the samples as JSON, one on each line."""
        rows = (json.dumps(row, ensure_ascii=False) for row in self.to_list())
        write_file(path, "".join(f"{row}\n" for row in rows))

    def to_list(self) -> list[dict[str, Any]]:
        """The samples as dictionaries, which `karat.evaluate` reads too."""
        return [sample.to_dict() for sample in self.samples]

    def to_pandas(self) -> Any:
        """The samples as a pandas DataFrame, one row each."""
        return frame_of(self.to_list())

    def features(self) -> list[str]:
        """The names of the fields that the first sample has."""
        return self.samples[0].get_features() if self.samples else []

    @overload
    def __getitem__(self, place: int) -> SingleTurnSample: ...

    @overload
    def __getitem__(self, place: slice) -> "EvaluationDataset": ...

    def __getitem__(self, place: int | slice) -> "SingleTurnSample | EvaluationDataset":
        if isinstance(place, slice):
            return EvaluationDataset(self.samples[place])
        return self.samples[place]

    def __iter__(self) -> Iterator[SingleTurnSample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        return f"EvaluationDataset(features={self.features()}, len={len(self)})"


@dataclass(frozen=True)
class EvaluationResult:
    """What every sample scored; printed, the mean of each metric.

    Attributes:
        dataset: the samples.
        results: for each metric, the result of every sample, in order.
    """

    dataset: EvaluationDataset
    results: Mapping[str, Sequence[MetricResult]]

    def __getitem__(self, metric: str) -> list[float]:
        if metric not in self.results:
            raise UnknownNameError("metric", metric, self.results)
        return [result.value for result in self.results[metric]]

    @property
    def scores(self) -> list[dict[str, float]]:
        """The scores of each sample; NaN where there is none."""
        rows = zip(*map(self.__getitem__, self.results), strict=True)
        return [dict(zip(self.results, row, strict=True)) for row in rows]

    @property
    def columns(self) -> dict[str, MetricScores]:
        """Each metric as karat has it: mean, how many are in it, what failed."""
        columns = {}
        for name, rows in self.results.items():
            scores = np.array([row.value for row in rows], np.float64)
            failures = {n: str(row.error) for n, row in enumerate(rows) if row.error}
            undefined = int(np.isnan(scores).sum()) - len(failures)
            columns[name] = MetricScores(
                name, scores, undefined=undefined, failures=failures
            )
        return columns

    def to_pandas(self) -> Any:
        """Samples and scores as a pandas DataFrame, one row each."""
        pairs = zip(self.dataset.to_list(), self.scores, strict=True)
        return frame_of([{**sample, **scores} for sample, scores in pairs])

    def __repr__(self) -> str:
        # As in the original, NaN is left out of the mean; `columns` says how often.
        means = (f"{name!r}: {c.mean:.4f}" for name, c in self.columns.items())
        return f"{{{', '.join(means)}}}"


def frame_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as a pandas DataFrame."""
    try:
        import pandas as pd  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("to_pandas()", "frames") from None
    return pd.DataFrame(list(rows))


def _read_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise DataError(f"{name} must be text, got {value!r}")
    return value


def _read_id(name: str, value: Any) -> str | int:
    if isinstance(value, str):
        return value
    # pydantic reads 1.0 and True as the integer 1 where text or an integer is asked.
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    raise DataError(f"{name} must hold text or integers, got {value!r}")
