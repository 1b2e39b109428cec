"""What a Python value, or a decoded JSON or YAML value, is.

Most calls hand over dictionaries and lists of ids. These are recognised first, without
touching every id of a run, and nothing is copied (`plain_run`, `plain_gold`). Whatever
is not this plain is read by `interpret`, which understands
- a list of records, also inside an object (`samples`, `results`, `data`, ...);
- records by query id, a single record, and columns (`{"question": [...], ...}`);
- rows of one document each;
- `{query: {document: number}}`, `{query: [document, ...]}` and lists of lists.
"""

import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice, repeat
from numbers import Integral, Real
from operator import is_, itemgetter
from typing import Any

import numpy as np

from karat.catalogue import Catalogue
from karat.data.gold import Gold
from karat.data.memory_runs import RankedRun, ScoredRun
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
from karat.reading.meaning.ambiguity import (
    Strings,
    Undecided,
    are_prose,
    note_ascending,
)
from karat.reading.meaning.gold import note_repeated
from karat.reading.meaning.records import Samples
from karat.reading.meaning.rows import Table
from karat.reading.meaning.values import (
    holds_rows,
    is_list,
    is_scores,
    named_rows,
    show,
    unpack,
)
from karat.reading.source import Batched, Notes, Records, Source, in_batches

# Most callers have no frames, and what reads them takes long to load.
FRAMES: Catalogue[Callable[..., Any]] = Catalogue(
    "frame reader",
    {
        "load": "karat.reading.tables:load_frame",
        "split": "karat.reading.tables:split_distributed",
        "records": "karat.reading.tables:table_records",
    },
)

CHROMA = {
    "ids": "id",
    "documents": "text",
    "distances": "distance",
    "metadatas": "metadata",
    **dict.fromkeys(("embeddings", "uris", "data", "included"), ""),
}
"""What an answer of Chroma holds -> our name of it, where it is read."""
_FORMAT = "plain"
_SCALARS = {str, int, float, bool, type(None)}
_MANY = 4096
_FEW = 40
_SAMPLE = 256


def plain_run(source: Any, name: str = "run") -> Dataset | None:
    """A run from `{query: {document: score}}`, `{query: [document, ...]}` or lists.

    None when the source is anything else.
    """
    rankings, scored = _by_query(source)
    if rankings is None or (scored and not _holds_numbers(rankings)):
        return None
    if not _is_text(rankings, _some_ids(rankings)):
        return None
    if not scored and are_prose(rankings.values()):
        return None
    notes = _numbered(source)
    if scored:
        note_ascending(rankings, map(dict.values, rankings.values()), notes)
    run = ScoredRun(rankings, name) if scored else RankedRun(rankings, name)
    return Undecided(run, format=_FORMAT, notices=notes.notices(), bare=not scored)


def plain_gold(source: Any, name: str = "gold") -> Dataset | None:
    """Gold from `{query: {document: grade}}`, `{query: [document, ...]}` or lists.

    None when the source is anything else.
    """
    labels, graded = _by_query(source)
    if labels is None or (graded and not _holds_numbers(labels)):
        return None
    notes = _numbered(source)
    strings = None
    if not graded:
        if not _is_text(*labels.values()) or are_prose(labels.values()):
            return None
        strings = (Gold(name=name), [Strings("passages", "", labels)])
        for ids in labels.values():
            note_repeated(ids, notes)
        labels = {query: dict.fromkeys(ids, 1.0) for query, ids in labels.items()}
    gold = Gold(labels, name=name)
    with suppress(struct.error):
        columns = gold.columns
        finite = np.count_nonzero(np.isfinite(columns.grade)) == len(columns.grade)
        if finite and _is_text(labels, columns.names):
            notices = notes.notices()
            return Undecided(
                gold=gold, format=_FORMAT, notices=notices, strings=strings
            )
    return None


def chroma_rankings(answer: Mapping[Any, Any]) -> list[list[dict[str, Any]]] | None:
    """The documents of each query from columns of lists, as Chroma answers.

    Example:
        >>> chroma_rankings({"ids": [["d1"], ["d2"]], "distances": [[0.1], [0.4]]})
        [[{'id': 'd1', 'distance': 0.1}], [{'id': 'd2', 'distance': 0.4}]]
    """
    ids = answer.get("ids")
    if not isinstance(ids, list) or not all(isinstance(row, list) for row in ids):
        return None
    names = {theirs: ours for theirs, ours in CHROMA.items() if ours}
    columns = {
        ours: answer[theirs]
        for theirs, ours in names.items()
        if answer.get(theirs) is not None
    }
    try:
        return [
            [dict(zip(columns, row, strict=True)) for row in zip(*rows, strict=True)]
            for rows in zip(*columns.values(), strict=True)
        ]
    except ValueError:
        problem = f"{', '.join(names)} must be lists of the same length"
        raise FormatError(problem) from None


