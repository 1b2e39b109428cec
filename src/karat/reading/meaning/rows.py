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
from itertools import compress, count, islice, pairwise, repeat
from operator import ne
from typing import Any, NamedTuple

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
from karat.reading.meaning.ambiguity import note_ascending, note_contradictions
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
from karat.reading.source import Source, placed

_COLUMNS = ("id", "document", "score", "rank", "grade", "text", "query", "distance")
_SYSTEMS = ("system", "run", "run_id", "run_name", "retriever", "model")
_SPLIT = "several systems in one table are split with --by COLUMN"


class RowColumns:
    """What the columns of a table mean that has one row per document.

    These rules are the same for all tables, read row by row or in columns.

    Args:
        source: where the rows come from, with the role they are read for.
        fields: our field name -> the table's column.
        header: the names of all columns.

    Attributes:
        role: `run` or `gold`.
        number: our name of the column of scores, ranks or grades, if there is one.
        mapping: our field name -> the column, of those that are read.
        system: the column that seems to tell several systems apart.
        unread: the columns that may hold the numbers, where none was found.
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


class _Row(NamedTuple):
    """A document with its number, the line it stands on, and its text."""

    document: str
    number: float
    line: int | None
    text: str | None


class Table:
    """Reads rows, some at a time, into a run or into gold.

    Args:
        source: where the rows come from, with the role they are read for.
        fields: our field name -> the table's column.
        header: the names of all columns.

    Attributes:
        names: the columns whose values `take` wants; None where there is no such one.
    """

    def __init__(
        self, source: Source, fields: Mapping[str, str], header: Sequence[str]
    ) -> None:
        self._columns = columns = RowColumns(source, fields, header)
        self.names = [*map(fields.get, _COLUMNS), columns.system, *columns.unread]
        self._source = source
        self.path = source.path
        self._fields = fields
        self._role, self._number = columns.role, columns.number
        self.scored = self._scored = self._number in {"score", "distance"}
        # The rows, in columns: millions are gathered faster like this.
        self._query: list[str] = []
        self._document: list[str] = []
        self._value: list[float] = []
        self._line: list[int | None] = []
        self._text: list[str | None] = []
        self._judged: dict[tuple[str, str], int | None] = {}
        # Where there are ranks beside the scores, both of each document.
        self._ranks: dict[str, list[tuple[float, float]]] | None = None
        if self._role == "run" and self._number == "score" and "rank" in fields:
            self._ranks = {}
        self._queries: dict[str, Query] = {}
        self._systems: set[str] = set()

    def take(
        self, columns: Sequence[Sequence[Any] | None], lines: Sequence[int | None]
    ) -> None:
        """Read some rows; at once where they are plain, as nearly all are.

        Args:
            columns: their values in the order of `names`; None where that is None.
            lines: the line that each row stands on.
        """
        if self._take_rows(columns, lines):
            return
        cells = (repeat(None) if column is None else column for column in columns)
        for line, *row in zip(lines, *cells, strict=False):
            self._take_row_slowly(row, line)

    def _take_rows(
        self, columns: Sequence[Sequence[Any] | None], lines: Sequence[int | None]
    ) -> bool:
        """Rows of a run that are nothing but texts for ids, and numbers."""
        queries, documents, scores, ranks, _, text, question, distances = columns[:8]
        if self._role != "run" or not self._scored or text or question:
            return False
        numbers = plain_floats((scores if self._number == "score" else distances) or ())
        places = numbers if self._ranks is None else plain_floats(ranks or ())
        if numbers is None or places is None:
            return False
        if not queries or not documents or not are_ids(queries, documents):
            return False
        if self._number == "distance":
            numbers = [-number for number in numbers]
        self._query += queries
        self._document += documents
        self._value += numbers
        self._line += lines
        self._systems.update(map(str, columns[8] or ()))
        if self._ranks is not None:
            both = zip(places, numbers, strict=True)
            for query, pair in zip(queries, both, strict=True):
                self._ranks.setdefault(query, []).append(pair)
        return True

    def _take_row_slowly(self, row: Sequence[Any], line: int | None) -> None:
        query, notes = None, self._source.notes
        _, _, _, rank, _, text, question, _, system, *others = row
        try:
            query = read_id(row[0], self._fields["id"], notes)
            document = read_id(row[1], self._fields["document"], notes)
            if self._role == "gold":
                if (query, document) in self._judged:
                    raise _twice(document, self._judged[query, document])
                self._judged[query, document] = line
            number = self._number_of(row)
            if text is not None or self._text:
                text = None if text is None else read_text(text, self._fields["text"])
                self._text += [None] * (len(self._query) - len(self._text)) + [text]
            self._query.append(query)
            self._document.append(document)
            self._value.append(number)
            self._line.append(line)
            if self._ranks is not None and rank is not None:
                pair = (read_number(rank, self._fields["rank"]), number)
                self._ranks.setdefault(query, []).append(pair)
            if self._columns.system is not None:
                self._systems.add(str(system))
            self._columns.note_unread(others)
            if question is not None and query not in self._queries:
                self._queries[query] = Query(query, str(question))
        except DataError as error:
            notes.problem(placed(error, path=self._source.path, line=line, query=query))

    def _number_of(self, row: Sequence[Any]) -> float:
        if self._number is None:
            # Whatever is only listed is relevant, or ranked as it is listed.
            return 1.0 if self._role == "gold" else float(len(self._query))
        value, column = row[_COLUMNS.index(self._number)], self._fields[self._number]
        if value is None:
            raise FormatError(f"{column} is empty; it must be a number")
        if self._role == "gold":
            return read_grade(value, column)
        number = read_number(value, column)
        if self._number == "rank" and not (
            0 <= number <= LAST_RANK and number == int(number)
        ):
            raise FormatError(f"{column} {A_RANK}, got {show(value)}")
        return -number if self._number == "distance" else number

    def finish(self, format: str) -> Dataset:
        """The run or the gold that the rows hold."""
        source, notes = self._source, self._source.notes
        if not self._query and not notes.problems:
            notes.problem(source.error("has a header but no rows"))
        if self._columns.note_systems(self._systems):
            # A document that several systems retrieved was not retrieved twice.
            for query, first, row in _listed_again(self._rows):
                problem = _twice(row.document, first.line, hint=_SPLIT)
                notes.problem(
                    placed(problem, path=source.path, line=row.line, query=query)
                )
        if self._role == "run" and self._number == "score":
            scores: Iterable[Iterable[float]] = map(dict.values, self._numbers.values())
            if not self._distinct:
                scores = ((row.number for row in r) for r in self._rows.values())
            self._columns.note_order(self._numbers, scores, self._ranks)
        gold = Gold(self._numbers, name=source.name) if self._role == "gold" else None
        run = None if gold else self._run()
        mapping = self._columns.mapping
        return Dataset(run, gold, self._queries, format, mapping, notes.notices())

    def _run(self) -> Run:
        if self._scored and not self._text and self._distinct:
            return ScoredRun(self._numbers, self._source.name)
        if self._number is None and not self._text:
            ids = {q: [row.document for row in r] for q, r in self._rows.items()}
            return RankedRun(ids, self._source.name)
        texts = ByteColumn.of(t or "" for t in self._text) if self._text else None
        ranked = self._number == "rank"
        values = ~np.array(self._value, np.int64) if ranked else np.array(self._value)
        if self._number is None:
            values = -values
        queries, documents = map(ByteColumn.of, (self._query, self._document))
        rows = Rankings.of(queries, documents, values, texts)._replace(ranked=ranked)
        return ColumnarRun(_ListedRows(rows, self), self._source.name)

    def lines_of(self, query: str, document: str) -> list[int | None]:
        """The lines on which a document is listed for a query."""
        rows = zip(self._query, self._document, self._line, strict=True)
        return [line for q, d, line in rows if (q, d) == (query, document)]

    @cached_property
    def _numbers(self) -> dict[str, dict[str, float]]:
        """The number of each document, by query."""
        numbers: dict[str, dict[str, float]] = {}
        changes = map(ne, self._query, islice(self._query, 1, None))
        cuts = [0, *compress(count(1), changes), len(self._query)]
        for begin, end in pairwise(cuts if self._query else ()):
            some = zip(self._document[begin:end], self._value[begin:end], strict=True)
            numbers.setdefault(self._query[begin], {}).update(some)
        return numbers

    @cached_property
    def _distinct(self) -> bool:
        return sum(map(len, self._numbers.values())) == len(self._query)

    @cached_property
    def _rows(self) -> dict[str, list[_Row]]:
        rows: dict[str, list[_Row]] = {}
        texts = self._text + [None] * (len(self._query) - len(self._text))
        listed = map(_Row, self._document, self._value, self._line, texts)
        for query, row in zip(self._query, listed, strict=True):
            rows.setdefault(query, []).append(row)
        return rows


class _ListedRows(RunSource):
    """Rows that were listed; a document may stand in several of them."""

    def __init__(self, rows: Rankings, listed: Table) -> None:
        self.path, self.ranked = listed.path, not listed.scored
        self._rows, self._listed = rows, listed

    def parts(self, *, texts: bool = False) -> Iterator[Callable[[], Rankings]]:
        """All rows."""
        yield lambda: self._rows if texts else self._rows._replace(texts=None)

    def repeated(self, query: str, document: str) -> DataError:
        """Where the document is listed for the first and for the second time."""
        first, second = self._listed.lines_of(query, document)[:2]
        place = "" if first is None else f", first on line {first}"
        problem = f"document {document[:60]!r} is listed twice{place}"
        hint = "duplicates='first' scores its first rank only"
        return FormatError(problem, line=second, query=query, hint=hint)


def _listed_again(
    rows: Mapping[str, Sequence[_Row]],
) -> Iterator[tuple[str, _Row, _Row]]:
    """Query, first row and this row of everything that was listed before."""
    for query, row in rows.items():
        first: dict[str, _Row] = {}
        for listed in row:
            if first.setdefault(listed.document, listed) is not listed:
                yield query, first[listed.document], listed


def _twice(document: str, line: int | None, hint: str | None = None) -> FormatError:
    place = "" if line is None else f", first on line {line}"
    return FormatError(f"document {document[:60]!r} occurs twice{place}", hint=hint)
