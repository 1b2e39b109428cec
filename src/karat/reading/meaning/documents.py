"""Documents, retrieved or gold, as frameworks and files hand them out.

Mappings and objects are asked for the same names: `page_content` and `metadata` as in
LangChain, `node` and `score` as in LlamaIndex, `content` and `id` as in Haystack,
`_id`, `_score` and `_source` as search engines answer, `payload` as vector stores do.
A pair of a document and a number is a document with its score, or its grade.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from numbers import Integral, Real
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from karat.data.gold import IMPORTANCE, Item, Span
from karat.data.runs import Document
from karat.errors import FormatError
from karat.reading.meaning.aliases import (
    DISTANCES,
    ENDS,
    GOLD,
    GRADES,
    IDS,
    METADATA,
    NAMED,
    QUESTIONS,
    SCORES,
    SOURCES,
    SPAN_SOURCES,
    STARTS,
    TEXTS,
    WRAPPED,
    ask,
    attributes,
    infer,
    respell,
)
from karat.reading.meaning.answers import hits_of, hits_path
from karat.reading.meaning.values import (
    are_ids,
    is_list,
    is_pair,
    is_scores,
    looks_like_text,
    note_joined,
    note_unread,
    paths_in,
    plain_floats,
    read_grade,
    read_id,
    read_ids,
    read_number,
    read_text,
    show,
    unpack,
    value_at,
)
from karat.reading.source import Notes

INSIDE: Final = ("document", "score", "distance", "text", "grade")
"""Our fields that may lie inside a document, where its id is called `id`."""

_PLAIN: Final = (str, int, float, bool)
_SAID: Final = (*IDS, *TEXTS, *METADATA, *STARTS)
_BARE = (str, bytes, int, float, UUID, type(None))
# One word with a digit, as most ids are.
_NUMBERED = re.compile(r"\S*\d\S*")
# What a gold item says of itself in numbers that are no grades.
_BESIDE = {"group", "labelled_by", "subtopics"}
_ITEMS = ("answers", "claims", "passages")
_OF_DOCUMENTS = ("documents", "sources", "groups", "subtopics")
_UNGRADED = {*IDS, *TEXTS, *SPAN_SOURCES, *STARTS, *ENDS, *_BESIDE}
# Offsets beyond it are not whole numbers any more once they are divided.
_FURTHEST: Final = 2**53


def read_document(value: object, notes: Notes) -> Document:
    """One retrieved document, whatever it comes as."""
    if type(value) is dict and (names := _plain_names(tuple(value))) is not None:
        identity, text, score = map(value.get, names)
        if type(identity) is str and identity and type(text) is str and score is None:
            return Document(identity, text)
    if isinstance(value, Document):
        return value
    if is_pair(value):
        document = read_document(value[0], notes)
        return replace(document, score=read_number(value[1], "score"))
    if value is None or isinstance(value, str | UUID) or hasattr(value, "__index__"):
        return Document(id=read_id(value, "document id", notes))
    value = _with_fields(value)
    inner, chunk = ask(value, WRAPPED), ask(value, TEXTS)
    if inner is None and isinstance(chunk, Mapping):
        inner = chunk
    if inner is not None and not isinstance(inner, _PLAIN):
        own = _identity(value, notes)
        # A search may return no field of the document, but does return its id.
        if own is None or ask(respell(inner), _SAID) is not None:
            document = _read_fields(respell(inner), notes, value, own)
            return replace(document, score=_score(value))
    return _read_fields(value, notes, value)


def _with_fields(value: Any) -> Any:
    """What is said of a document, under the names that are asked for."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif isinstance(value, tuple):
        value = table_row(value)
    if is_list(value):
        raise FormatError(f"a document cannot be a list, got {show(value)}")
    value = respell(value)
    fields = value.get("fields") if isinstance(value, Mapping) else None
    if not isinstance(fields, Mapping):
        return value
    # A hit of Vespa, whose ids look like `id:namespace:type::name`.
    name = str(fields.get("documentid") or value.get("id") or "").rpartition("::")[2]
    said = {"id": name or None, "text": ask(fields, TEXTS)}
    said["score"] = value.get("relevance")
    return {**value, **{key: own for key, own in said.items() if own is not None}}


