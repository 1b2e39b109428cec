"""Gold: what should have been retrieved, each kind of label in a field of its own."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, islice
from operator import methodcaller
from typing import Any

import numpy as np

from karat.data.arrays import Floats, Ints, as_floats
from karat.data.hits import GoldGrades
from karat.data.runs import Labels, Notice
from karat.data.tables import counted

JUDGES = "judge:"
"""How the source of a label begins that a model gave."""

PEOPLE = "human:"
"""How the source of a label begins that a person signed."""

KINDS = ("documents", "passages", "spans", "answers", "claims")
"""The kinds of gold a matcher may read."""

IMPORTANCE: Mapping[str, float] = {"vital": 1.0, "okay": 0.5}
"""The grade of a claim by how important it is for an answer."""

_VALUES = methodcaller("values")


@dataclass(frozen=True, slots=True)
class Item:
    """One gold text: a passage to find, an acceptable answer, or a claim to support.

    Attributes:
        id: names the item within its query.
        text: what it says.
        grade: its label; positive is relevant.
        source: who labelled it.
        group: items of one group are alternatives and count as one.

    Example:
        >>> import karat
        >>> gold = karat.Gold(passages={"q": (Item("p1", "We refund within a day."),)})
        >>> run = {"q": [{"id": "a", "text": "We refund within a day. Cards: two."}]}
        >>> karat.evaluate(run, gold=gold, metrics="recall@1").means
        {'recall@1': 1.0}
    """

    id: str
    text: str
    grade: float = 1.0
    source: str = "human"
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source document that holds the evidence, by character offsets.

    Example:
        >>> import karat
        >>> gold = karat.Gold(spans={"q": (Span("s1", "guide.md", 10, 30),)})
        >>> run = {"q": [{"id": "c1", "source": "guide.md", "start": 0, "end": 40}]}
        >>> karat.evaluate(run, gold=gold, metrics="recall@1").means
        {'recall@1': 1.0}
    """

    id: str
    document: str
    start: int
    end: int
    text: str | None = None
    grade: float = 1.0
    source: str = "human"
    group: str | None = None


