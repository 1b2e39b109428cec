"""What a page shows of each query: a table of all, and texts in compressed blocks.

The table is small and there at once. Rankings, evidence and reasons lie in blocks of
some hundred queries, and texts in blocks of their own, each text once; all are
compressed, and the page unpacks those that an opened query needs. What would make the
file too large is cut, and the page says so.
"""

import base64
import gzip
import json
import math
import sys
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise, repeat
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from karat.data.arrays import Ints
from karat.data.gold import KINDS, Gold
from karat.data.hits import Coverage
from karat.data.judgements import Verdict
from karat.data.matches import Matches
from karat.data.memory_runs import DocumentRun
from karat.data.queries import Query
from karat.data.runs import Document, TopDocuments
from karat.data.tables import steps
from karat.matching import read_matcher
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard

Notes: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""Sentences on gold items, by query and item."""

Text: TypeAlias = tuple[str | None, str | None]
"""The id of a document, and what it says; a gold text has no id."""

BUDGET = 25_000_000
"""How many bytes the texts of a page may take."""

_BLOCK = 200
_TEXTS = 500_000
_QUESTION = 240
_WHOLE = sys.maxsize
# How long texts may be, from the whole text to none, until all of them fit.
_LENGTHS = (_WHOLE, 5_000, 2_000, 1_000, 600, 400, 200, 100, 0)
# Of so many queries the matcher is asked once more which words count.
_EVIDENCE = 600
_ALL = 1 - 1e-9
_SIGNS: Mapping[bool | None, int] = {True: 1, False: -1, None: 0}
_GRADES, _TOP_GRADE = (0.0, 1.0, 2.0, 3.0), 9


class Packed(NamedTuple):
    """The compressed part of a page: rankings by query, and texts that they name."""

    rows: list[str]
    texts: list[str]
    starts: list[int]  # the number of the first text in each block
    note: str  # what had to be cut


class Details:
    """The queries of a leaderboard, as a page takes them."""

    def __init__(
        self,
        board: Leaderboard,
        notes: Notes | None = None,
        causes: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.board = board
        self.notes = notes or {}
        self.causes = causes or {}
        self.facts: dict[str, Query] = {}
        self.queries: list[str] = []
        for one in board.values():
            self.facts = {**one.facts, **self.facts}
            self.queries += one.queries
        self.queries = [*dict.fromkeys(self.queries)]
        left = _EVIDENCE // max(len(board), 1)
        # Every document and gold text, once; elsewhere it goes by its number.
        self.texts: dict[Text, int] = {}
        self.systems = [_System(one, left, self.texts) for one in board.values()]
        self.by_id = {name: n for (name, text), n in self.texts.items() if text}

    def table(self) -> dict[str, Any]:
        """What the table of queries is made of, column by column."""
        questions, tags, causes = [], [], []
        for query in self.queries:
            fact = self.facts.get(query) or Query(query)
            questions.append((fact.text or "")[:_QUESTION])
            tags.append(fact.tags)
            causes.append(self.causes.get(query, ()))
        columns = self.board.columns
        scores, first, status, plain = [], [], [], True
        for system in self.systems:
            places = map(system.places.get, self.queries, repeat(-1))
            rows = np.array([*places], np.int64)
            scores.append([system.column(metric, rows) for metric in columns])
            first.append(system.first_relevant(rows))
            status.append(system.statuses(rows))
            plain = plain and system.plain
        return {
            "size": _BLOCK,
            "systems": [*self.board],
            "metrics": [*columns],
            "signs": [_SIGNS[one.higher_is_better] for one in columns.values()],
            "leading": self.board.leading if columns else "",
            "queries": self.queries,
            "questions": questions,
            "facets": {"tag": _numbered(tags), "cause": _numbered(causes)},
            "scores": scores,
            "first": first,
            "status": status,
            "grades": self._grades(),
            "plain": plain,
        }

    def query(self, query: str) -> tuple[dict[str, Any], Sequence[Text]]:
        """One query as a page takes it, and the texts that it numbers."""
        return self._row(query), [*self.texts]

    def _grades(self) -> list[float]:
        """The grades that gold gives, from 0 on; a common scale where it gives none."""
        own = {0.0}
        for system in self.systems:
            if system.matches is not None:
                own |= {*np.unique(system.matches.hits.gold_grade).tolist()}
        highest = max(own)
        if highest < 1:
            return [*_GRADES]
        whole = all(map(float.is_integer, own)) and highest <= _TOP_GRADE
        return [*map(float, range(int(highest) + 1))] if whole else sorted(own)

    def packed(self, budget: int = BUDGET) -> Packed:
        """The compressed texts, and what had to be cut to keep them small."""
        rows = []
        blocks = range(0, len(self.queries), _BLOCK)
        for start in steps(blocks, len(blocks), "writing queries"):
            own = self.queries[start : start + _BLOCK]
            rows.append(compressed([*map(self._short_row, own)]))
        left = budget - sum(map(len, rows))
        sizes = np.array([len(text or "") for _, text in self.texts], np.int64)
        rate = 0.0
        for longest in _LENGTHS:
            total = int(np.minimum(sizes, longest).sum())
            if longest and rate * total > left:
                continue
            texts, starts = self._packed_texts(np.minimum(sizes, longest), longest)
            size = sum(map(len, texts))
            if size <= left:
                break
            rate = size / max(total, 1)
        told = []
        if longest != _WHOLE:
            what = f"cut to {longest} characters" if longest else "left out"
            limit = f"{budget // 1_000_000} MB"
            told.append(f"Texts are {what}, to keep the page below {limit}.")
        if min(map(attrgetter("left"), self.systems), default=0) < 0:
            told.append("There is too much text to mark the words that count in all.")
        return Packed(rows, texts, starts, " ".join(told))

    def _packed_texts(self, sizes: Ints, longest: int) -> tuple[list[str], list[int]]:
        """The texts in blocks of about one size."""
        part = (sizes.cumsum() - sizes) // _TEXTS
        starts = np.unique(part, return_index=True)[1].tolist()
        every = [[name, _cut(text, longest)] for name, text in self.texts]
        blocks = pairwise([*starts, len(every)])
        return [compressed(every[start:end]) for start, end in blocks], starts

    def _short_row(self, query: str) -> dict[str, Any]:
        """A query without what stands elsewhere in the page, or nobody reads."""
        row = self._row(query)
        for item in row["gold"]:
            # A document has its name beside its text.
            if item[2] is not None and self.by_id.get(item[0]) == item[2]:
                item[0] = None
        for system in filter(None, row["systems"]):
            scores = system.get("scores", ())
            # As people read them.
            system["scores"] = [s if s is None else float(f"{s:.5g}") for s in scores]
        return row

    def _row(self, query: str) -> dict[str, Any]:
        fact = self.facts.get(query)
        gold, systems = None, []
        for system in self.systems:
            systems.append(system.row(query))
            if gold is None and query in system.places:
                gold = []
                said = system.said.get(query, {})
                for name, grade in system.items(query):
                    number = self.by_id.get(name)
                    if name in said:
                        number = self.texts.get((None, said[name]))
                    gold.append([name, grade, number])
        row: dict[str, Any] = {"gold": gold, "systems": systems}
        if fact is not None and len(fact.text or "") > _QUESTION:
            row["question"] = fact.text
        if query in self.notes:
            row["notes"] = self.notes[query]
        return row


def _numbered(rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The names in rows, each once and in order, and which of them each row has."""
    names = sorted({*chain.from_iterable(rows)})
    places = {name: place for place, name in enumerate(names)}
    return {"names": names, "rows": [[*map(places.get, row)] for row in rows]}


