"""Scale: tables of Spark scored where they lie, and means of any number of queries."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from karat.data.arrays import Floats
from karat.data.intervals import Interval
from karat.data.memory_runs import RankedRun
from karat.data.queries import Dataset
from karat.data.tables import Table, counted, number
from karat.errors import DataError, MissingExtraError, UsageError
from karat.evaluation import evaluate
from karat.metrics import Metric, split_metrics
from karat.reading.arrow import load_pyarrow
from karat.reading.meaning.aliases import infer
from karat.reading.tables import is_distributed, quoted
from karat.results.scores import Measure, read_measure
from karat.stats import moments_interval

__all__ = ["MetricTotal", "Totals", "add_totals", "score", "total_of"]

_HALF = 40
_UNIT = 1 << 2 * _HALF
_BUCKET, _SYSTEM = "karat_bucket", "karat_system"
_SENTENCE = re.compile(r"karat\.errors\.\w+: (.+)")


@dataclass(frozen=True)
class MetricTotal:
    """One metric over any number of queries: its mean does not depend on their order.

    Scores are added up as whole numbers of 2**-80, so that any partitioning gives the
    same sum, and the mean is within 1e-12 of the one that `evaluate` gives.

    Attributes:
        n: number of queries in the mean.
        undefined: number of queries for which the metric says nothing.
        total: sum of the scores, times 2**80.
        squares: sum of their squares, times 2**80.
        binary: whether scores can only be 0 or 1.
        bounds: the smallest and largest possible score.

    Example:
        >>> from karat.scale import total_of
        >>> total = total_of(np.array([1.0, 0.5, np.nan]))
        >>> total.mean, total.n, total.undefined
        (0.75, 2, 1)
    """

    n: int = 0
    undefined: int = 0
    total: int = 0
    squares: int = 0
    binary: bool = False
    bounds: tuple[float, float] = (0.0, 1.0)

    @cached_property
    def mean(self) -> float:
        """The mean over the defined scores; NaN when there are none."""
        return float(Fraction(self.total, _UNIT * self.n)) if self.n else float("nan")

    @cached_property
    def interval(self) -> Interval | None:
        """The 95 % interval of the mean; None where moments do not tell."""
        if not self.n:
            return None
        spread = Fraction(self.squares, _UNIT) - Fraction(
            self.total**2, _UNIT**2 * self.n
        )
        return moments_interval(
            self.n, self.mean, float(spread), binary=self.binary, bounds=self.bounds
        )


@dataclass(frozen=True)
class Totals(Mapping[str, MetricTotal]):
    """What a run scored, metric by metric, where the queries' scores lie elsewhere.

    Attributes:
        run: name of the run.
        queries: how many queries the gold has.
        missing: how many of them the run lacks.
        metrics: the totals, by spelling of the metric.
        table: where each query's scores are.

    Example:
        >>> from karat.scale import total_of
        >>> total = total_of(np.array([1.0, 0.5]))
        >>> Totals("bm25", queries=2, metrics={"rr": total}).means
        {'rr': 0.75}
    """

    run: str = "run"
    queries: int = 0
    missing: int = 0
    metrics: Mapping[str, MetricTotal] = field(default_factory=dict)
    table: str = ""

    def __getitem__(self, metric: str) -> MetricTotal:
        return self.metrics[metric]

    def __iter__(self) -> Any:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean of every metric."""
        return {name: total.mean for name, total in self.metrics.items()}

    def summary(self) -> Table:
        """The table a person is shown."""
        rows = []
        for name, total in self.metrics.items():
            interval = " .. ".join(map(number, total.interval or (None,)))
            counts = [f"{total.n}/{self.queries}", total.undefined, self.missing]
            rows.append([name, number(total.mean), interval, *map(str, counts)])
        names = ["metric", "mean", "95% interval", "n", "undefined", "missing"]
        title = f"{self.run}: {counted(self.queries, 'query')}"
        return Table(columns=names, rows=rows, title=title)

    def __str__(self) -> str:
        return self.summary().as_text()


