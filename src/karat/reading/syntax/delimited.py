"""Tables as text: CSV and TSV, with one row per document or one sample per row."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from threading import Lock
from typing import Any, BinaryIO, TextIO

from karat.data.gold import Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Run
from karat.data.tables import counted
from karat.reading.decoding import decode_text
from karat.reading.format import Format, Source
from karat.reading.meaning.fields import infer, is_row, known_as
from karat.reading.meaning.native import (
    known_of,
    sample_cells,
    scores_say_the_order,
    whole,
)
from karat.reading.meaning.samples import Samples
from karat.reading.meaning.shapes import load_records_by
from karat.reading.meaning.tables import COLUMNS, Table, system_column

__all__ = ["LONG_CELLS", "Delimited", "write_rows"]

_MOST_COLUMNS = 10_000
_LONGEST_CELL = 1 << 30
_PAIR = 2
_TRIPLE = 3


class Delimited(Format):
    """A table as text; its first row names the columns.

    Args:
        name: `csv` or `tsv`.
        extensions: file endings it is known by.
        delimiters: what may stand between cells; the first is written.
    """

    def __init__(self, name: str, extensions: tuple[str, ...], delimiters: str) -> None:
        self.name = name
        self.extensions = extensions
        self._delimiters = delimiters

    def sniff(self, head: bytes, name: str) -> bool:
        """The first row names columns karat knows, or the file's name says so."""
        line = _first_line(head)
        if line[:1] in {"{", "["}:
            return False
        cells = [cell.strip(' "') for cell in line.split(self._between(line))[:100]]
        known = sum(known_as(cell) is not None for cell in cells)
        return known > 1 or (name.endswith(self.extensions) and len(cells) > 1)

    def read(self, source: Source) -> Dataset:
        """Read row after row."""
        with source.open() as stream, LONG_CELLS:
            rows = self._rows(stream, source)
            header, rows = _header(rows, source)
            fields = infer(header, source.role, source.mapping) | _unnamed(
                header, source
            )
            if is_row(fields):
                return self._read_table(rows, header, fields, source)
            samples = Samples(source)
            for line, row in rows:
                samples.take(_record(header, row), line)
            return samples.finish(self.name)

    def read_by(self, source: Source, column: str) -> dict[str, Dataset]:
        """The rows, split by the value of a column."""
        with source.open() as stream, LONG_CELLS:
            header, rows = _header(self._rows(stream, source), source)
            records = ((line, _record(header, row)) for line, row in rows)
            return load_records_by(records, column, source, self.name)

    def _read_table(
        self,
        rows: Iterator[tuple[int, list[str]]],
        header: list[str],
        fields: Mapping[str, str],
        source: Source,
    ) -> Dataset:
        for theirs in source.mapping.values():
            if theirs not in header:
                problem = f"no column is called {theirs!r}"
                raise source.lacks(theirs, f"{problem}; columns found: {_list(header)}")
        system = system_column(header)
        table = Table(source, fields, system)
        # One cell beyond the last stands for the columns that are not there.
        places = [header.index(fields[c]) if c in fields else -1 for c in COLUMNS]
        places.append(header.index(system) if system else -1)
        for line, row in rows:
            row.append("")
            table.take([row[place] or None for place in places], line)
        return table.finish(self.name)

    def _rows(
        self, stream: BinaryIO, source: Source
    ) -> Iterator[tuple[int, list[str]]]:
        """Rows that are not blank, each with the line it starts on."""
        lines = (decode_text(data, number) for number, data in enumerate(stream, 1))
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
        line = 1
        try:
            for row in reader:
                if row and any(row):
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            if "new-line character" in str(error):
                hint = "save the file with Unix line ends"
                problem = "a carriage return within the row"
                raise source.error(problem, line=line, hint=hint) from None
            raise source.error(f"broken row: {error}", line=line) from None

    def _between(self, line: str) -> str:
        return max(self._delimiters, key=line.count)

    def write_run(self, run: Run, stream: BinaryIO) -> None:
        """One row per document with its score or rank, or samples if more is known."""
        rankings = [*run.rankings(Policies())]
        scored = all(scores_say_the_order(ranking) for _, ranking in rankings)
        known = {name for _, r in rankings for d in r for name in known_of(d)}
        held = known <= ({"id", "score"} if scored else {"id"})
        if not held or not all(ranking for _, ranking in rankings):
            self.write_samples(Dataset(run=run), stream)
            return
        rows = [
            (query, d.id, d.score if scored else rank)
            for query, ranking in rankings
            for rank, d in enumerate(ranking, 1)
        ]
        self._write(("query_id", "doc_id", "score" if scored else "rank"), rows, stream)

    def write_gold(self, gold: Gold, stream: BinaryIO) -> None:
        """One row per relevant document, or samples where gold is more than ids."""
        only_ids = gold.is_plain
        if not only_ids or not all(map(gold.documents.get, gold.queries)):
            self.write_samples(Dataset(gold=gold), stream)
            return
        rows = [
            (query, document, whole(grade))
            for query in gold.queries
            for document, grade in gold.documents[query].items()
        ]
        self._write(("query_id", "doc_id", "grade"), rows, stream)

    def write_samples(self, loaded: Dataset, stream: BinaryIO) -> None:
        """One row per query; lists and mappings are written as JSON."""
        header, rows = sample_cells(loaded)
        self._write(header, rows, stream)

    def _write(self, header: Any, rows: Any, stream: BinaryIO) -> None:
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


