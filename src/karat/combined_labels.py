"""People and a judge combined: scores by many labels of a judge and few of people."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from karat.data.arrays import Floats, Ints, sum_by
from karat.data.gold import JUDGES, PEOPLE
from karat.data.intervals import Interval
from karat.data.runs import Labels
from karat.data.tables import DASH, Table, counted
from karat.errors import MismatchError, UsageError
from karat.evaluation import check_options, evaluate
from karat.label_plans import (
    LabelPlan,
    PlannedLabel,
    Rankings,
    labelled_documents,
    pool_digest,
    rankings,
    run_digest,
)
from karat.metrics import Metric, read_metric
from karat.results.evaluation import Evaluation
from karat.results.plain_values import PlainResult
from karat.stats.prediction_powered import (
    FEWEST_LABELLED,
    combined_mean,
    queries_for_width,
)

_METRICS = ("ndcg@10", "recall@10")
_SHOWN = 3
_ROUNDING = 1e-9


@dataclass(frozen=True)
class EstimatedMean:
    """A mean, and how far it may be off; None where nothing varies."""

    mean: float
    interval: Interval | None


@dataclass(frozen=True)
class CombinedScore:
    """What a metric says of a run, or of the difference to the first run.

    Attributes:
        run: its name.
        baseline: the run that it is compared with; empty where it stands alone.
        metric: the spelling.
        judge: by the judge's labels alone, of all queries.
        people: by people's labels alone, of those that were drawn.
        combined: by both.
        weight: how much the judge counts, from 0 to 1.
        correlation: of people's and the judge's scores of the same queries; NaN where
            either never varies, and for pairs.
        labels: how many labels a wanted width takes; None where none is wanted, or
            where all of them would not do.
        undefined: for how many queries the judge's labels give no score.
        unjudged: the share of the documents down to the metric's cutoff that the judge
            did not label; 0 for a difference.
    """

    run: str
    baseline: str
    metric: str
    judge: EstimatedMean
    people: EstimatedMean
    combined: EstimatedMean
    weight: float
    correlation: float
    labels: int | None = None
    undefined: int = 0
    unjudged: float = 0.0


@dataclass(frozen=True)
class CombinedScores(PlainResult):
    """Scores by people and a judge combined, beside those by either alone.

    Attributes:
        scores: of each run and metric, then of each difference to the first run.
        judged: how many queries the judge labelled.
        labelled: how many of them people labelled.
        given: how many labels people gave.
        pairs: whether people labelled single documents; else whole queries.
        width: of the interval that was asked about, if any.
    """

    scores: tuple[CombinedScore, ...]
    judged: int
    labelled: int
    given: int
    pairs: bool = False
    width: float | None = None
    saved_as: ClassVar[str] = "combined scores"

    def tables(self) -> list[Table]:
        """A table for each metric: the runs, then their differences to the first."""
        return [*map(self._table, dict.fromkeys(row.metric for row in self.scores))]

    def _table(self, metric: str) -> Table:
        title = (
            f"{metric}: {counted(self.judged, 'query')} by the judge, {self.labelled} "
            f"of them by people ({counted(self.given, 'label')})"
        )
        columns = ["run", "by", "mean", "95%", "width", "r", "labels"]
        scores = [row for row in self.scores if row.metric == metric]
        wanted = self.width is not None
        rows = [cells for row in scores for cells in _cells(row, labels=wanted)]
        t = "95%: by Student's t, undefined queries being part of the sample"
        width = "width: of the interval, against people alone"
        notes = [
            f"{t}; karat evaluate's may differ",
            f"{width}; r: the correlation of people's and the judge's scores",
        ]
        if self.width is not None:
            notes.append(f"labels: how many give an interval {self.width:g} wide")
        runs = [row for row in scores if not row.baseline]
        undefined = [
            f"{row.run} {self.judged - row.undefined} of {self.judged} "
            f"({row.undefined} undefined)"
            for row in runs
            if row.undefined
        ]
        if undefined:
            notes.append(f"queries by the judge: {', '.join(undefined)}")
        unjudged = [f"{row.run} {row.unjudged:.0%}" for row in runs if row.unjudged]
        if unjudged:
            cutoff = metric.partition("@")[2]
            top = f"the top {cutoff}" if cutoff else "all documents"
            notes.append(f"of {top} not judged, so not relevant: {', '.join(unjudged)}")
        table = Table(columns, rows, title=title, notes=notes, texts=(0, 1))
        return table.without_empty()


def _cells(row: CombinedScore, *, labels: bool) -> list[list[str]]:
    """By the judge, by people and by both, one below the other."""
    form = "{:+.4f}" if row.baseline else "{:.4f}"
    cells = []
    widths = []
    for by in ("judge", "people", "combined"):
        mean, limits = getattr(row, by).mean, getattr(row, by).interval
        low, high = limits or (mean, mean)
        widths.append(high - low)
        shown = " .. ".join(map(form.format, limits)) if limits else DASH
        cells.append(["", by, form.format(mean), shown, "", "", ""])
    cells[0][0] = f"{row.run} - {row.baseline}" if row.baseline else row.run
    if widths[1] and widths[2]:
        cells[2][4] = f"{widths[2] / widths[1] - 1:+.0%}"
    if not math.isnan(row.correlation):
        cells[2][5] = f"{row.correlation:.2f}"
    if labels:
        cells[2][6] = "too many" if row.labels is None else f"{row.labels:,}"
    return cells


def combine_labels(
    runs: Mapping[str, Any],
    *,
    judged: Any,
    people: Any,
    plan: LabelPlan | str | os.PathLike[str],
    metrics: str | Metric | Sequence[str | Metric] = _METRICS,
    width: float | None = None,
    **options: Any,
) -> CombinedScores:
    """Score runs by a judge's labels of all queries and people's of some of them.

    Args:
        runs: what each system retrieved, by name; the others are compared with the
            first.
        judged: the judge's labels, as `evaluate` takes gold.
        people: people's labels of what the plan drew.
        plan: as `plan_labels` made it, or the file it was saved in.
        metrics: spellings; for a plan of pairs, such as add up over documents.
        width: tell how many labels of whole queries an interval this wide takes.
        options: further options of `evaluate`, such as `threshold`.

    Raises:
        MismatchError: labels that the plan did not draw, a plan of another pool, gaps
            in what people labelled, fewer than 10 queries with labels, labels of
            people and of a judge in one file, or runs that no pair was drawn from.
        UsageError: with a plan of pairs, a metric that does not add up or reads deeper
            than pairs were drawn.

    Example:
        >>> import karat
        >>> run = {f"q{n}": ["a", "b"] for n in range(40)}
        >>> judged = {f"q{n}": {"a": 1, "b": 0} for n in range(40)}
        >>> plan = karat.plan_labels(judged, budget=30)
        >>> people = {query: {"a": 1, "b": 0} for query in plan.queries}
        >>> combined = karat.combine_labels(
        ...     {"mine": run}, judged=judged, people=people, plan=plan, metrics="rr"
        ... )
        >>> combined.labelled, combined.scores[0].run
        (15, 'mine')
    """
    check_options("combine_labels", options, refused=("keep", "judged"))
    plan = plan if isinstance(plan, LabelPlan) else LabelPlan.load(plan)
    if plan.pairs and width is not None:
        raise UsageError("width is about whole queries, and the plan is of pairs")
    judges = labelled_documents(judged, PEOPLE)
    peoples = labelled_documents(people, JUDGES)
    if plan.pool != pool_digest(judges):
        raise MismatchError(
            "the plan is of another pool: it was not drawn from these judged labels",
            hint="use the file that karat label plan was called with",
        )
    labels = _drawn_labels(plan, peoples)
    labelled = [*dict.fromkeys(label.query for label in labels)]
    columns, unjudged = [], []
    for name, run in runs.items():
        result = evaluate(run, gold=judges, metrics=metrics, **options)
        shares = {metric: _judged_down_to(metric) for metric in result}
        parts = evaluate(run, gold=judges, metrics=[*shares.values()], **options)
        unjudged += [1 - parts[share].mean for share in shares.values()]
        if plan.pairs:
            ranked = rankings(run)
            _check_drawn_from(plan, name, ranked, result)
            columns.append(_pair_scores(ranked, result, labels, judges, options))
        else:
            drawn = {query: peoples[query] for query in labelled}
            others = evaluate(run, gold=drawn, metrics=metrics, **options)
            columns.append(_query_scores(result, others))
    names, size = [*runs], len(labels) / len(labelled)
    rows = [
        _row(name, "", metric, scores, width, size)
        for name, own in zip(names, columns, strict=True)
        for metric, scores in own.items()
    ]
    rows = [
        replace(row, unjudged=share) for row, share in zip(rows, unjudged, strict=True)
    ]
    rows += [
        _row(name, names[0], metric, scores.less(first), width, size)
        for name, own in zip(names[1:], columns[1:], strict=True)
        for (metric, scores), first in zip(
            own.items(), columns[0].values(), strict=True
        )
    ]
    sizes = len(judges), len(labelled), len(labels)
    return CombinedScores(tuple(rows), *sizes, plan.pairs, width)


def _judged_down_to(metric: str) -> str:
    """The metric that says which part of what another reads is judged."""
    _, at, cutoff = metric.partition("@")
    return f"judged{at}{cutoff}"


def _drawn_labels(plan: LabelPlan, people: Labels) -> dict[PlannedLabel, float]:
    """The plan's labels that people gave, with their grades.

    Who stops early has labelled a random part, too, if in the plan's order; its
    probabilities are smaller then.
    """
    drawn = {(label.query, label.document) for label in plan.labels}
    strange = [
        f"{query} {document}"
        for query, row in people.items()
        for document in row
        if (query, document) not in drawn
    ]
    if strange:
        shown = ", ".join(strange[:_SHOWN])
        raise MismatchError(
            f"{counted(len(strange), 'label')} by people were not drawn by the plan "
            f"({shown}): chosen by hand, labels are no random sample",
            hint="labels chosen by hand tell how far people and the judge agree: "
            "karat judge --agreement; only those drawn can be combined",
        )
    units: dict[Any, list[PlannedLabel]] = {}
    for label in plan.labels:
        units.setdefault(label[:2] if plan.pairs else label.query, []).append(label)
    done = [
        all(one.document in people.get(one.query, {}) for one in unit)
        for unit in units.values()
    ]
    count = sum(done)
    if not all(done[:count]):
        query, document, _ = [*units.values()][done.index(False)][0]
        what = f"{query} {document}" if plan.pairs else f"query {query}"
        raise MismatchError(
            f"{what} is not labelled in full, though later ones are: what people "
            "leave out is no random part",
            hint="label in the order of the plan; who cannot tell gives the likelier "
            "grade",
        )
    share = count / max(len(units), 1)
    given = [label for unit in [*units.values()][:count] for label in unit]
    queries = len({label.query for label in given})
    if queries < FEWEST_LABELLED:
        raise MismatchError(
            f"people labelled {counted(queries, 'query')} of the plan; it takes "
            f"{FEWEST_LABELLED} to correct a judge"
        )
    return {
        label._replace(probability=label.probability * share): people[label.query][
            label.document
        ]
        for label in given
    }


class _Scores(NamedTuple):
    """What a metric says of each query.

    Attributes:
        judge: by the judge's labels, of all queries.
        people: by people's labels alone.
        corrected: what is averaged: people's scores, or the judge's with corrections.
        drawn: which of the judge's queries people's are; none where all are corrected.
        bounds: the smallest and largest possible mean.
    """

    judge: Floats
    people: Floats
    corrected: Floats
    drawn: Ints | None
    bounds: tuple[float, float]

    def less(self, first: "_Scores") -> "_Scores":
        """The differences to the scores of another run."""
        low, high = self.bounds
        return _Scores(
            self.judge - first.judge,
            self.people - first.people,
            self.corrected - first.corrected,
            self.drawn,
            (low - high, high - low),
        )


def _query_scores(judged: Evaluation, people: Evaluation) -> dict[str, _Scores]:
    """The scores of whole queries."""
    place = {query: n for n, query in enumerate(judged.queries)}
    drawn = np.array([place[query] for query in people.queries])
    columns = ((m, column, people[m].scores) for m, column in judged.items())
    return {
        m: _Scores(one.scores, own, own, drawn, one.bounds) for m, one, own in columns
    }


def _check_drawn_from(
    plan: LabelPlan, name: str, run: Rankings, judged: Evaluation
) -> None:
    """Refuse what reads documents that no pair could be drawn from."""
    if run_digest(run, plan.k) not in plan.runs:
        raise MismatchError(
            f"the plan drew pairs of other runs than {name}, whose documents had no "
            "chance to be labelled",
            hint="name all runs that are to be scored in karat label plan --pairs",
        )
    for metric in judged:
        k = getattr(read_metric(metric), "k", None)
        if not isinstance(k, int) or k > plan.k:
            raise UsageError(
                f"{metric} reads deeper than the top {plan.k} that pairs were drawn "
                f"from: take a metric at {plan.k} or less"
            )


def _pair_scores(
    run: Rankings,
    judged: Evaluation,
    labels: Mapping[PlannedLabel, float],
    judges: Labels,
    options: Mapping[str, Any],
) -> dict[str, _Scores]:
    """The judge's score of each query, corrected by the pairs that people labelled.

    What a document adds to a score is the score with its label alone. The corrections
    weigh as much as the pairs that each stands for (Horvitz and Thompson).
    """
    place = {query: n for n, query in enumerate(judged.queries)}
    pairs = [(q, d, grade) for q, row in judges.items() for d, grade in row.items()]
    numbers = {pair[:2]: n for n, pair in enumerate(pairs)}
    drawn = [numbers[label[:2]] for label in labels]
    pairs += [(*label[:2], grade) for label, grade in labels.items()]
    added = _additions(run, pairs, [*judged], options)
    query = np.array([place[pair[0]] for pair in pairs])
    weights = np.array([1 / label.probability for label in labels])
    size, columns = len(place), {}
    for metric, column in judged.items():
        by_judge, by_people = np.split(added[metric], [len(numbers)])
        scores = np.nan_to_num(column.scores)
        whole = sum_by(query[: len(numbers)], by_judge, size)
        if not np.allclose(whole, scores, rtol=0, atol=_ROUNDING):
            raise UsageError(
                f"{metric} does not add up over documents: it takes whole queries "
                "(karat label plan without --pairs)"
            )
        at = query[len(numbers) :]
        people = sum_by(at, weights * by_people, size)
        corrected = scores + people - sum_by(at, weights * by_judge[drawn], size)
        columns[metric] = _Scores(scores, people, corrected, None, column.bounds)
    return columns


def _additions(
    rankings: Rankings,
    pairs: Sequence[tuple[str, str, float]],
    metrics: Sequence[str],
    options: Mapping[str, Any],
) -> dict[str, Floats]:
    """What each document adds to the score of its query, by a grade of its own."""
    ranks = {q: {d: n for n, d in enumerate(row, 1)} for q, row in rankings.items()}
    run = {
        str(n): [*rankings.get(query, ())[: ranks.get(query, {}).get(document, 0)]]
        for n, (query, document, _) in enumerate(pairs)
    }
    gold = {str(n): {document: grade} for n, (_, document, grade) in enumerate(pairs)}
    result = evaluate(run, gold=gold, metrics=metrics, force=True, **options)
    return {metric: np.nan_to_num(result[metric].scores) for metric in metrics}


def _row(
    run: str,
    baseline: str,
    metric: str,
    scores: _Scores,
    width: float | None,
    size: float,
) -> CombinedScore:
    judge, people, corrected, drawn, bounds = scores
    none = np.zeros(0)
    predicted, others = np.zeros_like(corrected), none
    if drawn is not None:
        predicted, others = judge[drawn], np.delete(judge, drawn)
    combined, weight, correlation = _mean(corrected, predicted, others, bounds)
    needed = None
    if width is not None and len(others):
        both = ~np.isnan(corrected + predicted)
        queries = queries_for_width(
            corrected[both], predicted[both], others[~np.isnan(others)], width
        )
        needed = None if queries is None else math.ceil(queries * size)
    by_judge, by_people = (_mean(own, own, none, bounds)[0] for own in (judge, people))
    return CombinedScore(
        run,
        baseline,
        metric,
        by_judge,
        by_people,
        combined,
        weight,
        correlation,
        needed,
        int(np.isnan(judge).sum()),
    )


def _mean(
    people: Floats, judge: Floats, others: Floats, bounds: tuple[float, float]
) -> tuple[EstimatedMean, float, float]:
    """The mean over the queries that have a score, as a ratio of two means.

    A query without a score adds 0 to what is summed and to what is counted. Beside it:
    the weight of the judge, and the correlation.
    """
    defined = ~np.isnan(people)
    if not defined.any():
        return EstimatedMean(math.nan, None), 0.0, math.nan
    start, share = float(people[defined].mean()), float(defined.mean())
    centre = float(np.nanmean(judge)) if (~np.isnan(judge)).any() else 0.0
    moved = [
        np.nan_to_num(column - about) / share
        for column, about in ((people, start), (judge, centre), (others, centre))
    ]
    limits = bounds[0] - start, bounds[1] - start
    mean, interval, weight, correlation = combined_mean(*moved, bounds=limits)
    if interval is not None:
        low, high = interval
        interval = Interval(low + start, high + start, interval.level, interval.method)
    return EstimatedMean(mean + start, interval), weight, correlation
