"""Tables with one row per document: query, document, and a score, rank or grade."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from karat.data.gold import Gold
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.data.policies import Policies
from karat.data.queries import Dataset, Query
from karat.data.runs import Document, Labels, Located, Run, run_notices
from karat.data.score_ranks import rank_order
from karat.errors import DataError, FormatError
from karat.reading.meaning.aliases import closest
from karat.reading.meaning.order import note_ascending, note_contradictions
from karat.reading.meaning.values import (
    note_unread,
    read_grade,
    read_id,
    read_number,
    read_text,
    show,
)
from karat.reading.problems import placed
from karat.reading.streams import Source

__all__ = [
    "COLUMNS",
    "Rows",
    "Table",
    "read_as_one",
    "reading",
    "system_column",
    "unread",
]

COLUMNS = ("id", "document", "score", "rank", "grade", "text", "query", "distance")
"""The columns a row is read from, in the order `Table.take` wants their values."""

_SPLIT = "several systems in one table are split with --by COLUMN"

_SYSTEMS = ("system", "run", "run_id", "run_name", "retriever", "model")


def system_column(names: Iterable[str]) -> str | None:
    """The column that seems to tell the systems in one table apart.

    Example:
        >>> system_column(["query_id", "System", "doc_id", "score"])
        'System'
    """
    return next((name for name in names if name.lower() in _SYSTEMS), None)


def unread(
    names: Iterable[str], fields: Mapping[str, str], system: str | None
) -> list[str]:
    """The columns that are neither read nor name a system."""
    return [name for name in names if name not in {*fields.values(), system}]


def read_as_one(column: str | None) -> str:
    """What is to be said of a table of several systems that nobody asked to split."""
    return f"values of {column!r} were read as one system; --by splits them"


class Rows:
    """The records of a table: the names of its columns, and each row with its line."""

    def __init__(
        self, header: list[str], rows: Iterable[tuple[int, list[Any]]]
    ) -> None:
        self.header = header
        self.rows = rows

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for line, row in self.rows:
            cells = zip(self.header, row, strict=True)
            yield line, {name: cell or None for name, cell in cells}


class _Row(NamedTuple):
    """A document with its number, the line it stands on, and its text."""

    document: str
    number: float
    line: int | None = None
    text: str | None = None


class Table:
    """Reads rows one after the other into a run, or into gold.

    Args:
        source: where the rows come from, with the role they are read for.
        fields: our field name -> the table's column.
        system: the column that may name several systems; its values come next in rows.
        others: columns that nobody asked for; their values come last in rows.
    """

    def __init__(
        self,
        source: Source,
        fields: Mapping[str, str],
        system: str | None = None,
        others: Sequence[str] = (),
    ) -> None:
        self._source = source
        self._fields = fields
        self._role, self._number = reading(source, fields)
        # Plain tuples, of which millions are made faster than named ones.
        self._rows: dict[str, list[tuple[str, float, int | None, str | None]]] = {}
        self._judged: dict[tuple[str, str], int | None] = {}
        self._has_texts = False
        self._scored = self._number in {"score", "distance"}
        # Where there are ranks beside the scores, both of each document.
        self._ranks: dict[str, list[tuple[float, float]]] | None = None
        if self._role == "run" and self._number == "score" and "rank" in fields:
            self._ranks = {}
        self._queries: dict[str, Query] = {}
        self._what = COLUMNS.index(self._number) if self._number else None
        self._system = system
        ungraded = self._role == "gold" and self._number is None
        self._others = [*others] if ungraded else []
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
            if self._ranks is not None and row[3] is not None:
                rank = read_number(row[3], self._fields["rank"])
                self._ranks.setdefault(query, []).append((rank, number))
            if self._system is not None:
                self._systems.add(str(row[len(COLUMNS)]))
            for name, value in zip(self._others, row[len(COLUMNS) + 1 :], strict=False):
                note_unread(name, value, notes)
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
        if self._number == "distance":
            return -number
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
        if self._ranks is not None:
            note_contradictions(self._ranks, source.notes)
        elif self._role == "run" and self._number == "score":
            scores = ((r[1] for r in row) for row in self._rows.values())
            note_ascending(self._rows, scores, source.notes)
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
        name = self._source.name
        if self._scored and not self._has_texts:
            numbers = self._numbers()
            if all(len(numbers[query]) == len(r) for query, r in self._rows.items()):
                return ScoredRun(numbers, name)
        listed = _ListedRun(self._named(), self._source, scored=self._scored)
        rows = self._rows.values()
        tied = self._number and any(len({r[1] for r in row}) < len(row) for row in rows)
        if tied or (self._scored and not self._has_texts):
            return listed
        rankings = dict(listed.rankings(Policies()))
        if self._has_texts:
            return DocumentRun(rankings, name)
        ids = {q: [str(d.id) for d in ranking] for q, ranking in rankings.items()}
        return RankedRun(ids, name)

    def _numbers(self) -> dict[str, dict[str, float]]:
        rows = self._rows.items()
        return {query: {d: n for d, n, _, _ in row} for query, row in rows}

    def _named(self) -> dict[str, list[_Row]]:
        return {query: [*map(_Row._make, row)] for query, row in self._rows.items()}

    def _refuse_mixture(self) -> None:
        """A document that several systems retrieved was not retrieved twice."""
        for query, first, row in _listed_again(self._named()):
            problem = _twice(row.document, first.line, hint=_SPLIT)
            self._source.notes.problem(
                placed(problem, path=self._source.path, line=row.line, query=query)
            )


class _ListedRun(DocumentRun):
    """Rows by query, ordered by score or rank; a document may stand in several.

    What a document earns the second time is for the policy on duplicates to say, and
    which of equal scores comes first for the policy on ties. Equal ranks stay in the
    order of the rows.
    """

    def __init__(
        self, rows: Mapping[str, Sequence[_Row]], source: Source, *, scored: bool
    ) -> None:
        self._rows = rows
        self._scored = scored
        self._path = source.path
        super().__init__(
            {
                query: [Document(d, text, n if scored else None) for d, n, _, text in r]
                for query, r in rows.items()
            },
            source.name,
        )

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents in the rows, put in order."""
        if policies.duplicates == "error":
            self._refuse_repeated()
        ordered = DocumentRun(dict(self.rankings(policies)), self.name)
        found = ordered.locate(labels, judged=judged, policies=policies)
        notices = run_notices(self._rules(policies), ties=self._ties(labels))
        return replace(found, notices=(*notices, *found.notices))

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents, best first."""
        sign = 1 if self._scored else -1
        for query, documents in self._rankings.items():
            scores = [sign * row.number for row in self._rows[query]]
            names = [row.document for row in self._rows[query]]
            order = rank_order(scores, names, self._rules(policies))
            yield query, [documents[place] for place in order]

    def _rules(self, policies: Policies) -> Policies:
        return policies if self._scored else replace(policies, ties="input")

    def _ties(self, labels: Labels) -> dict[str, int]:
        """How many relevant documents share their number with another, by query."""
        ties = {}
        for query, wanted in labels.items():
            numbers = {row[:2] for row in self._rows.get(query, ())}
            often = Counter(number for _, number in numbers)
            tied = {d for d, n in numbers if often[n] > 1 and wanted.get(d, 0) > 0}
            ties[query] = len(tied)
        return {query: count for query, count in ties.items() if count}

    def _refuse_repeated(self) -> None:
        for query, first, second in _listed_again(self._rows):
            place = "" if first.line is None else f", first on line {first.line}"
            raise FormatError(
                f"document {second.document[:60]!r} is listed twice{place}",
                path=self._path,
                line=second.line,
                query=query,
                hint="duplicates='first' scores its first rank only",
            )


def _listed_again(
    rows: Mapping[str, Sequence[_Row]],
) -> Iterator[tuple[str, _Row, _Row]]:
    """Query, first row and this row of everything that was listed before."""
    for query, row in rows.items():
        if len({listed.document for listed in row}) == len(row):
            continue
        first: dict[str, _Row] = {}
        for listed in row:
            if first.setdefault(listed.document, listed) is not listed:
                yield query, first[listed.document], listed


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


def _found(fields: Mapping[str, str]) -> str:
    return f"columns understood: {', '.join(fields.values()) or 'none'}"
