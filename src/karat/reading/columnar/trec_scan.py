"""Find labelled documents in a TREC run without keeping the run.

The file is cut into chunks of whole queries, which threads look through. Where the
lines of a query are scattered over the file, all lines are first sorted into parcels
that hold whole queries; only then the file is in memory.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import BinaryIO, TypeVar

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.policies import Policies
from karat.data.runs import Labels
from karat.reading.columnar.label_index import Sought, listed_again, row_keys
from karat.reading.columnar.trec_chunks import Chunk, chunks
from karat.reading.columnar.trec_lines import RUN, columns, tag_of
from karat.reading.columnar.trec_rankings import Rankings, read_rankings
from karat.reading.columnar.words import MIX, Words
from karat.reading.streams import BLOCK

__all__ = ["Part", "Repeated", "Survey", "in_order", "look_through", "survey"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_THREADS = min(os.cpu_count() or 1, 4)
_PARCEL_BITS = 7


class Repeated(Exception):  # noqa: N818  a message to whoever finds the line
    """A query lists a document twice, at or after this offset of the file."""

    def __init__(self, offset: int, query: bytes, document: bytes) -> None:
        super().__init__(offset, query, document)
        self.offset = offset
        self.query = query
        self.document = document


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What a chunk turned out to hold.

    Attributes:
        names: the ids of its queries.
        number: the numbers of those that have labels.
        count: how many documents each of these has.
        label: which labels were found.
        rank: at which rank each.
        tied: queries with documents of equal score, and how many.
        repeated: queries with documents listed again, and how many.
        remarks: how many lines have more than six columns.
        tag: the last line's tag.
    """

    names: list[bytes]
    number: Ints
    count: Ints
    label: Ints
    rank: Ints
    tied: dict[str, int]
    repeated: dict[str, int]
    remarks: int
    tag: bytes | None


def look_through(chunk: Chunk, sought: Sought, policies: Policies) -> Part:
    """Find what is sought in a chunk.

    Raises:
        Malformed: a line is not as it should be.
        Repeated: a document is listed twice, and the policy is to refuse that.
    """
    rankings, remarks = read_rankings(chunk, policies)
    names = rankings.names
    number = np.fromiter((sought.number.get(name, -1) for name in names), np.int64)
    if (number < 0).any():
        rankings = rankings.only(np.repeat(number >= 0, rankings.count))
        number = number[number >= 0]
    keys = row_keys(rankings)
    again = listed_again(rankings, keys)
    repeated = _tally(rankings, again)
    if repeated and policies.duplicates == "error":
        query = rankings.names[int(rankings.query(again)[0])]
        raise Repeated(chunk.offset, query, rankings.documents[again].to_list()[0])
    if repeated and policies.duplicates == "collapse":
        once = np.isin(np.arange(len(keys)), again, invert=True)
        rankings, keys = rankings.only(once), keys[once]
    rows, label = sought.find(rankings, number, keys)
    if repeated and policies.duplicates == "first":
        once = np.isin(rows, again, invert=True)
        rows, label = rows[once], label[once]
    tied = rankings.tied()
    place = rankings.places(rows, tied) if policies.ties == "trec" else rows
    return Part(
        names=names,
        number=number,
        count=rankings.count,
        label=label,
        rank=place - rankings.first[rankings.query(rows)] + 1,
        tied=_tally(rankings, np.flatnonzero(tied)),
        repeated=repeated,
        remarks=remarks,
        tag=tag_of(chunk),
    )


