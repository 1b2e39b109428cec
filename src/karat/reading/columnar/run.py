"""Runs in columns, whatever file or table they come from."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, repeat
from typing import TypeVar

import numpy as np

from karat.data.arrays import Bools, Ints, count_by
from karat.data.policies import Policies
from karat.data.runs import Document, Labels, Located, Notice, Run, run_notices
from karat.errors import DataError
from karat.reading.columnar.blocks import (
    Batch,
    Block,
    Field,
    Piece,
    RunSource,
    cut_blocks,
    join_blocks,
    number,
)
from karat.reading.columnar.byte_column import distinct, starts
from karat.reading.columnar.join import (
    Matches,
    RepeatedDocument,
    find_matches,
    join_matches,
    rank_rows,
)
from karat.reading.columnar.label_index import LabelIndex, row_keys
from karat.reading.problems import placed

__all__ = ["ColumnarRun"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_BLOCK_ROWS = 1 << 16
_MOST_ROWS = 1 << 18
_EXAMPLES = 3
_THREADS = min(os.cpu_count() or 1, 8)


@dataclass
class _Scan:
    """What pieces of a run held.

    Attributes:
        matches: what was found in rankings that seem whole.
        rest: rows of labelled queries that may be parts of a ranking.
        extra: queries without labels.
        ignored: rows in which something was ignored.
        scattered: whether rows of a query among the rest are apart.
    """

    matches: list[Matches] = field(default_factory=list)
    rest: list[Block] = field(default_factory=list)
    extra: dict[str, None] = field(default_factory=dict)
    ignored: int = 0
    scattered: bool = False

    def add(self, other: "_Scan") -> None:
        """Put what later pieces held behind this."""
        self.matches += other.matches
        self.rest += other.rest
        self.extra.update(other.extra)
        self.ignored += other.ignored

    def join_ended(self, join: Callable[[Block], Matches]) -> None:
        """Join the rankings among the rest that have ended, so that memory stays flat.

        Where rows are scattered nothing can be said to have ended.
        """
        rows = sum(len(block.documents) for block in self.rest)
        if rows < _MOST_ROWS or self.scattered:
            return
        query = np.concatenate([block.query for block in self.rest])
        query = query[starts(query)]
        self.scattered = len(distinct(query)[0]) < len(query)
        if len(query) > 1 and not self.scattered:
            whole = join_blocks(self.rest)
            last = whole.query == query[-1]
            self.matches.append(join(whole.only(np.repeat(~last, whole.size))))
            self.rest = [whole.copy(last)]


class ColumnarRun(Run):
    """A run with one row for each retrieved document, read when asked and never kept.

    Rows are read in batches. All but the first and the last query of a batch are whole
    rankings as a rule, and are joined with the labels on the spot. The rows of the
    others are kept and put together at the end; so are those of queries that turn up in
    several places. The outcome does not depend on the order of the rows.
    """

    def __init__(self, source: RunSource, name: str = "run") -> None:
        self.name = name
        self._source = source

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        names = (batch.queries()[1] for batch in self._batches("query"))
        return list(dict.fromkeys(chain.from_iterable(names)))

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        batch = next(self._batches("document"), None)
        return batch.documents().view(slice(_EXAMPLES)).names() if batch else []

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        index = LabelIndex({"": dict.fromkeys(documents, 1.0)})
        only = np.zeros(1, np.int64)

        def look(piece: Piece) -> bool:
            blocks = (Block(only, only, batch.documents()) for batch in piece())
            return any(len(index.find(block, row_keys(block))[0]) for block in blocks)

        return any(_in_order(look, self._source.pieces("document")))

    def kinds(self) -> frozenset[str]:
        """Whether documents are known by `ids`, by `texts`, or both."""
        batch = next(self._batches("document", "text"), None)
        texts = batch is not None and batch.texts() is not None
        return frozenset({"ids", "texts"} if texts else {"ids"})

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find the labelled documents, whatever the order of the rows."""
        policies = self._rules(policies)
        index = LabelIndex(labels, judged=judged)
        try:
            matches, scan = self._find(index, policies)
        except RepeatedDocument as found:
            raise self._refusal(list(labels)[found.query], found.document) from None
        except DataError as error:
            raise placed(error, path=self._path) from None
        query = index.query[matches.label]
        order = np.lexsort((matches.rank, query))
        label = matches.label[order]
        retrieved = np.full(len(labels), -1)
        retrieved[matches.query] = matches.retrieved
        notices = _notices(matches, scan, list(labels), policies)
        return Located(
            query=query[order],
            rank=matches.rank[order],
            grade=index.grade[label],
            retrieved=retrieved,
            extra=len(scan.extra),
            item=label,
            distinct=policies.duplicates != "keep",
            notices=(*notices, *self._source.notices(scan.ignored)),
        )

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents, best first."""
        policies = self._rules(policies)
        numbers: dict[str, int] = {}
        blocks: list[Block] = []
        texts: list[Block] = []
        for batch in self._batches("query", "document", "value", "text"):
            blocks.append(_block(batch, partial(number, numbers=numbers))[0])
            if (column := batch.texts()) is not None:
                texts.append(replace(blocks[-1], documents=column))
        whole = join_blocks(blocks)
        all_texts = join_blocks(texts).documents if texts else None
        for name, first, size in zip(numbers, whole.start, whole.size, strict=True):
            block = whole.part(numbers[name], numbers[name] + 1)
            rank, _ = rank_rows(block, np.arange(size), policies)
            order = np.argsort(rank)
            if policies.duplicates == "collapse":
                order = order[block.documents.view(order).distinct()[0]]
            ids = block.documents.view(order).names()
            contents: Iterable[str | None] = repeat(None)
            if all_texts is not None:
                contents = all_texts.view(first + order).names()
            scores: Iterable[float | None] = repeat(None)
            if block.values is not None and not self._source.ranked:
                scores = block.values[order].astype(np.float64).tolist()
            yield name, [*map(Document, ids, contents, scores)]

    @property
    def _path(self) -> str:
        return self._source.path or self.name

    def _refusal(self, query: str, document: str) -> DataError:
        return placed(self._source.repeated(query, document), path=self._path)

    def _rules(self, policies: Policies) -> Policies:
        """The policies; documents of one rank stay in the order of their rows."""
        if self._source.ranked:
            return replace(policies, ties="input", precision="double")
        return policies

    def _find(self, index: LabelIndex, policies: Policies) -> tuple[Matches, _Scan]:
        """What is in all the rankings, and what else there was."""
        join = partial(find_matches, index=index, policies=policies)
        scan = _Scan()
        work = partial(_scan, index=index, join=join)
        for part in _in_order(work, self._pieces()):
            scan.add(part)
            scan.join_ended(join)
        matches, rest = join_matches(scan.matches), scan.rest
        scattered = _scattered(matches, rest, index.size)
        if scattered.any():
            matches = matches.only(
                ~scattered[matches.query], ~scattered[index.query[matches.label]]
            )
            rest = [block.copy(~scattered[block.query]) for block in rest]
            collect = partial(_collect, index=index, wanted=scattered)
            rest += chain.from_iterable(_in_order(collect, self._pieces()))
        if rest:
            blocks = cut_blocks(rest, _BLOCK_ROWS)
            later = _in_order(lambda some: join(join_blocks(some)), blocks)
            matches = join_matches([matches, *later])
        return matches, scan

    def _pieces(self) -> Iterable[Piece]:
        return self._source.pieces("query", "document", "value")

    def _batches(self, *fields: Field) -> Iterator[Batch]:
        for piece in self._source.pieces(*fields):
            yield from piece()


def _scan(piece: Piece, index: LabelIndex, join: Callable[[Block], Matches]) -> _Scan:
    scan = _Scan()
    for batch in piece():
        block, extra = _block(batch, index.numbers)
        whole, rest = block.split()
        if len(whole.query):
            scan.matches.append(join(whole))
        scan.rest += rest
        scan.extra.update(dict.fromkeys(extra))
        scan.ignored += batch.ignored
    return scan


def _collect(piece: Piece, index: LabelIndex, wanted: Bools) -> list[Block]:
    """The rows of the wanted queries."""
    collected = []
    for batch in piece():
        block, _ = _block(batch, index.numbers)
        groups = block.query >= 0
        groups[groups] = wanted[block.query[groups]]
        if groups.any():
            collected.append(block.copy(groups))
    return collected


def _block(
    batch: Batch, numbers: Callable[[list[str]], Ints]
) -> tuple[Block, list[str]]:
    """A batch as a block, and the queries in it that have no number."""
    start, names, which = batch.queries()
    known = numbers(names)
    extra = [names[at] for at in np.flatnonzero(known < 0).tolist()]
    return Block(known[which], start, batch.documents(), batch.values()), extra


def _scattered(matches: Matches, rest: list[Block], size: int) -> Bools:
    """The queries joined with labels of which there are more rows elsewhere."""
    joined = count_by(matches.query, size)
    elsewhere = np.zeros(size, np.bool_)
    for block in rest:
        elsewhere[block.query] = True
    return (joined > 1) | ((joined > 0) & elsewhere)


def _in_order(
    work: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """The result for each item in turn; threads work ahead on the next few."""
    left = iter(items)
    first = [*islice(left, 2)]
    if len(first) == 1:
        yield work(first[0])
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        ahead: deque[Future[Result]] = deque()
        for item in chain(first, left):
            ahead.append(pool.submit(work, item))
            if len(ahead) > _THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _notices(
    matches: Matches, scan: _Scan, names: list[str], policies: Policies
) -> tuple[Notice, ...]:
    order = np.argsort(matches.query, kind="stable")

    def by_query(counts: Ints) -> dict[str, int]:
        some = order[counts[order] > 0]
        queries = (names[number] for number in matches.query[some].tolist())
        return dict(zip(queries, counts[some].tolist(), strict=True))

    return run_notices(
        policies,
        ties=by_query(matches.ties),
        duplicates=by_query(matches.repeats),
        extra=list(scan.extra),
    )
