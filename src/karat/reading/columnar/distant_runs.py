"""Runs whose rows lie elsewhere: in partials, or in a table of Spark."""

import io
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np

from karat.data.arrays import Bools
from karat.data.labels import ColumnLabels
from karat.data.matches import merge_notices
from karat.data.policies import Policies
from karat.errors import DataError, FormatError, UsageError
from karat.reading.columnar.arrow_arrays import load_pyarrow
from karat.reading.columnar.arrow_source import (
    RunColumns,
    Stream,
    read_rows,
)
from karat.reading.columnar.blocks import Block, Field, Piece, RunSource, join_blocks
from karat.reading.columnar.byte_column import ByteColumn, Column, NumberColumn
from karat.reading.columnar.join import (
    LabelIndex,
    Matches,
    RepeatedDocument,
    join_matches,
)
from karat.reading.columnar.run import ColumnarRun
from karat.reading.columnar.scanning import Partial, scan_part

__all__ = ["PartialRun", "SparkRun"]

_MATCHES = ("query", "retrieved", "ties", "repeats", "label", "rank")


class _Distant(ColumnarRun):
    """A run that is looked at where it lies; only what gold asks for comes back."""

    def __init__(self, ranked: bool, name: str) -> None:  # noqa: FBT001
        super().__init__(_Elsewhere(ranked), name)

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
    def __init__(self, ranked: bool) -> None:  # noqa: FBT001
        self.ranked = ranked

    def pieces(self, *fields: Field) -> list[Piece]:
        """There are none."""
        del fields
        raise UsageError(
            "this needs all rows of the run, and only what its gold asks for is here"
        )


class PartialRun(_Distant):
    """A run of which only partials are at hand.

    Attributes:
        switches: the policies they were scanned under.
        seen: what was seen while reading.
        mapping: our column name -> theirs.
    """

    def __init__(self, partials: Iterable[Partial], name: str = "run") -> None:
        # Who retries a part may hand over the same partial twice.
        every = [*{found.token: found for found in partials}.values()]
        if not every:
            raise UsageError("nothing to merge: no partials were given")
        every.sort(key=lambda found: found.part)
        self._again = [found for found in every if found.again]
        self._partials = [found for found in every if not found.again]
        for one, other in pairwise(self._partials):
            if one.part == other.part > 0:
                raise UsageError(f"part {one.part} was scanned twice: merge one of it")
        first = every[0]
        if any(found.switches != first.switches for found in every):
            raise UsageError("the parts were scanned with different policies")
        super().__init__(any(found.ranked for found in every), name)
        self.switches = first.switches
        self.mapping = next((f.mapping for f in every if f.mapping), {})
        self.seen = merge_notices(found.notices for found in self._partials)
        self.provenance = {
            "engine": "partials",
            "partitions": len(self._partials),
            "rows": sum(found.rows for found in every),
        }

    def queries(self) -> list[str]:
        """The queries without gold; others are known by number."""
        return [query for found in self._partials for query in found.extra]

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        return [*chain.from_iterable(found.documents for found in self._partials)]

    def _scans(self, index: LabelIndex, policies: Policies) -> Iterator[Partial]:
        del policies
        if any(found.gold != index.digest for found in self._partials):
            raise UsageError(
                "the parts were scanned against other gold, or a switch such as "
                "identical='ignore' asks for more than partials hold"
            )
        for found in self._partials:
            matches = join_matches(found.matches)
            if not index.judged:
                every = np.ones(len(matches.query), np.bool_)
                matches = matches.only(every, index.grade[matches.label] > 0)
            yield replace(found, matches=[matches])

    def _collected(self, index: LabelIndex, wanted: Bools) -> list[Block]:
        del index
        if [f.part for f in self._again] != [f.part for f in self._partials]:
            raise UsageError(
                f"{np.count_nonzero(wanted)} queries have rows in several parts: add "
                "scan(part, gold, only=torn(partials, gold)) of every part, or "
                "partition the run by query; and number the parts with part="
            )
        rest = [block for found in self._again for block in found.rest]
        return [block.copy(wanted[block.query]) for block in rest]


