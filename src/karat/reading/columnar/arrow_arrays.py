"""Arrow arrays as columns of bytes and numbers, with the place of what is wrong.

Buffers are read directly: `Array.to_numpy` would import pandas where it is installed,
which takes longer than scoring a million rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Ints
from karat.data.runs import A_RANK, LAST_RANK
from karat.errors import FormatError, MissingExtraError
from karat.reading.columns.ids import (
    ByteColumn,
    Column,
    NumberColumn,
    starts,
)

_NUMBERS = {
    **{
        f"{sign}int{bits}": f"{sign}int{bits}"
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
}
_TEXTS = (
    "string",
    "large_string",
    "binary",
    "large_binary",
    "string_view",
    "binary_view",
)


def load_pyarrow(purpose: str = "reading Parquet") -> Any:
    """The pyarrow package, or an error that says how to get it."""
    try:
        import pyarrow as pa  # noqa: PLC0415  an extra
    except ImportError:
        raise MissingExtraError(purpose, "parquet") from None
    return pa


@dataclass(frozen=True, slots=True)
class Place:
    """Where an array comes from, for messages.

    Attributes:
        path: the file, if any.
        column: the name of the column.
        row: number of the array's first row in it, from 0.
    """

    path: str | None
    column: str
    row: int = 0

    def error(self, problem: str, at: int | None = None) -> FormatError:
        """What is wrong with the column, and in which of the array's rows."""
        row = "" if at is None else f", row {self.row + at + 1}"
        return FormatError(f"column {self.column!r}{row}: {problem}", path=self.path)

    def refuse_nulls(self, array: Any) -> None:
        """Say where the first empty cell is, if there is one."""
        if array.null_count:
            raise self.error(
                "the cell is empty", array.is_null().to_pylist().index(True)
            )


def ids_of(array: Any, place: Place, *, blank: bool = False) -> Column:
    """The ids in an array of texts or whole numbers, dictionary-encoded or not.

    Args:
        array: the Arrow array.
        place: where it comes from.
        blank: texts may be empty, as those of documents may.
    """
    pyarrow = load_pyarrow()
    if pyarrow.types.is_dictionary(array.type):
        if array.null_count or array.dictionary.null_count:
            return ids_of(array.dictionary_decode(), place, blank=blank)
        codes = numbers_of(array.indices, place)
        return ids_of(array.dictionary, place, blank=True).view(codes)
    kind = str(array.type)
    if kind not in _TEXTS and not pyarrow.types.is_integer(array.type):
        raise place.error(f"ids must be texts or whole numbers, these are {kind}")
    if kind not in _TEXTS:
        return NumberColumn(numbers_of(array, place))
    if "view" in kind:
        array = array.cast(kind.replace("_view", ""))
    if blank and array.null_count:
        array = array.fill_null(b"" if "binary" in kind else "")
    place.refuse_nulls(array)
    if not len(array):
        return ByteColumn.of([])
    _, offsets, data = array.buffers()
    wide = np.int64 if kind.startswith("large") else np.int32
    cuts = np.frombuffer(offsets, wide)[array.offset : array.offset + len(array) + 1]
    empty = data is None or not data.size
    texts = np.zeros(0, np.uint8) if empty else np.frombuffer(data, np.uint8)
    column = ByteColumn.between(texts, cuts)
    if not blank and not column.length.all():
        raise place.error("the id is empty", int(column.length.argmin()))
    return column


def runs_of(array: Any, place: Place) -> tuple[ByteColumn, Ints]:
    """The id of each run of equal ids in an array, and its first row."""
    column = ids_of(array, place)
    encoded = load_pyarrow().types.is_dictionary(array.type) and not array.null_count
    start = starts(numbers_of(array.indices, place)) if encoded else column.starts()
    ids = column.view(start).texts()
    if not ids.length.all():
        raise place.error("the id is empty", int(start[ids.length.argmin()]))
    return ids, start


def numbers_of(array: Any, place: Place) -> npt.NDArray[Any]:
    """The finite numbers in an array, in the type they have."""
    place.refuse_nulls(array)
    kind = str(array.type)
    if kind == "bool" or kind.startswith("decimal"):
        array, kind = array.cast("double"), "double"
    if kind not in _NUMBERS:
        raise place.error(f"must hold numbers, these are {kind}")
    data = array.buffers()[1] or b""
    values = np.frombuffer(data, _NUMBERS[kind])[array.offset :][: len(array)]
    if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
        at = int(np.argmin(finite))
        raise place.error(f"must be a finite number, got {values[at]}", at)
    return values


def ranks_of(array: Any, place: Place) -> Ints:
    """The ranks in an array, from 0 or from 1."""
    values = numbers_of(array, place)
    wrong = (values < 0) | (values > LAST_RANK) | (values != np.floor(values))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise place.error(f"{A_RANK}, got {values[at]}", at)
    return values.astype(np.int64)
