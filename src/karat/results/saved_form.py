"""Writing evaluations: JSON with a line per query, built column by column."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import chain, islice, pairwise
from json.encoder import encode_basestring
from math import isinf
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.hits import Hits
from karat.data.matches import Matches
from karat.reading.files import gc_paused

if TYPE_CHECKING:
    from karat.results.evaluation import Evaluation

SCHEMA_VERSION = 2
"""Version of the saved form."""

DOCUMENT_COLUMNS = ("rank", "gold", "length", "fresh", "tokens")
"""What is saved of each document that coverage was measured of."""

ITEM_COLUMNS = ("item", "item_rank", "share", "sound")
"""What is saved of each rise of an item's coverage."""

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def to_dict(result: "Evaluation") -> dict[str, Any]:
    """Everything, in plain values."""
    with gc_paused():
        saved: dict[str, Any] = json.loads(as_json(result, indent=None))
    return saved


def as_json(result: "Evaluation", *, indent: int | None = 2) -> str:
    """Everything as JSON: the head for people, then a line per query."""
    head = _head(result)
    text = json.dumps(head, ensure_ascii=False, indent=indent, allow_nan=False)
    newline = "" if indent is None else "\n"
    pad = " " * (indent or 0)
    start = newline + pad + pad
    rows = f",{start}".join(_rows(result))
    end = f"{newline}{pad}]{newline}}}" if rows else f"]{newline}}}"
    before = text.removesuffix("}").rstrip()
    return f'{before},{newline}{pad}"queries": [{start if rows else ""}{rows}{end}'


def _head(result: "Evaluation") -> dict[str, Any]:
    head: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "run": result.run,
        "gold": result.gold,
        "policies": asdict(result.policies),
        "provenance": dict(result.provenance),
        "metrics": {name: _summary(result, name) for name in result.columns},
        "warnings": [asdict(notice) for notice in result.warnings],
        "labelled_by": dict(result.labelled_by),
        "default_matcher": result.default_matcher,
    }
    if (latency := result.latency) is not None:
        counts = {"n": latency.n, "earlier": len(latency.earlier)}
        counts |= {"concurrency": latency.concurrency} if latency.concurrency else {}
        head["latency"] = {**latency.percentiles, **counts}
    head["matchers"] = {
        name: {"judged": m.hits.judged, "distinct": m.hits.distinct, "extra": m.extra}
        for name, m in result.matches.items()
    }
    return head


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


def _rows(result: "Evaluation") -> Iterable[str]:
    """A row per query: its scores, what was found of its gold, and what it asks.

    Every field is a column of texts, one per query, and all go into one template.
    """
    scores = _template(dict.fromkeys(result.columns, "%s"))
    parts = {"id": "%s", "missing": "%s", "scores": scores, "gold_fingerprint": '"%s"'}
    columns: list[Iterable[str]] = [
        map(encode_basestring, result.queries),
        ["true" if missing else "false" for missing in result.missing.tolist()],
        *(_texts(column.scores) for column in result.columns.values()),
    ]
    found = '{"retrieved": %s, "items": [%s]%s}'
    parts["matches"] = _template(dict.fromkeys(result.matches, found))
    matched = [_found(matches) for matches in result.matches.values()]
    columns += [result.digests, *chain.from_iterable(matched), _known(result)]
    template = _template(parts).removesuffix("}") + "%s}"
    return map(template.__mod__, zip(*columns, strict=True))


def _template(fields: Mapping[str, str]) -> str:
    """An object with a place for each value."""
    pairs = (f"{_encode(n).replace('%', '%%')}: {text}" for n, text in fields.items())
    return f"{{{', '.join(pairs)}}}"


def _texts(values: Floats | Ints) -> list[str]:
    """Numbers as JSON has them, each that occurs written once; NaN is null."""
    bits = values.view(np.int64).tolist()
    known = [*dict.fromkeys(bits)]
    numbers = np.array(known, np.int64).view(values.dtype).tolist()
    plain = [None if value != value else value for value in numbers]  # noqa: PLR0124
    texts = dict(zip(known, _encode(plain)[1:-1].split(", "), strict=False))
    return [*map(texts.__getitem__, bits)]


def _fields(size: int, fields: Mapping[str, Mapping[int, Any]]) -> list[str]:
    """The text of fields that only some queries have."""
    texts = [""] * size
    for name, values in fields.items():
        for place, value in values.items():
            texts[place] += f', "{name}": {_encode(value)}'
    return texts


