"""Loading saved evaluations: what `save` and `karat evaluate -o result.json` wrote."""

import math
import os
from collections.abc import Mapping
from dataclasses import astuple, replace
from itertools import chain
from typing import Any

import numpy as np

from karat.data.arrays import Ints
from karat.data.hits import Coverage, Hits, Subtopics
from karat.data.matches import Matches
from karat.data.runs import Latency
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
from karat.results.plain_values import SCHEMA_VERSION, Head, from_plain
from karat.results.scores import MetricScores

_ROUNDING = 1e-12
_ROWS = '\n  "queries": ['
# By class: arrays of one length each, as one per query.
_LENGTHS: Mapping[type, Mapping[str, str]] = {
    Evaluation: {"queries": "missing own_k fingerprints"},
    MetricScores: {"queries": "scores"},
    Matches: {"queries": "missing"},
    Hits: {
        "queries": "gold_count retrieved own_k",
        "rows": "query rank grade item joint",
        "items": "gold_grade",
    },
    Coverage: {
        "queries": "size",
        "documents": "query rank gold length fresh tokens",
        "rises": "item item_rank share sound",
    },
    Subtopics: {"topics": "item topic grade"},
}
_INDEXES = {"query": "queries", "item": "items"}
_LEAST = {
    **dict.fromkeys(("query", "item", "topic", "gold_count", "retrieved", "size"), 0),
    **dict.fromkeys(("rank", "item_rank", "own_k"), 1),
}


def load(path: str | os.PathLike[str], run: str | None = None) -> Evaluation:
    """The evaluation saved in a file, with the same numbers to the last bit.

    Args:
        path: a JSON file that karat wrote, possibly compressed; `-` is standard input.
        run: which one, when the file holds several runs.

    Raises:
        FormatError: the file cannot be read, or was saved by a newer karat.
        UsageError: it holds several runs and none, or an unknown one, was named.

    Example:
        >>> import tempfile
        >>> import karat
        >>> result = karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics="rr")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(f"{folder}/result.json")
        ...     karat.load(f"{folder}/result.json") == result
        True
    """
    saved = None
    try:
        with open_binary(path) as stream, gc_paused():
            saved = decode_json(_without_rows(decode_text(read_value(stream))))
            return from_dict(_choose(saved, path, run))
    except DataError as error:
        first = saved[0] if isinstance(saved, list) and saved else saved
        known = isinstance(first, dict) and "schema_version" in first
        mistaken = None if known else _mistaken(path)
        if mistaken is None and isinstance(error, NotSavedError):
            mistaken = NotSavedError(error.problem, path=path, hint=error.hint)
        raise mistaken or placed(error, path=os.fspath(path)) from None


def from_bytes(data: bytes, name: str) -> Evaluation:
    """The one evaluation in the content of a file."""
    saved = decode_json(_without_rows(decode_text(data)))
    return from_dict(_choose(saved, name, None))


def _without_rows(text: str) -> str:
    """The text without the rows for people, if they stand where `save` writes them.

    A line break in JSON is in no string, so that a line begins where it seems to.
    """
    parts, at = [], 0
    while (start := text.find(_ROWS, at)) >= 0:
        end = text.find("\n  ]", start)
        if end < 0:
            break
        parts.append(text[at : start + len(_ROWS)])
        at = end
    return "".join((*parts, text[at:]))


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
        hint=f"karat.{reader} reads it, and karat evaluate -o result.json saves one",
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
            f"{os.fspath(path)} holds {len(every)} runs: {', '.join(names)}; karat "
            "evaluate RUN -o FILE.json saves one alone, and karat.load(path, run=NAME) "
            "reads one"
        )
    if run not in names:
        raise UnknownNameError("run", run, names)
    return every[names.index(run)]


