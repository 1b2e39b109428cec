"""Labelled documents, and where they are: found by key in bulk, checked by bytes."""

from itertools import chain

import numpy as np

from karat.data.arrays import Ints, as_floats, count_by
from karat.data.runs import Labels
from karat.reading.columnar.label_table import find_repeated
from karat.reading.columnar.trec_rankings import Rankings
from karat.reading.columnar.words import MIX, Keys, Words

__all__ = ["Sought", "listed_again", "row_keys"]

_QUERY = np.uint64(0x9E3779B97F4A7C15)
_SLOTS_PER_LABEL = 64
_FEWEST_BITS, _MOST_BITS = 10, 20


class Sought:
    """Labelled documents, laid out so that those of any query are at hand.

    Attributes:
        number: the number of each labelled query.
        documents: the labelled documents, query after query.
        query: the numbers of their queries.
        grade: their grades.
        item: their numbers among all labels, sought or not.
    """

    def __init__(self, labels: Labels, *, judged: bool) -> None:
        queries = (query.encode("utf-8", "surrogatepass") for query in labels)
        self.number = {query: number for number, query in enumerate(queries)}
        names = [*chain.from_iterable(labels.values())]
        grade = as_floats(chain.from_iterable(w.values() for w in labels.values()))
        count = np.fromiter(map(len, labels.values()), np.int64, len(labels))
        self.item = np.arange(len(names)) if judged else np.flatnonzero(grade > 0)
        self.grade = grade[self.item]
        self.query = np.repeat(np.arange(len(labels)), count)[self.item]
        self.documents = Words.of(names)[self.item]
        self._keys = self.documents.keys()
        self._end = np.cumsum(count_by(self.query, len(labels)))
        self._begin = np.concatenate((np.zeros(1, np.int64), self._end[:-1]))

    def find(self, rankings: Rankings, number: Ints, keys: Keys) -> tuple[Ints, Ints]:
        """The rows with a labelled document, and the label of each.

        Args:
            rankings: where to look.
            number: the number of each query there.
            keys: what `row_keys` makes of the rankings.
        """
        owner, label = _ranges(self._begin[number], self._end[number])
        rows, found = _equal_pairs(keys, _mixed(self._keys[label], owner))
        same = rankings.query(rows) == owner[found]
        same &= rankings.documents[rows].equal(self.documents[label[found]])
        return rows[same], label[found[same]]


def row_keys(rankings: Rankings) -> Keys:
    """A key for each row, equal where query and document are."""
    query = np.repeat(np.arange(len(rankings.names)), rankings.count)
    return _mixed(rankings.documents.keys(), query)


def listed_again(rankings: Rankings, keys: Keys) -> Ints:
    """The rows whose document stands higher up in the same ranking."""
    rows = find_repeated(keys)
    queries = rankings.query(rows).tolist()
    documents = rankings.documents[rows].to_list()
    seen: set[tuple[int, bytes]] = set()
    again = []
    for row, *pair in zip(rows.tolist(), queries, documents, strict=True):
        if tuple(pair) in seen:
            again.append(row)
        seen.add(tuple(pair))
    return np.array(again, np.int64)


def _mixed(keys: Keys, query: Ints) -> Keys:
    """One key for query and document; its upper bits depend on all bits of both."""
    mixed = query.astype(np.uint64)
    mixed *= _QUERY
    mixed += keys
    mixed *= MIX
    return mixed


def _equal_pairs(keys: Keys, wanted: Keys) -> tuple[Ints, Ints]:
    """All pairs of a key and a wanted key that are equal, by their indices.

    A table that fits the cache lets pass the keys that are wanted and few others.
    """
    bits = (len(wanted) * _SLOTS_PER_LABEL).bit_length()
    bits = min(max(bits, _FEWEST_BITS), _MOST_BITS)
    shift = np.uint64(64 - bits)
    slots = np.zeros(1 << bits, np.bool_)
    slots[wanted >> shift] = True
    row = np.flatnonzero(slots.take((keys >> shift).view(np.int64)))
    order = np.argsort(wanted)
    wanted = wanted[order]
    begin = np.searchsorted(wanted, keys[row], side="left")
    end = np.searchsorted(wanted, keys[row], side="right")
    owner, at = _ranges(begin, end)
    return row[owner], order[at]


def _ranges(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """All numbers in some ranges; before them, which range each is in."""
    count = end - begin
    owner = np.repeat(np.arange(len(count)), count)
    shift = begin - (np.cumsum(count) - count)
    return owner, np.arange(len(owner)) + shift[owner]
