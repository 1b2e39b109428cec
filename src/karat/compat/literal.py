"""Ids and texts compared as they are, for fronts whose originals forgive nothing.

karat's own ids are text, and its text matchers leave blank texts out and count a gold
text given twice once; the originals do none of this.
"""

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.data.gold import Gold, Item
from karat.data.hits import Hits
from karat.data.memory_runs import DocumentRun, RankedRun
from karat.data.policies import Policies
from karat.data.runs import Document, Located, Run
from karat.errors import DataError
from karat.matching.layout import first_ranks_of, lay_out
from karat.matching.matcher import FirstRanks, Matched, Matcher
from karat.matching.shipped import read_matcher

__all__ = ["LiteralMatcher", "found_ids", "found_texts"]

# The originals look at every position, whatever stood above it.
_POLICIES = Policies(duplicates="keep", force=True)


@dataclass(frozen=True)
class LiteralMatcher(Matcher):
    """A matcher that sees every gold passage and every document, blank or repeated."""

    reads: ClassVar[tuple[str, ...]] = ("passages",)

    @abstractmethod
    def satisfied(self, documents: Sequence[str], golds: Sequence[str]) -> Bools:
        """Whether each document (a row) satisfies each gold text (a column)."""

    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matched:
        """Compare the texts of every query of the gold."""
        queries = gold.queries
        items = [gold.passages.get(query, ()) for query in queries]
        count = np.fromiter(map(len, items), np.int64, len(items))
        grade = np.array([item.grade for row in items for item in row], np.float64)
        rankings = dict(run.rankings(policies))
        sizes = [len(rankings[q]) if q in rankings else -1 for q in queries]
        rows = [
            self._rows(rankings.get(query, ()), row)
            for query, row in zip(queries, items, strict=True)
        ]
        rank, item = np.concatenate([np.zeros((2, 0), np.int64), *rows], axis=1)
        query = np.repeat(np.arange(len(queries)), [row.shape[1] for row in rows])
        item = item + (count.cumsum() - count)[query]
        kept = judged | (grade[item] > 0)
        located = Located(
            query=query[kept],
            rank=rank[kept] + 1,
            grade=grade[item][kept],
            retrieved=np.array(sizes, np.int64),
            extra=len(rankings.keys() - set(queries)),
            item=item[kept],
        )
        return lay_out(
            run, queries, located, (count, grade), judged=judged, policies=policies
        )

    def first_ranks(
        self, run: Run, gold: Gold, policies: Policies
    ) -> Sequence[FirstRanks]:
        """Where each gold passage was first found."""
        hits = self.match(run, gold, judged=True, policies=policies).hits
        rows = (gold.passages.get(query, ()) for query in gold.queries)
        return first_ranks_of(hits, ([item.id for item in row] for row in rows))

    def _rows(self, documents: Sequence[Document], items: Sequence[Item]) -> Ints:
        """Place of document and of item of every match."""
        if not documents or not items:
            return np.zeros((2, 0), np.int64)
        texts = [_text(document) for document in documents]
        return np.array(
            np.nonzero(self.satisfied(texts, [item.text for item in items]))
        )


def found_texts(
    matcher: Matcher, golds: Sequence[Sequence[str]], rankings: Sequence[Sequence[str]]
) -> Hits:
    """Where a matcher finds the gold texts of each query in the ranked texts."""
    passages = {
        str(query): tuple(Item(str(place), text) for place, text in enumerate(gold))
        for query, gold in enumerate(golds)
    }
    run = {
        str(query): [Document(text=text) for text in ranking]
        for query, ranking in enumerate(rankings)
    }
    return _found(matcher, DocumentRun(run), Gold(passages=passages))


def found_ids(
    golds: Sequence[Iterable[Hashable]], rankings: Sequence[Iterable[Hashable]]
) -> Hits:
    """Where ids of any kind are found: equal is what Python says is equal."""
    numbers: dict[Hashable, str] = {}

    def number(value: Hashable) -> str:
        try:
            return numbers.setdefault(value, str(len(numbers)))
        except TypeError:
            raise DataError(
                f"ids must be hashable, such as text, got {type(value).__name__}"
            ) from None

    documents = {
        str(query): {number(value): 1.0 for value in gold}
        for query, gold in enumerate(golds)
    }
    run = {
        str(query): [number(value) for value in ranking]
        for query, ranking in enumerate(rankings)
    }
    return _found(read_matcher("id"), RankedRun(run), Gold(documents=documents))


def _found(matcher: Matcher, run: Run, gold: Gold) -> Hits:
    return matcher.match(run, gold, judged=False, policies=_POLICIES).hits


def _text(document: Document) -> str:
    """The text; a run of bare strings has them as ids."""
    text = document.id if document.text is None else document.text
    if text is None:
        raise DataError("a retrieved document must be text, got none")
    return text
