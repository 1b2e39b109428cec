"""The saved form of an evaluation: plain values, and JSON with a line per query."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.data.arrays import Ints
from karat.data.coverage import Coverage
from karat.data.hits import Hits
from karat.data.matches import Matches
from karat.data.queries import Query
from karat.data.runs import Document, Latency, Notice
from karat.errors import FormatError

if TYPE_CHECKING:
    from karat.results.evaluation import Evaluation

__all__ = [
    "DOCUMENT_COLUMNS",
    "ITEM_COLUMNS",
    "LONE_SURROGATES",
    "SCHEMA_VERSION",
    "as_json",
    "to_dict",
    "write_text",
]

SCHEMA_VERSION = 2
"""Version of the saved form; readers accept this one and all before."""

DOCUMENT_COLUMNS = ("rank", "gold", "length", "fresh", "tokens")
"""What is saved of each document that coverage was measured of."""

ITEM_COLUMNS = ("item_rank", "share", "sound")
"""What is saved of each rise of an item's coverage, after the item's place."""

# What readers of the first version do not know of a verdict.
_LATER = ("partial", "against")

# Half a character, as broken JSON may hold, is written the way JSON writes it.
LONE_SURROGATES = "backslashreplace"


def to_dict(result: "Evaluation") -> dict[str, Any]:
    """Everything, in plain values."""
    saved: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "run": result.run,
        "gold": result.gold,
        "policies": _policies(result),
        "provenance": dict(result.provenance),
        "metrics": {name: _summary(result, name) for name in result.columns},
        "warnings": [_notice(notice) for notice in result.warnings],
        "queries": [],
    }
    if not result.matches:
        # What was saved without its hits stays in the form that has none.
        saved["schema_version"] = 1
        saved["queries"] = [*_old_rows(result)]
        return saved
    saved["labelled_by"] = dict(result.labelled_by)
    saved["default_matcher"] = result.default_matcher
    if (latency := result.latency) is not None:
        counts = {"n": latency.n, "earlier": len(latency.earlier)}
        saved["latency"] = {**latency.percentiles, **counts}
    saved["matchers"] = {
        name: {"judged": m.hits.judged, "distinct": m.hits.distinct, "extra": m.extra}
        for name, m in result.matches.items()
    }
    # The rows come last: people read the top of a file.
    saved["queries"] = [*_rows(result)]
    return {**saved, "queries": saved.pop("queries")}


def as_json(saved: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """The saved form as JSON: the head for people, then a line per query."""
    head = {name: value for name, value in saved.items() if name != "queries"}
    text = json.dumps(head, ensure_ascii=False, indent=indent, allow_nan=False)
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    newline = "" if indent is None else "\n"
    pad = " " * (indent or 0)
    rows = [f"{newline}{pad}{pad}{encode(row)}" for row in saved["queries"]]
    end = f"{newline}{pad}]{newline}}}" if rows else f"]{newline}}}"
    before = text.removesuffix("}").rstrip()
    return f'{before},{newline}{pad}"queries": [{",".join(rows)}{end}'


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, in UTF-8 and with Unix line ends wherever it is written."""
    try:
        Path(path).write_text(text, "utf-8", LONE_SURROGATES, newline="\n")
    except OSError as error:
        raise FormatError(f"cannot be written: {error.strerror}", path=path) from None


def _policies(result: "Evaluation") -> dict[str, Any]:
    """Every rule; one that older readers do not know only where it is not native."""
    policies = asdict(result.policies)
    if result.policies.identical == "keep":
        del policies["identical"]
    return policies


def _summary(result: "Evaluation", name: str) -> dict[str, Any]:
    column = result.columns[name]
    unusual: dict[str, Any] = {}
    if column.average != "mean":
        unusual["average"] = column.average
    if column.higher_is_better is not True:
        unusual["higher_is_better"] = column.higher_is_better
    return {
        **unusual,
        "mean": None if column.n == 0 else column.mean,
        "interval": None if column.interval is None else column.interval.to_dict(),
        "n": column.n,
        "undefined": column.undefined,
        "failed": {result.queries[row]: why for row, why in column.failures.items()},
        "binary": column.binary,
        "bounds": [None if isinf(b) else b for b in column.bounds],
        "cutoffs": list(column.cutoffs),
        "matcher": result.matchers.get(name),
    }


def _notice(notice: Notice) -> dict[str, Any]:
    return {**asdict(notice), "examples": list(notice.examples)}


def _rows(result: "Evaluation") -> Iterator[dict[str, Any]]:
    """A row per query: its scores, what was found of its gold, and what it asks."""
    per_matcher = {name: _matched(m) for name, m in result.matches.items()}
    own_k = None if result.own_k is None else result.own_k.tolist()
    digests = result.digests
    columns = zip(
        result.queries,
        result.missing.tolist(),
        result.scores_by_query(),
        digests,
        zip(*per_matcher.values(), strict=True),
        strict=True,
    )
    for place, (query, missing, scores, digest, found) in enumerate(columns):
        row: dict[str, Any] = {
            "id": query,
            "missing": missing,
            "scores": scores,
            "gold_fingerprint": digest,
            "matches": dict(zip(per_matcher, found, strict=True)),
        }
        if query in result.facts:
            row |= _facts(result.facts[query])
        if own_k is not None:
            row["own_k"] = own_k[place]
        if query in result.kept:
            row["documents"] = [_document(d) for d in result.kept[query]]
        if result.latency is not None and query in result.latency.milliseconds:
            row["latency"] = _latency(result.latency, query)
        yield row


def _latency(latency: Latency, query: str) -> dict[str, Any]:
    marks = {
        "earlier": query in latency.earlier,
        "first_call": query in latency.first_call,
    }
    return {"ms": latency.milliseconds[query], **{m: v for m, v in marks.items() if v}}


