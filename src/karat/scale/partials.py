"""Two halves of an evaluation: scan parts anywhere, merge them in any order."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, pairwise
from typing import Any

import numpy as np

from karat.data.arrays import Bools
from karat.data.gold import Gold
from karat.data.matches import merge_notices
from karat.data.policies import Policies, policies_for
from karat.data.queries import Dataset
from karat.errors import DataError, UsageError
from karat.evaluation import evaluate
from karat.matching.ids import labels_in_order
from karat.reading.columnar.arrow_source import ArrowSource, Stream
from karat.reading.columnar.blocks import Batch, Block, Piece, retrieved_twice
from karat.reading.columnar.byte_column import ByteColumn
from karat.reading.columnar.frames import table_of
from karat.reading.columnar.join import LabelIndex, RepeatedDocument, join_matches
from karat.reading.columnar.run import ColumnarRun, DistantRun
from karat.reading.columnar.scanning import Partial, scan_part, torn as find_torn
from karat.reading.objects import is_frame
from karat.reading.problems import placed
from karat.reading.readers import take_gold, take_run
from karat.results.evaluation import Evaluation


def scan(
    batches: Any,
    gold: Any,
    *,
    part: int = 0,
    only: Sequence[str] | None = None,
    mapping: Mapping[str, str] | None = None,
    **switches: Any,
) -> Partial:
    """What a part of a run holds of the gold; `merge` puts parts together.

    Documents are matched by id. A part may cut queries in two; rows of one query may
    even lie in all parts, see `torn`.

    Args:
        batches: a row per retrieved document: Arrow record batches, a table, a
            DataFrame, or the path of a Parquet or TREC file.
        gold: the same for all parts, in any form that `evaluate` takes. It is made
            ready once in each process, if it is the same object or path each time.
        part: the place of the part in the run. Messages name it, and it matters where
            rows are ranked as they come.
        only: the torn queries; the partial then holds all rows of those, and no more.
        mapping: our column name -> theirs.
        switches: policies such as `duplicates`, `ties` or `profile`, as in `evaluate`.

    Raises:
        DataError: rows that cannot be read, and in which part.

    Example:
        >>> import pyarrow as pa
        >>> rows = {"query": ["q1", "q1"], "document": ["b", "a"], "score": [2.0, 1.0]}
        >>> scan(pa.table(rows), {"q1": ["a"]}).rows
        2
    """
    policies = policies_for(**{"profile": None, **switches})
    labels, index = _prepared(*_key(gold))[1:]
    found = Partial()
    try:
        loaded = _rows(batches, mapping or {})
        if loaded is not None:
            run = loaded.run
            assert isinstance(run, ColumnarRun)  # noqa: S101
            policies = run.rules(policies)
            pieces = run.source.pieces("query", "document", "value")
            piece = partial(_chained, pieces)
            wanted = None if only is None else _flags(only, index)
            found = scan_part(piece, index, policies, wanted)
            found.ranked, found.mapping = run.source.ranked, loaded.mapping
            found.notices = tuple(
                replace(notice, count=found.rows)
                for notice in loaded.notices
                if notice.kind == "coerced"
            )
    except RepeatedDocument as twice:
        error = retrieved_twice([*labels][twice.query], twice.document)
        raise placed(error, path=f"part {part}") from None
    except DataError as error:
        # Only files have a better name.
        error.path = error.path if _is_path(batches) else None
        raise placed(error, path=f"part {part}") from None
    found.again, found.token = only is not None, os.urandom(8)
    found.part, found.gold, found.switches = part, index.digest, switches
    return found


def torn(partials: Iterable[Partial], gold: Any) -> list[str]:
    """The queries that lie in several parts, and were taken to be whole in one.

    Their rows have to be looked at again, with `scan(..., only=these)`: they are not
    kept the first time, because most runs have the rows of a query side by side.

    Args:
        partials: those of all parts.
        gold: what they were scanned against.
    """
    labels, index = _prepared(*_key(gold))[1:]
    parts = [*partials]
    matches = join_matches([m for found in parts for m in found.matches])
    rest = [block for found in parts for block in found.rest]
    names = [*labels]
    return [names[at] for at in np.flatnonzero(find_torn(matches, rest, index.size))]


def merge(
    partials: Iterable[Partial], gold: Any, *, name: str = "run", **options: Any
) -> Evaluation:
    """The evaluation of a whole run, from partials of its parts in any order.

    It is what `evaluate` makes of the run itself, to the last bit, for any number of
    parts; its provenance says how many there were.

    Args:
        partials: those of all parts, and those of `scan(..., only=torn(...))`.
        gold: what they were scanned against.
        name: how reports call the run.
        options: the other options of `evaluate`, such as `metrics`.

    Raises:
        UsageError: parts that do not belong together, or torn queries left out.

    Example:
        >>> import pyarrow as pa
        >>> rows = {"query": ["q1", "q1"], "document": ["b", "a"], "score": [2.0, 1.0]}
        >>> parts = [scan(pa.table(rows)[at : at + 1], {"q1": ["a"]}) for at in (1, 0)]
        >>> merge(parts, {"q1": ["a"]}, metrics=["rr"]).means
        {'rr': 0.5}
    """
    run = _PartialRun(partials, name)
    for switch, value in run.switches.items():
        if options.setdefault(switch, value) != value:
            raise UsageError(
                f"the parts were scanned with {switch}={value!r}, not "
                f"{options[switch]!r}: scan them again"
            )
    loaded = Dataset(run, mapping=run.mapping, notices=run.seen)
    return evaluate(loaded, gold=_prepared(*_key(gold))[0], name=name, **options)


class _PartialRun(DistantRun):
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
        super().__init__(name, ranked=any(found.ranked for found in every))
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


def _rows(batches: Any, mapping: Mapping[str, str]) -> Dataset | None:
    """The rows as a run, not read yet; None where there are none."""
    if _is_path(batches):
        loaded = take_run(batches, mapping=mapping)
        if not isinstance(loaded.run, ColumnarRun):
            raise DataError("a part must have a row per document: Parquet, or TREC")
        return loaded
    if is_frame(batches):
        batches = table_of(batches).to_batches()
    some = (batch for batch in batches if batch.num_rows)
    first = next(some, None)
    if first is None:
        return None
    loaded = take_run(first, mapping=mapping)
    if not isinstance(loaded.run, ColumnarRun):
        raise DataError("a part must have a row per document, in columns")
    source = loaded.run.source
    assert isinstance(source, ArrowSource)  # noqa: S101
    stream = ArrowSource(Stream(first, some), source.columns)
    return replace(loaded, run=ColumnarRun(stream))


def _flags(queries: Sequence[str], index: LabelIndex) -> Bools:
    wanted = np.zeros(index.size + 1, np.bool_)
    wanted[index.numbers(ByteColumn.of(queries))] = True
    return wanted[:-1]


def _is_path(thing: object) -> bool:
    return isinstance(thing, str | os.PathLike)


def _chained(pieces: Iterable[Piece]) -> Iterator[Batch]:
    return chain.from_iterable(piece() for piece in pieces)


def _key(gold: Any) -> tuple[Any, float]:
    """Gold by what tells whether it is the same as last time."""
    if _is_path(gold):
        path = os.fspath(gold)
        return path, os.stat(path).st_mtime if os.path.exists(path) else 0  # noqa: PTH110, PTH116
    if isinstance(gold, Dataset | Gold):
        return gold, 0
    return take_gold(gold), 0


@lru_cache(maxsize=1)
def _prepared(gold: Any, changed: float) -> tuple[Dataset, Any, LabelIndex]:
    del changed
    truth = take_gold(gold)
    if truth.gold is None:
        raise DataError("the input holds no gold")
    labels = labels_in_order(truth.gold)
    return truth, labels, LabelIndex(labels)
