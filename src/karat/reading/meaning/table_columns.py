"""Tables: what their columns are, and what they look like in plain Python."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from numbers import Real
from typing import Any, TypeAlias

from karat.reading.meaning.aliases import (
    GOLD,
    RETRIEVED,
    closest,
    infer,
    is_row,
    names_fields,
)
from karat.reading.meaning.values import is_list
from karat.reading.streams import Source

__all__ = [
    "COLUMNS",
    "Batch",
    "Batches",
    "Rows",
    "holds_columns",
    "holds_rows",
    "named_rows",
    "read_as_one",
    "reading",
    "system_column",
    "unread",
]

COLUMNS = ("id", "document", "score", "rank", "grade", "text", "query", "distance")
"""The columns a row is read from, in the order `Table.take` wants their values."""

_SYSTEMS = ("system", "run", "run_id", "run_name", "retriever", "model")
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


def system_column(names: Iterable[str]) -> str | None:
    """The column that seems to tell the systems in one table apart.

    Example:
        >>> system_column(["query_id", "System", "doc_id", "score"])
        'System'
    """
    return next((name for name in names if name.lower() in _SYSTEMS), None)


def unread(
    names: Iterable[str], fields: Mapping[str, str], system: str | None
) -> list[str]:
    """The columns that are neither read nor name a system."""
    return [name for name in names if name not in {*fields.values(), system}]


def read_as_one(column: str | None) -> str:
    """What is to be said of a table of several systems that nobody asked to split."""
    return f"values of {column!r} were read as one system; --by splits them"


Batch: TypeAlias = list[tuple[int, list[Any]]]
"""Some rows of a table, each with its line."""
Batches: TypeAlias = Iterator[Batch]


class Rows:
    """The records of a table: the names of its columns, and its rows in batches."""

    def __init__(self, header: list[str], batches: Batches) -> None:
        self.header = header
        self.batches = batches

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for line, row in chain.from_iterable(self.batches):
            cells = zip(self.header, row, strict=True)
            yield line, {name: cell or None for name, cell in cells}


def reading(source: Source, fields: Mapping[str, str]) -> tuple[str, str | None]:
    """Whether the table is read as run or gold, and which column holds its numbers."""
    if "id" not in fields and "text" in fields:
        raise source.error("holds texts but no queries: a corpus, not a run or gold")
    for ours in ("id", "document"):
        if ours not in fields:
            raise source.error(
                f"no column holds the {'query' if ours == 'id' else 'document'} id; "
                f"{_found(fields)}",
                hint=closest([ours], fields.values()),
            )
    if source.role == "samples":
        raise source.error(
            "a table with one row per document holds a run or gold, not both",
            hint="give the gold apart",
        )
    # Whoever names the ranks, and no scores, wants them.
    told = source.mapping.keys() & {"score", "rank", "distance"} == {"rank"}
    numbers = ("rank",) if told else ("score", "rank", "distance")
    ranked = next((f for f in numbers if f in fields), None)
    role = source.role or _role(source, fields, ranked)
    if role == "gold":
        if "rank" in fields and "grade" not in fields:
            raise source.error(
                f"ranks documents ({fields['rank']}) and has no grades: it is a run, "
                "but gold was asked for",
                hint="swapped files? if not, --map grade=COLUMN names the grades",
            )
        return role, next((f for f in ("grade", "score") if f in fields), None)
    if ranked is None and "grade" in fields:
        raise source.error(
            f"holds grades ({fields['grade']}), but no score or rank: is it gold?",
            hint=closest(["score"], fields.values()),
        )
    return role, ranked


def _role(source: Source, fields: Mapping[str, str], ranked: str | None) -> str:
    if ranked and "grade" in fields:
        raise source.error(
            f"holds both {fields[ranked]} and {fields['grade']}: "
            "say whether it is read as run or as gold",
            hint="a relevant document that was not retrieved needs a row too",
        )
    # BEIR calls its grades scores; its name for documents gives it away.
    if "grade" in fields or fields["document"].lower() in {"corpus-id", "corpus_id"}:
        return "gold"
    if ranked is None:
        raise source.error("lists documents without numbers: say whether run or gold")
    return "run"


def _found(fields: Mapping[str, str]) -> str:
    return f"columns understood: {', '.join(fields.values()) or 'none'}"
