"""Lines of a TREC run as rankings: grouped by query, the best score first."""

from dataclasses import dataclass

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.policies import Policies
from karat.reading.columnar.trec_chunks import Chunk, Malformed
from karat.reading.columnar.trec_lines import RUN, columns
from karat.reading.columnar.words import Words, numbers

__all__ = ["Rankings", "read_rankings"]


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """Rankings of some queries, one after the other; equal scores in input order.

    Attributes:
        names: the queries' ids.
        first: the row in which each begins.
        documents: the ids of the documents, row by row.
        score: their scores.
    """

    names: list[bytes]
    first: Ints
    documents: Words
    score: Floats

    @property
    def count(self) -> Ints:
        """How many documents each query has."""
        return np.diff(self.first, append=len(self.score))

    def query(self, rows: Ints) -> Ints:
        """The query of some rows, as an index into `names`."""
        return np.searchsorted(self.first, rows, side="right") - 1

    def only(self, rows: Bools) -> "Rankings":
        """Some of the rows; a query without any is left out."""
        count = np.add.reduceat(rows, self.first, dtype=np.int64)
        left = np.flatnonzero(count)
        first = (np.cumsum(count) - count)[left]
        names = [self.names[query] for query in left.tolist()]
        return Rankings(names, first, self.documents[rows], self.score[rows])

    def tied(self) -> Bools:
        """Whether a row has the score of the row before it, in the same query."""
        tied = np.zeros(len(self.score), np.bool_)
        tied[1:] = self.score[1:] == self.score[:-1]
        tied[self.first] = False
        return tied

    def places(self, rows: Ints, tied: Bools) -> Ints:
        """Where some rows come to stand when equal scores are ordered by document.

        The last document in byte order comes first, as in trec_eval.
        """
        if not tied.any():
            return rows
        group: Ints = np.cumsum(~tied, dtype=np.int64)
        concerned = np.zeros(len(tied) + 1, np.bool_)
        concerned[group[rows]] = True
        # A group of one, the usual case, begins where the next row does not join it.
        alone = ~tied & ~np.append(tied[1:], False)
        members = np.flatnonzero(concerned[group] & ~alone)
        if not len(members):
            return rows
        order = self.documents[members].falling_order(group[members])
        place = np.arange(len(tied))
        place[members[order]] = members
        return place[rows]


def read_rankings(chunk: Chunk, policies: Policies) -> tuple[Rankings, int]:
    """A chunk's rankings, and how many of its lines have remarks.

    Raises:
        Malformed: a line is not as it should be.
    """
    (query, documents, scores), remarks = columns(chunk, RUN, (0, 2, 4))
    try:
        score = numbers(scores)
    except ValueError:
        raise Malformed(chunk.offset) from None
    if policies.precision == "single":
        with np.errstate(over="ignore"):
            score = score.astype(np.float32).astype(np.float64)
    first = query.first_of_each()
    if len(first) > len(query) // 2:
        # Scattered lines: bring each query's together before looking at names.
        order = np.argsort(query.keys(), kind="stable")
        query, documents, score = query[order], documents[order], score[order]
        first = query.first_of_each()
    names = query[first].to_list()
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    rising = score[1:] > score[:-1]
    rising[first[1:] - 1] = False
    if rising.any() or len(number) < len(names):
        code = np.fromiter(map(number.__getitem__, names), np.int64, len(names))
        code = np.repeat(code, np.diff(first, append=len(query)))
        order = np.lexsort((-score, code))
        documents, score = documents[order], score[order]
        names = list(number)
        first = np.searchsorted(code[order], np.arange(len(names)))
    return Rankings(names, first, documents, score), remarks
