"""Tables with one row per document: query, document, and a score, rank or grade."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from karat.data.gold import Gold
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.data.policies import Policies
from karat.data.queries import Dataset, Query
from karat.data.runs import Document, Run
from karat.errors import DataError, FormatError
from karat.reading.format import Source
from karat.reading.meaning.fields import closest
from karat.reading.meaning.listed import ListedRun, Row, in_score_order, listed_again
from karat.reading.meaning.values import (
    read_grade,
    read_id,
    read_number,
    read_text,
    show,
)
from karat.reading.problems import placed

__all__ = [
    "COLUMNS",
    "Table",
    "read_as_one",
    "reading",
    "rows_of",
    "system_column",
]

COLUMNS = ("id", "document", "score", "rank", "grade", "text", "query")
"""The columns a row is read from, in the order `Table.take` wants their values."""

_TIED = "queries with rows of one rank, kept in the order of the file"
_TIED_ONE = "query with rows of one rank, kept in the order of the file"

_SPLIT = "several systems in one table are split with --by COLUMN"

_SYSTEMS = ("system", "run", "run_id", "run_name", "retriever", "model")


def system_column(names: Iterable[str]) -> str | None:
    """The column that seems to tell the systems in one table apart.

    Example:
        >>> system_column(["query_id", "System", "doc_id", "score"])
        'System'
    """
    return next((name for name in names if name.lower() in _SYSTEMS), None)


def read_as_one(column: str | None) -> str:
    """What is to be said of a table of several systems that nobody asked to split."""
    return f"values of {column!r} were read as one system; --by splits them"


class Table:
    """Reads rows one after the other into a run, or into gold.

    Args:
        source: where the rows come from, with the role they are read for.
        fields: our field name -> the table's column.
        system: the column that may name several systems; its values come last in rows.
    """

    def __init__(
        self, source: Source, fields: Mapping[str, str], system: str | None = None
    ) -> None:
        self._source = source
        self._fields = fields
        self._role, self._number = reading(source, fields)
        # Plain tuples, of which millions are made faster than named ones.
        self._rows: dict[str, list[tuple[str, float, int | None, str | None]]] = {}
        self._judged: dict[tuple[str, str], int | None] = {}
        self._has_texts = False
        self._queries: dict[str, Query] = {}
        self._what = COLUMNS.index(self._number) if self._number else None
        self._system = system
        self._systems: set[str] = set()

    def take(self, row: Sequence[Any], line: int | None) -> None:
        """Read one row, its values in the order of `COLUMNS`."""
        query = None
        try:
            notes = self._source.notes
            query = read_id(row[0], self._fields["id"], notes)
            document = read_id(row[1], self._fields["document"], notes)
            if self._role == "gold":
                self._judge_once(query, document, line)
            number = 1.0 if self._what is None else self._value(row[self._what])
            text = None
            if row[5] is not None:
                text = read_text(row[5], self._fields["text"])
                self._has_texts = True
            self._rows.setdefault(query, []).append((document, number, line, text))
            if self._system is not None:
                self._systems.add(str(row[-1]))
            if row[6] is not None and query not in self._queries:
                self._queries[query] = Query(query, str(row[6]))
        except DataError as error:
            notes.problem(placed(error, path=self._source.path, line=line, query=query))

    def _judge_once(self, query: str, document: str, line: int | None) -> None:
        if (query, document) in self._judged:
            raise _twice(document, self._judged[query, document])
        self._judged[query, document] = line

    def _value(self, value: object) -> float:
        column = self._fields[str(self._number)]
        if value is None:
            raise FormatError(f"{column} is empty; it must be a number")
        if self._role == "gold":
            return read_grade(value, column)
        number = read_number(value, column)
        if self._number == "rank" and (number < 0 or number != int(number)):
            raise FormatError(
                f"{column} must be a whole number >= 0, got {show(value)}"
            )
        return number

    def finish(self, format: str) -> Dataset:
        """The run or the gold that the rows hold."""
        source = self._source
        if not self._rows and not source.notes.problems:
            source.notes.problem(source.error("has a header but no rows"))
        if self._role == "run" and len(self._systems) > 1:
            for system in sorted(self._systems):
                source.notes.notice("systems", read_as_one(self._system), system)
            self._refuse_mixture()
        mapping = {f: t for f, t in self._fields.items() if f in COLUMNS[:2]}
        if self._number:
            mapping["grade" if self._role == "gold" else self._number] = self._fields[
                self._number
            ]
        run, gold = None, None
        if self._role == "gold":
            gold = Gold(self._numbers(), name=source.name)
        else:
            run = self._run()
        return Dataset(
            run, gold, self._queries, format, mapping, source.notes.notices()
        )

    def _run(self) -> Run:
        source, scored = self._source, self._number == "score"
        if scored and not self._has_texts:
            numbers = self._numbers()
            if all(len(numbers[query]) == len(r) for query, r in self._rows.items()):
                return ScoredRun(numbers, source.name)
            return ListedRun(self._named(), source.name, source.path)
        rows = self._named()
        rankings = {query: _in_order(row, self._number) for query, row in rows.items()}
        if self._number == "rank":
            for query, row in rows.items():
                if len({listed.number for listed in row}) < len(row):
                    source.notes.notice("ties", _TIED, query, one=_TIED_ONE)
        if not self._has_texts:
            ids = {q: [listed.document for listed in r] for q, r in rankings.items()}
            return RankedRun(ids, source.name)
        return DocumentRun(
            {
                query: tuple(
                    Document(
                        id=r.document, text=r.text, score=r.number if scored else None
                    )
                    for r in ranking
                )
                for query, ranking in rankings.items()
            },
            source.name,
        )

    def _numbers(self) -> dict[str, dict[str, float]]:
        rows = self._rows.items()
        return {query: {d: n for d, n, _, _ in row} for query, row in rows}

    def _named(self) -> dict[str, list[Row]]:
        return {query: [*map(Row._make, row)] for query, row in self._rows.items()}

    def _refuse_mixture(self) -> None:
        """A document that several systems retrieved was not retrieved twice."""
        for query, first, row in listed_again(self._named()):
            problem = _twice(row.document, first.line, hint=_SPLIT)
            self._source.notes.problem(
                placed(problem, path=self._source.path, line=row.line, query=query)
            )


def _in_order(rows: list[Row], number: str | None) -> list[Row]:
    if number == "score":
        return in_score_order(rows, Policies())
    return sorted(rows, key=lambda row: row.number) if number == "rank" else rows


def _twice(document: str, line: int | None, hint: str | None = None) -> FormatError:
    place = "" if line is None else f", first on line {line}"
    return FormatError(f"document {document[:60]!r} occurs twice{place}", hint=hint)


def reading(source: Source, fields: Mapping[str, str]) -> tuple[str, str | None]:
    """Whether the table is read as run or gold, and which column holds its numbers."""
    if "id" not in fields and "text" in fields:
        raise source.error("holds texts but no queries: a corpus, not a run or gold")
    for ours in ("id", "document"):
        if ours not in fields:
            raise source.error(
                f"no column holds the {'query' if ours == 'id' else 'document'} id; "
                f"{_found(fields)}",
                hint=closest([ours], fields.values()),
            )
    if source.role == "samples":
        raise source.error(
            "a table with one row per document holds a run or gold, not both",
            hint="give the gold apart",
        )
    ranked = next((f for f in ("score", "rank") if f in fields), None)
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


def _found(fields: Mapping[str, str]) -> str:
    return f"columns understood: {', '.join(fields.values()) or 'none'}"


def rows_of(
    records: Iterable[tuple[int | None, Mapping[Any, Any]]],
    fields: Mapping[str, str],
    system: str | None = None,
) -> Iterable[tuple[list[Any], int | None]]:
    """The values of records in the order a table takes them."""
    names = [*(fields.get(column) for column in COLUMNS), system]
    for line, record in records:
        yield [None if name is None else record.get(name) for name in names], line
