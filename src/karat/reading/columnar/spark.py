"""Runs in tables of Spark: rows are shuffled by query, and ranked where they lie."""

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
from karat.errors import DataError, FormatError, UsageError
from karat.reading.columnar.arrow_arrays import load_pyarrow
from karat.reading.columnar.arrow_source import ArrowSource, RunColumns, TableSource
from karat.reading.columnar.tables import load_table
from karat.reading.columns.ids import ByteColumn
from karat.reading.columns.run import (
    ColumnarRun,
    LabelIndex,
    LabelledRows,
    RepeatedDocumentError,
    find_labels,
)
from karat.reading.streams import Role, Source

MOST_LABELS = 5_000_000
"""Gold of more labels is not sent to the workers of a cluster."""

_LOOK = 1000
_FORMAT = "frame"


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