def compressed(value: Any) -> str:
    """JSON in few letters, none of which is markup."""
    return base64.b64encode(gzip.compress(encoded(value), 6, mtime=0)).decode()


class _System:
    """One evaluation, as the rows of a page read it."""

    def __init__(
        self,
        evaluation: Evaluation,
        left: int,
        texts: dict[Text, int],
    ) -> None:
        self.one = evaluation
        self.places = {query: n for n, query in enumerate(evaluation.queries)}
        self.matcher = next(iter(evaluation.matchers.values()), "")
        self.matches: Matches | None = evaluation.matches.get(self.matcher)
        self.left = left
        kept = evaluation.kept
        top = kept if isinstance(kept, TopDocuments) else TopDocuments.of(kept)
        ends = top.count.cumsum()
        self.stretches = dict(
            zip(top.queries, zip(ends - top.count, ends, strict=True), strict=True)
        )
        nothing = [None] * int(top.count.sum())
        pairs = zip(top.id or nothing, top.text or nothing, strict=True)
        self.numbers = [texts.setdefault(pair, len(texts)) for pair in pairs]
        self.scores = top.score
        labels = evaluation.labels or Gold()
        for pair in labels.texts.items():
            texts.setdefault(pair, len(texts))
        self.verdicts: dict[int, Sequence[Verdict]] = {}
        for matches in evaluation.matches.values():
            for place, verdicts in matches.verdicts.items():
                if verdicts:
                    self.verdicts.setdefault(place, verdicts)
        self.said: dict[str, dict[str, str]] = {}
        if self.verdicts or evaluation.labels is not None:
            self.said = _gold_texts(labels, evaluation.queries, self.verdicts)
        for text in chain.from_iterable(map(dict.values, self.said.values())):
            texts.setdefault((None, text), len(texts))
        # Where the items and the hits of each query begin.
        self.items_from = self.hits_from = [0] * (len(evaluation.queries) + 1)
        if self.matches is not None:
            hits = self.matches.hits
            self.items_from = [0, *hits.gold_count.cumsum().tolist()]
            ends = np.searchsorted(hits.query, np.arange(hits.size + 1))
            self.hits_from = ends.tolist()

    @property
    def plain(self) -> bool:
        """Whether scores follow from grades of ids alone, by the native rules."""
        labels = self.one.labels
        plain = labels is None or labels.is_plain
        return self.matcher == "id" and plain and not self.one.policies.changes()

    def column(self, metric: str, rows: Ints) -> list[float | None]:
        """The scores of queries, as people read them; None without one."""
        if metric not in self.one:
            return [None] * len(rows)
        scores = np.append(self.one[metric].scores, np.nan)[rows].tolist()
        return [None if math.isnan(score) else round(score, 6) for score in scores]

    def first_relevant(self, rows: Ints) -> list[int]:
        """The rank of the first relevant item of each query; 0 without one."""
        if self.matches is None:
            return [0] * len(rows)
        credits = self.matches.hits.credits(self.one.policies.threshold)
        first = np.zeros(self.matches.hits.size + 1, np.int64)
        first[credits.query[::-1]] = credits.rank[::-1]
        ranks: list[int] = first[rows].tolist()
        return ranks

    def statuses(self, rows: Ints) -> dict[int, str]:
        """What is the matter with a query, by its place, where something is."""
        absent = np.flatnonzero(np.append(self.one.missing, True)[rows])
        told = dict.fromkeys(absent.tolist(), "missing from the run")
        failures: dict[int, str] = {}
        for column in self.one.columns.values():
            failures |= column.failures
        for place, row in enumerate(rows.tolist()):
            if row in failures:
                told[place] = f"failed: {failures[row]}"
        return told

    def items(self, query: str) -> list[tuple[str, float]]:
        if self.matches is None:
            return []
        place = self.places[query]
        own = slice(*self.items_from[place : place + 2])
        grades = self.matches.hits.gold_grade[own].tolist()
        return [*zip(self.matches.items[own], grades, strict=True)]

    def row(self, query: str) -> dict[str, Any] | None:
        """The ranking of a query, which items were found at which ranks, and why."""
        if query not in self.places:
            return None
        place = self.places[query]
        found: list[tuple[int, int]] = []
        if self.matches is not None and self.matches.hits.item is not None:
            hits = slice(*self.hits_from[place : place + 2])
            ranks = self.matches.hits.rank[hits].tolist()
            items = self.matches.hits.item[hits] - self.items_from[place]
            found = [*zip(ranks, items.tolist(), strict=True)]
        own = slice(*self.stretches.get(query, (0, 0)))
        row: dict[str, Any] = {"ranking": self.numbers[own], "found": found}
        if self.scores:
            row["scores"] = [*self.scores[own]]
        if verdicts := self.verdicts.get(place):
            row["verdicts"] = [
                [
                    *(v.claim, v.text, v.label),
                    [*(v.alone or v.together or v.against or v.partial)],
                    v.failure or v.reason,
                ]
                for v in verdicts
            ]
        coverage = self.matches.hits.coverage if self.matches else None
        if coverage is not None and self.one.labels is not None:
            evidence = self._evidence(query, coverage)
            row |= {"evidence": evidence} if evidence else {}
        return row

    def _evidence(self, query: str, coverage: Coverage) -> list[list[Any]]:
        """Which characters of which document speak for which gold item."""
        kept = self.one.kept.get(query, ())
        if not any(document.text for document in kept):
            return []
        place = self.places[query]
        items = self.items_from[place : place + 2]
        own = slice(*np.searchsorted(coverage.item, items))
        rises = zip(
            (coverage.item[own] - items[0]).tolist(),
            coverage.item_rank[own].tolist(),
            coverage.share[own].tolist(),
            strict=True,
        )
        return self._looked_up(query, [*rises], kept)

    def _looked_up(
        self,
        query: str,
        rises: Sequence[tuple[int, int, float]],
        kept: Sequence[Document],
    ) -> list[list[Any]]:
        """Where gold stands in documents word for word; else the matcher is asked."""
        said, items = self.said.get(query, {}), self.items(query)
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


def _gold_texts(
    labels: Gold, queries: Sequence[str], verdicts: Mapping[int, Sequence[Verdict]]
) -> dict[str, dict[str, str]]:
    """What gold items say by query and item, where the labels are at hand."""
    kinds = [getattr(labels, kind) for kind in KINDS[1:]]
    said: dict[str, dict[str, str]] = {}
    for place, query in enumerate(queries):
        own: dict[str, str] = {}
        for kind in kinds:
            own |= {item.id: item.text for item in kind.get(query, ()) if item.text}
        own |= {one.claim: one.text for one in verdicts.get(place, ()) if one.text}
        said[query] = own
    return said


def _cut(text: str | None, longest: int) -> str | None:
    if not text or len(text) <= longest:
        return text
    return f"{text[:longest]}\N{HORIZONTAL ELLIPSIS}" if longest else None


def encoded(value: Any) -> bytes:
    """JSON in UTF-8; half a character, which UTF-8 cannot hold, becomes an escape."""
    try:
        plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return plain.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
