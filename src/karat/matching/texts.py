"""Texts against texts: gold items that count beside the texts of a ranking."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.gold import Gold, Item
from karat.data.hits import GoldGrades
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.runs import Document, Located, Notice, Run, ranks_of
from karat.data.tables import counted
from karat.errors import DataError
from karat.matching import Matcher
from karat.matching.to_hits import CORPUS, examples, lay_out
from karat.reading.meaning.values import looks_like_id

_ENOUGH = 1000
_LONGEST_ID = 200


class Stretch(NamedTuple):
    """A stretch of a source document, by character offsets."""

    source: str
    start: int
    end: int


class Wanted(NamedTuple):
    """One gold item, and the texts, or places, any of which will do."""

    name: str
    grade: float
    texts: tuple[str, ...]
    places: tuple[Stretch, ...] = ()


def wanted_items(items: Iterable[Item], *, alternatives: bool = False) -> list[Wanted]:
    """The items that count: a group is one, and so is a text given twice."""
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
    """Reads rankings, and keeps in mind what was odd about them, by query.

    `retold` are documents with the id of another and a text of their own; `some` the
    first strings taken for texts, which may be `bare` ids.
    """

    matcher: str
    gold: Gold
    policies: Policies
    queries: Sequence[str]
    items: Sequence[Sequence[Wanted]]
    without_text: dict[str, int] = field(default_factory=dict)
    retold: dict[str, int] = field(default_factory=dict)
    some: list[str] = field(default_factory=list)
    bare: bool = False
    unplaced: dict[str, int] = field(default_factory=dict)
    extra: int = 0

    def __post_init__(self) -> None:
        self.retrieved = np.full(len(self.queries), -1)
        count = np.fromiter(map(len, self.items), np.int64, len(self.items))
        grade = [item.grade for row in self.items for item in row]
        self.grades = GoldGrades(count, np.array(grade, np.float64))
        self.first_item = (count.cumsum() - count).tolist()
        # Strings given as a run are ids where the gold lists ids, else they are texts.
        self._ids_are_texts = not any(self.gold.documents.values())

    def read(self, run: Run) -> Iterator[tuple[int, str, list[Document], list[int]]]:
        """Place and id of each query, and the documents that can earn, with ranks."""
        places = {query: place for place, query in enumerate(self.queries)}
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
        """Documents with ranks, each once as the policy says, and the last rank."""
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
        """Texts cannot be compared where there are none; silent zeros would mislead."""
        if self.policies.force:
            return
        if self.unplaced:
            queries = ", ".join([*self.unplaced][:3])
            raise DataError(
                "the gold spans have no text, and the retrieved documents of "
                f"{counted(len(self.unplaced), 'query')} do not say where in their "
                f"source they are: {queries}",
                path=run.name,
                hint="give each retrieved document doc, start and end, or each span "
                "its text",
            )
        forced = "force=True (--force) counts those without one as not matching"
        if self.without_text:
            queries = ", ".join([*self.without_text][:3])
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

    def matches(
        self,
        run: Run,
        item: Ints,
        rank: Ints,
        grade: Floats,
        *,
        judged: bool,
        distinct: bool = False,
        notices: tuple[Notice, ...] = (),
    ) -> Matches:
        """The hits of rows in any order."""
        self.refuse_without_text(run, any_match=len(item) > 0)
        query = self.grades.query[item]
        order = np.lexsort((item, rank, query))
        located = Located(
            query[order],
            rank[order],
            grade[order],
            self.retrieved,
            self.extra,
            item[order],
            distinct,
            (*self._notices(), *notices),
        )
        names = [item.name for row in self.items for item in row]
        return lay_out(
            *(run, self.queries, located, names, self.grades),
            judged=judged,
            policies=self.policies,
        )

    def _notices(self) -> tuple[Notice, ...]:
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
                tuple(self.retold)[:3],
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


# Pairs compared at once: enough to keep all cores busy, few enough to stay in cache.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class TextMatcher(Matcher):
    """A matcher that compares each gold text with each retrieved text of its query.

    A subclass says which pairs of texts satisfy it; all else is done here, the same way
    for all. A text without anything in it satisfies nothing. Only a bounded number of
    pairs is held at a time.

    Example:
        >>> import karat
        >>> @dataclass(frozen=True)
        ... class SameStart(TextMatcher):
        ...     name = "same_start"
        ...     reads = ("passages",)
        ...     def satisfied(self, golds, documents):
        ...         pairs = zip(golds, documents, strict=True)
        ...         return np.array([gold[:3] == text[:3] for gold, text in pairs])
        >>> samples = [{"contexts": ["Oats", "Rye grows"], "passages": ["Rye is sown"]}]
        >>> karat.evaluate(samples, metrics="rr", match=SameStart()).means
        {'rr': 0.5}
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
