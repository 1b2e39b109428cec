"""Explain: the arithmetic of every metric for one query, rank by rank."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from karat.data.gold import KINDS, Gold
from karat.data.hits import Evidence, Hits, Range
from karat.data.judgements import Usage, Verdict
from karat.data.matches import Matches
from karat.data.memory_runs import DocumentRun
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Document, Run, ranks_of
from karat.data.tables import DASH, Table, counted, number
from karat.errors import UnknownNameError
from karat.metrics import Metric
from karat.planning import DEFAULT_METRICS, prepare
from karat.results.scores import Measure

_ROWS = 20
_READ = 5
_LONG = 60


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text to read, and which of its characters count."""

    title: str  # whose it is
    text: str  # with its own line ends
    marks: tuple[Range, ...] = ()  # where the evidence starts and ends


@dataclass(frozen=True, slots=True)
class Explanation:
    """One query worked out."""

    tables: tuple[Table, ...]  # the ranking, the arithmetic, what the matcher shows
    failure: str | None = None  # why the query could not be judged, if it could not
    texts: tuple[MarkedText, ...] = ()  # what gold and the top documents say


def explain(
    run: Any,
    query: str,
    gold: Any = None,
    *,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    **options: Any,
) -> Explanation:
    """The ranking of one query with its grades, and each metric worked out on it.

    Where a judge matched claims, its verdicts with their reasons come last; where texts
    were matched by coverage, the words that cover each passage.

    Takes the arguments of `evaluate`; the query comes second, by its id or by what it
    asks if no other asks the same.

    Example:
        >>> import karat
        >>> run, gold = {"q": ["a", "b"]}, {"q": ["b"]}
        >>> karat.explain(run, "q", gold, metrics="rr").tables[1].rows
        [['rr', '0.5000', '1 / 2']]
    """
    plan, (whole, gold, facts, *_), own_k = prepare(
        run, gold=gold, metrics=metrics, **options
    )
    query = _known(query, gold, facts)
    documents = _ranking(whole, query, plan.policies)
    one_gold = _only(gold, query)
    one_run = DocumentRun({query: documents}, whole.name)
    matches: dict[str, Matches] = {}
    evidence: list[Evidence] = []
    for name, matcher in plan.matchers.items():
        policies = replace(plan.policies_of(name, own_k), force=True)
        found = matcher.match(one_run, one_gold, judged=True, policies=policies)
        if own_k is not None:
            own = own_k[[gold.queries.index(query)]]
            found = replace(found, hits=replace(found.hits, own_k=own))
        matches[name] = found
        evidence += matcher.evidence(one_run, one_gold, query, policies)
    first, every = next(iter(matches.values())), matches.values()
    verdicts = [v for one in every for v in one.verdicts.get(0, ())]
    texts = getattr(options.get("judge"), "texts", True)
    said = _said(one_gold, verdicts) if texts else {}
    grades = first.hits.gold_grade.tolist()
    # What is judged and does not help counts for nothing.
    relevant = {
        item: (rank, grade)
        for (item, rank), grade in zip(
            first.first_ranks()[0].items(), grades, strict=False
        )
        if grade > 0
    }
    # A claim is no document, and must not look like one.
    mark = "missed: " if verdicts else ""
    missed = [
        [_short(mark + (said.get(item) or item)), DASH, DASH, f"{grade:g}"]
        for item, (rank, grade) in relevant.items()
        if rank is None
    ]
    names = [_name(document, texts=texts) for document in documents]
    threshold = plan.policies.threshold
    ranking = _ranked(documents, names, first.hits, missed, threshold)
    asked = _asked(facts.get(query)) if texts else ""
    tables = [replace(ranking, title=f"query {query}{asked}: {ranking.title}")]
    rows = [_worked(measure, matches[measure.matcher]) for measure in plan.measures]
    tables.append(Table(["metric", "score", "arithmetic"], rows, texts=(0, 2)))
    if verdicts:
        usage = sum((one.usage.get(0, Usage()) for one in every), Usage())
        tables.append(_reasoned(verdicts, usage))
    if evidence:
        tables.append(_shown(evidence, documents, said, texts=texts))
    ranks = {item: rank for item, (rank, _) in relevant.items()}
    read = _texts(documents, ranks, said, evidence) if texts else ()
    failures = [one.failures[0] for one in every if 0 in one.failures]
    return Explanation(tuple(tables), failures[-1] if failures else None, tuple(read))


def _worked(measure: Measure, matches: Matches) -> list[str]:
    """A measure, its score of the only query, and how it comes about."""
    if failed := matches.failures.get(0):
        return [measure.label, number(math.nan), f"failed: {failed}"]
    score = float(measure.metric.score(matches.hits)[0])
    explained = _reason if math.isnan(score) else type(measure.metric).workings
    return [measure.label, number(score), explained(measure.metric, matches.hits)]


def _texts(
    documents: Sequence[Document],
    first: Mapping[str, int | None],
    said: Mapping[str, str],
    evidence: Sequence[Evidence],
) -> Iterator[MarkedText]:
    """What gold items say, then the first documents and those that were credited."""
    for item, rank in first.items():
        if said.get(item):
            where = "not found" if rank is None else f"found at rank {rank}"
            yield MarkedText(f"gold, {where}", said[item])
    credited = {*first.values(), *(found.rank for found in evidence)}
    for rank, document in zip(ranks_of(documents), documents, strict=True):
        if not document.text or (rank > _READ and rank not in credited):
            continue
        marks = [place for e in evidence if e.rank == rank for place in e.text]
        if not marks:
            # Matchers that keep no evidence found the words as they stand, or not.
            wanted = (said.get(item, "") for item, at in first.items() if at == rank)
            small = document.text.lower()
            places = ((small.find(w.lower()), len(w)) for w in wanted if w)
            marks = [(start, start + size) for start, size in places if start >= 0]
        name = "" if document.id is None else f": {document.id}"
        counts = ", counts" if rank in credited else ""
        yield MarkedText(f"rank {rank}{name}{counts}", document.text, tuple(marks))


