"""Blocks: rows of a run on their way through the join, query by query."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Ints
from karat.reading.columnar.byte_column import Column, join_columns, starts

__all__ = ["Block", "join_blocks"]

_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a run. Those of one query that follow each other are a stretch.

    Attributes:
        query: number of each stretch's query; -1 where there are no labels for it.
        start: its first row.
        documents: the document of each row.
        values: what each row is ranked by, larger first; None when rows are in order.
    """

    query: Ints
    start: Ints
    documents: Column
    values: npt.NDArray[Any] | None

    @cached_property
    def size(self) -> Ints:
        """Number of rows of each stretch."""
        return np.diff(self.start, append=len(self.documents))

    @cached_property
    def row_query(self) -> Ints:
        """Number of each row's query."""
        return np.repeat(self.query, self.size)

    def stretch(self, rows: Ints) -> Ints:
        """The stretch that each of these rows lies in."""
        return np.searchsorted(self.start, rows, side="right") - 1

    def part(self, first: int, last: int) -> "Block":
        """The stretches from first to before last, in the same memory."""
        start = self.start[first:last]
        begin = int(start[0]) if len(start) else 0
        rows = slice(begin, begin + int(self.size[first:last].sum()))
        return Block(
            self.query[first:last],
            start - begin,
            self.documents.view(rows),
            None if self.values is None else self.values[rows],
        )

    def only(self, stretches: Bools) -> "Block":
        """Some stretches, in memory of their own."""
        rows = np.flatnonzero(np.repeat(stretches, self.size))
        size = self.size[stretches]
        return Block(
            self.query[stretches],
            np.cumsum(size) - size,
            self.documents.copy(rows),
            None if self.values is None else self.values[rows],
        )

    def split(self) -> tuple["Block", "Block"]:
        """The rankings that seem whole, and labelled rows that may be parts of one.

        A stretch that neither begins nor ends the block is a whole ranking, unless
        its query has another stretch.
        """
        loose = self.query >= 0
        # Sorted, not by `np.unique`, which loads NumPy's masked arrays.
        queries = np.sort(self.query[loose])
        if (queries[1:] == queries[:-1]).any():
            return self.part(0, 0), self.only(loose)
        loose[1:-1] = False
        return self.part(1, max(len(self.query) - 1, 1)), self.only(loose)

    def pieces(self, rows: int) -> list["Block"]:
        """The block cut between stretches into parts of about so many rows."""
        cuts = np.searchsorted(self.start, np.arange(0, len(self.documents), rows))
        bounds = [*dict.fromkeys(cuts.tolist()), len(self.query)]
        return [self.part(*pair) for pair in pairwise(bounds) if pair[0] < pair[1]]


def join_blocks(blocks: Sequence[Block]) -> Block:
    """The rows of all blocks as one, with one stretch for each query."""
    query = np.concatenate([_NOTHING, *(block.row_query for block in blocks)])
    order = np.argsort(query, kind="stable")
    query = query[order]
    start = starts(query)
    values = [block.values for block in blocks if block.values is not None]
    return Block(
        query[start],
        start,
        join_columns([block.documents for block in blocks]).view(order),
        np.concatenate(values)[order] if values else None,
    )