def _tally(rankings: Rankings, rows: Ints) -> dict[str, int]:
    """How many of the rows each query has; only queries with any."""
    query, count = np.unique(rankings.query(rows), return_counts=True)
    names = (rankings.names[i].decode() for i in query.tolist())
    return dict(zip(names, count.tolist(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What a run turned out to hold: its parts put together.

    Attributes:
        query: numbers of the queries of the labelled documents found.
        rank: their ranks; rows are sorted by query and rank.
        grade: their grades.
        item: their numbers among all labels.
        retrieved: how many documents each labelled query has; -1 if it is missing.
        queries: how many queries the run has.
        extra: ids of those without labels.
        tied: queries with documents of equal score, and how many.
        repeated: queries with documents listed again, and how many.
        remarks: how many lines have more than six columns.
        tag: the last line's tag.
    """

    query: Ints
    rank: Ints
    grade: Floats
    item: Ints
    retrieved: Ints
    queries: int
    extra: list[str]
    tied: dict[str, int]
    repeated: dict[str, int]
    remarks: int
    tag: str


def survey(
    opener: Callable[[], BinaryIO],
    labels: Labels,
    *,
    judged: bool,
    policies: Policies,
    size: int = BLOCK,
) -> Survey:
    """Find labelled documents in a run.

    Args:
        opener: opens the file from the start; called twice if queries are scattered.
        labels: what to look for.
        judged: also look for documents judged non-relevant.
        policies: how ties and duplicates are treated, and scores compared.
        size: how many bytes to read at a time.

    Raises:
        Malformed: a line is not as it should be.
        Repeated: a document is listed twice, and the policy is to refuse that.
    """
    # Freed at once, which teaches glibc to keep freed memory of up to this size: each
    # chunk then reuses the pages of the one before, instead of faulting in new ones.
    np.empty(1 << 24, np.uint8)
    sought = Sought(labels, judged=judged)
    look = partial(look_through, sought=sought, policies=policies)
    with opener() as stream:
        parts = _if_together(in_order(look, chunks(stream, size)))
    if parts is not None:
        return _put_together(parts, sought)
    with opener() as stream:
        sheaves = [*in_order(_sort_lines, chunks(stream, size))]
    parcels = zip(*(sheaf.lines for sheaf in sheaves), strict=True)
    whole = (Chunk.of(b"".join(lines)) for lines in parcels)
    found = _put_together([*in_order(look, whole)], sought)
    remarks = sum(sheaf.remarks for sheaf in sheaves)
    return replace(found, tag=_last_tag(sheaves), remarks=remarks)


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The result for each item in turn; threads work ahead on the next few."""
    with ThreadPoolExecutor(_THREADS) as pool:
        ahead: deque[Future[Result]] = deque()
        for item in items:
            ahead.append(pool.submit(work, item))
            if len(ahead) > _THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _if_together(parts: Iterator[Part]) -> list[Part] | None:
    """All parts, or None when a query is in two of them."""
    seen: set[bytes] = set()
    kept = []
    for part in parts:
        if not seen.isdisjoint(part.names):
            return None
        seen.update(part.names)
        kept.append(part)
    return kept


@dataclass(frozen=True, slots=True, eq=False)
class _Sheaf:
    """The lines of a chunk, sorted into parcels by a hash of their query."""

    lines: list[bytes]
    tag: bytes | None
    remarks: int


def _sort_lines(chunk: Chunk) -> _Sheaf:
    (query, tag), remarks = columns(chunk, RUN, (0, 5))
    parcel = (query.keys() * MIX >> np.uint64(64 - _PARCEL_BITS)).astype(np.uint8)
    order = np.argsort(parcel, kind="stable")
    length = tag.start + tag.length - query.start
    lines = Words(query.text, query.start[order], length[order]).to_list()
    cuts = np.searchsorted(parcel[order], np.arange((1 << _PARCEL_BITS) + 1)).tolist()
    sorted_lines = [b"\n".join((*lines[a:b], b"")) for a, b in pairwise(cuts)]
    return _Sheaf(sorted_lines, tag_of(chunk), remarks)


def _last_tag(parts: Iterable[Part | _Sheaf]) -> str:
    tags = [part.tag for part in parts if part.tag is not None]
    return tags[-1].decode() if tags else ""


def _put_together(parts: list[Part], sought: Sought) -> Survey:
    label = np.concatenate([part.label for part in parts] or [np.zeros(0, np.int64)])
    rank = np.concatenate([part.rank for part in parts] or [label])
    order = np.lexsort((rank, sought.query[label]))
    label, rank = label[order], rank[order]
    retrieved = np.full(len(sought.number), -1, np.int64)
    for part in parts:
        retrieved[part.number] = part.count
    names = chain.from_iterable(part.names for part in parts)
    return Survey(
        query=sought.query[label],
        rank=rank,
        grade=sought.grade[label],
        item=sought.item[label],
        retrieved=retrieved,
        queries=sum(len(part.names) for part in parts),
        extra=[name.decode() for name in names if name not in sought.number],
        tied={k: v for part in parts for k, v in part.tied.items()},
        repeated={k: v for part in parts for k, v in part.repeated.items()},
        remarks=sum(part.remarks for part in parts),
        tag=_last_tag(parts),
    )
