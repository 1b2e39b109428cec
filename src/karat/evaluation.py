"""The front door: score a run against gold."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from karat.data.arrays import Ints
from karat.data.evaluations import Evaluation, Interval, MetricScores, Trace
from karat.data.gold import Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset, Query
from karat.data.runs import Notice, Run
from karat.data.spelling import LETTER
from karat.data.tables import counted
from karat.engines import ENGINES, Engine, Outcome, Plan
from karat.errors import DataError, MismatchError, ParameterError
from karat.matching.matcher import Matcher
from karat.matching.shipped import AUTO
from karat.metrics import Metric
from karat.planning import DEFAULT_METRICS, prepare
from karat.reading.meaning.mapping import renamed
from karat.stats import mean_interval
from karat.version import __version__

__all__ = ["aevaluate", "evaluate"]

P = ParamSpec("P")
T = TypeVar("T")


def evaluate(  # noqa: PLR0913
    run: Any,
    *,
    gold: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    match: str | Matcher = AUTO,
    judge: Any = None,
    k: int | None = None,
    profile: str | None = None,
    undefined: str | None = None,
    missing: str | None = None,
    extra: str | None = None,
    duplicates: str | None = None,
    ties: str | None = None,
    threshold: float | None = None,
    engine: str | Engine = "local",
    force: bool | None = None,
    mapping: Mapping[str, str] | None = None,
) -> Evaluation:
    """Score what was retrieved against what should have been.

    Args:
        run: `{query: {document: score}}`, `{query: [document, ...]}`, a list of lists,
            a list of samples, a path, a DataFrame or a `Run`.
        gold: `{query: {document: grade}}`, `{query: [document, ...]}`, a list of lists,
            a path, a DataFrame or a `Gold`; None when the samples carry their own.
        metrics: spellings such as `"ndcg@10"`, or metric instances.
        match: how a document satisfies a gold item; `auto` goes by what gold holds.
        judge: who says which document supports which claim, for `context_recall` and
            `recall[claims]`: the name of a model, a function from prompt to reply, a
            client, or `karat.judging.Claims(client, ...)` to say more.
        k: what the letter in `recall@k` means for samples that do not say (else 5).
        profile: a named set of policies, such as `trec_eval-10`.
        undefined: `skip`, `zero` or `error`; natively `skip`.
        missing: gold queries the run lacks: `zero`, `skip` or `error`; natively `zero`.
        extra: run queries without gold: `ignore` or `error`; natively `ignore`. What
            is ignored in a mapping of scores is not checked either: looking at it all
            would take longer than the evaluation.
        duplicates: `first`, `collapse`, `keep` or `error`; natively `first`.
        ties: `trec` or `input`; natively `trec`.
        threshold: the smallest grade that counts as relevant; natively any positive.
        engine: where to compute.
        force: score even when no gold id occurs anywhere in the run.
        mapping: our field or column name -> theirs, as in `{"retrieved": "hits"}`,
            where the inference should not decide.

    Raises:
        UsageError: an unknown or impossible metric, matcher or option.
        DataError: input that cannot be scored, and where it lies.

    Example:
        >>> result = evaluate({"q1": ["b", "a"]}, gold={"q1": ["a"]}, metrics=["rr"])
        >>> result.means
        {'rr': 0.5}
    """
    plan, loaded, truth, own_k = prepare(
        run,
        gold=gold,
        metrics=metrics,
        match=match,
        judge=judge,
        k=k,
        profile=profile,
        undefined=undefined,
        missing=missing,
        extra=extra,
        duplicates=duplicates,
        ties=ties,
        threshold=threshold,
        force=force,
        mapping=mapping,
    )
    runner = ENGINES[engine]() if isinstance(engine, str) else engine
    if not isinstance(runner, Engine):
        raise ParameterError("evaluate", "engine", "a name or an engine", engine)
    return _carry_out(plan, loaded, truth, own_k, runner)


def _in_thread(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """The same function for async code; what it does never blocks the event loop."""

    @wraps(function)
    async def twin(*args: P.args, **options: P.kwargs) -> T:
        # Most callers never need an event loop, and importing one is slow.
        import asyncio  # noqa: PLC0415

        return await asyncio.to_thread(function, *args, **options)

    return twin


aevaluate = _in_thread(evaluate)


def _carry_out(
    plan: Plan, loaded: Dataset, truth: Dataset, own_k: Ints | None, engine: Engine
) -> Evaluation:
    run, gold = loaded.run, truth.gold
    assert run is not None  # noqa: S101
    assert gold is not None  # noqa: S101
    queries = gold.queries
    facts = truth.queries or loaded.queries
    outcome = engine.run(plan, run, gold, own_k)
    _refuse(plan.policies, queries, outcome, run)
    columns = _columns(plan, outcome, queries, own_k)

    def notices() -> tuple[Notice, ...]:
        read = truth.notices if truth is loaded else (*loaded.notices, *truth.notices)
        # Queries whose gold is not ids are no strangers to the gold.
        labels = {query: gold.documents.get(query, {}) for query in queries}
        seen = (*run.notices(labels, plan.policies), *outcome.notices)
        seen = (*gold.notices(), *seen)
        return (*read, *{notice.kind: notice for notice in seen}.values())

    return Evaluation(
        run=run.name,
        gold=gold.name,
        queries=queries,
        columns=columns,
        missing=outcome.missing,
        policies=plan.policies,
        matchers=plan.matchers,
        provenance={
            "karat": __version__,
            "run": run.name,
            "gold": gold.name,
            **renamed(loaded, truth),
            **outcome.provenance,
        },
        facts=facts,
        asked=dict(plan.asked),
        _notices=notices,
        _traces=partial(_traces, plan, run, gold, facts, outcome),
    )


def _columns(
    plan: Plan, outcome: Outcome, queries: Sequence[str], own_k: Ints | None
) -> dict[str, MetricScores]:
    """Apply the policies on undefined and missing to all scores at once."""
    policies = plan.policies
    scores = outcome.scores
    empty = np.isnan(scores)
    if outcome.failures:
        failed = np.zeros(scores.shape, np.bool_)
        for measure, whys in outcome.failures.items():
            failed[measure, list(whys)] = True
        scores = np.where(failed, np.nan, scores)
        empty &= ~failed
    if policies.missing == "skip":
        scores = np.where(outcome.missing, np.nan, scores)
        empty &= ~outcome.missing
    undefined = empty.sum(axis=1).tolist()
    if any(undefined) and policies.undefined == "error":
        row, query = np.argwhere(empty)[0]
        raise DataError(
            f"{plan.measures[row].label} is undefined: nothing relevant to find",
            query=queries[query],
            hint="undefined='skip' (--undefined skip) leaves such queries out and "
            "counts them",
        )
    if any(undefined) and policies.undefined == "zero":
        scores = np.where(empty, 0.0, scores)
    ks = () if own_k is None else tuple(np.unique(own_k).tolist())
    left_out = undefined
    if scores is not outcome.scores:
        left_out = np.isnan(scores).sum(axis=1).tolist()
    return {
        measure.label: MetricScores(
            measure.label,
            row,
            len(row) - gaps,
            without,
            outcome.failures.get(index, {}),
            binary=measure.metric.binary,
            bounds=measure.metric.bounds,
            cutoffs=ks if getattr(measure.metric, LETTER, None) == LETTER else (),
            _interval=_interval,
        )
        for index, (measure, row, gaps, without) in enumerate(
            zip(plan.measures, scores, left_out, undefined, strict=True)
        )
    }


def _interval(column: MetricScores) -> Interval | None:
    return mean_interval(column.defined, binary=column.binary, bounds=column.bounds)


def _refuse(
    policies: Policies, queries: Sequence[str], outcome: Outcome, run: Run
) -> None:
    if policies.missing == "error" and outcome.missing.any():
        raise MismatchError(
            "the run has no results for "
            + counted(int(outcome.missing.sum()), "gold query"),
            path=run.name,
            query=queries[int(np.flatnonzero(outcome.missing)[0])],
            hint="missing='zero' (--missing zero) scores them 0, 'skip' omits them",
        )
    if policies.extra == "error" and outcome.extra:
        raise MismatchError(
            f"{counted(outcome.extra, 'query')} of the run "
            f"{'has' if outcome.extra == 1 else 'have'} no gold",
            path=run.name,
            hint="extra='ignore' (--extra ignore) scores the others",
        )


def _traces(
    plan: Plan,
    run: Run,
    gold: Gold,
    facts: Mapping[str, Query],
    outcome: Outcome,
) -> Sequence[Trace]:
    matcher = plan.measures[0].matcher
    first = outcome.first_ranks.get(matcher)
    if first is None:
        first = matcher.first_ranks(run, gold, plan.policies)
    return [
        Trace(
            fingerprint=gold.fingerprint(query),
            first_ranks=ranks.ranks,
            retrieved=ranks.retrieved,
            tags=facts[query].tags if query in facts else (),
            verdicts=outcome.verdicts.get(place, ()),
            usage=outcome.usage.get(place),
        )
        for place, (query, ranks) in enumerate(zip(gold.queries, first, strict=True))
    ]