@dataclass(frozen=True, eq=False)
class ColumnLabels(Mapping[str, Mapping[str, float]]):
    """Judged documents as `Labels` has them, kept as columns that nobody changes."""

    ids: list[str]
    count: Ints
    names: list[str]
    grade: Floats

    @classmethod
    def of(cls, labels: Labels) -> "ColumnLabels":
        """The same labels in columns."""
        if isinstance(labels, cls):
            return labels
        rows = labels.values()
        values: Any = dict.values if {*map(type, rows)} <= {dict} else _VALUES
        return cls(
            [*labels],
            np.fromiter(map(len, rows), np.int64, len(rows)),
            [*chain.from_iterable(rows)],
            as_floats(chain.from_iterable(map(values, rows))),
        )

    @cached_property
    def grades(self) -> GoldGrades:
        """What each query has, and what follows from it for any run."""
        return GoldGrades(self.count, self.grade)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The place of each query."""
        return {query: number for number, query in enumerate(self.ids)}

    @cached_property
    def end(self) -> Ints:
        """Behind the last label of each query."""
        return np.cumsum(self.count)

    def __getitem__(self, query: str) -> dict[str, float]:
        number = self.numbers[query]
        end = int(self.end[number])
        rows = slice(end - int(self.count[number]), end)
        return dict(zip(self.names[rows], self.grade[rows].tolist(), strict=True))

    def __contains__(self, query: object) -> bool:
        return query in self.numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Gold:
    """What should be found, by query; kinds are separate and never one field.

    Attributes:
        documents: relevant document ids with their grades.
        passages: gold texts.
        spans: gold stretches of source documents.
        answers: acceptable short answers; all answers of a query are alternatives.
        claims: statements that the retrieved documents should support.
        references: the reference answer in prose.
        sources: who labelled each document, by query, where it was not people.
        order: ids of all queries, in input order.
        name: how messages call this gold, such as its file name.
        groups: documents that are alternatives, by query: those of one group are one
            item, which any of them satisfies.
        subtopics: how well documents serve single subtopics of a query: query ->
            document -> subtopic -> grade. `documents` holds the best grade of each.
        texts: what relevant documents say, by their ids, where a corpus told it.
        notices: what was seen while reading it.

    Example:
        >>> import karat
        >>> gold = karat.Gold(documents={"q1": {"d1": 2, "d2": 1}})
        >>> karat.evaluate({"q1": ["d2", "d1"]}, gold=gold, metrics="recall@1").means
        {'recall@1': 0.5}
    """

    documents: Labels = field(default_factory=dict)
    passages: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)
    spans: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    answers: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)
    claims: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    order: tuple[str, ...] | None = None
    name: str = "gold"
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    subtopics: Mapping[str, Mapping[str, Mapping[str, float]]] = field(
        default_factory=dict
    )
    texts: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()

    def __repr__(self) -> str:
        sizes = {kind: sum(map(len, getattr(self, kind).values())) for kind in KINDS}
        parts = [counted(len(self.queries), "query")]
        parts += [counted(size, kind[:-1]) for kind, size in sizes.items() if size]
        parts += [counted(len(self.references), "reference")] * bool(self.references)
        return f"<Gold {self.name}: {', '.join(parts)}>"

    @property
    def queries(self) -> list[str]:
        """The ids of all queries, in input order."""
        if self.order is not None:
            return list(self.order)
        if self.kinds() == ("documents",) and not self.references:
            return list(self.documents)
        by_kind = (*(getattr(self, kind) for kind in KINDS), self.references)
        return list(dict.fromkeys(query for labels in by_kind for query in labels))

    @cached_property
    def columns(self) -> ColumnLabels:
        """The labelled documents in columns."""
        return ColumnLabels.of(self.documents)

    def kinds(self) -> tuple[str, ...]:
        """The kinds of label this gold holds for any query."""
        return self._kinds

    @cached_property
    def _kinds(self) -> tuple[str, ...]:
        documents = self.documents
        if isinstance(documents, ColumnLabels):
            kinds = [*KINDS[: bool(len(documents.grade))]]
        else:
            kinds = [*KINDS[: any(documents.values())]]
        for kind in KINDS[1:]:
            if (labels := getattr(self, kind)) and any(labels.values()):
                kinds.append(kind)
        return tuple(kinds)

    @property
    def is_plain(self) -> bool:
        """Whether it is nothing but documents and grades, all by people."""
        ids = self.kinds() in {(), ("documents",)}
        more = (self.references, self.sources, self.groups, self.subtopics)
        return ids and not any(more)

    def labellers(self) -> dict[str, int]:
        """Who labelled how many of the documents and texts; most people first."""
        if not self.sources and not (self.passages or self.answers or self.claims):
            # By far the most common gold: ids that people labelled.
            return {"human": len(self.columns.grade)}
        counts: dict[str, int] = {"human": 0}
        for query, labels in self.documents.items():
            told = self.sources.get(query, {})
            for name in labels:
                who = told.get(name, "human")
                counts[who] = counts.get(who, 0) + 1
        kinds = (self.passages, self.spans, self.answers, self.claims)
        for item in (item for kind in kinds for row in kind.values() for item in row):
            counts[item.source] = counts.get(item.source, 0) + 1
        return {who: count for who, count in counts.items() if count}

    def copy(self) -> "Gold":
        """The same labels, which no change to the caller's own can reach."""
        if self.is_plain and isinstance(self.documents, ColumnLabels):
            return self
        own = {one.name: _copied(getattr(self, one.name)) for one in fields(self)}
        return replace(self, **own)

    def fingerprint(self, query: str) -> str:
        """A short digest of one query's labels, equal only for equal labels."""
        return self.fingerprints([query])[0]

    def fingerprints(self, queries: Iterable[str]) -> list[str]:
        """The digests of the labels of queries.

        Saved with every evaluation, so that two saved files can tell whether they
        were scored against the same gold.
        """
        if self.is_plain:
            rows = [self.documents.get(query, {}) for query in queries]
            names = [str(name) for row in rows for name in row]
            grades = [float(grade) for row in rows for grade in row.values()]
            return label_fingerprints(names, grades, [*map(len, rows)])
        from json.encoder import JSONEncoder  # noqa: PLC0415

        encode = JSONEncoder(ensure_ascii=False, sort_keys=True).encode
        texts = []
        for query in queries:
            labels = self.documents.get(query, {}).items()
            facts: dict[str, object] = {
                "documents": sorted(
                    [(str(name), float(grade)) for name, grade in labels]
                ),
                "reference": self.references.get(query),
                "spans": sorted(
                    (s.document, s.start, s.end, s.grade, s.group or "")
                    for s in self.spans.get(query, ())
                ),
            }
            for kind in ("passages", "answers", "claims"):
                items = getattr(self, kind).get(query, ())
                facts[kind] = sorted((i.text, i.grade, i.group or "") for i in items)
            if groups := self.groups.get(query):
                facts["groups"] = sorted(groups.items())
            if topics := self.subtopics.get(query):
                facts["subtopics"] = topics
            texts.append(encode(facts))
        return _digests(texts)


def _copied(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: _copied(entry) for name, entry in value.items()}


def label_fingerprints(
    names: Iterable[str], grades: Iterable[float], counts: Iterable[int]
) -> list[str]:
    """The digests of queries that have grades of documents and nothing else."""
    from json.encoder import encode_basestring  # noqa: PLC0415

    # What the encoder writes of plain labels, at a quarter of its time.
    pairs = zip(names, grades, strict=True)
    nothing = '"passages": [], "reference": null, "spans": []'
    before = '{"answers": [], "claims": [], "documents": ['
    texts = []
    for count in counts:
        own = sorted(islice(pairs, count))
        row = [f"[{encode_basestring(d)}, {g!r}]" for d, g in own]
        texts.append(f"{before}{', '.join(row)}], {nothing}}}")
    return _digests(texts)


def _digests(texts: Iterable[str]) -> list[str]:
    # Loading this takes longer than scoring a small run, which needs none.
    from hashlib import sha256  # noqa: PLC0415

    return [sha256(t.encode("utf-8", "surrogatepass")).hexdigest()[:16] for t in texts]


def labeller_notices(labelled_by: Mapping[str, int]) -> tuple[Notice, ...]:
    """Who gave the labels, where it was not people alone."""
    if not (judges := [name for name in labelled_by if name.startswith(JUDGES)]):
        return ()
    judged = sum(labelled_by[name] for name in judges)
    if len(judges) < len(labelled_by):
        counts = ", ".join(f"{name} {count}" for name, count in labelled_by.items())
        mixed = f"a judge's, among others ({counts}): sources are mixed"
        one = f"label is {mixed}"
        return (Notice("mixed", judged, f"labels are {mixed}", one=one),)
    who_alone = f"given by {', '.join(judges)} alone; karat judge "
    who_alone += "--agreement compares a judge with people"
    text, one = f"labels were {who_alone}", f"label was {who_alone}"
    return (Notice("uncalibrated", judged, text, one=one),)
