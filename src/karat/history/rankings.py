"""The rankings of stored runs: numbers of documents, which are stored once."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Ints
from karat.data.runs import Document
from karat.history.schema import from_json, packed, unpacked
from karat.results.evaluation import Evaluation

# What stands in place of a document: there is none, the run lacks the query, or its
# retriever failed.
_NONE, _MISSING, _FAILED = -1, -2, -3

_Key = tuple[Any, ...]
"""What tells a document from others: id, text, source, start and end."""
_Place = tuple[str | None, int | None, int | None]
_key = attrgetter("id", "text", "source", "start", "end")


class StoredRanking(NamedTuple):
    """What a run has of a query; documents are None where it lacks the query."""

    run: int
    place: int
    documents: list[Document] | None
    k: int | None


def add_rankings(
    db: sqlite3.Connection,
    project: int,
    result: Evaluation,
    tops: Sequence[Sequence[Document]],
) -> tuple[int, list[bytes]]:
    """The depth of all rankings; their documents, scores, ranks and cutoffs."""
    every = [document for top in tops for document in top]
    keys: list[_Key] = [*map(_key, every)]
    numbers = _numbers(db, project, dict.fromkeys(keys))
    count = np.array([*map(len, tops)])
    depth = int(count.max(initial=1))
    there = np.arange(depth) < count[:, None]
    documents = np.full(there.shape, _NONE, "<i4")
    scores = np.full(there.shape, np.nan, "<f8")
    ranks = np.zeros(there.shape, "<i4")
    documents[there] = [*map(numbers.__getitem__, keys)]
    # None becomes NaN.
    scores[there] = np.array([d.score for d in every], np.float64)
    ranks[there] = [d.rank or 0 for d in every]
    documents[result.missing, 0] = _MISSING
    for matches in result.matches.values():
        documents[[*matches.failures], 0] = _FAILED
    tables = [documents, scores, ranks if ranks.any() else ranks[:0]]
    own_k = np.zeros(0) if result.own_k is None else result.own_k
    return depth, [table.tobytes() for table in (*tables, own_k.astype("<i4"))]


def _numbers(
    db: sqlite3.Connection, project: int, keys: Iterable[_Key]
) -> dict[_Key, int]:
    """The number of each document."""
    rows, texts = {}, {}
    for key in keys:
        name, text, *place = key
        code = b""
        if text is not None:
            body = text.encode("utf-8", "surrogatepass")
            code = blake2b(body, digest_size=16).digest()
            texts[code] = body
        spot = "" if place == [None, None, None] else json.dumps(place)
        rows[key] = name or "", code, spot
    names = json.dumps([*{name for name, *_ in rows.values()}])

    def numbers() -> dict[tuple[str, bytes, str], int]:
        known = db.execute(
            "select name, text, place, id from document where project=? and name in "
            "(select value from json_each(?))",
            (project, names),
        )
        return {(name, text, place): number for name, text, place, number in known}

    known = numbers()
    if new := [row for row in dict.fromkeys(rows.values()) if row not in known]:
        bodies = [(code, packed(texts[code])) for _, code, _ in new if code]
        db.executemany("insert or ignore into text values(?,?)", bodies)
        added = "insert into document(project, name, text, place) values(?,?,?,?)"
        db.executemany(added, [(project, *row) for row in new])
        known = numbers()
    return {key: known[row] for key, row in rows.items()}


def read_rankings(
    db: sqlite3.Connection,
    runs: Sequence[int],
    place: int | None = None,
    *,
    among: Collection[int] | None = None,
    most: int | None = None,
) -> Iterator[StoredRanking]:
    """What runs have of one query, of those at some places, or of all.

    It is not said of those whose retriever failed.
    """
    cut = "documents, scores, ranks, cutoffs"
    if place is not None:
        cut = (
            f"substr(documents, {place}*depth*4+1, depth*4), "
            f"substr(scores, {place}*depth*8+1, depth*8), "
            f"substr(ranks, {place}*depth*4+1, depth*4), "
            f"substr(cutoffs, {place}*4+1, 4)"
        )
    rows = db.execute(
        f"select run.id, depth, {cut} from run join json_each(?) as one "  # noqa: S608
        "on run.id=one.value",
        (json.dumps([*runs]),),
    ).fetchall()
    tables = [_table(row[2], row[1])[:, :most] for row in rows]
    chosen = slice(None) if among is None else [*among]
    known = _documents(db, [table[chosen] for table in tables])
    for (run, depth, _, *blobs), table in zip(rows, tables, strict=True):
        scores = np.frombuffer(blobs[0], "<f8").reshape(-1, depth)[:, :most].tolist()
        own_ranks = _table(blobs[1], depth)[:, :most]
        ranks = (own_ranks if own_ranks.size else np.zeros_like(table)).tolist()
        cutoffs: Any = _table(blobs[2], 1).ravel().tolist() or [None] * len(table)
        for row, numbers in enumerate(table.tolist()):
            if numbers[0] == _FAILED or not (among is None or row in among):
                continue
            every = map(known.get, numbers)
            top = [
                Document(d[0], d[1], score, d[2], d[3], d[4], rank=rank or None)
                for d, score, rank in zip(
                    every, _or_none(scores[row]), ranks[row], strict=True
                )
                if d is not None
            ]
            documents = None if numbers[0] == _MISSING else top
            own = row if place is None else place
            yield StoredRanking(run, own, documents, cutoffs[row])


def _table(blob: bytes | None, depth: int) -> Ints:
    # A part of nothing is null in SQL.
    return np.frombuffer(blob or b"", "<i4").reshape(-1, depth)


def _or_none(scores: Iterable[float]) -> list[float | None]:
    return [None if score != score else score for score in scores]  # noqa: PLR0124


def _documents(db: sqlite3.Connection, tables: Sequence[Ints]) -> dict[int, _Key]:
    """The documents of rankings, by their numbers."""
    every = np.unique(np.concatenate([table.ravel() for table in tables]))
    rows = db.execute(
        "select document.id, cast(name as text), cast(body as blob), "
        "cast(place as text) from document join json_each(?) as "
        "one on document.id=one.value left join text on hash=text",
        (json.dumps(every[every >= 0].tolist()),),
    )
    return {
        number: (
            name or None,
            None if body is None else unpacked(body),
            *(from_json(_Place, place, "place") if place else (None, None, None)),
        )
        for number, name, body, place in rows
    }
