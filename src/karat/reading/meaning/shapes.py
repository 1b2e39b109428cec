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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice, repeat
from numbers import Integral, Real
from operator import is_
from typing import Any, TypeGuard

import numpy as np

from karat.data.gold import Gold
from karat.data.memory_runs import RankedRun, ScoredRun
from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.errors import WITHOUT_LABELS
from karat.reading.meaning.aliases import (
    GOLD,
    RETRIEVED,
    WRAPPERS,
    ask,
    infer,
    is_record,
    is_row,
    may_be_field,
)
from karat.reading.meaning.ambiguity import (
    Strings,
    Undecided,
    are_prose,
    note_ascending,
)
from karat.reading.meaning.answers import CHROMA, chroma_rankings, hits_of, is_answer
from karat.reading.meaning.documents import note_strings
from karat.reading.meaning.records import Samples
from karat.reading.meaning.rows import load_rows
from karat.reading.meaning.values import (
    as_record,
    as_records,
    holds_rows,
    is_list,
    is_scores,
    named_rows,
    show,
    unpack,
)
from karat.reading.source import Batched, Notes, Records, Source, in_batches

_FORMAT = "plain"
_SCALARS = {str, int, float, bool, type(None)}
_MANY = 4096
_FEW = 40
_SAMPLE = 256
_MTEB = "mteb_model_meta"
_POSITION = "document_position"


def plain_run(source: Any) -> Dataset | None:
    """A run if it is `{query: {document: score}}`, `{query: [document]}` or lists."""
    notes = Notes()
    rankings, scored = _by_query(source, notes)
    if rankings is None or not _are_texts(rankings, _some_ids(rankings)):
        return None
    run: Run = ScoredRun(rankings) if scored else RankedRun(rankings)
    if scored:
        note_ascending(rankings, map(dict.values, rankings.values()), notes)
    elif are_prose(rankings.values()):
        return None
    return Undecided(run, format=_FORMAT, notices=notes.notices(), bare=not scored)


def plain_gold(source: Any) -> Dataset | None:
    """Gold if it is `{query: {document: grade}}`, `{query: [document]}` or lists."""
    notes = Notes()
    labels, graded = _by_query(source, notes)
    if labels is None:
        return None
    strings: list[Strings] = []
    if not graded:
        if not _are_texts(*labels.values()) or are_prose(labels.values()):
            return None
        strings = [Strings("passages", "", labels)]
        for ids in labels.values():
            note_strings(ids, notes)
        labels = {query: dict.fromkeys(ids, 1.0) for query, ids in labels.items()}
    gold = Gold(labels)
    with suppress(struct.error):
        columns = gold.columns
        finite = np.count_nonzero(np.isfinite(columns.grade)) == len(columns.grade)
        if finite and _are_texts(labels, columns.names):
            return Undecided(
                gold=gold,
                format=_FORMAT,
                notices=notes.notices(),
                strings=strings,
                rest=Dataset(gold=Gold()),
            )
    return None


def _by_query(source: Any, notes: Notes) -> tuple[dict[Any, Any] | None, bool]:
    """Rows by query, numbered from 0 if without ids; and whether they hold numbers."""
    if not isinstance(source, dict):
        if holds_rows(source):
            return None, False
        source = _numbered(source, notes)
    elif (
        len(source) <= _FEW
        and any(map(may_be_field, map(str, source)))
        and is_record(infer(map(str, source)))
    ):
        return None, False
    kinds = {*map(type, source.values())}
    if kinds == {dict}:
        # The first value must be a number, as it may be in an answer of an engine, too,
        # which holds lists or objects besides; whoever uses the others checks them.
        values = chain.from_iterable(map(dict.values, source.values()))
        some = [*islice(values, _FEW)] or [0.0]
        scores = isinstance(some[0], Real)
        if scores and not {*map(type, some)} <= _SCALARS:
            scores = 2 * sum(isinstance(each, list | dict) for each in some) < len(some)
        return (source if scores else None), True
    return (source if kinds and kinds <= {list, tuple} else None), False


def _are_texts(*ids: Iterable[Any]) -> bool:
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


def with_lists(value: Any, levels: int = 2) -> Any:
    """The same with generators and arrays as lists, on the first levels."""
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


_BY_QUERY = ("outputs", "run", "gold", "qrels")
_CONTENT = RETRIEVED | GOLD | {"query", "document"}


