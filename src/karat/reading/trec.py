"""TREC runs and qrels: read as trec_eval reads them, but checked, and written.

A line of a run is `query Q0 document rank score tag`; a line of qrels is `query
iteration document grade`. Columns are separated by white space. Empty lines and lines
that begin with `#` say nothing; a `#` elsewhere belongs to an id. Lines are split into
columns all at once; the slow way, one by one, knows what to say of a wrong one.
"""

import io
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import BinaryIO, NamedTuple, NoReturn, TypeAlias

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.data.gold import JUDGES, PEOPLE, Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Notice, Run
from karat.errors import FormatError
from karat.reading.columns.decimals import PADDING, number, numbers
from karat.reading.columns.ids import ByteColumn
from karat.reading.columns.rankings import Rankings
from karat.reading.columns.run import ColumnarRun, RunSource
from karat.reading.files import BLOCK, STDIN, open_binary, path_of, read_lines
from karat.reading.format import SHIPPED, Format
from karat.reading.meaning.aliases import known_as
from karat.reading.meaning.ambiguity import note_contradictions, scores_say_the_order
from karat.reading.source import Notes, Source

Input: TypeAlias = str | os.PathLike[str] | bytes
Span: TypeAlias = tuple[Ints, Ints]
Grades: TypeAlias = dict[str, dict[str, float]]

_BOM = b"\xef\xbb\xbf"
_LONGEST_LINE = 1 << 24
_BEGIN = len(PADDING)
_HEAD = 1 << 16
_LOOK = 5
_SIGNED = (JUDGES.encode(), PEOPLE.encode())


class Line(NamedTuple):
    """The columns of a line, which of them is a number, and how many there may be."""

    names: tuple[str, ...]
    value: int
    most: int


QRELS = Line(("query", "iteration", "document", "grade"), value=3, most=4)
RUN = Line(("query", "Q0", "document", "rank", "score", "tag"), value=4, most=64)
"""trec_eval takes remarks behind the tag of a run, but none in qrels."""


class TrecRuns(Format):
    """A TREC run: query, Q0, document, rank, score and tag on each line."""

    name = "trec_run"
    extensions, shares = SHIPPED["trec_run"][1:3]

    def sniff(self, head: bytes, name: str) -> bool:
        """Six words a line, the fifth a number."""
        del name
        return _lines_have(head, RUN)

    def read(self, source: Source) -> Dataset:
        """A run that is read when it is scored."""
        if source.role in {"gold", "samples"}:
            raise source.mistaken(
                "is a TREC run", f"karat evaluate {source.path} --gold GOLD"
            )
        data: str | bytes = source.path
        if source.replay is not None:
            data = read_lines(source.replay)
        run = TrecRun(data, source.name, path=source.path)
        with open_binary(data) as stream:
            _note_ranks(stream.read(_HEAD), source)
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


