"""Tables in columns: Parquet and Arrow files, DataFrames of any library, and Spark.

No library of frames is imported to find out: an object is asked for Arrow's interface,
and pandas can only be met if somebody has imported it. Rows in Spark stay there: they
are shuffled by query, and ranked where they lie.
"""

import io
import uuid
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from karat.data.gold import ColumnLabels, Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Document, Labels, Notice
from karat.errors import DataError, FormatError, MissingExtraError, UsageError
from karat.reading.arrow import (
    ArrowRun,
    TableSource,
    Tabular,
    arrow_errors,
    load_pyarrow,
    open_table,
    parquet_files,
)
from karat.reading.columns.rankings import repeated_pair
from karat.reading.columns.run import (
    LabelIndex,
    LabelledRows,
    find_labels,
)
from karat.reading.format import SHIPPED, Format
from karat.reading.meaning.aliases import infer, is_row
from karat.reading.meaning.answers import HUGGING, is_of
from karat.reading.meaning.rows import RowColumns
from karat.reading.meaning.shapes import interpret
from karat.reading.meaning.values import COERCED
from karat.reading.source import Records, Source

MOST_LABELS = 5_000_000
"""Gold of more labels is not sent to the workers of a cluster."""

_LOOK = 5000
_HEAD = 1000
_MANY = 1 << 16
"""From so many labels on they stay columns."""

_FRAME = "frame"
_CODES = ("dictionary", "int", "uint")
_LISTS = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")


class Parquet(Format):
    """A table in columns: one row per document, or one per query with lists."""

    name = "parquet"
    extensions = SHIPPED["parquet"].extensions
    binary = True
    layout = "rows"

    def sniff_folder(self, folder: Path) -> bool:
        """Whether there are Parquet files in it; together they are one table."""
        return bool(parquet_files(folder))

    def records(self, source: Source) -> Records:
        """One record per row."""
        return read_records(open_table(source))

    def read(self, source: Source) -> Dataset:
        """Read what is needed to know what the table holds; a run is read later."""
        return load_table(open_table(source), source, self.name)

    def read_by(self, source: Source, column: str) -> dict[str, Dataset]:
        """The table, split by one of its columns, in order of appearance."""
        table = open_table(source)
        names = table.schema.names
        if column not in names:
            problem = f"no column {column!r} to split by; {_columns_of(table)}"
            raise source.error(problem)
        from pyarrow import Table, compute, string  # noqa: PLC0415  an extra

        batches = [batch.rows for batch in table.batches(names)]
        with arrow_errors(source.path):
            whole = Table.from_batches(batches, table.schema)
        values = whole.column(column).cast(string())
        systems = [*dict.fromkeys(values.to_pylist())]
        if None in systems:
            raise source.error(f"{column!r} is empty, but splits the table")
        rest, equal = whole.drop_columns([column]), compute.equal
        tables = {
            s: TableSource(rest.filter(equal(values, s)), table.path) for s in systems
        }
        return {s: load_table(t, source.apart(), self.name) for s, t in tables.items()}

    def write(self, value: Any, stream: BinaryIO) -> None:
        """A column for each name of the header."""
        from pyarrow import parquet  # noqa: PLC0415  an extra

        header, rows = value
        columns = {name: [row[at] for row in rows] for at, name in enumerate(header)}
        if "grade" in columns:
            columns["grade"] = [float(grade) for grade in columns["grade"]]
        parquet.write_table(load_pyarrow().table(columns), stream)


def load_table(table: Tabular, source: Source, format: str) -> Dataset:
    """A run or gold from one row per document, or samples from one row per query."""
    if not table.size:
        raise source.error("has columns, but no rows")
    names = table.schema.names
    if not names:
        raise source.error("has rows, but no columns")
    fields = _fields(names, source)
    # A name that the user gave may be one inside the documents of a list.
    inside = is_row(fields) and fields["document"] not in names
    for theirs in () if inside else fields.values():
        if theirs.partition(".")[0] not in names:
            problem = f"there is no column {theirs!r}; {_columns_of(table)}"
            raise source.lacks(theirs, problem)
    if inside or not is_row(fields):
        return interpret(read_records(table), source, format)
    if str(table.schema.field(fields["document"]).type).startswith(_LISTS):
        ours = "relevant" if source.role == "gold" else "retrieved_ids"
        mapping = {ours: fields["document"], **source.mapping}
        mapping.pop("document", None)
        return interpret(read_records(table), replace(source, mapping=mapping), format)
    return _load_rows(table, fields, source, format)


