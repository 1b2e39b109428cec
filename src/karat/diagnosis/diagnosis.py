"""Diagnoses: why gold was missed and what would find it, as a value."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from karat.data.hits import Range
from karat.data.tables import Table, counted, number
from karat.diagnosis.headroom import Bound, Unjudged
from karat.diagnosis.slices import Slice
from karat.results.evaluation import Evaluation
from karat.results.plain_values import SHOWN, PlainResult

_SHOWN = 10
_LONG = 60
# So many documents of each query are on a page, and so many misses in its list.
_ON_PAGE, _LISTED = 20, 2000


class Cause(NamedTuple):
    """A reason why a gold item is not in the top k."""

    advice: str  # which piece of advice helps
    action: str  # the beginning of a sentence
    needs: str = ""  # what must be given to examine it
    disaster: bool = False  # told before all else, if it is about the whole run


TEXTS = "texts: --corpus, or documents with texts"
BY_WORDS = "--corpus and the texts of queries"
"""What some causes need: what documents say, and search by words."""

CAUSES: dict[str, Cause] = {
    "ranking reversed": Cause(
        "wiring", "Sort the other way round: are the scores distances?", disaster=True
    ),
    "results of another query": Cause(
        "wiring", "Join results and queries by id: they were mixed up", disaster=True
    ),
    "wrong id form": Cause(
        "labels", "Write ids of gold and run in the same form", disaster=True
    ),
    "damaged text": Cause(
        "ingestion",
        "Check how these texts were parsed: empty, cut off, or in other letters",
        "--corpus",
        disaster=True,
    ),
    "unlabelled twin retrieved": Cause(
        "labels", "Label the documents that say the same as a gold item", TEXTS
    ),
    "contradicting copy retrieved": Cause(
        "ingestion", "Remove outdated copies, or filter by version and date", TEXTS
    ),
    "split over chunks": Cause(
        "chunking",
        "Use larger or overlapping chunks, or join neighbours when retrieving",
        TEXTS,
    ),
    "displaced by a hub": Cause(
        "ingestion",
        "Remove documents that are retrieved for every query, or mend their vectors",
        disaster=True,
    ),
    "displaced by near-duplicates": Cause(
        "higher k", "Remove near-duplicates before cutting at k", TEXTS
    ),
    "dropped by the reranker": Cause(
        "higher k",
        "Check the reranker, or keep more of what it is given",
        "--candidates",
    ),
    "tied at the cut": Cause(
        "higher k", "Break ties: equal scores at the cut are in no order", disaster=True
    ),
    "below k": Cause("higher k", "Retrieve more documents, or rerank those retrieved"),
    "near miss in text": Cause(
        "labels", "Compare gold with the text retrieved, and correct either", TEXTS
    ),
    "not in the corpus": Cause(
        "ingestion", "Ingest what is missing, and check the parser", "--corpus"
    ),
    "fewer than k retrieved": Cause(
        "wiring",
        "Check filters, score thresholds and timeouts: too few documents come back",
        disaster=True,
    ),
    "retrieved by no query": Cause(
        "ingestion", "Check that these documents are in the index", disaster=True
    ),
    "embedding miss": Cause(
        "embedding or hybrid",
        "Add lexical search (hybrid retrieval), or improve the embedding model",
        BY_WORDS,
    ),
    "partial multi-hop": Cause(
        "split questions",
        "Split such questions, or search again with what was found first",
        BY_WORDS,
    ),
    "label in doubt": Cause(
        "labels",
        "Check the label and the text: nothing leads from the question to it",
        BY_WORDS,
    ),
    "lexical gap": Cause(
        "embedding or hybrid",
        "Improve the embedding model, or rewrite queries: few words lead to gold",
        BY_WORDS,
    ),
    "never retrieved": Cause(
        "embedding or hybrid", "Improve the embedding model, or add lexical search"
    ),
}
"""Every cause, in the order in which they are looked for."""


@dataclass(frozen=True)
class Related:
    """A document that shows why a gold item was missed."""

    id: str | None = None  # of the document, if it has one
    rank: int | None = None  # in the run; None: it was not retrieved
    text: str | None = None  # what it says, if known
    similarity: float | None = None  # how much of the gold item it has, from 0 to 1
    gold: tuple[Range, ...] = ()  # ranges of the gold text that it covers
    spans: tuple[Range, ...] = ()  # ranges of its own text that cover them
    differs: tuple[str, ...] = ()  # numbers, negations and names: "30 -> 14"


@dataclass(frozen=True)
class Miss:
    """A gold item that is not in the top k, and why."""

    query: str  # id of the query
    item: str  # name of the gold item
    cause: str  # one of `CAUSES`
    reason: str  # the evidence in a sentence
    fix: str  # what would find it
    rank: int | None = None  # its first rank, which is below k; None: not there
    needed_k: int | None = None  # the smallest k that finds it, where one does
    text: str | None = None  # what the item says, if known
    related: tuple[Related, ...] = ()  # documents that show it
    # Numbers by name, such as `bm25_rank`, `candidate_rank`, `coverage`.
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RunFinding:
    """Something that is wrong with the run as a whole."""

    kind: str  # one of `CAUSES`
    sentence: str  # the evidence
    action: str  # what to do
    queries: int  # how many queries it is about


@dataclass(frozen=True)
class ToDo:
    """Something to do, and how much recall it could win."""

    cause: str  # of the misses that it would find
    advice: str  # which piece of advice it is, as of its cause
    sentence: str  # what to do, with the numbers
    misses: int  # how many misses it is about
    queries: int  # how many queries
    wins: float  # mean recall that it adds, if all of these are found, or at `k`
    k: int | None = None  # the k to retrieve, where that is the advice


@dataclass(frozen=True, repr=False)
class Diagnosis(PlainResult):
    """Why gold was missed and what would find it: a plain value that saves and loads.

    Attributes:
        run: name of the run.
        gold: name of the gold.
        matcher: what decided whether an item was found.
        k: the cutoff.
        queries: how many queries have relevant gold.
        relevant: how many relevant gold items there are.
        recall: mean recall at k.
        findings: what is wrong with the run as a whole, to be looked at first.
        misses: one for every relevant item that is not in the top k.
        not_examined: cause -> what must be given to examine it.
        todos: what to do: first about `findings`, then what wins most.
        recall_by_k: mean recall at growing k.
        coverage_by_tokens: tokens read per query -> mean share of the gold text read.
        headroom: the parts of a perfect nDCG at k, which add up to 1.
        oracle: recall and nDCG at k if what was retrieved were in the best order.
        bounds: metric -> between which values it lies, whatever is unjudged.
        judged: mean share of the top k that is judged.
        label_next: unjudged documents to be labelled next, by rank.
        slices: kinds of queries and how they fare; exploratory.
        document_slices: kinds of gold documents and how they fare; exploratory.
        notes: what a reader should know besides.
        texts: query -> what it asks, where known, of queries with misses.
        provenance: versions and inputs.
        evaluation: what the run scored, for a page with every query; it is not saved.
    """

    saved_as: ClassVar[str] = "diagnosis"

    run: str
    gold: str
    matcher: str
    k: int
    queries: int
    relevant: int
    recall: float | None
    findings: tuple[RunFinding, ...] = ()
    misses: tuple[Miss, ...] = ()
    not_examined: Mapping[str, str] = field(default_factory=dict)
    todos: tuple[ToDo, ...] = ()
    recall_by_k: tuple[tuple[int, float], ...] = ()
    coverage_by_tokens: tuple[tuple[int, float], ...] = ()
    headroom: Mapping[str, float] = field(default_factory=dict)
    oracle: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    judged: float | None = None
    label_next: tuple[Unjudged, ...] = ()
    slices: tuple[Slice, ...] = ()
    document_slices: tuple[Slice, ...] = ()
    notes: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    evaluation: Evaluation | None = field(
        default=None, compare=False, repr=False, metadata={"saved": False}
    )

    @cached_property
    def totals(self) -> dict[str, int]:
        """How many misses have each cause, in the order of `CAUSES`."""
        count = Counter(map(attrgetter("cause"), self.misses))
        return {cause: count[cause] for cause in CAUSES if count[cause]}

    def without_texts(self) -> "Diagnosis":
        """The same without what was asked, retrieved and should have been."""
        misses = []
        for miss in self.misses:
            related = (replace(one, text=None, differs=()) for one in miss.related)
            misses.append(replace(miss, text=None, related=tuple(related)))
        return replace(
            self,
            misses=tuple(misses),
            label_next=tuple(replace(one, text=None) for one in self.label_next),
            texts={},
            evaluation=self.evaluation and self.evaluation.without_texts(),
        )

    def summary(self) -> Table:
        """A row per cause: how many misses, what would help, and the recall it wins.

        What helps most comes first, after what is wrong with the run as a whole.
        """
        rows, links = [], []
        for todo in self.todos:
            links.append(("cause", todo.cause))
            counts = [str(todo.misses), str(todo.queries), f"+{number(todo.wins)}"]
            at_k = f" (k = {todo.k})" if todo.k else ""
            rows.append([todo.cause, *counts, f"{CAUSES[todo.cause].action}{at_k}"])
        hits = self.relevant - len(self.misses)
        against = "" if self.run == self.gold else f" against {self.gold}"
        title = (
            f"{self.run}{against}: recall@{self.k} {number(self.recall)}, "
            f"{hits} of {counted(self.relevant, 'gold item')} found for "
            f"{counted(self.queries, 'query')}, matched by {self.matcher}"
        )
        columns = ["cause", "misses", "queries", "recall", "what would help most"]
        notes = [*unexamined_notes(self.not_examined), *self.notes]
        return Table(columns, rows, title=title, notes=notes, texts=(0, 4), links=links)

    def finding_table(self) -> Table:
        """What is wrong with the run as a whole."""
        rows = [*map(attrgetter("kind", "sentence", "action"), self.findings)]
        columns = ["look at this first", "evidence", "what to do"]
        return Table(columns, rows, texts=range(3))

    def miss_table(self, most: int = _SHOWN) -> Table:
        """Some misses of each cause with their evidence."""
        rows, links = [], []
        for cause in self.totals:
            own = [miss for miss in self.misses if miss.cause == cause]
            for miss in own[: max(1, most // len(self.totals))]:
                query = _named(miss.query, self.texts.get(miss.query))
                name = miss.item if self.matcher.startswith("id") else ""
                item = _named(name, miss.text) or miss.item
                words = chain.from_iterable(map(attrgetter("differs"), miss.related))
                differs = ", ".join(words)
                why = f"{miss.reason}; differs: {differs}" if differs else miss.reason
                rows.append([query, item, cause, why])
                links.append(("q", miss.query))
        title = f"misses: {len(rows)} of {len(self.misses)}"
        title += "; -o FILE.html has all" if len(rows) < len(self.misses) else ""
        columns = ["query", "gold item", "cause", "evidence"]
        return Table(columns, rows, title=title, texts=range(4), links=links)

    def curve_tables(self) -> list[Table]:
        """Recall at growing k, the text read in growing budgets, and the headroom."""
        k, parts = self.k, self.headroom
        names = {
            "score": f"nDCG@{k}",
            "ordering": "order of top k",
            "cutoff": "below k",
            "candidates": "not retrieved",
            "corpus": "not in the corpus",
        }
        tables = []
        for name, what, curve in (
            ("k", "recall", self.recall_by_k),
            ("tokens read", "gold text among them", self.coverage_by_tokens),
        ):
            if curve:
                at, means = zip(*curve, strict=True)
                columns = [name, *map("{:,}".format, at)]
                tables.append(Table(columns, [[what, *map(number, means)]]))
        known = [*filter(parts.__contains__, names)]
        if known:
            best = (f"{name}@{k} {number(mean)}" for name, mean in self.oracle.items())
            columns = ["parts of 1", *map(names.__getitem__, known)]
            note = f"reranked perfectly: {', '.join(best)}" if self.oracle else ""
            rows = [["mean", *map(number, map(parts.__getitem__, known))]]
            tables.append(Table(columns, rows, notes=[note] if note else ()))
        return tables

    def bound_table(self) -> Table:
        """The lowest and highest mean that judging the unjudged could give."""
        rows = []
        for name, one in self.bounds.items():
            limits = f"{number(one.worst)} to {number(one.best)}"
            limits += "" if one.exact else " or less"
            rows.append([name, number(one.score), limits])
        k, judged = self.k, number(self.judged)
        lowest = f"lowest values: all unjudged below rank {k} are relevant"
        notes = [f"judged@{k}: {judged}; {lowest}"]
        if self.label_next:
            some = map("{0.document} ({0.query})".format, self.label_next[:5])
            notes.append(f"label these next: {', '.join(some)}")
        n = max(map(attrgetter("n"), self.bounds.values()), default=0)
        title = (
            "if everything unjudged were judged: "
            f"{counted(n, 'query')} with relevant gold, the others left out"
        )
        columns = ["metric", "mean", "would lie within"]
        return Table(columns, rows, title=title, notes=notes)

    def slice_table(self) -> Table:
        """The slices that fare worse than the others."""
        both = (*self.slices, *self.document_slices)
        rows = []
        for s in both:
            if s.failing:
                numbers = map(number, (s.recall, s.others, s.adjusted_p))
                rows.append([s.name, str(s.queries), *numbers])
        note = (
            f"exploratory: {counted(len(both), 'slice')} looked at, p corrected "
            "for that (false discovery rate); confirm on other queries"
        )
        head = ["queries and documents that fare worse", "n", "recall", "others", "p"]
        return Table(head, rows, notes=[note])

    def tables(self) -> list[Table]:
        """All that a person is shown: the tables that have a row, and the summary."""
        return [*chain.from_iterable(self._by_heading().values())]

    def _by_heading(self, most: int = _SHOWN) -> dict[str, list[Table]]:
        has_rows = attrgetter("rows")
        findings = filter(has_rows, [self.finding_table()])
        misses = filter(has_rows, [self.miss_table(most)])
        far = (*self.curve_tables(), self.bound_table(), self.slice_table())
        return {
            "Why gold was missed": [*findings, self.summary(), *misses],
            "How far it could go": [*filter(has_rows, far)],
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything but the evaluation, in plain values."""
        return {**super().to_dict(), "totals": self.totals}

    def to_html(self) -> str:
        """A page that a browser shows; of a loaded diagnosis without every query."""
        if self.evaluation is None:
            return str(SHOWN["tables"](f"Why {self.run} misses gold", self.tables()))
        notes: dict[str, dict[str, list[str]]] = {}
        causes: dict[str, list[str]] = {}
        for miss in self.misses:
            note = f"{miss.cause}: {miss.reason}. {miss.fix}".removesuffix(". ")
            notes.setdefault(miss.query, {}).setdefault(miss.item, []).append(note)
            own = causes.setdefault(miss.query, [])
            own += [] if miss.cause in own else [miss.cause]
        most = max(self.k, _ON_PAGE)
        rows = self.evaluation.kept.items()
        short = replace(self.evaluation, kept={q: row[:most] for q, row in rows})
        every = self._by_heading(min(len(self.misses) * len(self.totals), _LISTED))
        return str(
            SHOWN["page"](
                short,
                notes=notes,
                causes=causes,
                more=every,
            )
        )


def unexamined_notes(needs: Mapping[str, str]) -> list[str]:
    """What was not looked for, by what must be given to look for it."""
    by_need: dict[str, list[str]] = {}
    for name, need in needs.items():
        by_need.setdefault(need, []).append(name)
    return [f"not examined, needs {n}: {', '.join(c)}" for n, c in by_need.items()]


def _named(name: str, text: str | None) -> str:
    """A name and what stands behind it, in one short line."""
    line = " ".join(f"{name}: {text or ''}".strip(": ").split())
    return line if len(line) <= _LONG else line[: _LONG - 3] + "..."
