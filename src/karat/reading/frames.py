"""DataFrames of any library: pandas, polars, DuckDB, whatever speaks Arrow, and Spark.

No such library is imported to find out: an object is asked for Arrow's interface, and
pandas can only be met if somebody has imported it. Rows in Spark stay there: they are
shuffled by query, and ranked where they lie.
"""

import io
import uuid
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from karat.data.gold import ColumnLabels
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Document
from karat.errors import DataError, FormatError, MissingExtraError, UsageError
from karat.reading.arrow import ArrowSource, RunColumns, TableSource, load_pyarrow
from karat.reading.columns.ids import ByteColumn
from karat.reading.columns.run import (
    ColumnarRun,
    LabelIndex,
    LabelledRows,
    RepeatedDocumentError,
    find_labels,
)
from karat.reading.meaning.aliases import infer, is_row
from karat.reading.meaning.shapes import interpret, is_of
from karat.reading.parquet import load_samples, load_table, read_records
from karat.reading.source import Records, Role, Source

MOST_LABELS = 5_000_000
"""Gold of more labels is not sent to the workers of a cluster."""

_LOOK = 1000
_FORMAT = "frame"


def load_frame(
    frame: Any,
    *,
    role: Role | None = None,
    mapping: Mapping[str, str] | None = None,
    name: str = "frame",
    optional: frozenset[str] = frozenset(),
) -> Dataset:
    """What a DataFrame holds: a run, gold, or samples."""
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


def is_distributed(frame: object) -> bool:
    """Whether it is a DataFrame of Spark, by what it can do."""
    return hasattr(frame, "mapInArrow")


def quoted(name: str) -> str:
    """The name of a column in an expression of SQL."""
    return "`" + name.replace("`", "``") + "`"


def load_distributed(frame: Any, source: Source) -> Dataset:
    """A run that stays in Spark, or gold, which comes here if it is not too large."""
    if source.role == "gold":
        count = frame.count()
        if count > MOST_LABELS:
            raise source.error(
                f"gold of {count:,} labels is more than the {MOST_LABELS:,} that are "
                "sent to every worker; karat.scale.score(run, gold) leaves it in Spark"
            )
        return load_table(TableSource(frame.toArrow()), source, _FORMAT)
    loaded = load_table(TableSource(frame.limit(_LOOK).toArrow()), source, _FORMAT)
    head = loaded.run.source if isinstance(loaded.run, ColumnarRun) else None
    if not isinstance(head, ArrowSource):
        raise source.error("a table of Spark must have a row for each document")
    # Of a few rows nobody knows what is true of all of them.
    coerced = (n for n in loaded.notices if n.kind == "coerced")
    notices = tuple(replace(notice, count=frame.count()) for notice in coerced)
    return replace(loaded, run=SparkRun(frame, head, source.name), notices=notices)


def split_distributed(
    frame: Any, column: str, role: Role, mapping: Mapping[str, str]
) -> dict[str, Dataset]:
    """One run for each value of a column."""
    if column not in frame.columns:
        names = ", ".join(frame.columns)
        raise FormatError(f"no column {column!r} to split by; columns found: {names}")
    values = sorted(row[0] for row in frame.select(column).distinct().collect())
    return {
        str(value): load_distributed(
            frame.where(frame[column] == value).drop(column),
            Source(str(value), role, dict(mapping)),
        )
        for value in values
    }


