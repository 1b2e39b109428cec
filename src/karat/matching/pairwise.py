"""Texts against texts: every gold text of a query beside every retrieved one."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.data.gold import Gold
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.runs import Run
from karat.matching.matcher import Matcher
from karat.matching.texts import TextRankings, Wanted, wanted_items

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

    def possible(self, golds: list[str], documents: list[str]) -> Bools | None:
        """Which documents may satisfy which gold texts of a query; None for all.

        For matchers that can rule out pairs sooner than they can judge them.
        """
        del golds, documents
        return None

    @abstractmethod
    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        """Whether the document of each pair satisfies its gold text."""

    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matches:
        """Compare the texts of every query of the gold."""
        items = self._wanted(gold)
        rankings = TextRankings(self.name, gold, policies, gold.queries, items)
        grade = rankings.grades.grade
        judged = judged or policies.judged_only or not (grade <= 0).any()
        pairs = _Pairs(self)
        for place, query, documents, ranks in rankings.read(run):
            if not items[place]:
                continue
            texts = []
            for document, rank in zip(documents, ranks, strict=True):
                if document.text is None:
                    without = rankings.without_text.get(query, 0)
                    rankings.without_text[query] = without + 1
                    continue
                text = self.read_document(document.text)
                if text and not text.isspace():
                    texts.append((text, rank))
            forms = [
                (number, form)
                for number, item in enumerate(items[place], rankings.first_item[place])
                if judged or item.grade > 0
                for text in item.texts
                for form in self.read_gold(text)
                if form and not form.isspace()
            ]
            if forms and texts:
                pairs.add(forms, texts)
        item, rank = pairs.finish()
        return rankings.matches(run, item, rank, grade[item], judged=judged)

    def _wanted(self, gold: Gold) -> list[list[Wanted]]:
        kind = self.reads[0]
        rows = getattr(gold, kind)
        alternatives = kind == "answers"
        return [
            wanted_items(rows.get(query, ()), alternatives=alternatives)
            for query in gold.queries
        ]


class _Pairs:
    """Collects pairs of texts and lets the matcher judge them block by block."""

    def __init__(self, matcher: TextMatcher) -> None:
        self._matcher = matcher
        self._golds: list[str] = []
        self._documents: list[str] = []
        self._rows: list[tuple[int, int]] = []
        self._satisfied: set[tuple[int, int]] = set()

    def add(
        self, forms: Sequence[tuple[int, str]], ranked: Sequence[tuple[str, int]]
    ) -> None:
        """The gold texts of a query, with their items, beside those of a ranking."""
        texts = [text for text, _ in ranked]
        possible = self._matcher.possible([form for _, form in forms], texts)
        own = ranked
        for number, (item, form) in enumerate(forms):
            if possible is not None:
                own = [ranked[n] for n in possible[number].nonzero()[0].tolist()]
            self._golds += [form] * len(own)
            self._documents += [text for text, _ in own]
            self._rows += [(item, rank) for _, rank in own]
            if len(self._golds) >= _BLOCK:
                self._settle()

    def finish(self) -> Ints:
        """Item and rank of every match, each once."""
        self._settle()
        return np.array([*self._satisfied], np.int64).reshape(-1, 2).T

    def _settle(self) -> None:
        if self._golds:
            rows = self._matcher.satisfied(self._golds, self._documents)
            self._satisfied.update(compress(self._rows, rows.tolist()))
        self._golds, self._documents, self._rows = [], [], []
