"""Planning: from what a caller asks for to what is carried out."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Ints
from karat.data.gold import Gold
from karat.data.matches import Matches
from karat.data.memory_runs import DocumentRun, ScoredRun
from karat.data.policies import Policies, policies_for
from karat.data.queries import DEFAULT_K, Dataset, Query
from karat.data.runs import Notice, Retrieval, Run
from karat.data.spelling import LETTER
from karat.errors import DataError, ParameterError, UsageError
from karat.matching.matcher import Matcher
from karat.matching.shipped import AUTO, JUDGED, choose, read_matcher
from karat.metrics import Metric, read_metric, split_metrics
from karat.reading.meaning.aliases import ALIASES
from karat.reading.meaning.corpus import unknown_documents, with_gold_texts
from karat.reading.meaning.ids_or_texts import settle
from karat.reading.meaning.mapping import renamed
from karat.reading.meaning.order import reorder
from karat.reading.objects import check_places
from karat.reading.readers import (
    read_queries,
    take_gold,
    take_run,
    texts_for,
    with_texts,
)
from karat.results.measures import Measure, read_measure

DEFAULT_METRICS = ("hit@5", "recall@5", "precision@5", "rr", "ndcg@10")

_JUDGED_AT = 10
_EXPECTED = ALIASES["expected"].split()

_SWITCHES = {field.name for field in fields(Policies)} - {"profile"}

# No ranking is so long, and what counts ranks holds no more.
_TOO_DEEP = 10**9


@dataclass(frozen=True)
class Plan:
    """What to compute.

    Attributes:
        measures: the columns of the result, in order.
        matchers: the matchers that they read, by spelling.
        default_matcher: spelling of the matcher of metrics that bring none.
        policies: the rules applied.
    """

    measures: tuple[Measure, ...]
    matchers: Mapping[str, Matcher]
    default_matcher: str
    policies: Policies

    @cached_property
    def judged(self) -> dict[str, bool]:
        """Whether any measure of a matcher reads judged non-relevant items."""
        return {
            name: any(m.metric.needs_judged for m in self.measures if m.matcher == name)
            for name in self.matchers
        }

    @cached_property
    def own_k(self) -> bool:
        """Whether any measure is spelled with the letter k."""
        return any(measure.own_k for measure in self.measures)

    def match(
        self,
        run: Run,
        gold: Gold,
        own_k: Ints | None,
        names: Mapping[str, str] | None = None,
    ) -> dict[str, Matches]:
        """What each matcher found, by its spelling.

        Args:
            run: what was retrieved.
            gold: what should have been.
            own_k: each query's cutoff for metrics spelled with the letter k.
            names: our name -> theirs of the gold's fields, as far as they differ.
        """
        found = {}
        for name, matcher in self.matchers.items():
            policies = self.policies_of(name, own_k)
            judged = self.judged[name]
            matches = matcher.match(run, gold, judged=judged, policies=policies)
            # A judge says itself what it could not judge.
            lacking = _without_gold(matcher, matches, gold, names or {})
            if not matcher.costly and lacking:
                matches = replace(matches, notices=(*matches.notices, lacking))
            found[name] = matches
        return found

    def policies_of(self, matcher: str, own_k: Ints | None) -> Policies:
        """The rules for a matcher: a costly one reads no deeper than is asked for."""
        if not self.matchers[matcher].costly:
            return self.policies
        own = 1 if own_k is None else int(own_k.max(initial=1))
        metrics = (m.metric for m in self.measures if m.matcher == matcher)
        cutoffs = [getattr(metric, LETTER, None) for metric in metrics]
        if None in cutoffs:
            return self.policies
        deepest = max(own if k == LETTER else int(k or 1) for k in cutoffs)
        return replace(
            self.policies, depth=min(deepest, self.policies.depth or deepest)
        )


def _without_gold(
    matcher: Matcher, matches: Matches, gold: Gold, names: Mapping[str, str]
) -> Notice | None:
    """A notice where a matcher has nothing to match: why its metrics say nothing."""
    count = matches.hits.size - int(np.count_nonzero(matches.hits.gold_count))
    if not count:
        return None
    kinds = " or ".join(matcher.reads)
    have = f"no {kinds} in gold; {matcher.name} needs {kinds}"
    if "passages" in matcher.reads and gold.kinds() == ("documents",):
        have += ": corpus=... (--corpus FILE) gives the texts of the gold's documents"
    if "answers" in matcher.reads and gold.references:
        theirs = names.get("reference", "reference")
        have += f": --map answers={theirs} (mapping=) takes {theirs!r} for the answer"
    text, one = f"queries have {have}", f"query has {have}"
    return Notice(f"no {kinds}", count, text, one=one)


class Prepared(NamedTuple):
    """All that an evaluation needs.

    Attributes:
        plan: what to compute.
        run: what was retrieved.
        gold: what should have been.
        facts: what is known of the queries besides their gold.
        own_k: each query's cutoff for metrics spelled with the letter k.
        notices: what was seen while reading.
        fields: field names that were read under another name, as provenance says it.
        retrieval: how the run came about.
    """

    plan: Plan
    run: Run
    gold: Gold
    facts: Mapping[str, Query]
    own_k: Ints | None
    notices: tuple[Notice, ...]
    fields: Mapping[str, Mapping[str, str]]
    retrieval: Retrieval


def prepare_gold(
    gold: Any,
    metrics: Any,
    *,
    profile: str | None = None,
    mapping: Mapping[str, str] | None = None,
    queries: Any = None,
    **options: Any,
) -> dict[str, Any]:
    """What `prepare` takes of all runs alike, read, checked and out of reach."""
    given = {name: options[name] for name in _SWITCHES & options.keys()}
    policies_for(profile, **given)
    spellings = split_metrics(metrics)
    for asked in spellings:
        read_measure(asked, AUTO, profile)
    truth = take_gold(gold, mapping or {})
    if truth.gold is None:
        raise UsageError("no gold: it must be given apart from the runs")
    truth = replace(truth, gold=truth.gold.copy(), strings=deepcopy(truth.strings))
    facts = None if queries is None else read_queries(queries)
    return {"gold": truth, "metrics": spellings, "queries": facts}


def prepare(  # noqa: PLR0913
    run: Any,
    *,
    gold: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    match: str | Matcher = AUTO,
    judge: Any = None,
    k: int | None = None,
    profile: str | None = None,
    mapping: Mapping[str, str] | None = None,
    queries: Any = None,
    corpus: Any = None,
    judged: bool = False,
    order: str | None = None,
    **switches: Any,
) -> Prepared:
    """Read what a caller handed over, and plan what is asked for."""
    policies = policies_for(profile, **switches)
    spellings = split_metrics(metrics)
    named = mapping or {}
    asked = {} if queries is None else read_queries(queries)
    if gold is None:
        retrieved = truth = take_run(run, with_gold=True, mapping=named)
        notices = truth.notices
    else:
        truth = take_gold(gold, named)
        retrieved = take_run(run, mapping=named, gold=truth)
        notices = (*retrieved.notices, *truth.notices)
        retrieved = _named_by_text(retrieved, truth, asked)
    retrieved, truth = settle(retrieved, truth, _kind(match, retrieved, truth))
    if retrieved.run is None:
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
        check_places(retrieved, truth)
    wanted, retrieval = truth.gold, retrieved.run.retrieval
    ranked, notices = _ordered(retrieved.run, notices, order)
    if corpus is not None:
        texts = texts_for(ranked, wanted, corpus)
        ranked = with_texts(ranked, texts)
        notices = (*notices, *unknown_documents(wanted, texts))
        by_text = "ids" not in ranked.kinds() or _reads_texts(match)
        wanted = with_gold_texts(wanted, texts, documents=by_text)
    if judged:
        spellings += _judged(wanted, spellings)
    facts = truth.queries or retrieved.queries
    facts = facts or {q: Query(q, text) for q, text in retrieval.texts.items()}
    facts = {**facts, **asked} if asked else facts
    if asked and asked.keys().isdisjoint(wanted.queries):
        text = "queries with texts or tags, and none of them is a query of the gold"
        one = "query with a text or tags, which is no query of the gold"
        notices = (*notices, Notice("queries", len(asked), text, (*asked,)[:3], one))
    if judge is not None:
        judge = _judge(judge).informed(facts)
        wanted = with_references(wanted, truth.mapping)
    if isinstance(match, Matcher):
        match = match.informed(facts)
        judge = match if judge is None and match.name == JUDGED else judge
    matcher = _choose(wanted, ranked, spellings) if match == AUTO else match
    # A plan with a judge holds a client, which must not outlive the evaluation.
    make = _plan if judge is None else _plan.__wrapped__
    plan = make(spellings, matcher, judge, policies)
    own_k = _own_k(plan, wanted, facts, k)
    _check_depth(plan, own_k, retrieval)
    names = renamed(retrieved, truth)
    return Prepared(plan, ranked, wanted, facts, own_k, notices, names, retrieval)


def with_references(gold: Gold, mapping: Mapping[str, str]) -> Gold:
    """The gold of a judge, to whom an expected output is the reference answer."""
    if gold.references or gold.claims or mapping.get("answers") not in _EXPECTED:
        return gold
    single = {query: row[0] for query, row in gold.answers.items() if len(row) == 1}
    return replace(gold, references={q: str(one.text) for q, one in single.items()})


def _named_by_text(
    retrieved: Dataset, truth: Dataset, asked: Mapping[str, Query]
) -> Dataset:
    """A run whose queries are their texts, as in traces, under the ids of gold."""
    if not truth.queries and not asked:
        return retrieved
    rankings = getattr(retrieved.run, "by_query", {})
    known = {fact.text: name for name, fact in {**truth.queries, **asked}.items()}
    wanted = () if truth.gold is None else truth.gold.queries
    if not any(q in known for q in rankings) or not {*rankings}.isdisjoint(wanted):
        return retrieved
    run: Any = retrieved.run
    kind = ScoredRun if isinstance(run, ScoredRun) else DocumentRun
    rows = rankings if kind is ScoredRun else dict(run.rankings(Policies()))
    again = kind({known.get(q, q): row for q, row in rows.items()}, run.name)
    again.retrieval = run.retrieval.under(known)
    facts = {known.get(q, q): fact for q, fact in retrieved.queries.items()}
    return replace(retrieved, run=again, queries=facts)


def _check_depth(plan: Plan, own_k: Ints | None, retrieval: Retrieval) -> None:
    """Refuse a metric that reads more documents than the retriever was asked for."""
    if retrieval.k is None:
        return
    own = 0 if own_k is None else int(own_k.max(initial=0))
    for measure in plan.measures:
        cutoff = getattr(measure.metric, LETTER, None) or 0
        deepest = own if cutoff == LETTER else int(cutoff)
        if deepest > retrieval.k:
            raise UsageError(
                f"{measure.label} reads {deepest} documents, and the retriever was "
                f"asked for {retrieval.k}: retrieve with k={deepest} (-k {deepest})"
            )


def _kind(match: str | Matcher, *inputs: Dataset) -> str | None:
    """Whether the caller's matcher compares ids or texts, where that is not known."""
    known = not any(loaded.bare or loaded.strings for loaded in inputs)
    if known or match == AUTO or str(match).startswith(JUDGED):
        return None
    kinds = read_matcher(match).reads
    return next((kind for kind in ("passages", "documents") if kind in kinds), None)


