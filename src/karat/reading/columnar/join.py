"""The join: at which ranks labelled documents are in whole rankings.

Labels and rows have 64-bit keys mixed from query and document. A row is first looked up
in a bit table small enough for the processor's cache, which lets through all labelled
rows and few others; the survivors are searched among the sorted keys, and what is left
is compared byte by byte. So the answer is exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from karat.data.arrays import Bools, Floats, Ints, count_by
from karat.data.gold import ColumnLabels
from karat.data.policies import Policies
from karat.data.runs import TOP, Labels
from karat.reading.columnar.blocks import Block, ranges
from karat.reading.columnar.byte_column import (
    MIX,
    ByteColumn,
    Column,
    ColumnNames,
    Keys,
)

_QUERY = np.uint64(0x9E3779B97F4A7C15)
_SLOTS_PER_LABEL = 64
_FEWEST_BITS, _MOST_BITS = 10, 20


class LabelIndex:
    """Labels laid out so that those of any query are at hand.

    Labels are numbered over all queries in order, queries from 0.

    Attributes:
        query: the query of each label.
        grade: its grade.
        labels: they themselves, in columns.
        size: how many queries there are.
        judged: whether those of documents judged non-relevant are looked up too.
    """

    def __init__(self, labels: Labels, *, judged: bool = True) -> None:
        self.labels = labels = ColumnLabels.of(labels)
        self.size = len(labels)
        self.query: Ints = np.repeat(np.arange(self.size), labels.count)
        self.grade: Floats = labels.grade
        self.judged = judged
        self._label = (
            np.arange(len(self.grade)) if judged else np.flatnonzero(self.grade > 0)
        )
        self._end = np.cumsum(count_by(self.query[self._label], self.size))
        self._begin = np.concatenate((np.zeros(1, np.int64), self._end[:-1]))
        self._queries = _column(labels.queries)
        self._documents = _column(labels.names).view(self._label)
        self._keys: dict[type[Column], Keys] = {}
        self._query_keys: dict[type[Column], tuple[Keys, Ints]] = {}

    def numbers(self, queries: Column) -> Ints:
        """The number of each query; -1 for one without labels."""
        kind = type(queries)
        if kind not in self._query_keys:
            keys = _keys_as(kind, self._queries)
            order = np.argsort(keys)
            self._query_keys[kind] = keys[order], order
        keys, order = self._query_keys[kind]
        row, at = _equal_in(keys, queries.keys())
        place = order[at]
        same = queries.view(row).equal(self._queries.view(place))
        number = np.full(len(queries), -1)
        number[row[same]] = place[same]
        return number

    @cached_property
    def digest(self) -> int:
        """A number that other labels hardly have."""
        documents = _keys_as(ByteColumn, _column(self.labels.names))
        digest = 0
        for part in (self.query, self.grade, documents):
            digest = crc32(part.tobytes(), digest)
        return digest

    def find(self, block: Block, keys: Keys) -> tuple[Ints, Ints]:
        """The rows of a block that are labelled, and the number of each one's label.

        Args:
            block: whole rankings, all of labelled queries.
            keys: what `row_keys` makes of them.
        """
        kind = type(block.documents)
        if kind not in self._keys:
            self._keys[kind] = _keys_as(kind, self._documents)
        owner, label = ranges(self._begin[block.query], self._end[block.query])
        rows, at = _equal_pairs(keys, _mix(self._keys[kind][label], owner))
        same = block.group(rows) == owner[at]
        found = self._documents.view(label[at])
        same &= block.documents.view(rows).equal(found)
        return rows[same], self._label[label[at[same]]]


def _column(names: Sequence[str]) -> Column:
    return names.column if isinstance(names, ColumnNames) else ByteColumn.of(names)


def _keys_as(kind: type[Column], column: Column) -> Keys:
    """The keys of ids as a column of such a kind has them."""
    return (column if isinstance(column, kind) else kind.of(column.names())).keys()


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
        retrieved: its documents, or its last rank where ranks are given.
        size: its documents.
        ties: relevant ones whose score another document has, too.
        repeats: relevant ones that occur more than once.
        again: whether others do so among the first.
        label: number of the label of each row found.
        rank: that row's rank, from 1.
    """

    query: Ints
    retrieved: Ints
    size: Ints
    ties: Ints
    repeats: Ints
    again: Ints
    label: Ints
    rank: Ints

    def only(self, rankings: Bools, rows: Bools) -> "Matches":
        """Some of the rankings and some of the rows found."""
        return Matches(
            self.query[rankings],
            self.retrieved[rankings],
            self.size[rankings],
            self.ties[rankings],
            self.repeats[rankings],
            self.again[rankings],
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


def row_keys(block: Block) -> Keys:
    """A key for each row, equal where query and document are."""
    return _mix(block.documents.keys(), block.row_group)


def _mix(documents: Keys, query: Ints) -> Keys:
    """One key for query and document; its upper bits depend on all bits of both."""
    keys = query.astype(np.uint64)
    keys *= _QUERY
    keys += documents
    keys *= MIX
    return keys


def _equal_pairs(keys: Keys, wanted: Keys) -> tuple[Ints, Ints]:
    """All pairs of a key and a wanted key that are equal, by their indices."""
    if len(wanted) > len(keys):
        # Of the two sides the smaller is sorted.
        return _equal_pairs(wanted, keys)[::-1]
    bits = (len(wanted) * _SLOTS_PER_LABEL).bit_length()
    bits = min(max(bits, _FEWEST_BITS), _MOST_BITS)
    shift = np.uint64(64 - bits)
    slots = np.zeros(1 << bits, np.bool_)
    slots[wanted >> shift] = True
    row = np.flatnonzero(slots.take((keys >> shift).view(np.int64)))
    order = np.argsort(wanted)
    owner, at = _equal_in(wanted[order], keys[row])
    return row[owner], order[at]


def _equal_in(ordered: Keys, keys: Keys) -> tuple[Ints, Ints]:
    """The same for keys in ascending order: which key, and where in the order."""
    if not len(ordered):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    begin = np.searchsorted(ordered, keys)
    there = np.flatnonzero(ordered.take(begin, mode="clip") == keys)
    end = np.searchsorted(ordered, keys[there], side="right")
    owner, at = ranges(begin[there], end)
    return there[owner], at


def find_repeated(keys: Keys) -> Ints:
    """The rows whose key occurs more than once, ascending.

    Every row writes its number into a slot chosen by its key; the last writer stays.
    Equal keys share a slot, so of two rows with one key either the later stayed and
    the other sees it there, or another key displaced both: the few displaced choose
    other slots. This looks at most rows twice; sorting them all would take longer.
    """
    size = len(keys)
    bits = (size * 4).bit_length()
    slot = (keys >> np.uint64(64 - bits)).view(np.int64)
    row = np.arange(size, dtype=np.int32 if size < 1 << 31 else np.int64)
    last = np.empty(1 << bits, row.dtype)
    last[slot] = row
    winner = last.take(slot)
    beaten = np.flatnonzero(winner != row)
    if not len(beaten):
        return beaten
    lost = keys[beaten]
    same = lost == keys[winner[beaten]]
    displaced = lost[~same]
    again = find_repeated((displaced ^ (displaced >> np.uint64(29))) * MIX)
    # Not made distinct: np.unique would import numpy.ma, which takes longer than this.
    repeated = np.concatenate((lost[same], displaced[again]))
    return np.flatnonzero(np.isin(keys, repeated)) if len(repeated) else beaten[:0]


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
    retrieved, repeats = block.size, np.zeros_like(ties)
    if block.ranked and count:
        every, _ = rank_rows(block, np.arange(len(keys)), policies)
        retrieved = np.maximum.reduceat(every, block.start)
    per_query = (retrieved, block.size, ties, repeats, repeats)
    matches = Matches(block.query, *per_query, label, rank)
    again = _repeated_rows(block, keys, policies)
    if not len(again):
        return matches
    if policies.duplicates == "error":
        first = np.sort(again)[:1]
        query = int(block.query[block.group(first)[0]])
        raise RepeatedDocument(query, block.documents.view(first).names()[0])
    groups = np.zeros(count, np.bool_)
    groups[block.group(again)] = True
    if not groups.all():
        # Only the rankings that repeat a document are looked at again.
        repeating = block.only(np.repeat(groups, block.size))
        others = matches.only(~groups, ~groups[block.group(rows)])
        return join_matches([others, find_matches(repeating, index, policies)])
    twice = np.isin(rows, again) & (index.grade[label] > 0)
    each = np.unique(label[twice], return_index=True)[1]
    repeats = count_by(block.group(rows[twice][each]), count)
    other = again[~np.isin(again, rows[index.grade[label] > 0])]
    place, _ = rank_rows(replace(block, ranked=False), other, policies)
    first_ones = np.minimum(count_by(block.group(other[place <= TOP]), count), 1)
    once = np.ones(len(keys), np.bool_)
    once[again] = False
    collapsed = find_matches(block.only(once), index, policies)
    if policies.duplicates == "collapse":
        if block.ranked:
            # What stands behind a repeated document moves up by one.
            order = np.lexsort((every, block.row_group))
            gone = np.cumsum(~once[order])
            every[order] -= gone - gone[block.start][block.row_group]
            rest = replace(block.only(once), values=~every[once])
            ties, collapsed = collapsed.ties, find_matches(rest, index, policies)
            collapsed = replace(collapsed, ties=ties)
        return replace(collapsed, repeats=repeats)
    # A document does not share its score with itself.
    ties = collapsed.ties
    matches = replace(matches, ties=ties, repeats=repeats, again=first_ones)
    if policies.duplicates == "first":
        return matches.only(np.ones(count, np.bool_), once[rows])
    return matches


def rank_rows(block: Block, rows: Ints, policies: Policies) -> tuple[Ints, Bools]:
    """The ranks of some rows, and whether another row of the ranking has its value.

    Where ranks are given they are kept, counted from 0 if they are so; of two equal
    ones one moves down.
    """
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
        if block.ranked:
            return _spread(block, ~values)[place], shared
    return place - block.start[block.group(rows)] + 1, shared


def _spread(block: Block, given: Ints) -> Ints:
    """Ranks in ascending order, each its own or the next that is free."""
    place = np.arange(len(given)) - block.start[block.row_group]
    # Groups so far apart that what was highest in one is below all of the next.
    apart = block.row_group << 32
    ranks: Ints = np.maximum.accumulate(given - place + apart) - apart + place
    return ranks


def _break_ties(block: Block, order: Ints | None, tied: Bools, place: Ints) -> Ints:
    """The places, once rows of equal value are ordered by document id, descending.

    The documents asked for are few. They are sorted, each document of their ties is
    looked up among them, and how many stand before each of them is counted.

    Args:
        block: the rows.
        order: the rows by value; None when they are so already.
        tied: whether each place is tied with the next.
        place: the places asked for; ties that concern none of them are left alone.
    """
    tie = np.concatenate(([0], np.cumsum(~tied)))
    concerned = np.zeros(int(tie[-1]) + 1, np.bool_)
    concerned[tie[place]] = True
    concerned &= np.bincount(tie) > 1
    members = np.flatnonzero(concerned[tie])
    if not len(members):
        return place
    rows = members if order is None else order[members]
    # Of equal documents the first comes first.
    last = np.arange(len(rows)).astype(np.uint64)
    words = [*block.documents.view(rows).texts().descending_words(), last]
    asked = np.zeros(len(tie), np.bool_)
    asked[place] = True
    some = np.flatnonzero(asked[members])
    tie = tie[members]
    count = np.bincount(tie[some], minlength=len(concerned))
    some = some[np.lexsort((*(word[some] for word in words[::-1]), tie[some]))]
    high = np.cumsum(count)[tie]
    low = high - count[tie]
    for _ in range(int(count.max()).bit_length()):
        middle = (low + high) >> 1
        other = some.take(middle, mode="clip")
        before, equal = middle >= high, np.ones(len(rows), np.bool_)
        for word in words:
            theirs = word.take(other)
            before |= equal & (theirs < word)
            equal &= theirs == word
        low = np.where(before & (middle < high), middle + 1, low)
        high = np.where(before, high, middle)
    moved = np.arange(len(asked))
    behind = np.cumsum(np.bincount(low, minlength=len(some) + 1))
    moved[members[some]] = members[behind[:-1] - 1]
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
