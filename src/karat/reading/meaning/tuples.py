"""Tables in plain Python: rows as tuples or objects, columns in a mapping."""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from karat.reading.meaning.aliases import GOLD, RETRIEVED, infer, is_row, names_fields
from karat.reading.meaning.values import is_list

__all__ = ["holds_columns", "holds_rows", "named_rows"]

_NUMBER = "number"
# The kinds of the values of a row, text or number, and what they are.
_ROWS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile("ttn|tnn|ntn"), ("query_id", "doc_id", _NUMBER)),
    (re.compile("[tn][tn]tn"), ("query_id", "", "doc_id", _NUMBER)),
    (re.compile("[tn]tnt"), ("query_id", "doc_id", _NUMBER, "")),
    (re.compile("[tn]t[tn]nn[tn]"), ("query_id", "", "doc_id", "rank", "score", "")),
)
_FEW = 40
_ENOUGH = 100


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
