"""Hits: which gold items a run found, and where. All that a metric reads."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from karat.data.arrays import INEXACT, Bools, Floats, Ints, count_by, defined, place_by

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class GoldGrades:
    """The labels of all gold items, and what follows from them whatever was found.

    Hits of several runs against one gold share it, so that ideals are computed once.
    """

    count: Ints
    grade: Floats
    _kept: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def keep(self, key: Hashable, compute: Callable[[], T]) -> T:
        """What is computed from the labels alone, once for each key."""
        if key not in self._kept:
            self._kept[key] = compute()
        found: T = self._kept[key]
        return found

    @cached_property
    def range(self) -> tuple[float, float]:
        """The smallest and largest label of any gold item; (1, 1) without any."""
        if not len(self.grade):
            return (1.0, 1.0)
        first = self.grade.item(0)
        # Most gold has one grade, and comparing is quicker than looking for the least.
        if np.count_nonzero(self.grade == first) == len(self.grade):
            return first, first
        return float(self.grade.min()), float(self.grade.max())

    @cached_property
    def query(self) -> Ints:
        """Index of the query of each label."""
        return np.arange(len(self.count)).repeat(self.count)

    @cached_property
    def ideal_order(self) -> tuple[Ints, Ints, Floats]:
        """Query, place from 1 and grade of all positive gold, in the best order."""
        query, grade = self.query, self.grade
        low, high = self.range
        if low <= 0:
            rows = grade > 0
            query, grade = query[rows], grade[rows]
        # Equal grades are in the best order already.
        if low < high:
            exact = len(self.count) * (high + 1) < INEXACT
            if exact and (grade == np.rint(grade)).all():
                # Whole grades and the number of their query: one sort of numbers.
                first: Floats = query * np.float64(high + 1)
                grade = first - np.sort(first - grade)
            else:
                grade = grade[np.lexsort((-grade, query))]
        return query, place_by(query, len(self.count)), grade

    def relevant(self, threshold: float | None) -> tuple[Ints, Floats]:
        """R of each query, and the same to divide by, undefined (NaN) where it is 0."""
        found: tuple[Ints, Floats] | None = self._kept.get(threshold)
        if found is None:
            count = self.count
            if threshold is not None or self.range[0] <= 0:
                rows = is_relevant(self.grade, threshold)
                count = count_by(self.query[rows], len(count))
            found = count, defined(count.astype(np.float64), count)
            self._kept[threshold] = found
        return found


_UNKNOWN = GoldGrades(np.zeros(0, np.int64), np.zeros(0))


class Credits(NamedTuple):
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

    Example:
        >>> import karat
        >>> result = karat.evaluate({"q": ["a", "b"]}, gold={"q": {"b": 2}})
        >>> hits = result.matches["id"].hits
        >>> hits.credits().slot.tolist()
        [2]
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
class Coverage:
    """What each retrieved document adds to the gold text of its query.

    Lengths are in characters: of the source where both sides have offsets, else in
    letters, so that spaces, punctuation and Markdown weigh nothing. No character is
    paid twice. Documents are sorted by (query, rank), rises by (item, rank).

    Attributes:
        size: characters of the relevant gold of each query; 0 where there is none.
        query: index of the query of each document.
        rank: its rank, from 1.
        gold: characters of relevant gold that it is the first to cover.
        length: characters it has.
        fresh: characters that no document before it has, overlaps merged.
        tokens: tokens it has: its own count (`tokens` in its metadata), else a quarter
            of its bytes, else a quarter of its length.
        item: index, as in `Hits.gold_grade`, of the gold item that is covered further.
        item_rank: the rank at which it is.
        share: the part of the item that is covered from then on.
        sound: whether no number, sign, negation or name differs in what is covered.
    """

    size: Floats
    query: Ints
    rank: Ints
    gold: Floats
    length: Floats
    fresh: Floats
    tokens: Floats
    item: Ints
    item_rank: Ints
    share: Floats
    sound: Bools


Range = tuple[int, int]
"""Where a stretch of characters starts and ends."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a retrieved document counts for a gold item."""

    item: str
    rank: int
    document: str | None
    gold: tuple[Range, ...]
    text: tuple[Range, ...]
    share: float
    satisfied: bool
    reason: str
    differs: tuple[str, ...] = ()


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
        gold: the labels as other runs against the same gold have them too; made from
            the labels above where it is not of them.

    Example:
        >>> import karat
        >>> result = karat.evaluate({"q": ["a", "b"]}, gold={"q": {"b": 2}})
        >>> hits = result.matches["id"].hits
        >>> hits.rank.tolist(), hits.grade.tolist(), hits.size
        ([2], [2.0], 1)
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
    gold: GoldGrades = field(default=_UNKNOWN, repr=False, metadata={"saved": False})
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        gold, count, grade = self.gold, self.gold_count, self.gold_grade
        if gold.grade is not grade or gold.count is not count:
            object.__setattr__(self, "gold", GoldGrades(count, grade))

    @property
    def size(self) -> int:
        """Number of queries."""
        return len(self.gold_count)

    @property
    def grade_range(self) -> tuple[float, float]:
        """The smallest and largest label of any gold item; (1, 1) without any."""
        return self.gold.range

    @property
    def gold_query(self) -> Ints:
        """Index of the query of each entry of `gold_grade`."""
        return self.gold.query

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
        credits: Credits | None = self._kept.get(threshold)
        if credits is not None:
            return credits
        alone = self.item is None or self.distinct
        rows: Bools | slice = slice(None) if alone else self.first
        if threshold is not None or self.gold.range[0] <= 0:
            relevant = self.relevant(threshold)
            rows = relevant if alone else relevant & self.first
        query, rank, grade = self.query[rows], self.rank[rows], self.grade[rows]
        if not alone:
            order = np.lexsort((-grade, rank, query))
            query, rank, grade = query[order], rank[order], grade[order]
        place = place_by(query, self.size)
        slot = np.maximum(rank, place)
        whole = self.gold.relevant(threshold)
        credits = Credits(query, rank, slot, place, grade, *whole)
        self._kept[threshold] = credits
        return credits

    def found_within(self, k: int | str | None, threshold: float | None = None) -> Ints:
        """How many relevant gold items of each query the top k holds."""
        credits = self.credits(threshold)
        return self._count_within(credits.query, credits.rank, k, threshold)

    def matched_within(
        self, k: int | str | None, threshold: float | None = None
    ) -> Ints:
        """How many positions of the top k match a relevant item of their query."""
        if self.item is None or self.distinct:
            return self.found_within(k, threshold)
        query, rank = self.positions(threshold)
        return self._count_within(query, rank, k, (threshold, "positions"))

    def _count_within(
        self, query: Ints, rank: Ints, k: int | str | None, key: Hashable
    ) -> Ints:
        count: Ints | None = self._kept.get((k, key))
        if count is None:
            if (cutoff := self.cutoff(k, query)) is not None:
                query = query[rank <= cutoff]
            count = self._kept[k, key] = np.bincount(query, minlength=self.size)
        return count

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

    @property
    def ideal_order(self) -> tuple[Ints, Ints, Floats]:
        """Query, place from 1 and grade of all positive gold, in the best order."""
        return self.gold.ideal_order

    def cutoff(self, k: int | str | None, query: Ints | slice) -> Ints | int | None:
        """The largest rank that counts for each row: k itself, or the query's own."""
        if not isinstance(k, str):
            return k
        assert self.own_k is not None, "evaluation resolves the letter k"  # noqa: S101
        return self.own_k[query]