def _first_line(head: bytes) -> str:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    return text.partition(b"\n")[0].decode("utf-8", "replace").strip("\r")


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


def _header(
    rows: Iterator[tuple[int, list[str]]], source: Source
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The names of the columns and the rows below; cells are counted on the way."""
    line, first = next(rows, (1, []))
    if len(first) > _MOST_COLUMNS:
        raise source.error(f"has {len(first)} columns; is it a table?", line=line)
    header = [cell.strip() for cell in first]
    numbered = [str(number) for number in range(1, len(header) + 1)]
    if _is_pair(header, source):
        pair = ["id", "query"]
        return pair, _counted(chain([(line, first)], rows), pair, source)
    if _has_no_header(header, source):
        return numbered, _counted(chain([(line, first)], rows), numbered, source)
    twice = next((n for i, n in enumerate(header) if n and n in header[:i]), None)
    if twice is not None:
        raise source.error(f"two columns are called {twice!r}", line=line)
    return header, _counted(rows, header, source)


def _is_pair(cells: list[str], source: Source) -> bool:
    """Whether a file of queries begins with an id and a text, rather than names."""
    if source.role != "queries" or source.mapping or len(cells) != _PAIR:
        return False
    return all(known_as(cell.strip(' "\r\n')) is None for cell in cells)


def _has_no_header(cells: list[str], source: Source) -> bool:
    if source.mapping and all(theirs.isdigit() for theirs in source.mapping.values()):
        return not set(source.mapping.values()) <= set(cells)
    unknown = all(known_as(cell) is None for cell in cells)
    return len(cells) == _TRIPLE and unknown and _is_number(cells[-1])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unnamed(header: list[str], source: Source) -> dict[str, str]:
    """Three columns without names are query, document and grade, if it is gold."""
    if header != ["1", "2", "3"] or source.mapping:
        return {}
    if source.role == "gold":
        return {"id": "1", "document": "2", "grade": "3"}
    raise source.error(
        "has no header, and its third column may be a score or a rank",
        hint="--map id=1 --map document=2 and --map score=3 or rank=3 say which",
    )


def _counted(
    rows: Iterator[tuple[int, list[str]]], header: list[str], source: Source
) -> Iterator[tuple[int, list[str]]]:
    width = len(header)
    for line, row in rows:
        if len(row) == width:
            yield line, row
        else:
            problem = f"has {counted(len(row), 'cell')}, but there are {width} columns"
            source.notes.problem(source.error(problem, line=line))


def _record(header: list[str], row: list[str]) -> dict[str, str | None]:
    return {name: cell or None for name, cell in zip(header, row, strict=True)}


def _list(names: list[str]) -> str:
    return ", ".join(name[:40] for name in names[:12])
