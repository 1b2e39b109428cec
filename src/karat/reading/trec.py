"""TREC runs and qrels: read as trec_eval reads them, but checked, and written.

A line of a run is `query Q0 document rank score tag`; a line of qrels is `query
iteration document grade`. Columns are separated by white space. Empty lines and lines
that begin with `#` say nothing; a `#` elsewhere belongs to an id. Lines are split into
columns all at once; the slow way, one by one, knows what to say of a wrong one.
"""

import io
import os
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, repeat
from typing import BinaryIO, NamedTuple, NoReturn, TypeAlias

import numpy as np

from karat.data.arrays import Ints
from karat.data.gold import JUDGES, PEOPLE, Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Notice, Run
from karat.errors import FormatError
from karat.reading.columns.decimals import PADDING, decimal, numbers
from karat.reading.columns.ids import ByteColumn
from karat.reading.columns.rankings import Rankings
from karat.reading.columns.run import ColumnarRun
from karat.reading.files import (
    BLOCK,
    STDIN,
    is_number,
    open_binary,
    path_of,
    read_lines,
)
from karat.reading.format import SHIPPED, Format
from karat.reading.meaning.aliases import known_as
from karat.reading.meaning.ambiguity import note_contradictions, scores_say_the_order
from karat.reading.source import HEAD, Notes, Source, placed

Input: TypeAlias = str | os.PathLike[str] | bytes
Grades: TypeAlias = dict[str, dict[str, float]]

_BOM = b"\xef\xbb\xbf"
_LONGEST_LINE = 1 << 24
_BEGIN = len(PADDING)
_LOOK = 5
_SIGNED = (JUDGES.encode(), PEOPLE.encode())


class LineShape(NamedTuple):
    """The columns of a line, which of them is a number, and how many there may be."""

    names: tuple[str, ...]
    value: int
    most: int


QRELS = LineShape(("query", "iteration", "document", "grade"), value=3, most=4)
RUN = LineShape(("query", "Q0", "document", "rank", "score", "tag"), value=4, most=64)
"""trec_eval takes remarks behind the tag of a run, but none in qrels."""


class _Trec(Format):
    """Lines of as many words, one of them a number."""

    lines: LineShape

    def sniff(self, head: bytes, name: str) -> bool:
        """Most of the first lines have as many words, one of them a number."""
        del name
        kind, lines = self.lines, head.removeprefix(_BOM).splitlines()[:_LOOK]
        # Ids with spaces make as many words of a table, but it names its columns first.
        names = b"".join(lines[:1]).decode("utf-8", "replace").split("\t")
        if len(names) > 1 and sum(known_as(name) is not None for name in names) > 1:
            return False
        words = [*filter(None, map(bytes.split, lines))]
        even = (line for line in words if len(line) == len(kind.names))
        fit = sum(is_number(line[kind.value]) for line in even)
        return fit > 0 and fit * 2 >= len(words)

    def check(self, source: Source) -> None:
        """Note the problem of each line that has one."""
        with source.open() as stream:
            tell = source.notes.problem
            deque(split_lines_slowly(stream, self.lines, source.path, tell=tell), 0)


class TrecRuns(_Trec):
    """A TREC run: query, Q0, document, rank, score and tag on each line."""

    name = "trec_run"
    lines = RUN
    extensions, shares = SHIPPED["trec_run"][1:3]

    def read(self, source: Source) -> Dataset:
        """A run that is read when it is scored."""
        if source.role in {"gold", "samples"}:
            raise source.mistaken(
                "is a TREC run", f"karat evaluate {source.path} --gold GOLD"
            )
        data = None if source.replay is None else read_lines(source.replay)
        run = TrecRun(source.path if data is None else data, source.name, source.path)
        ranks: dict[str, list[tuple[float, float]]] = {}
        lines = source.head.splitlines()
        for line in lines[:-1] if len(source.head) == HEAD else lines:
            words = line.split()
            if len(words) == len(RUN.names) and all(map(is_number, words[3:5])):
                query = words[0].decode("utf-8", "replace")
                ranks.setdefault(query, []).append((float(words[3]), float(words[4])))
        note_contradictions(ranks, source.notes)
        return Dataset(run=run, format=self.name, notices=source.notes.notices())

    def write_run(self, run: Run, stream: BinaryIO) -> None:
        """The rankings; where scores do not say their order, falling ones do."""
        tag = "_".join(run.name.split()).encode(errors="replace") or b"run"
        rankings = dict(run.rankings(Policies()))
        scored = all(map(scores_say_the_order, rankings.values()))
        for query, documents in rankings.items():
            for rank, document in enumerate(documents, 1):
                score = document.score if scored else float(len(documents) - rank + 1)
                ids = _word(query, query), _word(document.id, query)
                stream.write(b"%b Q0 %b %d %a %b\n" % (*ids, rank, score, tag))


