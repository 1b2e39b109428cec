"""What a table in columns holds: a run, gold, or samples."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from karat.data.gold import Gold
from karat.data.queries import Dataset
from karat.data.runs import Notice
from karat.errors import FormatError
from karat.reading.columnar.arrow_arrays import (
    column_of,
    load_pyarrow,
    numbers_of,
    stretches_of,
)
from karat.reading.columnar.arrow_source import Batch, TableSource, Tabular
from karat.reading.columnar.autorag import MAPPING, as_sample, is_autorag
from karat.reading.columnar.run import ArrowRun, Layout
from karat.reading.meaning.aliases import infer, is_row
from karat.reading.meaning.rows import read_as_one, reading, system_column
from karat.reading.meaning.samples import Samples
from karat.reading.meaning.values import COERCED, COERCED_ONE
from karat.reading.streams import Source

__all__ = ["load_samples", "load_table", "read_records", "split_table"]


def load_table(table: Tabular, source: Source, format: str) -> Dataset:
    """A run or gold from one row per document, or samples from one row per query.

    Args:
        table: the columns.
        source: what the user said of them.
        format: how the result calls the format.
    """
    if not table.size:
        raise source.error("has columns, but no rows")
    names = table.schema.names
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise source.error(f"two columns are called {twice!r}")
    fields = infer(names, source.role, source.mapping_for(names))
    for theirs in fields.values():
        if theirs.partition(".")[0] not in names:
            problem = f"there is no column {theirs!r}; {_found(table)}"
            raise source.lacks(theirs, problem)
    if not is_row(fields):
        return load_samples(read_records(table), source, format)
    if str(table.schema.field(fields["document"]).type).startswith(_LISTS):
        ours = "relevant" if source.role == "gold" else "retrieved_ids"
        mapping = {ours: fields["document"], **source.mapping}
        mapping.pop("document", None)
        return load_samples(
            read_records(table), replace(source, mapping=mapping), format
        )
    return _load_rows(table, fields, source, format)


def split_table(table: Tabular, column: str, source: Source) -> dict[str, Tabular]:
    """One table for each value of a column, in order of appearance."""
    if column not in table.schema.names:
        raise source.error(f"no column {column!r} to split by; {_found(table)}")
    numbers: dict[str, int] = {}
    parts = [np.zeros(0, np.int64)]
    for piece in table.pieces([column], [column]):
        for batch in piece():
            start, names, which = stretches_of(
                batch.rows.column(0), batch.place(column)
            )
            for at in which.tolist():
                numbers.setdefault(names[at], len(numbers))
            number = np.array([numbers[name] for name in names], np.int64)
            parts.append(
                np.repeat(number[which], np.diff(start, append=len(batch.rows)))
            )
    number = np.concatenate(parts)
    rest = table.table([name for name in table.schema.names if name != column])
    rest = rest.take(load_pyarrow().array(np.argsort(number, kind="stable")))
    ends = np.cumsum(np.bincount(number, minlength=len(numbers))).tolist()
    bounds = zip(numbers, [0, *ends], ends, strict=False)
    return {
        name: TableSource(rest.slice(first, last - first), table.path)
        for name, first, last in bounds
    }


def load_samples(
    records: Iterable[Mapping[str, Any]],
    source: Source,
    format: str,
) -> Dataset:
    """Samples from one record per query."""
    samples = Samples(source)
    grouped = 0
    autorag = False
    for record in records:
        sample, alternatives = record, 0
        if is_autorag(record) and not source.mapping:
            sample, alternatives = as_sample(record)
            autorag = True
        grouped += alternatives
        samples.take(sample)
    loaded = samples.finish(format)
    if autorag:
        mapping = {f: MAPPING.get(f, t) for f, t in loaded.mapping.items()}
        loaded = replace(loaded, mapping=mapping)
    if grouped:
        what = "documents that others accept too; each was taken as an item"
        text, one = f"gold items accept {what}", f"gold item accepts {what}"
        notices = (*loaded.notices, Notice("groups", grouped, text, one=one))
        loaded = replace(loaded, notices=notices)
    return loaded


def _load_rows(
    table: Tabular,
    fields: Mapping[str, str],
    source: Source,
    format: str,
) -> Dataset:
    role, number = reading(source, fields)
    mapping = {ours: fields[ours] for ours in ("id", "document")}
    if number:
        mapping["grade" if role == "gold" else number] = fields[number]
    loaded = Dataset(format=format, mapping=mapping, notices=_coerced(table, mapping))
    if role == "gold":
        return replace(loaded, gold=Gold(_labels(table, mapping), name=source.name))
    layout = Layout(
        mapping["id"],
        mapping["document"],
        mapping.get("score"),
        mapping.get("rank"),
        fields.get("text"),
    )
    return replace(
        loaded,
        run=ArrowRun(table, layout, source.name),
        notices=(*loaded.notices, *_systems(table, fields)),
    )


def _labels(table: Tabular, mapping: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """The grade of each document of each query."""
    columns = [mapping[ours] for ours in ("id", "document", "grade") if ours in mapping]
    labels: dict[str, dict[str, float]] = {}
    for piece in table.pieces(columns, columns[:1]):
        for batch in piece():
            arrays = batch.rows.columns
            start, names, which = stretches_of(arrays[0], batch.place(columns[0]))
            documents = column_of(arrays[1], batch.place(columns[1])).names(slice(None))
            grades = [1.0] * len(documents)
            if len(columns) > 2:  # noqa: PLR2004
                numbers = numbers_of(arrays[2], batch.place(columns[2]))
                grades = numbers.astype(np.float64).tolist()
            ends = [*start[1:].tolist(), len(documents)]
            for first, last, at in zip(
                start.tolist(), ends, which.tolist(), strict=True
            ):
                some = dict(zip(documents[first:last], grades[first:last], strict=True))
                wanted = labels.setdefault(names[at], {})
                if len(some) < last - first or not wanted.keys().isdisjoint(some):
                    raise _twice(names[at], [*wanted, *documents[first:last]], batch)
                wanted.update(some)
    return labels


def _twice(query: str, documents: list[str], batch: Batch) -> FormatError:
    document, _ = Counter(documents).most_common(1)[0]
    problem = f"document {document!r:.60} has two grades"
    return FormatError(problem, path=batch.path, query=query)


def read_records(table: Tabular) -> Iterator[dict[str, Any]]:
    """One record for each row."""
    for piece in table.pieces(table.schema.names):
        for batch in piece():
            for record in batch.rows.to_pylist():
                yield {name: _present(value) for name, value in record.items()}


def _present(value: Any) -> Any:
    """The value; a struct without the fields that are empty in it."""
    if isinstance(value, dict):
        return {k: _present(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_present(entry) for entry in value]
    return value


def _coerced(table: Tabular, mapping: Mapping[str, str]) -> tuple[Notice, ...]:
    kinds = {ours: str(table.schema.field(mapping[ours]).type) for ours in mapping}
    numbers = [mapping[f] for f in ("id", "document") if "int" in kinds[f][:4]]
    if not numbers:
        return ()
    return (Notice("coerced", table.size, COERCED, tuple(numbers), COERCED_ONE),)


def _systems(table: Tabular, fields: Mapping[str, str]) -> tuple[Notice, ...]:
    """That several systems were read as one, if a column seems to name them."""
    column = system_column(table.schema.names)
    if column is None or column in fields.values():
        return ()
    kind = str(table.schema.field(column).type)
    if kind not in {"string", "large_string"} and not kind.startswith(_CODES):
        return ()
    pieces = table.pieces([column], [column])
    columns = (batch.rows.column(0) for piece in pieces for batch in piece())
    values = {str(value) for part in columns for value in part.unique().to_pylist()}
    if len(values) < 2:  # noqa: PLR2004
        return ()
    shown = tuple(value[:80] for value in sorted(values)[:3])
    return (Notice("systems", len(values), read_as_one(column), shown),)


def _found(table: Tabular) -> str:
    return f"columns found: {', '.join(map(str, table.schema.names))[:300]}"


_CODES = ("dictionary", "int", "uint")
_LISTS = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