def _facts(fact: Query) -> dict[str, Any]:
    known = {
        "text": fact.text,
        "k": fact.k,
        "tags": list(fact.tags),
        "metadata": dict(fact.metadata),
    }
    return {name: value for name, value in known.items() if value}


def _document(document: Document) -> dict[str, Any]:
    known = asdict(document)
    return {name: value for name, value in known.items() if value not in (None, {})}


def _matched(matches: Matches) -> Iterator[dict[str, Any]]:
    """What a matcher found of each query's gold items, and what it said of them."""
    hits = matches.hits
    items = iter(_items(matches))
    shares = _shares(hits.coverage, hits.gold_count) if hits.coverage else None
    topics = _topics(hits)
    gains, joint = _gains(matches), _joint(hits)
    sizes = zip(hits.gold_count.tolist(), hits.retrieved.tolist(), strict=True)
    for query, (count, retrieved) in enumerate(sizes):
        row: dict[str, Any] = {
            "retrieved": retrieved,
            "items": [*islice(items, count)],
        }
        if query in matches.verdicts:
            row["verdicts"] = [asdict(verdict) for verdict in matches.verdicts[query]]
        if query in matches.usage:
            row["usage"] = asdict(matches.usage[query])
        if query in matches.failures:
            row["failure"] = matches.failures[query]
        if gains is not None:
            row["gains"] = next(gains)
        if query in joint:
            row["joint"] = joint[query]
        if shares is not None:
            row["coverage"] = next(shares)
        if topics is not None:
            row["subtopics"] = topics[query]
        yield row


def _items(matches: Matches) -> list[list[Any]]:
    """Every gold item: its name, its grade, and the ranks at which it was found.

    Of items judged non-relevant the ranks are null where nobody looked for them.
    """
    hits = matches.hits
    items: list[list[Any]] = [
        [*pair] for pair in zip(matches.items, hits.gold_grade.tolist(), strict=True)
    ]
    if not hits.judged:
        for place in np.flatnonzero(hits.gold_grade <= 0).tolist():
            items[place].append(None)
    if hits.item is not None:
        for item, rank in zip(hits.item.tolist(), hits.rank.tolist(), strict=True):
            items[item].append(rank)
    return items


def _gains(matches: Matches) -> Iterator[list[float]] | None:
    """What each row is paid, query by query, where it is not the item's grade."""
    hits = matches.hits
    if hits.item is None or np.array_equal(hits.grade, hits.gold_grade[hits.item]):
        return None
    gains = hits.grade[np.lexsort((hits.rank, hits.item))]
    ends = np.searchsorted(hits.query, np.arange(1, hits.size))
    return iter([part.tolist() for part in np.split(gains, ends)])


def _topics(hits: Hits) -> list[list[list[float]]] | None:
    """Item, subtopic and grade of what the gold says of subtopics, query by query."""
    if hits.subtopics is None:
        return None
    rows: list[list[list[float]]] = [[] for _ in range(hits.size)]
    query = hits.gold_query[hits.subtopics.item]
    item = hits.subtopics.item - (hits.gold_count.cumsum() - hits.gold_count)[query]
    columns = (query, item, hits.subtopics.topic, hits.subtopics.grade)
    for at, *row in zip(*(column.tolist() for column in columns), strict=True):
        rows[at].append(row)
    return rows


def _joint(hits: Hits) -> dict[int, list[list[int]]]:
    """By query, the place of an item and the rank of each row that is joint."""
    found: dict[int, list[list[int]]] = {}
    if hits.joint is not None and hits.item is not None:
        first = hits.gold_count.cumsum() - hits.gold_count
        columns = (hits.query, hits.item - first[hits.query], hits.rank)
        rows = zip(*(column[hits.joint].tolist() for column in columns), strict=True)
        for query, *pair in rows:
            found.setdefault(query, []).append(pair)
    return found


def _shares(coverage: Coverage, gold_count: Ints) -> Iterator[dict[str, Any]]:
    """What coverage measured, query by query."""
    documents, rises = (
        [*zip(*(getattr(coverage, name).tolist() for name in names), strict=True)]
        for names in (DOCUMENT_COLUMNS, ITEM_COLUMNS)
    )
    size = coverage.size.tolist()
    first_item = np.concatenate(([0], gold_count.cumsum()))
    by_document = np.searchsorted(coverage.query, np.arange(len(size) + 1)).tolist()
    by_rise = np.searchsorted(coverage.item, first_item).tolist()
    items = coverage.item.tolist()
    for query, letters in enumerate(size):
        own = slice(by_document[query], by_document[query + 1])
        part = slice(by_rise[query], by_rise[query + 1])
        start = int(first_item[query])
        yield {
            "size": letters,
            "documents": documents[own],
            "rises": [
                [item - start, *rise]
                for item, rise in zip(items[part], rises[part], strict=True)
            ],
        }


def _old_rows(result: "Evaluation") -> Iterator[dict[str, Any]]:
    rows = zip(
        result.queries,
        result.missing.tolist(),
        result.scores_by_query(),
        result.traces,
        strict=True,
    )
    for query, missing, scores, trace in rows:
        row: dict[str, Any] = {
            "id": query,
            "missing": missing,
            "scores": scores,
            "gold_fingerprint": trace.fingerprint,
            "first_ranks": dict(trace.first_ranks),
            "retrieved": trace.retrieved,
            "tags": list(trace.tags),
        }
        if trace.verdicts:
            row["verdicts"] = [
                {k: v for k, v in asdict(verdict).items() if k not in _LATER}
                for verdict in trace.verdicts
            ]
        if trace.usage is not None:
            row["usage"] = asdict(trace.usage)
        yield row
