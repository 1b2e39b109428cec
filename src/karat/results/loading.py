"""Loading saved evaluations: what `save` and `karat evaluate -o result.json` wrote."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from karat.data.arrays import Ints
from karat.data.coverage import Coverage
from karat.data.hits import Hits, Subtopics
from karat.data.judgements import Usage, Verdict
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Document, Latency, Notice
from karat.errors import (
    DataError,
    FormatError,
    NotSavedError,
    UnknownNameError,
    UsageError,
)
from karat.reading.files import (
    decode_json,
    decode_text,
    gc_paused,
    open_binary,
    read_value,
)
from karat.reading.readers import read as read_input
from karat.reading.source import placed
from karat.results.evaluation import Evaluation
from karat.results.saved_form import DOCUMENT_COLUMNS, ITEM_COLUMNS, SCHEMA_VERSION
from karat.results.saved_types import check_types
from karat.results.scores import MetricScores

_ROUNDING = 1e-12
_KINDS = dict.fromkeys(("rank", "item", "item_rank"), np.int64) | {"sound": np.bool_}
Rows = Sequence[Mapping[str, Any]]


def load(path: str | os.PathLike[str], run: str | None = None) -> Evaluation:
    """The evaluation saved in a file, with the same numbers to the last bit.

    Args:
        path: a JSON file that karat wrote, possibly compressed; `-` is standard input.
        run: which one, when the file holds several runs.

    Raises:
        FormatError: the file cannot be read, or was saved by a newer karat.
        UsageError: it holds several runs and none, or an unknown one, was named.
    """
    saved = None
    try:
        with open_binary(path) as stream, gc_paused():
            saved = decode_json(decode_text(read_value(stream)))
            return from_dict(_choose(saved, path, run))
    except DataError as error:
        first = saved[0] if isinstance(saved, list) and saved else saved
        known = isinstance(first, dict) and "schema_version" in first
        mistaken = None if known else _mistaken(path)
        if mistaken is None and isinstance(error, NotSavedError):
            mistaken = NotSavedError(error.problem, path=path, hint=error.hint)
        raise mistaken or placed(error, path=os.fspath(path)) from None


def _mistaken(path: str | os.PathLike[str]) -> FormatError | None:
    """That the file is a run, gold or samples, if it is, and what reads it."""
    if not os.path.isfile(path):  # noqa: PTH113  Path raises for a long text
        return None
    try:
        found = read_input(path)
    except DataError:
        return None
    what, reader = "a run", "read_run"
    if found.run is None:
        what, reader = "gold", "read_gold"
    elif found.gold is not None:
        what, reader = "a file of samples", "read_samples"
    return NotSavedError(
        f"is {what}, not a saved evaluation",
        path=os.fspath(path),
        hint=f"karat.{reader} reads it",
    )


def _choose(saved: Any, path: str | os.PathLike[str], run: str | None) -> Any:
    every = saved if isinstance(saved, list) else [saved]
    names = [str(one.get("run")) for one in every if isinstance(one, dict)]
    if len(names) < len(every) or not every:
        return {}
    if run is None and len(every) == 1:
        return every[0]
    if run is None:
        raise UsageError(
            f"{os.fspath(path)} holds {len(every)} runs; name one with run=: "
            f"{', '.join(names)}"
        )
    if run not in names:
        raise UnknownNameError("run", run, names)
    return every[names.index(run)]


def from_dict(saved: Mapping[str, Any]) -> Evaluation:
    """The evaluation that `to_dict` gave, with the same numbers to the last bit.

    Raises:
        FormatError: a saved form of a newer karat, of something else, or a damaged one.

    Example:
        >>> from karat.evaluation import evaluate
        >>> result = evaluate({"q1": ["b", "a"]}, gold={"q1": ["a"]}, metrics=["rr"])
        >>> from_dict(result.to_dict()) == result
        True
    """
    _check_version(saved)
    check_types(saved)
    try:
        result = _read(saved)
    except KeyError as error:
        raise FormatError(f"is not a whole evaluation: {error} is missing") from None
    except (ValueError, IndexError) as error:
        raise FormatError(f"is not a whole evaluation: {error}") from None
    for name, summary in saved["metrics"].items():
        _check_mean(result.columns[name], summary)
    return result


def _check_version(saved: Mapping[str, Any]) -> None:
    version = saved.get("schema_version")
    if type(version) is not int or version < 1:
        raise NotSavedError(
            "is not a saved evaluation: it has no schema_version",
            hint="karat evaluate -o result.json writes one",
        )
    if version != SCHEMA_VERSION:
        other = "a newer" if version > SCHEMA_VERSION else "an older"
        hint = "upgrade karat" if version > SCHEMA_VERSION else "evaluate the run again"
        raise FormatError(
            f"was saved by {other} karat: its schema_version is {version}, this karat "
            f"reads {SCHEMA_VERSION}",
            hint=hint,
        )


def _check_mean(column: MetricScores, summary: Mapping[str, Any]) -> None:
    mean = math.nan if summary["mean"] is None else summary["mean"]
    same = math.isclose(column.mean, mean, rel_tol=1e-9, abs_tol=1e-12)
    if column.n != summary["n"] or not (same or column.n == 0):
        raise FormatError(
            f"contradicts itself: {column.metric} is {mean} over {summary['n']} "
            f"queries, but its scores give {column.mean} over {column.n}"
        )


def _read(saved: Mapping[str, Any]) -> Evaluation:
    rows: Rows = saved["queries"]
    queries = [row["id"] for row in rows]
    metrics = saved["metrics"]
    missing = np.array([row["missing"] for row in rows], bool)
    own_k = [row["own_k"] for row in rows if "own_k" in row]
    if len(own_k) not in {0, len(rows)}:
        raise ValueError("'own_k' is missing in some queries")
    result = Evaluation(
        run=saved["run"],
        gold=saved["gold"],
        queries=queries,
        columns={
            name: _column(name, summary, rows, queries)
            for name, summary in metrics.items()
        },
        missing=missing,
        policies=Policies(**saved["policies"]),
        matchers={
            name: summary["matcher"]
            for name, summary in metrics.items()
            if summary["matcher"] is not None
        },
        matches={
            name: _matches([row["matches"][name] for row in rows], facts, missing)
            for name, facts in saved["matchers"].items()
        },
        default_matcher=saved["default_matcher"],
        provenance=saved["provenance"],
        facts={
            row["id"]: Query(
                row["id"],
                row.get("text"),
                row.get("k"),
                tuple(row.get("tags", ())),
                row.get("metadata", {}),
            )
            for row in rows
            if not row.keys().isdisjoint(("text", "k", "tags", "metadata"))
        },
        notices=tuple(
            Notice(**{**notice, "examples": tuple(notice["examples"])})
            for notice in saved["warnings"]
        ),
        labelled_by=saved["labelled_by"],
        own_k=np.array(own_k, np.int64) if own_k else None,
        kept={
            row["id"]: tuple(Document(**document) for document in row["documents"])
            for row in rows
            if "documents" in row
        },
        fingerprints=[row["gold_fingerprint"] for row in rows],
        latency=_latency(rows, saved["latency"]) if "latency" in saved else None,
    )
    # What the evaluation itself shows is not told twice.
    shown = {*result.warnings[len(result.notices) :]}
    told = tuple(notice for notice in result.notices if notice not in shown)
    return replace(result, notices=told)


def _verdicts(row: Mapping[str, Any]) -> tuple[Verdict, ...]:
    found: list[dict[str, Any]] = [
        {name: tuple(v) if isinstance(v, list) else v for name, v in verdict.items()}
        for verdict in row.get("verdicts", ())
    ]
    return tuple(Verdict(**verdict) for verdict in found)


def _column(
    name: str, summary: Mapping[str, Any], rows: Rows, queries: Sequence[str]
) -> MetricScores:
    scores = np.array([row["scores"][name] for row in rows], np.float64)
    low, high = summary["bounds"]
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    outside = (scores < low - _ROUNDING) | (scores > high + _ROUNDING)
    if not low < high or outside.any():
        raise ValueError(f"the scores of {name} are not between {low} and {high}")
    failed = summary["failed"]
    places = {q: place for place, q in enumerate(queries)} if failed else {}
    return MetricScores(
        metric=name,
        scores=scores,
        queries=queries,
        undefined=summary["undefined"],
        failures={places[query]: why for query, why in failed.items()},
        binary=summary["binary"],
        bounds=(low, high),
        cutoffs=tuple(summary["cutoffs"]),
        average=summary.get("average", "mean"),
        higher_is_better=summary.get("higher_is_better", True),
    )


def _latency(rows: Rows, summary: Mapping[str, Any]) -> Latency:
    timed = {row["id"]: row["latency"] for row in rows if "latency" in row}
    earlier, first = (
        {query for query, time in timed.items() if time.get(mark)}
        for mark in ("earlier", "first_call")
    )
    times = {query: time["ms"] for query, time in timed.items()}
    return Latency(times, earlier, first, summary.get("concurrency"))


def _matches(rows: Rows, facts: Mapping[str, Any], missing: Any) -> Matches:
    items = [item for row in rows for item in row["items"]]
    ranks = [[rank for rank in item[2:] if rank is not None] for item in items]
    grade = np.array([item[1] for item in items], np.float64)
    count = np.array([len(row["items"]) for row in rows], np.int64)
    item = np.arange(len(items)).repeat([*map(len, ranks)])
    rank = np.array([*chain.from_iterable(ranks)], np.int64)
    paid = grade[item]
    has = rows[0].keys() if rows else ()
    if "gains" in has:
        paid = np.array([gain for row in rows for gain in row["gains"]], np.float64)
        if len(paid) != len(item):
            raise ValueError(f"{len(item)} ranks have {len(paid)} gains")
    query = np.arange(len(rows)).repeat(count)[item]
    order = np.lexsort((item, rank, query))
    places = [*enumerate(rows)]
    joint = {*_numbered([row.get("joint", ()) for row in rows], count)}
    pairs = zip(item[order].tolist(), rank[order].tolist(), strict=True)
    return Matches(
        hits=Hits(
            query=query[order],
            rank=rank[order],
            grade=paid[order],
            gold_count=count,
            gold_grade=grade,
            retrieved=np.array([row["retrieved"] for row in rows], np.int64),
            item=item[order],
            distinct=facts["distinct"],
            judged=facts["judged"],
            coverage=_coverage([row["coverage"] for row in rows], count)
            if "coverage" in has
            else None,
            subtopics=Subtopics.of(_numbered([row["subtopics"] for row in rows], count))
            if "subtopics" in has
            else None,
            joint=np.array([pair in joint for pair in pairs], bool) if joint else None,
        ),
        items=[item[0] for item in items],
        missing=missing,
        extra=facts["extra"],
        failures={p: row["failure"] for p, row in places if "failure" in row},
        verdicts={p: _verdicts(row) for p, row in places if "verdicts" in row},
        usage={p: Usage(**row["usage"]) for p, row in places if "usage" in row},
    )


def _numbered(lists: Sequence[Any], count: Ints) -> list[Any]:
    """Entries of each query that begin with an item, which is numbered over all."""
    found = []
    starts = (count.cumsum() - count).tolist()
    for entries, start, size in zip(lists, starts, count.tolist(), strict=True):
        for item, *rest in entries:
            if item >= size:
                raise ValueError("something is said of an item that is not there")
            found.append((start + item, *rest))
    return found


def _coverage(saved: Rows, count: Ints) -> Coverage:
    columns: dict[str, Any] = {}
    documents = [part["documents"] for part in saved]
    rises = _numbered([part["rises"] for part in saved], count)
    for names, table in (
        (DOCUMENT_COLUMNS, [*chain.from_iterable(documents)]),
        (ITEM_COLUMNS, rises),
    ):
        values = [*zip(*table, strict=True)] or [()] * len(names)
        for name, column in zip(names, values, strict=True):
            columns[name] = np.array(column, _KINDS.get(name, np.float64))
    query = np.arange(len(saved)).repeat([*map(len, documents)])
    size = np.array([part["size"] for part in saved], np.float64)
    return Coverage(size=size, query=query, **columns)