def from_dict(saved: Mapping[str, Any]) -> Evaluation:
    """The evaluation that `to_dict` gave, with the same numbers to the last bit."""
    _check_version(saved)
    try:
        rest = {name: saved[name] for name in saved.keys() - {"evaluation", "queries"}}
        head = from_plain(Head, rest, "the head")
        value = saved.get("evaluation")
        result: Evaluation = from_plain(Evaluation, value, "evaluation")
        _check(result)
    except FormatError as error:
        raise FormatError(f"is not a whole evaluation: {error.problem}") from None
    columns = {
        name: replace(column, queries=result.queries)
        for name, column in result.columns.items()
    }
    _check_head(result, head)
    return replace(result, columns=columns)


def _check_version(saved: Mapping[str, Any]) -> None:
    version = saved.get("schema_version")
    if version is not None and "kind" in saved:
        raise FormatError(
            f"is a saved result ({saved['kind']!s:.40}), not an evaluation",
            hint="karat evaluate -o result.json writes one",
        )
    if type(version) is not int or version < 1:
        raise NotSavedError(
            "is not a saved evaluation: it has no schema_version",
            hint="karat evaluate -o result.json writes one",
        )
    if version != SCHEMA_VERSION:
        other, hint = "an older", "evaluate the run again"
        if version > SCHEMA_VERSION:
            other, hint = "a newer", "upgrade karat"
        raise FormatError(
            f"was saved by {other} karat: its schema_version is {version}, this karat "
            f"reads {SCHEMA_VERSION}",
            hint=hint,
        )


def _check_head(result: Evaluation, head: Head) -> None:
    """Refuse a head that says something else than the value."""
    for name in ("run", "gold"):
        one, two = getattr(head, name), getattr(result, name)
        if one != two:
            raise FormatError(f"contradicts itself: its {name} is {one!r} and {two!r}")
    if odd := head.metrics.keys() ^ result.columns.keys():
        raise FormatError(f"contradicts itself: {min(odd)} is not in both lists")
    for name, summary in head.metrics.items():
        column = result.columns[name]
        same = math.isclose(column.mean, summary.mean, rel_tol=1e-9, abs_tol=1e-12)
        if column.n != summary.n or not (same or column.n == 0):
            raise FormatError(
                f"contradicts itself: {name} is {summary.mean} over {summary.n} "
                f"queries, but its scores give {column.mean} over {column.n}"
            )


def _check(result: Evaluation) -> None:
    """Refuse parts that do not fit together."""
    check_scores(result)
    for name in result.columns:
        if result.matchers.get(name) not in result.matches:
            raise FormatError(f"evaluation.matches lacks those that {name} reads")
    for name, matches in result.matches.items():
        sizes = {"queries": len(result.queries)}
        _check_matches(matches, f"evaluation.matches.{name}", sizes)


def check_scores(result: Evaluation) -> None:
    """Refuse parts that do not fit together, but for what matchers found."""
    queries = {*result.queries}
    sizes = {"queries": len(result.queries)}
    _check_arrays(result, "evaluation", sizes)
    if len(queries) < len(result.queries):
        raise FormatError("evaluation.queries has an id twice")
    latency = Latency({}) if result.latency is None else result.latency
    for name, parts in (
        ("facts", result.facts),
        ("kept", result.kept),
        ("latency.milliseconds", latency.milliseconds),
    ):
        if odd := parts.keys() - queries:
            raise FormatError(f"evaluation.{name}.{min(odd)} is of no query")
    if not all(0 <= time < math.inf for time in latency.milliseconds.values()):
        raise FormatError("evaluation.latency.milliseconds must be >= 0")
    cutoffs = (fact.k for fact in result.facts.values() if fact.k is not None)
    counts = (*result.labelled_by.values(), *(n.count for n in result.notices))
    if min(cutoffs, default=1) < 1 or min(counts, default=0) < 0:
        raise FormatError("evaluation has a k that is not >= 1, or a count not >= 0")
    for name, column in result.columns.items():
        _check_column(column, name, f"evaluation.columns.{name}", sizes)


