"""Runs and gold handed over as Python objects: dictionaries and lists.

The common case, ids that are strings, is recognised without touching every id of a
run, so that wrapping one costs next to nothing; everything else is converted once.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from math import isfinite
from typing import Any

from karat.data.gold import Gold
from karat.data.identity import as_id
from karat.data.queries import Loaded
from karat.data.rankings import RankedRun, ScoredRun
from karat.data.runs import Notice
from karat.errors import DataError

__all__ = ["gold_from_mapping", "number_rows", "run_from_mapping"]


def number_rows(rows: Sequence[Any]) -> dict[str, Any]:
    """Rows without ids, such as a list of lists, named by their position from 0."""
    return {str(number): row for number, row in enumerate(rows)}


def run_from_mapping(rankings: Mapping[Any, Any], name: str = "run") -> Loaded:
    """A run from `{query: {document: score}}` or `{query: [document, ...]}`."""
    scored = _is_mapping_of_mappings(rankings)
    seen = {*map(type, rankings), *map(type, _ends(rankings))}
    notices: tuple[Notice, ...] = ()
    if not seen <= {str}:
        rankings, notices = _coerce(rankings, scored=scored)
    run = ScoredRun(rankings, name) if scored else RankedRun(rankings, name)
    return Loaded(run=run, format="objects", notices=notices)


def gold_from_mapping(labels: Mapping[Any, Any], name: str = "gold") -> Loaded:
    """Gold from `{query: {document: grade}}` or `{query: [document, ...]}`."""
    graded = _is_mapping_of_mappings(labels)
    notices: tuple[Notice, ...] = ()
    seen = {*map(type, labels), *map(type, chain.from_iterable(labels.values()))}
    if not seen <= {str}:
        labels, notices = _coerce(labels, scored=graded)
    if graded:
        _check_grades(labels)
    else:
        labels = {query: dict.fromkeys(ids, 1.0) for query, ids in labels.items()}
    return Loaded(gold=Gold(labels, name=name), format="objects", notices=notices)


def _is_mapping_of_mappings(rows: Mapping[Any, Any]) -> bool:
    """Whether the values are mappings; refuses values of both kinds or of neither."""
    kinds = {*map(type, rows.values())}
    if kinds == {dict}:
        return True
    if kinds <= {list, tuple}:
        return False
    mapping = {issubclass(kind, Mapping) for kind in kinds}
    for query, row in rows.items():
        fits = isinstance(row, Mapping | Sequence) and not isinstance(row, str | bytes)
        if not fits or len(mapping) > 1:
            raise DataError(
                "every query needs a list of documents, or every query a mapping; "
                f"this one has {type(row).__name__}",
                query=query,
            )
    return mapping == {True}


def _ends(rankings: Mapping[Any, Any]) -> Iterator[Any]:
    """The first and last document of every ranking: mixed ids show at the ends."""
    rows = rankings.values()
    firsts = map(next, map(iter, rows), repeat(""))
    return chain(firsts, map(next, map(reversed, rows), repeat("")))


def _coerce(
    rows: Mapping[Any, Any], *, scored: bool
) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The same rows with every id as text, and a notice saying so."""
    plain: dict[str, Any] = {}
    examples: list[str] = []
    count = 0
    for query, row in rows.items():
        name = as_id(query, "query id")
        if name in plain:
            raise DataError("two queries have this id after reading", query=name)
        ids = [as_id(document, query=query) for document in row]
        changed = [d for d in (query, *row) if not isinstance(d, str)]
        count += len(changed)
        if len(examples) < 3:  # noqa: PLR2004
            examples += [repr(d) for d in changed[: 3 - len(examples)]]
        if scored:
            plain[name] = dict(zip(ids, row.values(), strict=True))
            if len(plain[name]) < len(ids):
                raise DataError("a document occurs as number and as text", query=name)
        else:
            plain[name] = ids
    text = "ids that are numbers were read as text"
    return plain, (Notice("coerced", count, text, tuple(examples)),)


def _check_grades(labels: Mapping[str, Mapping[str, Any]]) -> None:
    if {*map(type, chain.from_iterable(map(dict.values, labels.values())))} == {int}:  # type: ignore[arg-type]
        return
    for query, row in labels.items():
        for document, grade in row.items():
            try:
                finite = isfinite(grade) and not isinstance(grade, str)
            except TypeError:
                finite = False
            if not finite:
                raise DataError(
                    f"the grade of document {document!r} must be a finite number, "
                    f"got {grade!r}",
                    query=query,
                )
