"""Where labelled documents stand in whole rankings: the join behind `ArrowRun`."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Ints, count_by
from karat.data.policies import Policies
from karat.errors import DataError
from karat.reading.columnar.blocks import Block
from karat.reading.columnar.label_table import LabelTable, find_repeated, mix
from karat.reading.columnar.words import Keys

__all__ = ["Found", "falling", "join_found", "rank_rows", "settle"]

_RANK_BITS = 40


@dataclass(frozen=True, eq=False)
class Found:
    """What was found in some rankings.

    Attributes:
        query: number of each ranking's query.
        retrieved: its documents.
        ties: those of them that share a score with one before.
        repeats: those of them that occurred before.
        label: number of the label of each row found.
        rank: that row's rank, from 1.
    """

    query: Ints
    retrieved: Ints
    ties: Ints
    repeats: Ints
    label: Ints
    rank: Ints


def join_found(parts: Sequence[Found]) -> Found:
    """All that was found, one part after the other."""
    columns = {
        field.name: [np.zeros(0, np.int64), *(getattr(p, field.name) for p in parts)]
        for field in fields(Found)
    }
    return Found(**{name: np.concatenate(column) for name, column in columns.items()})


def settle(block: Block, table: LabelTable, policies: Policies) -> Found:
    """Find the labelled rows of whole rankings, and the rank of each.

    Raises:
        DataError: a document occurs twice in a ranking and policies forbid it.
    """
    keys = mix(block.documents.keys(), block.row_query)
    rows, label = table.find(block.documents, block.row_query, keys)
    copies, document = _copies(block, keys)
    rank, ties = rank_rows(block, np.concatenate((rows, copies)), policies)
    rank, copy_rank = np.split(rank, [len(rows)])
    found = Found(block.query, block.size, ties, np.zeros_like(ties), label, rank)
    if not len(copies):
        return found
    order = np.lexsort((copy_rank, document))
    again = order[1:][document[order][1:] == document[order][:-1]]
    found = replace(
        found, repeats=count_by(block.stretch(copies[again]), len(block.query))
    )
    if policies.duplicates == "keep":
        return found
    if policies.duplicates == "error":
        raise _refusal(block, table, int(copies[again].min()))
    once = ~np.isin(rows, copies[again])
    found = replace(found, label=label[once], rank=rank[once])
    if policies.duplicates == "collapse":
        return _move_up(found, block, rows[once], copies[again], copy_rank[again])
    return found


def rank_rows(block: Block, rows: Ints, policies: Policies) -> tuple[Ints, Ints]:
    """The ranks of some rows, and how many rows of each stretch are tied."""
    place = rows
    ties = np.zeros(len(block.query), np.int64)
    values = block.values
    if values is not None and len(values):
        same_query = np.ones(len(values) - 1, np.bool_)
        same_query[block.start[1:] - 1] = False
        order = None
        if ((values[1:] > values[:-1]) & same_query).any():
            stretch = np.repeat(np.arange(len(block.query)), block.size)
            order = np.lexsort((falling(values), stretch))
            values = values[order]
            place = _inverse(order)[rows]
        tied = (values[1:] == values[:-1]) & same_query
        if tied.any():
            ties = count_by(block.stretch(np.flatnonzero(tied)), len(block.query))
            if policies.ties == "trec":
                place = _break_ties(block, order, tied, place)
    return place - block.start[block.stretch(rows)] + 1, ties


def _break_ties(block: Block, order: Ints | None, tied: Bools, place: Ints) -> Ints:
    """The places, once rows of equal value are ordered by document id, descending.

    Args:
        block: the rows.
        order: the rows by value; None when they are so already.
        tied: whether each place is tied with the next.
        place: the places asked for; ties that concern none of them are left alone.
    """
    tie = np.concatenate(([0], np.cumsum(~tied)))
    asked = np.zeros(int(tie[-1]) + 1, np.bool_)
    asked[tie[place]] = True
    asked &= np.bincount(tie) > 1
    members = np.flatnonzero(asked[tie])
    if not len(members):
        return place
    rows = members if order is None else order[members]
    moved = np.arange(len(tie))
    moved[members[block.documents.falling(rows, tie[members])]] = members
    return moved[place]


def _copies(block: Block, keys: Keys) -> tuple[Ints, Ints]:
    """Rows whose document occurs more than once in a ranking, and which one it is."""
    rows = find_repeated(keys)
    rows = rows[block.row_query[rows] >= 0]
    if not len(rows):
        return rows, rows
    number: dict[tuple[int, str], int] = {}
    pairs = zip(
        block.row_query[rows].tolist(), block.documents.names(rows), strict=True
    )
    document = np.array([number.setdefault(pair, len(number)) for pair in pairs])
    several = np.bincount(document)[document] > 1
    return rows[several], document[several]


def _move_up(
    found: Found, block: Block, rows: Ints, gone: Ints, gone_rank: Ints
) -> Found:
    """What was found, when some rows are gone and those behind them move up."""
    stretch = block.stretch(rows) << _RANK_BITS
    holes = np.sort((block.stretch(gone) << _RANK_BITS) | gone_rank)
    ahead = np.searchsorted(holes, stretch | found.rank)
    ahead -= np.searchsorted(holes, stretch)
    return replace(
        found, rank=found.rank - ahead, retrieved=found.retrieved - found.repeats
    )


def _refusal(block: Block, table: LabelTable, row: int) -> DataError:
    document = block.documents.names(np.array([row]))[0]
    return DataError(
        f"document {document!r} was retrieved more than once",
        query=list(table.queries)[int(block.row_query[row])],
        hint="duplicates='first' scores its first rank only",
    )


def falling(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers that ascend where the values descend."""
    # The negative of the smallest integer does not exist; its complement does.
    return -values if values.dtype.kind == "f" else ~values


def _inverse(order: Ints) -> Ints:
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place