class TrecQrels(_Trec):
    """TREC qrels: query, iteration, document and grade on each line."""

    name = "trec_qrels"
    lines = QRELS
    holds_sources = True
    extensions, shares = SHIPPED["trec_qrels"][1:3]

    def read(self, source: Source) -> Dataset:
        """The grades, with the subtopics or the judges that the iteration names."""
        if source.role in {"run", "samples"}:
            raise source.mistaken(
                "holds TREC qrels", f"karat evaluate RUN --gold {source.path}"
            )
        with source.open() as stream:
            data = read_lines(stream)
        path, notes = source.path, source.notes
        signed, diverse = _iterations(data)
        if not signed and not diverse:
            gold = Gold(_grades(data, path, notes), name=source.name)
            return Dataset(gold=gold, format=self.name)
        rows = _rows_slowly(data, path, notes, diverse=diverse)
        if not diverse:
            sources: dict[str, dict[str, str]] = {}
            for query, row in rows.items():
                for document, (who,) in row.items():
                    if who.startswith((JUDGES, PEOPLE)):
                        sources.setdefault(query, {})[document] = who
            gold = Gold(_best_grades(rows), sources=sources, name=source.name)
            return Dataset(gold=gold, format=self.name)
        best = "labelled by subtopic; elsewhere the best grade of a document counts"
        for _ in rows:
            notes.notice("subtopics", f"{{query is|queries are}} {best}")
        gold = Gold(_best_grades(rows), subtopics=rows, name=source.name)
        return Dataset(gold=gold, format=self.name, notices=notes.notices())

    def write_gold(self, gold: Gold, stream: BinaryIO) -> None:
        """The grades; the iteration says who judged, or for which subtopic."""
        for query, grades in gold.documents.items():
            for document, grade in grades.items():
                ids = _word(query, query), _word(document, query)
                who = gold.sources.get(query, {}).get(document, "0")
                topics = gold.subtopics.get(query, {}).get(document, {who: grade})
                for name, worth in topics.items():
                    value = int(worth) if float(worth).is_integer() else float(worth)
                    line = (ids[0], _word(name, query), ids[1], value)
                    stream.write(b"%b %b %b %a\n" % line)


