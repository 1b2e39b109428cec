"""TREC qrels: judgements, read as trec_eval reads them, but checked.

A line is `query iteration document grade`; the iteration is not looked at.
"""

import io
import os
from typing import BinaryIO

from karat.data.gold import JUDGES, PEOPLE
from karat.errors import FormatError
from karat.reading.columnar.decimals import number
from karat.reading.columnar.trec_lines import (
    BOM,
    QRELS,
    Chunk,
    checked_lines,
    is_even,
    nothing_in,
)
from karat.reading.problems import Notes
from karat.reading.streams import open_binary, path_of

__all__ = ["read_qrels", "read_sources", "read_subtopics"]

# Control characters at which str.split would cut a word, and trec_eval would not.
_SEPARATORS = "\x1c\x1d\x1e\x1f"
_SIGNED = (JUDGES.encode(), PEOPLE.encode())


def read_qrels(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    name: str | None = None,
    notes: Notes | None = None,
) -> dict[str, dict[str, float]]:
    r"""Judgements from qrels: the grade of each judged document, by query.

    Args:
        source: a path, the bytes themselves, or an open file.
        name: how errors call the file; its path if not given.
        notes: where documents that are judged twice go, if the caller wants them; the
            first grade counts.

    Raises:
        FormatError: the file cannot be read, or a line is not as it should be.

    Example:
        >>> read_qrels(b"q1 0 d7 2\nq1 0 d3 0\n")
        {'q1': {'d7': 2.0, 'd3': 0.0}}
    """
    path = name or path_of(source)
    if isinstance(source, str | os.PathLike | bytes):
        with open_binary(source) as stream:
            data = stream.read()
    else:
        data = source.read()
    data = data.removeprefix(BOM)
    labels = _even_qrels(data)
    if labels is None:
        labels = _any_qrels(data, path, notes or Notes())
    if not labels:
        raise nothing_in(data, path)
    return labels


def _even_qrels(data: bytes) -> dict[str, dict[str, float]] | None:
    """The quick way, all lines at once; None when it takes a closer look."""
    if not data or not is_even(Chunk.of(data + b"\n"), QRELS):
        return None
    text = data.decode()
    if text.isascii() and not any(map(text.__contains__, _SEPARATORS)):
        words = text.split()
    else:
        words = [word.decode() for word in data.split()]
    queries, documents, grades = words[0::4], words[2::4], words[3::4]
    try:
        value = {grade: number(grade.encode()) for grade in set(grades)}
    except ValueError:
        return None
    labels: dict[str, dict[str, float]] = {q: {} for q in dict.fromkeys(queries)}
    rows = map(labels.__getitem__, queries)
    for row, document, grade in zip(rows, documents, grades, strict=True):
        row[document] = value[grade]
    distinct = sum(map(len, labels.values()))
    return labels if distinct == len(queries) else None


def _any_qrels(data: bytes, path: str, notes: Notes) -> dict[str, dict[str, float]]:
    """The slow way, which knows line numbers."""
    labels: dict[str, dict[str, float]] = {}
    seen: dict[tuple[str, str], int] = {}
    for line, words in checked_lines(io.BytesIO(data), QRELS, path):
        query, _, document, grade = (word.decode() for word in words)
        before = seen.setdefault((query, document), line)
        if before != line:
            problem = f"document {document!r} is judged twice, first in line {before}"
            notes.problem(FormatError(problem, path=path, line=line, query=query))
            continue
        labels.setdefault(query, {})[document] = number(grade.encode())
    return labels


def read_subtopics(data: bytes, path: str) -> dict[str, dict[str, dict[str, float]]]:
    r"""Judgements of each subtopic of a query, as TREC's diversity tracks write them.

    Such a file names the subtopic where others have the iteration; it is one when some
    query has several. Of another file there is nothing to say.

    Example:
        >>> read_subtopics(b"q1 1 d7 2\nq1 2 d7 1\n", "diversity.qrels")
        {'q1': {'d7': {'1': 2.0, '2': 1.0}}}
    """
    if data.count(b" 0 ") + data.count(b"\t0\t") >= data.count(b"\n"):
        return {}
    column = {(*line.split(None, 2)[:2],) for line in data.split(b"\n")} - {()}
    subtopics = [
        pair[0]
        for pair in column
        if not (pair[-1].startswith(_SIGNED) or pair[0].startswith(b"#"))
    ]
    if len({*subtopics}) == len(subtopics):
        return {}
    labels: dict[str, dict[str, dict[str, float]]] = {}
    for line, words in checked_lines(io.BytesIO(data), QRELS, path):
        query, topic, document, grade = (word.decode() for word in words)
        grades = labels.setdefault(query, {}).setdefault(document, {})
        if topic in grades:
            problem = f"document {document!r} is judged twice for subtopic {topic!r}"
            raise FormatError(problem, path=path, line=line, query=query)
        grades[topic] = number(grade.encode())
    return labels


def read_sources(data: bytes) -> dict[str, dict[str, str]]:
    r"""Who labelled what, by what is signed in the column called iteration.

    Example:
        >>> read_sources(b"q1 judge:small d7 2\nq1 0 d3 0\n")
        {'q1': {'d7': 'judge:small'}}
    """
    sources: dict[str, dict[str, str]] = {}
    for line in data.splitlines() if any(mark in data for mark in _SIGNED) else ():
        words = line.split()
        if len(words) == QRELS.count and words[1].startswith(_SIGNED):
            query, who, document, _ = (word.decode() for word in words)
            sources.setdefault(query, {})[document] = who
    return sources
