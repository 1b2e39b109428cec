"""What all runs in memory share: their rankings by query, and what is to be said."""

from collections.abc import Collection, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from karat.data.arrays import Ints, as_floats
from karat.data.policies import Policies
from karat.data.runs import Labels, Located, Notice, Run, run_notices

__all__ = ["HeldRun", "located"]

R = TypeVar("R", bound=Collection[Any])


class HeldRun(Run, Generic[R]):
    """A run held as `{query: ranking}`."""

    def __init__(self, rankings: Mapping[str, R], name: str = "run") -> None:
        self._rankings = rankings
        self.name = name

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        return list(self._rankings)

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        firsts = (next(iter(ranking), None) for ranking in self._rankings.values())
        return [str(document) for document in firsts if document is not None][:3]

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        return not all(map(documents.isdisjoint, self._rankings.values()))

    def _asked(self, labels: Labels, nothing: R) -> tuple[list[R], Ints]:
        """The ranking of each labelled query, and its length.

        A query that the run does not have gets `nothing`, of length -1.
        """
        get = self._rankings.get
        rows = [get(query, nothing) for query in labels]
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        if np.count_nonzero(sizes) < len(rows):
            sizes[[query not in self._rankings for query in labels]] = -1
        return rows, sizes

    def _told(
        self, labels: Labels, policies: Policies, **counted: dict[str, int]
    ) -> tuple[Notice, ...]:
        """Notices on what was counted, and on numbers among ids and odd queries."""
        rankings = self._rankings
        # Ids that are not text: they were overlooked among a great many.
        numbers = {
            query: count
            for query, ranking in rankings.items()
            if (count := sum(not isinstance(document, str) for document in ranking))
        }
        return run_notices(
            policies,
            numbers=numbers,
            empty=[q for q in labels if q in rankings and not rankings[q]],
            extra=[query for query in rankings if query not in labels],
            **counted,
        )


def located(
    found: list[int],
    places: list[int] | Ints,
    grades: list[float],
    *,
    sizes: Ints,
    rankings: Mapping[str, object],
    items: list[int] | None = None,
    judged: bool = True,
) -> Located:
    """Rows as they were found, put in the order of (query, rank).

    Args:
        found: number of rows of each labelled query.
        places: each row's place in its ranking, from 0; in any order within a query.
        grades: each row's label.
        sizes: length of each labelled query's ranking; -1 when it is missing.
        rankings: all of the run, to count the queries that nobody labelled.
        items: number of each row's label, where one may have several rows.
        judged: keep rows of documents judged non-relevant.
    """
    # The query in the high bits and the rank in the low ones: one sort orders both.
    key = (np.arange(len(found), dtype=np.int64) << 40).repeat(found)
    key += np.asarray(places, np.int64)
    grade = as_floats(grades)
    if not judged:
        relevant = grade > 0
        key, grade = key[relevant], grade[relevant]
    order = key.argsort(kind="stable")
    key = key[order]
    return Located(
        query=key >> 40,
        rank=(key & (1 << 40) - 1) + 1,
        grade=grade[order],
        retrieved=sizes,
        extra=len(rankings) - int(np.count_nonzero(sizes >= 0)),
        item=None if items is None else np.array(items, np.int64)[order],
    )
