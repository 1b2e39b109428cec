"""What a decoded JSON or YAML value is: samples, rows, or a mapping by query.

Understood are
- a list of records, also inside an object (`samples`, `results`, `data`, ...);
- records by query id, a single record, and columns (`{"question": [...], ...}`);
- rows of one document each;
- `{query: {document: number}}`, `{query: [document, ...]}` and lists of lists.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from numbers import Integral
from operator import itemgetter
from typing import Any

from karat.data.queries import Dataset
from karat.reading.meaning.aliases import (
    GOLD,
    RETRIEVED,
    WRAPPERS,
    infer,
    is_row,
)
from karat.reading.meaning.rows import Table
from karat.reading.meaning.samples import Samples
from karat.reading.meaning.values import (
    holds_rows,
    is_list,
    is_scores,
    named_rows,
    show,
    unpack,
)
from karat.reading.source import Batched, Notes, Records, Source, in_batches

_BY_QUERY = ("outputs", "run", "gold", "qrels")
_CONTENT = RETRIEVED | GOLD | {"query", "document"}


def interpret(value: object, source: Source, format: str) -> Dataset:
    """What records hold, or one nested value.

    Args:
        value: an iterator of (line, record), or one decoded value.
        source: where it comes from, and what the user said of it.
        format: how the result calls the format.

    Example:
        >>> loaded = interpret({"q1": {"d1": 2}}, Source("qrels.json", "gold"), "json")
        >>> loaded.gold.documents
        {'q1': {'d1': 2.0}}
    """
    if isinstance(value, Iterator):
        return _load_stream(value, source, format)
    if isinstance(value, Mapping):
        return _load_mapping(value, source, format)
    if not is_list(value):
        raise source.error(f"must hold a list or an object, but holds {show(value)}")
    if not value:
        raise source.error("holds an empty list: there is nothing to read")
    if isinstance(value[0], Mapping) and not is_scores(value[0]):
        return _load_stream(_unnumbered(value), source, format)
    if holds_rows(value):
        return _load_stream(_unnumbered(named_rows(value, source.role)), source, format)
    return _load_lists(value, source, format)


def interpret_by(
    value: object, column: str, source: Source, format: str
) -> dict[str, Dataset]:
    """Records split by the value of a field, each part read on its own."""
    parts: dict[str, list[tuple[int | None, Any]]] = {}
    for line, record in records_of(value, source, f" to split by {column!r}"):
        if not isinstance(record, Mapping) or column not in record:
            names = (
                ", ".join(map(str, record)) if isinstance(record, Mapping) else "none"
            )
            raise source.error(
                f"no field {column!r} to split by; fields found: {names[:200]}",
                line=line,
            )
        if record[column] is None:
            raise source.error(f"{column!r} is empty, but splits the table", line=line)
        parts.setdefault(str(record[column]), []).append((line, record))
    if not parts:
        raise source.error("is empty: there is nothing to read")
    return {
        value: _load_stream(iter(part), source.apart(), format)
        for value, part in parts.items()
    }


def records_of(value: object, source: Source, use: str = "") -> Records:
    """The records in what a format read: a stream of them, or a list, bare or wrapped.

    Args:
        value: as `interpret` takes it.
        source: where it comes from.
        use: what the records are for; an error says it.
    """
    if isinstance(value, Iterator):
        return value
    if isinstance(value, Mapping):
        value = _unwrapped(value)
    if not is_list(value):
        raise source.error(f"holds no list of records{use}")
    return _unnumbered(value)


def _unnumbered(values: Iterable[Any]) -> Records:
    return ((None, entry) for entry in values)


def _load_stream(records: Records, source: Source, format: str) -> Dataset:
    """What a stream of records holds: rows of one document each, or samples."""
    if not isinstance(records, Batched):
        records = Batched(in_batches(records))
    batches, names = records, records.header
    if names is None:
        if (first := next(records.batches, None)) is None:
            raise source.error("is empty: there is nothing to read")
        batches = Batched(chain([first], records.batches))
        some = first[1]
        names = [*map(str, some[0])] if isinstance(some[0], Mapping) else None
    if names is not None:
        fields = infer(names, source.role, source.mapping_for(names))
        # A name that the user gave may be one inside the documents of a list.
        if is_row(fields) and fields["document"] in names:
            return _load_rows(batches, names, fields, source, format)
    elif is_list(some[0]):
        values = [value for _, value in batches]
        (line, *more), inner = values, some[0][:1]
        if (
            not more
            and inner
            and isinstance(inner[0], Mapping)
            and _is_record(inner[0])
        ):
            # All records in one line, as an array.
            return interpret(line, source, format)
        return _load_lists(values, source, format)
    samples = Samples(source)
    for line, record in batches:
        samples.take(record, line)
    return samples.finish(format)


def _load_rows(
    records: Batched,
    names: list[str],
    fields: Mapping[str, str],
    source: Source,
    format: str,
) -> Dataset:
    """What rows of one document each hold, cells or records."""
    header = records.header
    for theirs in source.mapping_for(names).values() if header else ():
        if theirs not in names:
            found = ", ".join(name[:40] for name in names[:12])
            problem = f"no column is called {theirs!r}; columns found: {found}"
            raise source.lacks(theirs, problem)
    table = Table(source, fields, names)
    keys: list[Any] = [*table.names]
    if header:
        keys = [None if name is None else header.index(name) for name in table.names]
    for lines, some in records.batches:
        if header is None and not {*map(type, some)} <= {dict}:
            for line, record in zip(lines, some, strict=True):
                if isinstance(record, Mapping):
                    table.take(_columns(keys, [record]), [line])
                else:
                    problem = f"must be an object with fields, got {show(record)}"
                    source.notes.problem(source.error(problem, line=line))
        else:
            table.take(_columns(keys, some), lines)
    return table.finish(format)


def _columns(keys: list[Any], rows: list[Any]) -> list[list[Any] | None]:
    """The values of rows at these keys; empty cells are None."""
    columns: list[list[Any] | None] = []
    for key in keys:
        try:
            column = None if key is None else [*map(itemgetter(key), rows)]
        except KeyError:
            column = [row.get(key) for row in rows]
        if column and "" in column and type(rows[0]) is list:
            column = [cell or None for cell in column]
        columns.append(column)
    return columns


def _load_mapping(value: Mapping[Any, Any], source: Source, format: str) -> Dataset:
    if not value:
        raise source.error("holds an empty object: there is nothing to read")
    if isinstance(value.get("queries"), Mapping) and "relevant_docs" in value:
        return _load_question_set(value, source, format)
    inner = _unwrapped(value)
    if inner is not None:
        return interpret(inner, source, format)
    names = dict.fromkeys(map(str, value))
    fields = infer(names, source.role, source.mapping_for(names))
    fields = {o: t for o, t in fields.items() if t.partition(".")[0] in names}
    if is_row(fields) or (fields.keys() & (RETRIEVED | GOLD) and len(fields) > 1):
        records = _transposed(value, fields) or [value]
        return _load_stream(_unnumbered(records), source, format)
    first = next(iter(value.values()))
    told = {theirs.partition(".")[0] for theirs in source.mapping.values()}
    if isinstance(first, Mapping) and (_is_record(first) or told & first.keys()):
        return _load_stream(_unnumbered(_named(value, source)), source, format)
    return _load_by_query(value.items(), [*value.values()], source, format)


def _unwrapped(value: Mapping[Any, Any]) -> Any:
    """What lies in an object that only wraps it, beside a name or a version."""
    for name in WRAPPERS:
        inner = value.get(name)
        if is_list(inner) and inner and isinstance(inner[0], Mapping):
            if _is_record(inner[0]):
                return inner
        elif name in _BY_QUERY and isinstance(inner, Mapping) and not is_scores(inner):
            return inner
    if "samples" in value and is_list(value["samples"]):
        return value["samples"]
    return None


def _is_record(value: Mapping[Any, Any]) -> bool:
    """Whether an object is a sample or a row rather than a document or scores."""
    return not is_scores(value) and bool(_CONTENT & infer(map(str, value)).keys())


def _transposed(
    value: Mapping[Any, Any], fields: Mapping[str, str]
) -> list[Mapping[Any, Any]] | None:
    """Records from columns, when every field is a list with an entry per query."""
    lists = {key: column for key, column in value.items() if is_list(column)}
    ranked = [lists.get(t, ()) for f, t in fields.items() if f in RETRIEVED | GOLD]
    one_each = any(all(is_list(unpack(each)) for each in column) for column in ranked)
    if len(lists) < len(value) or (ranked and not one_each):
        return None
    if len({len(column) for column in lists.values()}) > 1:
        return None
    return [
        dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)
    ]


def _named(value: Mapping[Any, Any], source: Source) -> Iterator[Any]:
    """Records by query id, each with its id put in."""
    for key, record in value.items():
        if isinstance(record, Mapping) and "id" not in infer(map(str, record)):
            yield {"id": key, **record}
        elif isinstance(record, Mapping):
            yield record
        else:
            source.notes.problem(
                source.error(
                    f"must be an object like the others, got {show(record)}", query=key
                )
            )


def _load_lists(values: Sequence[Any], source: Source, format: str) -> Dataset:
    """Rankings or gold without ids, numbered from 0."""
    note_numbered(len(values), source.notes)
    pairs = ((str(number), value) for number, value in enumerate(values))
    return _load_by_query(pairs, values, source, format)


def note_numbered(count: int, notes: Notes) -> None:
    """Say that queries have no ids."""
    for number in range(count):
        what = "{query|queries} without an id, numbered from 0"
        notes.notice("numbered", what, number)


def _load_by_query(
    pairs: Iterable[tuple[Any, Any]],
    values: Sequence[Any],
    source: Source,
    format: str,
) -> Dataset:
    gold = _is_gold(values, source)
    samples = Samples(source)
    for query, value in pairs:
        samples.add(query, value, gold=gold)
    return samples.finish(format)


def _is_gold(values: Sequence[Any], source: Source) -> bool:
    """Whether documents by query are gold: the role says, or whole numbers do."""
    if source.role == "samples":
        raise source.error(
            "holds documents by query, not samples with run and gold",
            hint="give the gold apart: gold=... (--gold FILE)",
        )
    if source.role is not None:
        return source.role == "gold"
    numbers = [n for v in values[:100] if isinstance(v, Mapping) for n in v.values()]
    gold = bool(numbers) and all(isinstance(number, Integral) for number in numbers)
    why = "its numbers are whole" if gold else "it does not say otherwise"
    what = "gold" if gold else "a run"
    source.notes.notice("role", f"input read as {what}, because {why}")
    return gold


def _load_question_set(
    value: Mapping[Any, Any],
    source: Source,
    format: str,
) -> Dataset:
    """Questions with relevant documents, as LlamaIndex saves them."""
    relevant = value["relevant_docs"]
    if not isinstance(relevant, Mapping):
        raise source.error(f"relevant_docs must be an object, got {show(relevant)}")
    samples = Samples(source)
    for query, documents in relevant.items():
        samples.add(query, documents, gold=True, text=value["queries"].get(query))
    return samples.finish(format)