def _known(query: str, gold: Gold, facts: Mapping[str, Query]) -> str:
    """The id of a query, given by itself or by its text."""
    if query in gold.queries:
        return query
    wanted = " ".join(query.split())
    alike = [
        name
        for name in gold.queries
        if name in facts and " ".join((facts[name].text or "").split()) == wanted
    ]
    if len(alike) != 1 or not wanted:
        raise UnknownNameError("query", query, gold.queries[:1000])
    return alike[0]


def _shown(
    evidence: Sequence[Evidence],
    documents: list[Document],
    said: Mapping[str, str],
    *,
    texts: bool,
) -> Table:
    """Which words of which document cover how much of which passage."""
    nothing = DASH if any(found.differs for found in evidence) else ""
    rows = []
    for found in evidence:
        text = documents[found.rank - 1].text or ""
        words = " ... ".join(text[start:end] for start, end in found.text)
        rows.append(
            [
                _short(said.get(found.item) or found.item),
                str(found.rank),
                f"{found.share:.0%}",
                "yes" if found.satisfied else "no",
                _short(words) if texts else "(text)",
                (", ".join(found.differs) if texts else "(text)")
                if found.differs
                else nothing,
            ]
        )
    columns = ["gold item", "rank", "covered", "enough", "by these words", "differs"]
    return Table(columns, rows, texts=(0, 4, 5)).without_empty()


_LABELS = {
    "support": "yes",
    "partial": "in part",
    "none": "no",
    "failed": "failed",
    "contradict": "contradicted",
}


def _reasoned(verdicts: Sequence[Verdict], usage: Usage) -> Table:
    """Each claim with its verdict, the ranks that support it, and the reason."""
    rows = [
        [
            verdict.text or verdict.claim,
            _LABELS[verdict.label],
            " + ".join(map(str, verdict.together))
            if verdict.together and verdict.rank == max(verdict.together)
            else ", ".join(
                map(str, verdict.alone or verdict.against or verdict.partial)
            )
            or DASH,
            verdict.failure or verdict.reason,
        ]
        for verdict in verdicts
    ]
    columns = ["claim", "supported", "by ranks", "reason"]
    notes = [f"judged with {usage}, paid now or earlier"]
    return Table(columns, rows, notes=notes, texts=(0, 1, 2, 3))


def _name(document: Document, *, texts: bool) -> str:
    if document.id is not None:
        return document.id
    return _short(document.text or "") if texts else "(text)"


def _asked(fact: Query | None) -> str:
    text = " ".join(fact.text.split()) if fact and fact.text else ""
    return f' "{_short(text)}"' if text else ""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."


def _reason(metric: Metric, hits: Hits) -> str:
    """Why a metric says nothing of the only query of the hits."""
    threshold = getattr(metric, "threshold", None)
    if not hits.credits(threshold).relevant[0]:
        graded = "" if threshold is None else f": no grade is {threshold:g} or more"
        return f"undefined: nothing relevant in gold{graded}"
    if not hits.retrieved[0]:
        return "undefined: nothing retrieved"
    return f"undefined: {metric.formula}"


def _ranking(run: Run, query: str, policies: Policies) -> list[Document]:
    for name, documents in run.rankings(policies):
        if name == query:
            return documents
    return []


def _only(gold: Gold, query: str) -> Gold:
    parts: dict[str, Any] = {
        kind: {query: own[query]}
        for kind in (*KINDS, "references", "groups", "subtopics")
        if query in (own := getattr(gold, kind))
    }
    return Gold(**parts, order=(query,), name=gold.name)


def _ranked(
    documents: list[Document],
    names: list[str],
    hits: Hits,
    missed: Sequence[list[str]],
    threshold: float | None,
) -> Table:
    """The documents by rank, each with its grade if it has one, and what was missed."""
    grades = dict(zip(hits.rank.tolist(), hits.grade.tolist(), strict=True))
    rows = [
        [
            name,
            str(rank),
            DASH if document.score is None else f"{document.score:g}",
            f"{grades[rank]:g}" if rank in grades else DASH,
        ]
        for rank, document, name in zip(
            ranks_of(documents), documents, names, strict=True
        )
        if rank <= _ROWS or rank in grades
    ]
    notes = []
    if hidden := len(documents) - len(rows):
        what = counted(hidden, "more retrieved document")
        notes.append(f"... {what} without a label below rank {_ROWS}")
    total = int(hits.credits(threshold).relevant[0])
    graded = "" if threshold is None else f" (grade {threshold:g} or more)"
    grid = [["document", "rank", "score", "grade"], *rows, *missed]
    if all(document.score is None for document in documents):
        grid = [[name, rank, grade] for name, rank, _, grade in grid]
    title = f"{len(documents)} retrieved, {total} relevant in gold{graded}"
    return Table(grid[0], grid[1:], title=title, notes=notes)


def _said(gold: Gold, verdicts: Sequence[Verdict]) -> dict[str, str]:
    """The texts of gold items, and of the claims that a judge made of a reference."""
    rows = (row for kind in KINDS[1:] for row in getattr(gold, kind).values())
    said = {item.id: item.text for row in rows for item in row}
    return said | {verdict.claim: verdict.text for verdict in verdicts}
