"""Labels in columns: millions of them, without a Python object for each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import methodcaller

import numpy as np

from karat.data.arrays import Floats, Ints, as_floats
from karat.data.hits import GoldGrades
from karat.data.runs import Labels

__all__ = ["ColumnLabels"]

_VALUES = methodcaller("values")


@dataclass(frozen=True, eq=False)
class ColumnLabels(Mapping[str, Mapping[str, float]]):
    """Judged documents as `Labels` has them, kept as columns that nobody changes.

    Attributes:
        queries: ids, in input order.
        count: how many documents are labelled for each.
        names: the documents, query after query.
        grade: what each is worth.

    Example:
        >>> labels = ColumnLabels(["q1"], np.array([2]), ["a", "b"], np.ones(2))
        >>> labels["q1"]
        {'a': 1.0, 'b': 1.0}
    """

    queries: Sequence[str]
    count: Ints
    names: Sequence[str]
    grade: Floats

    @classmethod
    def of(cls, labels: Labels) -> "ColumnLabels":
        """The same labels in columns."""
        if isinstance(labels, cls):
            return labels
        rows = labels.values()
        values = dict.values if {*map(type, rows)} <= {dict} else _VALUES
        return cls(
            [*labels],
            np.fromiter(map(len, rows), np.int64, len(rows)),
            [*chain.from_iterable(rows)],
            as_floats(chain.from_iterable(map(values, rows))),
        )

    @cached_property
    def grades(self) -> GoldGrades:
        """What each query has, and what follows from it for any run."""
        return GoldGrades(self.count, self.grade)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The place of each query."""
        return {query: number for number, query in enumerate(self)}

    @cached_property
    def _ids(self) -> list[str]:
        return [*self.queries]

    @cached_property
    def end(self) -> Ints:
        """Behind the last label of each query."""
        return np.cumsum(self.count)

    def __getitem__(self, query: str) -> dict[str, float]:
        number = self.numbers[query]
        end = int(self.end[number])
        rows = slice(end - int(self.count[number]), end)
        return dict(zip(self.names[rows], self.grade[rows].tolist(), strict=True))

    def __contains__(self, query: object) -> bool:
        return query in self.numbers

    def __iter__(self) -> Iterator[str]:
        queries = self.queries
        return iter(queries if isinstance(queries, list) else self._ids)

    def __len__(self) -> int:
        return len(self.queries)
