"""Runs in columns: Parquet and Arrow files, and DataFrames of any library."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from karat.data.arrays import Bools, Ints, count_by
from karat.data.policies import Policies
from karat.data.runs import Document, Labels, Located, Notice, Run, run_notices
from karat.errors import DataError
from karat.reading.columnar.arrow_arrays import (
    column_of,
    numbers_of,
    ranks_of,
    stretches_of,
)
from karat.reading.columnar.arrow_source import Batch, Piece, Tabular, each
from karat.reading.columnar.blocks import Block, join_blocks
from karat.reading.columnar.byte_column import Column
from karat.reading.columnar.join import Found, falling, join_found, rank_rows, settle
from karat.reading.columnar.label_table import LabelTable, mix
from karat.reading.problems import placed

__all__ = ["ArrowRun", "Layout"]

_BLOCK_ROWS = 1 << 16
_EXAMPLES = 3


@dataclass(frozen=True)
class Layout:
    """Which column is which.

    Attributes:
        query: the query of each row.
        document: the document retrieved for it.
        score: what decides the rank, larger first.
        rank: what decides it when there is no score, smaller first. With neither, the
            rows are in order.
        text: the document's text; it is only read where texts are asked for.
    """

    query: str
    document: str
    score: str | None = None
    rank: str | None = None
    text: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [c for c in (self.query, self.document, self.score or self.rank) if c]


@dataclass
class _Scan:
    """What a piece of the table held: rankings settled, rows for later, strangers."""

    found: list[Found] = field(default_factory=list)
    loose: list[Block] = field(default_factory=list)
    extra: dict[str, None] = field(default_factory=dict)


class ArrowRun(Run):
    """A run given as a table with one row for each retrieved document.

    Rows are read in batches. All but the first and the last query of a batch are whole
    rankings as a rule, and are settled on the spot. The rows of the others are kept and
    put together at the end; so are those of queries that turn up in several places. The
    outcome does not depend on the order of the table, only the time does.
    """

    def __init__(self, source: Tabular, layout: Layout, name: str = "run") -> None:
        self.name = name
        self.layout = layout
        self._source = source
        self._noticed: tuple[Policies, Labels, tuple[Notice, ...]] | None = None

    @property
    def texts(self) -> "ArrowRun":
        """The same run by document text, where there is one."""
        if self.layout.text is None:
            return self
        layout = replace(self.layout, document=self.layout.text)
        return ArrowRun(self._source, layout, self.name)

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        column = self.layout.query
        found: dict[str, None] = {}
        for batch in self._batches(column):
            _, names, which = stretches_of(batch.rows.column(0), batch.place(column))
            found.update(dict.fromkeys(names[number] for number in which.tolist()))
        return list(found)

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        batch = next(self._batches(self.layout.document), None)
        if batch is None:
            return []
        return self._ids(batch, batch.rows.column(0)).names(slice(_EXAMPLES))

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        table = LabelTable({"": dict.fromkeys(documents, 1.0)})
        for batch in self._batches(self.layout.document):
            ids = self._ids(batch, batch.rows.column(0))
            query = np.zeros(len(ids), np.int64)
            if len(table.find(ids, query, mix(ids.keys(), query))[0]):
                return True
        return False

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find the labelled documents, whatever the order of the rows."""
        policies = self._rules(policies)
        table = LabelTable(labels, judged=judged)
        try:
            found, extra = self._find(table, policies)
        except DataError as error:
            raise placed(error, path=self._source.path or self.name) from None
        order = np.lexsort((found.rank, table.query[found.label]))
        label = found.label[order]
        retrieved = np.full(len(labels), -1)
        retrieved[found.query] = found.retrieved
        notices = _notices(found, extra, list(labels), policies)
        self._noticed = (policies, labels, notices)
        return Located(
            query=table.query[label],
            rank=found.rank[order],
            grade=table.grade[label],
            retrieved=retrieved,
            extra=len(extra),
            item=label,
            distinct=policies.duplicates != "keep",
            notices=notices,
        )

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents, best first."""
        policies = self._rules(policies)
        names = self.queries()
        numbers = {name: number for number, name in enumerate(names)}
        whole = self._whole(numbers, policies)
        texts = self.layout.text and self.texts._whole(numbers, policies)  # noqa: SLF001
        for at, name in enumerate(names):
            block = whole.part(at, at + 1)
            rank, _ = rank_rows(block, np.arange(len(block.documents)), policies)
            order = np.argsort(rank)
            ids = block.documents.names(order)
            said: list[str | None] = [None] * len(order)
            if texts:
                said = [*texts.part(at, at + 1).documents.names(order)]
            scores: list[float | None] = [None] * len(order)
            if block.values is not None and self.layout.score:
                scores = block.values[order].astype(np.float64).tolist()
            yield name, list(map(Document, ids, said, scores))

    def notices(self, labels: Labels, policies: Policies) -> tuple[Notice, ...]:
        """Ties, repeated documents and queries without labels."""
        policies = self._rules(policies)
        seen = self._noticed
        if seen and seen[0] == policies and seen[1].keys() == labels.keys():
            return seen[2]
        return self.locate(labels, judged=False, policies=policies).notices

    def _rules(self, policies: Policies) -> Policies:
        """The policies; documents of one rank stay in the order of their rows."""
        if self.layout.score or not self.layout.rank:
            return policies
        return replace(policies, ties="input")

    def _find(self, table: LabelTable, policies: Policies) -> tuple[Found, list[str]]:
        """What is in all the rankings, and the queries that have no labels."""
        pieces = self._pieces()
        scans = each(partial(self._scan, table=table, policies=policies), pieces)
        found = join_found([part for scan in scans for part in scan.found])
        loose = [block for scan in scans for block in scan.loose]
        torn = _torn(found, loose, len(table.queries))
        if torn.any():
            found = _without(found, table, torn)
            loose = [block.only(~torn[block.query]) for block in loose]
            collect = partial(
                self._collect, table=table, wanted=torn, policies=policies
            )
            loose += [block for blocks in each(collect, pieces) for block in blocks]
        if loose:
            blocks = join_blocks(loose).pieces(_BLOCK_ROWS)
            later = [settle(block, table, policies) for block in blocks]
            found = join_found([found, *later])
        extra = {query: None for scan in scans for query in scan.extra}
        return found, list(extra)

    def _scan(self, piece: Piece, table: LabelTable, policies: Policies) -> _Scan:
        scan = _Scan()
        for batch in piece():
            block, extra = self._block(batch, table.queries, policies)
            whole, loose = block.split()
            if len(whole.query):
                scan.found.append(_labelled(settle(whole, table, policies)))
            if len(loose.query):
                scan.loose.append(loose)
            scan.extra.update(dict.fromkeys(extra))
        return scan

    def _collect(
        self, piece: Piece, table: LabelTable, wanted: Bools, policies: Policies
    ) -> list[Block]:
        """The rows of the wanted queries."""
        collected = []
        for batch in piece():
            block, _ = self._block(batch, table.queries, policies)
            stretches = block.query >= 0
            stretches[stretches] = wanted[block.query[stretches]]
            if stretches.any():
                collected.append(block.only(stretches))
        return collected

    def _block(
        self, batch: Batch, numbers: dict[str, int], policies: Policies
    ) -> tuple[Block, list[str]]:
        """A batch as a block, and the queries in it that have no number."""
        layout, columns = self.layout, batch.rows.columns
        start, names, which = stretches_of(columns[0], batch.place(layout.query))
        number = np.array([numbers.get(name, -1) for name in names], np.int64)
        documents = self._ids(batch, columns[1])
        values = None
        if layout.score:
            values = numbers_of(columns[2], batch.place(layout.score))
            if policies.precision == "single":
                with np.errstate(over="ignore"):
                    values = values.astype(np.float32)
        elif layout.rank:
            values = falling(ranks_of(columns[2], batch.place(layout.rank)))
        extra = [names[at] for at in np.flatnonzero(number < 0).tolist()]
        return Block(number[which], start, documents, values), extra

    def _ids(self, batch: Batch, array: Any) -> Column:
        """The documents of a batch; known by their texts, some may have none."""
        column = self.layout.document
        return column_of(array, batch.place(column), blank=column == self.layout.text)

    def _whole(self, numbers: dict[str, int], policies: Policies) -> Block:
        """All rows, one stretch for each query."""
        batches = (batch for piece in self._pieces() for batch in piece())
        return join_blocks([self._block(b, numbers, policies)[0] for b in batches])

    def _pieces(self) -> list[Piece]:
        return self._source.pieces(self.layout.columns, [self.layout.query])

    def _batches(self, column: str) -> Iterator[Batch]:
        coded = [column] if column == self.layout.query else []
        for piece in self._source.pieces([column], coded):
            yield from piece()


def _torn(found: Found, loose: list[Block], size: int) -> Bools:
    """The queries that were settled, but of which there are more rows elsewhere."""
    settled = count_by(found.query, size)
    elsewhere = np.zeros(size, np.bool_)
    for block in loose:
        elsewhere[block.query] = True
    return (settled > 1) | ((settled > 0) & elsewhere)


def _labelled(found: Found) -> Found:
    return _pick(found, found.query >= 0)


def _without(found: Found, table: LabelTable, queries: Bools) -> Found:
    rows = ~queries[table.query[found.label]]
    left = _pick(found, ~queries[found.query])
    return replace(left, label=found.label[rows], rank=found.rank[rows])


def _pick(found: Found, rankings: Bools) -> Found:
    return replace(
        found,
        query=found.query[rankings],
        retrieved=found.retrieved[rankings],
        ties=found.ties[rankings],
        repeats=found.repeats[rankings],
    )


def _notices(
    found: Found, extra: list[str], names: list[str], policies: Policies
) -> tuple[Notice, ...]:
    order = np.argsort(found.query, kind="stable")

    def by_query(counts: Ints) -> dict[str, int]:
        some = order[counts[order] > 0]
        queries = (names[number] for number in found.query[some].tolist())
        return dict(zip(queries, counts[some].tolist(), strict=True))

    return run_notices(
        policies,
        ties=by_query(found.ties),
        duplicates=by_query(found.repeats),
        extra=extra,
    )
