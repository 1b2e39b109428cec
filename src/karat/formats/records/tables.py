"""Tables with one row per document: query, document, and a score, rank or grade."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from karat.data.gold import Gold
from karat.data.queries import Loaded, Query
from karat.data.rankings import DocumentRun, RankedRun, ScoredRun
from karat.data.runs import Document, Run
from karat.errors import DataError, FormatError
from karat.formats.format import Source
from karat.formats.notes import placed
from karat.formats.records.fields import closest
from karat.formats.records.values import (
    read_grade,
    read_id,
    read_number,
    read_text,
    show,
)

__all__ = ["COLUMNS", "Table", "reading", "rows_of", "system_column"]

COLUMNS = ("id", "document", "score", "rank", "grade", "text", "query")
"""The columns a row is read from, in the order `Table.take` wants their values."""

_TIED = "rows of one query with the same rank, kept in the order of the file"

_SYSTEMS = ("system", "run", "run_id", "run_name", "retriever", "model")


def system_column(names: Iterable[str]) -> str | None:
    """The column that seems to tell the systems in one table apart.

    Example:
        >>> system_column(["query_id", "System", "doc_id", "score"])
        'System'
    """
    return next((name for name in names if name.lower() in _SYSTEMS), None)


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
        self._rows: dict[str, dict[str, tuple[float, int | None]]] = {}
        self._texts: dict[tuple[str, str], str] = {}
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
            documents = self._rows.setdefault(query, {})
            if document in documents:
                raise _twice(document, documents[document][1], self._role)
            number = 1.0 if self._what is None else self._value(row[self._what])
            documents[document] = (number, line)
            if self._system is not None:
                self._systems.add(str(row[-1]))
            if row[5] is not None:
                self._texts[query, document] = read_text(row[5], self._fields["text"])
            if row[6] is not None and query not in self._queries:
                self._queries[query] = Query(query, str(row[6]))
        except DataError as error:
            notes.problem(placed(error, path=self._source.path, line=line, query=query))

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

    def finish(self, format: str) -> Loaded:
        """The run or the gold that the rows hold."""
        source = self._source
        if not self._rows and not source.notes.problems:
            source.notes.problem(source.error("has a header but no rows"))
        if self._role == "run" and len(self._systems) > 1:
            text = f"values of {self._system!r} were read as one system; --by splits"
            for system in sorted(self._systems):
                source.notes.notice("systems", f"{text} them", system)
        mapping = {f: t for f, t in self._fields.items() if f in COLUMNS[:2]}
        if self._number:
            mapping["grade" if self._role == "gold" else self._number] = self._fields[
                self._number
            ]
        run, gold = None, None
        if self._role == "gold":
            labels = {
                q: {d: n for d, (n, _) in r.items()} for q, r in self._rows.items()
            }
            gold = Gold(labels, name=source.name)
        else:
            run = self._run()
        return Loaded(run, gold, self._queries, format, mapping, source.notes.notices())

    def _run(self) -> Run:
        name, rows = self._source.name, self._rows
        scored = self._number == "score"
        if scored and not self._texts:
            return ScoredRun(
                {q: {d: n for d, (n, _) in r.items()} for q, r in rows.items()}, name
            )
        rankings = {
            query: _in_order([(n, d) for d, (n, _) in row.items()], self._number)
            for query, row in rows.items()
        }
        if self._number == "rank":
            for query, row in rows.items():
                if len({number for number, _ in row.values()}) < len(row):
                    self._source.notes.notice("ties", _TIED, query)
        if not self._texts:
            return RankedRun(rankings, name)
        return DocumentRun(
            {
                query: tuple(
                    Document(
                        id=d,
                        text=self._texts.get((query, d)),
                        score=rows[query][d][0] if scored else None,
                    )
                    for d in ranking
                )
                for query, ranking in rankings.items()
            },
            name,
        )


def _in_order(pairs: list[tuple[float, str]], number: str | None) -> list[str]:
    if number == "score":
        pairs = sorted(pairs, reverse=True)
    elif number == "rank":
        pairs = sorted(pairs, key=lambda pair: pair[0])
    return [document for _, document in pairs]


def _twice(document: str, line: int | None, role: str) -> FormatError:
    place = "" if line is None else f", first on line {line}"
    hint = "several systems in one table are split with --by COLUMN"
    return FormatError(
        f"document {document[:60]!r} occurs twice{place}",
        hint=hint if role == "run" else None,
    )


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