class TrecQrels(Format):
    """TREC qrels: query, iteration, document and grade on each line."""

    name = "trec_qrels"
    holds_sources = True
    extensions, shares = SHIPPED["trec_qrels"][1:3]

    def sniff(self, head: bytes, name: str) -> bool:
        """Four words a line, the fourth a number."""
        del name
        return _lines_have(head, QRELS)

    def read(self, source: Source) -> Dataset:
        """The grades, with the subtopics or the judges that the iteration names."""
        if source.role in {"run", "samples"}:
            raise source.mistaken(
                "holds TREC qrels", f"karat evaluate RUN --gold {source.path}"
            )
        with source.open() as stream:
            data = read_lines(stream)
        signed, diverse = _iterations(data)
        if not diverse:
            labels = read_qrels(data, source.path, source.notes)
            sources: dict[str, dict[str, str]] = {}
            rows = _rows_slowly(data, source.path) if signed else ()
            for _, query, who, document, _ in rows:
                if who.startswith((JUDGES, PEOPLE)):
                    sources.setdefault(query, {})[document] = who
            gold = Gold(labels, sources=sources, name=source.name)
            return Dataset(gold=gold, format=self.name)
        topics = _read_subtopics(data, source.path)
        labels = {
            query: {name: max(grades.values()) for name, grades in row.items()}
            for query, row in topics.items()
        }
        best = "labelled by subtopic; elsewhere the best grade of a document counts"
        notice = Notice(
            "subtopics", len(labels), f"queries are {best}", one=f"query is {best}"
        )
        gold = Gold(labels, subtopics=topics, name=source.name)
        return Dataset(gold=gold, format=self.name, notices=(notice,))

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
    r"""A run in a TREC file, which is read when asked and never kept.

    Documents are ordered by score and then by id, both descending, whatever the order
    and the ranks in the file. Scores and ids are compared as trec_eval does.

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
        """Say where the run is, and how errors call it; nothing is read yet."""
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
                for chunk in _whole_queries(stream, self._block):
                    last = last if (tag := chunk.tag) is None else tag
                    yield partial(self._read, chunk)
        except MalformedError as problem:
            self._explain(problem.args[0])
        if last is None:
            with self._open() as stream:
                raise _nothing_in(stream.read(BLOCK), self.path)
        self.tag = last.decode("utf-8", "replace")

    def repeated(self, query: str, document: str) -> FormatError:
        """Where the document is listed for the first and for the second time."""
        pair = [query.encode(), document.encode()]
        with self._open() as stream:
            lines = split_lines_slowly(stream, RUN, self.path)
            where = (line for line, words in lines if words[0:3:2] == pair)
            first, second = islice(where, 2)
        problem = f"document {document!r} is listed twice, first in line {first}"
        return FormatError(problem, path=self.path, line=second, query=query)

    def notices(self, ignored: int) -> tuple[Notice, ...]:
        """Lines with more than six columns."""
        if not ignored:
            return ()
        what = "more than six columns; what follows the tag was ignored"
        text, one = f"lines have {what}", f"line has {what}"
        return (Notice("columns", ignored, text, one=one),)

    def _read(self, chunk: "_Chunk") -> Rankings:
        try:
            (query, document, score), remarks = _split_lines(chunk, RUN, (0, 2, 4))
            return Rankings.of(query, document, numbers(score), ignored=remarks)
        except ValueError:
            self._explain(chunk.offset)

    def _open(self) -> BinaryIO:
        """The file from the start; what can be read only once is kept."""
        source = self._source
        if not isinstance(source, bytes) and not os.path.isfile(source):  # noqa: PTH113
            with open_binary(self._source) as stream:
                self._source = read_lines(stream)
        return open_binary(self._source)

    def _explain(self, offset: int) -> NoReturn:
        with self._open() as stream:
            deque(split_lines_slowly(stream, RUN, self.path, offset), maxlen=0)
        raise FormatError("a line is malformed", path=self.path)


def _note_ranks(head: bytes, source: Source) -> None:
    """Say so if the ranks on the first lines contradict the scores."""
    ranks: dict[str, list[tuple[float, float]]] = {}
    lines = head.splitlines()
    for line in lines[:-1] if len(head) == _HEAD else lines:
        words = line.split()
        if len(words) == len(RUN.names) and all(map(_is_number, words[3:5])):
            query = words[0].decode("utf-8", "replace")
            ranks.setdefault(query, []).append((float(words[3]), float(words[4])))
    note_contradictions(ranks, source.notes)


def read_qrels(
    source: Input, name: str | None = None, notes: Notes | None = None
) -> Grades:
    r"""The grade of each judged document, by query; of two grades the first counts.

    Example:
        >>> read_qrels(b"q1 0 d7 2\nq1 0 d3 0\n")
        {'q1': {'d7': 2.0, 'd3': 0.0}}
    """
    path = name or path_of(source)
    with open_binary(source) as stream:
        data = read_lines(stream).removeprefix(_BOM)
    labels = _read_labels(data)
    if labels is None:
        labels = _read_labels_slowly(data, path, notes or Notes())
    if not labels:
        raise _nothing_in(data, path)
    return labels


def _read_labels(data: bytes) -> Grades | None:
    """All lines at once; None where a line is wrong or a document judged twice."""
    try:
        columns, _ = _split_lines(_Chunk.of(data + b"\n"), QRELS, (0, 2, 3))
        grades = numbers(columns[2]).tolist()
    except ValueError:
        return None
    queries, documents = columns[0].names(), columns[1].names()
    labels: Grades = {q: {} for q in dict.fromkeys(queries)}
    rows = map(labels.__getitem__, queries)
    for row, document, grade in zip(rows, documents, grades, strict=True):
        row[document] = grade
    distinct = sum(map(len, labels.values()))
    return labels if distinct == len(queries) else None


def _read_labels_slowly(data: bytes, path: str, notes: Notes) -> Grades:
    labels: Grades = {}
    lines: dict[tuple[str, str], int] = {}
    for line, query, _, document, grade in _rows_slowly(data, path):
        before = lines.setdefault((query, document), line)
        if before != line:
            problem = f"document {document!r} is judged twice, first in line {before}"
            error = FormatError(problem, path=path, line=line, query=query)
            error.finding = "conflicting grades"
            notes.problem(error)
            continue
        labels.setdefault(query, {})[document] = grade
    return labels


def _rows_slowly(data: bytes, path: str) -> Iterator[tuple[int, str, str, str, float]]:
    """Line, query, iteration, document and grade of each judgement."""
    for line, words in split_lines_slowly(io.BytesIO(data), QRELS, path):
        query, iteration, document = (word.decode() for word in words[:3])
        yield line, query, iteration, document, number(words[3])


def _iterations(data: bytes) -> tuple[bool, bool]:
    """Whether judges sign there, and whether a query has several: its subtopics."""
    signed = any(mark in data for mark in _SIGNED)
    if data.count(b" 0 ") + data.count(b"\t0\t") >= data.count(b"\n"):
        return signed, False
    column = {(*line.split(None, 2)[:2],) for line in data.split(b"\n")} - {()}
    topics = [
        pair[0]
        for pair in column
        if not (pair[-1].startswith(_SIGNED) or pair[0].startswith(b"#"))
    ]
    return signed, len({*topics}) < len(topics)


def _read_subtopics(data: bytes, path: str) -> dict[str, Grades]:
    """The grade for each subtopic of each document, by query."""
    labels: dict[str, Grades] = {}
    for line, query, topic, document, grade in _rows_slowly(data, path):
        grades = labels.setdefault(query, {}).setdefault(document, {})
        if topic in grades:
            problem = f"document {document!r} is judged twice for subtopic {topic!r}"
            raise FormatError(problem, path=path, line=line, query=query)
        grades[topic] = grade
    return labels


def _word(name: str | None, query: str) -> bytes:
    """The id in bytes, if it can stand in a line and be read again."""
    word = b"" if name is None else name.encode("utf-8", "replace")
    comment = name == query and word.startswith(b"#")
    if word.split() != [word] or b"\0" in word or word.decode() != name or comment:
        problem = f"a TREC file cannot hold the id {name!r}"
        hint = "ids must have no white space, and queries not begin with '#'"
        raise FormatError(problem, query=query, hint=hint)
    return word


def _lines_have(head: bytes, kind: Line) -> bool:
    """Whether most of the first lines have so many words, one of them a number."""
    lines = head.removeprefix(_BOM).splitlines()[:_LOOK]
    # Ids with spaces make as many words of a table, but it names its columns first.
    names = lines[0].decode("utf-8", "replace").split("\t") if lines else []
    if sum(known_as(name) is not None for name in names) > 1:
        return False
    split = [words for line in lines if (words := line.split())]
    fit = [w for w in split if len(w) == len(kind.names) and _is_number(w[kind.value])]
    return bool(fit) and len(fit) * 2 >= len(split)


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


class MalformedError(ValueError):
    """A line at or after this offset is wrong: for who explains it, not for users."""


class _Chunk(NamedTuple):
    """Some lines between two `PADDING`, and their offset in the file."""

    text: bytes
    offset: int

    @classmethod
    def of(cls, lines: bytes, offset: int = 0) -> "_Chunk":
        """Lines, of which the last one ends with a newline."""
        return cls(b"".join((PADDING, lines, PADDING)), offset)

    @property
    def end(self) -> int:
        """Behind the last line's newline."""
        return len(self.text) - _BEGIN

    @property
    def tag(self) -> bytes | None:
        """The sixth column of the last line that says something; None without such."""
        end = self.end
        while end > _BEGIN:
            start = max(self.text.rfind(b"\n", 0, end - 1) + 1, _BEGIN)
            if words := _words(self.text[start:end], RUN):
                return b"".join(words[len(RUN.names) - 1 : len(RUN.names)])
            end = start
        return None


