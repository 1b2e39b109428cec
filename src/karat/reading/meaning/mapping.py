"""What the user says about field names: `--map ours=theirs`, `mapping={...}`.

A name may be a path through objects, mappings and lists, as in `hits.meta.uid`. It may
also lie inside the documents of a ranking or of gold. With run and gold apart, a name
is about the one that has it; one that neither has is an error.
"""

from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from typing import Any, Final

from karat.data.queries import Dataset
from karat.reading.meaning.aliases import (
    GOLD,
    RETRIEVED,
    WRAPPED,
    ask,
    attributes,
    known_as,
)
from karat.reading.meaning.documents import is_pair
from karat.reading.meaning.values import is_list, unpack

INSIDE: Final = {
    "document": "id",
    "score": "score",
    "distance": "distance",
    "text": "text",
    "grade": "grade",
}
"""Our field of a document -> what readers of single documents call it."""

_OF_RUNS: Final = RETRIEVED | {
    *("retrieved_scores", "retrieved_distances", "score", "rank", "distance"),
}
_OF_GOLD: Final = GOLD | {"grade", "relevant_grades"}
_DEEPEST: Final = 5
_PLAIN: Final = (str, bytes, int, float, type(None))


def mapping_of(role: str | None, mapping: Mapping[str, str]) -> dict[str, str]:
    """The part of a mapping that is about a file of that role."""
    others = {"run": _OF_GOLD, "gold": _OF_RUNS}.get(role or "", frozenset())
    return {ours: theirs for ours, theirs in mapping.items() if ours not in others}


def shared_names(mapping: Mapping[str, str], other: object) -> frozenset[str]:
    """Our names in a mapping that may be about the other one of run and gold only."""
    if isinstance(other, Dataset):
        names = other.mapping.values()
        return frozenset(ours for ours, theirs in mapping.items() if theirs in names)
    return frozenset(mapping.keys() - _OF_RUNS - _OF_GOLD)


def value_at(record: object, path: str) -> Any:
    """A field by its name, or by the dotted path to it; a list gives one value each."""
    found = _get(record, path)
    if found is not None or "." not in path:
        return found
    first, *rest = path.split(".")
    return _descend(_get(record, first), rest)


def _get(thing: object, name: str) -> Any:
    """A field of a mapping, or an attribute of an object."""
    if isinstance(thing, Mapping):
        return thing.get(name)
    found = None if isinstance(thing, _PLAIN) else getattr(thing, name, None)
    return None if callable(found) else found


def _descend(value: Any, parts: list[str]) -> Any:
    if not parts:
        return value
    value = unpack(value)
    if is_list(value):
        found = [_descend(entry, parts) for entry in value]
        return None if found and all(entry is None for entry in found) else found
    return _descend(_get(value, parts[0]), parts[1:])


def list_with(record: Mapping[Any, Any], path: str) -> str | None:
    """The one field that holds a list of objects with that path, if there is one."""
    found = [
        str(name)
        for name, value in record.items()
        if is_list(documents := unpack(value))
        and any(value_at(document, path) is not None for document in documents)
    ]
    return found[0] if len(found) == 1 else None


def paths_to(record: object, ours: AbstractSet[str], before: str = "") -> Iterator[str]:
    """The paths to fields inside others that may hold what is looked for."""
    for name, value in record.items() if isinstance(record, Mapping) else ():
        path = f"{before}{name}"
        listed = is_list(value) and value and isinstance(value[0], str | Mapping)
        known = known_as(str(name)) in ours
        if before and (known if not listed else known or ours == RETRIEVED):
            yield path
        elif path.count(".") < _DEEPEST:
            yield from paths_to(value, ours, f"{path}.")


def rename_inside(
    value: Any, names: Mapping[str, str]
) -> tuple[Any, Mapping[str, str]]:
    """The documents of a list with fields of theirs under our names; and which."""
    documents = unpack(value)
    if not is_list(documents):
        return value, {}
    result, found = [], dict[str, str]()
    for entry in documents:
        if isinstance(entry, list) and not is_pair(entry):
            inner, more = rename_inside(entry, names)
            result.append(inner)
            found |= more
            continue
        document = entry[0] if is_pair(entry) else entry
        given = {ours: value_at(document, theirs) for ours, theirs in names.items()}
        given = {ours: there for ours, there in given.items() if there is not None}
        found |= {ours: names[ours] for ours in given}
        document = renamed(document, given) if given else document
        result.append((document, entry[1]) if is_pair(entry) else document)
    return result, found


def renamed(document: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """A document with what the user named under our names, whatever wraps it."""
    own = {INSIDE[ours]: value for ours, value in given.items()}
    fields = {**document} if isinstance(document, Mapping) else attributes(document)
    inner = ask(fields, WRAPPED)
    if inner is not None and not isinstance(inner, _PLAIN):
        fields = {n: value for n, value in fields.items() if n not in WRAPPED}
        inside = inner if isinstance(inner, Mapping) else attributes(inner)
        fields = {**inside, **fields}
    return {**fields, **own}


def names_inside(value: Any) -> Iterable[str]:
    """The fields or attributes of the first document of a list."""
    documents = unpack(value)
    first = documents[0] if is_list(documents) and documents else None
    first = first[0] if is_pair(first) else first
    names = first if isinstance(first, Mapping) else getattr(first, "__dict__", ())
    return [str(name) for name in names]