def interpret(value: object, source: Source, format: str) -> Dataset:
    """What records hold, or one nested value."""
    if not isinstance(value, Iterator):
        value = _shape(value, source)
    if isinstance(value, Mapping):
        return _load_by_query(value, source, format)
    batched = value if isinstance(value, Batched) else Batched(in_batches(value))
    return _load_stream(batched, source, format)


def _shape(value: object, source: Source) -> Records | Mapping[Any, Any]:
    """The records in a nested value; or else rankings or gold by query."""
    value = as_records(as_record(value))
    _refuse_saved(value[0] if is_list(value) and value else value, source)
    if isinstance(value, Mapping):
        return _shape_of_mapping(value, source)
    if not is_list(value):
        raise source.error(f"must hold a list or an object, but holds {show(value)}")
    if not value:
        raise source.error("holds an empty list: there is nothing to read")
    if isinstance(value[0], Mapping) and not is_scores(value[0]):
        return _unnumbered(value)
    if holds_rows(value):
        return _unnumbered(named_rows(value, source.role))
    return _numbered(value, source.notes)


def _refuse_saved(value: object, source: Source) -> None:
    """Say so of a result that karat itself saved."""
    if not isinstance(value, Mapping) or "schema_version" not in value:
        return
    if "evaluation" in value:
        raise source.error(
            "is a saved evaluation: karat compare, karat diagnose and karat.load read "
            "it",
            hint="karat push adds it to a history, where karat history --gold FILE "
            "scores it by other gold",
        )
    if "kind" in value:
        kind = f"{value['kind']!s:.40}"
        raise source.error(f"is a saved result ({kind}), not what was retrieved")


