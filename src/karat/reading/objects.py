"""Runs and gold in the plainest form: dictionaries and lists of ids.

Most calls come this way, so it is the quick way: ids that are strings are recognised
without touching every id of a run, and nothing is copied. Whatever is not this plain
is left to the loaders that read anything.
"""

import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice, repeat
from numbers import Real
from operator import is_
from typing import Any

import numpy as np

from karat.catalogue import Catalogue
from karat.data.gold import Gold
from karat.data.memory_runs import RankedRun, ScoredRun
from karat.data.queries import Dataset, Strings
from karat.data.tables import counted
from karat.errors import FormatError, MismatchError
from karat.reading.meaning.aliases import GOLD, RETRIEVED, infer, is_row, names_fields
from karat.reading.meaning.gold import note_repeated
from karat.reading.meaning.ids_or_texts import are_prose
from karat.reading.meaning.order import note_ascending
from karat.reading.meaning.shapes import note_numbered
from karat.reading.meaning.values import holds_rows
from karat.reading.source import Notes

# Most callers have no frames, and what reads them takes long to load.
FRAMES: Catalogue[Callable[..., Any]] = Catalogue(
    "frame reader",
    {
        "load": "karat.reading.frames:load_frame",
        "split": "karat.reading.frames:split_distributed",
        "records": "karat.reading.frames:table_records",
    },
)

CHROMA = {
    "ids": "id",
    "documents": "text",
    "distances": "distance",
    "metadatas": "metadata",
    **dict.fromkeys(("embeddings", "uris", "data", "included"), ""),
}
"""What an answer of Chroma holds -> our name of it, where it is read."""
_FORMAT = "plain"
_SCALARS = {str, int, float, bool, type(None)}
_MANY = 4096
_FEW = 40
_SAMPLE = 256


def plain_run(source: Any, name: str = "run") -> Dataset | None:
    """A run from `{query: {document: score}}`, `{query: [document, ...]}` or lists.

    None when the source is anything else.
    """
    rankings, scored = _by_query(source)
    if rankings is None or (scored and not _holds_numbers(rankings)):
        return None
    if not _is_text(rankings, _some_ids(rankings)):
        return None
    if not scored and are_prose(rankings.values()):
        return None
    notes = _numbered(source)
    if scored:
        note_ascending(rankings, map(dict.values, rankings.values()), notes)
    run = ScoredRun(rankings, name) if scored else RankedRun(rankings, name)
    return Dataset(run, format=_FORMAT, notices=notes.notices(), bare=not scored)


def plain_gold(source: Any, name: str = "gold") -> Dataset | None:
    """Gold from `{query: {document: grade}}`, `{query: [document, ...]}` or lists.

    None when the source is anything else.
    """
    labels, graded = _by_query(source)
    if labels is None or (graded and not _holds_numbers(labels)):
        return None
    notes = _numbered(source)
    strings = None
    if not graded:
        if not _is_text(*labels.values()) or are_prose(labels.values()):
            return None
        strings = (Gold(name=name), (Strings("passages", "", labels),))
        for ids in labels.values():
            note_repeated(ids, notes)
        labels = {query: dict.fromkeys(ids, 1.0) for query, ids in labels.items()}
    gold = Gold(labels, name=name)
    with suppress(struct.error):
        columns = gold.columns
        finite = np.count_nonzero(np.isfinite(columns.grade)) == len(columns.grade)
        if finite and _is_text(labels, columns.names):
            notices = notes.notices()
            return Dataset(gold=gold, format=_FORMAT, notices=notices, strings=strings)
    return None


def chroma_rankings(answer: Mapping[Any, Any]) -> list[list[dict[str, Any]]] | None:
    """The documents of each query from columns of lists, as Chroma answers.

    Example:
        >>> chroma_rankings({"ids": [["d1"], ["d2"]], "distances": [[0.1], [0.4]]})
        [[{'id': 'd1', 'distance': 0.1}], [{'id': 'd2', 'distance': 0.4}]]
    """
    ids = answer.get("ids")
    if not isinstance(ids, list) or not all(isinstance(row, list) for row in ids):
        return None
    names = {theirs: ours for theirs, ours in CHROMA.items() if ours}
    columns = {
        ours: answer[theirs]
        for theirs, ours in names.items()
        if answer.get(theirs) is not None
    }
    try:
        return [
            [dict(zip(columns, row, strict=True)) for row in zip(*rows, strict=True)]
            for rows in zip(*columns.values(), strict=True)
        ]
    except ValueError:
        problem = f"{', '.join(names)} must be lists of the same length"
        raise FormatError(problem) from None


def check_places(run: Dataset, gold: Dataset) -> None:
    """Lists without ids go together by position: they must be equally long."""
    if not run.notices or not gold.notices:
        return
    if not all(any(n.kind == "numbered" for n in d.notices) for d in (run, gold)):
        return
    retrieved = len(run.run.queries() if run.run else ())
    wanted = len(gold.gold.queries if gold.gold else ())
    if retrieved != wanted:
        raise MismatchError(
            "run and gold have no query ids and go together by position, but the run "
            f"has {counted(retrieved, 'query')} and the gold {wanted}",
            hint="an empty list stands for a query without documents",
        )


def with_lists(value: Any, levels: int = 2) -> Any:
    """The same with generators and arrays as lists, on the first levels.

    Example:
        >>> with_lists({"q1": (name for name in ["d2", "d1"])})
        {'q1': ['d2', 'd1']}
    """
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


def _by_query(source: Any) -> tuple[dict[Any, Any] | None, bool]:
    """Rows by query, numbered from 0 if without ids; and whether they hold numbers."""
    if isinstance(source, list | tuple):
        if holds_rows(source):
            return None, False
        source = {str(number): row for number, row in enumerate(source)}
    if not isinstance(source, dict) or _holds_columns(source):
        return None, False
    kinds = {*map(type, source.values())}
    if kinds == {dict}:
        return source, True
    return (source if kinds and kinds <= {list, tuple} else None), False


def _holds_columns(value: Mapping[Any, Any]) -> bool:
    """Whether the keys of a mapping are names of fields, not ids of queries."""
    if len(value) > _FEW or not names_fields(value):
        return False
    fields = infer(map(str, value))
    return is_row(fields) or bool(
        fields.keys() & (RETRIEVED | GOLD) and len(fields) > 1
    )


def _numbered(source: Any) -> Notes:
    notes = Notes()
    if not isinstance(source, dict):
        note_numbered(len(source), notes)
    return notes


def _holds_numbers(rows: dict[Any, dict[Any, Any]]) -> bool:
    """Whether the first value is a number; whoever uses the others checks them."""
    values = chain.from_iterable(map(dict.values, rows.values()))
    return isinstance(next(values, 0.0), (float, int, Real))


def _is_text(*ids: Iterable[Any]) -> bool:
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


def is_frame(thing: object) -> bool:
    """Whether something is a table of a DataFrame library.

    Example:
        >>> is_frame({"q1": ["d1"]})
        False
    """
    return (
        hasattr(thing, "__arrow_c_stream__")
        or hasattr(thing, "mapInArrow")
        or hasattr(thing, "__arrow_c_array__")
        or is_of("pandas", "DataFrame", thing)
        or is_of("polars", "LazyFrame", thing)
    )


def is_of(library: str, name: str, thing: object) -> bool:
    """Whether it is of a class of a library, if anybody has imported that."""
    kind = getattr(sys.modules.get(library), name, None)
    return kind is not None and isinstance(thing, kind)
