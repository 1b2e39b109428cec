"""TREC runs and qrels: read as trec_eval reads them, but checked.

A line of a run is `query Q0 document rank score tag`; a line of qrels is `query
iteration document grade`.
"""

import io
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import BinaryIO, NoReturn, TypeAlias

import numpy as np

from karat.data.gold import JUDGES, PEOPLE
from karat.data.runs import Notice
from karat.errors import FormatError
from karat.reading.columnar.trec_lines import (
    BOM,
    QRELS,
    RUN,
    Chunk,
    Malformed,
    checked_lines,
    columns,
    nothing_in,
    whole_queries,
)
from karat.reading.columns.decimals import number, numbers
from karat.reading.columns.rankings import Rankings
from karat.reading.columns.run import ColumnarRun, RunSource
from karat.reading.problems import Notes
from karat.reading.streams import BLOCK, STDIN, open_binary, path_of, read_lines

Input: TypeAlias = str | os.PathLike[str] | bytes | Callable[[], BinaryIO]

_SIGNED = (JUDGES.encode(), PEOPLE.encode())


class TrecRun(ColumnarRun):
    r"""A run in a TREC file, which is read when asked and never kept.

    Documents are ordered by score and then by id, both descending, whatever the order
    and the ranks in the file. Scores and ids are compared as trec_eval does.

    Attributes:
        name: how reports call the system.

    Example:
        >>> from karat.data.policies import Policies
        >>> run = TrecRun(b"q1 Q0 d7 1 0.9 mine\nq1 Q0 d3 2 0.8 mine\n")
        >>> run.locate({"q1": {"d3": 1}}, judged=False, policies=Policies()).rank
        array([2])
    """

    def __init__(
        self,
        source: Input,
        name: str | None = None,
        *,
        path: str | None = None,
        block: int = 2 * BLOCK,
    ) -> None:
        """Say where the run is; nothing is read yet.

        Args:
            source: a path, the bytes themselves, or a function that opens the file from
                the start each time it is called.
            name: how reports call the system; the file's name if not given.
            path: how errors call the file; its path if not given.
            block: how many bytes to read at a time.
        """
        path = path or path_of(source)
        name = name or ("stdin" if path == STDIN else os.path.basename(path))  # noqa: PTH119
        self._lines = _TrecSource(source, path, block)
        super().__init__(self._lines, name)

    @property
    def tag(self) -> str:
        """The tag in the last line, once documents have been located."""
        return self._lines.tag


class _TrecSource(RunSource):
    def __init__(self, source: Input, path: str, block: int) -> None:
        self.path: str = path
        self.sort = f"sort -s -k1,1 {path}"
        self.tag = ""
        self._source = source
        self._block = block

    def parts(self, *, texts: bool = False) -> Iterator[Callable[[], Rankings]]:
        """Chunks of the file, cut between two queries."""
        del texts
        # Freed at once, which teaches glibc to keep freed memory of up to this size:
        # each chunk then reuses the pages of the one before, without faulting in new.
        np.empty(1 << 24, np.uint8)
        last = None
        try:
            with self._open() as stream:
                for chunk in whole_queries(stream, self._block):
                    last = last if (tag := chunk.tag) is None else tag
                    yield partial(self._read, chunk)
        except Malformed as problem:
            self._explain(problem)
        if last is None:
            with self._open() as stream:
                raise nothing_in(stream.read(BLOCK), self.path)
        self.tag = last.decode("utf-8", "replace")

    def repeated(self, query: str, document: str) -> FormatError:
        """Where the document is listed for the first and for the second time."""
        pair = [query.encode(), document.encode()]
        with self._open() as stream:
            lines = (line for line in enumerate(stream, 1) if pair[1] in line[1])
            first, second = islice(
                (
                    line
                    for line, text in lines
                    if text.removeprefix(BOM).split(None, 3)[0:3:2] == pair
                ),
                2,
            )
        return FormatError(
            f"document {document!r} is listed twice, first in line {first}",
            path=self.path,
            line=second,
            query=query,
        )

    def notices(self, ignored: int) -> tuple[Notice, ...]:
        """Lines with more than six columns."""
        if not ignored:
            return ()
        what = "more than six columns; what follows the tag was ignored"
        text, one = f"lines have {what}", f"line has {what}"
        return (Notice("columns", ignored, text, one=one),)

    def _read(self, chunk: Chunk) -> Rankings:
        try:
            (query, document, score), remarks = columns(chunk, RUN, (0, 2, 4))
            return Rankings.of(query, document, numbers(score), ignored=remarks)
        except (Malformed, ValueError):
            self._explain(Malformed(chunk.offset))

    def _open(self) -> BinaryIO:
        """The file from the start; what can be read only once is kept."""
        if callable(self._source):
            return self._source()
        if not isinstance(self._source, bytes) and _is_pipe(self._source):
            with open_binary(self._source) as stream:
                self._source = read_lines(stream)
        return open_binary(self._source)

    def _explain(self, problem: Malformed) -> NoReturn:
        with self._open() as stream:
            deque(checked_lines(stream, RUN, self.path, problem.offset), maxlen=0)
        raise FormatError("a line is malformed", path=self.path)


def _is_pipe(path: str | os.PathLike[str]) -> bool:
    """Whether the path can be read only once."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  a str stays as it was written
    except (OSError, ValueError):
        return path == STDIN
    return path == STDIN or stat.S_ISFIFO(mode)


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
            data = read_lines(stream)
    else:
        data = read_lines(source)
    data = data.removeprefix(BOM)
    labels = _even_qrels(data)
    if labels is None:
        labels = _any_qrels(data, path, notes or Notes())
    if not labels:
        raise nothing_in(data, path)
    return labels


def _even_qrels(data: bytes) -> dict[str, dict[str, float]] | None:
    """The quick way, all lines at once; None when it takes a closer look."""
    try:
        found, _ = columns(Chunk.of(data + b"\n"), QRELS, (0, 2, 3))
        grades = numbers(found[2]).tolist()
    except (Malformed, ValueError):
        return None
    queries, documents = found[0].names(), found[1].names()
    labels: dict[str, dict[str, float]] = {q: {} for q in dict.fromkeys(queries)}
    rows = map(labels.__getitem__, queries)
    for row, document, grade in zip(rows, documents, grades, strict=True):
        row[document] = grade
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