def _reads_texts(match: str | Matcher) -> bool:
    """Whether the caller's matcher compares texts of documents."""
    if match == AUTO or str(match).startswith(JUDGED):
        return False
    return "passages" in read_matcher(match).reads


def _ordered(
    run: Run, notices: tuple[Notice, ...], order: str | None
) -> tuple[Run, tuple[Notice, ...]]:
    """The run as the caller wants it ordered, and what is to be said then."""
    if order is None:
        return run, notices
    run = reorder(run, order)
    what = f"by score, {'larger' if order == 'descending' else 'smaller'} first"
    text, one = f"rankings are ordered {what}", f"ranking is ordered {what}"
    kept = (notice for notice in notices if notice.kind != "order")
    return run, (*kept, Notice("order", len(run.queries()), text, one=one))


def _judged(gold: Gold, metrics: tuple[str | Metric, ...]) -> tuple[str, ...]:
    """`judged@k` for the deepest cutoff, if gold says of some that they do not help."""
    if gold.columns.grade.min(initial=1) > 0:
        return ()
    read = (m if isinstance(m, Metric) else read_metric(m) for m in metrics)
    cutoffs = (getattr(metric, LETTER, None) for metric in read)
    deepest = max((k for k in cutoffs if isinstance(k, int)), default=_JUDGED_AT)
    return (f"judged@{deepest}",)


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
    # A judge that was handed over as the matcher is asked itself.
    given = {} if judge is None else {JUDGED: judge}
    default = JUDGED if match == JUDGED else str(read_matcher(match))
    if isinstance(match, Matcher):
        # Two judges, each with its own metrics, are told apart by name.
        default += " (match)" if given.get(default, match) is not match else ""
        given[default] = match
    measures: dict[str, Measure] = {}
    matchers: dict[str, Matcher] = {}
    for asked in metrics:
        measure = read_measure(asked, default, policies.profile)
        name = measure.matcher
        if name not in matchers:
            matchers[name] = given[name] if name in given else read_matcher(name)
        matchers[name].check(measure.metric.name)
        measures[measure.label] = measure.with_threshold(policies.threshold)
    return Plan(tuple(measures.values()), matchers, default, policies)


def _own_k(
    plan: Plan, gold: Gold, facts: Mapping[str, Query], k: int | None
) -> Ints | None:
    """Each query's cutoff for the letter k: its own, else the caller's, else 5."""
    if k is not None:
        # NumPy's integers are integers too; True and False are not.
        integral = isinstance(k, Integral) and not isinstance(k, bool)
        if not integral or not 0 < k < _TOO_DEEP:
            raise ParameterError("evaluate", LETTER, "an integer >= 1", k)
    if not plan.own_k:
        if k is not None:
            raise UsageError(
                f"k = {k} changes nothing: no metric is spelled with the letter, as in "
                f"recall@k; for all queries alike, recall@{k} does"
            )
        return None
    default = DEFAULT_K if k is None else k
    own = (facts[q].k if q in facts else None for q in gold.queries)
    return np.array([default if mine is None else mine for mine in own], np.int64)
