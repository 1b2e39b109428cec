"""The front door: score a run against gold."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from inspect import signature
from math import isfinite, isnan
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

import numpy as np

from karat.data.arrays import Bools
from karat.data.gold import Gold
from karat.data.matches import Matches, in_order
from karat.data.policies import Policies, policies_for
from karat.data.queries import Query
from karat.data.runs import Document, Notice, Run
from karat.data.tables import counted
from karat.errors import WITHOUT_LABELS, MismatchError, UnknownNameError, UsageError
from karat.matching import AUTO, Matcher
from karat.matching.to_hits import no_common_query
from karat.metrics import Metric, split_metrics
from karat.planning import (
    DEFAULT_METRICS,
    Plan,
    Prepared,
    kind_of,
    make_plan,
    own_cutoffs,
    prepare,
    read_once,
)
from karat.reading.meaning.aliases import FIELDS
from karat.reading.meaning.documents import INSIDE
from karat.reading.pair import pair
from karat.reading.readers import read, read_queries
from karat.results.evaluation import Evaluation
from karat.results.scores import read_measure, score_measures
from karat.version import __version__

if TYPE_CHECKING:
    from karat.retrieving.retrieve import RetrieveOptions

_KEPT = 5

P = ParamSpec("P")
T = TypeVar("T")

_OWN = {"retriever", "name", "keep", "retrieving"}

# How many documents a retriever is asked for at least.
_DEPTH = 20
# What a mapping may name in the answers of a retriever.
_OF_ANSWERS = {"retrieved", *INSIDE} - {"grade"}


def evaluate(  # noqa: PLR0913
    run: Any = None,
    gold: Any = None,
    *,
    retriever: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    match: str | Matcher = AUTO,
    judge: Any = None,
    k: int | None = None,
    profile: str | None = None,
    undefined: str | None = None,
    missing: str | None = None,
    extra: str | None = None,
    duplicates: str | None = None,
    identical: str | None = None,
    ties: str | None = None,
    order: str | None = None,
    threshold: float | None = None,
    depth: int | None = None,
    judged_only: bool | None = None,
    force: bool | None = None,
    mapping: Mapping[str, str] | None = None,
    queries: Any = None,
    corpus: Any = None,
    judged: bool = False,
    name: str | None = None,
    keep: int | None = None,
    **retrieving: Unpack["RetrieveOptions"],
) -> Evaluation:
    """Score what was retrieved against what should have been.

    Args:
        run: `{query: {document: score}}`, `{query: [document, ...]}`, a list of lists,
            a list of samples, a path, a DataFrame or a `Run`.
        gold: `{query: {document: grade}}`, `{query: [document, ...]}`, a list of lists,
            a path, a DataFrame or a `Gold`; None when the samples carry their own.
        retriever: in place of a run, what `retrieve` takes: it is asked the `queries`
            for as many documents as the deepest metric reads, and for 20 at least;
            `mapping` is about its answers, too.
        metrics: spellings such as `"ndcg@10"`, or metric instances.
        match: how a document satisfies a gold item; `auto` goes by what gold holds.
        judge: who says which document supports which claim, for `context_recall` and
            `recall[claims]`: the name of a model, a function from prompt to reply, a
            client, or `karat.extend.Claims(client, ...)` to say more.
        k: what the letter in `recall@k` means for samples that do not say (else 5).
        profile: a named set of policies, such as `trec_eval-10`.
        undefined: `skip`, `zero` or `error`; natively `skip`.
        missing: gold queries the run lacks: `zero`, `skip` or `error`; natively `zero`.
        extra: run queries without gold: `ignore` or `error`; natively `ignore`. What
            is ignored in a mapping of scores is not checked either: looking at it all
            would take longer than the evaluation.
        duplicates: `first`, `collapse`, `keep` or `error`; natively `first`.
        identical: documents that have the id of their query, by the matcher `id`:
            `keep` or `ignore`; natively `keep`.
        ties: `trec` or `input`; natively `trec`.
        order: `ascending` ranks small scores first, such as distances; `descending`
            large ones, also in lists; natively lists are ranked as given and scores
            descending.
        threshold: the smallest grade that counts as relevant; natively any positive.
        depth: read only this many documents of each ranking; default: all.
        judged_only: remove documents without any label before ranking, which gives
            the condensed lists of incomplete judgements.
        force: score even when no gold id occurs anywhere in the run.
        mapping: our field or column name -> theirs, as in `{"retrieved": "hits"}`,
            where the inference should not decide.
        queries: texts and tags of the queries, where they have a file or mapping of
            their own.
        corpus: texts of the documents by id, a mapping or a file, for runs of ids.
        judged: also `judged@k`, where gold holds documents judged non-relevant.
        name: how reports call the run; default: its file name, or `run`.
        keep: how many of each query's top documents the result keeps; natively 5 where
            texts were matched, else none.
        retrieving: how a retriever is asked, as `retrieve` takes it: `concurrency`,
            `version`, `output`, `ids`, `encode`, `options`, `headers`, `timeout`,
            `cache` and `settings`.

    Raises:
        UsageError: an unknown or impossible metric, matcher or option.
        DataError: input that cannot be scored, and where it lies.

    Example:
        >>> result = evaluate({"q1": ["b", "a"]}, gold={"q1": ["a"]}, metrics=["rr"])
        >>> result.means
        {'rr': 0.5}
    """
    asked = {**locals()}
    for own in _OWN:
        # Planning is asked for all but what this function sees to itself.
        del asked[own]
    if retriever is not None or retrieving:
        # Only who has a retriever pays for importing what asks it.
        from karat.retrieving.retrieve import retrieve  # noqa: PLC0415

        question = _question(asked, retriever, retrieving)
        asked["run"] = retrieve(**question, name=name)
    return _carry_out(prepare(**asked), name=name, keep=keep)


class Evaluator:
    """Scores any number of runs against one gold, which is read and checked once.

    For training loops, sweeps and tests: what it gives for a run is what `evaluate`
    gives. The gold is copied; later changes to it change nothing here.

    Args:
        gold: what should have been retrieved, as `evaluate` takes it.
        metrics: spellings such as `"ndcg@10"`, or metric instances.
        options: further options of `evaluate`, such as `match`, `profile` or `k`.

    Raises:
        UsageError: an unknown metric or option.
        DataError: gold that cannot be read.

    Example:
        >>> evaluator = Evaluator({"q1": ["a"], "q2": ["c"]}, ["rr"])
        >>> for step in ({"q1": ["b", "a"]}, {"q1": ["a"], "q2": ["c"]}):
        ...     print(evaluator.evaluate(step).means)
        {'rr': 0.25}
        {'rr': 1.0}
    """

    def __init__(
        self,
        gold: Any,
        metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
        **options: Any,
    ) -> None:
        check_options("Evaluator", options, refused=("keep",))
        self._asked = read_once({**options, "gold": gold, "metrics": metrics})
        if gold is None:
            raise UsageError(
                f"no gold: it must be given apart from the runs; {WITHOUT_LABELS}"
            )
        self._asked["gold"] = self._asked["gold"].copy()

    def evaluate(
        self, run: Any, *, name: str | None = None, keep: int | None = None
    ) -> Evaluation:
        """What a run scored: what `evaluate` gives for it and this gold.

        Args:
            run: what was retrieved, as `evaluate` takes it.
            name: how reports call the run; default: its file name, or `run`.
            keep: how many of each query's top documents the result keeps, as there.
        """
        prepared = prepare(run, **self._asked)
        return _carry_out(prepared, name=name, keep=keep)


def row_scorer(
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    *,
    match: str | Matcher = "id",
    k: int | None = None,
    **policies: Any,
) -> Callable[[Any, Any], dict[str, float | None]]:
    """A function that scores one row, for the loops of other tools.

    It takes what was retrieved for one query and what should have been, and gives each
    metric's score, which is what `evaluate` gives that query; None where it is
    undefined. It pickles, and reads the metrics once.

    Args:
        metrics: spellings such as `"ndcg@10"`, or metric instances.
        match: how a document satisfies a gold item. One row says too little to infer
            it from: texts need `exact`, `contains`, `span` or another matcher's name.
        k: what the letter in `recall@k` means (else 5).
        policies: as `evaluate` takes them: `profile`, `duplicates`, `depth` ...

    Raises:
        UsageError: an unknown metric, matcher or policy.

    Example:
        >>> score = row_scorer(["recall@2", "rr"])
        >>> score(["b", "a", "c"], ["a", "d"])
        {'recall@2': 0.5, 'rr': 0.5}
        >>> score(["b"], [])
        {'recall@2': None, 'rr': None}
    """
    # A query that finds nothing is an ordinary row, and no sign of other ids.
    rules = policies_for(**{"profile": None, "force": True, **policies})
    plan = make_plan(split_metrics(metrics), match, None, rules)
    own_cutoffs(plan, Gold(), {}, k)
    return partial(_score_row, plan, kind_of(match), k)


def _score_row(
    plan: Plan, kind: str | None, k: int | None, retrieved: Any, expected: Any
) -> dict[str, float | None]:
    listed = kind == "documents" and isinstance(expected, list | tuple | set)
    if listed and all(type(one) is str for one in expected):
        # Where strings are ids, grades leave nothing to find out about them.
        expected = dict.fromkeys(expected, 1.0)
    both = pair({"row": retrieved}, {"row": expected}, kind=kind)
    own_k = own_cutoffs(plan, both.gold, both.facts, k)
    found = plan.match(both.run, both.gold, own_k, both.gold_names)
    columns = score_measures(plan.measures, found, ["row"], plan.policies, own_k)
    scores = ((name, float(column.scores[0])) for name, column in columns.items())
    return {name: None if isnan(score) else score for name, score in scores}


def check_options(
    owner: str, options: Iterable[str], refused: Iterable[str] = ()
) -> None:
    """Refuse what is no option of `evaluate`, under the name of who was called."""
    known = {*(evaluate.__kwdefaults__ or ())} - {"name", "retriever", *refused}
    for name in options:
        if name not in known:
            raise UnknownNameError(f"option of {owner}", name, known)


def _check_option(name: str, retriever: Any) -> None:
    """Refuse an option that is unknown, or that needs a retriever."""
    from karat.retrieving.retrieve import RetrieveOptions  # noqa: PLC0415

    known = RetrieveOptions.__annotations__
    if name == "qrels":
        raise UsageError("qrels are called gold here: pass them as gold=")
    if name not in known:
        names = [*(evaluate.__kwdefaults__ or ()), *known]
        raise UnknownNameError("option of evaluate", name, names)
    if retriever is None:
        raise UsageError(f"{name} is about a retriever: pass one as retriever=")


def _question(
    options: dict[str, Any], retriever: Any, retrieving: Mapping[str, Any]
) -> dict[str, Any]:
    """What `retrieve` is called with; gold is read before anything is asked in vain."""
    for name in retrieving:
        _check_option(name, retriever)
    if options["run"] is not None:
        raise UsageError("run and retriever are one too many: pass either")
    if options["gold"] is None:
        raise UsageError("a retriever needs gold=: what it should retrieve")
    if options["queries"] is None:
        raise UsageError("a retriever needs queries=: texts by id, a list, or a file")
    mapping = options["mapping"] or {}
    for name in mapping:
        if name not in FIELDS:
            raise UnknownNameError("field", name, FIELDS)
    queries = options["queries"] = read_queries(options["queries"])
    truth = options["gold"] = read(
        options["gold"], "gold", mapping=mapping, shared=True
    )
    wanted = truth.gold.queries if truth.gold else ()
    if queries and queries.keys().isdisjoint(wanted) and not options["force"]:
        raise no_common_query(None, [*queries], wanted)
    metrics = split_metrics(options["metrics"])
    cutoffs = (read_measure(metric, AUTO).k for metric in metrics)
    own = [q.k for q in queries.values() if q.k is not None]
    depths = (k for k in cutoffs if isinstance(k, int))
    return {
        **retrieving,
        "retriever": retriever,
        "queries": queries,
        "k": max([_DEPTH, *own, options["k"] or 0, *depths]),
        "mapping": {n: theirs for n, theirs in mapping.items() if n in _OF_ANSWERS},
    }


def _async(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """The same function for async code; scoring never blocks the event loop.

    A retriever is asked in the caller's own loop, to which its connections belong.
    """

    @wraps(function)
    async def twin(*args: P.args, **options: P.kwargs) -> T:
        # Most callers never need an event loop, and importing one is slow.
        import asyncio  # noqa: PLC0415

        bound = signature(function).bind(*args, **options)
        bound.apply_defaults()
        named = bound.arguments
        retrieving = named.pop("retrieving")
        if named["retriever"] is not None:
            from karat.retrieving.retrieve import aretrieve  # noqa: PLC0415

            question = _question(named, named.pop("retriever"), retrieving)
            named["run"] = await aretrieve(**question, name=named["name"])
            retrieving = {}
        call = partial(function, **named, **retrieving)
        return await asyncio.to_thread(call)

    return twin


aevaluate = _async(evaluate)


def _carry_out(prepared: Prepared, *, name: str | None, keep: int | None) -> Evaluation:
    plan, pair, own_k = prepared
    run, gold, facts, noticed, fields, names = pair
    retrieval = run.retrieval
    queries = gold.queries
    found = plan.match(run, gold, own_k, names)
    if retrieval.failures:
        found = _with_failures(found, queries, retrieval.failures)
    if "error" in {plan.policies.missing, plan.policies.extra}:
        _refuse(plan.policies, queries, found, run)
    seen = _run_notices(run, gold, plan.policies, found)
    by_id = plan.matchers.keys() == {"id"}
    texts = by_id or all(getattr(one, "texts", True) for one in plan.matchers.values())
    if keep is None:
        # Who matched by texts has read the whole run already, and looks at it next.
        keep = _KEPT if texts and not by_id else 0
    notices = [*noticed, *seen]
    provenance: dict[str, Any] = {}
    for matches in found.values():
        notices += matches.notices
        provenance |= matches.provenance
    # Plain labels are what the matcher of ids looked for: it has them already.
    bare = gold.is_plain and "id" in found and not (keep and gold.texts)
    return Evaluation(
        run=name or run.name,
        gold=gold.name,
        queries=queries,
        columns=score_measures(plan.measures, found, queries, plan.policies, own_k),
        missing=next(iter(found.values())).missing,
        policies=plan.policies,
        matchers=dict(map(attrgetter("label", "matcher"), plan.measures)),
        matches=found,
        default_matcher=plan.default_matcher,
        provenance={
            "karat": __version__,
            "run": run.name,
            "gold": gold.name,
            **fields,
            **provenance,
            **run.provenance,
        },
        facts={q: _plain(facts[q]) for q in queries if q in facts} if facts else {},
        notices=in_order(notices),
        labelled_by=gold.labellers(),
        own_k=own_k,
        kept=_top_documents(run, plan.policies, queries, keep) if keep else {},
        labels=None if bare or not texts else gold.copy(),
        fingerprints=() if texts else gold.fingerprints(queries),
        latency=None if retrieval.latency is None else retrieval.latency.of(queries),
    )


def _with_failures(
    found: Mapping[str, Matches], queries: Sequence[str], reasons: Mapping[str, str]
) -> dict[str, Matches]:
    """A query that the retriever failed at is neither missing nor matched."""
    failed = {n: reasons[query] for n, query in enumerate(queries) if query in reasons}
    there: Bools = np.ones(len(queries), np.bool_)
    there[[*failed]] = False
    return {
        name: replace(
            matches,
            missing=matches.missing & there,
            failures={**matches.failures, **failed},
        )
        for name, matches in found.items()
    }


def _run_notices(
    run: Run, gold: Gold, policies: Policies, found: Mapping[str, Matches]
) -> tuple[Notice, ...]:
    """Ties, duplicates and the like, as a matcher counted them, or counted now."""
    for matches in found.values():
        if matches.run_notices is not None:
            return matches.run_notices
    labels = {query: gold.documents.get(query, {}) for query in gold.queries}
    return run.notices(labels, policies)


def _plain(fact: Query) -> Query:
    """What is known of a query, as far as nobody can change it later."""
    if not fact.metadata:
        return fact
    simple = {
        name: value
        for name, value in fact.metadata.items()
        if isinstance(value, str | int)
        or (isinstance(value, float) and isfinite(value))
    }
    return replace(fact, metadata=simple)


def _top_documents(
    run: Run, policies: Policies, queries: Sequence[str], keep: int
) -> dict[str, tuple[Document, ...]]:
    wanted, kept = {*queries}, {}
    for query, documents in run.rankings(policies):
        if query in wanted:
            kept[query] = tuple(
                replace(document, metadata={}) if document.metadata else document
                for document in documents[:keep]
            )
    return kept


def _refuse(
    policies: Policies,
    queries: Sequence[str],
    found: Mapping[str, Matches],
    run: Run,
) -> None:
    first = next(iter(found.values()))
    if policies.missing == "error" and first.missing.any():
        raise MismatchError(
            "the run has no results for "
            + counted(int(first.missing.sum()), "gold query"),
            path=run.name,
            query=queries[int(np.flatnonzero(first.missing)[0])],
            hint="missing='zero' (--missing zero) scores them 0, 'skip' omits them",
        )
    if policies.extra == "error" and first.extra:
        raise MismatchError(
            f"{counted(first.extra, 'query')} of the run "
            f"{'has' if first.extra == 1 else 'have'} no gold",
            path=run.name,
            hint="extra='ignore' (--extra ignore) scores the others",
        )
