"""What retrievers return, as ranked documents."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from karat.data.runs import Document
from karat.errors import FormatError, Transient, UnknownNameError
from karat.reading.meaning.aliases import IDS, ask
from karat.reading.meaning.answers import PARTIAL, body_of, hits_of, is_partial
from karat.reading.meaning.documents import (
    INSIDE,
    names_inside,
    read_document,
    rename,
    table_row,
)
from karat.reading.meaning.values import is_pair, is_scores, show, value_at
from karat.reading.source import Notes

_FIELDS: Final = ("id", "text", "score", "source", "start", "end")
_SCALARS: Final = (str, int, float, bool)


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Refuse names that are not about retrieved documents."""
    fields = [name for name in ("retrieved", *INSIDE) if name != "grade"]
    for ours in mapping:
        if ours not in fields:
            raise UnknownNameError("field", ours, fields)


def read_answer(
    answer: Any, mapping: Mapping[str, str], ids: Sequence[Any] | None = None
) -> list[Document | str]:
    """The documents of an answer, best first; a string may be an id or a text."""
    if is_partial(answer):
        raise Transient(PARTIAL, alive=True)
    entries = hits_of(_at_mapping(answer, mapping))
    inside = {ours: theirs for ours, theirs in mapping.items() if ours in INSIDE}
    return [_document(entry, inside, ids) for entry in entries]


def scores_rise(answer: Any, mapping: Mapping[str, str]) -> bool:
    """Whether scores by document have the smallest first, as distances do."""
    inner = _at_mapping(answer, mapping)
    is_scored = isinstance(inner, Mapping) and is_scores(inner)
    return is_scored and all(a < b for a, b in pairwise(inner.values()))


def _at_mapping(answer: Any, mapping: Mapping[str, str]) -> Any:
    """What the caller says holds the documents."""
    path = mapping.get("retrieved")
    if path is None:
        return answer
    inner = value_at(body_of(answer), path)
    if inner is None:
        names = ", ".join(map(str, answer)) if isinstance(answer, Mapping) else ""
        raise FormatError(f"the answer has no {path!r}; it holds {names or 'none'}")
    return inner


def _document(
    entry: Any, inside: Mapping[str, str], ids: Sequence[Any] | None
) -> Document | str:
    entry, score = entry if is_pair(entry) else (entry, None)
    if ids is not None:
        entry = _with_id(entry, ids)
    if isinstance(entry, str) and score is None and not inside:
        return entry
    entry, found = rename(entry, inside)
    for ours in sorted({"document", "text"} & inside.keys() - found.keys()):
        names = ", ".join(names_inside([entry])) or show(entry)
        raise FormatError(f"a document has no {inside[ours]!r}; it has {names}")
    return read_document(entry if score is None else (entry, score), Notes())


def _with_id(entry: Any, ids: Sequence[Any]) -> Any:
    """A document under its own id, where its place in the index is known."""
    entry = table_row(entry) if isinstance(entry, tuple) else entry
    place = ask(entry, IDS) if isinstance(entry, Mapping) else entry
    if isinstance(place, bool) or not hasattr(place, "__index__"):
        raise FormatError(f"ids= needs places in the index, got {show(entry)}")
    if not 0 <= place < len(ids):
        raise FormatError(f"the index has place {place}, and ids= has {len(ids)} ids")
    name = ids[place.__index__()]
    return {**entry, "id": name} if isinstance(entry, Mapping) else str(name)


def to_plain(document: Document | str) -> Any:
    """A document in values that JSON holds."""
    if isinstance(document, str):
        return document
    values = {name: getattr(document, name) for name in _FIELDS}
    plain = {name: value for name, value in values.items() if value is not None}
    metadata = {
        str(name): value
        for name, value in document.metadata.items()
        if isinstance(value, _SCALARS) and value == value  # noqa: PLR0124
    }
    return plain | ({"metadata": metadata} if metadata else {})


def documents_from(plain: Sequence[Any]) -> list[Document | str]:
    """The documents that `to_plain` gave."""
    return [p if isinstance(p, str) else Document(**p) for p in plain]