def _not(flags: Bools | None, size: int) -> Bools:
    return np.ones(size, np.bool_) if flags is None else ~flags


def is_relevant(grade: Floats, threshold: float | None) -> Bools:
    """Any positive grade is relevant; with a threshold, grades at or above it."""
    return grade > 0 if threshold is None else grade >= threshold


def concatenate_hits(parts: Sequence[Hits]) -> Hits:
    """The hits of all queries, from those of disjoint parts in the same order."""
    sizes = {
        "query": [part.size for part in parts],
        "item": [len(part.gold_grade) for part in parts],
    }
    start = {name: np.cumsum([0, *size]).tolist() for name, size in sizes.items()}
    joint = [~_not(part.joint, len(part.query)) for part in parts]
    whole = _concatenate([*enumerate(parts)], start)
    return replace(
        whole,
        item=None if any(part.item is None for part in parts) else whole.item,
        joint=np.concatenate(joint) if any(map(np.any, joint)) else None,
    )


def _concatenate(
    parts: Sequence[tuple[int, T]], start: Mapping[str, Sequence[int]]
) -> T:
    """Values of arrays, flags and other such values as one, where they are known."""
    first: Any = parts[0][1]
    whole: dict[str, Any] = {}
    for name in (f.name for f in fields(first) if f.init):
        known = [(n, v) for n, p in parts if (v := getattr(p, name)) is not None]
        values = [v + start[name][n] if name in start else v for n, v in known]
        if not values or isinstance(values[0], bool):
            whole[name] = all(values) if values else None
        elif isinstance(values[0], np.ndarray):
            whole[name] = np.concatenate(values)
        elif not isinstance(values[0], GoldGrades):
            whole[name] = _concatenate(known, start)
    joined: T = type(first)(**whole)
    return joined
