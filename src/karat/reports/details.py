"""What a page shows of each query: a table of all, and texts in compressed blocks.

The table is small and there at once. Questions, documents, evidence and reasons lie in
blocks of some hundred queries, each compressed, which the page unpacks when a row of
theirs is opened. What would make the file too large is cut, and the page says so.
"""

import base64
import gzip
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from karat.data.gold import KINDS, Gold
from karat.data.judgements import Verdict
from karat.data.matches import Matches
from karat.data.memory_runs import DocumentRun
from karat.data.queries import Query
from karat.data.runs import Document
from karat.data.tables import Table, number
from karat.matching.shipped import read_matcher
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard

Notes: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""Sentences on gold items, by query and item."""

BUDGET = 25_000_000
"""How many bytes the texts of a page may take."""

_BLOCK = 200
_QUESTION = 240
# How long texts may be, from the whole text to none, until all of them fit.
_LENGTHS = (None, 2_000, 600, 200, 0)
# Of so many queries the matcher is asked once more which words count.
_EVIDENCE = 600
_ALL = 1 - 1e-9
_LOWEST, _TOP, _LONG_NAME = 10, 3, 60


class Details:
    """The queries of a leaderboard, as a page takes them."""

    def __init__(
        self,
        board: Leaderboard,
        notes: Notes | None = None,
        slices: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.board = board
        self.notes = notes or {}
        self.slices = slices or {}
        left = _EVIDENCE // max(len(board), 1)
        self.systems = [_System(one, left) for one in board.values()]
        self.facts: dict[str, Query] = {}
        self.queries: list[str] = []
        for one in board.values():
            self.facts = {**one.facts, **self.facts}
            self.queries += one.queries
        self.queries = [*dict.fromkeys(self.queries)]

    def table(self) -> dict[str, Any]:
        """What the table of queries is made of, column by column."""
        asked, tagged = [], []
        for query in self.queries:
            fact = self.facts.get(query)
            asked.append((fact.text or "")[:_QUESTION] if fact else "")
            own = fact.tags if fact else ()
            tagged.append((*own, *self.slices.get(query, ())))
        tags = sorted({*chain.from_iterable(tagged)})
        places = {tag: place for place, tag in enumerate(tags)}
        return {
            "size": _BLOCK,
            "systems": [*self.board],
            "metrics": self.board.metrics,
            "queries": self.queries,
            "questions": asked,
            "tags": tags,
            "tagged": [[places[tag] for tag in own] for own in tagged],
            "scores": [
                [system.column(metric, self.queries) for metric in self.board.metrics]
                for system in self.systems
            ],
            "first": [system.first_relevant(self.queries) for system in self.systems],
            "status": [system.statuses(self.queries) for system in self.systems],
        }

    def query(
        self, query: str
    ) -> tuple[dict[str, Any], list[tuple[str | None, str | None]]]:
        """One query as a page takes it, and the documents that it numbers."""
        documents: dict[tuple[str | None, str | None], int] = {}
        return self._row(query, documents, None), [*documents]

    def blocks(self, budget: int = BUDGET) -> tuple[list[str], str]:
        """The compressed texts, and what had to be cut to keep them small."""
        for longest in _LENGTHS:
            packed = [*self._packed(longest)]
            if sum(map(len, packed)) <= budget:
                break
        told = []
        if longest is not None:
            what = f"cut to {longest} characters" if longest else "left out"
            size = f"{budget // 1_000_000} MB"
            told.append(f"Texts are {what}, to keep the page below {size}.")
        if any(system.left < 0 for system in self.systems):
            told.append("There is too much text to mark the words that count in all.")
        return packed, " ".join(told)

    def _packed(self, longest: int | None) -> Iterator[str]:
        for start in range(0, len(self.queries), _BLOCK):
            documents: dict[tuple[str | None, str | None], int] = {}
            rows = [
                self._row(query, documents, longest)
                for query in self.queries[start : start + _BLOCK]
            ]
            texts = [[name, _cut(text, longest)] for name, text in documents]
            block = encoded({"documents": texts, "rows": rows})
            yield base64.b64encode(gzip.compress(block, 6, mtime=0)).decode()

    def _row(
        self,
        query: str,
        documents: dict[tuple[str | None, str | None], int],
        longest: int | None,
    ) -> dict[str, Any]:
        fact = self.facts.get(query)
        known = next(system for system in self.systems if query in system.places)
        said = known.gold_texts(query)
        row: dict[str, Any] = {
            "question": _cut(fact.text if fact else None, longest),
            "gold": [
                [name, grade, _cut(said.get(name), longest)]
                for name, grade in known.items(query)
            ],
            "systems": [system.row(query, documents) for system in self.systems],
        }
        if query in self.notes:
            row["notes"] = self.notes[query]
        return row


class _System:
    """One evaluation, as the rows of a page read it."""

    def __init__(self, evaluation: Evaluation, left: int) -> None:
        self.one = evaluation
        self.places = {query: n for n, query in enumerate(evaluation.queries)}
        self.matcher = next(iter(evaluation.matchers.values()), "")
        self.matches: Matches | None = evaluation.matches.get(self.matcher)
        self.left = left
        self.evidence: dict[str, list[list[Any]]] = {}

    def column(self, metric: str, queries: Sequence[str]) -> list[float | None]:
        if metric not in self.one:
            return [None] * len(queries)
        values = self.one[metric].scores.tolist()
        scores = dict(zip(self.one.queries, values, strict=True))
        return [
            None
            if math.isnan(score := scores.get(query, math.nan))
            else round(score, 6)
            for query in queries
        ]

    def first_relevant(self, queries: Sequence[str]) -> list[int]:
        """The rank of the first relevant item of each query; 0 without one."""
        if self.matches is None:
            return [0] * len(queries)
        credits = self.matches.hits.credits(self.one.policies.threshold)
        first = np.zeros(self.matches.hits.size, np.int64)
        first[credits.query[::-1]] = credits.rank[::-1]
        ranks = dict(zip(self.one.queries, first.tolist(), strict=True))
        return [ranks.get(query, 0) for query in queries]

    def statuses(self, queries: Sequence[str]) -> dict[int, str]:
        """What is the matter with a query, by its place, where something is."""
        one = self.one
        missing = dict(zip(one.queries, one.missing.tolist(), strict=True))
        failed = {
            one.queries[row]: f"failed: {why}"
            for column in one.columns.values()
            for row, why in column.failures.items()
        }
        told = {}
        for place, query in enumerate(queries):
            if query in failed:
                told[place] = failed[query]
            elif missing.get(query, True):
                told[place] = "missing from the run"
        return told

    @cached_property
    def _starts(self) -> tuple[list[int], list[int]]:
        """Where the items and the hits of each query begin."""
        assert self.matches is not None  # noqa: S101
        hits = self.matches.hits
        items = np.concatenate(([0], hits.gold_count.cumsum()))
        rows = np.searchsorted(hits.query, np.arange(hits.size + 1))
        return items.tolist(), rows.tolist()

    def items(self, query: str) -> list[tuple[str, float]]:
        if self.matches is None:
            return []
        place = self.places[query]
        own = slice(*self._starts[0][place : place + 2])
        grades = self.matches.hits.gold_grade[own].tolist()
        return [*zip(self.matches.items[own], grades, strict=True)]

    def _found(self, query: str) -> list[tuple[int, int]]:
        """The hits of a query: at which rank which of its items was found."""
        if self.matches is None or self.matches.hits.item is None:
            return []
        place, hits = self.places[query], self.matches.hits
        rows = slice(*self._starts[1][place : place + 2])
        items = self.matches.hits.item[rows] - self._starts[0][place]
        return [*zip(hits.rank[rows].tolist(), items.tolist(), strict=True)]

    def gold_texts(self, query: str) -> dict[str, str]:
        """What gold items say, where the labels are at hand."""
        labels = self.one.labels or Gold()
        rows = (getattr(labels, kind).get(query, ()) for kind in KINDS[1:])
        said = {item.id: item.text for row in rows for item in row if item.text}
        return said | {v.claim: v.text for v in self._verdicts(query) if v.text}

    def _verdicts(self, query: str) -> Sequence[Verdict]:
        place = self.places[query]
        judged = (m.verdicts.get(place) for m in self.one.matches.values())
        return next((verdicts for verdicts in judged if verdicts), ())

    def row(
        self, query: str, documents: dict[tuple[str | None, str | None], int]
    ) -> dict[str, Any] | None:
        """The ranking of a query, what each document is worth, and why."""
        if query not in self.places:
            return None
        items = self.items(query)
        grades = dict(items) if self.matcher == "id" else {}
        by_rank: dict[int, list[int]] = {}
        first = [0] * len(items)
        for rank, item in self._found(query):
            by_rank.setdefault(rank, []).append(item)
            first[item] = first[item] or rank
        ranking = []
        for rank, document in enumerate(self.one.kept.get(query, ()), 1):
            key = (document.id, document.text)
            own = by_rank.get(rank, [])
            grade = max((items[item][1] for item in own), default=None)
            if grade is None and document.id is not None:
                grade = grades.get(document.id)
            place = documents.setdefault(key, len(documents))
            ranking.append([place, document.score, grade, own])
        row: dict[str, Any] = {"ranking": ranking, "first": first}
        if verdicts := self._verdicts(query):
            row["verdicts"] = [
                [
                    *(v.claim, v.text, v.label),
                    [*(v.alone or v.together or v.against or v.partial)],
                    v.failure or v.reason,
                ]
                for v in verdicts
            ]
        if evidence := self._evidence(query):
            row["evidence"] = evidence
        return row

    def _evidence(self, query: str) -> list[list[Any]]:
        """Which characters of which document speak for which gold item."""
        labels, kept = self.one.labels, self.one.kept.get(query, ())
        coverage = self.matches.hits.coverage if self.matches else None
        if labels is None or coverage is None or not any(d.text for d in kept):
            return []
        if query not in self.evidence:
            place = self.places[query]
            own = slice(
                *np.searchsorted(coverage.item, self._starts[0][place : place + 2])
            )
            rises = zip(
                (coverage.item[own] - self._starts[0][place]).tolist(),
                coverage.item_rank[own].tolist(),
                coverage.share[own].tolist(),
                strict=True,
            )
            self.evidence[query] = self._looked_up(query, [*rises], kept)
        return self.evidence[query]

    def _looked_up(
        self,
        query: str,
        rises: Sequence[tuple[int, int, float]],
        kept: Sequence[Document],
    ) -> list[list[Any]]:
        """Where gold stands in documents word for word; else the matcher is asked."""
        said, items = self.gold_texts(query), self.items(query)
        found = []
        for item, rank, share in rises:
            name = items[item][0]
            text = (kept[rank - 1].text or "") if rank <= len(kept) else ""
            start = text.find(said[name]) if name in said and share >= _ALL else -1
            if start < 0:
                break
            found.append([rank, name, [[start, start + len(said[name])]], 1.0, []])
        if len(found) == len(rises):
            return found
        self.left -= 1
        labels = self.one.labels
        if self.left < 0 or labels is None:
            return []
        run = DocumentRun({query: [*kept]}, self.one.run)
        matcher = read_matcher(self.matcher)
        return [
            [e.rank, e.item, [*map(list, e.text)], round(e.share, 4), list(e.differs)]
            for e in matcher.evidence(run, labels, query)
        ]


def _cut(text: str | None, longest: int | None) -> str | None:
    if not text or longest is None or len(text) <= longest:
        return text
    return f"{text[:longest]}\N{HORIZONTAL ELLIPSIS}" if longest else None


def encoded(value: Any) -> bytes:
    """JSON in UTF-8; half a character, which UTF-8 cannot hold, becomes an escape."""
    try:
        plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return plain.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def lowest_queries(board: Leaderboard) -> Table | None:
    """The queries that score lowest, with what they ask and what came first.

    None where nothing is known of the queries besides their scores.
    """
    details = Details(board)
    known = any(one.facts or one.kept for one in board.values())
    if not known or not board.metrics:
        return None
    metric = board.leading
    columns = [system.column(metric, details.queries) for system in details.systems]
    worst = [
        min((s for s in scores if s is not None), default=None)
        for scores in zip(*columns, strict=True)
    ]
    order = sorted(
        (place for place, score in enumerate(worst) if score is not None),
        key=lambda place: (worst[place], place),
    )
    rows = []
    for place in order[:_LOWEST]:
        query = details.queries[place]
        fact = details.facts.get(query)
        rows.append(
            [
                query,
                " ".join((fact.text or "").split())[:_QUESTION] if fact else "",
                ", ".join(fact.tags) if fact else "",
                *(number(column[place]) for column in columns),
                *(_top(one, query) for one in board.values()),
            ]
        )
    of = [f" {name}" for name in board] if len(board) > 1 else [""]
    scored = [metric + name for name in of]
    table = Table(
        ["query", "question", "tags", *scored, *(f"first documents{n}" for n in of)],
        rows,
        title=f"queries that score lowest by {metric}",
        texts=(0, 1, 2, *range(3 + len(board), 3 + 2 * len(board))),
    )
    return table.without_empty()


def _top(evaluation: Evaluation, query: str) -> str:
    names = (
        " ".join((d.text or "").split()) if d.id is None else d.id
        for d in evaluation.kept.get(query, ())[:_TOP]
    )
    return "; ".join(name[:_LONG_NAME] for name in names)
