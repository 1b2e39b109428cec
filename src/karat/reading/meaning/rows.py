"""Tables with one row per document: query, document, and a score, rank or grade."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress, count, islice, pairwise, repeat
from operator import ne
from typing import Any, NamedTuple

from karat.data.gold import Gold
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.data.policies import Policies
from karat.data.queries import Dataset, Query
from karat.data.runs import Document, Labels, Located, Run, run_notices
from karat.data.score_ranks import rank_order
from karat.errors import DataError, FormatError
from karat.reading.meaning.order import note_ascending, note_contradictions
from karat.reading.meaning.table_columns import (
    COLUMNS,
    read_as_one,
    reading,
    system_column,
    unread,
)
from karat.reading.meaning.values import (
    note_unread,
    plain_floats,
    read_grade,
    read_id,
    read_number,
    read_text,
    show,
)
from karat.reading.problems import placed
from karat.reading.streams import Source

__all__ = ["Table"]

_SPLIT = "several systems in one table are split with --by COLUMN"


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
        header: the names of all columns.

    Attributes:
        names: the columns whose values `take` wants: those of `COLUMNS`, the one that
            may name several systems, and those that nobody asked for; None where there
            is no such column.
    """

    def __init__(
        self, source: Source, fields: Mapping[str, str], header: Sequence[str]
    ) -> None:
        self._system = system_column(header)
        others = unread(header, fields, self._system)
        self.names = [*map(fields.get, COLUMNS), self._system, *others]
        self._source = source
        self._fields = fields
        self._role, self._number = reading(source, fields)
        # The rows, in columns: millions are gathered faster like this.
        self._query: list[str] = []
        self._document: list[str] = []
        self._value: list[float] = []
        self._line: list[int | None] = []
        self._text: list[str | None] = []
        self._judged: dict[tuple[str, str], int | None] = {}
        self._has_texts = False
        self._scored = self._number in {"score", "distance"}
        # Where there are ranks beside the scores, both of each document.
        self._ranks: dict[str, list[tuple[float, float]]] | None = None
        if self._role == "run" and self._number == "score" and "rank" in fields:
            self._ranks = {}
        self._queries: dict[str, Query] = {}
        self._what = COLUMNS.index(self._number) if self._number else None
        self._others = [*others] if self._number is None else []
        self._systems: set[str] = set()
        self._meant = "grade" if self._role == "gold" else "score"

    def take_all(
        self, columns: Sequence[Sequence[Any] | None], lines: Sequence[int | None]
    ) -> None:
        """Read some rows; at once where they are plain, as nearly all are.

        Args:
            columns: their values in the order of `names`; None where that is None.
            lines: the line that each row stands on.
        """
        if self._take_plain(columns, lines):
            return
        cells = (repeat(None) if column is None else column for column in columns)
        for line, *row in zip(lines, *cells, strict=False):
            self.take(row, line)

    def _take_plain(
        self, columns: Sequence[Sequence[Any] | None], lines: Sequence[int | None]
    ) -> bool:
        """Rows of a run that are nothing but texts for ids, and numbers."""
        queries, documents, _, ranks, _, text, question, _, system, *_ = columns
        if self._role != "run" or not self._scored or text or question:
            return False
        numbers = plain_floats(columns[self._what or 0] or ())
        places = numbers if self._ranks is None else plain_floats(ranks or ())
        if numbers is None or places is None:
            return False
        if not _are_ids(queries) or not _are_ids(documents):
            return False
        if self._number == "distance":
            numbers = [-number for number in numbers]
        self._query += queries or ()
        self._document += documents or ()
        self._value += numbers
        self._line += lines
        self._text += [None] * len(numbers)
        self._systems.update(map(str, system or ()))
        if self._ranks is not None:
            both = zip(places, numbers, strict=True)
            for query, pair in zip(queries or (), both, strict=True):
                self._ranks.setdefault(query, []).append(pair)
        return True

    def take(self, row: Sequence[Any], line: int | None) -> None:
        """Read one row, its values in the order of `names`."""
        query = None
        try:
            notes = self._source.notes
            query = read_id(row[0], self._fields["id"], notes)
            document = read_id(row[1], self._fields["document"], notes)
            if self._role == "gold":
                self._judge_once(query, document, line)
            number = 1.0 if self._what is None else self._number_of(row[self._what])
            text = None
            if row[5] is not None:
                text = read_text(row[5], self._fields["text"])
                self._has_texts = True
            self._query.append(query)
            self._document.append(document)
            self._value.append(number)
            self._line.append(line)
            self._text.append(text)
            if self._ranks is not None and row[3] is not None:
                rank = read_number(row[3], self._fields["rank"])
                self._ranks.setdefault(query, []).append((rank, number))
            if self._system is not None:
                self._systems.add(str(row[len(COLUMNS)]))
            for name, value in zip(self._others, row[len(COLUMNS) + 1 :], strict=False):
                note_unread(name, value, notes, self._meant)
            if row[6] is not None and query not in self._queries:
                self._queries[query] = Query(query, str(row[6]))
        except DataError as error:
            notes.problem(placed(error, path=self._source.path, line=line, query=query))

    def _judge_once(self, query: str, document: str, line: int | None) -> None:
        if (query, document) in self._judged:
            raise _twice(document, self._judged[query, document])
        self._judged[query, document] = line

    def _number_of(self, value: object) -> float:
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
        if not self._query and not source.notes.problems:
            source.notes.problem(source.error("has a header but no rows"))
        if self._role == "run" and len(self._systems) > 1:
            for system in sorted(self._systems):
                source.notes.notice("systems", read_as_one(self._system), system)
            self._refuse_mixture()
        if self._ranks is not None:
            note_contradictions(self._ranks, source.notes)
        elif self._role == "run" and self._number == "score":
            scores: Iterable[Iterable[float]] = map(dict.values, self._numbers.values())
            if not self._distinct:
                scores = ((row.number for row in r) for r in self._rows.values())
            note_ascending(self._numbers, scores, source.notes)
        mapping = {f: t for f, t in self._fields.items() if f in COLUMNS[:2]}
        if self._number:
            mapping["grade" if self._role == "gold" else self._number] = self._fields[
                self._number
            ]
        run, gold = None, None
        if self._role == "gold":
            gold = Gold(self._numbers, name=source.name)
        else:
            run = self._run()
        return Dataset(
            run, gold, self._queries, format, mapping, source.notes.notices()
        )

    def _run(self) -> Run:
        name = self._source.name
        if self._scored and not self._has_texts and self._distinct:
            return ScoredRun(self._numbers, name)
        listed = _ListedRun(self._rows, self._source, scored=self._scored)
        rows = self._rows.values()
        tied = self._number and any(len({r[1] for r in row}) < len(row) for row in rows)
        if tied or (self._scored and not self._has_texts):
            return listed
        rankings = dict(listed.rankings(Policies()))
        if self._has_texts:
            return DocumentRun(rankings, name)
        ids = {q: [str(d.id) for d in ranking] for q, ranking in rankings.items()}
        return RankedRun(ids, name)

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
        columns = (self._document, self._value, self._line, self._text)
        listed = map(_Row, *columns)
        for query, row in zip(self._query, listed, strict=True):
            rows.setdefault(query, []).append(row)
        return rows

    def _refuse_mixture(self) -> None:
        """A document that several systems retrieved was not retrieved twice."""
        for query, first, row in _listed_again(self._rows):
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
        return found._replace(notices=(*notices, *found.notices))

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


def _are_ids(values: Sequence[Any] | None) -> bool:
    texts = values or ()
    return {*map(type, texts)} == {str} and all(map(str.strip, texts))


def _twice(document: str, line: int | None, hint: str | None = None) -> FormatError:
    place = "" if line is None else f", first on line {line}"
    return FormatError(f"document {document[:60]!r} occurs twice{place}", hint=hint)
