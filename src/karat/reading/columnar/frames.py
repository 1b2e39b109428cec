"""DataFrames of any library: pandas, polars, DuckDB, whatever speaks Arrow, and Spark.

No such library is imported to find out: an object is asked for Arrow's interface, and
pandas can only be met if somebody has imported it.
"""

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from karat.data.arrays import Bools
from karat.data.gold import ColumnLabels
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.errors import DataError, FormatError, MissingExtraError
from karat.reading.columnar.arrow_arrays import load_pyarrow
from karat.reading.columnar.arrow_source import (
    ArrowSource,
    RunColumns,
    Stream,
    TableSource,
    read_rows,
)
from karat.reading.columnar.blocks import Block, join_blocks, retrieved_twice
from karat.reading.columnar.byte_column import ByteColumn
from karat.reading.columnar.join import (
    LabelIndex,
    Matches,
    RepeatedDocument,
    join_matches,
)
from karat.reading.columnar.run import ColumnarRun, DistantRun
from karat.reading.columnar.scanning import Partial, scan_part
from karat.reading.columnar.tables import load_samples, load_table, read_records
from karat.reading.meaning.aliases import infer, is_row
from karat.reading.meaning.shapes import interpret
from karat.reading.objects import is_of
from karat.reading.streams import Records, Role, Source

MOST_LABELS = 5_000_000
"""Gold of more labels is not sent to the workers of a cluster."""

_FORMAT = "frame"
_LOOK = 1000


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
        return _load_distributed(frame, source)
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


def is_distributed(frame: object) -> bool:
    """Whether it is a DataFrame of Spark, by what it can do."""
    return hasattr(frame, "mapInArrow")


def _load_distributed(frame: Any, source: Source) -> Dataset:
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
    if not isinstance(loaded.run, ColumnarRun):
        raise source.error("a table of Spark must have a row for each document")
    found = loaded.run.source
    assert isinstance(found, ArrowSource)  # noqa: S101
    # Of a few rows nobody knows what is true of all of them.
    counted = (n for n in loaded.notices if n.kind == "coerced")
    notices = tuple(replace(notice, count=frame.count()) for notice in counted)
    run = SparkRun(frame, found.columns, source.name)
    return replace(loaded, run=run, notices=notices)


def split_frame(
    frame: Any, column: str, role: Role, mapping: Mapping[str, str]
) -> dict[str, Dataset]:
    """What a DataFrame of Spark holds for each value of a column, in their order."""
    if column not in frame.columns:
        found = ", ".join(frame.columns)
        raise FormatError(f"no column {column!r} to split by; columns found: {found}")
    values = sorted(row[0] for row in frame.select(column).distinct().collect())
    return {
        str(value): load_frame(
            frame.where(frame[column] == value).drop(column),
            role=role,
            mapping=mapping,
            name=str(value),
        )
        for value in values
    }


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


