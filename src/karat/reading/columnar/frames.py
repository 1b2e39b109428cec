"""DataFrames of any library: pandas, polars, DuckDB, whatever speaks Arrow, and Spark.

No such library is imported to find out: an object is asked for Arrow's interface, and
pandas can only be met if somebody has imported it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from karat.data.queries import Dataset
from karat.errors import FormatError, MissingExtraError
from karat.reading.columnar.arrow_arrays import load_pyarrow
from karat.reading.columnar.arrow_source import TableSource
from karat.reading.columnar.spark import is_distributed, load_distributed
from karat.reading.columnar.tables import load_samples, load_table, read_records
from karat.reading.meaning.aliases import infer, is_row
from karat.reading.meaning.shapes import interpret
from karat.reading.objects import is_of
from karat.reading.streams import Records, Role, Source

_FORMAT = "frame"


def load_frame(
    frame: Any,
    *,
    role: Role | None = None,
    mapping: Mapping[str, str] | None = None,
    name: str = "frame",
    optional: frozenset[str] = frozenset(),
) -> Dataset:
    """What a DataFrame holds: a run, gold, or samples.

    Args:
        frame: any table; one row per retrieved or judged document, or one per query.
        role: what it is taken for, where its columns could mean either.
        mapping: our field name -> the column, where the inference should not decide.
        name: how reports call the run and the gold.
        optional: our names in the mapping that may be about another input only.
    """
    source = Source(name, role, dict(mapping or {}), optional=optional)
    if is_distributed(frame):
        return load_distributed(frame, source)
    if not is_of("pandas", "DataFrame", frame):
        return load_table(TableSource(table_of(frame)), source, _FORMAT)
    frame = _with_index(frame)
    names = [*map(str, frame.columns)]
    if twice := next((n for i, n in enumerate(names) if n in names[:i]), None):
        raise source.error(f"two columns are called {twice!r}")
    fields = infer(names, role, source.mapping_for(names))
    if not is_row(fields) or fields["document"] not in names:
        # Arrow would make one struct of all mappings in a column; records keep them.
        return load_samples(_records(frame), source, _FORMAT)
    try:
        table = table_of(frame)
    except (FormatError, MissingExtraError):
        # Ids of several types in one column, or no Arrow: row by row works as well.
        return interpret(table_records(frame), source, _FORMAT)
    return load_table(TableSource(table), source, _FORMAT)


def table_records(frame: Any) -> Records:
    """One record for each row of a frame."""
    if is_of("pandas", "DataFrame", frame):
        records = _records(_with_index(frame))
    else:
        records = read_records(TableSource(table_of(frame)))
    return ((None, record) for record in records)


def table_of(frame: Any) -> Any:
    """The frame as an Arrow table, without a copy where the library allows it."""
    pyarrow = load_pyarrow("reading a DataFrame")
    if is_of("polars", "LazyFrame", frame):
        frame = frame.collect()
    try:
        if is_of("pandas", "DataFrame", frame):
            return pyarrow.Table.from_pandas(_with_index(frame), preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__"):
            return pyarrow.RecordBatchReader.from_stream(frame).read_all()
        return pyarrow.Table.from_batches([pyarrow.record_batch(frame)])
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise FormatError(f"the frame does not convert to Arrow: {error}") from error


def _with_index(frame: Any) -> Any:
    """The frame with a named index as columns."""
    named = any(name is not None for name in frame.index.names)
    return frame.reset_index() if named else frame


def _records(frame: Any) -> Iterable[dict[str, Any]]:
    """One record per row; what pandas calls missing is None."""
    names = [str(column) for column in frame.columns]
    columns = [_cells(frame[column]) for column in frame.columns]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def _cells(column: Any) -> list[Any]:
    cells = [None if _is_missing(cell) else cell for cell in column]
    numbers = {type(cell) for cell in cells} == {float, type(None)}
    if numbers and all(cell is None or cell.is_integer() for cell in cells):
        # A missing cell makes pandas turn whole numbers into others.
        return [None if cell is None else int(cell) for cell in cells]
    return cells


def _is_missing(value: object) -> bool:
    """Whether pandas calls a value missing: NaN, NaT or NA."""
    if isinstance(value, float):
        return value != value  # noqa: PLR0124  NaN alone differs from itself
    return type(value).__name__ in {"NAType", "NaTType"}
