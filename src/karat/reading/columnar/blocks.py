"""Blocks: rows of a run on their way from a source through the join."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Ints
from karat.data.runs import Notice
from karat.errors import DataError
from karat.reading.columnar.byte_column import (
    ByteColumn,
    Column,
    Rows,
    join_columns,
    starts,
)

Field: TypeAlias = Literal["query", "document", "value", "text"]
Values: TypeAlias = npt.NDArray[Any]

_NOTHING = np.zeros(0, np.int64)
_NO_IDS = ByteColumn.of(())


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a run, as a source reads them; what was not asked for is empty.

    Rows of one query that follow each other are a group.

    Attributes:
        start: the first row of each group.
        queries: query ids.
        which: which of these each group has.
        documents: the document of each row.
        values: what each row is ranked by, larger first; None when rows are in order.
        texts: the text of each row's document, if there are texts.
        ignored: how many rows hold something that was ignored.
        ranked: whether the values are ranks, complemented.
    """

    start: Ints = field(default_factory=lambda: _NOTHING)
    queries: Column = _NO_IDS
    which: Ints = field(default_factory=lambda: _NOTHING)
    documents: Column = _NO_IDS
    values: Values | None = None
    texts: Column | None = None
    ignored: int = 0
    ranked: bool = False

    def block(self, numbers: Ints) -> "Block":
        """The rows, given the number of each query."""
        numbers = numbers[self.which]
        return Block(numbers, self.start, self.documents, self.values, self.ranked)


Piece: TypeAlias = Callable[[], Iterator[Batch]]
"""Rows that can be read beside those of other pieces."""


class RunSource(ABC):
    """Where the rows of a run come from.

    Attributes:
        path: the file as the user wrote it, if there is one.
        ranked: whether rows are ordered by given ranks, not by scores.
        portable: whether other processes can read its pieces for themselves.
    """

    path: str | None = None
    ranked: bool = False
    portable: bool = False

    @abstractmethod
    def pieces(self, *fields: Field) -> Iterable[Piece]:
        """The rows, in pieces that follow each other.

        Args:
            fields: what of each row will be asked for.
        """

    def repeated(self, query: str, document: str) -> DataError:
        """What to say of a document that a query retrieves twice."""
        return retrieved_twice(query, document)

    def notices(self, ignored: int) -> tuple[Notice, ...]:
        """What to say of rows in which something was ignored."""
        del ignored
        return ()


