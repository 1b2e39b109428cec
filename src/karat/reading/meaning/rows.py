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
from karat.reading.columns.run import ColumnarRun, RunSource
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


class Table(RowColumns, RunSource):
    """Reads rows, some at a time, into a run or into gold; a run may lie in them."""

    def __init__(
        self, source: Source, fields: Mapping[str, str], header: Sequence[str]
    ) -> None:
        super().__init__(source, fields, header)
        names = (*map(fields.get, _READ), self.system, *self.unread)
        self.names = [*dict.fromkeys(name for name in names if name is not None)]
        self._source, self.path = source, source.path
        self.ranked = self.number not in {"score", "distance"}
        self._fields = fields
        # In columns: millions of rows are gathered faster like this.
        self._query: list[str] = []
        self._document: list[str] = []
        self._value: list[float] = []
        self._line: list[int | None] = []
        self._text: list[str | None] = []
        # Where there are ranks beside the scores, both of each document.
        self._ranks: dict[str, list[tuple[float, float]]] | None = None
        if self.role == "run" and self.number == "score" and "rank" in fields:
            self._ranks = {}
        self._queries: dict[str, Query] = {}
        self._systems: set[str] = set()

    def take(
        self, columns: Mapping[str, Sequence[Any]], lines: Sequence[int | None]
    ) -> None:
        """Read some rows by column: at once where they are plain, as nearly all are."""
        if not self._take_rows(columns, lines):
            for line, *row in zip(lines, *columns.values(), strict=False):
                self._take_row_slowly(dict(zip(columns, row, strict=True)), line)

    def _take_rows(
        self, columns: Mapping[str, Sequence[Any]], lines: Sequence[int | None]
    ) -> bool:
        """Rows that are nothing but texts for ids, and numbers."""
        queries, documents, text, question, ranks = (
            columns.get(self._fields.get(ours, ""), ())
            for ours in ("id", "document", "text", "query", "rank")
        )
        if self.number in {None, "rank"} or text or question:
            return False
        numbers = plain_floats(columns[self._fields[self.number or ""]])
        places = numbers if self._ranks is None else plain_floats(ranks)
        if numbers is None or places is None or not are_ids(queries, documents):
            return False
        if self.number == "distance":
            numbers = [-number for number in numbers]
        self._query += queries
        self._document += documents
        self._value += numbers
        self._line += lines
        self._systems.update(map(str, columns.get(self.system or "", ())))
        if self._ranks is not None:
            both = zip(places, numbers, strict=True)
            for query, pair in zip(queries, both, strict=True):
                self._ranks.setdefault(query, []).append(pair)
        return True

    def _take_row_slowly(self, row: Mapping[str, Any], line: int | None) -> None:
        query, notes, fields = None, self._source.notes, self._fields
        text, question, rank = (
            row.get(fields.get(ours, "")) for ours in ("text", "query", "rank")
        )
        try:
            query = read_id(row[fields["id"]], fields["id"], notes)
            document = read_id(row[fields["document"]], fields["document"], notes)
            number = self._number_of(row)
            if "text" in fields:
                text = None if text is None else read_text(text, fields["text"])
                self._text.append(text)
            self._query.append(query)
            self._document.append(document)
            self._value.append(number)
            self._line.append(line)
            if self._ranks is not None and rank is not None:
                pair = (read_number(rank, fields["rank"]), number)
                self._ranks.setdefault(query, []).append(pair)
            if self.system is not None:
                self._systems.add(str(row[self.system]))
            self.note_unread(map(row.get, self.unread))
            if question is not None:
                self._queries.setdefault(query, Query(query, str(question)))
        except DataError as error:
            notes.problem(placed(error, path=self._source.path, line=line, query=query))

    def _number_of(self, row: Mapping[str, Any]) -> float:
        if self.number is None:
            # Whatever is only listed is relevant, or ranked as it is listed.
            return 1.0 if self.role == "gold" else float(-len(self._query))
        column = self._fields[self.number]
        value = row[column]
        if value is None:
            raise FormatError(f"{column} is empty; it must be a number")
        if self.role == "gold":
            return read_grade(value, column)
        number = read_number(value, column)
        if self.number == "rank" and not (
            0 <= number <= LAST_RANK and number == int(number)
        ):
            raise FormatError(f"{column} {A_RANK}, got {show(value)}")
        return -number if self.number == "distance" else number

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
            self.note_order(values, values.values(), self._ranks)
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
            run = ColumnarRun(self, source.name)
        elif self.number is None:
            run = RankedRun(documents, source.name)
        else:
            run = ScoredRun(numbers, source.name)
        return Dataset(run, gold, self._queries, format, self.mapping, notes.notices())

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
    table = Table(source, fields, names)
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