class SparkRun(ColumnarRun):
    """A run in a table of Spark, with one row for each retrieved document."""

    def __init__(self, frame: Any, head: ArrowSource, name: str = "run") -> None:
        columns = head.columns
        value = columns.score or columns.rank
        if value is None:
            raise FormatError(
                "a table of Spark has no order: it needs a column such as score or rank"
            )
        super().__init__(head, name)
        self._frame = frame
        self._columns = replace(columns, text=None)
        self._names = [*map(quoted, (columns.query, columns.document, value))]

    def queries(self) -> list[str]:
        """The ids of the queries, in no order."""
        ids = self._frame.selectExpr(f"CAST({self._names[0]} AS STRING)").distinct()
        return [row[0] for row in ids.collect() if row[0] is not None]

    def holds_any(self, documents: set[str]) -> bool:
        """No: documents are looked up for their own queries only."""
        del documents
        return False

    def kinds(self) -> frozenset[str]:
        """Ids: only these are looked up where they are."""
        return frozenset({"ids"})

    def ids_of(
        self, queries: Container[str], *, first: int | None = None
    ) -> dict[str, list[str]]:
        """None: ids that gold does not have stay where they are."""
        del queries, first
        return {}

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Refused: the rows stay where they are."""
        del policies
        raise UsageError(
            "this needs all rows of the run, and only what its gold asks for is here"
        )

    def _search(self, index: LabelIndex, policies: Policies) -> Iterable[LabelledRows]:
        work = partial(
            _search_partition,
            labels=index.labels,
            judged=index.judged,
            columns=self._columns,
            policies=policies,
            job=uuid.uuid4().hex,
        )
        rows = self._frame.selectExpr(*self._names)
        whole = rows.repartition(rows[0])
        schema = "rows long, problem string, hits binary"
        parts = whole.mapInArrow(work, schema).collect()
        for _, problem, _ in parts:
            if problem:
                raise FormatError(problem)
        self.provenance = {
            "engine": "spark",
            "partitions": len(parts),
            "rows": sum(part[0] for part in parts),
        }
        return [_unpacked(bytes(data)) for _, _, data in parts]


def _search_partition(
    batches: Iterable[Any],
    labels: ColumnLabels,
    judged: bool,  # noqa: FBT001
    columns: RunColumns,
    policies: Policies,
    job: str,
) -> Iterator[Any]:
    """What a worker does: the rankings of some queries in, what they hold out."""
    from pyspark import TaskContext  # noqa: PLC0415  an extra, and there

    pyarrow = load_pyarrow()
    some = [batch for batch in batches if batch.num_rows]
    if not some:
        return
    if job not in _INDEXES:
        _INDEXES.clear()
        _INDEXES[job] = LabelIndex(labels, judged=judged)
    rows = ArrowSource(TableSource(pyarrow.Table.from_batches(some)), columns)
    problem = data = None
    try:
        data = _packed(find_labels(rows.whole, _INDEXES[job], policies))
    except RepeatedDocumentError as repeated:
        query, document = repeated.args
        problem = str(rows.repeated(labels.ids[query], document))
    except DataError as error:
        task = TaskContext.get()
        problem = f"partition {task.partitionId() if task else 0}: {error}"
    kinds = {"rows": "int64", "problem": "string", "hits": "binary"}
    cells = (sum(batch.num_rows for batch in some), problem, data)
    yield pyarrow.RecordBatch.from_arrays(
        [
            pyarrow.array([cell], kind)
            for cell, kind in zip(cells, kinds.values(), strict=True)
        ],
        [*kinds],
    )


# The labels made ready, once for all partitions that a process searches.
_INDEXES: dict[str, LabelIndex] = {}


def _packed(rows: LabelledRows) -> bytes:
    """Plain arrays, which nobody has to trust to read."""
    extra = ByteColumn.of(rows.extra)
    stream = io.BytesIO()
    numbers = rows._replace(extra=[])._asdict()
    np.savez(stream, **numbers, texts=extra.data, lengths=extra.length)
    return stream.getvalue()


def _unpacked(data: bytes) -> LabelledRows:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays: dict[str, Any] = dict(file)
    length = arrays.pop("lengths")
    extra = ByteColumn(arrays.pop("texts"), np.cumsum(length) - length, length)
    rows = LabelledRows(**arrays)
    return rows._replace(extra=extra.names(), ignored=int(rows.ignored))
