"""Runs: what was retrieved. Each kind of input finds ids in its own layout."""

import re
from abc import ABC, abstractmethod
from collections.abc import (
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Floats, Ints
from karat.data.policies import Policies
from karat.data.tables import DASH, amount
from karat.errors import DataError

Labels = Mapping[str, Mapping[str, float]]
"""Judged documents: query id -> document id -> grade."""


LAST_RANK = 10**9
"""No ranking is so long."""

A_RANK = "must be a whole number >= 0 and no more than 10^9"
"""What is said of a rank that is none."""

_ONE_OR_MORE = re.compile(r"\{([^{|}]*)\|([^{|}]*)\}")


@dataclass(frozen=True, slots=True)
class Document:
    """One retrieved document, as far as it is known.

    `rank` is set where it is not the document's place: where the ranks in a table have
    gaps.

    Example:
        >>> import karat
        >>> from karat.extend import Document
        >>> run = {"q": [Document("a", "Rye grows."), Document("b", "Oats grow.")]}
        >>> karat.evaluate(run, gold={"q": ["b"]}, metrics="rr").means
        {'rr': 0.5}
    """

    id: str | None = None
    text: str | None = None
    score: float | None = None
    source: str | None = None
    start: int | None = None
    end: int | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    rank: int | None = None


@dataclass(frozen=True, eq=False)
class TopDocuments(Mapping[str, tuple[Document, ...]]):
    """The top documents of queries, kept as columns: one for each field of `Document`.

    Attributes:
        queries: ids of the queries.
        count: how many documents there are of each.
        id: one entry per document, query after query, as in all that follow; none where
            no document has it.
    """

    queries: Sequence[str]
    count: Ints
    id: Sequence[str | None] = ()
    text: Sequence[str | None] = ()
    score: Sequence[float | None] = ()
    source: Sequence[str | None] = ()
    start: Sequence[int | None] = ()
    end: Sequence[int | None] = ()
    metadata: Sequence[Mapping[str, object]] = ()
    rank: Sequence[int | None] = ()

    def __post_init__(self) -> None:
        if len(self.count) != len(self.queries) or (self.count < 0).any():
            raise DataError("there must be a count >= 0 for each query")
        total = int(self.count.sum())
        for name in _DOCUMENT:
            if (size := len(getattr(self, name))) not in {0, total}:
                raise DataError(f"{name} must have {total} entries, got {size}")

    @classmethod
    def of(cls, documents: Mapping[str, Sequence[Document]]) -> "TopDocuments":
        """The documents by query as columns."""
        every = [*chain.from_iterable(documents.values())]
        columns = {name: [*map(attrgetter(name), every)] for name in _DOCUMENT}
        empty = _NOTHING.__contains__
        known = {n: c for n, c in columns.items() if not all(map(empty, c))}
        count = np.array([*map(len, documents.values())], np.int64)
        return cls([*documents], count, **known)

    @cached_property
    def _stretches(self) -> dict[str, tuple[int, int]]:
        ends = self.count.cumsum()
        pairs = zip((ends - self.count).tolist(), ends.tolist(), strict=True)
        return dict(zip(self.queries, pairs, strict=True))

    def __getitem__(self, query: str) -> tuple[Document, ...]:
        start, end = self._stretches[query]
        known = {name: c[start:end] for name in _DOCUMENT if (c := getattr(self, name))}
        rows = zip(*known.values(), strict=True) if known else ((),) * (end - start)
        return tuple(Document(**dict(zip(known, row, strict=True))) for row in rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)


_DOCUMENT = tuple(one.name for one in fields(Document))
_NOTHING: tuple[object, ...] = (None, {})


def ranks_of(documents: Iterable[Document]) -> list[int]:
    """The rank of each document: its own, else its place, counted from 1."""
    return [d.rank or place for place, d in enumerate(documents, 1)]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user should know about the input, with its count and examples.

    Attributes:
        kind: one word for it.
        count: how often it was met.
        text: what was met, in the plural.
        examples: the first few.
        one: the same in the singular, if that is another text.

    Example:
        >>> print(Notice("empty", 1, "queries are empty", ("q7",), "query is empty"))
        1 query is empty (for example q7)
    """

    kind: str
    count: int
    text: str
    examples: tuple[str, ...] = ()
    one: str = ""

    @classmethod
    def of(
        cls, kind: str, count: int, text: str, examples: Iterable[str] = ()
    ) -> "Notice":
        """From a text with `{query has|queries have}` for one and for several."""
        one, many = (_ONE_OR_MORE.sub(form, text) for form in (r"\1", r"\2"))
        return cls(kind, count, many, tuple(examples), one if one != many else "")

    def __str__(self) -> str:
        examples = f" (for example {', '.join(self.examples)})" if self.examples else ""
        text = self.one if self.one and self.count == 1 else self.text
        return f"{self.count} {text}{examples}"


class Located(NamedTuple):
    """Where labels stand in a run, sorted by (query, rank); `item` counts all labels.

    `retrieved` is the length of each query's ranking or its last rank; -1: missing.
    """

    query: Ints
    rank: Ints
    grade: Floats
    retrieved: Ints
    extra: int = 0
    item: Ints | None = None
    distinct: bool = False
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class Latency:
    """How long a retriever took, in milliseconds, and the percentiles of that.

    A percentile is a time that was measured: the least that so many percent of the
    queries did not exceed. The first call of a retriever may load a model: its time is
    kept, but is in no percentile unless it is the only one.

    Attributes:
        milliseconds: query -> time of its own call; equal queries are asked once, and
            so only the first of them has a time.
        earlier: queries whose answer, and time, come from an earlier run.
        first_call: queries asked before the retriever had answered anything.
        concurrency: how many calls were under way at once; None if nobody knows.

    Example:
        >>> latency = Latency({"q1": 900.0, "q2": 10.0}, first_call={"q1"})
        >>> latency.percentiles["p50"]
        10.0
    """

    milliseconds: Mapping[str, float]
    earlier: Collection[str] = frozenset()
    first_call: Collection[str] = frozenset()
    concurrency: int | None = None

    @cached_property
    def usual(self) -> Mapping[str, float]:
        """The times that are in the percentiles, by query."""
        times = self.milliseconds.items()
        rest = {q: time for q, time in times if q not in self.first_call}
        return rest or self.milliseconds

    @property
    def n(self) -> int:
        """How many times are in the percentiles."""
        return len(self.usual)

    @cached_property
    def percentiles(self) -> dict[str, float | None]:
        """The times that 50, 95 and 99 of 100 queries did not exceed, by name."""
        if not self.usual:
            return dict.fromkeys(("p50", "p95", "p99"))
        times = [*self.usual.values()]
        values = np.quantile(times, (0.5, 0.95, 0.99), method="inverted_cdf")
        return dict(zip(("p50", "p95", "p99"), values.tolist(), strict=True))

    def of(self, queries: Collection[str]) -> "Latency":
        """The same for some of the queries."""
        wanted = {*queries}
        return Latency(
            {q: t for q, t in self.milliseconds.items() if q in wanted},
            wanted.intersection(self.earlier),
            wanted.intersection(self.first_call),
            self.concurrency,
        )

    def in_words(self) -> dict[str, str]:
        """The percentiles for people, by their names with the unit."""
        return {
            f"{name} (ms)": DASH if time is None else amount(time)
            for name, time in self.percentiles.items()
        }

    def rows(self, total: int) -> list[list[str]]:
        """The percentiles as rows of a table of metrics, of so many queries."""
        rest = [DASH, f"{self.n}/{total}", *[DASH] * 3]
        return [[name, time, *rest] for name, time in self.in_words().items()]

    @property
    def load(self) -> str:
        """How many calls shared the retriever while it was timed, if that is known."""
        if self.concurrency is None:
            return ""
        many = f"{self.concurrency} calls at once"
        return "one call at a time" if self.concurrency == 1 else many

    def __str__(self) -> str:
        shown = (f"{name} {time}" for name, time in self.in_words().items())
        old = len(self.earlier)
        earlier = f", {old} timed in an earlier run" if old else ""
        first = len(self.milliseconds) - self.n
        calls = "call" if first == 1 else f"{first} calls"
        left = f", the first {calls} left out" if first else ""
        load = f", {self.load}" if self.load else ""
        return f"{', '.join(shown)}, n = {self.n}{load}{left}{earlier}"


@dataclass(frozen=True)
class Retrieval:
    """How a run came about."""

    latency: Latency | None = None
    failures: Mapping[str, str] = field(default_factory=dict)
    k: int | None = None
    notices: tuple[Notice, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    def under(self, names: Mapping[str | None, str]) -> "Retrieval":
        """The same, with queries under other names."""
        latency = self.latency
        if latency is not None:
            times = latency.milliseconds.items()
            latency = Latency(
                {names.get(q, q): time for q, time in times},
                {names.get(q, q) for q in latency.earlier},
                {names.get(q, q) for q in latency.first_call},
                latency.concurrency,
            )
        failures = {names.get(q, q): why for q, why in self.failures.items()}
        return replace(self, latency=latency, failures=failures)


class Run(ABC):
    """What one system retrieved: for each query a ranking of documents.

    Attributes:
        name: how reports call the system.
        retrieval: how it came about, as far as karat knows.
        provenance: which engine looked at it, and how much there was.

    Example:
        >>> import karat
        >>> run = karat.read_run({"q1": {"d1": 0.9, "d2": 0.4}})
        >>> run.name, run.queries()
        ('run', ['q1'])
    """

    name: str = "run"
    provenance: Mapping[str, object] = MappingProxyType({})
    retrieval: Retrieval = Retrieval()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def latency(self) -> Latency | None:
        """How long each query took, if it was timed."""
        return self.retrieval.latency

    @property
    def failures(self) -> Mapping[str, str]:
        """Why nothing could be retrieved for a query, by its id; mostly empty."""
        return self.retrieval.failures

    @abstractmethod
    def queries(self) -> list[str]:
        """The ids of the queries, in input order."""

    @abstractmethod
    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""

    @abstractmethod
    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""

    @abstractmethod
    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find the labelled documents in the run, by id."""

    @abstractmethod
    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents in rank order, as values; slow, to look closely."""

    def kinds(self) -> frozenset[str]:
        """Whether documents are known by `ids`, by `texts`, or both."""
        return frozenset({"ids"})

    @abstractmethod
    def ids_of(
        self, queries: Container[str] | None = None, *, first: int | None = None
    ) -> Mapping[str, Collection[Any]]:
        """The documents of some queries or all, as they come, as far as at hand."""

    def notices(self, labels: Labels, policies: Policies) -> tuple[Notice, ...]:
        """What is to be said of the run, for matchers that do not look up ids."""
        return self.locate(labels, judged=False, policies=policies).notices


def as_id(value: object, what: str = "document id", query: object = None) -> str:
    """The id as text. Whole numbers are written out; anything else is refused."""
    if isinstance(value, str):
        return value
    # NumPy's integers are not ints, but index like them.
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return str(value.__index__())
    raise DataError(
        f"{what} must be a string or an integer, "
        f"got {type(value).__name__} {value!r:.60}",
        query=query,
    )


def run_notices(policies: Policies, **counts: Mapping[str, int]) -> tuple[Notice, ...]:
    """What is to be said of a run: how often each thing was met, by query."""
    if policies.duplicates != "first":
        counts.pop("repeats", None)
    rule = {"trec": "document id, descending", "input": "input order"}[policies.ties]
    return tuple(
        Notice.of(
            kind.removeprefix("listed "),
            sum(met.values()),
            text.replace("RULE", rule),
            [*met][:3],
        )
        for kind, text in _MET.items()
        if (met := counts.get(kind))
    )


TOP = 5
"""How many documents are looked at for repeated ones."""

_SHARED = (
    "{relevant document shares its|relevant documents share their} score with another "
    "document; "
)
_MET = {
    "ties": f"{_SHARED}ordered by RULE",
    "listed ties": f"{_SHARED}ranked as listed; order='descending' (--order "
    "descending) ranks by score, then document id",
    "duplicates": "{relevant document was|relevant documents were} retrieved more than "
    "once",
    "empty": "{query|queries} for which nothing was retrieved",
    "extra": "{query|queries} of the run {has|have} no gold and {was|were} ignored",
    "gaps": "{query has|queries have} ranks with gaps, which are kept",
    "repeats": "{query repeats|queries repeat} documents among their first "
    f"{TOP}; duplicates='collapse' lets the others move up",
}