def _fields(names: Sequence[str], source: Source) -> dict[str, str]:
    """Our field name -> the column, where no two columns have one name."""
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise source.error(f"two columns are called {twice!r}")
    return infer(names, source.role, source.mapping_for(names))


def _load_rows(
    table: Tabular, fields: Mapping[str, str], source: Source, format: str
) -> Dataset:
    rules = RowColumns(source, fields, table.schema.names)
    mapping = rules.mapping
    if rules.number == "distance":
        return interpret(read_records(table), source, format)
    for _, record in read_records(table) if rules.unread else ():
        rules.note_unread(map(record.__getitem__, rules.unread))
    run = gold = None
    if rules.role == "gold":
        gold = Gold(_labels(table, mapping), name=source.name)
    else:
        if rules.number == "score":
            _note_order(table, fields, rules)
        texts = {"text": fields["text"]} if "text" in fields else {}
        run = ArrowRun(table, mapping | texts, source.name)
        if rules.system is not None and rules.system not in fields.values():
            rules.note_systems(_values(table, rules.system))
    ids = (mapping[ours] for ours in ("id", "document"))
    kinds = {name: str(table.schema.field(name).type) for name in ids}
    notices = source.notes.notices()
    if numbers := [name for name, kind in kinds.items() if "int" in kind[:4]]:
        notices = (Notice.of("coerced", table.size, COERCED, numbers), *notices)
    return Dataset(run, gold, format=format, mapping=mapping, notices=notices)


def _note_order(table: Tabular, fields: Mapping[str, str], rules: RowColumns) -> None:
    """Look at the order that the first rows have."""
    names = [fields[ours] for ours in ("id", "score", "rank") if ours in fields]
    scores: dict[str, list[float]] = {}
    ranks: dict[str, list[tuple[float, float]]] = {}
    for batch in islice(table.batches(names), 1):
        for record in batch.rows.slice(0, _LOOK).to_pylist():
            query, score, *rank = (record[name] for name in names)
            if not all(isinstance(number, int | float) for number in (score, *rank)):
                return
            scores.setdefault(str(query), []).append(score)
            ranks.setdefault(str(query), []).append((*rank, score)[:2])
    rules.note_order(scores, scores.values(), ranks if "rank" in fields else None)


def _labels(table: Tabular, mapping: Mapping[str, str]) -> Labels:
    """The grade of each document of each query."""
    whole = ArrowRun(table, mapping).whole()
    if twice := repeated_pair(whole):
        problem = f"document {twice[1]!r:.60} has two grades"
        raise FormatError(problem, path=table.path, query=twice[0])
    grades = np.ones(len(whole.documents))
    labels = ColumnLabels(
        whole.queries.names(),
        whole.size,
        whole.documents.names(),
        grades if whole.values is None else whole.values.astype(np.float64),
    )
    if len(labels.grade) > _MANY:
        return labels
    return {query: labels[query] for query in labels}


def read_records(table: Tabular) -> Records:
    """One record for each row."""
    for batch in table.batches(table.schema.names):
        with arrow_errors(table.path or "table"):
            records = batch.rows.to_pylist()
        for record in records:
            yield None, {name: _present(value) for name, value in record.items()}


