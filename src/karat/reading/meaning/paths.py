"""Where a field lies: a name, or the path to it through objects and lists."""

from collections.abc import Mapping
from typing import Any

from karat.reading.meaning.values import is_list, unpack

__all__ = ["INSIDE", "list_with", "rename_inside", "value_at"]

INSIDE = {"document": "id", "score": "score", "text": "text", "grade": "grade"}
"""Our field of a document -> what readers of single documents call it."""


def value_at(record: Mapping[Any, Any], path: str) -> Any:
    """A field by its name, or by the dotted path to it; a list gives one value each.

    Example:
        >>> value_at({"hits": [{"meta": {"uid": "a"}}, {"meta": {}}]}, "hits.meta.uid")
        ['a', None]
    """
    if path in record or "." not in path:
        return record.get(path)
    value: Any = record
    first, *rest = path.split(".")
    return _descend(value.get(first), rest)


def _descend(value: Any, parts: list[str]) -> Any:
    if not parts:
        return value
    value = unpack(value)
    if is_list(value):
        found = [_descend(entry, parts) for entry in value]
        return None if found and all(entry is None for entry in found) else found
    if not isinstance(value, Mapping):
        return None
    return _descend(value.get(parts[0]), parts[1:])


def list_with(record: Mapping[Any, Any], path: str) -> str | None:
    """The one field that holds a list of objects with that path, if there is one.

    Example:
        >>> list_with({"id": 7, "top": [{"uid": "a"}], "tags": ["x"]}, "uid")
        'top'
    """
    found = [
        str(name)
        for name, value in record.items()
        if is_list(documents := unpack(value))
        and any(isinstance(d, Mapping) and value_at(d, path) for d in documents)
    ]
    return found[0] if len(found) == 1 else None


def rename_inside(
    value: Any, names: Mapping[str, str]
) -> tuple[Any, Mapping[str, str]]:
    """The documents of a list with fields of theirs under our names; and which.

    Args:
        value: a ranking or gold; only the objects in a list are looked into.
        names: our name -> theirs, or the path to it.

    Example:
        >>> rename_inside([{"uid": "a", "sim": 0.5}], {"document": "uid"})
        ([{'uid': 'a', 'sim': 0.5, 'id': 'a'}], {'document': 'uid'})
    """
    documents = unpack(value)
    if not is_list(documents):
        return value, {}
    renamed, found = [], dict[str, str]()
    for document in documents:
        given = {}
        if isinstance(document, Mapping):
            given = {ours: value_at(document, theirs) for ours, theirs in names.items()}
            given = {ours: there for ours, there in given.items() if there is not None}
        found |= {ours: names[ours] for ours in given}
        own = {INSIDE[ours]: there for ours, there in given.items()}
        renamed.append({**document, **own} if own else document)
    return renamed, found
