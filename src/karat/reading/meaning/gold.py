"""Gold as records give it: relevant ids with grades, texts, spans."""

import re
from collections.abc import Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from numbers import Real
from typing import Any
from uuid import UUID

from karat.data.gold import IMPORTANCE, Item, Span
from karat.errors import FormatError
from karat.reading.meaning.aliases import (
    ENDS,
    GOLD,
    GRADES,
    IDS,
    SPAN_SOURCES,
    STARTS,
    TEXTS,
    WRAPPED,
    ask,
    infer,
    respell,
)
from karat.reading.meaning.answers import hits_of, hits_path
from karat.reading.meaning.documents import (
    is_pair,
    read_document,
    read_offsets,
    read_scored,
)
from karat.reading.meaning.values import (
    is_list,
    is_scores,
    looks_like_text,
    note_joined,
    note_unread,
    read_grade,
    read_id,
    read_ids,
    read_text,
    show,
    unpack,
)
from karat.reading.source import Notes

_PLAIN = (str, bytes, int, float, UUID, type(None))
# One word with a digit, as most ids are.
_NUMBERED = re.compile(r"\S*\d\S*")
# What a gold item says of itself in numbers that are no grades.
_OTHERS = {"group", "labelled_by", "subtopics"}
_ITEMS = ("answers", "claims", "passages")
_OF_DOCUMENTS = ("documents", "sources", "groups", "subtopics")
_UNGRADED = {*IDS, *TEXTS, *SPAN_SOURCES, *STARTS, *ENDS, *_OTHERS}


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
    elif not is_list(value) and not isinstance(value, _PLAIN):
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
            what = "{gold text stands|gold texts stand} beside ids in one list"
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
        bare = isinstance(value, _PLAIN) or is_list(value) or hasattr(value, "tolist")
        fields = {} if bare else _with_fields(value, notes)
        if grade is not None:
            fields = {**fields, "grade": grade}
        identity, text = value if bare else ask(fields, IDS), ask(fields, TEXTS)
        place, source = read_offsets(fields), ask(fields, SPAN_SOURCES)
        located = place[0] is not None and source is not None
        if bare or identity is not None:
            _label(labels, identity, fields, notes)
        if text is not None:
            texts.append(fields)
        if located:
            spans.append(fields)
        if not bare and identity is None and text is None and not located:
            raise FormatError(f"a relevant document needs an id, got {show(fields)}")
    passages = _read_items(texts, "passages", notes)
    found = {"spans": _read_spans(spans, notes), "passages": passages, **labels}
    return {kind: part for kind, part in found.items() if part} or {"documents": {}}


def _with_fields(document: Any, notes: Notes) -> Mapping[Any, Any]:
    """A gold document as a mapping, whatever object it is or is wrapped in."""
    wraps = ask(document, WRAPPED)
    if isinstance(document, Mapping) and (wraps is None or isinstance(wraps, _PLAIN)):
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
        fields = respell(entry) if isinstance(entry, Mapping) else {"text": text}
        said = {"group": group, **_labelling(fields, one)}
        text = read_text(ask(fields, TEXTS), f"a gold {one}")
        if not text.strip():
            raise FormatError(f"a gold {one} is empty", finding="empty text")
        identity = ask(fields, IDS)
        name = f"{one}-{number}" if identity is None else identity
        name = read_id(name, f"{one} id", notes)
        if name in items:
            raise FormatError(f"two {kind} have the same id")
        items[name] = Item(name, text, **said)
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
