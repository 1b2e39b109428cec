"""Planning: from what a caller asks for to what is carried out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Ints
from karat.data.gold import Gold
from karat.data.matches import Matches
from karat.data.policies import Policies, policies_for
from karat.data.queries import DEFAULT_K, Query
from karat.data.runs import Notice, Run
from karat.data.spelling import LETTER
from karat.errors import DataError, ParameterError, UsageError
from karat.matching import AUTO, JUDGED, Matcher, choose, read_matcher
from karat.metrics import Metric, split_metrics
from karat.reading.meaning.aliases import ALIASES
from karat.reading.pair import Pair, pair
from karat.reading.readers import read, read_corpus, read_queries
from karat.results.scores import Measure, read_measure

DEFAULT_METRICS = ("ndcg@10", "rr", "recall@5", "precision@5", "hit@5")

_JUDGED_AT = 10
_EXPECTED = ALIASES["expected"].split()

_SWITCHES = {field.name for field in fields(Policies)}

# No ranking is so long, and what counts ranks holds no more.
_TOO_DEEP = 10**9


@dataclass(frozen=True)
class Plan:
    """What to compute."""

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
        return any(measure.k == LETTER for measure in self.measures)

    def match(
        self,
        run: Run,
        gold: Gold,
        own_k: Ints | None,
        names: Mapping[str, str],
    ) -> dict[str, Matches]:
        """What each matcher found, by its spelling."""
        found = {}
        for name, matcher in self.matchers.items():
            policies = self.policies_of(name, own_k)
            judged = self.judged[name]
            matches = matcher.match(run, gold, judged=judged, policies=policies)
            # A judge says itself what it could not judge.
            lacking = _without_gold(matcher, matches, gold, names)
            if not matcher.costly and lacking:
                matches = replace(matches, notices=(*matches.notices, lacking))
            found[name] = matches
        return found

    def policies_of(self, matcher: str, own_k: Ints | None) -> Policies:
        """The rules for a matcher: a costly one reads no deeper than is asked for."""
        if not self.matchers[matcher].costly:
            return self.policies
        depths = [_depth(m, own_k) for m in self.measures if m.matcher == matcher]
        if None in depths:
            return self.policies
        deepest = max(filter(None, depths))
        depth = min(deepest, self.policies.depth or deepest)
        return replace(self.policies, depth=depth)


def _depth(measure: Measure, own_k: Ints | None) -> int | None:
    """How many documents of a ranking a measure reads at most; None for all."""
    if isinstance(measure.k, str):
        return None if own_k is None else int(own_k.max(initial=1))
    return measure.k


def _without_gold(
    matcher: Matcher, matches: Matches, gold: Gold, names: Mapping[str, str]
) -> Notice | None:
    """A notice where a matcher has nothing to match: why its metrics say nothing."""
    count = matches.hits.size - int(np.count_nonzero(matches.hits.gold_count))
    if not count:
        return None
    kinds = " or ".join(matcher.reads)
    have = f"no {kinds} in gold, which matching by {matcher.name} needs"
    if "passages" in matcher.reads and gold.kinds() == ("documents",):
        have += ": corpus=... (--corpus FILE) gives the texts of the gold's documents"
    if "answers" in matcher.reads and gold.references:
        theirs = names.get("reference", "reference")
        have += f": --map answers={theirs} (mapping=) takes {theirs!r} for the answer"
    text, one = f"queries have {have}", f"query has {have}"
    return Notice(f"no {kinds}", count, text, one=one)


class Prepared(NamedTuple):
    """All that an evaluation needs."""

    plan: Plan
    pair: Pair
    own_k: Ints | None


def read_once(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `prepare` for several runs: checked, and what they share read."""
    asked = dict(options)
    policies_for(**{"profile": None, **{n: asked[n] for n in _SWITCHES & {*asked}}})
    if "metrics" in asked:
        asked["metrics"] = split_metrics(asked["metrics"])
        for metric in asked["metrics"]:
            read_measure(metric, AUTO, asked.get("profile"))
    if asked.get("gold") is not None:
        mapping = asked.get("mapping")
        asked["gold"] = read(asked["gold"], "gold", mapping=mapping, shared=True)
    for name, reader in (("queries", read_queries), ("corpus", read_corpus)):
        if asked.get(name) is not None and not isinstance(asked[name], Mapping):
            asked[name] = reader(asked[name])
    return asked


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
    both = pair(
        run,
        gold,
        mapping=mapping,
        queries=queries,
        order=order,
        corpus=corpus,
        kind=kind_of(match),
        ties=policies.ties,
    )
    if judged:
        spellings += _judged(both.gold, spellings)
    if judge is not None:
        if not isinstance(judge, Matcher):
            # Only who has a judge pays for importing what asks models.
            from karat.judging.claims import Claims  # noqa: PLC0415

            judge = Claims(judge)
        judge = judge.informed(both.facts)
        both = both._replace(gold=with_references(both.gold, both.gold_names))
    if isinstance(match, Matcher):
        match = match.informed(both.facts)
        judge = match if judge is None and match.name == JUDGED else judge
    matcher = _choose(both.gold, both.run, spellings) if match == AUTO else match
    # A plan with a judge holds a client, which must not outlive the evaluation.
    make = make_plan if judge is None else make_plan.__wrapped__
    plan = make(spellings, matcher, judge, policies)
    own_k = own_cutoffs(plan, both.gold, both.facts, k)
    if both.run.retrieval.k is not None:
        _check_depth(plan, own_k, both.run.retrieval.k)
    return Prepared(plan, both, own_k)


