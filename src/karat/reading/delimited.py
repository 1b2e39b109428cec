"""Tables as text: CSV and TSV, with one row per document or one sample per row."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, compress, count, islice
from threading import Lock
from typing import Any, BinaryIO, TextIO

from karat.data.tables import counted
from karat.errors import FormatError
from karat.reading.files import LONGEST_LINE, decode_text, is_number, lines_in
from karat.reading.format import SHIPPED, Format
from karat.reading.meaning.aliases import known_as
from karat.reading.source import Batched, Batches, Source

_MOST_COLUMNS = 10_000
_LONGEST_CELL = LONGEST_LINE
_BATCH = 256
_PIECE = 1 << 16
_BOM = "\ufeff"
_PAIR = 2
_TRIPLE = 3


class Delimited(Format):
    """A table as text; its first row names the columns."""

    layout = "rows"

    def __init__(self, name: str, delimiters: str) -> None:
        self.name = name
        self.extensions, self.shares = SHIPPED[name][1:3]
        self._delimiters = delimiters

    def sniff(self, head: bytes, name: str) -> bool:
        """The first row names columns karat knows, or the file's name says so."""
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        line = text.partition(b"\n")[0].decode("utf-8", "replace").strip("\r")
        if line[:1] in {"{", "["}:
            return False
        cells = [cell.strip(' "') for cell in line.split(self._between(line))[:100]]
        columns = sum(known_as(cell) is not None for cell in cells)
        return columns > 1 or (name.endswith(self.extensions) and len(cells) > 1)

    def records(self, source: Source) -> Batched:
        """The rows under the names of their columns."""
        return _under_header(self._rows(source), source)

    def _rows(self, source: Source) -> Batches:
        """Rows that are not blank, each with the line it starts on."""
        with source.open() as stream:
            lines = _lines(stream)
            first = next(lines, "")
            if not first:
                raise source.error("is empty: there is nothing to read")
            comma = self._between(first)
            # Who writes bare pairs with tabs does not quote either.
            bare = comma == "\t" and _is_pair(first.split(comma), source)
            reader = csv.reader(
                chain([first], lines),
                delimiter=comma,
                strict=True,
                quoting=csv.QUOTE_NONE if bare else csv.QUOTE_MINIMAL,
            )
            line, wrong = 1, None
            while wrong is None:
                rows: list[list[str]] = []
                try:
                    # Between two batches, the limit on cells is the user's own.
                    with LONG_CELLS:
                        rows.extend(islice(reader, _BATCH))
                except (csv.Error, FormatError) as error:
                    wrong = error
                if not rows and wrong is None:
                    return
                starts: Sequence[int] = range(line, line + len(rows))
                if reader.line_num - line + 1 != len(rows):
                    sizes = (1 + sum(c.count("\n") for c in row) for row in rows)
                    *starts, line = accumulate(sizes, initial=line)
                else:
                    line += len(rows)
                if not all(map(any, rows)):
                    starts = [*compress(starts, map(any, rows))]
                    rows = [row for row in rows if any(row)]
                if rows:
                    yield starts, rows
            if isinstance(wrong, FormatError):
                raise wrong
            problem, hint = f"broken row: {wrong}", None
            if "new-line character" in str(wrong):
                problem = "a carriage return within the row"
                hint = "save the file with Unix line ends"
            raise source.error(problem, line=line, hint=hint) from None

    def _between(self, line: str) -> str:
        return max(self._delimiters, key=line.count)

    def write(self, value: Any, stream: BinaryIO) -> None:
        """The names of the columns, then the rows."""
        header, rows = value
        text = io.TextIOWrapper(stream, "utf-8", newline="")
        write_rows(chain([header], rows), text, self._delimiters[0])
        text.flush()
        text.detach()


def write_rows(
    rows: Iterable[Sequence[Any]], text: TextIO, delimiter: str = ","
) -> None:
    """Write rows as delimited text; cells are quoted where they need to be."""
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    # Python before 3.13 leaves a lone carriage return bare, which ends a row.
    careful = csv.writer(
        text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL
    )
    for row in rows:
        bare = any("\r" in cell for cell in row if isinstance(cell, str))
        (careful if bare else writer).writerow(row)


def _lines(stream: BinaryIO) -> Iterator[str]:
    """The lines as text; many at once where nothing is wrong with any of them."""
    number = 1
    for some in lines_in(stream, _PIECE):
        data = b"".join(some)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = _BOM
        if _BOM in text:
            yield from map(decode_text, some, count(number))
        else:
            yield from io.StringIO(text, "\n")
        number += len(some)


class _LongCells:
    """While tables are read, cells may hold a sample's contexts as JSON.

    The limit of the csv module is one for the whole process: the first of several
    readers lifts it, and the last one puts it back.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers = self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._readers:
                self._before = csv.field_size_limit(_LONGEST_CELL)
            self._readers += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._readers -= 1
            if not self._readers:
                csv.field_size_limit(self._before)


LONG_CELLS = _LongCells()


def _under_header(rows: Batches, source: Source) -> Batched:
    """The rows below the names of the columns; cells are counted on the way."""
    (line, *lines), (first, *more) = next(rows, ([1], [list[str]()]))
    whole, below = ([line, *lines], [first, *more]), (lines, more)
    if len(first) > _MOST_COLUMNS:
        raise source.error(f"has {len(first)} columns; is it a table?", line=line)
    names = [cell.strip() for cell in first]
    if _is_pair(names, source):
        names = ["id", "text" if source.role == "corpus" else "query"]
    elif _has_no_header(names, source):
        if not source.mapping and source.role != "gold":
            problem = "has no header, and its third column may be a score or a rank"
            hint = "--map id=1 --map document=2 and --map score=3 or rank=3 say which"
            raise source.error(problem, hint=hint)
        numbered = [str(number) for number in range(1, len(names) + 1)]
        names = numbered if source.mapping else ["query_id", "doc_id", "grade"]
    else:
        whole = below
        twice = next((n for i, n in enumerate(names) if n and n in names[:i]), None)
        if twice is not None:
            raise source.error(f"two columns are called {twice!r}", line=line)
    return Batched(_counted(chain([whole], rows), len(names), source), names)


def _is_pair(cells: list[str], source: Source) -> bool:
    """Whether queries or a corpus begin with an id and a text, rather than names."""
    texts = source.role in {"queries", "corpus"}
    if not texts or source.mapping or len(cells) != _PAIR:
        return False
    return all(known_as(cell.strip(' "\r\n')) is None for cell in cells)


def _has_no_header(cells: list[str], source: Source) -> bool:
    if source.mapping and all(theirs.isdigit() for theirs in source.mapping.values()):
        return not set(source.mapping.values()) <= set(cells)
    unknown = all(known_as(cell) is None for cell in cells)
    return len(cells) == _TRIPLE and unknown and is_number(cells[-1])


def _counted(rows: Batches, width: int, source: Source) -> Batches:
    for lines, some in rows:
        if {*map(len, some)} <= {width}:
            yield lines, some
            continue
        for line, row in zip(lines, some, strict=True):
            if len(row) == width:
                yield [line], [row]
                continue
            if source.role == "gold" and len(row) == 1:
                # Quepid lists queries that nobody has rated.
                what = "{query is|queries are} listed without a document"
                source.notes.notice("unrated", f"{what} and left out", row[0])
                continue
            problem = f"has {counted(len(row), 'cell')}, but there are {width} columns"
            source.notes.problem(source.error(problem, line=line))


TSV = Delimited("tsv", "\t")
CSV = Delimited("csv", ",;|")
