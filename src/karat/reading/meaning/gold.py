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
        if isinstance(value, _PLAIN) or is_list(value) or hasattr(value, "tolist"):
            _label(labels, value, grade, notes)
            continue
        value = _with_fields(value, notes)
        if grade is not None:
            value = {**value, "grade": grade}
        identity, text = ask(value, IDS), ask(value, TEXTS)
        located = (
            read_offsets(value)[0] is not None and ask(value, SPAN_SOURCES) is not None
        )
        if identity is not None:
            _read_labelled(labels, identity, value, notes)
        if text is not None:
            texts.append(value)
        if located:
            spans.append(value)
        if identity is None and text is None and not located:
            raise FormatError(f"a relevant document needs an id, got {show(value)}")
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


def _read_labelled(
    labels: dict[str, dict[str, Any]],
    identity: object,
    value: Mapping[Any, Any],
    notes: Notes,
) -> None:
    grade, topics = ask(value, GRADES), ask(value, ("subtopics",))
    if topics is not None:
        topics = read_scored(topics, "grade", notes)
        grade = max(topics.values(), default=0.0) if grade is None else grade
    name = _label(labels, identity, grade, notes)
    for other in () if grade is not None else value.keys() - _UNGRADED:
        note_unread(str(other), value[other], notes)
    for kind, said in (("sources", "labelled_by"), ("groups", "group")):
        if (who := ask(value, (said,))) is not None:
            labels[kind][name] = str(who)
    if topics is not None:
        labels["subtopics"][name] = topics


def _label(
    labels: dict[str, dict[str, Any]], identity: object, grade: object, notes: Notes
) -> str:
    name = read_id(identity, "relevant id", notes)
    given = 1.0 if grade is None else read_grade(grade)
    if labels["documents"].setdefault(name, given) != given:
        raise FormatError(f"relevant id {name[:60]!r} has two grades")
    return name


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
    items = tuple(
        _read_item(entry, f"{one}-{number}", one, notes, group)
        for number, entry in enumerate(value if is_list(value) else [value], 1)
    )
    if len({item.id for item in items}) < len(items):
        raise FormatError(f"two {kind} have the same id")
    return items


def _read_item(
    entry: object, name: str, kind: str, notes: Notes, group: str | None
) -> Item:
    if isinstance(entry, Real) and not isinstance(entry, bool):
        entry = str(entry)
    if not isinstance(entry, Mapping):
        return Item(name, _said(entry, kind), group=group)
    entry = respell(entry)
    identity, grade = ask(entry, IDS), ask(entry, GRADES)
    own_group, source = ask(entry, ("group",)), ask(entry, ("labelled_by",))
    importance = ask(entry, ("importance",))
    if grade is None and kind == "claim" and importance is not None:
        grade = IMPORTANCE.get(str(importance).strip().lower())
        if grade is None:
            raise FormatError(f"a claim is vital or okay, not {importance!r:.60}")
    return Item(
        id=name if identity is None else read_id(identity, f"{kind} id", notes),
        text=_said(ask(entry, TEXTS), kind),
        grade=1.0 if grade is None else read_grade(grade),
        source="human" if source is None else str(source),
        group=group if own_group is None else str(own_group),
    )


def _said(text: object, kind: str) -> str:
    said = read_text(text, f"a gold {kind}")
    if not said.strip():
        raise FormatError(f"a gold {kind} is empty", finding="empty text")
    return said


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
        source = ask(entry, SPAN_SOURCES)
        if start is None or end is None or source is None:
            raise FormatError(f"a span needs doc, start and end, got {show(entry)}")
        grade, group, text, who = (
            ask(entry, names) for names in (GRADES, ("group",), TEXTS, ("labelled_by",))
        )
        spans.append(
            Span(
                id=f"span-{number}",
                document=read_id(source, "the doc of a span", notes),
                start=start,
                end=end,
                text=None if text is None else read_text(text, "the text of a span"),
                grade=1.0 if grade is None else read_grade(grade),
                source="human" if who is None else str(who),
                group=None if group is None else str(group),
            )
        )
    return tuple(spans)
