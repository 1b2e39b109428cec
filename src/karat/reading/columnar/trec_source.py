"""TREC runs as rows: a file is read chunk by chunk, its lines split into columns."""

import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import BinaryIO, NoReturn, TypeAlias

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.runs import Notice
from karat.errors import FormatError
from karat.reading.columnar.blocks import Batch, Field, Piece, RunSource
from karat.reading.columnar.byte_column import ByteColumn
from karat.reading.columnar.decimals import numbers
from karat.reading.columnar.run import ColumnarRun
from karat.reading.columnar.trec_lines import (
    BOM,
    RUN,
    Chunk,
    Malformed,
    checked_lines,
    chunks,
    columns,
    nothing_in,
)
from karat.reading.streams import BLOCK, STDIN, open_binary, path_of

__all__ = ["TrecRun"]

Input: TypeAlias = str | os.PathLike[str] | bytes | Callable[[], BinaryIO]


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
        self.tag = ""
        self._source = source
        self._block = block

    def pieces(self, *fields: Field) -> Iterator[Piece]:
        """Chunks of the file; fields cannot be read apart."""
        del fields
        # Freed at once, which teaches glibc to keep freed memory of up to this size:
        # each chunk then reuses the pages of the one before, without faulting in new.
        np.empty(1 << 24, np.uint8)
        last = None
        try:
            with self._open() as stream:
                for chunk in chunks(stream, self._block):
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

    def _read(self, chunk: Chunk) -> Iterator[Batch]:
        try:
            batch = _Lines(chunk)
        except Malformed as problem:
            self._explain(problem)
        if len(batch.score):
            yield batch

    def _open(self) -> BinaryIO:
        """The file from the start; what can be read only once is kept."""
        if callable(self._source):
            return self._source()
        if not isinstance(self._source, bytes) and _is_pipe(self._source):
            with open_binary(self._source) as stream:
                self._source = stream.read()
        return open_binary(self._source)

    def _explain(self, problem: Malformed) -> NoReturn:
        with self._open() as stream:
            deque(checked_lines(stream, RUN, self.path, problem.offset), maxlen=0)
        raise FormatError("a line is malformed", path=self.path)


class _Lines(Batch):
    """The lines of a chunk.

    Raises:
        Malformed: a line is not as it should be.
    """

    def __init__(self, chunk: Chunk) -> None:
        (self.query, self.document, score), self.ignored = columns(
            chunk, RUN, (0, 2, 4)
        )
        try:
            self.score = numbers(score)
        except ValueError:
            raise Malformed(chunk.offset) from None

    def queries(self) -> tuple[Ints, ByteColumn, Ints]:
        """The groups of lines with one query."""
        start = self.query.starts()
        some = self.query.view(start)
        first, which = some.distinct()
        return start, some.view(first), which

    def documents(self) -> ByteColumn:
        """The document of each line."""
        return self.document

    def values(self) -> Floats:
        """The score of each line."""
        return self.score


def _is_pipe(path: str | os.PathLike[str]) -> bool:
    """Whether the path can be read only once."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  a str stays as it was written
    except (OSError, ValueError):
        return path == STDIN
    return path == STDIN or stat.S_ISFIFO(mode)