def _whole_queries(stream: BinaryIO, size: int) -> Iterator[_Chunk]:
    """Cut a file between two queries, about every `size` bytes."""
    text = stream.read(max(size, len(_BOM)))
    offset = len(_BOM) if text.startswith(_BOM) else 0
    text = text.removeprefix(_BOM)
    while block := stream.read(max(size, len(text))):
        end = _last_query(text)
        if end:
            yield _Chunk.of(text[:end], offset)
        text, offset = text[end:] + block, offset + end
        if len(text) - text.rfind(b"\n") > _LONGEST_LINE:
            raise MalformedError(offset)
    if text:
        yield _Chunk.of(text.removesuffix(b"\n") + b"\n", offset)


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


def _split_lines(
    chunk: _Chunk, kind: Line, wanted: Sequence[int]
) -> tuple[list[ByteColumn], int]:
    """The wanted columns of all lines, and how many lines have a remark."""
    if not _is_text(chunk):
        raise MalformedError(chunk.offset)
    spans, remarks = _spans(chunk, kind, wanted), 0
    if spans is None:
        chunk, remarks = _tidy(chunk, kind)
        spans = _spans(chunk, kind, wanted) or []
    data = np.frombuffer(chunk.text, np.uint8)
    return [ByteColumn(data, start, stop - start) for start, stop in spans], remarks


