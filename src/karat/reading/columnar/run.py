"""Runs in columns, whatever file or table they come from."""

import logging
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from time import monotonic

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.data.policies import Policies
from karat.data.runs import Document, Labels, Located, Notice, Run, run_notices
from karat.errors import DataError, UsageError
from karat.reading.columnar.blocks import (
    Batch,
    Block,
    Field,
    Piece,
    RunSource,
    join_blocks,
    number,
)
from karat.reading.columnar.join import (
    LabelIndex,
    Matches,
    RepeatedDocument,
    rank_rows,
    row_keys,
)
from karat.reading.columnar.scanning import (
    Partial,
    finish,
    in_order,
    scan_piece,
)
from karat.reading.problems import placed

_EXAMPLES = 3
_SILENCE = 2.0
"""Seconds until it is told again how far reading has come."""

_LOG = logging.getLogger("karat")


class ColumnarRun(Run):
    """A run with one row for each retrieved document, read when asked and never kept.

    Rows are read in batches, and those of queries that turn up in several places are
    read again. The outcome does not depend on the order of the rows.

    Attributes:
        name: how reports call the system.
    """

    def __init__(self, source: RunSource, name: str = "run") -> None:
        self.name = name
        self.source = source

    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""
        names = (batch.queries.names() for batch in self._batches("query"))
        return list(dict.fromkeys(chain.from_iterable(names)))

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        batch = next(self._batches("document"), None)
        return batch.documents.view(slice(_EXAMPLES)).names() if batch else []

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        index = LabelIndex({"": dict.fromkeys(documents, 1.0)})
        only = np.zeros(1, np.int64)

        def look(piece: Piece) -> bool:
            blocks = (Block(only, only, batch.documents) for batch in piece())
            return any(len(index.find(block, row_keys(block))[0]) for block in blocks)

        return any(in_order(look, self.source.pieces("document")))

    def ids_of(
        self, queries: Container[str], *, first: int | None = None
    ) -> dict[str, list[str]]:
        """The documents of some queries, in the order of the rows."""
        found: dict[str, list[str]] = {}
        for batch in self._batches("query", "document"):
            names = batch.queries.names()
            block = batch.block(np.arange(len(names)))
            kept = np.array([name in queries for name in names], bool)[block.query]
            rows = np.flatnonzero(kept.repeat(block.size))
            group = block.row_group[rows]
            if first is not None:
                early = rows - block.start[group] < first
                rows, group = rows[early], group[early]
            some = block.documents.view(rows).names()
            for name, document in zip(block.query[group].tolist(), some, strict=True):
                found.setdefault(names[name], []).append(document)
            if first is not None:
                break
        return found

    def kinds(self) -> frozenset[str]:
        """Whether documents are known by `ids`, by `texts`, or both."""
        batch = next(self._batches("document", "text"), None)
        texts = batch is not None and batch.texts is not None
        return frozenset({"ids", "texts"} if texts else {"ids"})

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find the labelled documents, whatever the order of the rows."""
        policies = self.rules(policies)
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
        if scan.from_zero:
            rank, retrieved = matches.rank + 1, matches.retrieved + 1
            matches = replace(matches, rank=rank, retrieved=retrieved)
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
            notices=(*notices, *self.source.notices(scan.ignored)),
        )

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents, best first."""
        policies = self.rules(policies)
        numbers: dict[str, int] = {}
        blocks: list[Block] = []
        texts: list[Block] = []
        for batch in self._batches("query", "document", "value", "text"):
            blocks.append(batch.block(number(batch.queries.names(), numbers)))
            if batch.texts is not None:
                texts.append(replace(blocks[-1], documents=batch.texts))
        whole = join_blocks(blocks)
        all_texts = join_blocks(texts).documents if texts else None
        from_zero = whole.from_zero
        for name, first, size in zip(numbers, whole.start, whole.size, strict=True):
            block = whole.part(numbers[name], numbers[name] + 1)
            rank, _ = rank_rows(block, np.arange(size), policies)
            order = np.argsort(rank)
            rank = rank[order] + from_zero
            if policies.duplicates == "collapse":
                new = np.sort(block.documents.view(order).distinct()[0])
                order, rank = order[new], rank[new] - new + np.arange(len(new))
            ids = block.documents.view(order).names()
            contents: Iterable[str | None] = repeat(None)
            if all_texts is not None:
                contents = all_texts.view(first + order).names()
            scores: Iterable[float | None] = repeat(None)
            if block.values is not None and not self.source.ranked:
                scores = block.values[order].astype(np.float64).tolist()
            documents = [*map(Document, ids, contents, scores)]
            if len(rank) and rank[-1] > len(rank):
                ranks = zip(documents, rank.tolist(), strict=True)
                documents = [replace(d, rank=n) for d, n in ranks]
            yield name, documents

    @property
    def _path(self) -> str:
        return self.source.path or self.name

    def _refusal(self, query: str, document: str) -> DataError:
        return placed(self.source.repeated(query, document), path=self._path)

    def rules(self, policies: Policies) -> Policies:
        """The policies; documents of one rank stay in the order of their rows."""
        if self.source.ranked:
            return replace(policies, ties="input", precision="double")
        return policies

    def _find(self, index: LabelIndex, policies: Policies) -> tuple[Matches, Partial]:
        """What is in all the rankings, and what else there was."""
        scan, due = Partial(), monotonic() + _SILENCE
        for count, part in enumerate(self._scans(index, policies), 1):
            scan.add(part)
            scan.join_ended(index, policies)
            if monotonic() > due:
                _LOG.info("%s: %d pieces, %d rows read", self.name, count, scan.rows)
                due = monotonic() + _SILENCE
        rows_of = partial(self._collected, index)
        return finish(scan, index, policies, rows_of), scan

    def _scans(self, index: LabelIndex, policies: Policies) -> Iterable[Partial]:
        """What each part of the run holds, in order."""
        work = partial(scan_piece, index=index, policies=policies)
        return in_order(work, self._pieces(), self._workers())

    def _collected(self, index: LabelIndex, wanted: Bools) -> Iterable[Block]:
        """All rows of the wanted queries."""
        rules = Policies()
        work = partial(scan_piece, index=index, policies=rules, wanted=wanted)
        found = in_order(work, self._pieces(), self._workers())
        return chain.from_iterable(part.rest for part in found)

    def _workers(self) -> int:
        return self.workers if self.source.portable else 0

    def _pieces(self) -> Iterable[Piece]:
        return self.source.pieces("query", "document", "value")

    def _batches(self, *fields: Field) -> Iterator[Batch]:
        for piece in self.source.pieces(*fields):
            yield from piece()


class DistantRun(ColumnarRun):
    """A run that is looked at where it lies; only what gold asks for comes back."""

    def __init__(self, name: str, *, ranked: bool) -> None:
        super().__init__(_Elsewhere(), name)
        self.source.ranked = ranked

    def holds_any(self, documents: set[str]) -> bool:
        """No: documents are looked up for their own queries only."""
        del documents
        return False

    def kinds(self) -> frozenset[str]:
        """Ids: only these are looked up where they are."""
        return frozenset({"ids"})

    def ids_of(
        self, queries: Container[str], *, first: int | None = None
    ) -> dict[str, list[str]]:
        """None: ids that gold does not have stay where they are."""
        del queries, first
        return {}


class _Elsewhere(RunSource):
    def pieces(self, *fields: Field) -> list[Piece]:
        """There are none."""
        del fields
        raise UsageError(
            "this needs all rows of the run, and only what its gold asks for is here"
        )


def _notices(
    matches: Matches, scan: Partial, names: list[str], policies: Policies
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
        extra=sorted(scan.extra),
        gaps=[*by_query(matches.retrieved - matches.size)],
        repeats=[*by_query(matches.again)],
    )
