"""What text matchers read: the gold items that count, and the texts of a ranking."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from karat.data.gold import Gold, Item
from karat.data.policies import Policies
from karat.data.runs import Document, Notice, Run, note_examples, ranks_of
from karat.data.tables import counted
from karat.errors import DataError
from karat.matching.to_hits import CORPUS, examples
from karat.reading.meaning.corpus import looks_like_id

_ENOUGH = 1000
_LONGEST_ID = 200


class Wanted(NamedTuple):
    """One gold item: its name, its label, and the texts any of which will do."""

    name: str
    grade: float
    texts: tuple[str, ...]


def wanted_items(items: Iterable[Item], *, alternatives: bool = False) -> list[Wanted]:
    """The items that count: a group is one, and so is a text given twice.

    Args:
        items: gold texts of one query.
        alternatives: all of them are alternatives, as answers are.

    Example:
        >>> items = [Item("a", "five", group="days"), Item("b", "5", group="days")]
        >>> wanted_items([*items, Item("c", "Paris", 2.0)])  # doctest: +ELLIPSIS
        [Wanted(name='days', ... texts=('five', '5')), Wanted(name='c', grade=2.0, ...)]
    """
    items = [*items]
    grouped = alternatives or any(item.group for item in items)
    if not grouped and len({item.text for item in items}) == len(items):
        return [Wanted(item.id, item.grade, (item.text,)) for item in items]
    distinct: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        group = item.group or ("answers" if alternatives else None)
        key = ("text", item.text) if group is None else ("group", group)
        distinct.setdefault(key, []).append(item)
    return [
        Wanted(
            key if kind == "group" else same[0].id,
            max(item.grade for item in same),
            tuple(dict.fromkeys(item.text for item in same)),
        )
        for (kind, key), same in distinct.items()
    ]


@dataclass
class TextRankings:
    """Reads rankings, and keeps in mind what was odd about them.

    Attributes:
        matcher: the name of the matcher they are read for.
        gold: what should have been retrieved.
        policies: how duplicates are treated, and how deep is read.
        without_text: query -> documents that have no text.
        retold: query -> documents with the id of another and a text of their own.
        some: the first strings that were taken for texts.
        bare: whether ids were taken for texts.
        unplaced: query -> documents without a place, where spans have no text.
        extra: how many queries nobody asked for.
        retrieved: how many documents each query has; -1 where it is missing.
    """

    matcher: str
    gold: Gold
    policies: Policies
    without_text: dict[str, int] = field(default_factory=dict)
    retold: dict[str, int] = field(default_factory=dict)
    some: list[str] = field(default_factory=list)
    bare: bool = False
    unplaced: dict[str, int] = field(default_factory=dict)
    extra: int = 0

    def __post_init__(self) -> None:
        self.retrieved = np.zeros(0, np.int64)
        # Strings given as a run are ids where the gold lists ids, else they are texts.
        self._ids_are_texts = not any(self.gold.documents.values())

    def read(
        self, run: Run, queries: Sequence[str]
    ) -> Iterator[tuple[int, str, list[Document], list[int]]]:
        """The documents that can earn something, with their ranks, query by query.

        With the place of the query. Where ids are texts, they are given as texts.
        """
        self.retrieved = np.full(len(queries), -1)
        places = {query: place for place, query in enumerate(queries)}
        for query, documents in run.rankings(self.policies):
            place = places.get(query)
            if place is None:
                self.extra += 1
                continue
            ranked, self.retrieved[place] = self._distinct(query, documents)
            if self._ids_are_texts and all(
                d.text is None and d.start is None for _, d in ranked
            ):
                self.bare |= bool(ranked)
                ranked = [(rank, Document(text=d.id)) for rank, d in ranked]
            if len(self.some) < _ENOUGH:
                self.some += [d.text for _, d in ranked if d.text and d.start is None]
            depth = self.policies.depth or math.inf
            ranked = [pair for pair in ranked if pair[0] <= depth]
            yield place, query, [d for _, d in ranked], [rank for rank, _ in ranked]

    def _distinct(
        self, query: str, documents: list[Document]
    ) -> tuple[list[tuple[int, Document]], int]:
        """Documents with their ranks, those that are there a second time left out.

        And the last rank. Where repeated ones collapse, those behind them move up.
        """
        ranks = ranks_of(documents)
        ranked, last = [*zip(ranks, documents, strict=True)], (ranks or [0])[-1]
        distinct = len({*map(_identity, documents)}) == len(documents)
        if distinct or self.policies.duplicates == "keep":
            return ranked, last
        first: dict[object, Document] = {}
        once = []
        removed = 0
        for rank, document in ranked:
            key = _identity(document)
            if key not in first:
                first[key] = document
                once.append((rank - removed, document))
                continue
            removed += self.policies.duplicates == "collapse"
            if self.policies.duplicates == "error":
                raise DataError(
                    f"document {str(key)[:60]!r} was retrieved more than once",
                    query=query,
                    hint="duplicates='first' scores its first rank only",
                )
            if document.text != first[key].text:
                self.retold[query] = self.retold.get(query, 0) + 1
        return once, last - removed

    def refuse_without_text(self, run: Run, *, any_match: bool) -> None:
        """Texts cannot be compared where there are none; silent zeros would mislead.

        Args:
            run: what was retrieved.
            any_match: whether any text satisfied any gold item.
        """
        if self.policies.force:
            return
        if self.unplaced:
            queries = ", ".join(note_examples(self.unplaced))
            raise DataError(
                "the gold spans have no text, and the retrieved documents of "
                f"{counted(len(self.unplaced), 'query')} do not say where in their "
                f"source they lie: {queries}",
                path=run.name,
                hint="give each retrieved document doc, start and end, or each span "
                "its text",
            )
        forced = "force=True (--force) counts those without one as not matching"
        if self.without_text:
            queries = ", ".join(note_examples(self.without_text))
            count = sum(self.without_text.values())
            raise DataError(
                f"{counted(count, 'retrieved document')} of "
                f"{counted(len(self.without_text), 'query')} "
                f"{'has' if count == 1 else 'have'} no text, and "
                f"{self.matcher} compares texts: {queries}",
                path=run.name,
                hint=f"{CORPUS} the texts of documents by id; {forced}",
            )
        if any_match or not self.some:
            return
        kinds = (self.gold.passages, self.gold.answers)
        rows = [[i.text for row in kind.values() for i in row] for kind in kinds]
        worded = not all(map(_names_document, chain(*rows)))
        if all(map(looks_like_id if self.bare else _names_document, self.some)) and (
            self.bare or worded
        ):
            raise DataError(
                f"the retrieved documents have no text, only ids such as "
                f"{examples(self.some)}, and {self.matcher} compares texts",
                path=run.name,
                hint=f"{CORPUS} the texts of documents by id; {forced}",
            )
        if rows[0] and all(map(_names_document, rows[0])) and " " in "".join(self.some):
            raise DataError(
                f"the gold lists ids such as {examples(rows[0])}, the run has texts, "
                f"and {self.matcher} compares texts",
                path=self.gold.name,
                hint=f"{CORPUS} the texts of the gold's documents; force=True "
                "(--force) takes the ids for texts",
            )

    def notices(self) -> tuple[Notice, ...]:
        """What the user should know of the rankings."""
        if not self.retold:
            return ()
        other = "the id of another with another text and"
        rule = "nothing; duplicates='keep' reads them all"
        return (
            Notice(
                "retold",
                sum(self.retold.values()),
                f"documents repeat {other} earn {rule}",
                note_examples(self.retold),
                f"document repeats {other} earns {rule}",
            ),
        )


def _names_document(text: str) -> bool:
    """Whether a text is no word, but looks like an id: `doc_17`, `a.md`, `7`."""
    return len(text) <= _LONGEST_ID and looks_like_id(text) and not text.isalpha()


def _identity(document: Document) -> object:
    if document.id is not None and document.start is None:
        return document.id
    if document.id is None and document.text is not None:
        return document.text
    return (document.id, document.source, document.start, document.end)