class TrecRun(ColumnarRun):
    """A run in a TREC file, ordered as trec_eval does, which is read when asked."""

    def __init__(
        self,
        source: Input,
        name: str | None = None,
        path: str | None = None,
        *,
        block: int = 2 * BLOCK,
    ) -> None:
        """Say where the run is, and how errors call it."""
        self.path: str = path or path_of(source)
        usual = "stdin" if self.path == STDIN else os.path.basename(self.path)  # noqa: PTH119
        self.name = name or usual
        self.sort = f"sort -s -k1,1 {self.path}"
        self._source = source
        self._block = block
        self._remarks: dict[int, int] = {}

    def parts(self, *, texts: bool = False) -> Iterator[Callable[[], Rankings]]:
        """Chunks of the file, cut between two queries."""
        del texts
        # Freed at once, which teaches glibc to keep freed memory of up to this size:
        # each chunk then reuses the pages of the one before, without faulting in new.
        np.empty(1 << 24, np.uint8)
        last: list[bytes] = []
        with self._open() as stream:
            for lines, offset in self._whole_queries(stream):
                words = (_words(line, RUN) for _, line in _backwards(lines, len(lines)))
                last = next(filter(None, words), last)
                yield partial(self._read, lines, offset)
        if not last:
            with self._open() as stream:
                raise _nothing_in(stream.read(BLOCK), self.path)
        self.provenance = {"tag": last[len(RUN.names) - 1].decode("utf-8", "replace")}

    def repeated(self, query: str, document: str) -> FormatError:
        """Where the document is listed for the first and for the second time."""
        pair = [query.encode(), document.encode()]
        with self._open() as stream:
            lines = split_lines_slowly(stream, RUN, self.path)
            where = (line for line, words in lines if words[0:3:2] == pair)
            first, second = islice(where, 2)
        problem = f"document {document!r} is listed twice, first in line {first}"
        return FormatError(problem, path=self.path, line=second, query=query)

    def remarks(self) -> tuple[Notice, ...]:
        """Lines with more than six columns."""
        ignored = sum(self._remarks.values())
        if not ignored:
            return ()
        what = "{line has|lines have} more than six columns; what follows the tag was"
        return (Notice.of("columns", ignored, f"{what} ignored"),)

    def _whole_queries(self, stream: BinaryIO) -> Iterator[tuple[bytes, int]]:
        """Lines of whole queries, of about one block, and their offset."""
        text = stream.read(max(self._block, len(_BOM)))
        offset = len(_BOM) if text.startswith(_BOM) else 0
        text = text.removeprefix(_BOM)
        while block := stream.read(max(self._block, len(text))):
            if end := _last_query(text):
                yield text[:end], offset
            text, offset = text[end:] + block, offset + end
            if len(text) - text.rfind(b"\n") > _LONGEST_LINE:
                self._explain(offset)
        if text:
            yield text, offset

    def _read(self, lines: bytes, offset: int) -> Rankings:
        try:
            (query, document, score), remarks = _split_lines(lines, RUN, [0, 2, 4])
            self._remarks[offset] = remarks
            return Rankings.of(query, document, numbers(score))
        except ValueError:
            self._explain(offset)

    def _open(self) -> BinaryIO:
        """The file from the start; what can be read only once is kept."""
        source = self._source
        if not isinstance(source, bytes) and not os.path.isfile(source):  # noqa: PTH113
            with open_binary(source) as stream:
                self._source = read_lines(stream)
        return open_binary(self._source)

    def _explain(self, offset: int) -> NoReturn:
        with self._open() as stream:
            deque(split_lines_slowly(stream, RUN, self.path, offset), maxlen=0)
        raise FormatError("a line is malformed", path=self.path)


def read_qrels(source: Input, name: str | None = None) -> Grades:
    """The grade of each judged document, by query."""
    with open_binary(source) as stream:
        return _grades(read_lines(stream), name or path_of(source), Notes())


def _grades(data: bytes, path: str, notes: Notes) -> Grades:
    """All lines at once, unless one is wrong or a document is judged twice."""
    try:
        columns, _ = _split_lines(data.removeprefix(_BOM), QRELS, [0, 2, 3])
        grades = numbers(columns[2]).tolist()
    except ValueError:
        return _best_grades(_rows_slowly(data, path, notes))
    queries, documents = columns[0].names(), columns[1].names()
    labels: Grades = {q: {} for q in dict.fromkeys(queries)}
    rows = map(labels.__getitem__, queries)
    for row, document, grade in zip(rows, documents, grades, strict=True):
        row[document] = grade
    if labels and sum(map(len, labels.values())) == len(queries):
        return labels
    return _best_grades(_rows_slowly(data, path, notes))


