"""A run of scored rows, in which a document may stand more than once for a query."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from karat.data.memory_runs import RankedRun
from karat.data.policies import Policies
from karat.data.runs import Document, Labels, Located, Run, run_notices
from karat.data.score_ranks import rank_order
from karat.errors import FormatError

__all__ = ["ListedRun", "Row", "in_score_order", "listed_again"]


class Row(NamedTuple):
    """One row of a table: a document with its number, and the line it stands on."""

    document: str
    number: float
    line: int | None = None
    text: str | None = None


class ListedRun(Run):
    """Rows by query, ordered by their scores; repeated documents are rows of their own.

    What a document earns the second time is for the policy on duplicates to say.
    """

    def __init__(
        self,
        rows: Mapping[str, Sequence[Row]],
        name: str = "run",
        path: object = None,
    ) -> None:
        self._rows = rows
        self._path = path
        self.name = name

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        return list(self._rows)

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        return self._ranked(Policies()).sample_ids()

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        rows = (row for rows in self._rows.values() for row in rows)
        return any(row.document in documents for row in rows)

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents in the rows, put in order."""
        if policies.duplicates == "error":
            self._refuse_repeated()
        located = self._ranked(policies).locate(
            labels, judged=judged, policies=policies
        )
        ties = {query: self._ties(query, wanted) for query, wanted in labels.items()}
        tied = run_notices(policies, ties={q: n for q, n in ties.items() if n})
        return replace(located, notices=(*tied, *located.notices))

    def _ties(self, query: str, wanted: Mapping[str, float]) -> int:
        """How many relevant documents share their score with another document."""
        rows = {(row.document, row.number) for row in self._rows.get(query, ())}
        documents = Counter(number for _, number in rows)
        return len({d for d, n in rows if wanted.get(d, 0) > 0 and documents[n] > 1})

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents, best score first."""
        for query, rows in self._rows.items():
            ordered = in_score_order(rows, policies)
            yield (
                query,
                [Document(id=row.document, score=row.number) for row in ordered],
            )

    def _ranked(self, policies: Policies) -> RankedRun:
        order = {
            query: [row.document for row in in_score_order(rows, policies)]
            for query, rows in self._rows.items()
        }
        return RankedRun(order, self.name)

    def _refuse_repeated(self) -> None:
        query, first, second = next(listed_again(self._rows))
        place = "" if first.line is None else f", first on line {first.line}"
        raise FormatError(
            f"document {second.document[:60]!r} is listed twice{place}",
            path=self._path,
            line=second.line,
            query=query,
            hint="duplicates='first' scores its first rank only",
        )


def listed_again(
    rows: Mapping[str, Sequence[Row]],
) -> Iterator[tuple[str, Row, Row]]:
    """Query, first row and this row of everything that was listed before."""
    for query, row in rows.items():
        if len({listed.document for listed in row}) == len(row):
            continue
        first: dict[str, Row] = {}
        for listed in row:
            if first.setdefault(listed.document, listed) is not listed:
                yield query, first[listed.document], listed


def in_score_order(rows: Sequence[Row], policies: Policies) -> list[Row]:
    """The rows, best score first."""
    scores, documents = [r.number for r in rows], [r.document for r in rows]
    return [rows[place] for place in rank_order(scores, documents, policies)]
