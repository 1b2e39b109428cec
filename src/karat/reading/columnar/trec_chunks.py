"""A file of lines cut into chunks, so that the lines of a query stay together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from karat.reading.columnar.words import PADDING
from karat.reading.streams import BLOCK

__all__ = ["BOM", "LONGEST_LINE", "Chunk", "Malformed", "chunks"]

BOM = b"\xef\xbb\xbf"
LONGEST_LINE = 1 << 24
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

    def backwards(self) -> Iterator[bytes]:
        """The lines one by one, from the last to the first."""
        end = self.end
        while end > _BEGIN:
            start = _line_start(self.text, end - 1)
            yield self.text[start:end]
            end = start


def chunks(stream: BinaryIO, size: int = BLOCK) -> Iterator[Chunk]:
    """Cut a file between two queries, about every `size` bytes.

    Lines of a query that follow each other stay together, however many they are.

    Raises:
        Malformed: a line does not end.
    """
    offset, rest, ended = 0, b"", False
    while not ended:
        want = max(size, len(rest), len(BOM))
        block = stream.read(want)
        ended = len(block) < want
        if not offset and not rest and block.startswith(BOM):
            block, offset = block.removeprefix(BOM), len(BOM)
        newline = b"" if not ended or (block or rest or b"\n")[-1:] == b"\n" else b"\n"
        text = b"".join((PADDING, rest, block, newline, PADDING))
        end = len(text) - len(PADDING)
        if not ended:
            end = _last_query(text, end)
        if end > _BEGIN:
            yield Chunk(text, end, offset)
        offset += end - _BEGIN
        rest = text[end : -len(PADDING)]
        if len(rest) > LONGEST_LINE and b"\n" not in rest:
            raise Malformed(offset)


def _last_query(text: bytes, end: int) -> int:
    """Where the lines of the last query begin; the start if there is no other query."""
    end = text.rfind(b"\n", 0, end) + 1
    same, step = _line_start(text, end - 1), 1
    query = _first_word(text, same)
    while _first_word(text, other := _line_start(text, same - step)) == query:
        if other == _BEGIN:
            return _BEGIN
        same, step = other, 2 * step
    while True:
        middle = text.find(b"\n", (other + same) // 2) + 1
        if middle >= same:
            middle = text.find(b"\n", other) + 1
        if middle >= same:
            return same
        if _first_word(text, middle) == query:
            same = middle
        else:
            other = middle


def _line_start(text: bytes, at: int) -> int:
    return max(text.rfind(b"\n", 0, max(at, 0)) + 1, _BEGIN)


def _first_word(text: bytes, start: int) -> list[bytes]:
    return text[start : text.find(b"\n", start)].split(None, 1)[:1]