def _rows_slowly(
    data: bytes, path: str, notes: Notes, *, diverse: bool = False
) -> dict[str, Grades]:
    """The grades by query, document and iteration; several only where `diverse`."""
    rows: dict[str, Grades] = {}
    lines: dict[tuple[str, str, str], int] = {}
    for line, words in split_lines_slowly(io.BytesIO(data), QRELS, path):
        query, iteration, document = (word.decode() for word in words[:3])
        before = lines.setdefault((query, document, iteration if diverse else ""), line)
        if before == line:
            row = rows.setdefault(query, {}).setdefault(document, {})
            row[iteration] = decimal(words[3])
            continue
        what = f"twice for subtopic {iteration!r}" if diverse else "twice"
        problem = f"document {document!r} is judged {what}, first in line {before}"
        error = FormatError(problem, path=path, line=line, query=query)
        error.finding = "conflicting grades"
        notes.problem(error)
    if not rows:
        raise _nothing_in(data, path)
    return rows


def _best_grades(rows: dict[str, Grades]) -> Grades:
    return {
        query: {name: max(grades.values()) for name, grades in row.items()}
        for query, row in rows.items()
    }


def _iterations(data: bytes) -> tuple[bool, bool]:
    """Whether judges sign there, and whether a query has several: its subtopics."""
    signed = _SIGNED[0] in data or _SIGNED[1] in data
    if data.count(b" 0 ") + data.count(b"\t0\t") >= data.count(b"\n"):
        return signed, False
    column = {(*line.split(None, 2)[:2],) for line in data.split(b"\n")} - {()}
    topics = [
        pair[0]
        for pair in column
        if not (pair[-1].startswith(_SIGNED) or pair[0].startswith(b"#"))
    ]
    return signed, len({*topics}) < len(topics)


def _word(name: str | None, query: str) -> bytes:
    """The id in bytes, if it can stand in a line and be read again."""
    word = b"" if name is None else name.encode("utf-8", "replace")
    comment = name == query and word.startswith(b"#")
    if word.split() != [word] or b"\0" in word or word.decode() != name or comment:
        problem = f"a TREC file cannot hold the id {name!r}"
        hint = "ids must have no white space, and queries not begin with '#'"
        raise FormatError(problem, query=query, hint=hint)
    return word


def _last_query(text: bytes) -> int:
    """Where the lines of the last query begin; 0 where all lines are of one."""
    last: list[bytes] = []
    for start, line in _backwards(text, text.rfind(b"\n") + 1):
        word = line.split(None, 1)[:1]
        last = last or word
        if word and word != last:
            return start + len(line)
    return 0


def _backwards(text: bytes, end: int) -> Iterator[tuple[int, bytes]]:
    """Lines from the last to the first, each with the place where it begins."""
    while end:
        start = text.rfind(b"\n", 0, end - 1) + 1
        yield start, text[start:end]
        end = start


def _split_lines(
    lines: bytes, kind: LineShape, wanted: list[int]
) -> tuple[list[ByteColumn], int]:
    """The wanted columns of all lines, and how many lines have a remark."""
    if b"\0" in lines or not (lines.isascii() or lines.decode()):
        raise ValueError
    remarks = 0
    text, cells = _cells(lines, len(kind.names))
    if cells is None:
        tidy = []
        for line in lines.split(b"\n"):
            words = _check_line(line, kind)
            remarks += len(words) > len(kind.names)
            tidy += [b" ".join(words[: len(kind.names)])] if words else []
        text, cells = _cells(b"\n".join(tidy), len(kind.names))
    if cells is None:
        return [ByteColumn.of([])] * len(wanted), remarks
    data, (before, after) = np.frombuffer(text, np.uint8), cells
    start = before.T[wanted] + 1
    return [*map(ByteColumn, repeat(data), start, after.T[wanted] - start)], remarks