def interpret_by(
    value: object, column: str, source: Source, format: str
) -> dict[str, Dataset]:
    """Records split by the value of a field, each part read on its own."""
    parts: dict[str, list[tuple[int | None, Any]]] = {}
    for line, record in records_of(value, source, f" to split by {column!r}"):
        names = record if isinstance(record, Mapping) else ["none"]
        if column not in names:
            found = ", ".join(map(str, names))[:200]
            problem = f"no field {column!r} to split by; fields found: {found}"
            raise source.error(problem, line=line)
        if record[column] is None:
            raise source.error(f"{column!r} is empty, but splits the table", line=line)
        parts.setdefault(str(record[column]), []).append((line, record))
    if not parts:
        raise source.error("is empty: there is nothing to read")
    return {
        value: interpret(iter(part), source.apart(), format)
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


def _unnumbered(values: Iterable[Any]) -> Batched:
    return Batched(in_batches((None, entry) for entry in values))


def _load_stream(records: Batched, source: Source, format: str) -> Dataset:
    """What a stream of records holds: rows of one document each, or samples."""
    batches, names = records, records.header
    if names is None:
        if (first := next(records.batches, None)) is None:
            raise source.error("is empty: there is nothing to read")
        batches = Batched(chain([first], records.batches))
        some = first[1]
        names = [*map(str, some[0])] if isinstance(some[0], Mapping) else None
    if names is not None and _POSITION in names:
        return interpret(_by_query_text(batches), source, format)
    if names is not None:
        told = source.mapping and source.mapping_for(names)
        fields = infer(names, source.role, told)
        # A name that the user gave may be one inside the documents of a list.
        if is_row(fields) and fields["document"] in names:
            return load_rows(batches, names, fields, source, format)
    elif is_list(some[0]):
        values = [value for _, value in batches]
        if len(values) == 1 and some[0] and _is_record(some[0][0]):
            # All records in one line, as an array.
            return interpret(some[0], source, format)
        return _load_by_query(_numbered(values, source.notes), source, format)
    samples = Samples(source)
    for batch in batches.batches:
        lines, rows = batches.named(*batch) if batches.header else batch
        for line, record in zip(lines, rows, strict=True):
            samples.take(record, line)
    return samples.finish(format)


def _by_query_text(rows: Records) -> Batched:
    """Rows of one text each, as Phoenix exports them, as a sample for each query."""
    samples: dict[str, dict[str, Any]] = {}
    for _, row in rows:
        query = str(row.get("input"))
        if str(row[_POSITION]) == "0":
            # Asked again: the last answer counts.
            samples.pop(query, None)
        sample = samples.setdefault(query, {"id": query, "query": query, "hits": []})
        text, score = row.get("reference"), row.get("document_score")
        sample["hits"].append({"text": text, "score": score})
    return _unnumbered(samples.values())


def _shape_of_mapping(
    value: Mapping[Any, Any], source: Source
) -> Records | Mapping[Any, Any]:
    if not value:
        raise source.error("holds an empty object: there is nothing to read")
    answers = value.get("responses")
    if value.keys() <= CHROMA.keys():
        answers = chroma_rankings(value)
    if source.role == "run" and is_list(answers):
        return _numbered(answers, source.notes)
    texts, relevant = value.get("queries"), value.get("relevant_docs")
    if isinstance(texts, Mapping) and isinstance(relevant, Mapping):
        # Questions with relevant documents, as LlamaIndex saves them.
        return _unnumbered(
            {"id": query, "query": texts.get(query), "gold": documents}
            for query, documents in relevant.items()
        )
    inner = _unwrapped(value)
    if source.role == "gold" and is_answer(value):
        # What a search relevance workbench has stored, as it answers with it.
        inner = ask(one_part(dict(enumerate(hits_of(value))), source), ("_source",))
    if inner is None and _MTEB in value:
        parts = {name: part for name, part in value.items() if name != _MTEB}
        inner = one_part(one_part(parts, source), source)
    if inner is not None:
        return _shape(inner, source)
    names = dict.fromkeys(map(str, value))
    fields = infer(names, source.role, source.mapping_for(names))
    fields = {o: t for o, t in fields.items() if t.partition(".")[0] in names}
    if is_record(fields):
        return _unnumbered(_transposed(value, fields) or [value])
    first = next(iter(value.values()))
    told = {theirs.partition(".")[0] for theirs in source.mapping.values()}
    named = isinstance(first, Mapping) and not told.isdisjoint(first)
    if named or (_is_record(first) and not is_answer(first)):
        return _unnumbered(_named(value, source))
    return value


def one_part(parts: Mapping[Any, Any], source: Source) -> Any:
    """The part of a data set that is meant: the one of its role, the only one, test."""
    role = "qrels" if source.role == "gold" else source.role
    for name in (role, "test"):
        if name in parts:
            return parts[name]
    if len(parts) == 1:
        return next(iter(parts.values()))
    raise source.error(
        f"holds {len(parts)} parts, of which none is called {role} or test: "
        + ", ".join(map(str, parts))[:200],
        hint="hand over one of them",
    )


def _unwrapped(value: Mapping[Any, Any]) -> Any:
    """What lies in an object that only wraps it, beside a name or a version."""
    for name in WRAPPERS:
        inner = value.get(name)
        if is_list(inner) and inner and _is_record(inner[0]):
            return inner
        if name in _BY_QUERY and isinstance(inner, Mapping) and not is_scores(inner):
            return inner
    return value["samples"] if is_list(value.get("samples")) else None


def _is_record(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value is a sample or a row rather than a document or scores."""
    if not isinstance(value, Mapping) or is_scores(value):
        return False
    return not _CONTENT.isdisjoint(infer(map(str, value)))


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
        if isinstance(record, Mapping):
            yield record if "id" in infer(map(str, record)) else {"id": key, **record}
        else:
            problem = f"must be an object like the others, got {show(record)}"
            source.notes.problem(source.error(problem, query=key))


def _numbered(values: Sequence[Any], notes: Notes) -> dict[str, Any]:
    """Rankings or gold without ids, numbered from 0."""
    for number in range(len(values)):
        what = "{query|queries} without an id, numbered from 0"
        notes.notice("numbered", what, number)
    return {str(number): row for number, row in enumerate(values)}


def _load_by_query(rows: Mapping[Any, Any], source: Source, format: str) -> Dataset:
    """Rankings or gold by query; without a role, whole numbers are grades."""
    if source.role == "samples":
        raise source.error(
            "holds documents by query, not samples with run and gold",
            hint=f"give the gold apart: gold=... (--gold FILE); {WITHOUT_LABELS}",
        )
    gold = source.role == "gold"
    if source.role is None:
        some = islice(rows.values(), _SAMPLE)
        numbers = [n for row in some if isinstance(row, Mapping) for n in row.values()]
        gold = bool(numbers) and all(isinstance(number, Integral) for number in numbers)
        why = "its numbers are whole" if gold else "it does not say otherwise"
        what = "gold" if gold else "a run"
        source.notes.notice("role", f"input read as {what}, because {why}")
    samples = Samples(source)
    for query, row in rows.items():
        samples.add(query, row, gold=gold)
    return samples.finish(format)
