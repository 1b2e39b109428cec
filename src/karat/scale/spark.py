"""Spark, where gold or texts are too many to travel: each query where its rows are."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from karat.data.memory_runs import RankedRun
from karat.data.queries import Dataset
from karat.errors import DataError, MissingExtraError, UsageError
from karat.evaluation import evaluate
from karat.metrics import Metric, split_metrics
from karat.reading.arrow import load_pyarrow
from karat.reading.meaning.aliases import infer
from karat.reading.tables import is_distributed, quoted
from karat.results.scores import Measure, read_measure
from karat.scale.totals import MetricTotal, Totals, add_totals, total_of

_BUCKET, _SYSTEM = "karat_bucket", "karat_system"
_SENTENCE = re.compile(r"karat\.errors\.\w+: (.+)")


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