def _check_column(
    column: MetricScores, name: str, place: str, sizes: Mapping[str, int]
) -> None:
    _check_arrays(column, place, sizes)
    _check_places(f"{place}.failures", column.failures, sizes)
    low, high = column.bounds
    outside = (column.scores < low - _ROUNDING) | (column.scores > high + _ROUNDING)
    if not low < high or outside.any():
        raise FormatError(f"{place}.scores are not between {low} and {high}")
    if column.metric != name or column.undefined < 0:
        raise FormatError(f"{place} is not of {name}, or its count is less than 0")


def _check_matches(matches: Matches, place: str, sizes: Mapping[str, int]) -> None:
    hits, coverage, topics = matches.hits, matches.hits.coverage, matches.hits.subtopics
    sizes = {**sizes, "items": len(matches.items)}
    _check_arrays(matches, place, sizes)
    _check_arrays(hits, f"{place}.hits", sizes)
    if hits.gold_count.sum() != sizes["items"]:
        raise FormatError(f"{place}.hits.gold_count must add up to {sizes['items']}")
    _check_order(f"{place}.hits", hits.query, hits.rank)
    if hits.item is not None and (hits.gold_query[hits.item] != hits.query).any():
        raise FormatError(f"{place}.hits.item has an item of another query")
    if coverage is not None:
        _check_arrays(coverage, f"{place}.hits.coverage", sizes)
        _check_order(f"{place}.hits.coverage", coverage.query, coverage.rank)
        _check_order(f"{place}.hits.coverage", coverage.item, coverage.item_rank)
    if topics is not None:
        _check_arrays(topics, f"{place}.hits.subtopics", sizes)
    for name in ("failures", "verdicts", "usage"):
        _check_places(f"{place}.{name}", getattr(matches, name), sizes)
    verdicts = [*chain.from_iterable(matches.verdicts.values())]
    ranks = (v.alone + v.together + v.partial + v.against for v in verdicts)
    counts = (matches.extra, *chain.from_iterable(map(astuple, matches.usage.values())))
    if min(chain.from_iterable(ranks), default=1) < 1 or min(counts) < 0:
        raise FormatError(f"{place} has a rank that is not >= 1, or a count not >= 0")
    if not all(0 <= verdict.disagreement <= 1 for verdict in verdicts):
        raise FormatError(f"{place}.verdicts: disagreement must be between 0 and 1")


def _check_arrays(value: Any, place: str, sizes: Mapping[str, int]) -> None:
    """Refuse arrays of another length, and entries that cannot be."""
    for unit, names in _LENGTHS[type(value)].items():
        arrays = {name: getattr(value, name) for name in names.split()}
        size = sizes.get(unit, len(next(iter(arrays.values()))))
        for name, array in arrays.items():
            if array is None or (name == "fingerprints" and not array):
                continue
            if len(array) != size:
                raise FormatError(
                    f"{place}.{name} must have {size} entries, got {len(array)}"
                )
            if isinstance(array, np.ndarray) and name != "scores":
                _check_entries(array, name, f"{place}.{name}", sizes)


def _check_entries(array: Any, name: str, place: str, sizes: Mapping[str, int]) -> None:
    least = _LEAST.get(name, -math.inf)
    end = sizes.get(_INDEXES.get(name, ""), math.inf)
    right = (array >= least) & (array < end)
    if not right.all():
        at = int(np.flatnonzero(~right)[0])
        wanted = f">= {least}" if name in _LEAST else "a number"
        most = f" and < {end}" if name in _INDEXES else ""
        raise FormatError(f"{place}[{at}] must be {wanted}{most}, got {array[at]}")


def _check_order(place: str, first: Ints, second: Ints) -> None:
    step = np.diff(first)
    if ((step < 0) | ((step == 0) & (np.diff(second) < 0))).any():
        raise FormatError(f"{place}: rows must be sorted by query or item, and rank")


def _check_places(
    place: str, by_query: Mapping[int, Any], sizes: Mapping[str, int]
) -> None:
    if max(by_query, default=0) >= max(sizes["queries"], 1):
        raise FormatError(f"{place}.{max(by_query)} is of no query")
