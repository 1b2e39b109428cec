"""Tables with one row per document: query, document, and a score, rank or grade."""

from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set as AbstractSet,
)
from functools import cached_property
from itertools import compress, count, islice, pairwise
from operator import itemgetter, ne
from typing import Any, TypeVar

import numpy as np

from karat.data.gold import Gold
from karat.data.memory_runs import RankedRun, ScoredRun
from karat.data.queries import Dataset, Query
from karat.data.runs import A_RANK, LAST_RANK, Run
from karat.errors import DataError, FormatError
from karat.reading.columns.ids import ByteColumn
from karat.reading.columns.rankings import Rankings
from karat.reading.columns.run import ColumnarRun
from karat.reading.meaning.aliases import closest
from karat.reading.meaning.ambiguity import (
    note_ascending,
    note_contradictions,
    note_distances,
)
from karat.reading.meaning.values import (
    are_ids,
    note_unread,
    plain_floats,
    read_grade,
    read_id,
    read_number,
    read_text,
    show,
)
from karat.reading.source import Batched, Source, placed

T = TypeVar("T")

_READ = ("id", "document", "score", "rank", "grade", "text", "query", "distance")
_SYSTEMS = ("system", "run", "run_id", "run_name", "retriever", "model")
_SPLIT = "several systems in one table are split with --by COLUMN"


class RowColumns:
    """What the columns of a table with one row per document mean, however it is read.

    `number` is our name of the column of scores, ranks or grades. Where there is none,
    `unread` are those that may hold them. `system` may tell several systems apart.
    """

    def __init__(
        self, source: Source, fields: Mapping[str, str], header: Sequence[str]
    ) -> None:
        self.role, self.number = _read_as(source, fields)
        names = (name for name in header if name.lower() in _SYSTEMS)
        self.system = next(names, None)
        others = {*header} - {*fields.values(), self.system}
        self.unread = [name for name in header if name in others and not self.number]
        self.mapping = {ours: fields[ours] for ours in ("id", "document")}
        if self.number:
            ours = "grade" if self.role == "gold" else self.number
            self.mapping[ours] = fields[self.number]
        self._notes = source.notes

    def note_unread(self, values: Iterable[Any]) -> None:
        """Say which columns may hold the numbers, by the values of one row."""
        meant = "grade" if self.role == "gold" else "score"
        for name, value in zip(self.unread, values, strict=False):
            note_unread(name, value, self._notes, meant)

    def note_systems(self, systems: AbstractSet[str]) -> bool:
        """Say that several systems were read as one, if they were."""
        several = self.role == "run" and len(systems) > 1
        for name in sorted(systems) if several else ():
            what = f"values of {self.system!r} were read as one system; --by splits"
            self._notes.notice("systems", f"{what} them", name)
        return several

    def note_order(
        self,
        queries: Iterable[str],
        scores: Iterable[Iterable[float]],
        ranks: Mapping[str, Sequence[tuple[float, float]]] | None,
    ) -> None:
        """Say so if ranks beside the scores contradict them, or if scores rise."""
        if ranks is None:
            note_ascending(queries, scores, self._notes)
        else:
            note_contradictions(ranks, self._notes)


def _read_as(source: Source, fields: Mapping[str, str]) -> tuple[str, str | None]:
    """Whether the table is read as run or gold, and which column holds its numbers."""
    if "id" not in fields and "text" in fields:
        raise source.error("holds texts but no queries: a corpus, not a run or gold")
    for ours, what in (("id", "query"), ("document", "document")):
        if ours not in fields:
            raise source.error(
                f"no column holds the {what} id; "
                f"columns understood: {', '.join(fields.values()) or 'none'}",
                hint=closest([ours], fields.values()),
            )
    if source.role == "samples":
        raise source.error(
            "a table with one row per document holds a run or gold, not both",
            hint="give the gold apart",
        )
    # Whoever names the ranks, and no scores, wants them.
    told = source.mapping.keys() & {"score", "rank", "distance"} == {"rank"}
    numbers = ("rank",) if told else ("score", "rank", "distance")
    ranked = next((f for f in numbers if f in fields), None)
    role = source.role or _role(source, fields, ranked)
    if role == "gold":
        if "rank" in fields and "grade" not in fields:
            raise source.error(
                f"ranks documents ({fields['rank']}) and has no grades: it is a run, "
                "but gold was asked for",
                hint="swapped files? if not, --map grade=COLUMN names the grades",
            )
        return role, next((f for f in ("grade", "score") if f in fields), None)
    if ranked is None and "grade" in fields:
        raise source.error(
            f"holds grades ({fields['grade']}), but no score or rank: is it gold?",
            hint=closest(["score"], fields.values()),
        )
    return role, ranked


