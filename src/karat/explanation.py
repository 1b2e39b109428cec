"""Explain: the arithmetic of every metric for one query, rank by rank."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from karat.data.gold import KINDS, Gold
from karat.data.hits import Hits
from karat.data.policies import Policies
from karat.data.rankings import DocumentRun
from karat.data.runs import Document, Run
from karat.data.tables import DASH, Table, number
from karat.data.verdicts import Verdict
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
) -> tuple[Table, ...]:
    """The ranking of one query with its grades, and each metric worked out on it.

    Where a judge matched claims, its verdicts with their reasons come last.

    Takes the arguments of `evaluate`; the id of the query comes second.
    """
    plan, loaded, truth, own_k = prepare(run, metrics=metrics, **options)
    judge = options.get("judge")
    gold = truth.gold
    assert gold is not None  # noqa: S101
    assert loaded.run is not None  # noqa: S101
    if query not in gold.queries:
        raise UnknownNameError("query", query, gold.queries[:1000])
    documents = _ranking(loaded.run, query, plan.policies)
    one_gold = _only(gold, query)
    one_run = DocumentRun({query: documents}, loaded.run.name)
    place = gold.queries.index(query)
    rows = []
    shown: Hits | None = None
    verdicts: tuple[Verdict, ...] = ()
    for stage in plan.stages:
        policies = replace(plan.policies_of(stage, own_k), force=True)
        matched = stage.matcher.match(one_run, one_gold, judged=True, policies=policies)
        hits = matched.hits
        verdicts += matched.verdicts.get(0, ())
        if own_k is not None:
            hits = replace(hits, own_k=own_k[place : place + 1])
        shown = shown or hits
        for measure in (plan.measures[row] for row in stage.rows):
            score = float(measure.metric.score(hits)[0])
            why = measure.metric.workings(hits) if score == score else "undefined"  # noqa: PLR0124
            if failed := matched.failures.get(0):
                score, why = math.nan, f"failed: {failed}"
            rows.append([measure.label, number(score), why])
    assert shown is not None  # noqa: S101
    worked = Table(["metric", "score", "arithmetic"], rows, texts=(0, 2))
    ranked = _ranked(query, documents, shown, texts=getattr(judge, "texts", True))
    return (ranked, worked, _reasoned(verdicts)) if verdicts else (ranked, worked)


def _ranking(run: Run, query: str, policies: Policies) -> list[Document]:
    for name, documents in run.rankings(policies):
        if name == query:
            return documents
    return []


def _only(gold: Gold, query: str) -> Gold:
    kinds = {kind: getattr(gold, kind) for kind in KINDS}
    return Gold(
        **{kind: {query: rows.get(query, {})} for kind, rows in kinds.items()},
        references={q: text for q, text in gold.references.items() if q == query},
        order=(query,),
        name=gold.name,
    )


def _reasoned(verdicts: Sequence[Verdict]) -> Table:
    """Each claim with its verdict, the ranks that support it, and the reason."""
    rows = [
        [
            verdict.text or verdict.claim,
            "failed" if verdict.failure else "yes" if verdict.supported else "no",
            " + ".join(map(str, verdict.together))
            if verdict.together and verdict.rank == max(verdict.together)
            else ", ".join(map(str, verdict.alone)) or DASH,
            verdict.failure or verdict.reason,
        ]
        for verdict in verdicts
    ]
    return Table(["claim", "supported", "by ranks", "reason"], rows, texts=(0, 1, 2, 3))


def _ranked(
    query: str, documents: list[Document], hits: Hits, *, texts: bool = True
) -> Table:
    grades = dict(zip(hits.rank.tolist(), hits.grade.tolist(), strict=True))
    rows = [
        [
            _name(document, texts=texts),
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


def _name(document: Document, *, texts: bool) -> str:
    if document.id is not None:
        return document.id
    return (document.text or "")[:60] if texts else "(text)"
