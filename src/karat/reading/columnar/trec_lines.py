"""Lines of TREC files: split into columns all at once, or one by one and checked.

Columns are separated by white space. Empty lines and lines that begin with `#` say
nothing; a `#` elsewhere belongs to an id.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, TypeAlias

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.errors import FormatError
from karat.reading.columns.decimals import PADDING, number
from karat.reading.columns.ids import ByteColumn
from karat.reading.streams import BLOCK

Span: TypeAlias = tuple[Ints, Ints]

BOM = b"\xef\xbb\xbf"
_LONGEST_LINE = 1 << 24
_BEGIN = len(PADDING)


class Malformed(Exception):  # noqa: N818  a message to who explains it, not to users
    """A line at or after this offset of the file is not as it should be."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some lines of a file.

    Attributes:
        text: `PADDING`, the lines up to `end`, anything, `PADDING`.
        end: behind the last line's newline.
        offset: where the lines stand in the file.
    """

    text: bytes
    end: int
    offset: int

    @classmethod
    def of(cls, lines: bytes, offset: int = 0) -> "Chunk":
        """Lines, of which the last one ends with a newline."""
        text = b"".join((PADDING, lines, PADDING))
        return cls(text, len(text) - len(PADDING), offset)

    @property
    def lines(self) -> bytes:
        """The lines themselves."""
        return self.text[_BEGIN : self.end]

    @property
    def tag(self) -> bytes | None:
        """The sixth column of the last line that says something; None without such."""
        end = self.end
        while end > _BEGIN:
            start = max(self.text.rfind(b"\n", 0, end - 1) + 1, _BEGIN)
            if found := _fields(self.text[start:end], RUN):
                return b"".join(found[RUN.count - 1 : RUN.count])
            end = start
        return None


def whole_queries(stream: BinaryIO, size: int = BLOCK) -> Iterator[Chunk]:
    """Cut a file between two queries, about every `size` bytes.

    Raises:
        Malformed: a line does not end.
    """
    text = stream.read(max(size, len(BOM)))
    offset = len(BOM) if text.startswith(BOM) else 0
    text = text.removeprefix(BOM)
    while block := stream.read(max(size, len(text))):
        end = _last_query(text)
        if end:
            yield Chunk.of(text[:end], offset)
        text, offset = text[end:] + block, offset + end
        if len(text) - text.rfind(b"\n") > _LONGEST_LINE:
            raise Malformed(offset)
    if text:
        yield Chunk.of(text.removesuffix(b"\n") + b"\n", offset)


def _last_query(text: bytes) -> int:
    """Where the lines of the last query begin; 0 where all lines are of one."""
    end = text.rfind(b"\n") + 1
    last: list[bytes] = []
    while end:
        start = text.rfind(b"\n", 0, end - 1) + 1
        word = text[start:end].split(None, 1)[:1]
        last = last or word
        if word != last and word:
            return end
        end = start
    return 0


@dataclass(frozen=True, slots=True)
class Layout:
    """What a line of a kind of file holds.

    Attributes:
        names: its columns.
        value: which of them is a number.
        most: how many columns a line may have; what follows the named ones is a remark.
    """

    names: tuple[str, ...]
    value: int
    most: int

    @property
    def count(self) -> int:
        """How many columns have a meaning."""
        return len(self.names)


QRELS = Layout(("query", "iteration", "document", "grade"), value=3, most=4)
RUN = Layout(("query", "Q0", "document", "rank", "score", "tag"), value=4, most=64)
"""trec_eval takes remarks behind the tag of a run, but none in qrels."""


def columns(
    chunk: Chunk, layout: Layout, wanted: Sequence[int]
) -> tuple[list[ByteColumn], int]:
    """The wanted columns of all lines, and how many lines have a remark.

    Raises:
        Malformed: it is no text, or a line has too few or too many columns.
    """
    if not _is_text(chunk):
        raise Malformed(chunk.offset)
    spans, remarks = _spans(chunk, layout, wanted), 0
    if spans is None:
        chunk, remarks = _tidy(chunk, layout)
        spans = _spans(chunk, layout, wanted) or []
    data = np.frombuffer(chunk.text, np.uint8)
    return [ByteColumn(data, start, stop - start) for start, stop in spans], remarks


def _is_text(chunk: Chunk) -> bool:
    if b"\0" in chunk.text:
        return False
    try:
        return chunk.text.isascii() or bool(chunk.lines.decode())
    except UnicodeDecodeError:
        return False


def _spans(chunk: Chunk, layout: Layout, wanted: Sequence[int]) -> list[Span] | None:
    """Where the wanted columns start and stop; None when lines are not all alike."""
    body = np.frombuffer(chunk.text, np.uint8, chunk.end)
    blank = (body - np.uint8(ord("\t"))) <= ord("\r") - ord("\t")
    blank |= body == ord(" ")
    newline = body == ord("\n")
    with_first = (0, *wanted)
    spans = _even_columns(blank, newline, layout.count, with_first)
    if spans is None:
        spans = _uneven_columns(blank, newline, layout.count, with_first)
    if spans is None or (body[spans[0][0]] == ord("#")).any():
        return None
    return spans[1:]


def _even_columns(
    blank: Bools, newline: Bools, count: int, wanted: Sequence[int]
) -> list[Span] | None:
    """The common case: one blank between two columns, none around them."""
    if (blank[_BEGIN:] & blank[_BEGIN - 1 : -1]).any():
        return None
    stops = np.flatnonzero(blank)[_BEGIN - 1 :]
    rows, left = divmod(len(stops) - 1, count)
    if left or np.count_nonzero(newline) != rows + _BEGIN:
        return None
    before = stops[:-1].reshape(rows, count)
    after = stops[1:].reshape(rows, count)
    if not newline[after[:, -1]].all():
        return None
    return [(before[:, column] + 1, after[:, column]) for column in wanted]


def _uneven_columns(
    blank: Bools, newline: Bools, count: int, wanted: Sequence[int]
) -> list[Span] | None:
    """Runs of blanks, blanks at the ends of lines, empty lines."""
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    starts, stops = edges[0::2], edges[1::2]
    per_line = np.diff(np.searchsorted(starts, np.flatnonzero(newline)), prepend=0)
    if not ((per_line == count) | (per_line == 0)).all():
        return None
    return [(starts[column::count], stops[column::count]) for column in wanted]


def _tidy(chunk: Chunk, layout: Layout) -> tuple[Chunk, int]:
    """The chunk without comments and remarks, and how many remarks there were."""
    lines, remarks = [], 0
    for line in chunk.lines.split(b"\n"):
        found = _fields(line, layout)
        if _miscounted(line, found, layout):
            raise Malformed(chunk.offset)
        if found:
            remarks += len(found) > layout.count
            lines.append(b" ".join(found[: layout.count]) + b"\n")
    return Chunk.of(b"".join(lines), chunk.offset), remarks


def _fields(line: bytes, layout: Layout) -> list[bytes]:
    """The columns of a line; none in an empty line or a comment."""
    found = line.split(None, layout.most)
    return [] if found and found[0].startswith(b"#") else found


def checked_lines(
    stream: BinaryIO,
    layout: Layout,
    path: str | os.PathLike[str],
    offset: int = 0,
    tell: Callable[[FormatError], None] | None = None,
) -> Iterator[tuple[int, list[bytes]]]:
    """The number and columns of every line that says something, from an offset on.

    This is the slow way to read a file, and the one that knows what to say of it.

    Args:
        stream: the file, from its start.
        layout: what a line should be.
        path: how errors call the file.
        offset: where to start, in bytes.
        tell: who is told of a line that is not as it should be, instead of raising.
    """
    count, left = 1, offset
    while left and (block := stream.read(min(left, BLOCK))):
        count += block.count(b"\n")
        left -= len(block)
    lines = iter(partial(stream.readline, _LONGEST_LINE), b"")
    for line, text in enumerate(lines, count):
        if line == 1 and not offset:
            text = text.removeprefix(BOM)  # noqa: PLW2901
        found = _fields(text, layout)
        problem, hint = _problem(text, found, layout)
        if problem:
            query = found[0].decode("utf-8", "replace") if found else None
            error = FormatError(problem, path=path, line=line, query=query, hint=hint)
            if tell is None:
                raise error
            tell(error)
        elif found:
            yield line, found


def _problem(line: bytes, found: list[bytes], layout: Layout) -> tuple[str, str | None]:
    """What is wrong with a line and what to do about it; nothing is an empty text."""
    if len(line) >= _LONGEST_LINE:
        return f"the line does not end within {_LONGEST_LINE >> 20} MB", None
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        problem = f"byte {line[error.start]:#x} at {error.start + 1} is not UTF-8"
        return problem, "save the file as UTF-8"
    if "\0" in text:
        return "a NUL byte, so this is not text", "save the file as UTF-8"
    if miscounted := _miscounted(line, found, layout):
        return miscounted
    try:
        number(found[layout.value] if found else b"0")
    except ValueError:
        word = found[layout.value].decode()[:40]
        name = layout.names[layout.value]
        return f"the {name} must be a finite number, got {word!r}", None
    return "", None


def _miscounted(
    line: bytes, found: list[bytes], layout: Layout
) -> tuple[str, str] | None:
    if found and not layout.count <= len(found) <= layout.most:
        hint = f"a line reads: {' '.join(layout.names)}"
        if layout is QRELS and len(line.split()) == RUN.count:
            hint += "; is it a run? then the files are swapped"
        return f"expected {layout.count} columns, found {len(line.split()):,}", hint
    if len(found) > layout.count and b"\r" in line.rstrip():
        # Several lines, which end as on old Macs.
        return "a carriage return within the line", "save the file with Unix line ends"
    return None


def nothing_in(data: bytes, path: str) -> FormatError:
    """What to say of a file in which no line says anything."""
    text = data.removeprefix(BOM).strip()
    problem = "there are only comments" if text else "the file is empty"
    return FormatError(problem, path=path)