def table_row(row: tuple[Any, ...]) -> Any:
    """A row of a table: the id comes first, and a text may follow."""
    if not row or not all(v is None or isinstance(v, _PLAIN) for v in row):
        return row
    text = next((value for value in row[1:] if isinstance(value, str)), None)
    return {"id": row[0]} | ({} if text is None else {"text": text})


@lru_cache(maxsize=256)
def _plain_names(keys: tuple[str, ...]) -> tuple[str, str, str] | None:
    """What id, text and score are called, if these keys say nothing else."""
    names = [[n for n in group if n in keys] for group in (IDS, TEXTS, SCORES)]
    if len(keys) != sum(map(len, names)) or any(len(found) > 1 for found in names):
        return None
    identity, text, score = ((*found, "")[0] for found in names)
    return identity, text, score


def _read_fields(
    value: object, notes: Notes, whole: object, own: str | None = None
) -> Document:
    metadata = ask(value, METADATA)
    if metadata is not None and not isinstance(metadata, Mapping):
        # Weaviate has the properties of an object beside what the search says of it.
        metadata = ask(value, METADATA[1:])
    metadata = metadata if isinstance(metadata, Mapping) else {}
    identity = _identity(value, notes) or _identity(metadata, notes) or own
    text = ask(value, TEXTS)
    if text is None or isinstance(text, Mapping):
        text = ask(metadata, TEXTS)
    source = ask(value, SOURCES)
    start, end = read_offsets(value)
    if identity is None and start is None and (plain := ask(value, NAMED)) is not None:
        # {"doc": "d1"} names the document; {"document": "The sky ..."} is its text.
        if text is None and isinstance(plain, str) and looks_like_text([plain]):
            text = plain
        else:
            identity = read_id(plain, "document id", notes)
        source = None if source == plain else source
    if identity is None and text is None and start is None:
        paths = (path for path, v in paths_in(whole) if isinstance(v, str | int))
        others = (path for path in paths if path.rpartition(".")[2] not in SCORES)
        raise FormatError(
            f"a retrieved document needs an id or a text, got {show(whole)}",
            hint=f"its id is called {' or '.join(IDS[:4])}, its text {TEXTS[0]} or so; "
            f"else name it, as in --map document={next(others, 'uid')}",
        )
    if not isinstance(source, str | int):
        source = metadata.get("source")
        source = source if isinstance(source, str) else None
    return Document(
        id=identity,
        text=None if text is None else read_text(text, "the text of a document"),
        score=_score(value),
        source=None if source is None else str(source),
        start=start,
        end=end,
        metadata=metadata,
    )


def _identity(value: object, notes: Notes) -> str | None:
    found = ask(value, IDS)
    return None if found is None else read_id(found, "document id", notes)


def _score(value: object) -> float | None:
    found = ask(value, SCORES)
    if found is None and (distance := ask(value, DISTANCES)) is not None:
        return -read_number(distance, "distance")
    return None if found is None else read_number(found, "score")


def read_offsets(value: object) -> tuple[int | None, int | None]:
    """Where a text begins and ends in its source, if it says both."""
    start, end = ask(value, STARTS), ask(value, ENDS)
    if start is None or end is None:
        return None, None
    whole = isinstance(start, Integral) and isinstance(end, Integral)
    if (
        not whole
        or bool in {type(start), type(end)}
        or not 0 <= start < end < _FURTHEST
    ):
        raise FormatError(
            f"start and end must be integers with 0 <= start < end, got {start!r:.40} "
            f"and {end!r:.40}"
        )
    return int(start), int(end)


def read_scored(scores: Mapping[Any, Any], what: str, notes: Notes) -> dict[str, float]:
    """A mapping of id to number, such as scores or grades, checked."""
    if {*map(type, scores)} <= {str} and "" not in scores:
        numbers = plain_floats(scores.values())
        if numbers is not None:
            return dict(zip(scores, numbers, strict=True))
    read: dict[str, float] = {}
    for key, value in scores.items():
        graded = type(value) is bool and what == "grade"
        number = float(value) if graded else value
        read[read_id(key, "document id", notes)] = read_number(
            number, f"{what} of {str(key)[:60]!r}"
        )
    if len(read) < len(scores):
        raise FormatError("a document id occurs both as number and as text")
    return read


