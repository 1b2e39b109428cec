"""Texts against texts: every gold text of a query beside every retrieved one."""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.data.gold import Gold
from karat.data.hits import GoldGrades
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.runs import Located, Run
from karat.matching.matcher import Matcher
from karat.matching.texts import Ranking, Rankings, Wanted, wanted_items
from karat.matching.to_hits import lay_out

__all__ = ["TextMatcher"]

# Pairs compared at once: enough to keep all cores busy, few enough to stay in cache.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class TextMatcher(Matcher):
    """A matcher that compares each gold text with each retrieved text of its query.

    A subclass says which pairs of texts satisfy it; all else is done here, the same way
    for all. A text without anything in it satisfies nothing. Only a bounded number of
    pairs is held at a time.
    """

    def read_document(self, text: str) -> str:
        """The form in which a retrieved text is compared."""
        return text

    def read_gold(self, text: str) -> tuple[str, ...]:
        """The forms in which a gold text is compared; any of them will do."""
        return (text,)

    @abstractmethod
    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        """Whether the document of each pair satisfies its gold text."""

    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matches:
        """Compare the texts of every query of the gold."""
        queries = gold.queries
        items = self._wanted(gold, queries)
        count = np.fromiter(map(len, items), np.int64, len(items))
        grade = np.array([item.grade for row in items for item in row], np.float64)
        judged = judged or policies.judged_only or not (grade <= 0).any()
        places = {query: place for place, query in enumerate(queries)}
        first_item = (count.cumsum() - count).tolist()
        retrieved = np.full(len(queries), -1)
        rankings = Rankings(self.name, gold, policies)
        pairs = _Pairs(self)
        extra = 0
        for query, documents in run.rankings(policies):
            place = places.get(query)
            if place is None:
                extra += 1
                continue
            ranking = rankings.take(
                query, documents, self.read_document if items[place] else None
            )
            retrieved[place] = ranking.retrieved
            for number, item in enumerate(items[place], first_item[place]):
                if judged or item.grade > 0:
                    pairs.add(place, number, item.texts, ranking)
        query_of, rank, item_of = pairs.finish()
        rankings.refuse_without_text(run, found=len(rank) > 0)
        located = Located(
            query=query_of,
            rank=rank,
            grade=grade[item_of],
            retrieved=retrieved,
            extra=extra,
            item=item_of,
            notices=rankings.notices(),
        )
        names = [item.name for row in items for item in row]
        graded = GoldGrades(count, grade)
        return lay_out(
            run, queries, located, names, graded, judged=judged, policies=policies
        )

    def _wanted(self, gold: Gold, queries: Iterable[str]) -> list[list[Wanted]]:
        kind = self.reads[0]
        rows = getattr(gold, kind)
        alternatives = kind == "answers"
        return [
            wanted_items(rows.get(q, ()), alternatives=alternatives) for q in queries
        ]


class _Pairs:
    """Collects pairs of texts and lets the matcher judge them block by block."""

    def __init__(self, matcher: TextMatcher) -> None:
        self._matcher = matcher
        self._golds: list[str] = []
        self._documents: list[str] = []
        self._ranks: list[int] = []
        self._strips: list[tuple[int, int, int]] = []
        self._found: list[tuple[Ints, Ints, Ints]] = []

    def add(
        self, query: int, item: int, texts: Iterable[str], ranking: Ranking
    ) -> None:
        """An item's texts, each beside each text of the ranking."""
        size = len(ranking.texts)
        forms = dict.fromkeys(
            f for text in texts for f in self._matcher.read_gold(text)
        )
        for form in forms:
            if not form or form.isspace():
                continue
            self._golds += [form] * size
            self._documents += ranking.texts
            self._ranks += ranking.ranks
            self._strips.append((query, item, size))
            if len(self._golds) >= _BLOCK:
                self._settle()

    def finish(self) -> tuple[Ints, Ints, Ints]:
        """Query, rank and item of every match, in order, each once."""
        self._settle()
        empty: Ints = np.zeros(0, np.int64)
        columns = zip((empty, empty, empty), *self._found, strict=True)
        query, rank, item = map(np.concatenate, columns)
        order = np.lexsort((item, rank, query))
        query, rank, item = query[order], rank[order], item[order]
        new = np.ones(len(query), np.bool_)
        new[1:] = (np.diff(query) != 0) | (np.diff(rank) != 0) | (np.diff(item) != 0)
        return query[new], rank[new], item[new]

    def _settle(self) -> None:
        if self._golds:
            rows = self._matcher.satisfied(self._golds, self._documents)
            query, item, size = np.array(self._strips, np.int64).T
            rank = np.array([*compress(self._ranks, rows.tolist())], np.int64)
            strip = np.arange(len(size)).repeat(size)[rows]
            self._found.append((query[strip], rank, item[strip]))
        self._golds, self._documents, self._ranks, self._strips = [], [], [], []