def _role(source: Source, fields: Mapping[str, str], ranked: str | None) -> str:
    if ranked and "grade" in fields:
        raise source.error(
            f"holds both {fields[ranked]} and {fields['grade']}: "
            "say whether it is read as run or as gold",
            hint="a relevant document that was not retrieved needs a row too",
        )
    # BEIR calls its grades scores; its name for documents gives it away.
    if "grade" in fields or fields["document"].lower() in {"corpus-id", "corpus_id"}:
        return "gold"
    if ranked is None:
        raise source.error("lists documents without numbers: say whether run or gold")
    return "run"


class TableReader(RowColumns, ColumnarRun):
    """Reads rows, some at a time, into a run or into gold; a run may lie in them."""

    def __init__(
        self, source: Source, fields: Mapping[str, str], header: Sequence[str]
    ) -> None:
        super().__init__(source, fields, header)
        names = (*map(fields.get, _READ), self.system, *self.unread)
        self.names = [*dict.fromkeys(name for name in names if name is not None)]
        self._source, self.path, self.name = source, source.path, source.name
        self.ranked = self.number not in {"score", "distance"}
        self._fields = fields
        # Ranks beside scores may contradict them.
        beside = "rank" if self.role == "run" and self.number == "score" else ""
        self._others = [fields.get(ours, "") for ours in ("text", "query", beside)]
        # In columns: millions of rows are gathered faster like this.
        self._query: list[str] = []
        self._document: list[str] = []
        self._value: list[float] = []
        self._line: list[int | None] = []
        self._text: list[str | None] = []
        self._rank: list[float | None] = []
        self._queries: dict[str, Query] = {}
        self._systems: set[str] = set()

    def take(
        self, columns: Mapping[str, Sequence[Any]], lines: Sequence[int | None]
    ) -> None:
        """Read some rows by column; one by one where any is wrong, to name that one."""
        queries: Sequence[str] = ()
        text, asked, rank = (columns.get(name, ()) for name in self._others)
        try:
            queries = self._ids("id", columns)
            documents = self._ids("document", columns)
            values = self._numbers(columns, len(lines))
            texts = [t if t is None else read_text(t, self._others[0]) for t in text]
            ranks: Sequence[float | None] = plain_floats(rank) or [
                r if r is None else read_number(r, self._others[2]) for r in rank
            ]
            for cells in zip(*map(columns.get, self.unread), strict=True):
                self.note_unread(cells)
        except DataError as error:
            if len(lines) > 1:
                for at, line in enumerate(lines):
                    self.take({name: [columns[name][at]] for name in columns}, [line])
                return
            query = next(iter(queries), None)
            problem = placed(error, path=self.path, line=lines[0], query=query)
            self._source.notes.problem(problem)
            return
        self._query += queries
        self._document += documents
        self._value += values
        self._line += lines
        self._text += texts
        self._rank += ranks
        self._systems.update(map(str, columns.get(self.system or "", ())))
        for query, question in zip(queries, asked, strict=False):
            if question is not None:
                self._queries.setdefault(query, Query(query, str(question)))

    def _ids(self, ours: str, columns: Mapping[str, Sequence[Any]]) -> Sequence[str]:
        name = self._fields[ours]
        if are_ids(columns[name]):
            return columns[name]
        return [read_id(cell, name, self._source.notes) for cell in columns[name]]

    def _numbers(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[float]:
        if self.number is None:
            # Whatever is only listed is relevant, or ranked as it is listed.
            places = range(len(self._query), len(self._query) + count)
            return [1.0 if self.role == "gold" else float(-n) for n in places]
        name = self._fields[self.number]
        numbers = plain_floats(columns[name])
        if numbers is None:
            if None in columns[name]:
                raise FormatError(f"{name} is empty; it must be a number")
            read = read_grade if self.role == "gold" else read_number
            numbers = [read(cell, name) for cell in columns[name]]
        if self.number == "rank":
            for number, cell in zip(numbers, columns[name], strict=True):
                if not 0 <= number <= LAST_RANK or number != int(number):
                    raise FormatError(f"{name} {A_RANK}, got {show(cell)}")
        return [-n for n in numbers] if self.number == "distance" else numbers

    def finish(self, format: str) -> Dataset:
        """The run or the gold that the rows hold."""
        source, notes = self._source, self._source.notes
        if not self._query and not notes.problems:
            notes.problem(source.error("has a header but no rows"))
        documents = self._by_query(self._document)
        values = self._by_query(self._value)
        numbers = {q: dict(zip(documents[q], values[q], strict=True)) for q in values}
        distinct = sum(map(len, numbers.values())) == len(self._query)
        several = self.note_systems(self._systems)
        if not distinct and (several or self.role == "gold"):
            # A document that several systems retrieved was not retrieved twice.
            self._refuse_repeated(_SPLIT if several else None)
        if self.role == "run" and self.number == "score":
            self.note_order(values, values.values(), self._pairs())
        elif self.number == "distance":
            given = {query: [-value for value in row] for query, row in values.items()}
            note_distances(self._fields["distance"], given, notes)
        run: Run | None = None
        gold = None
        if all(text is None for text in self._text):
            self._text = []
        if self.role == "gold":
            gold = Gold(numbers, name=source.name)
        elif self._text or not distinct or self.number == "rank":
            run = self
        elif self.number is None:
            run = RankedRun(documents, source.name)
        else:
            run = ScoredRun(numbers, source.name)
        return Dataset(run, gold, self._queries, format, self.mapping, notes.notices())

    def _pairs(self) -> dict[str, list[tuple[float, float]]] | None:
        """The rank and score of each document, where there are ranks beside scores."""
        if not self._rank:
            return None
        rows = self._by_query([*zip(self._rank, self._value, strict=True)]).items()
        return {q: [(r, s) for r, s in row if r is not None] for q, row in rows}

    def _by_query(self, column: list[T]) -> dict[str, list[T]]:
        """The cells of a column, by the query of their rows."""
        cells: dict[str, list[T]] = {}
        changes = map(ne, self._query, islice(self._query, 1, None))
        cuts = [0, *compress(count(1), changes), len(self._query)]
        for begin, end in pairwise(cuts if self._query else ()):
            cells.setdefault(self._query[begin], []).extend(column[begin:end])
        return cells

    def _refuse_repeated(self, hint: str | None) -> None:
        first: dict[tuple[str, str], int | None] = {}
        rows = zip(self._query, self._document, self._line, strict=True)
        for query, document, line in rows:
            if (query, document) in first:
                problem = _twice(document, first[query, document], "occurs")
                error = self._source.error(problem, line=line, query=query, hint=hint)
                self._source.notes.problem(error)
            first.setdefault((query, document), line)

    @cached_property
    def _rows(self) -> Rankings:
        column = ByteColumn.of(t or "" for t in self._text) if self._text else None
        ranked = self.number == "rank"
        values = ~np.array(self._value, np.int64) if ranked else np.array(self._value)
        queries, documents = map(ByteColumn.of, (self._query, self._document))
        return Rankings.of(queries, documents, values, column)._replace(ranked=ranked)

    def parts(self, *, texts: bool = False) -> Iterator[Callable[[], Rankings]]:
        """All rows."""
        yield lambda: self._rows if texts else self._rows._replace(texts=None)

    def repeated(self, query: str, document: str) -> FormatError:
        """Where the document is listed for the first and for the second time."""
        rows = zip(self._query, self._document, self._line, strict=True)
        lines = [line for q, d, line in rows if (q, d) == (query, document)]
        return self._source.error(
            _twice(document, lines[0], "is listed"),
            line=lines[1],
            query=query,
            hint="duplicates='first' scores its first rank only",
        )


def _twice(document: str, line: int | None, how: str) -> str:
    place = "" if line is None else f", first on line {line}"
    return f"document {document[:60]!r} {how} twice{place}"


def load_rows(
    records: Batched,
    names: list[str],
    fields: Mapping[str, str],
    source: Source,
    format: str,
) -> Dataset:
    """What rows of one document each hold, cells or records."""
    header = records.header
    for theirs in source.mapping_for(names).values() if header else ():
        if theirs not in names:
            found = ", ".join(name[:40] for name in names[:12])
            problem = f"no column is called {theirs!r}; columns found: {found}"
            raise source.lacks(theirs, problem)
    table = TableReader(source, fields, names)
    keys = {name: header.index(name) if header else name for name in table.names}
    for lines, some in records.batches:
        if header is None and not {*map(type, some)} <= {dict}:
            for line, record in zip(lines, some, strict=True):
                if isinstance(record, Mapping):
                    table.take(_columns(keys, [record]), [line])
                else:
                    problem = f"must be an object with fields, got {show(record)}"
                    source.notes.problem(source.error(problem, line=line))
        else:
            table.take(_columns(keys, some), lines)
    return table.finish(format)


def _columns(keys: Mapping[str, Any], rows: list[Any]) -> dict[str, list[Any]]:
    """The values of rows at these keys; empty cells are None."""
    columns: dict[str, list[Any]] = {}
    for name, key in keys.items():
        try:
            column = [*map(itemgetter(key), rows)]
        except KeyError:
            column = [row.get(key) for row in rows]
        if "" in column and type(rows[0]) is list:
            column = [cell or None for cell in column]
        columns[name] = column
    return columns
