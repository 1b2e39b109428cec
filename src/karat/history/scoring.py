"""What is stored of an evaluation, and how its rankings are scored again."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, NamedTuple

import numpy as np

from karat.data.gold import Gold
from karat.data.memory_runs import DocumentRun
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Document
from karat.data.spelling import LETTER
from karat.errors import DataError, UsageError
from karat.evaluation import evaluate
from karat.history.gold import StoredGold, gold_for
from karat.history.rankings import read_rankings
from karat.history.schema import from_json
from karat.matching import read_matcher
from karat.results.evaluation import Evaluation
from karat.results.scores import Average, MetricScores, read_measure

_SWITCHES: Final = tuple(
    field.name
    for field in fields(Policies)
    # Rankings are stored in their order.
    if field.name not in {"precision", "ties", "extra", "force"}
)


class Change(NamedTuple):
    """How the mean of a run's metric moved."""

    run: int
    metric: str
    before: float | None
    after: float | None


class StoredScoring(NamedTuple):
    """How a run is scored again: the average of each metric that can be."""

    policies: Policies
    matcher: str
    averages: Mapping[str, Any]


class RunFacts(NamedTuple):
    """What is stored of a run besides rankings; its scores without names of queries."""

    project: int
    depth: int
    scoring: StoredScoring
    scores: Evaluation


def score_again(
    rankings: Mapping[str, Sequence[Document] | None],
    gold: Gold,
    scoring: StoredScoring,
    facts: Mapping[str, Query],
    **options: Any,
) -> Evaluation:
    """What stored rankings score: by name, None where the run lacks the query."""
    return evaluate(
        DocumentRun({n: top for n, top in rankings.items() if top is not None}),
        gold=gold,
        metrics=[*scoring.averages],
        match=scoring.matcher,
        queries=facts,
        force=True,
        **{name: getattr(scoring.policies, name) for name in _SWITCHES},
        **options,
    )


def scoring_of(text: str) -> StoredScoring:
    """How a run is scored again, as it is stored."""
    kinds = tuple[Policies, str, Mapping[str, Average]]
    return StoredScoring(*from_json(kinds, text, "scoring"))


def frozen_columns(result: Evaluation, counts: Sequence[int]) -> dict[str, str]:
    """The metrics by which stored rankings cannot be scored again, and why."""
    first = next(iter(result.matches.values()))
    stored = np.array(counts)
    cut = first.hits.retrieved > stored
    depth = int(stored[cut].min()) if cut.any() else None
    reasons = {}
    for metric, column in result.columns.items():
        measure = read_measure(metric, result.default_matcher, result.policies.profile)
        k = getattr(measure.metric, LETTER, None)
        deepest = max(column.cutoffs, default=None) if k == LETTER else k
        if measure.matcher not in result.matches:
            raise DataError(f"{metric} lacks the matches of {measure.matcher:.80}")
        if result.matches[measure.matcher].verdicts:
            reasons[metric] = "judged by a model"
        elif not has_matcher(measure.matcher):
            reasons[metric] = f"matched by {measure.matcher}, which is not stored"
        elif result.policies.judged_only:
            reasons[metric] = "documents without a label were removed"
        elif result.labels is None and "id" not in result.matches:
            reasons[metric] = "saved without its gold"
        elif depth is not None and not (isinstance(deepest, int) and deepest <= depth):
            reasons[metric] = f"reads deeper than the {depth} documents that are stored"
    return reasons


def has_matcher(spelling: str) -> bool:
    """Whether a spelling is all that a matcher needs."""
    try:
        read_matcher(spelling)
    except UsageError:
        return False
    return True


def bare(result: Evaluation) -> Evaluation:
    """The same without what is stored apart: queries, scores, gold and documents."""
    columns = {
        metric: replace(column, scores=np.zeros(0), queries=())
        for metric, column in result.columns.items()
    }
    less = replace(result, queries=(), columns=columns, matches={}, kept={}, facts={})
    return replace(less, labels=None, fingerprints=(), own_k=None)


def mean_of(column: MetricScores) -> float | None:
    """The mean, if there is one."""
    mean = column.mean
    return None if np.isnan(mean) else mean


def rescore(
    db: sqlite3.Connection,
    project: int,
    queries: Iterable[str],
    only: int | None = None,
) -> tuple[Change, ...]:
    """Score queries again in all runs, or in one, and store what changed."""
    wanted = dict.fromkeys(queries)
    gold = StoredGold(db, project)
    labels, version = gold.of(wanted), gold.version
    moved: dict[tuple[int, str], Change] = {}
    groups = db.execute(
        "select ids, scoring, json_group_array(run.id) from run join query_set on "
        "query_set=query_set.id where run.project=? and (? is null or run.id=?) "
        "group by query_set, scoring",
        (project, only, only),
    ).fetchall()
    for ids, saved, numbers in groups:
        scoring, runs = scoring_of(saved), json.loads(numbers)
        every = enumerate(from_json(tuple[str, ...], ids, "ids"))
        places = {n: query for n, query in every if query in wanted}
        batches: list[Any] = [(runs, place, None) for place in places]
        if len(places) > len(runs):
            # It takes less to go through the runs than through the queries.
            batches = [([run], None, places) for run in runs]
        for part, place, among in batches if scoring.averages else ():
            rankings = {
                f"{ranking.run} {ranking.place}": ranking
                for ranking in read_rankings(db, part, place, among=among)
            }
            if not rankings:
                continue
            names = {name: places[r.place] for name, r in rankings.items()}
            result = score_again(
                {name: ranking.documents for name, ranking in rankings.items()},
                gold_for(labels, names),
                scoring,
                {name: Query(name, k=r.k) for name, r in rankings.items()},
            )
            where = [(r.run, r.place) for r in rankings.values()]
            for change in _patch(db, result, where, scoring.averages, version):
                key = change.run, change.metric
                before = moved.get(key, change).before
                moved[key] = change._replace(before=before)
    changes = sorted(moved.values(), key=lambda change: change.run)
    return tuple(one for one in changes if one.before != one.after)


def _patch(
    db: sqlite3.Connection,
    result: Evaluation,
    where: Sequence[tuple[int, int]],
    averages: Mapping[str, Any],
    version: int,
) -> Iterator[Change]:
    """Put scores into the stored columns: of which run and query is in `where`."""
    for metric, average in averages.items():
        fresh: dict[int, dict[int, float]] = {}
        for (run, place), score in zip(where, result[metric].scores, strict=True):
            fresh.setdefault(run, {})[place] = float(score)
        stored = db.execute(
            "select run, score.value, mean from score join json_each(?) as one on "
            "run=one.value where metric=?",
            (json.dumps([*fresh]), metric),
        ).fetchall()
        for run, value, before in stored:
            scores = np.frombuffer(value, "<f8").copy()
            scores[[*fresh[run]]] = [*fresh[run].values()]
            mean = mean_of(MetricScores(metric, scores, average=average))
            db.execute(
                "update score set value=?, mean=?, version=? where run=? and metric=?",
                (scores.tobytes(), mean, version, run, metric),
            )
            yield Change(run, metric, before, mean)