def retrieved_twice(query: str, document: str) -> DataError:
    """That a document was, which policies forbid, and what to do."""
    return DataError(
        f"document {document!r} was retrieved more than once",
        query=query,
        hint="duplicates='first' scores its first rank only",
    )


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a run. Those of one query that follow each other are a group.

    Attributes:
        query: number of each group's query; -1 where there are no labels for it.
        start: its first row.
        documents: the document of each row.
        values: what each row is ranked by, larger first; None when rows are in order.
        ranked: whether the values are ranks, complemented.
    """

    query: Ints
    start: Ints
    documents: Column
    values: Values | None = None
    ranked: bool = False

    @cached_property
    def size(self) -> Ints:
        """Number of rows of each group."""
        return np.diff(self.start, append=len(self.documents))

    @cached_property
    def row_group(self) -> Ints:
        """The group of each row."""
        return np.repeat(np.arange(len(self.query)), self.size)

    @property
    def from_zero(self) -> bool:
        """Whether the values are ranks that begin at 0."""
        return self.ranked and 0 in ~np.asarray(self.values)

    def group(self, rows: Ints) -> Ints:
        """The group that each of these rows lies in."""
        return np.searchsorted(self.start, rows, side="right") - 1

    def part(self, first: int, last: int) -> "Block":
        """The groups from first to before last, in the same memory."""
        start = self.start[first:last]
        begin = int(start[0]) if len(start) else 0
        rows = slice(begin, begin + int(self.size[first:last].sum()))
        return Block(
            self.query[first:last],
            start - begin,
            self.documents.view(rows),
            None if self.values is None else self.values[rows],
            self.ranked,
        )

    def only(self, rows: Bools) -> "Block":
        """Some rows; a group without any is left out."""
        size = np.add.reduceat(rows, self.start, dtype=np.int64) if len(rows) else rows
        left = np.flatnonzero(size)
        return Block(
            self.query[left],
            (np.cumsum(size) - size)[left],
            self.documents.view(rows),
            None if self.values is None else self.values[rows],
            self.ranked,
        )

    def copy(self, groups: Bools) -> "Block":
        """Some groups in memory of their own: one for each query, by its number."""
        return join_blocks([self.only(np.repeat(groups, self.size))]).own()

    def own(self) -> "Block":
        """The same rows in memory of their own, so that others can be freed."""
        values = None if self.values is None else self.values.copy()
        return replace(self, documents=self.documents.copy(), values=values)

    def split(self, *, scattered: bool) -> tuple["Block", list["Block"]]:
        """Labelled rankings that seem whole, and rows that may be parts of one.

        A group that neither begins nor ends the block is a whole ranking, unless
        queries are scattered over several groups.
        """
        labelled = self.query >= 0
        if scattered:
            return self.part(0, 0), [self.copy(labelled)]
        last = len(self.query) - 1
        inner = self.part(1, max(last, 1))
        if not labelled[1:-1].all():
            inner = inner.only(np.repeat(inner.query >= 0, inner.size))
        edges = [at for at in sorted({0, last}) if last >= 0 and labelled[at]]
        return inner, [self.part(at, at + 1).own() for at in edges]


def number(names: Sequence[str], numbers: dict[str, int]) -> Ints:
    """The number of each name; new ones, each named once, get the next numbers."""
    if numbers.keys().isdisjoint(names):
        first = len(numbers)
        numbers.update(zip(names, range(first, first + len(names)), strict=True))
        return np.arange(first, len(numbers))
    for name in names:
        numbers.setdefault(name, len(numbers))
    return np.fromiter(map(numbers.__getitem__, names), np.int64, len(names))


def join_blocks(blocks: Sequence[Block]) -> Block:
    """The rows of all blocks as one, with one group for each query."""
    query = np.concatenate([_NOTHING, *(block.query for block in blocks)])
    size = np.concatenate([_NOTHING, *(block.size for block in blocks)])
    rows: Rows = slice(None)
    if (query[1:] < query[:-1]).any():
        start = np.cumsum(size) - size
        # Numbers of two bytes are sorted ten times faster than others.
        near = query - query.min()
        short = near.astype(np.uint16) if near.max() < 1 << 16 else near
        order = np.argsort(short, kind="stable")
        query, size = query[order], size[order]
        _, rows = ranges(start[order], start[order] + size)
    first = starts(query)
    values = [block.values for block in blocks if block.values is not None]
    return Block(
        query[first],
        (np.cumsum(size) - size)[first],
        join_columns([block.documents for block in blocks]).view(rows),
        np.concatenate(values)[rows] if values else None,
        any(block.ranked for block in blocks),
    )


def cut_blocks(blocks: Sequence[Block], rows: int) -> Iterator[list[Block]]:
    """The rows of all blocks, about so many at a time, those of a query together.

    Args:
        blocks: copies, so that their groups are in the order of queries.
        rows: how many.
    """
    blocks = [block for block in blocks if len(block.query)]
    queries = max((int(block.query[-1]) + 1 for block in blocks), default=0)
    count = np.zeros(queries, np.int64)
    for block in blocks:
        count[block.query] += block.size
    cuts = starts(np.cumsum(count) // rows)
    for bounds in pairwise([*cuts.tolist(), queries]):
        parts = [b.part(*np.searchsorted(b.query, bounds).tolist()) for b in blocks]
        if parts := [part for part in parts if len(part.query)]:
            yield parts


def ranges(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """All numbers in some ranges; before them, which range each is in.

    Example:
        >>> owner, number = ranges(np.array([5, 0]), np.array([7, 1]))
        >>> owner.tolist(), number.tolist()
        ([0, 0, 1], [5, 6, 0])
    """
    count = end - begin
    owner = np.repeat(np.arange(len(count)), count)
    shift = begin - (np.cumsum(count) - count)
    return owner, np.arange(len(owner)) + shift[owner]
