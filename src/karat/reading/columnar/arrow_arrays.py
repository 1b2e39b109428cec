"""Arrow arrays seen as NumPy arrays, without copies and without waking pandas.

`Array.to_numpy`, `pa.array(ndarray)` and `Array.take` import pandas where it is
installed, which takes longer than scoring a million rows: buffers are read directly.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Ints
from karat.data.runs import A_RANK, LAST_RANK
from karat.errors import FormatError, MissingExtraError
from karat.reading.columnar.byte_column import (
    ByteColumn,
    Column,
    NumberColumn,
    distinct,
    starts,
)

_NUMBERS: dict[str, type[np.number[Any]]] = {
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "halffloat": np.float16,
    "float": np.float32,
    "double": np.float64,
}
_OFFSETS: dict[str, type[np.signedinteger[Any]]] = {
    "string": np.int32,
    "binary": np.int32,
    "large_string": np.int64,
    "large_binary": np.int64,
}
_INLINE = 12
_VIEW = 16


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


def column_of(array: Any, place: Place, *, blank: bool = False) -> Column:
    """The ids in an array of texts or whole numbers, dictionary-encoded or not.

    Args:
        array: the Arrow array.
        place: where it comes from.
        blank: texts may be empty, as those of documents may.
    """
    array = _without_hidden_nulls(array)
    if not blank:
        place.refuse_nulls(array)
    elif array.null_count and _is_coded(array):
        array = array.dictionary_decode()
    kind = str(array.type)
    if kind in _NUMBERS and issubclass(_NUMBERS[kind], np.integer):
        return NumberColumn(_view(array, _NUMBERS[kind]))
    if _is_coded(array):
        column = column_of(array.dictionary, place, blank=True).view(_codes(array))
    elif kind in _OFFSETS:
        column = _texts(array, _OFFSETS[kind])
    elif kind in {"string_view", "binary_view"}:
        column = _viewed_texts(array)
    else:
        raise place.error(f"ids must be texts or whole numbers, these are {kind}")
    if isinstance(column, ByteColumn):
        if array.null_count:
            column.length[~_valid(array)] = 0
        if not blank and not column.length.all():
            raise place.error("the id is empty", int(column.length.argmin()))
    return column


def numbers_of(array: Any, place: Place) -> npt.NDArray[Any]:
    """The finite numbers in an array, in the type they have."""
    place.refuse_nulls(array)
    kind = str(array.type)
    if kind == "bool" or kind.startswith("decimal"):
        array, kind = array.cast("double"), "double"
    if kind not in _NUMBERS:
        raise place.error(f"must hold numbers, these are {kind}")
    values = _view(array, _NUMBERS[kind])
    if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
        at = int(np.argmin(finite))
        raise place.error(f"must be a finite number, got {values[at]}", at)
    return values


def ranks_of(array: Any, place: Place) -> npt.NDArray[Any]:
    """The ranks in an array, from 0 or from 1."""
    values = numbers_of(array, place)
    wrong = (values < 0) | (values > LAST_RANK) | (values != np.floor(values))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise place.error(f"{A_RANK}, got {values[at]}", at)
    return values.astype(np.int64)


def groups_of(array: Any, place: Place) -> tuple[Ints, Column, Ints]:
    """The groups of rows with one id that follow each other.

    Returns:
        the first row of each group; ids; and which of these each group has.
    """
    array = _without_hidden_nulls(array)
    if not _is_coded(array):
        column = column_of(array, place)
        start = column.starts()
        column = column.view(start)
        first, which = column.distinct()
        return start, column.view(first), which
    place.refuse_nulls(array)
    codes = _codes(array)
    start = starts(codes)
    codes = codes[start]
    first, which = distinct(codes)
    column = column_of(array.dictionary, place, blank=True).view(codes[first])
    if isinstance(column, ByteColumn) and not column.length.all():
        raise place.error("the id is empty", int(start[first[column.length.argmin()]]))
    return start, column, which


def _is_coded(array: Any) -> bool:
    return str(array.type).startswith("dictionary")


def _without_hidden_nulls(array: Any) -> Any:
    """The same array; nulls in a dictionary are not counted, so they are unpacked."""
    if _is_coded(array) and array.dictionary.null_count:
        return array.dictionary_decode()
    return array


def _view(array: Any, kind: type[np.generic]) -> npt.NDArray[Any]:
    data = array.buffers()[1]
    if data is None:
        return np.zeros(0, kind)
    return np.frombuffer(data, kind)[array.offset : array.offset + len(array)]


def _valid(array: Any) -> Bools:
    bits = np.frombuffer(array.buffers()[0], np.uint8)
    flags = np.unpackbits(bits, bitorder="little")[array.offset :][: len(array)]
    return flags.astype(np.bool_)


def _codes(array: Any) -> Ints:
    indices = array.indices
    return _view(indices, _NUMBERS[str(indices.type)]).astype(np.int64)


def _texts(array: Any, kind: type[np.generic]) -> ByteColumn:
    _, offsets, data = array.buffers()
    if not len(array):
        return ByteColumn.of([])
    cuts = np.frombuffer(offsets, kind)[array.offset : array.offset + len(array) + 1]
    empty = data is None or not data.size
    return ByteColumn.between(
        np.zeros(0, np.uint8) if empty else np.frombuffer(data, np.uint8), cuts
    )


def _viewed_texts(array: Any) -> ByteColumn:
    """Texts given by views: short ones lie in the view, others in a buffer."""
    _, views, *buffers = array.buffers()
    size, first = len(array), array.offset
    inline = np.frombuffer(views, np.uint8)[first * _VIEW : (first + size) * _VIEW]
    cells = inline.view(np.int32).reshape(size, 4)
    length = cells[:, 0].astype(np.int64)
    start = np.arange(size) * _VIEW + 4
    parts, end = [inline], len(inline)
    long = np.flatnonzero(length > _INLINE)
    for number in np.unique(cells[long, 2]).tolist():
        rows = long[cells[long, 2] == number]
        offset = cells[rows, 3].astype(np.int64)
        low, high = int(offset.min()), int((offset + length[rows]).max())
        start[rows] = offset - low + end
        parts.append(np.frombuffer(buffers[number], np.uint8)[low:high])
        end += high - low
    return ByteColumn(np.concatenate([*parts, np.zeros(8, np.uint8)]), start, length)