def total_of(
    scores: Floats, *, binary: bool = False, bounds: tuple[float, float] = (0.0, 1.0)
) -> MetricTotal:
    """The total of some scores; NaN is undefined.

    Example:
        >>> total_of(np.array([0.5, np.nan, 0.25])).mean
        0.375
    """
    defined = scores[~np.isnan(scores)]
    return MetricTotal(
        len(defined),
        len(scores) - len(defined),
        _fixed_sum(defined),
        _fixed_sum(defined * defined),
        binary,
        bounds,
    )


def _fixed_sum(values: Floats) -> int:
    """The sum of numbers, each cut to whole parts of 2**-80: exact in any order."""
    if not np.isfinite(values).all() or np.abs(values).max(initial=0) >= 1 << 20:
        raise UsageError("scores beyond a million cannot be added up exactly")
    scaled = np.ldexp(values, _HALF)
    high = np.floor(scaled)
    low = np.floor(np.ldexp(scaled - high, _HALF)).astype(np.int64)
    total = 0
    # Two halves again, so that no sum of a million numbers leaves 64 bits.
    for half, place in ((high.astype(np.int64), _HALF), (low, 0)):
        upper, lower = half >> 20, half & ((1 << 20) - 1)
        total += (int(upper.sum()) << 20) + int(lower.sum()) << place
    return total


def add_totals(parts: Iterable[MetricTotal]) -> MetricTotal:
    """The total of all queries, from those of disjoint parts.

    Example:
        >>> parts = (total_of(np.array([score])) for score in (1.0, 0.5))
        >>> add_totals(parts).mean
        0.75
    """
    every = [*parts]
    names = ("n", "undefined", "total", "squares")
    sums = {name: sum(getattr(part, name) for part in every) for name in names}
    return replace(every[0] if every else MetricTotal(), **sums)


def score(
    run: Any,
    gold: Any,
    *,
    into: str,
    metrics: str | Metric | Iterable[str | Metric],
    by: str | None = None,
    buckets: int = 200,
    overwrite: bool = False,
    **options: Any,
) -> dict[str, Totals]:
    """Score tables of Spark query by query, and write each query's scores to a table.

    Run and gold are brought together by query, a bucket of queries at a time, so that
    neither has to fit anywhere as a whole; any matcher works, also those of texts. What
    comes back are exact totals: the same bits for any number of buckets.

    Args:
        run: a DataFrame of Spark with a row for each retrieved document.
        gold: a DataFrame of Spark with a row for each label.
        into: where each query's scores go: the name of a table, or a path with a slash,
            which is written as Parquet.
        metrics: spellings such as `"ndcg@10"`, or metric instances.
        by: the column that tells several systems apart.
        buckets: into how many parts queries are hashed. A bucket of run and gold has to
            fit into the memory of one worker.
        overwrite: replace what `into` holds.
        options: the other options of `evaluate`, such as `match` or `duplicates`.

    Returns:
        the totals of each system; of `run`, without `by`.

    Raises:
        DataError: rows that cannot be scored.
        UsageError: an unknown or impossible metric, matcher or option.
    """
    if not (is_distributed(run) and is_distributed(gold)):
        raise UsageError("score takes two DataFrames of Spark: run and gold")
    measures = [read_measure(m, "id", None) for m in split_metrics(metrics)]
    labels = [measure.label for measure in measures]
    systems = ["run"]
    run = run.selectExpr("*", f"{quoted(by) if by else repr('run')} AS {_SYSTEM}")
    if by is not None:
        found = run.selectExpr(f"CAST({_SYSTEM} AS STRING)").distinct().collect()
        systems = sorted(row[0] for row in found)
        run = run.drop(by)
    given = {**options, "metrics": metrics, "force": True, "keep": 0}
    work = partial(_score_bucket, systems=systems, labels=labels, options=given)
    columns = ", ".join(f"`{name}` double" for name in labels)
    query = (options.get("mapping") or {}).get("id")
    left, right = (
        _bucketed(frame, role, query, buckets)
        for frame, role in ((run, "run"), (gold, "gold"))
    )
    scored = left.cogroup(right).applyInArrow(
        work, f"system string, query string, missing boolean, {columns}"
    )
    try:
        writer = scored.write.mode("overwrite" if overwrite else "errorifexists")
        if "/" in into:
            writer.parquet(into)
        else:
            writer.saveAsTable(into)
    except _spark_errors() as error:
        if (found := _SENTENCE.search(str(error))) is None:
            raise
        raise DataError(found[1].strip()) from None
    session = run.sparkSession
    written = session.read.parquet(into) if "/" in into else session.table(into)
    names = [f"`{name}`" for name in ("system", "missing", *labels)]
    add = partial(_add_up, labels=labels)
    rows = written.selectExpr(*names).mapInArrow(add, "system string, sums string")
    sums = [(system, json.loads(text)) for system, text in rows.collect()]
    return {
        system: _totals(system, [p for of, p in sums if of == system], measures, into)
        for system in systems
    }