def read_question(value: object) -> str | None:
    """What was asked: a text, an object that holds it, or a conversation."""
    value = unpack(value) if not isinstance(value, str) else value
    if isinstance(value, Mapping):
        value = ask(value, QUESTIONS)
    if is_list(value):
        value = "\n".join(str(ask(said, ("content", "text")) or said) for said in value)
    return None if value is None else str(value)


def read_plain_documents(
    values: Sequence[dict[Any, Any]],
) -> tuple[list[str], list[float]] | None:
    """Ids and scores of documents that are all written alike and say nothing else."""
    identity, text, score = _plain_names(tuple(values[0])) or ("", "", "")
    if not identity or text or not score or {*map(len, values)} != {2}:
        return None
    try:
        ids = [*map(itemgetter(identity), values)]
        scores = plain_floats([*map(itemgetter(score), values)])
    except KeyError:
        return None
    return (ids, scores) if scores is not None and are_ids(ids) else None


def list_with(record: Mapping[Any, Any], path: str) -> str | None:
    """The one field that holds a list of objects with that path, if there is one."""
    found = [
        str(name)
        for name, value in record.items()
        if is_list(documents := unpack(value))
        and any(value_at(document, path) is not None for document in documents)
    ]
    return found[0] if len(found) == 1 else None