def _is_text(chunk: _Chunk) -> bool:
    if b"\0" in chunk.text:
        return False
    try:
        return chunk.text.isascii() or bool(chunk.text.decode())
    except UnicodeDecodeError:
        return False


def _spans(chunk: _Chunk, kind: Line, wanted: Sequence[int]) -> list[Span] | None:
    """Where the wanted columns start and stop; None when lines are not all alike."""
    body = np.frombuffer(chunk.text, np.uint8, chunk.end)
    blank = (body - np.uint8(ord("\t"))) <= ord("\r") - ord("\t")
    blank |= body == ord(" ")
    newline = body == ord("\n")
    with_first = (0, *wanted)
    spans = _even_columns(blank, newline, len(kind.names), with_first)
    if spans is None:
        spans = _uneven_columns(blank, newline, len(kind.names), with_first)
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


def _tidy(chunk: _Chunk, kind: Line) -> tuple[_Chunk, int]:
    """The chunk without comments and remarks, and how many remarks there were."""
    lines, remarks = [], 0
    for line in chunk.text.split(b"\n"):
        words = _words(line, kind)
        if _miscounted(line, words, kind):
            raise MalformedError(chunk.offset)
        if words:
            remarks += len(words) > len(kind.names)
            lines.append(b" ".join(words[: len(kind.names)]) + b"\n")
    return _Chunk.of(b"".join(lines), chunk.offset), remarks


def _words(line: bytes, kind: Line) -> list[bytes]:
    """The columns of a line; none in an empty line or a comment."""
    words = line.split(None, kind.most)
    return [] if words and words[0].startswith(b"#") else words


def split_lines_slowly(
    stream: BinaryIO,
    kind: Line,
    path: str | os.PathLike[str],
    offset: int = 0,
    tell: Callable[[FormatError], None] | None = None,
) -> Iterator[tuple[int, list[bytes]]]:
    """The number and columns of every line that says something, from an offset on.

    A line that is not as it should be is raised, or told to `tell`.
    """
    count, left = 1, offset
    while left and (block := stream.read(min(left, BLOCK))):
        count += block.count(b"\n")
        left -= len(block)
    lines = iter(partial(stream.readline, _LONGEST_LINE), b"")
    for line, text in enumerate(lines, count):
        if line == 1 and not offset:
            text = text.removeprefix(_BOM)  # noqa: PLW2901
        words = _words(text, kind)
        problem, hint = _problem(text, words, kind)
        if problem:
            query = words[0].decode("utf-8", "replace") if words else None
            error = FormatError(problem, path=path, line=line, query=query, hint=hint)
            if tell is None:
                raise error
            tell(error)
        elif words:
            yield line, words


def _problem(line: bytes, words: list[bytes], kind: Line) -> tuple[str, str | None]:
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
    if miscounted := _miscounted(line, words, kind):
        return miscounted
    try:
        number(words[kind.value] if words else b"0")
    except ValueError:
        word = words[kind.value].decode()[:40]
        name = kind.names[kind.value]
        return f"the {name} must be a finite number, got {word!r}", None
    return "", None


def _miscounted(line: bytes, words: list[bytes], kind: Line) -> tuple[str, str] | None:
    if words and not len(kind.names) <= len(words) <= kind.most:
        hint = f"a line reads: {' '.join(kind.names)}"
        if kind is QRELS and len(line.split()) == len(RUN.names):
            hint += "; is it a run? then the files are swapped"
        return f"expected {len(kind.names)} columns, found {len(line.split()):,}", hint
    if len(words) > len(kind.names) and b"\r" in line.rstrip():
        # Several lines, which end as on old Macs.
        return "a carriage return within the line", "save the file with Unix line ends"
    return None


def _nothing_in(data: bytes, path: str) -> FormatError:
    """What to say of a file in which no line says anything."""
    text = data.removeprefix(_BOM).strip()
    problem = "there are only comments" if text else "the file is empty"
    return FormatError(problem, path=path)


TREC_RUN = TrecRuns()
TREC_QRELS = TrecQrels()