def _spark_errors() -> type[Exception]:
    try:
        from pyspark.errors import PySparkException  # noqa: PLC0415  an extra
    except ImportError:
        raise MissingExtraError("scoring in Spark", "spark") from None
    errors: type[Exception] = PySparkException
    return errors


def _bucketed(frame: Any, role: Any, query: str | None, buckets: int) -> Any:
    """The table in groups of the queries with one hash."""
    if query not in frame.columns:
        query = infer(frame.columns, role, {}).get("id")
    if query is None:
        names = ", ".join(frame.columns)
        raise DataError(
            f"{role}: no column holds the ids of queries; columns found: {names}",
            hint="mapping={'id': ...} names it",
        )
    key = f"pmod(xxhash64(CAST({quoted(query)} AS STRING)), {buckets}) AS {_BUCKET}"
    return frame.selectExpr("*", key).groupBy(_BUCKET)


def _score_bucket(
    run: Any,
    gold: Any,
    systems: Sequence[str],
    labels: Sequence[str],
    options: Mapping[str, Any],
) -> Any:
    """What a worker does: all rows of some queries in, their scores out."""
    pyarrow = load_pyarrow()
    kinds = {"system": "string", "query": "string", "missing": "bool"}
    kinds |= dict.fromkeys(labels, "double")
    schema = pyarrow.schema([*kinds.items()])
    gold = gold.drop_columns(_BUCKET)
    which = run.column(_SYSTEM).to_numpy(zero_copy_only=False).astype(str)
    rows = run.drop_columns([_BUCKET, _SYSTEM])
    parts = [schema.empty_table()]
    for system in systems if gold.num_rows else ():
        own = rows.take(np.flatnonzero(which == system))
        retrieved = own if own.num_rows else Dataset(RankedRun({}))
        result = evaluate(retrieved, gold=gold, **options)
        names = [system] * len(result.queries)
        scores = [column.scores for column in result.values()]
        columns = [names, [*result.queries], result.missing, *scores]
        parts.append(pyarrow.table(columns, schema=schema))
    return pyarrow.concat_tables(parts)


def _add_up(batches: Iterable[Any], labels: Sequence[str]) -> Iterator[Any]:
    """The sums of each batch and system, as JSON: whole numbers of any size."""
    pyarrow = load_pyarrow()
    for batch in batches:
        which = np.array(batch.column("system").to_pylist())
        missing = np.array(batch.column("missing").to_pylist(), bool)
        scores = [batch.column(n).to_numpy(zero_copy_only=False) for n in labels]
        systems = sorted({*which.tolist()})
        sums = []
        for own in (which == system for system in systems):
            parts = [total_of(column[own].astype(np.float64)) for column in scores]
            of_metrics = [[p.n, p.undefined, p.total, p.squares] for p in parts]
            sums.append(json.dumps([int(missing[own].sum()), of_metrics]))
        columns = {"system": pyarrow.array(systems, "string"), "sums": sums}
        yield pyarrow.RecordBatch.from_pydict(columns)


def _totals(
    system: str,
    parts: Sequence[tuple[int, Any]],
    measures: Sequence[Measure],
    table: str,
) -> Totals:
    found = {}
    for at, measure in enumerate(measures):
        binary, bounds = measure.metric.binary, measure.metric.bounds
        every = [(*sums[at], binary, bounds) for _, sums in parts]
        found[measure.label] = add_totals(MetricTotal(*part) for part in every)
    first = next(iter(found.values()))
    missing = sum(missing for missing, _ in parts)
    return Totals(system, first.n + first.undefined, missing, found, table)
