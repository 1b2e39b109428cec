"""What a decoded JSON or YAML value is: samples, rows, or a mapping by query.

Understood are
- a list of records, also inside an object (`samples`, `results`, `data`, ...);
- records by query id, a single record, and columns (`{"question": [...], ...}`);
- rows of one document each;
- `{query: {document: number}}`, `{query: [document, ...]}` and lists of lists.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from itertools import chain, islice
from numbers import Integral, Real
from operator import itemgetter
from typing import Any, TypeAlias

from karat.data.queries import Dataset
from karat.errors import FormatError
from karat.reading.meaning.aliases import (
    GOLD,
    RETRIEVED,
    WRAPPERS,
    infer,
    is_row,
    names_fields,
)
from karat.reading.meaning.gathering import Gathered
from karat.reading.meaning.rows import Table
from karat.reading.meaning.samples import Samples
from karat.reading.meaning.values import is_list, is_scores, show, unpack
from karat.reading.problems import Notes
from karat.reading.streams import Source

__all__ = [
    "Batched",
    "Batches",
    "Records",
    "holds_columns",
    "holds_rows",
    "interpret",
    "interpret_by",
    "note_numbered",
    "records_of",
]

Records: TypeAlias = Iterator[tuple[int | None, Any]]
"""Records with the line each stands on, where lines are known."""
Batches: TypeAlias = Iterator[tuple[Sequence[int | None], list[Any]]]
"""Some lines at a time, and the record on each of them."""

_BATCH = 256
_BY_QUERY = ("outputs", "run", "gold", "qrels")
_CONTENT = RETRIEVED | GOLD | {"query", "document"}
_NUMBER = "number"
# The kinds of the values of a row, text or number, and what they are.
_ROWS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile("ttn|tnn|ntn"), ("query_id", "doc_id", _NUMBER)),
    (re.compile("[tn][tn]tn"), ("query_id", "", "doc_id", _NUMBER)),
    (re.compile("[tn]tnt"), ("query_id", "doc_id", _NUMBER, "")),
    (re.compile("[tn]t[tn]nn[tn]"), ("query_id", "", "doc_id", "rank", "score", "")),
)
_ENOUGH = 100
_FEW = 40


class Batched(Iterator[tuple[int | None, Any]]):
    """Records that come many at a time.

    Attributes:
        batches: lines and records.
        header: the names of columns, where a record is a list of cells.
    """

    def __init__(self, batches: Batches, header: list[str] | None = None) -> None:
        self.batches = batches
        self.header = header
        self._each = (
            pair for some in batches for pair in zip(*self.named(*some), strict=True)
        )

    def __next__(self) -> tuple[int | None, Any]:
        return next(self._each)

    def named(
        self, lines: Sequence[int | None], rows: list[Any]
    ) -> tuple[Sequence[int | None], list[Any]]:
        """The same lines with their cells under the names of the columns."""
        if self.header is None:
            return lines, rows
        cells = ([cell or None for cell in row] for row in rows)
        return lines, [dict(zip(self.header, row, strict=True)) for row in cells]


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


def holds_rows(values: Sequence[Any]) -> bool:
    """Whether a list holds rows of query, document and number, as tuples or the like.

    Also rows as lines of TREC qrels and runs have them, and as ir_datasets does.

    Example:
        >>> holds_rows([("q1", "d7", 0.5)]), holds_rows([["d7", "d3", "d1"]])
        (True, False)
    """
    first: Any = values[0] if values else None
    if hasattr(first, "_asdict"):
        return is_row(infer(first._fields))
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        return is_row(infer(vars(first)))
    layouts = {_layout(row) for row in values[:_ENOUGH]}
    return len(layouts) == 1 and None not in layouts


def _layout(row: Any) -> tuple[str, ...] | None:
    """What the values of a row are, as far as their kinds say."""
    if not isinstance(row, list | tuple):
        return None
    kinds = "".join(
        "t" if isinstance(value, str) else "n" if isinstance(value, Real) else "?"
        for value in row
    )
    return next((names for known, names in _ROWS if known.fullmatch(kinds)), None)


def named_rows(values: Sequence[Any], role: str | None) -> Iterator[Any]:
    """Tuples of query, document and number as records."""
    number = "grade" if role == "gold" else "score"
    names = [number if n == _NUMBER else n for n in _layout(values[0]) or ()]
    for row in values:
        if hasattr(row, "_asdict"):
            yield row._asdict()
        elif is_list(row):
            pairs = zip(names, row, strict=False)
            yield {name: value for name, value in pairs if name}
        else:
            yield vars(row)


def holds_columns(value: Mapping[Any, Any]) -> bool:
    """Whether the keys of a mapping are names of fields, not ids of queries.

    Example:
        >>> holds_columns({"qid": ["q1"], "docno": ["d7"], "score": [0.5]})
        True
    """
    if len(value) > _FEW or not names_fields(value):
        return False
    fields = infer(map(str, value))
    return is_row(fields) or bool(
        fields.keys() & (RETRIEVED | GOLD) and len(fields) > 1
    )


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


def _in_batches(records: Records) -> Batches:
    while some := [*islice(records, _BATCH)]:
        yield [line for line, _ in some], [record for _, record in some]


def _load_stream(records: Records, source: Source, format: str) -> Dataset:
    """What a stream of records holds: rows of one document each, or samples."""
    if not isinstance(records, Batched):
        records = Batched(_in_batches(records))
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
        notes.notice(
            "numbered",
            "queries without an id, numbered from 0",
            number,
            one="query without an id, numbered from 0",
        )


def _load_by_query(
    pairs: Iterable[tuple[Any, Any]],
    values: Sequence[Any],
    source: Source,
    format: str,
) -> Dataset:
    read = _read_gold if _is_gold(values, source) else _read_ranking
    samples = Samples(source)
    for query, value in pairs:
        samples.add(query, value, read)
    return samples.finish(format)


def _read_gold(gathered: Gathered, query: str, value: object) -> None:
    gold = value if isinstance(value, AbstractSet) else _documents(value)
    gathered.add_gold(query, "gold", "", gold)


def _read_ranking(gathered: Gathered, query: str, value: object) -> None:
    if isinstance(unpack(value), str):
        raise FormatError(
            f"the ranking must be a list of documents, got {show(value)}",
            hint="one query? write [['a', 'b']]; one document? write it in a list",
        )
    gathered.add_ranking(query, {"retrieved": _documents(value)})


def _documents(value: object) -> object:
    # Arrays of NumPy, Arrow and pandas are lists too.
    value = value if isinstance(value, str) else unpack(value)
    if is_list(value) or isinstance(value, Mapping | str):
        return value
    raise FormatError(
        "must have a list of documents, or an object of document and number, "
        f"got {show(value)}"
    )


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
        samples.add(query, documents, _read_gold)
        if isinstance(text := value["queries"].get(query), str):
            samples.ask_text(str(query), text)
    return samples.finish(format)
