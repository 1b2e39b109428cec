"""Tables with one row per document: query, document, and a score, rank or grade."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress, count, islice, pairwise, repeat
from operator import itemgetter, ne
from typing import Any, NamedTuple

from karat.data.gold import Gold
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.data.policies import Policies
from karat.data.queries import Dataset, Query
from karat.data.runs import (
    A_RANK,
    LAST_RANK,
    Document,
    Labels,
    Located,
    Run,
    run_notices,
)
from karat.data.score_ranks import rank_order
from karat.errors import DataError, FormatError
from karat.reading.meaning.aliases import closest
from karat.reading.meaning.order import note_ascending, note_contradictions
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
from karat.reading.problems import placed
from karat.reading.streams import Source

_COLUMNS = ("id", "document", "score", "rank", "grade", "text", "query", "distance")
_SYSTEMS = ("system", "run", "run_id", "run_name", "retriever", "model")
_SPLIT = "several systems in one table are split with --by COLUMN"


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


def reading(source: Source, fields: Mapping[str, str]) -> tuple[str, str | None]:
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
        self._system = system_column(header)
        others = unread(header, fields, self._system)
        self.names = [*map(fields.get, _COLUMNS), self._system, *others]
        self._source = source
        self._fields = fields
        self._role, self._number = reading(source, fields)
        self._scored = self._number in {"score", "distance"}
        self._others = others if self._number is None else []
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
        if self._take_plain(columns, lines):
            return
        cells = (repeat(None) if column is None else column for column in columns)
        for line, *row in zip(lines, *cells, strict=False):
            self._take_row(row, line)

    def _take_plain(
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

    def _take_row(self, row: Sequence[Any], line: int | None) -> None:
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
            if text is not None:
                text = read_text(text, self._fields["text"])
                self._text += [None] * (len(self._query) - len(self._text)) + [text]
            self._query.append(query)
            self._document.append(document)
            self._value.append(number)
            self._line.append(line)
            if self._ranks is not None and rank is not None:
                pair = (read_number(rank, self._fields["rank"]), number)
                self._ranks.setdefault(query, []).append(pair)
            if self._system is not None:
                self._systems.add(str(system))
            meant = "grade" if self._role == "gold" else "score"
            for name, value in zip(self._others, others, strict=False):
                note_unread(name, value, notes, meant)
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
        if self._role == "run" and len(self._systems) > 1:
            for system in sorted(self._systems):
                notes.notice("systems", read_as_one(self._system), system)
            # A document that several systems retrieved was not retrieved twice.
            for query, first, row in _listed_again(self._rows):
                problem = _twice(row.document, first.line, hint=_SPLIT)
                notes.problem(
                    placed(problem, path=source.path, line=row.line, query=query)
                )
        if self._ranks is not None:
            note_contradictions(self._ranks, notes)
        elif self._role == "run" and self._number == "score":
            scores: Iterable[Iterable[float]] = map(dict.values, self._numbers.values())
            if not self._distinct:
                scores = ((row.number for row in r) for r in self._rows.values())
            note_ascending(self._numbers, scores, notes)
        mapping = {f: t for f, t in self._fields.items() if f in _COLUMNS[:2]}
        if self._number:
            ours = "grade" if self._role == "gold" else self._number
            mapping[ours] = self._fields[self._number]
        gold = Gold(self._numbers, name=source.name) if self._role == "gold" else None
        run = None if gold else self._run()
        return Dataset(run, gold, self._queries, format, mapping, notes.notices())

    def _run(self) -> Run:
        if self._scored and not self._text and self._distinct:
            return ScoredRun(self._numbers, self._source.name)
        tied = any(
            len({r.number for r in row}) < len(row) for row in self._rows.values()
        )
        if not (self._scored or self._text or tied):
            by_rank = {q: sorted(r, key=itemgetter(1)) for q, r in self._rows.items()}
            ids = {q: [row.document for row in r] for q, r in by_rank.items()}
            ranks = {} if self._number is None else _gaps(by_rank)
            return RankedRun(ids, self._source.name, ranks=ranks)
        return _ListedRun(self._rows, self._source, scored=self._scored)

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


def _gaps(rows: Mapping[str, Sequence[_Row]]) -> dict[str, list[int]]:
    """The ranks of queries whose ranks have gaps; of two equal ones one moves down.

    Args:
        rows: those of each query, by rank, which is their number, from 0 or from 1.
    """
    shift = 1 - min((int(row[0].number) for row in rows.values() if row), default=1)
    gaps = {}
    for query, row in rows.items():
        ranks = [0]
        for listed in row:
            ranks.append(max(int(listed.number) + max(shift, 0), ranks[-1] + 1))
        if ranks[-1] > len(row):
            gaps[query] = ranks[1:]
    return gaps


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
        super().__init__(dict(self.rankings(Policies())), source.name)

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
        ordered = {}
        for query, rows in self._rows.items():
            scores = [row.number if self._scored else -row.number for row in rows]
            names = [row.document for row in rows]
            order = rank_order(scores, names, self._rules(policies))
            ordered[query] = [rows[place] for place in order]
        gaps = {} if self._scored else _gaps(ordered)
        for query, rows in ordered.items():
            ranks = gaps.get(query) or repeat(None)
            yield query, [*map(self._document, rows, ranks)]

    def _document(self, row: _Row, rank: int | None) -> Document:
        score = row.number if self._scored else None
        return Document(row.document, row.text, score, rank=rank)

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
        first: dict[str, _Row] = {}
        for listed in row:
            if first.setdefault(listed.document, listed) is not listed:
                yield query, first[listed.document], listed


def _twice(document: str, line: int | None, hint: str | None = None) -> FormatError:
    place = "" if line is None else f", first on line {line}"
    return FormatError(f"document {document[:60]!r} occurs twice{place}", hint=hint)