def _cells(lines: bytes, count: int) -> tuple[bytes, tuple[Ints, Ints] | None]:
    """A text with padding, and the blanks around its cells; None for uneven lines."""
    text = b"".join((PADDING, lines.removesuffix(b"\n"), b"\n", PADDING))
    body = np.frombuffer(text, np.uint8, len(text) - _BEGIN)
    blank = (body - np.uint8(ord("\t"))) <= ord("\r") - ord("\t")
    blank |= body == ord(" ")
    newline = body == ord("\n")
    if (blank[_BEGIN:] & blank[_BEGIN - 1 : -1]).any():
        # Runs of blanks, blanks at the ends of lines, empty lines.
        edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
        before, after = edges[0::2] - 1, edges[1::2]
        per_line = np.diff(np.searchsorted(before, np.flatnonzero(newline)), prepend=0)
        even = ((per_line == count) | (per_line == 0)).all()
    else:
        edges = np.flatnonzero(blank)[_BEGIN - 1 :]
        before, after = edges[:-1], edges[1:]
        number = np.count_nonzero(newline) - _BEGIN
        even = len(after) == number * count and newline[after[count - 1 :: count]].all()
    if not even:
        return text, None
    before, after = before.reshape(-1, count), after.reshape(-1, count)
    comment = (body[before[:, 0] + 1] == ord("#")).any()
    return text, None if comment else (before, after)


def _words(line: bytes, kind: LineShape) -> list[bytes]:
    """The columns of a line; none in an empty line or a comment."""
    words = line.split(None, kind.most)
    return [] if words and words[0].startswith(b"#") else words


def split_lines_slowly(
    stream: BinaryIO,
    kind: LineShape,
    path: str | os.PathLike[str],
    offset: int = 0,
    tell: Callable[[FormatError], None] | None = None,
) -> Iterator[tuple[int, list[bytes]]]:
    """Number and columns of each line that says something; errors go to `tell`."""
    count, left = 1, offset
    while left and (block := stream.read(min(left, BLOCK))):
        count += block.count(b"\n")
        left -= len(block)
    lines = iter(partial(stream.readline, _LONGEST_LINE), b"")
    for line, text in enumerate(lines, count):
        if line == 1 and not offset:
            text = text.removeprefix(_BOM)  # noqa: PLW2901
        try:
            words = _check_line(text, kind)
        except FormatError as error:
            query = b"".join(_words(text, kind)[:1]).decode("utf-8", "replace")
            problem = placed(error, path=path, line=line, query=query or None)
            if tell is None:
                raise problem from None
            tell(problem)
        else:
            if words:
                yield line, words


def _check_line(line: bytes, kind: LineShape) -> list[bytes]:
    """The columns of a line, if nothing is wrong with it."""
    if len(line) >= _LONGEST_LINE:
        size = _LONGEST_LINE >> 20
        raise FormatError(f"the line does not end within {size} MB")
    try:
        line.decode()
    except UnicodeDecodeError as error:
        problem = f"byte {line[error.start]:#x} at {error.start + 1} is not UTF-8"
        raise FormatError(problem, hint="save the file as UTF-8") from None
    if b"\0" in line:
        hint = "save the file as UTF-8"
        raise FormatError("a NUL byte, so this is not text", hint=hint)
    words, size = _words(line, kind), len(line.split())
    if words and not len(kind.names) <= len(words) <= kind.most:
        hint = f"a line reads: {' '.join(kind.names)}"
        if kind is QRELS and size == len(RUN.names):
            hint += "; is it a run? then the files are swapped"
        problem = f"expected {len(kind.names)} columns, found {size:,}"
        raise FormatError(problem, hint=hint)
    if len(words) > len(kind.names) and b"\r" in line.rstrip():
        # Several lines, which end as on old Macs.
        hint = "save the file with Unix line ends"
        raise FormatError("a carriage return within the line", hint=hint)
    try:
        decimal(words[kind.value] if words else b"0")
    except ValueError:
        name, word = kind.names[kind.value], words[kind.value].decode()[:40]
        raise FormatError(f"the {name} must be a finite number, got {word!r}") from None
    return words


def _nothing_in(data: bytes, path: str) -> FormatError:
    """What to say of a file in which no line says anything."""
    text = data.removeprefix(_BOM).strip()
    problem = "there are only comments" if text else "the file is empty"
    return FormatError(problem, path=path)


TREC_RUN = TrecRuns()
TREC_QRELS = TrecQrels()
