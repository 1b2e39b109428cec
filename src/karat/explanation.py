"""Explain: the arithmetic of every metric for one query, rank by rank."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from karat.data.gold import KINDS, Gold
from karat.data.hits import Hits
from karat.data.policies import Policies
from karat.data.rankings import DocumentRun
from karat.data.runs import Document, Run
from karat.data.tables import DASH, Table, number
from karat.errors import UnknownNameError
from karat.evaluation import DEFAULT_METRICS, prepare
from karat.metrics import Metric

__all__ = ["explain"]

_ROWS = 20


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
    shown: Hits | None = None
    for stage in plan.stages:
        matched = stage.matcher.match(one_run, one_gold, judged=True, policies=policies)
        hits = matched.hits
        if own_k is not None:
            hits = replace(hits, own_k=own_k[place : place + 1])
        shown = shown or hits
        for measure in (plan.measures[row] for row in stage.rows):
            score = float(measure.metric.score(hits)[0])
            why = measure.metric.workings(hits) if score == score else "undefined"  # noqa: PLR0124
            rows.append([measure.label, number(score), why])
    assert shown is not None  # noqa: S101
    worked = Table(["metric", "score", "arithmetic"], rows, texts=(0, 2))
    return _ranked(query, documents, shown), worked


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


def _ranked(query: str, documents: list[Document], hits: Hits) -> Table:
    grades = dict(zip(hits.rank.tolist(), hits.grade.tolist(), strict=True))
    rows = [
        [
            document.id if document.id is not None else (document.text or "")[:60],
            str(rank),
            DASH if document.score is None else f"{document.score:g}",
            f"{grades[rank]:g}" if rank in grades else DASH,
        ]
        for rank, document in enumerate(documents, 1)
        if rank <= _ROWS or rank in grades
    ]
    total = len(hits.gold_grade[hits.gold_grade > 0])
    return Table(
        ["document", "rank", "score", "grade"],
        rows,
        title=f"query {query}: {len(documents)} retrieved, {total} relevant in gold",
    )
