"""Planning: from what a caller asks for to what an engine carries out."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np

from karat.data.arrays import Ints
from karat.data.gold import Gold
from karat.data.policies import Policies, policies_for
from karat.data.queries import Dataset, Query
from karat.data.runs import Run
from karat.data.spelling import LETTER, parse
from karat.engines import Measure, Plan
from karat.errors import DataError, ParameterError, UsageError
from karat.matching.matcher import Matcher
from karat.matching.shipped import AUTO, JUDGED, choose, read_matcher
from karat.metrics import Metric, read_metric, split_metrics
from karat.reading.intake import check_places, take_gold, take_run

__all__ = ["DEFAULT_K", "DEFAULT_METRICS", "prepare"]

DEFAULT_METRICS = ("hit@5", "recall@5", "precision@5", "rr", "ndcg@10")
DEFAULT_K = 5
"""What the letter in `recall@k` means when neither sample nor caller says."""

# No ranking is so long, and what counts ranks holds no more.
_TOO_DEEP = 10**9


def prepare(
    run: Any,
    *,
    gold: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    match: str | Matcher = AUTO,
    judge: Any = None,
    k: int | None = None,
    profile: str | None = None,
    mapping: Mapping[str, str] | None = None,
    **switches: Any,
) -> tuple[Plan, Dataset, Dataset, Ints | None]:
    """What an evaluation needs: the plan, both inputs, and each query's own k."""
    policies = policies_for(profile, **switches)
    spellings = split_metrics(metrics)
    told = mapping or {}
    if gold is None:
        loaded = truth = take_run(run, with_gold=True, mapping=told)
    else:
        truth = take_gold(gold, told)
        loaded = take_run(run, mapping=told, gold=truth)
    if loaded.run is None:
        raise DataError(
            "the input holds nothing retrieved",
            hint="a sample needs a field such as retrieved; --map retrieved=THEIRS, or "
            "mapping={'retrieved': ...}, names another one",
        )
    if truth.gold is None:
        raise UsageError(
            "no gold: pass gold=..., or samples that carry their own relevant ids, "
            "passages or answers"
        )
    if gold is not None:
        check_places((run, loaded), (gold, truth))
    facts = truth.queries or loaded.queries
    if judge is not None:
        judge = _judge(judge).informed(facts)
    if isinstance(match, Matcher):
        match = match.informed(facts)
        judge = match if judge is None and match.name == JUDGED else judge
    matcher = _choose(truth.gold, loaded.run, spellings) if match == AUTO else match
    # A plan with a judge holds a client, which must not outlive the evaluation.
    make = _plan if judge is None else _plan.__wrapped__
    plan = make(spellings, matcher, judge, policies)
    return plan, loaded, truth, _own_k(plan, truth.gold, facts, k)


def _judge(judge: Any) -> Matcher:
    """A judge of claims: as it is, or of whoever answers prompts."""
    if isinstance(judge, Matcher):
        return judge
    # Only who has a judge pays for importing what asks models.
    from karat.judging import Claims  # noqa: PLC0415

    return Claims(judge)


def _choose(gold: Gold, run: Run, metrics: tuple[str | Metric, ...]) -> str | Matcher:
    """What `auto` stands for: labels where gold has any, else claims of references.

    Any matcher does where every metric brings its own.
    """
    if gold.kinds() in {(), (JUDGED,)} and (gold.references or gold.claims):
        return JUDGED
    try:
        return choose(gold, run)
    except DataError:
        plain = (m for m in metrics if isinstance(m, Metric) or "[" not in m)
        read = (m if isinstance(m, Metric) else read_metric(m) for m in plain)
        if not metrics or any(metric.matcher is None for metric in read):
            raise
        return read_matcher("id")


@lru_cache(maxsize=256)
def _plan(
    metrics: tuple[str | Metric, ...],
    match: str | Matcher,
    judge: Matcher | None,
    policies: Policies,
) -> Plan:
    if not metrics:
        raise UsageError("no metrics: name at least one, as in metrics=['recall@5']")
    measures = [_measure(metric, match, judge, policies) for metric in metrics]
    return Plan(
        tuple({measure.label: measure for measure in measures}.values()),
        policies,
        tuple((str(a), m.label) for a, m in zip(metrics, measures, strict=True)),
    )


def _measure(
    asked: str | Metric,
    default: str | Matcher,
    judge: Matcher | None,
    policies: Policies,
) -> Measure:
    if isinstance(asked, Metric):
        metric, written = asked, None
    else:
        metric = read_metric(asked)
        written = parse(asked).matcher if "[" in asked else None
    own = metric.matcher if written is None else None
    chosen = written or own or default
    # A judge that was handed over as the matcher is asked itself.
    called = not isinstance(chosen, Matcher) and str(chosen) == JUDGED
    matcher = read_matcher(judge if judge is not None and called else chosen)
    matcher.check(metric.name)
    label = str(replace(metric.spelling, matcher=matcher.spelling if written else None))
    if policies.threshold is not None and getattr(metric, "threshold", 0) is None:
        metric = replace(metric, threshold=policies.threshold)  # type: ignore[call-arg]
    return Measure(label, metric, matcher)


def _own_k(
    plan: Plan, gold: Gold, facts: Mapping[str, Query], k: int | None
) -> Ints | None:
    """Each query's cutoff for the letter k: its own, else the caller's, else 5."""
    if k is not None:
        # NumPy's integers are integers too; True and False are not.
        integral = isinstance(k, Integral) and not isinstance(k, bool)
        if not integral or not 0 < k < _TOO_DEEP:
            raise ParameterError("evaluate", LETTER, "an integer >= 1", k)
    if all(getattr(m.metric, LETTER, None) != LETTER for m in plan.measures):
        if k is not None:
            raise UsageError(
                f"k = {k} changes nothing: no metric is spelled with the letter, as in "
                f"recall@k; for all queries alike, recall@{k} does"
            )
        return None
    default = DEFAULT_K if k is None else k
    own = (facts[q].k if q in facts else None for q in gold.queries)
    return np.array([default if mine is None else mine for mine in own], np.int64)
