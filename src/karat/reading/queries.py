"""The queries themselves: their texts and tags, without run or gold."""

import os
from collections.abc import Mapping
from typing import Any

from karat.data.queries import Query
from karat.errors import DataError, FormatError
from karat.reading.meaning.shapes import interpret
from karat.reading.meaning.values import as_records
from karat.reading.objects import with_lists
from karat.reading.readers import load
from karat.reading.streams import Source


def read_queries(source: Any) -> Mapping[str, Query]:
    """What is known of queries: texts by id or in a list, records, or a file.

    Example:
        >>> read_queries({"q1": "When do shops open?"})["q1"].text
        'When do shops open?'
        >>> [*read_queries(["When do shops open?", "And on Sundays?"])]
        ['0', '1']
    """
    if isinstance(source, Mapping):
        return {
            str(name): fact
            if isinstance(fact, Query)
            else Query(str(name), None if fact is None else str(fact))
            for name, fact in source.items()
        }
    if isinstance(source, str | os.PathLike):
        queries = load(source, role="queries").queries
        if not queries:
            raise FormatError("holds no texts or tags of queries", path=source)
        return queries
    listed = as_records(with_lists(source))
    if isinstance(listed, list | tuple) and all(isinstance(q, str) for q in listed):
        return {str(n): Query(str(n), text) for n, text in enumerate(listed)}
    if not isinstance(listed, list | tuple) or not listed:
        raise DataError(
            f"cannot read queries from {type(source).__name__}",
            hint="pass texts by id, a list of texts or records, or a path",
        )
    return interpret(listed, Source("queries", "queries"), "objects").queries