def _present(value: Any) -> Any:
    """The value in types that every reader knows, without empty fields of structs."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {k: _present(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_present(entry) for entry in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def _values(table: Tabular, column: str) -> set[str]:
    """The distinct values of a column that may name systems."""
    kind = str(table.schema.field(column).type)
    if kind not in {"string", "large_string"} and not kind.startswith(_CODES):
        return set()
    columns = (batch.rows.column(0) for batch in table.batches([column], [column]))
    return {str(value) for part in columns for value in part.unique().to_pylist()}


def _columns_of(table: Tabular) -> str:
    return f"columns found: {', '.join(map(str, table.schema.names))[:300]}"


def load_frame(frame: Any, source: Source) -> Dataset:
    """What a DataFrame holds: a run, gold, or samples."""
    if is_distributed(frame):
        return load_distributed(frame, source)
    if not is_of("pandas", "DataFrame", frame):
        return load_table(TableSource(table_of(frame)), source, _FRAME)
    frame = _with_index(frame)
    names = [*map(str, frame.columns)]
    fields = _fields(names, source)
    if not is_row(fields) or fields["document"] not in names:
        # Arrow would make one struct of all mappings in a column; records keep them.
        return interpret(table_records(frame), source, _FRAME)
    try:
        table = table_of(frame)
    except (FormatError, MissingExtraError):
        # Ids of several types in one column, or no Arrow: row by row works as well.
        return interpret(table_records(frame), source, _FRAME)
    return load_table(TableSource(table), source, _FRAME)


def table_records(frame: Any) -> Records:
    """One record for each row of a frame; what pandas calls missing is None."""
    if not is_of("pandas", "DataFrame", frame):
        return read_records(TableSource(table_of(frame)))
    frame = _with_index(frame).rename(columns=str)
    for name in frame.columns[frame.isna().any()]:
        # A missing cell makes pandas turn whole numbers into others.
        frame[name] = frame[name].convert_dtypes()
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return ((None, record) for record in records)


def table_of(frame: Any) -> Any:
    """The frame as an Arrow table, without a copy where the library allows it."""
    pyarrow = load_pyarrow("reading a DataFrame")
    if is_of("polars", "LazyFrame", frame):
        frame = frame.collect()
    if hasattr(frame, HUGGING) and hasattr(frame, "__len__"):
        frame = frame.with_format("arrow")[:]
    try:
        if hasattr(frame, HUGGING):
            # It is streamed.
            return pyarrow.Table.from_pylist([*frame])
        if is_of("pandas", "DataFrame", frame):
            return pyarrow.Table.from_pandas(_with_index(frame), preserve_index=False)
        return pyarrow.table(frame)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise FormatError(f"the frame does not convert to Arrow: {error}") from error


def _with_index(frame: Any) -> Any:
    """The frame with a named index as columns."""
    named = any(name is not None for name in frame.index.names)
    return frame.reset_index() if named else frame


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
        return load_table(TableSource(frame.toArrow()), source, _FRAME)
    loaded = load_table(TableSource(frame.limit(_HEAD).toArrow()), source, _FRAME)
    if not isinstance(loaded.run, ArrowRun):
        raise source.error("a table of Spark must have a row for each document")
    # Of a few rows nobody knows what is true of all of them.
    coerced = (n for n in loaded.notices if n.kind == "coerced")
    notices = tuple(replace(notice, count=frame.count()) for notice in coerced)
    return replace(loaded, run=SparkRun(frame, loaded.run), notices=notices)


def split_distributed(frame: Any, column: str, source: Source) -> dict[str, Dataset]:
    """One run for each value of a column."""
    if column not in frame.columns:
        names = ", ".join(frame.columns)
        raise FormatError(f"no column {column!r} to split by; columns found: {names}")
    values = sorted(row[0] for row in frame.select(column).distinct().collect())
    return {
        str(value): load_distributed(
            frame.where(frame[column] == value).drop(column),
            replace(source.apart(), path=str(value)),
        )
        for value in values
    }


class SparkRun(ArrowRun):
    """A run in a table of Spark, with one row for each retrieved document."""

    def __init__(self, frame: Any, head: ArrowRun) -> None:
        if head.number is None:
            raise FormatError(
                "a table of Spark has no order: it needs a column such as score or rank"
            )
        super().__init__(head.table, head.fields, head.name)
        self._frame = frame
        self._fields = {n: head.fields[n] for n in ("id", "document", head.number)}
        self._names = [*map(quoted, self._fields.values())]

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
        self, queries: Container[str] | None = None, *, first: int | None = None
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
            fields=self._fields,
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
    fields: Mapping[str, str],
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
    rows = ArrowRun(TableSource(pyarrow.Table.from_batches(some)), fields)
    problem = data = None
    try:
        data = _packed(find_labels(rows.whole, _INDEXES[job], policies, rows))
    except DataError as error:
        task = TaskContext.get()
        partition = f"partition {task.partitionId() if task else 0}: "
        problem = f"{'' if error.query else partition}{error}"
    row = {"rows": sum(b.num_rows for b in some), "problem": problem, "hits": data}
    kinds = [("rows", "int64"), ("problem", "string"), ("hits", "binary")]
    yield pyarrow.RecordBatch.from_pylist([row], pyarrow.schema(kinds))


# The labels made ready, once for all partitions that a process searches.
_INDEXES: dict[str, LabelIndex] = {}


def _packed(rows: LabelledRows) -> bytes:
    """Plain arrays, which nobody has to trust to read."""
    stream = io.BytesIO()
    np.savez(stream, **rows._asdict() | {"extra": np.array(rows.extra, str)})
    return stream.getvalue()


def _unpacked(data: bytes) -> LabelledRows:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        rows = LabelledRows(**file)
    extra = np.asarray(rows.extra).tolist()
    return rows._replace(extra=extra)


PARQUET = Parquet()