def _known(result: "Evaluation") -> list[str]:
    """What else is known of each query: what it asks, its k, documents and latency."""
    places, facts = [*enumerate(result.queries)], result.facts
    fields: dict[str, dict[int, Any]] = {
        name: {
            place: value
            for place, query in places
            if query in facts and (value := getattr(facts[query], name))
        }
        for name in ("text", "k", "tags", "metadata")
    }
    if result.own_k is not None:
        fields["own_k"] = dict(enumerate(result.own_k.tolist()))
    fields["documents"] = {
        place: [
            {n: v for n, v in asdict(document).items() if v not in (None, {})}
            for document in result.kept[query]
        ]
        for place, query in places
        if query in result.kept
    }
    if (latency := result.latency) is not None:
        marks = ("earlier", "first_call")
        fields["latency"] = {
            place: {"ms": latency.milliseconds[query]}
            | {mark: True for mark in marks if query in getattr(latency, mark)}
            for place, query in places
            if query in latency.milliseconds
        }
    return _fields(len(places), fields)


def _found(matches: Matches) -> tuple[list[str], list[str], list[str]]:
    """What a matcher found of each query's gold items, and what it said of them."""
    hits = matches.hits
    first = hits.gold_count.cumsum() - hits.gold_count
    fields: dict[str, Mapping[int, Any]] = {
        "verdicts": {
            place: [asdict(verdict) for verdict in verdicts]
            for place, verdicts in matches.verdicts.items()
        },
        "usage": {place: asdict(usage) for place, usage in matches.usage.items()},
        "failure": matches.failures,
    }
    item = hits.item
    if item is not None and not np.array_equal(hits.grade, hits.gold_grade[item]):
        # What each row is paid, where it is not the item's grade.
        paid = hits.grade[np.lexsort((hits.rank, item))]
        gains = _by_query(hits, hits.query, paid)
        fields["gains"] = {place: [g for (g,) in row] for place, row in gains.items()}
    if item is not None and hits.joint is not None:
        query, rank = hits.query[hits.joint], hits.rank[hits.joint]
        joint = _by_query(hits, query, item[hits.joint] - first[query], rank)
        fields["joint"] = {place: rows for place, rows in joint.items() if rows}
    if (coverage := hits.coverage) is not None:
        parts = [getattr(coverage, name) for name in DOCUMENT_COLUMNS]
        documents = _by_query(hits, coverage.query, *parts)
        query = hits.gold_query[coverage.item]
        parts = [getattr(coverage, name) for name in ITEM_COLUMNS[1:]]
        rises = _by_query(hits, query, coverage.item - first[query], *parts)
        fields["coverage"] = {
            place: {"size": size, "documents": documents[place], "rises": rises[place]}
            for place, size in enumerate(coverage.size.tolist())
        }
    if (topics := hits.subtopics) is not None:
        query = hits.gold_query[topics.item]
        fields["subtopics"] = _by_query(
            hits, query, topics.item - first[query], topics.topic, topics.grade
        )
    return _texts(hits.retrieved), _items(matches), _fields(hits.size, fields)


def _by_query(hits: Hits, query: Ints, *columns: Any) -> dict[int, list[Any]]:
    """The rows of each query, from columns that are sorted by query."""
    rows = [*zip(*(column.tolist() for column in columns), strict=True)]
    ends = np.searchsorted(query, np.arange(hits.size + 1)).tolist()
    return {place: rows[a:b] for place, (a, b) in enumerate(pairwise(ends))}


def _items(matches: Matches) -> list[str]:
    """Every gold item: its name, its grade, and the ranks at which it was found.

    Of items judged non-relevant the ranks are null where nobody looked for them.
    """
    hits = matches.hits
    ranks = [""] * len(matches.items)
    if not hits.judged:
        for place in np.flatnonzero(hits.gold_grade <= 0).tolist():
            ranks[place] = ", null"
    if hits.item is not None:
        for item, rank in zip(hits.item.tolist(), hits.rank.tolist(), strict=True):
            ranks[item] += f", {rank}"
    names = map(encode_basestring, matches.items)
    columns = zip(names, _texts(hits.gold_grade), ranks, strict=True)
    items = map("[%s, %s%s]".__mod__, columns)
    return [", ".join(islice(items, count)) for count in hits.gold_count.tolist()]