def with_references(gold: Gold, mapping: Mapping[str, str]) -> Gold:
    """The gold of a judge, to whom an expected output is the reference answer."""
    if gold.references or gold.claims or mapping.get("answers") not in _EXPECTED:
        return gold
    single = {query: row[0] for query, row in gold.answers.items() if len(row) == 1}
    return replace(gold, references={q: str(one.text) for q, one in single.items()})


def _check_depth(plan: Plan, own_k: Ints | None, depth: int) -> None:
    """Refuse a metric that reads more documents than the retriever was asked for."""
    for measure in plan.measures:
        deepest = _depth(measure, own_k)
        if deepest and deepest > depth:
            raise UsageError(
                f"{measure.label} reads {deepest} documents, and the retriever was "
                f"asked for {depth}: retrieve with k={deepest} (-k {deepest})"
            )


def kind_of(match: str | Matcher) -> str | None:
    """Whether the caller's matcher compares ids or texts, if one is named."""
    if match == AUTO or str(match).startswith(JUDGED):
        return None
    kinds = read_matcher(match).reads
    return next((kind for kind in ("passages", "documents") if kind in kinds), None)


def _judged(gold: Gold, metrics: tuple[str | Metric, ...]) -> tuple[str, ...]:
    """`judged@k` for the deepest cutoff, if gold says of some that they do not help."""
    if (gold.columns.grade > 0).all():
        return ()
    cutoffs = (read_measure(metric, AUTO).k for metric in metrics)
    deepest = max((k for k in cutoffs if isinstance(k, int)), default=_JUDGED_AT)
    return (f"judged@{deepest}",)


def _choose(gold: Gold, run: Run, metrics: tuple[str | Metric, ...]) -> str | Matcher:
    """What `auto` stands for; any matcher does where each metric brings its own."""
    if gold.kinds() in {(), (JUDGED,)} and (gold.references or gold.claims):
        return JUDGED
    try:
        return choose(gold, run)
    except DataError:
        measures = (read_measure(metric, AUTO) for metric in metrics)
        if any(measure.matcher == AUTO for measure in measures):
            raise
        return read_matcher("id")


@lru_cache(maxsize=256)
def make_plan(
    metrics: tuple[str | Metric, ...],
    match: str | Matcher,
    judge: Matcher | None,
    policies: Policies,
) -> Plan:
    """The plan of metrics, some of which may bring matchers of their own."""
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
        measure = measure.with_threshold(policies.threshold)
        if measures.setdefault(measure.label, measure).metric != measure.metric:
            raise UsageError(
                f"two metrics are spelled {measure.label}: give yours another name"
            )
    return Plan(tuple(measures.values()), matchers, default, policies)


def own_cutoffs(
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
                f"recall@k; recall@{k} is the same k for all queries"
            )
        return None
    default = DEFAULT_K if k is None else k
    own = (facts[q].k if q in facts else None for q in gold.queries)
    return np.array([default if mine is None else mine for mine in own], np.int64)