def rename_inside(value: Any, names: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """The documents of a list with fields of theirs under our names; and which."""
    documents = unpack(value)
    if not is_list(documents):
        return value, {}
    result, found = [], dict[str, str]()
    for entry in documents:
        if is_pair(entry):
            document, more = rename(entry[0], names)
            result.append((document, entry[1]))
        else:
            change = rename_inside if isinstance(entry, list) else rename
            document, more = change(entry, names)
            result.append(document)
        found |= more
    return result, found


def rename(document: Any, names: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """A document with fields of its own under our names, whatever wraps it."""
    values = {ours: value_at(document, theirs) for ours, theirs in names.items()}
    found = {ours: names[ours] for ours, value in values.items() if value is not None}
    if not found:
        return document, found
    fields = {**document} if isinstance(document, Mapping) else attributes(document)
    inner = ask(fields, WRAPPED)
    if inner is not None and not isinstance(inner, _PLAIN):
        fields = {n: value for n, value in fields.items() if n not in WRAPPED}
        inside = inner if isinstance(inner, Mapping) else attributes(inner)
        fields = {**inside, **fields}
    own = {"id" if ours == "document" else ours: values[ours] for ours in found}
    return {**fields, **own}, found


def names_inside(value: Any) -> Iterable[str]:
    """The fields or attributes of the first document of a list."""
    documents = unpack(value)
    first = documents[0] if is_list(documents) and documents else None
    first = first[0] if is_pair(first) else first
    names = first if isinstance(first, Mapping) else getattr(first, "__dict__", ())
    return [str(name) for name in names]


def read_gold_field(ours: str, value: Any, notes: Notes) -> dict[str, Any]:
    """What a field says of the gold of one query, under the names that `Gold` has.

    Strings that may be ids or texts are `strings`; they are decided when the whole
    input is known.
    """
    value = value if isinstance(value, AbstractSet) else unpack(value)
    if isinstance(value, Mapping) and not is_scores(value):
        inner = infer(map(str, value), "gold").items()
        for name, theirs in inner:
            if name in GOLD and is_list(value[theirs]):
                return read_gold_field(name, value[theirs], notes)
    text = isinstance(value, str)
    if ours == "spans":
        spans = _read_spans(value, notes)
        return {"spans": spans} if spans else {"documents": {}}
    if text and ours in {"reference", "ground_truth"}:
        return {"references": value}
    kind = {"expected": "answers" if text else "", "reference": "passages"}.get(ours)
    if (kind or ours) in _ITEMS:
        return {kind or ours: _read_items(value, kind or ours, notes)}
    return _read_relevant(value, notes, bare=ours != "relevant")


def _read_relevant(value: Any, notes: Notes, *, bare: bool) -> dict[str, Any]:
    if isinstance(value, AbstractSet):
        value = sorted(value, key=str)
    if isinstance(value, Mapping):
        named = isinstance(ask(value, IDS), str)
        if not named and (is_scores(value) or hits_path(value) is None):
            return {"documents": read_scored(value, "grade", notes)}
        value = hits_of(value)
    elif not is_list(value) and not isinstance(value, _BARE):
        value = hits_of(value)
    if not is_list(value):
        note_joined(value, "relevant document", notes)
        value = [value]
    kinds = {*map(type, value)}
    if not kinds <= {str, int}:
        return _read_objects(_ungrouped(value, notes), notes)
    ids = read_ids(value, "relevant id", notes)
    note_strings(ids, notes)
    if bare and kinds == {str}:
        return {"strings": list(ids)}
    return {"documents": dict.fromkeys(ids, 1.0)}


def _ungrouped(values: Sequence[Any], notes: Notes) -> Sequence[Any]:
    """The documents, also those in inner lists; any one of such a list will do."""
    if not any(is_list(entry) and not is_pair(entry) for entry in values):
        return values
    items = [entry if is_list(entry) else [entry] for entry in map(unpack, values)]
    names = [name for item in items for name in item]
    if len({*map(str, names)}) == len(names):
        return [
            {"id": name, "group": f"item-{number}"} if len(item) > 1 else name
            for number, item in enumerate(items, 1)
            for name in item
        ]
    # A document that several items accept has no one group.
    for _ in (item for item in items if len(item) > 1):
        what = "documents that others accept too; each was taken as an item"
        notes.notice("groups", f"{{gold item accepts|gold items accept}} {what}")
    return [*{str(name): name for name in names}.values()]


def note_strings(ids: Sequence[str], notes: Notes) -> None:
    """Say so if a list of relevant ids has some twice, or texts beside ids."""
    if len({*ids}) < len(ids):
        what = "{list of relevant ids repeats|lists of relevant ids repeat}"
        notes.notice("duplicates", f"{what} some, which count once")
    if " " in "".join(ids) and any(map(_NUMBERED.fullmatch, ids)):
        for text in (entry for entry in ids if looks_like_text([entry])):
            what = "{gold text is|gold texts are} mixed with ids in one list"
            rest = "which is read as one kind; give ids as relevant, texts as passages"
            notes.notice("mixed", f"{what}, {rest}", text)


def with_grades(value: Any, grades: Any) -> Any:
    """A list of relevant ids with the grades that another field lists."""
    value, grades = unpack(value), unpack(grades)
    if not is_list(value) or not is_list(grades) or len(value) != len(grades):
        raise FormatError(
            "grades must be a list as long as that of the relevant documents, got "
            f"{show(grades)} for {show(value)}"
        )
    pairs = zip(value, grades, strict=True)
    return [{"id": name, "grade": grade} for name, grade in pairs]


def note_numbers(value: Any, others: Mapping[str, Any], notes: Notes) -> None:
    """Say which unread lists may hold the grades of a list of relevant ids."""
    value = unpack(value)
    for name, other in others.items() if is_list(value) else ():
        with suppress(FormatError):
            numbers = unpack(other)
            if is_list(numbers) and len(numbers) == len(value) > 0:
                for number in numbers:
                    read_grade(number)
                note_unread(name, numbers[0], notes, "relevant_grades")


def _read_objects(values: Sequence[Any], notes: Notes) -> dict[str, Any]:
    labels: dict[str, dict[str, Any]] = {kind: {} for kind in _OF_DOCUMENTS}
    texts, spans = [], []
    for entry in values:
        value, grade = entry if is_pair(entry) else (entry, None)
        bare = isinstance(value, _BARE) or is_list(value) or hasattr(value, "tolist")
        fields = {} if bare else _gold_fields(value, notes)
        if grade is not None:
            fields = {**fields, "grade": grade}
        if bare:
            _label(labels, value, fields, notes)
            continue
        identity, text = ask(fields, IDS), ask(fields, TEXTS)
        start, _ = read_offsets(fields)
        located = start is not None and ask(fields, SPAN_SOURCES) is not None
        if identity is not None:
            _label(labels, identity, fields, notes)
        if text is not None:
            texts.append(fields)
        if located:
            spans.append(fields)
        if identity is None and text is None and not located:
            raise FormatError(f"a relevant document needs an id, got {show(fields)}")
    passages = _read_items(texts, "passages", notes)
    found = {"spans": _read_spans(spans, notes), "passages": passages, **labels}
    return {kind: part for kind, part in found.items() if part} or {"documents": {}}


def _gold_fields(document: Any, notes: Notes) -> Mapping[Any, Any]:
    """A gold document as a mapping, whatever object it is or is wrapped in."""
    wraps = ask(document, WRAPPED)
    if isinstance(document, Mapping) and (wraps is None or isinstance(wraps, _BARE)):
        fields: Mapping[Any, Any] = respell(document)
        return fields
    # What a retriever scored it is no grade.
    grade = ask(document, [name for name in GRADES if name != "score"])
    found = read_document(document, notes)
    said = {"id": found.id, "text": found.text, "grade": grade}
    return {name: value for name, value in said.items() if value is not None}


def _label(
    labels: dict[str, dict[str, Any]],
    identity: object,
    fields: Mapping[Any, Any],
    notes: Notes,
) -> None:
    """The label of one document."""
    name = read_id(identity, "relevant id", notes)
    said, topics = _labelling(fields), ask(fields, ("subtopics",))
    if topics is not None:
        labels["subtopics"][name] = topics = read_scored(topics, "grade", notes)
        said.setdefault("grade", max(topics.values(), default=0.0))
    for other in () if "grade" in said else fields.keys() - _UNGRADED:
        note_unread(str(other), fields[other], notes)
    grade = said.pop("grade", 1.0)
    if labels["documents"].setdefault(name, grade) != grade:
        raise FormatError(f"relevant id {name[:60]!r} has two grades")
    for kind, who in said.items():
        labels[f"{kind}s"][name] = who


def _labelling(fields: Mapping[Any, Any], kind: str = "") -> dict[str, Any]:
    """Grade, source and group of a gold item, as far as it says them."""
    said: dict[str, Any] = {}
    if (grade := ask(fields, GRADES)) is not None:
        said["grade"] = read_grade(grade)
    elif kind == "claim" and (importance := ask(fields, ("importance",))) is not None:
        said["grade"] = IMPORTANCE.get(str(importance).strip().lower())
        if said["grade"] is None:
            raise FormatError(f"a claim is vital or okay, not {importance!r:.60}")
    for ours, theirs in (("source", "labelled_by"), ("group", "group")):
        if (who := ask(fields, (theirs,))) is not None:
            said[ours] = str(who)
    return said


def _read_items(value: Any, kind: str, notes: Notes) -> tuple[Item, ...]:
    """Gold texts: one, a list, a mapping of id to text, or objects with a text."""
    one, group = kind.removesuffix("s"), "answers" if kind == "answers" else None
    if isinstance(value, Mapping) and ask(value, TEXTS) is None:
        value = [{"id": key, "text": text} for key, text in value.items()]
    if is_list(value) and value and all(map(is_list, value)):
        value = [
            {"text": text, "group": f"item-{number}"}
            for number, texts in enumerate(value, 1)
            for text in texts
        ]
    items: dict[str, Item] = {}
    for number, entry in enumerate(value if is_list(value) else [value], 1):
        numeric = isinstance(entry, Real) and not isinstance(entry, bool)
        text = str(entry) if numeric else entry
        name, said = f"{one}-{number}", dict[str, Any]()
        if isinstance(entry, Mapping):
            fields = respell(entry)
            text, identity = ask(fields, TEXTS), ask(fields, IDS)
            said = _labelling(fields, one)
            name = name if identity is None else read_id(identity, f"{one} id", notes)
        text = read_text(text, f"a gold {one}")
        if not text.strip():
            raise FormatError(f"a gold {one} is empty", finding="empty text")
        if name in items:
            raise FormatError(f"two {kind} have the same id")
        items[name] = Item(name, text, **{"group": group, **said})
    return (*items.values(),)


def _read_spans(value: Any, notes: Notes) -> tuple[Span, ...]:
    """Gold stretches of source documents: one object, or a list of them."""
    entries = [value] if isinstance(value, Mapping) else value
    if not is_list(entries) or not all(isinstance(e, Mapping) for e in entries):
        raise FormatError(
            f"spans must be objects with doc, start and end, got {show(value)}"
        )
    spans = []
    for number, entry in enumerate(entries, 1):
        start, end = read_offsets(entry)
        source, text = ask(entry, SPAN_SOURCES), ask(entry, TEXTS)
        if start is None or end is None or source is None:
            raise FormatError(f"a span needs doc, start and end, got {show(entry)}")
        document = read_id(source, "the doc of a span", notes)
        text = None if text is None else read_text(text, "the text of a span")
        name, said = f"span-{number}", _labelling(entry)
        spans.append(Span(name, document, start, end, text, **said))
    return tuple(spans)
