"""The join: at which ranks labelled documents are in whole rankings."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Ints, count_by
from karat.data.policies import Policies
from karat.reading.columnar.blocks import Block
from karat.reading.columnar.byte_column import Keys
from karat.reading.columnar.label_index import LabelIndex, find_repeated, row_keys

__all__ = [
    "Matches",
    "RepeatedDocument",
    "find_matches",
    "join_matches",
    "negated",
    "rank_rows",
]


class RepeatedDocument(Exception):  # noqa: N818  a message to who knows the file
    """A document occurs twice in a ranking, and policies forbid it."""

    def __init__(self, query: int, document: str) -> None:
        super().__init__(query, document)
        self.query = query
        self.document = document


@dataclass(frozen=True, eq=False)
class Matches:
    """The labelled rows of some rankings.

    Attributes:
        query: number of each ranking's query.
        retrieved: its documents.
        ties: relevant ones whose score another document has, too.
        repeats: relevant ones that occur more than once.
        label: number of the label of each row found.
        rank: that row's rank, from 1.
    """

    query: Ints
    retrieved: Ints
    ties: Ints
    repeats: Ints
    label: Ints
    rank: Ints

    def only(self, rankings: Bools, rows: Bools) -> "Matches":
        """Some of the rankings and some of the rows found."""
        return Matches(
            self.query[rankings],
            self.retrieved[rankings],
            self.ties[rankings],
            self.repeats[rankings],
            self.label[rows],
            self.rank[rows],
        )


def join_matches(parts: Sequence[Matches]) -> Matches:
    """All matches, one part after the other."""
    columns = {
        field.name: [np.zeros(0, np.int64), *(getattr(p, field.name) for p in parts)]
        for field in fields(Matches)
    }
    return Matches(**{name: np.concatenate(column) for name, column in columns.items()})


def find_matches(block: Block, index: LabelIndex, policies: Policies) -> Matches:
    """Find the labelled rows of whole rankings, and the rank of each.

    Raises:
        RepeatedDocument: a document occurs twice and policies forbid it.
    """
    keys = row_keys(block)
    rows, label = index.find(block, keys)
    rank, tied = rank_rows(block, rows, policies)
    count = len(block.query)
    relevant = rows[tied & (index.grade[label] > 0)]
    ties = count_by(block.group(relevant), count)
    matches = Matches(block.query, block.size, ties, np.zeros_like(ties), label, rank)
    again = _repeated_rows(block, keys, policies)
    if not len(again):
        return matches
    if policies.duplicates == "error":
        first = np.sort(again)[:1]
        query = int(block.query[block.group(first)[0]])
        raise RepeatedDocument(query, block.documents.view(first).names()[0])
    twice = np.isin(rows, again) & (index.grade[label] > 0)
    each = np.unique(label[twice], return_index=True)[1]
    repeats = count_by(block.group(rows[twice][each]), count)
    once = np.ones(len(keys), np.bool_)
    once[again] = False
    collapsed = find_matches(block.only(once), index, policies)
    if policies.duplicates == "collapse":
        return replace(collapsed, repeats=repeats)
    # A document does not share its score with itself.
    matches = replace(matches, ties=collapsed.ties, repeats=repeats)
    if policies.duplicates == "first":
        return matches.only(np.ones(count, np.bool_), once[rows])
    return matches


def rank_rows(block: Block, rows: Ints, policies: Policies) -> tuple[Ints, Bools]:
    """The ranks of some rows, and whether another row of the ranking has its value."""
    place = rows
    shared = np.zeros(len(rows), np.bool_)
    values = block.values
    if values is not None and len(rows):
        if policies.precision == "single":
            with np.errstate(over="ignore"):
                values = values.astype(np.float32)
        same_query = np.ones(len(values) - 1, np.bool_)
        same_query[block.start[1:] - 1] = False
        order = None
        if ((values[1:] > values[:-1]) & same_query).any():
            order = np.lexsort((negated(values), block.row_group))
            values = values[order]
            place = _inverse(order)[rows]
        tied = (values[1:] == values[:-1]) & same_query
        if tied.any():
            beside = np.concatenate(([False], tied, [False]))
            shared = beside[place] | beside[place + 1]
            if policies.ties == "trec":
                place = _break_ties(block, order, tied, place)
    return place - block.start[block.group(rows)] + 1, shared


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
    documents = block.documents.view(rows).texts()
    moved = np.arange(len(tie))
    moved[members[documents.descending_order(tie[members])]] = members
    return moved[place]


def _repeated_rows(block: Block, keys: Keys, policies: Policies) -> Ints:
    """The rows whose document has a better rank in the same ranking."""
    rows = find_repeated(keys)
    if not len(rows):
        return rows
    _, document = block.documents.view(rows).distinct()
    document += block.group(rows) * len(rows)
    rank, _ = rank_rows(block, rows, policies)
    order = np.lexsort((rank, document))
    again: Bools = document[order[1:]] == document[order[:-1]]
    return rows[order[1:][again]]


def negated(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers that ascend where the values descend."""
    # The negative of the smallest integer does not exist; its complement does.
    return -values if values.dtype.kind == "f" else ~values


def _inverse(order: Ints) -> Ints:
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place
