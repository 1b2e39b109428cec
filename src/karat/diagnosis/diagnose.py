"""Diagnose a run: the cause of every miss, and what would win most."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from karat.data.arrays import Bools, Floats, Ints, count_by, ratio, running_sum, sum_by
from karat.data.queries import DEFAULT_K
from karat.data.tables import counted, number
from karat.diagnosis.causes import examine, not_examined
from karat.diagnosis.diagnosis import CAUSES, Diagnosis, Miss, ToDo
from karat.diagnosis.evidence import (
    DEPTH,
    Evidence,
    check_corpus,
    corpus_texts,
    gold_of,
)
from karat.diagnosis.headroom import Bounds, bounds_of, headroom, ideal
from karat.diagnosis.run_findings import detect, run_findings
from karat.diagnosis.slices import Slice, find_slices, query_features
from karat.errors import NoCommonIdError, ParameterError, UsageError
from karat.evaluation import check_options
from karat.leaderboards import evaluation_of
from karat.results.evaluation import Evaluation
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
    name = Path(run).name if isinstance(run, str | Path) else "run"
    notes: list[str] = []
    try:
        result = evaluation_of(name, run, gold, scoring)
    except NoCommonIdError as error:
        # Ids of another form are a cause, and not a reason to stop.
        result = evaluation_of(name, run, gold, {**scoring, "force": True})
        notes.append(error.problem)
    matcher = result.default_matcher
    if matcher not in result.matches:
        raise UsageError(
            "the evaluation was saved without its hits: evaluate the run again"
        )
    if not result.kept:
        notes.append(
            "the evaluation kept no documents, so that nothing is known of what they "
            "say: diagnose the run itself, or evaluate it with keep=100"
        )
    if corpus and matcher.startswith("id"):
        names = {d.id for row in result.kept.values() for d in row if d.id is not None}
        names |= {n for row in gold_of(result).documents.values() for n in row}
        check_corpus(names, corpus)
    notes += (f"{notice.kind}: {notice}" for notice in result.warnings)
    pool = None
    if candidates is not None:
        pool = evaluation_of(
            "candidates", candidates, gold_of(result), {**scoring, "force": True}
        )
    return _Case(result, matcher, k, corpus, pool).diagnosis(notes)


class _Case:
    """One run under examination."""

    def __init__(
        self,
        result: Evaluation,
        matcher: str,
        k: int,
        corpus: Mapping[str, str] | None,
        candidates: Evaluation | None,
    ) -> None:
        self.result, self.matcher, self.k = result, matcher, k
        self.evidence = Evidence(result, matcher, corpus, k, candidates)
        self.gains = self.evidence.gains
        self.hits = self._count(self._within(k))
        self.whole = count_by(self.gains.query, self.gains.size)

    def diagnosis(self, notes: Sequence[str]) -> Diagnosis:
        """All that can be told."""
        result, k, evidence = self.result, self.k, self.evidence
        detections = detect(evidence)
        misses = examine(evidence, detections)
        findings = tuple(run_findings(detections, misses))
        if not len(self.gains.query):
            notes = ["no gold item is relevant, so that none can be missed", *notes]
        parts = self._headroom(misses)
        unjudged = self._unjudged()
        texts = {m.query: evidence.question(m.query) for m in misses}
        return Diagnosis(
            run=result.run,
            gold=result.gold,
            matcher=self.matcher,
            k=k,
            queries=int(np.count_nonzero(self.whole)),
            relevant=len(self.gains.query),
            recall=self._recall(self.hits),
            findings=findings,
            misses=tuple(misses),
            not_examined=not_examined(evidence) if self.gains.query.size else {},
            todos=tuple(self._todos(misses, {one.kind for one in findings})),
            recall_by_k=tuple(self._curve()),
            coverage_by_tokens=tuple(self._coverage()),
            headroom=parts,
            oracle=self._oracle(parts),
            bounds=unjudged.means() if unjudged else {},
            judged=_mean(unjudged.judged) if unjudged else None,
            label_next=unjudged.next if unjudged else (),
            slices=self._query_slices(),
            document_slices=self._document_slices(),
            notes=tuple(notes),
            texts={query: text for query, text in texts.items() if text},
            provenance={"karat": __version__, "run": result.run, "gold": result.gold},
            evaluation=result,
        )

    def _query_slices(self) -> tuple[Slice, ...]:
        rows = zip(self.result.queries, self.whole.tolist(), strict=True)
        features = (query_features(self.result.facts.get(q), n) for q, n in rows)
        return find_slices(ratio(self.hits, self.whole), features)

    def _document_slices(self) -> tuple[Slice, ...]:
        """The same of gold documents, each of which was found or not."""
        if not self.evidence.ids:
            return ()
        recalls = self._within(self.k).astype(np.float64)
        return find_slices(recalls, map(self.evidence.features.of, self.gains.name))

    def _todos(self, misses: Sequence[Miss], disasters: set[str]) -> list[ToDo]:
        """What to do about each cause: disasters first, then what wins most."""
        places = {query: place for place, query in enumerate(self.result.queries)}
        by_cause: dict[str, list[Miss]] = {}
        for miss in misses:
            by_cause.setdefault(miss.cause, []).append(miss)
        before = self._recall(self.hits) or 0.0
        todos = []
        for cause, own in by_cause.items():
            rows = np.array([places[miss.query] for miss in own])
            after = self.hits + count_by(rows, len(places))
            advice, action = CAUSES[cause].advice, CAUSES[cause].action
            if self.evidence.ids and advice != "higher k":
                # The top k holds k documents, and no more relevant ones.
                after = np.maximum(self.hits, np.minimum(after, self.k))
            best, k, how = self._recall(after) or 0.0, None, "if they are found"
            if cause == "below k":
                # The smallest k that finds nine in ten of them, and whatever else.
                ranks = sorted(miss.needed_k or 0 for miss in own)
                k = ranks[math.ceil(_MOST_OF * len(ranks)) - 1]
                best, how = self._recall_at(k) or 0.0, f"at k = {k}"
            queries = len({miss.query for miss in own})
            sentence = (
                f"{action}: {counted(len(own), 'gold item')} of "
                f"{counted(queries, 'query')} ({cause}), recall {number(before)} -> "
                f"{number(best)} {how}"
            )
            todos.append(
                ToDo(cause, advice, sentence, len(own), queries, best - before, k)
            )
        return sorted(
            todos, key=lambda one: (one.cause not in disasters, -one.wins, -one.misses)
        )

    def _curve(self) -> Iterator[tuple[int, float]]:
        """Recall at growing k, up to where it grows no more."""
        deepest = int(self.gains.rank.max(initial=1))
        steps = {step for step in _STEPS if step < deepest} | {deepest, self.k}
        for k in sorted(steps):
            if (recall := self._recall_at(k)) is not None:
                yield k, recall

    def _headroom(self, misses: Sequence[Miss]) -> dict[str, float]:
        """The mean parts of a perfect nDCG at k, which add up to 1."""
        parts = headroom(self.gains, self.k)
        if self.evidence.corpus is None:
            return parts.means()
        absent = {(m.query, m.item) for m in misses if m.cause == "not in the corpus"}
        query = (self.result.queries[place] for place in self.gains.query.tolist())
        pairs = zip(query, self.gains.name, strict=True)
        there = np.array([pair not in absent for pair in pairs], np.bool_)
        lost = 1.0 - ideal(self.gains, there, self.k)
        return parts.means(candidates=parts.candidates - lost, corpus=lost)

    def _coverage(self) -> Iterator[tuple[int, float]]:
        """The share of gold text that fits in growing numbers of tokens."""
        coverage = self.result.matches[self.matcher].hits.coverage
        if coverage is None or not (coverage.size > 0).any():
            return
        total = running_sum(coverage.query, coverage.tokens)
        most = float(total.max(initial=0.0))
        for budget in _BUDGETS:
            rows = total <= budget
            gold = sum_by(coverage.query[rows], coverage.gold[rows], self.gains.size)
            yield budget, float(np.nanmean(ratio(gold, coverage.size)))
            if budget >= most:
                return

    def _oracle(self, parts: Mapping[str, float]) -> dict[str, float]:
        """What the best order of everything retrieved would score."""
        every = self._count(self.gains.rank > 0)
        recall = self._recall(np.minimum(every, self.k) if self.evidence.ids else every)
        if recall is None:
            return {}
        ndcg = parts["score"] + parts["ordering"] + parts["cutoff"]
        return {"recall": recall, "ndcg": ndcg}

    def _unjudged(self) -> Bounds | None:
        """What unjudged documents leave open, where gold is ids, each an item."""
        evidence = self.evidence
        if not self.evidence.ids or evidence.gold.groups or not evidence.rankings:
            return None
        threshold = self.result.policies.threshold
        labels, rankings = evidence.gold.documents, evidence.rankings
        return bounds_of(labels, rankings, evidence.depth, self.k, threshold)

    def _within(self, k: int) -> Bools:
        return (self.gains.rank > 0) & (self.gains.rank <= k)

    def _count(self, rows: Bools) -> Ints:
        return count_by(self.gains.query[rows], self.gains.size)

    def _recall_at(self, k: int) -> float | None:
        return self._recall(self._count(self._within(k)))

    def _recall(self, hits: Ints) -> float | None:
        return _mean(ratio(hits, self.whole))


def _mean(values: Floats) -> float | None:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else None