class SparkRun(_Distant):
    """A run in a table of Spark, with one row for each retrieved document.

    Each partition is scanned where it lies; Spark retries one that fails. Rows of
    queries that lie in several partitions are asked for in a second job.
    """

    def __init__(self, frame: Any, columns: RunColumns, name: str = "run") -> None:
        if columns.score is None and columns.rank is None:
            raise FormatError(
                "a table of Spark has no order: it needs a column such as score or rank"
            )
        super().__init__(columns.score is None, name)
        self._frame = frame
        self._columns = columns
        value = columns.score or columns.rank or ""
        self._names = [columns.query, columns.document, value]

    def queries(self) -> list[str]:
        """The ids of the queries, in no order."""
        return self._some(self._columns.query, None)

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        return self._some(self._columns.document, 3)

    def kinds(self) -> frozenset[str]:
        """Ids; texts are matched by `karat.scale.score`."""
        return frozenset({"ids"})

    def _some(self, column: str, most: int | None) -> list[str]:
        some = self._frame.selectExpr(f"CAST({_quoted(column)} AS STRING)")
        some = some.distinct() if most is None else some.limit(most)
        return [row[0] for row in some.collect() if row[0] is not None]

    def _scans(self, index: LabelIndex, policies: Policies) -> list[Partial]:
        found = self._job(index, policies, None)
        self.provenance = {
            "engine": "spark",
            "partitions": len(found),
            "rows": sum(part.rows for part in found),
        }
        return found

    def _collected(self, index: LabelIndex, wanted: Bools) -> list[Block]:
        found = self._job(index, Policies(), wanted)
        return [block for part in found for block in part.rest]

    def _job(
        self, index: LabelIndex, policies: Policies, wanted: Bools | None
    ) -> list[Partial]:
        columns = map(_quoted, self._names)
        work = partial(
            _scan_partition,
            labels=index.labels,
            digest=index.digest,
            judged=index.judged,
            policies=policies,
            columns=self._columns,
            wanted=wanted,
        )
        schema = "part int, problem string, partial binary"
        rows = self._frame.selectExpr(*columns).mapInArrow(work, schema).collect()
        for part, problem, _ in sorted(rows):
            if problem:
                raise FormatError(problem, path=f"partition {part}")
        return [_unpacked(bytes(data)) for _, _, data in sorted(rows)]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _scan_partition(
    batches: Iterable[Any],
    labels: ColumnLabels,
    digest: int,
    judged: bool,  # noqa: FBT001
    policies: Policies,
    columns: RunColumns,
    wanted: Bools | None,
) -> Iterator[Any]:
    """What a worker of Spark does: a partition in, one partial out."""
    from pyspark import TaskContext  # noqa: PLC0415  an extra, and there

    some = (batch for batch in batches if batch.num_rows)
    first, task = next(some, None), TaskContext.get()
    if first is None:
        return
    # A column of it would cost Spark a tenth of all its work.
    part, problem, data = task.partitionId() if task else 0, None, None
    index = _index(digest, labels, judged)
    stream = Stream(first, some).pieces(first.schema.names)[0]
    fields = columns.named("query", "document", "value")
    try:
        piece = partial(read_rows, stream, fields, columns.score is None)
        data = _packed(scan_part(piece, index, policies, wanted))
    except RepeatedDocument as found:
        source = _Elsewhere(ranked=False)
        problem = str(source.repeated([*labels][found.query], found.document))
    except DataError as error:
        problem = str(error)
    pyarrow = load_pyarrow()
    kinds = (pyarrow.int32(), pyarrow.string(), pyarrow.binary())
    cells = zip((part, problem, data), kinds, strict=True)
    arrays = [pyarrow.array([value], kind) for value, kind in cells]
    yield pyarrow.RecordBatch.from_arrays(arrays, ["part", "problem", "partial"])


_INDEXES: dict[tuple[int, bool], LabelIndex] = {}


def _index(digest: int, labels: ColumnLabels, judged: bool) -> LabelIndex:  # noqa: FBT001
    """The labels made ready, once for all partitions that a process scans."""
    if (digest, judged) not in _INDEXES:
        _INDEXES.clear()
        _INDEXES[digest, judged] = LabelIndex(labels, judged=judged)
    return _INDEXES[digest, judged]


def _packed(found: Partial) -> bytes:
    """A partial as bytes: plain arrays, which nobody has to trust to read."""
    arrays: dict[str, Any] = {
        name: getattr(matches, name)
        for matches in [join_matches(found.matches)]
        for name in _MATCHES
    }
    rest = join_blocks(found.rest)
    documents = rest.documents.copy()
    if isinstance(documents, NumberColumn):
        arrays["numbers"] = documents.values
    else:
        arrays |= {"texts": documents.data, "lengths": documents.length}
    if rest.values is not None:
        arrays["values"] = rest.values
    extra = ByteColumn.of(found.extra)
    counts = np.array([found.ignored, found.rows, found.scattered], np.int64)
    arrays |= {"rest": rest.query, "start": rest.start, "counts": counts}
    arrays |= {"extra": extra.data, "extra_lengths": extra.length}
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _unpacked(data: bytes) -> Partial:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays: Mapping[str, Any] = dict(file)
    documents: Column
    if "numbers" in arrays:
        documents = NumberColumn(arrays["numbers"])
    else:
        documents = _column(arrays["texts"], arrays["lengths"])
    rest = Block(arrays["rest"], arrays["start"], documents, arrays.get("values"))
    extra = _column(arrays["extra"], arrays["extra_lengths"]).names()
    ignored, rows, scattered = arrays["counts"].tolist()
    return Partial(
        [Matches(*(arrays[name] for name in _MATCHES))],
        [rest] if len(rest.query) else [],
        dict.fromkeys(extra),
        ignored,
        rows,
        bool(scattered),
    )


def _column(data: Any, length: Any) -> ByteColumn:
    return ByteColumn(data, np.cumsum(length) - length, length)
