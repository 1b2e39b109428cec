"""Hits: which gold items a run found, and where. All that a metric reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from karat.data.arrays import Bools, Floats, Ints, count_by, defined, place_by
from karat.data.coverage import Coverage, concatenate_coverage

__all__ = ["Credits", "Hits", "Subtopics", "concatenate_hits", "is_relevant"]


@dataclass(frozen=True, eq=False)
class Credits:
    """Each relevant gold item once, at its first rank: the rows most formulas add up.

    Ordered by (query, first rank, grade descending). The j-th item of a query takes the
    slot max(its rank, j), so that several items found in one document cannot lift a
    score above 1. With ids, slot and rank are the same.

    Attributes:
        query: index of the query, ascending.
        rank: first rank at which the item was found, from 1.
        slot: the rank the item is paid at.
        order: j, the item's place among the query's found items, from 1.
        grade: the item's label.
        relevant: R of each query: how many relevant items its gold holds.
        whole: the same to divide by, undefined (NaN) where it is 0.
    """

    query: Ints
    rank: Ints
    slot: Ints
    order: Ints
    grade: Floats
    relevant: Ints
    whole: Floats


@dataclass(frozen=True, eq=False)
class Subtopics:
    """Which subtopics of its query each gold item serves, a row for each of them.

    Rows of a query stand together, those of the largest document id first: the order
    in which the ideal ranking of ndeval takes equally good documents.

    Attributes:
        item: index in `Hits.gold_grade` of the item.
        topic: number of the subtopic within its query, from 0.
        grade: how well the item serves it.
    """

    item: Ints
    topic: Ints
    grade: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, float]]) -> "Subtopics":
        """Rows of item, topic and grade."""
        item, topic, grade = [*zip(*rows, strict=True)] or [()] * 3
        whole = np.array([item, topic], np.int64)
        return cls(whole[0], whole[1], np.array(grade, np.float64))


@dataclass(frozen=True, eq=False)
class Hits:
    """Rows (query, rank, gold item) of a run matched against gold, and query facts.

    Rows are sorted by (query, rank). A judged document that is not relevant is a row
    too (grade <= 0) when `judged` is set; a metric that needs those says so with
    `reads_judged`, because finding them can cost more than finding the relevant ones.

    Attributes:
        query: index of the query of each row, ascending.
        rank: rank of the document, from 1.
        grade: label of the gold item that the document matches.
        gold_count: number of gold items of each query, judged non-relevant included.
        gold_grade: their labels, query after query.
        retrieved: number of documents retrieved for each query; 0 when it is missing.
        item: index in `gold_grade` of the item each row matches (alternatives of one
            group are one item); None only when no two rows match the same item.
        distinct: whether no two rows match the same item.
        own_k: the cutoff `@k` takes for each query, or None when no metric needs it.
        judged: whether rows of judged non-relevant items are present.
        coverage: how much of the gold text was retrieved, if the matcher measures it.
        subtopics: which subtopics of a query its gold items serve, if the gold says so.
        joint: which rows match their item only together with a later row: they count
            as matched positions, but the item is not found there yet.
    """

    query: Ints
    rank: Ints
    grade: Floats
    gold_count: Ints
    gold_grade: Floats
    retrieved: Ints
    item: Ints | None = None
    distinct: bool = False
    own_k: Ints | None = None
    judged: bool = True
    coverage: Coverage | None = None
    subtopics: Subtopics | None = None
    joint: Bools | None = None
    _credits: dict[float | None, Credits] = field(
        default_factory=dict, init=False, repr=False
    )

    @property
    def size(self) -> int:
        """Number of queries."""
        return len(self.gold_count)

    @cached_property
    def grade_range(self) -> tuple[float, float]:
        """The smallest and largest label of any gold item; (1, 1) without any."""
        if not len(self.gold_grade):
            return (1.0, 1.0)
        return float(self.gold_grade.min()), float(self.gold_grade.max())

    @property
    def all_positive(self) -> bool:
        """Whether no gold item is judged non-relevant, so that nothing is left out."""
        return self.grade_range[0] > 0

    @cached_property
    def gold_query(self) -> Ints:
        """Index of the query of each entry of `gold_grade`."""
        return np.arange(self.size).repeat(self.gold_count)

    @cached_property
    def first(self) -> Bools:
        """Whether a row is the first of its gold item."""
        if self.item is None or self.distinct:
            return np.ones(len(self.query), np.bool_)
        first = np.zeros(len(self.query), np.bool_)
        rows = np.flatnonzero(_not(self.joint, len(first)))
        first[rows[np.unique(self.item[rows], return_index=True)[1]]] = True
        return first

    @cached_property
    def first_rank(self) -> Ints:
        """The rank at which each entry of `gold_grade` is found; 0 where it is not."""
        rank: Ints = np.zeros(len(self.gold_grade), np.int64)
        if self.item is not None:
            rank[self.item[self.first]] = self.rank[self.first]
        return rank

    def with_grades(self, exchange: Mapping[float, float]) -> "Hits":
        """The same hits with other labels in place of some."""
        if not exchange:
            return self
        grade, gold_grade = self.grade.copy(), self.gold_grade.copy()
        for old, new in exchange.items():
            grade[self.grade == old] = new
            gold_grade[self.gold_grade == old] = new
        return replace(self, grade=grade, gold_grade=gold_grade)

    def relevant(self, threshold: float | None = None) -> Bools:
        """Whether each row's item is relevant: grade > 0, or >= the threshold."""
        return is_relevant(self.grade, threshold)

    def credits(self, threshold: float | None = None) -> Credits:
        """Each relevant item once, at its first rank, in the order of payment."""
        if threshold not in self._credits:
            self._credits[threshold] = self._pay(threshold)
        return self._credits[threshold]

    def positions(self, threshold: float | None = None) -> tuple[Ints, Ints]:
        """Query and rank of every position that matches a relevant item, each once."""
        if self.item is None or self.distinct:
            credits = self.credits(threshold)
            return credits.query, credits.rank
        rows = self.relevant(threshold)
        query, rank = self.query[rows], self.rank[rows]
        new = np.ones(len(query), np.bool_)
        new[1:] = (query[1:] != query[:-1]) | (rank[1:] != rank[:-1])
        return query[new], rank[new]

    @cached_property
    def ideal_order(self) -> tuple[Ints, Ints, Floats]:
        """Query, place from 1 and grade of all positive gold, in the best order."""
        query, grade = self.gold_query, self.gold_grade
        if not self.all_positive:
            rows = grade > 0
            query, grade = query[rows], grade[rows]
        # Equal grades are in the best order already.
        if self.grade_range[0] < self.grade_range[1]:
            grade = grade[np.lexsort((-grade, query))]
        return query, place_by(query, self.size), grade

    def cutoff(self, k: int | str | None, query: Ints | slice) -> Ints | int | None:
        """The largest rank that counts for each row: k itself, or the query's own."""
        if not isinstance(k, str):
            return k
        assert self.own_k is not None, "evaluation resolves the letter k"  # noqa: S101
        return self.own_k[query]

    def _pay(self, threshold: float | None) -> Credits:
        rows = self._paid(threshold)
        query, rank, grade = self.query[rows], self.rank[rows], self.grade[rows]
        if self.item is not None and not self.distinct:
            order = np.lexsort((-grade, rank, query))
            query, rank, grade = query[order], rank[order], grade[order]
        place = place_by(query, self.size)
        relevant = self.gold_count
        if threshold is not None or not self.all_positive:
            gold = is_relevant(self.gold_grade, threshold)
            relevant = count_by(self.gold_query[gold], self.size)
        return Credits(
            query=query,
            rank=rank,
            slot=np.maximum(rank, place),
            order=place,
            grade=grade,
            relevant=relevant,
            whole=defined(relevant.astype(np.float64), relevant),
        )

    def _paid(self, threshold: float | None) -> Bools | slice:
        """Selects the rows that earn: relevant, and the first of their item."""
        if threshold is None and self.all_positive:
            return slice(None) if self.item is None or self.distinct else self.first
        rows = self.relevant(threshold)
        return rows if self.item is None or self.distinct else rows & self.first


