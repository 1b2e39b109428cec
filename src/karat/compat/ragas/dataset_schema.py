"""Samples and data sets, as `ragas.dataset_schema` has them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, overload

from karat.extend import DataError, MissingExtraError

__all__ = ["EvaluationDataset", "SingleTurnSample"]


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
        lists: tuple[tuple[str, Callable[[str, Any], object]], ...] = (
            ("retrieved_contexts", _read_text),
            ("reference_contexts", _read_text),
            ("multi_responses", _read_text),
            ("retrieved_context_ids", _read_id),
            ("reference_context_ids", _read_id),
        )
        for name, read in lists:
            if (values := getattr(self, name)) is None:
                continue
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise DataError(f"{name} must be a list, got {type(values).__name__}")
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
        """A data set from dictionaries; keys that no sample has are passed over."""
        known = {field.name for field in fields(SingleTurnSample)}
        samples = []
        for row in data:
            if not isinstance(row, Mapping):
                raise DataError(
                    f"rows must be dictionaries, got {row!r:.60}",
                    hint="of a DataFrame, give frame.to_dict('records')",
                )
            samples.append(
                SingleTurnSample(**{k: v for k, v in row.items() if k in known})
            )
        return cls(samples)

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
