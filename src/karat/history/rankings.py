"""The rankings of stored runs: numbers of documents, which are stored once."""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from karat.data.runs import Document
from karat.results.evaluation import Evaluation

# What stands in place of a document: there is none, the run lacks the query, or its
# retriever failed.
_NONE, _MISSING, _FAILED = -1, -2, -3


class StoredRankings:
    """The rankings and documents in a store's tables."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(
        self, project: int, result: Evaluation
    ) -> tuple[int, bytes, bytes, bytes, bytes]:
        """The depth of all rankings; their documents, scores, ranks and cutoffs."""
        tops = [result.kept.get(query, ()) for query in result.queries]
        depth = max(map(len, tops), default=0) or 1
        texts: dict[bytes, bytes] = {}
        keys = [_key(document, texts) for top in tops for document in top]
        numbers = self._numbers(project, dict.fromkeys(keys), texts)
        count = np.array([*map(len, tops)])
        there = np.arange(depth) < count[:, None]
        every = [document for top in tops for document in top]
        documents = np.full(there.shape, _NONE, "<i4")
        scores = np.full(there.shape, np.nan, "<f8")
        ranks = np.zeros(there.shape, "<i4")
        documents[there] = [numbers[key] for key in keys]
        scores[there] = [np.nan if d.score is None else d.score for d in every]
        ranks[there] = [d.rank or 0 for d in every]
        documents[result.missing, 0] = _MISSING
        for matches in result.matches.values():
            documents[[*matches.failures], 0] = _FAILED
        cutoffs = b"" if result.own_k is None else result.own_k.astype("<i4").tobytes()
        return (
            depth,
            documents.tobytes(),
            scores.tobytes(),
            ranks.tobytes() if ranks.any() else b"",
            cutoffs,
        )

    def _numbers(
        self,
        project: int,
        keys: Iterable[tuple[str, bytes, str]],
        texts: Mapping[bytes, bytes],
    ) -> dict[tuple[str, bytes, str], int]:
        """The number of each document, by its id, text and place."""
        self._db.executemany("insert or ignore into text values(?,?)", texts.items())
        rows = [*keys]
        names = json.dumps([*dict.fromkeys(name for name, *_ in rows)])
        known = (
            "select name, text, place, id from document where project=? and name in "
        )
        known += "(select value from json_each(?))"

        def numbers() -> dict[tuple[str, bytes, str], int]:
            own = self._db.execute(known, (project, names))
            return {(name, text, place): number for name, text, place, number in own}

        before = numbers()
        if new := [(project, *key) for key in rows if key not in before]:
            added = "insert into document(project, name, text, place) values(?,?,?,?)"
            self._db.executemany(added, new)
            return numbers()
        return before

    def read(
        self, runs: Sequence[int], place: int | None
    ) -> Iterator[tuple[int, int, list[Document] | None, int | None]]:
        """(run, place, documents, cutoff) of one query or all; not of failed ones.

        Documents are None where the run lacks the query.
        """
        cut = "documents, scores, ranks, cutoffs"
        if place is not None:
            cut = (
                f"substr(documents, {place}*depth*4+1, depth*4), "
                f"substr(scores, {place}*depth*8+1, depth*8), "
                f"substr(ranks, {place}*depth*4+1, depth*4), "
                f"substr(cutoffs, {place}*4+1, 4)"
            )
        rows = self._db.execute(
            f"select run.id, depth, {cut} from run join json_each(?) as one "  # noqa: S608
            "on run.id=one.value",
            (json.dumps([*runs]),),
        ).fetchall()
        tables = [
            (run, np.frombuffer(documents, "<i4").reshape(-1, depth), *rest)
            for run, depth, documents, *rest in rows
        ]
        every = np.unique(np.concatenate([table.ravel() for _, table, *_ in tables]))
        known = self._documents(every[every >= 0].tolist())
        for run, table, *blobs in tables:
            scores = np.frombuffer(blobs[0], "<f8").reshape(table.shape)
            ranks = np.frombuffer(blobs[1] or b"", "<i4").reshape(-1, table.shape[1])
            cutoffs = np.frombuffer(blobs[2] or b"", "<i4")
            for row, numbers in enumerate(table.tolist()):
                if numbers[0] == _FAILED:
                    continue
                top = [
                    replace(
                        known[number],
                        score=None if np.isnan(score) else float(score),
                        rank=int(ranks[row, n]) or None if len(ranks) else None,
                    )
                    for n, (number, score) in enumerate(
                        zip(numbers, scores[row], strict=True)
                    )
                    if number >= 0
                ]
                k = int(cutoffs[row]) if len(cutoffs) else None
                missing = numbers[0] == _MISSING
                yield run, row if place is None else place, None if missing else top, k

    def _documents(self, numbers: Sequence[int]) -> dict[int, Document]:
        rows = self._db.execute(
            "select document.id, name, body, place from document join json_each(?) as "
            "one on document.id=one.value left join text on hash=text",
            (json.dumps(numbers),),
        )
        return {
            number: Document(
                name or None,
                None if body is None else zlib.decompress(body).decode(),
                None,
                *(json.loads(place) if place else ()),
            )
            for number, name, body, place in rows
        }


def _key(document: Document, texts: dict[bytes, bytes]) -> tuple[str, bytes, str]:
    """What tells a document from others: id, text, and its place in a source."""
    place = (document.source, document.start, document.end)
    code = b""
    if document.text is not None:
        body = document.text.encode("utf-8", "surrogatepass")
        code = blake2b(body, digest_size=16).digest()
        if code not in texts:
            texts[code] = zlib.compress(body)
    spot = "" if place == (None, None, None) else json.dumps(place)
    return document.id or "", code, spot
