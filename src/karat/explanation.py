"""Explain: the arithmetic of every metric for one query, rank by rank."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from karat.data.gold import KINDS, Gold
from karat.data.hits import Hits
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.rankings import DocumentRun
from karat.data.runs import Document, Run
from karat.data.tables import DASH, Table, counted, number
from karat.errors import UnknownNameError
from karat.evaluation import DEFAULT_METRICS, prepare
from karat.metrics import Metric

__all__ = ["explain"]

_ROWS = 20
_LONG = 60


def explain(
    run: Any,
    query: str,
    *,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    **options: Any,
) -> tuple[Table, Table]:
    """The ranking of one query with its grades, and each metric worked out on it.

    Takes the arguments of `evaluate`; the id of the query comes second.
    """
    plan, loaded, truth, own_k = prepare(run, metrics=metrics, **options)
    gold = truth.gold
    assert gold is not None  # noqa: S101
    assert loaded.run is not None  # noqa: S101
    if query not in gold.queries:
        raise UnknownNameError("query", query, gold.queries[:1000])
    documents = _ranking(loaded.run, query, plan.policies)
    one_gold = _only(gold, query)
    one_run = DocumentRun({query: documents}, loaded.run.name)
    policies = replace(plan.policies, force=True)
    place = gold.queries.index(query)
    rows = []
    ranking: Table | None = None
    for stage in plan.stages:
        matched = stage.matcher.match(one_run, one_gold, judged=True, policies=policies)
        hits = matched.hits
        if own_k is not None:
            hits = replace(hits, own_k=own_k[place : place + 1])
        if ranking is None:
            (first,) = stage.matcher.first_ranks(one_run, one_gold, policies)
            missed = _missed(first.ranks, one_gold, hits)
            ranking = _ranked(documents, missed, hits, policies.threshold)
        for measure in (plan.measures[row] for row in stage.rows):
            score = float(measure.metric.score(hits)[0])
            undefined = score != score  # noqa: PLR0124
            explained = _reason if undefined else type(measure.metric).workings
            rows.append([measure.label, number(score), explained(measure.metric, hits)])
    assert ranking is not None  # noqa: S101
    fact = (truth.queries or loaded.queries).get(query)
    asked = f"query {query}{_asked(fact)}: {ranking.title}"
    worked = Table(["metric", "score", "arithmetic"], rows, texts=(0, 2))
    return replace(ranking, title=asked), worked


def _asked(fact: Query | None) -> str:
    text = " ".join(fact.text.split()) if fact and fact.text else ""
    return f' "{_short(text)}"' if text else ""


def _short(text: str) -> str:
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
    kinds = {kind: getattr(gold, kind) for kind in KINDS}
    return Gold(
        **{kind: {query: rows.get(query, {})} for kind, rows in kinds.items()},
        order=(query,),
        name=gold.name,
    )


def _ranked(
    documents: list[Document],
    missed: list[list[str]],
    hits: Hits,
    threshold: float | None,
) -> Table:
    """The documents by rank, and below them what should have been among them."""
    grades = dict(zip(hits.rank.tolist(), hits.grade.tolist(), strict=True))
    rows = [
        [
            document.id if document.id is not None else _short(document.text or ""),
            str(rank),
            DASH if document.score is None else f"{document.score:g}",
            f"{grades[rank]:g}" if rank in grades else DASH,
        ]
        for rank, document in enumerate(documents, 1)
        if rank <= _ROWS or rank in grades
    ]
    notes = []
    if hidden := len(documents) - len(rows):
        what = counted(hidden, "more retrieved document")
        notes.append(f"... {what} without a label below rank {_ROWS}")
    total = int(hits.credits(threshold).relevant[0])
    graded = "" if threshold is None else f" (grade {threshold:g} or more)"
    return Table(
        ["document", "rank", "score", "grade"],
        rows + missed,
        title=f"{len(documents)} retrieved, {total} relevant in gold{graded}",
        notes=notes,
    )


def _missed(ranks: Mapping[str, int | None], gold: Gold, hits: Hits) -> list[list[str]]:
    """A row for each relevant gold item that was not found, without a rank."""
    rows = (row for kind in KINDS[1:] for row in getattr(gold, kind).values())
    texts = {item.id: item.text for row in rows for item in row}
    return [
        [_short(texts.get(name) or name), DASH, DASH, f"{grade:g}"]
        for (name, rank), grade in zip(
            ranks.items(), hits.gold_grade.tolist(), strict=False
        )
        if rank is None and grade > 0
    ]
