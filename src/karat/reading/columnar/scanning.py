"""Scans: what parts of a run hold of the gold, and how parts make a whole.

All but the first and the last query of a part are whole rankings as a rule, and are
joined with the labels on the spot. The rows of the others are kept and put together at
the end. The outcome does not depend on how rows are cut into parts.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from karat.data.arrays import Bools, count_by
from karat.data.policies import Policies
from karat.data.runs import Notice
from karat.errors import UsageError
from karat.reading.columnar.blocks import (
    Block,
    Piece,
    cut_blocks,
    join_blocks,
)
from karat.reading.columnar.byte_column import distinct, starts
from karat.reading.columnar.join import (
    LabelIndex,
    Matches,
    find_matches,
    join_matches,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

_FEW = slice(3)
_NONE = np.zeros(0, np.int64)
_BLOCK_ROWS = 1 << 16
_MOST_ROWS = 1 << 18
_THREADS = min(os.cpu_count() or 1, 8)


@dataclass
class Partial:
    """What parts of a run hold of the gold: a value that pickles, small by design.

    Attributes:
        matches: what was found in rankings that seem whole.
        rest: rows of labelled queries that may be parts of a ranking.
        extra: queries without labels.
        ignored: rows in which something was ignored.
        rows: how many rows there were.
        scattered: whether rows of a query among the rest are apart.
        part: the place of the part in the run.
        gold: a digest of the labels.
        switches: the policies it was made under.
        ranked: whether rows are ordered by given ranks, not by scores.
        from_zero: whether these ranks begin at 0.
        again: whether it holds nothing but all rows of torn queries.
        documents: a few ids, to show what they look like.
        notices: what was seen while reading.
        mapping: our column name -> theirs.
        token: tells it from a copy of itself.
    """

    matches: list[Matches] = field(default_factory=list)
    rest: list[Block] = field(default_factory=list)
    extra: dict[str, None] = field(default_factory=dict)
    ignored: int = 0
    rows: int = 0
    scattered: bool = False
    part: int = 0
    gold: int = 0
    switches: Mapping[str, Any] = field(default_factory=dict)
    ranked: bool = False
    from_zero: bool = False
    again: bool = False
    documents: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    mapping: Mapping[str, str] = field(default_factory=dict)
    token: bytes = b""

    def add(self, other: "Partial") -> None:
        """Put what later parts held behind this."""
        self.matches += other.matches
        self.rest += other.rest
        self.extra.update(other.extra)
        self.ignored += other.ignored
        self.rows += other.rows
        self.from_zero |= other.from_zero

    def join_ended(
        self, index: LabelIndex, policies: Policies, *, now: bool = False
    ) -> None:
        """Join rankings among the rest that have ended, so that memory stays flat.

        That is done when they are many, or now. The first and the last may go on, and
        where rows are scattered nothing can be said to have ended.
        """
        rows = sum(len(block.documents) for block in self.rest)
        if self.scattered or not (now or rows >= _MOST_ROWS):
            return
        query = np.concatenate([_NONE, *(block.query for block in self.rest)])
        query = query[starts(query)]
        self.scattered = len(distinct(query)[0]) < len(query)
        if len(query) > 2 and not self.scattered:  # noqa: PLR2004
            whole = join_blocks(self.rest)
            ends = (whole.query == query[0]) | (whole.query == query[-1])
            ended = whole.only(np.repeat(~ends, whole.size))
            self.matches.append(find_matches(ended, index, policies))
            first, last = (whole.copy(whole.query == query[at]) for at in (0, -1))
            self.rest = [first, last]


def scan_piece(
    piece: Piece, index: LabelIndex, policies: Policies, wanted: Bools | None = None
) -> Partial:
    """What one piece holds: what was found, or all rows of the wanted queries."""
    scan = Partial()
    for batch in piece():
        number = index.numbers(batch.queries)
        block = batch.block(number)
        if wanted is not None:
            asked = number >= 0
            asked[asked] = wanted[number[asked]]
            if asked.any():
                scan.rest.append(block.copy(asked[batch.which]))
            continue
        whole, rest = block.split(scattered=len(batch.which) > len(number))
        if len(whole.query):
            scan.matches.append(find_matches(whole, index, policies))
        scan.rest += rest
        scan.extra.update(dict.fromkeys(batch.queries.view(number < 0).names()))
        scan.ignored += batch.ignored
        scan.rows += len(block.documents)
        scan.from_zero |= block.from_zero
        scan.documents = scan.documents or tuple(block.documents.view(_FEW).names())
        scan.join_ended(index, policies)
    scan.matches = [join_matches(scan.matches)]
    return scan


def scan_part(
    piece: Piece, index: LabelIndex, policies: Policies, wanted: Bools | None = None
) -> Partial:
    """The same, with all rankings joined that have ended."""
    found = scan_piece(piece, index, policies, wanted)
    if wanted is None:
        found.join_ended(index, policies, now=True)
        found.matches = [join_matches(found.matches)]
    return found


def torn(matches: Matches, rest: Sequence[Block], size: int) -> Bools:
    """The queries joined with labels of which there are more rows elsewhere."""
    joined = count_by(matches.query, size)
    elsewhere = np.zeros(size, np.bool_)
    for block in rest:
        elsewhere[block.query] = True
    return (joined > 1) | ((joined > 0) & elsewhere)


def finish(
    scan: Partial,
    index: LabelIndex,
    policies: Policies,
    rows_of: Callable[[Bools], Iterable[Block]],
) -> Matches:
    """What is in all the rankings.

    Args:
        scan: what all parts held.
        index: the labels.
        policies: how ties and duplicates are treated.
        rows_of: all rows of the queries that turned out to be torn.
    """
    matches, rest = join_matches(scan.matches), scan.rest
    apart = torn(matches, rest, index.size)
    if apart.any():
        matches = matches.only(
            ~apart[matches.query], ~apart[index.query[matches.label]]
        )
        rest = [block.copy(~apart[block.query]) for block in rest]
        rest += rows_of(apart)
    if rest:
        join = partial(_join, index=index, policies=policies)
        later = in_order(join, cut_blocks(rest, _BLOCK_ROWS))
        matches = join_matches([matches, *later])
    return matches


def _join(blocks: Sequence[Block], index: LabelIndex, policies: Policies) -> Matches:
    return find_matches(join_blocks(blocks), index, policies)


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int = 0
) -> Iterator[Result]:
    """The result for each item in turn; threads, or processes, work ahead.

    Args:
        work: what to do; it is sent to each process once.
        items: what to do it with.
        workers: how many processes; 0 for threads of this one.
    """
    left = iter(items)
    first = [*islice(left, 2)]
    if len(first) == 1:
        yield work(first[0])
        return
    # Small files are one piece and need no pool, which takes long to load.
    from concurrent import futures  # noqa: PLC0415

    pool: futures.Executor = futures.ThreadPoolExecutor(_THREADS)
    task: Callable[[Item], Result] = work
    if workers:
        from multiprocessing import get_context  # noqa: PLC0415

        spawn = get_context("spawn")
        pool = futures.ProcessPoolExecutor(workers, spawn, _keep_work, (work,))
        task = _do_work
    try:
        with pool:
            ahead: deque[futures.Future[Result]] = deque()
            for item in chain(first, left):
                ahead.append(pool.submit(task, item))
                if len(ahead) > max(workers, _THREADS):
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
    except futures.BrokenExecutor:
        raise UsageError(
            f"one of {workers} worker processes died: too little memory, or a script "
            "that starts workers when it is imported; with fewer workers each has more "
            "memory, and a script needs `if __name__ == '__main__':`"
        ) from None


_WORK: list[Callable[[Any], Any]] = []


def _keep_work(work: Callable[[Any], Any]) -> None:
    _WORK[:] = [work]


def _do_work(item: Any) -> Any:
    return _WORK[0](item)
