"""Diagnose a run: the cause of every miss, and what would win most."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from karat.data.arrays import Floats, Ints, count_by, ratio, running_sum, sum_by
from karat.data.queries import DEFAULT_K
from karat.data.tables import counted, number
from karat.diagnosis.causes import examine, not_examined
from karat.diagnosis.diagnosis import CAUSES, Diagnosis, Miss, RunFinding, ToDo
from karat.diagnosis.evidence import DEPTH, RunEvidence, check_corpus, corpus_texts
from karat.diagnosis.headroom import bounds_of, headroom, ideal
from karat.diagnosis.run_findings import detect, run_findings
from karat.diagnosis.slices import Slice, document_features, find_slices, query_features
from karat.errors import NoCommonIdError, ParameterError, UsageError
from karat.evaluation import check_options
from karat.leaderboards import evaluation_of, name_of
from karat.results.evaluation import gold_of
from karat.version import __version__

_MOST_OF = 0.9
_BUDGETS = (100, 250, 500, 1000, 2000, 4000, 8000, 16000, 32000)
_STEPS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)


def diagnose(
    run: Any,
    gold: Any = None,
    *,
    k: int = DEFAULT_K,
    corpus: Any = None,
    candidates: Any = None,
    **options: Any,
) -> Diagnosis:
    """Find out why relevant gold is not in the top k, and what would find it.

    Every missed gold item gets one cause with its evidence. A cause that needs what is
    not given is not examined, and the result says so.

    Args:
        run: a run in any form that `evaluate` takes, an evaluation, or the path of a
            saved one. An evaluation shows as much as it kept (`keep=`).
        gold: what should have been retrieved; None for evaluations and for samples
            that carry their own.
        k: the cutoff.
        corpus: texts of all documents by id, a mapping or a file.
        candidates: what the reranker was given, in any form of a run.
        options: the other options of `evaluate`, such as `match`, `queries`,
            `threshold` and `mapping`.

    Raises:
        UsageError: an unknown or impossible option.
        DataError: input that cannot be scored, and where it lies.

    Example:
        >>> found = diagnose({"q": ["b", "c", "a"]}, gold={"q": ["a"]}, k=2)
        >>> found.misses[0].cause, found.misses[0].needed_k
        ('below k', 3)
    """
    if type(k) is not int or k < 1:
        raise ParameterError("diagnose", "k", "an integer >= 1", k)
    if "metrics" in options:
        raise UsageError("diagnose takes no metrics: it looks at recall@k, so say k=")
    check_options("diagnose", options, refused=("judged",))
    corpus = corpus_texts(corpus)
    metrics = [f"recall@{k}", f"ndcg@{k}", "rr"]
    scoring = {"metrics": metrics, "keep": DEPTH, **options, "corpus": corpus}
    notes: list[str] = []
    try:
        result = evaluation_of(name_of(run), run, gold, scoring)
    except NoCommonIdError as error:
        # Ids of another form are a cause, and not a reason to stop.
        result = evaluation_of(name_of(run), run, gold, {**scoring, "force": True})
        notes.append(error.problem)
    matcher = result.default_matcher
    if matcher not in result.matches:
        raise UsageError(
            "the evaluation was saved without its hits: evaluate the run again"
        )
    if not result.kept:
        notes.append(
            "the evaluation kept no documents, so their texts are not known: diagnose "
            "the run itself, or evaluate it with keep=100"
        )
    if corpus and matcher.startswith("id"):
        names = {d.id for row in result.kept.values() for d in row if d.id is not None}
        names |= {n for row in gold_of(result).documents.values() for n in row}
        check_corpus(names, corpus)
    notes += map("{0.kind}: {0}".format, result.warnings)
    pool = None
    if candidates is not None:
        pool = evaluation_of(
            "candidates", candidates, gold_of(result), {**scoring, "force": True}
        )
    evidence = RunEvidence(result, corpus, k, pool)
    detections = detect(evidence)
    misses = examine(evidence, detections)
    findings = tuple(run_findings(detections, misses))
    if not evidence.gains.name:
        notes.insert(0, "no gold item is relevant, so none can be missed")
    parts, texts = _headroom(evidence, misses), evidence.questions
    # Where gold is ids, each an item: what is unjudged leaves something open.
    plain = evidence.ids and evidence.rankings and not evidence.gold.groups
    labels, threshold = evidence.gold.documents if plain else {}, evidence.threshold
    unjudged = bounds_of(labels, evidence.rankings, evidence.depth, k, threshold)
    return Diagnosis(
        run=result.run,
        gold=result.gold,
        matcher=matcher,
        k=k,
        queries=int(np.count_nonzero(evidence.relevant)),
        relevant=len(evidence.gains.name),
        recall=_recall(evidence, evidence.hits_within(k)),
        findings=findings,
        misses=tuple(misses),
        not_examined=not_examined(evidence) if evidence.gains.name else {},
        todos=tuple(_todos(evidence, misses, findings)),
        recall_by_k=tuple(_curve(evidence)),
        coverage_by_tokens=tuple(_coverage(evidence)),
        headroom=parts,
        oracle=_oracle(evidence, parts),
        bounds=unjudged.means(),
        judged=_mean(unjudged.judged),
        label_next=unjudged.next,
        slices=_query_slices(evidence),
        document_slices=_document_slices(evidence),
        notes=tuple(notes),
        texts={m.query: texts[m.query] for m in misses if m.query in texts},
        provenance={"karat": __version__, "run": result.run, "gold": result.gold},
        evaluation=result,
    )


def _query_slices(evidence: RunEvidence) -> tuple[Slice, ...]:
    facts = map(evidence.facts.get, evidence.items)
    features = map(query_features, facts, evidence.relevant.tolist())
    recalls = ratio(evidence.hits_within(evidence.k), evidence.relevant)
    return find_slices(recalls, features)


def _document_slices(evidence: RunEvidence) -> tuple[Slice, ...]:
    """The same of gold documents, each of which was found or not."""
    if not evidence.ids:
        return ()
    sources: dict[str, str] = {}
    for document in chain.from_iterable(evidence.rankings.values()):
        if document.id and document.source:
            sources[document.id] = document.source
    features = document_features(evidence.gains.name, evidence.corpus or {}, sources)
    return find_slices(evidence.gains.within(evidence.k).astype(np.float64), features)


def _todos(
    evidence: RunEvidence, misses: Sequence[Miss], findings: Sequence[RunFinding]
) -> list[ToDo]:
    """What to do about each cause: findings first, then what wins most."""
    places = {query: place for place, query in enumerate(evidence.items)}
    by_cause: dict[str, list[Miss]] = {}
    for miss in misses:
        by_cause.setdefault(miss.cause, []).append(miss)
    hits = evidence.hits_within(evidence.k)
    before = _recall(evidence, hits) or 0.0
    disasters = {*map(attrgetter("kind"), findings)}
    todos = []
    for cause, own in by_cause.items():
        rows = [*map(attrgetter("query"), own)]
        after = hits + count_by(np.array([*map(places.get, rows)]), len(places))
        advice, action = CAUSES[cause].advice, CAUSES[cause].action
        if evidence.ids and advice != "higher k":
            # The top k holds k documents, and no more relevant ones.
            after = np.maximum(hits, np.minimum(after, evidence.k))
        best, k, how = _recall(evidence, after) or 0.0, None, "if they are found"
        if cause == "below k":
            # The smallest k that finds nine in ten of them, and whatever else.
            ranks = sorted(miss.needed_k or 0 for miss in own)
            k = ranks[math.ceil(_MOST_OF * len(ranks)) - 1]
            best = _recall(evidence, evidence.hits_within(k)) or 0.0
            how = f"at k = {k}"
        queries = len({*rows})
        sentence = (
            f"{action}: {counted(len(own), 'gold item')} of "
            f"{counted(queries, 'query')} ({cause}), recall {number(before)} -> "
            f"{number(best)} {how}"
        )
        todos.append(ToDo(cause, advice, sentence, len(own), queries, best - before, k))
    return sorted(
        todos, key=lambda one: (one.cause not in disasters, -one.wins, -one.misses)
    )


def _curve(evidence: RunEvidence) -> Iterator[tuple[int, float]]:
    """Recall at growing k, up to where it grows no more."""
    deepest = int(evidence.gains.rank.max(initial=1))
    for k in sorted({*_STEPS, deepest, evidence.k}):
        if k > deepest and k != evidence.k:
            continue
        if (recall := _recall(evidence, evidence.hits_within(k))) is not None:
            yield k, recall


def _headroom(evidence: RunEvidence, misses: Sequence[Miss]) -> dict[str, float]:
    """The mean parts of a perfect nDCG at k, which add up to 1."""
    gains, k = evidence.gains, evidence.k
    parts = headroom(gains, k)
    if evidence.corpus is None:
        return parts.means()
    absent = {(m.query, m.item) for m in misses if m.cause == "not in the corpus"}
    queries = [*evidence.items]
    pairs = zip((queries[n] for n in gains.query.tolist()), gains.name, strict=True)
    there = np.array([pair not in absent for pair in pairs], np.bool_)
    lost = 1.0 - ideal(gains, there, k)
    return parts.means(candidates=parts.candidates - lost, corpus=lost)


def _coverage(evidence: RunEvidence) -> Iterator[tuple[int, float]]:
    """The share of gold text that fits in growing numbers of tokens."""
    coverage = evidence.matches.hits.coverage
    if coverage is None or not (coverage.size > 0).any():
        return
    total = running_sum(coverage.query, coverage.tokens)
    most = float(total.max(initial=0.0))
    for budget in _BUDGETS:
        rows = total <= budget
        gold = sum_by(coverage.query[rows], coverage.gold[rows], len(coverage.size))
        yield budget, float(np.nanmean(ratio(gold, coverage.size)))
        if budget >= most:
            return


def _oracle(evidence: RunEvidence, parts: Mapping[str, float]) -> dict[str, float]:
    """What the best order of everything retrieved would score."""
    every = evidence.hits_within(None)
    recall = _recall(evidence, every.clip(max=evidence.k) if evidence.ids else every)
    if recall is None:
        return {}
    ndcg = parts["score"] + parts["ordering"] + parts["cutoff"]
    return {"recall": recall, "ndcg": ndcg}


def _recall(evidence: RunEvidence, hits: Ints) -> float | None:
    return _mean(ratio(hits, evidence.relevant))


def _mean(values: Floats) -> float | None:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else None