def with_lists(value: Any, levels: int = 2) -> Any:
    """The same with generators and arrays as lists, on the first levels.

    Example:
        >>> with_lists({"q1": (name for name in ["d2", "d1"])})
        {'q1': ['d2', 'd1']}
    """
    if _is_unlisted(type(value)) and not hasattr(value, "read"):
        value = value.tolist() if hasattr(value, "tolist") else list(value)
    if not levels or not isinstance(value, Mapping | list | tuple):
        return value
    old = value.values() if isinstance(value, Mapping) else value
    kinds = {*map(type, old)}
    if kinds <= _SCALARS or (levels == 1 and not any(map(_is_unlisted, kinds))):
        return value
    new = [with_lists(entry, levels - 1) for entry in old]
    if all(map(is_, old, new)):
        return value
    return dict(zip(value, new, strict=True)) if isinstance(value, Mapping) else new


def _is_unlisted(kind: type) -> bool:
    return issubclass(kind, Iterator) or hasattr(kind, "tolist")


def _by_query(source: Any) -> tuple[dict[Any, Any] | None, bool]:
    """Rows by query, numbered from 0 if without ids; and whether they hold numbers."""
    if isinstance(source, list | tuple):
        if holds_rows(source):
            return None, False
        source = {str(number): row for number, row in enumerate(source)}
    if not isinstance(source, dict) or _holds_columns(source):
        return None, False
    kinds = {*map(type, source.values())}
    if kinds == {dict}:
        return source, True
    return (source if kinds and kinds <= {list, tuple} else None), False


def _holds_columns(value: Mapping[Any, Any]) -> bool:
    """Whether the keys of a mapping are names of fields, not ids of queries."""
    if len(value) > _FEW or not names_fields(value):
        return False
    fields = infer(map(str, value))
    return is_row(fields) or bool(
        fields.keys() & (RETRIEVED | GOLD) and len(fields) > 1
    )


def _numbered(source: Any) -> Notes:
    notes = Notes()
    if not isinstance(source, dict):
        note_numbered(len(source), notes)
    return notes


def _holds_numbers(rows: dict[Any, dict[Any, Any]]) -> bool:
    """Whether the first value is a number; whoever uses the others checks them."""
    values = chain.from_iterable(map(dict.values, rows.values()))
    return isinstance(next(values, 0.0), (float, int, Real))


def _is_text(*ids: Iterable[Any]) -> bool:
    try:
        # Quicker than to ask each for its type: only text can be joined.
        "".join(chain.from_iterable(ids))
    except TypeError:
        return False
    return True


def _some_ids(rankings: dict[Any, Any]) -> Iterator[Any]:
    """Every document id, or the first and last of some rankings where there are many.

    Looking at each of a million ids would cost more than scoring them, and a system
    writes its ids in one way.
    """
    rows = rankings.values()
    if len(rows) * len(next(iter(rows))) <= _MANY:
        return chain.from_iterable(rows)
    some = [*islice(rows, 0, None, -(-len(rows) // _SAMPLE))]
    firsts = map(next, map(iter, some), repeat(""))
    return chain(firsts, map(next, map(reversed, some), repeat("")))


def is_frame(thing: object) -> bool:
    """Whether something is a table of a DataFrame library.

    Example:
        >>> is_frame({"q1": ["d1"]})
        False
    """
    return (
        hasattr(thing, "__arrow_c_stream__")
        or hasattr(thing, "mapInArrow")
        or hasattr(thing, "__arrow_c_array__")
        or is_of("pandas", "DataFrame", thing)
        or is_of("polars", "LazyFrame", thing)
    )


def is_of(library: str, name: str, thing: object) -> bool:
    """Whether it is of a class of a library, if anybody has imported that."""
    kind = getattr(sys.modules.get(library), name, None)
    return kind is not None and isinstance(thing, kind)


_BY_QUERY = ("outputs", "run", "gold", "qrels")
_CONTENT = RETRIEVED | GOLD | {"query", "document"}


def interpret(value: object, source: Source, format: str) -> Dataset:
    """What records hold, or one nested value.

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
    """The records in what a format read: a stream, or a list, bare or wrapped."""
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