def _not(flags: Bools | None, size: int) -> Bools:
    return np.ones(size, np.bool_) if flags is None else ~flags


def is_relevant(grade: Floats, threshold: float | None) -> Bools:
    """Any positive grade is relevant; with a threshold, grades at or above it."""
    return grade > 0 if threshold is None else grade >= threshold


def concatenate_hits(parts: Sequence[Hits]) -> Hits:
    """The hits of all queries, from those of disjoint parts in the same order."""
    first_query = np.cumsum([0, *(part.size for part in parts)])
    first_item = np.cumsum([0, *(len(part.gold_grade) for part in parts)])
    items = [
        part.item + start
        for part, start in zip(parts, first_item, strict=False)
        if part.item is not None
    ]
    own_k = [part.own_k for part in parts if part.own_k is not None]
    coverage = [part.coverage for part in parts if part.coverage is not None]
    topics = [
        replace(part.subtopics, item=part.subtopics.item + start)
        for part, start in zip(parts, first_item, strict=False)
        if part.subtopics is not None
    ]
    joint = [~_not(part.joint, len(part.query)) for part in parts]
    return Hits(
        query=np.concatenate(
            [part.query + q for part, q in zip(parts, first_query, strict=False)]
        ),
        rank=np.concatenate([part.rank for part in parts]),
        grade=np.concatenate([part.grade for part in parts]),
        gold_count=np.concatenate([part.gold_count for part in parts]),
        gold_grade=np.concatenate([part.gold_grade for part in parts]),
        retrieved=np.concatenate([part.retrieved for part in parts]),
        item=np.concatenate(items) if len(items) == len(parts) else None,
        distinct=all(part.distinct for part in parts),
        own_k=np.concatenate(own_k) if own_k else None,
        judged=all(part.judged for part in parts),
        coverage=concatenate_coverage(coverage, first_query, first_item)
        if coverage
        else None,
        subtopics=Subtopics(
            np.concatenate([part.item for part in topics]),
            np.concatenate([part.topic for part in topics]),
            np.concatenate([part.grade for part in topics]),
        )
        if topics
        else None,
        joint=np.concatenate(joint) if any(map(np.any, joint)) else None,
    )
