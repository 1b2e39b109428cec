"""Tables in plain Python: rows as tuples or objects, columns in a mapping."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from karat.reading.meaning.aliases import GOLD, RETRIEVED, infer, is_row, names_fields
from karat.reading.meaning.values import is_list

__all__ = ["holds_columns", "holds_rows", "named_rows"]

_ROW = 3
_FEW = 40
_ENOUGH = 100


def holds_rows(values: Sequence[Any]) -> bool:
    """Whether a list holds rows of query, document and number, as tuples or the like.

    Example:
        >>> holds_rows([("q1", "d7", 0.5)]), holds_rows([["d7", "d3", "d1"]])
        (True, False)
    """
    first: Any = values[0] if values else None
    if hasattr(first, "_asdict"):
        return is_row(infer(first._fields))
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        return is_row(infer(vars(first)))
    return all(
        isinstance(row, list | tuple)
        and len(row) == _ROW
        and all(isinstance(name, str | int) for name in row[:2])
        and any(isinstance(name, str) for name in row[:2])
        and isinstance(row[2], Real)
        for row in values[:_ENOUGH]
    ) and bool(values)


def named_rows(values: Sequence[Any], role: str | None) -> Iterator[Any]:
    """Tuples of query, document and number as records."""
    number = "grade" if role == "gold" else "score"
    for row in values:
        if hasattr(row, "_asdict"):
            yield row._asdict()
        elif is_list(row):
            yield dict(zip(("query_id", "doc_id", number), row, strict=False))
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