class SparkRun(DistantRun):
    """A run in a table of Spark, with one row for each retrieved document.

    Each partition is scanned where it lies; Spark retries one that fails. Rows of
    queries that lie in several partitions are asked for in a second job.
    """

    def __init__(self, frame: Any, columns: RunColumns, name: str = "run") -> None:
        if columns.score is None and columns.rank is None:
            raise FormatError(
                "a table of Spark has no order: it needs a column such as score or rank"
            )
        super().__init__(name, ranked=columns.score is None)
        self._frame = frame
        self._columns = columns
        value = columns.score or columns.rank or ""
        self._names = [columns.query, columns.document, value]

    def queries(self) -> list[str]:
        """The ids of the queries, in no order."""
        return self._some(self._columns.query, None)

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        return self._some(self._columns.document, 3)

    def _some(self, column: str, most: int | None) -> list[str]:
        some = self._frame.selectExpr(f"CAST({_quoted(column)} AS STRING)")
        some = some.distinct() if most is None else some.limit(most)
        return [row[0] for row in some.collect() if row[0] is not None]

    def _scans(self, index: LabelIndex, policies: Policies) -> list[Partial]:
        found = self._job(index, policies, None)
        self.provenance = {
            "engine": "spark",
            "partitions": len(found),
            "rows": sum(part.rows for part in found),
        }
        return found

    def _collected(self, index: LabelIndex, wanted: Bools) -> list[Block]:
        found = self._job(index, Policies(), wanted)
        return [block for part in found for block in part.rest]

    def _job(
        self, index: LabelIndex, policies: Policies, wanted: Bools | None
    ) -> list[Partial]:
        columns = map(_quoted, self._names)
        work = partial(
            _scan_partition,
            labels=index.labels,
            digest=index.digest,
            judged=index.judged,
            policies=policies,
            columns=self._columns,
            wanted=wanted,
        )
        schema = "part int, problem string, partial binary"
        rows = self._frame.selectExpr(*columns).mapInArrow(work, schema).collect()
        for part, problem, _ in sorted(rows):
            if problem:
                raise FormatError(problem, path=f"partition {part}")
        return [_unpacked(bytes(data)) for _, _, data in sorted(rows)]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _scan_partition(
    batches: Iterable[Any],
    labels: ColumnLabels,
    digest: int,
    judged: bool,  # noqa: FBT001
    policies: Policies,
    columns: RunColumns,
    wanted: Bools | None,
) -> Iterator[Any]:
    """What a worker of Spark does: a partition in, one partial out."""
    from pyspark import TaskContext  # noqa: PLC0415  an extra, and there

    some = (batch for batch in batches if batch.num_rows)
    first, task = next(some, None), TaskContext.get()
    if first is None:
        return
    # A column of it would cost Spark a tenth of all its work.
    part, problem, data = task.partitionId() if task else 0, None, None
    index = _index(digest, labels, judged)
    stream = Stream(first, some).pieces(first.schema.names)[0]
    fields = columns.named("query", "document", "value")
    try:
        piece = partial(read_rows, stream, fields, columns.score is None)
        data = _packed(scan_part(piece, index, policies, wanted))
    except RepeatedDocument as found:
        problem = str(retrieved_twice([*labels][found.query], found.document))
    except DataError as error:
        problem = str(error)
    pyarrow = load_pyarrow()
    kinds = (pyarrow.int32(), pyarrow.string(), pyarrow.binary())
    cells = zip((part, problem, data), kinds, strict=True)
    arrays = [pyarrow.array([value], kind) for value, kind in cells]
    yield pyarrow.RecordBatch.from_arrays(arrays, ["part", "problem", "partial"])


_INDEXES: dict[tuple[int, bool], LabelIndex] = {}


def _index(digest: int, labels: ColumnLabels, judged: bool) -> LabelIndex:  # noqa: FBT001
    """The labels made ready, once for all partitions that a process scans."""
    if (digest, judged) not in _INDEXES:
        _INDEXES.clear()
        _INDEXES[digest, judged] = LabelIndex(labels, judged=judged)
    return _INDEXES[digest, judged]


def _packed(found: Partial) -> bytes:
    """A partial as bytes: plain arrays, which nobody has to trust to read."""
    matches, rest = join_matches(found.matches), join_blocks(found.rest)
    documents = rest.documents.texts().copy()
    extra = ByteColumn.of(found.extra)
    stream = io.BytesIO()
    np.savez(
        stream,
        **vars(matches),
        group=rest.query,
        start=rest.start,
        texts=documents.data,
        lengths=documents.length,
        values=np.zeros(0) if rest.values is None else rest.values,
        extra=extra.data,
        extra_lengths=extra.length,
        counts=np.array([found.ignored, found.rows, found.scattered], np.int64),
        ranks=np.array([rest.ranked, found.from_zero]),
    )
    return stream.getvalue()


def _unpacked(data: bytes) -> Partial:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays: dict[str, Any] = dict(file)
    matches = Matches(*(arrays[field.name] for field in fields(Matches)))
    documents = _column(arrays["texts"], arrays["lengths"])
    ranked, from_zero = arrays["ranks"].tolist()
    rest = Block(arrays["group"], arrays["start"], documents, arrays["values"], ranked)
    extra = _column(arrays["extra"], arrays["extra_lengths"]).names()
    ignored, rows, scattered = arrays["counts"].tolist()
    return Partial(
        [matches],
        [rest] if len(rest.query) else [],
        dict.fromkeys(extra),
        ignored,
        rows,
        bool(scattered),
        from_zero=from_zero,
    )


def _column(data: Any, length: Any) -> ByteColumn:
    return ByteColumn(data, np.cumsum(length) - length, length)
