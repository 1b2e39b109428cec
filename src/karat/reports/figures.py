"""Pictures of evaluations, for pages, notebooks and files."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter

import numpy as np

from karat.data.spelling import LETTER, parse
from karat.data.tables import DASH
from karat.diagnosis.headroom import gains_of, headroom
from karat.errors import UnknownNameError, UsageError
from karat.reports.charts import (
    FOREGROUND,
    Line,
    Point,
    draw_bars,
    draw_histogram,
    draw_intervals,
    draw_lines,
    draw_matrix,
    draw_pairs,
    draw_scatter,
)
from karat.reports.drawing import Chart
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard
from karat.sweeps import Sweep

_DEEPEST = 100
_STEPS = (1, 2, 3, 5, 10, 20, 30, 50, 100)
_HEADROOM = 10
_RANKS = (1, 3, 10)


def plot(
    results: Evaluation | Leaderboard | Sweep,
    kind: str = "curve",
    metric: str | None = None,
) -> Chart:
    """A picture of what runs scored."""
    if isinstance(results, Sweep):
        return _by_cost(results, kind)
    board = board_of(results)
    if kind not in KINDS:
        raise UnknownNameError("kind of chart", kind, KINDS)
    if not board.metrics:
        raise UsageError("there is no metric to draw")
    name = board.leading if metric is None else metric
    for evaluation in board.values():
        if metric is not None and kind != "curve":
            evaluation[metric]  # says which metrics there are
    drawn = KINDS[kind](board, name)
    if drawn is None:
        raise UsageError(f"nothing to draw: {_NOTHING[kind].format(name)}")
    return drawn


def board_of(results: Evaluation | Leaderboard) -> Leaderboard:
    """Several evaluations, or one that stands alone."""
    if isinstance(results, Leaderboard):
        return results
    return Leaderboard({results.run: results})


def _with_cutoff(board: Leaderboard) -> list[str]:
    """The metrics worth a curve: one for each family that has a cutoff."""
    families: dict[str, str] = {}
    for metric in board.metrics:
        spelling = parse(metric)
        if spelling.k is not None and not metric.startswith("judged@"):
            families.setdefault(str(replace(spelling, k=None)), metric)
    return [*families.values()]


def _curve(board: Leaderboard, metric: str) -> Chart | None:
    """A metric at growing k, with its interval, for every run."""
    spelling = parse(metric)
    lines = []
    for name, evaluation in board.items():
        deepest = _deepest(evaluation, metric)
        points = []
        for k in sorted({*_STEPS, deepest}):
            if not 0 < k <= deepest:
                continue
            try:
                column = evaluation.score(str(replace(spelling, k=k)))
            except UsageError:
                return None
            mean = column.mean
            if column.n:
                points.append((k, mean, *(column.interval or (mean, mean))))
        if len(points) > 1:
            lines.append(Line(name, *zip(*points, strict=True)))
    if not lines:
        return None
    # The baseline and the best are told apart by colour, where not all can be.
    first, *others = lines
    lines = [first, *sorted(others, key=lambda line: -line.ys[-1])]
    lines = lines if len(lines) > FOREGROUND else [first, *others]
    family = replace(spelling, k=None)
    highest = max(chain.from_iterable(map(attrgetter("high"), lines)))
    bounds = (0.0, 1.0) if highest <= 1.0 else (0.0, highest)
    return draw_lines(lines, title=f"{family} over k", x="k", bounds=bounds)


def _deepest(evaluation: Evaluation, metric: str) -> int:
    """The largest k that says something: no deeper than was retrieved or judged."""
    matcher = evaluation.matchers.get(metric, evaluation.default_matcher)
    matches = evaluation.matches.get(matcher)
    if matches is None or not matches.hits.size:
        return 0
    deep = min(int(matches.hits.retrieved.max()), _DEEPEST)
    if evaluation.policies.depth is not None:
        deep = min(deep, evaluation.policies.depth)
    if matches.verdicts:
        # Below the deepest cutoff asked for, a judge did not look.
        asked = [parse(m).k for m, by in evaluation.matchers.items() if by == matcher]
        ks = [k for k in asked if isinstance(k, int)]
        if LETTER not in asked and None not in asked:
            deep = min(deep, max(ks, default=deep))
    return deep


def _means(board: Leaderboard, metric: str) -> Chart | None:
    rows: list[tuple[str, float, tuple[float, float] | None, str]] = []
    for evaluation in board.ranked(metric):
        if metric in evaluation and evaluation[metric].n:
            column = evaluation[metric]
            pair = None if column.interval is None else (*column.interval,)
            rows.append((evaluation.run, column.mean, pair, ""))
    title = f"{metric}: mean and 95% interval"
    return draw_intervals(rows, title=title) if rows else None


def _distribution(board: Leaderboard, metric: str) -> Chart | None:
    columns = {n: e[metric] for n, e in board.items() if metric in e and e[metric].n}
    if not columns:
        return None
    shown = [*columns]
    if len(shown) > FOREGROUND:
        first, *others = shown
        others.sort(key=lambda name: -columns[name].mean)
        shown = [first, *others][:FOREGROUND]
    scores, ends = {}, []
    for name in shown:
        scores[name] = columns[name].defined.tolist()
        ends += [*filter(math.isfinite, columns[name].bounds), *scores[name]]
    low, high = min(ends), max(ends)
    some = f", {len(shown)} of {len(columns)} runs" if len(shown) < len(columns) else ""
    title = f"{metric}: queries by score{some}"
    return draw_histogram(scores, title=title, bounds=(low, max(high, low + 1e-9)))


def _headroom(board: Leaderboard, metric: str, k: int | None = None) -> Chart | None:
    """What each run lacks to a perfect nDCG, by its causes."""
    if k is None:
        own = parse(metric).k
        k = own if isinstance(own, int) else _HEADROOM
    names = {
        "score": f"nDCG@{k}",
        "ordering": "order of the top",
        "cutoff": f"below rank {k}",
        "candidates": "not retrieved",
    }
    rows: dict[str, Mapping[str, float]] = {}
    for name, evaluation in board.items():
        matches = evaluation.matches.get(evaluation.matchers.get(metric, ""))
        if matches is None:
            continue
        places = np.arange(len(evaluation.queries))
        parts = headroom(gains_of(matches, places, evaluation.policies.threshold), k)
        if means := parts.means():
            rows[name] = dict(zip(names.values(), means.values(), strict=True))
    return draw_bars(rows, title="what is missing, and where") if rows else None


def changes_of(
    baseline: Evaluation,
    candidates: Sequence[Evaluation],
    metric: str,
    k: int | None = None,
) -> list[Chart]:
    """In what way candidates differ: their queries, their items, what each lacks."""
    drawn: list[Chart | None] = []
    for one in candidates:
        drawn += [_pairs(baseline, one, metric), moves(baseline, one, metric)]
    board = Leaderboard({one.run: one for one in (baseline, *candidates)})
    drawn.append(_headroom(board, metric, k))
    return [*filter(None, drawn)]


def _pairs(baseline: Evaluation, candidate: Evaluation, metric: str) -> Chart | None:
    """What each query scores before and after."""
    if metric not in baseline or metric not in candidate:
        return None
    column = candidate[metric]
    before = dict(zip(baseline.queries, baseline[metric].scores.tolist(), strict=True))
    after = zip(candidate.queries, column.scores.tolist(), strict=True)
    pairs = [
        (query, before[query], score)
        for query, score in after
        if query in before and math.isfinite(before[query]) and math.isfinite(score)
    ]
    scores = [score for _, *both in pairs for score in both]
    ends = [*filter(math.isfinite, column.bounds), *scores]
    if not pairs or min(ends) == max(ends):
        return None
    return draw_pairs(
        pairs,
        title=f"{metric} of each query, before and after",
        x=f"{baseline.run[:24]} \N{RIGHTWARDS ARROW}",
        y=f"{candidate.run[:24]} \N{UPWARDS ARROW}",
        bounds=(min(ends), max(ends)),
        sign=-1 if column.higher_is_better is False else 1,
    )


def moves(baseline: Evaluation, candidate: Evaluation, metric: str) -> Chart | None:
    """Where relevant items stood before and stand now."""
    ranks = []
    for one in (baseline, candidate):
        found = one.matches.get(one.matchers.get(metric, ""))
        if found is None:
            return None
        gains = gains_of(found, np.arange(len(one.queries)), one.policies.threshold)
        queries = [one.queries[place] for place in gains.query.tolist()]
        pairs = zip(queries, gains.name, strict=True)
        ranks.append(dict(zip(pairs, gains.rank.tolist(), strict=True)))
    old, new = ranks
    names = ["1", "2-3", "4-10", "below", "not found"]
    counts = [[0] * len(names) for _ in names]
    for pair, rank in old.items():
        if pair in new:
            counts[_class(rank)][_class(new[pair])] += 1
    return draw_matrix(
        names,
        counts,
        title="ranks of relevant items, before and after",
        rows=baseline.run[:14],
        columns=candidate.run[:40],
    )


def _by_cost(sweep: Sweep, cost: str) -> Chart:
    """What the settings of a sweep achieve, by what they cost."""
    costs = {"tokens": "mean_tokens", "latency": "latency"}
    if cost not in costs:
        raise UnknownNameError("cost", cost, costs)
    metric = sweep.metrics[0]
    varied = [
        name
        for name in sweep.trials[0].setting
        if len({str(trial.setting.get(name)) for trial in sweep.trials}) > 1
    ]
    points = [
        Point(", ".join(f"{n} {trial.setting.get(n, DASH)}" for n in varied), x, y)
        for trial in sweep.trials
        if not math.isnan(x := getattr(trial, costs[cost]))
        and not math.isnan(y := trial.mean(metric))
    ]
    if not points:
        raise UsageError(f"no setting has {cost} to draw")
    unit = "milliseconds" if cost == "latency" else "tokens"
    return draw_scatter(points, title=f"{metric} by {cost}", x=unit, y=metric)


def _by_latency(board: Leaderboard, metric: str) -> Chart | None:
    """What each run achieves, by the time that 95 of 100 queries did not exceed."""
    points = [
        Point(name, time, evaluation[metric].mean)
        for name, evaluation in board.items()
        if metric in evaluation
        and evaluation[metric].n
        and evaluation.latency is not None
        and (time := evaluation.latency.percentiles["p95"]) is not None
    ]
    title = f"{metric} by latency"
    return draw_scatter(points, title=title, x="p95 (ms)", y=metric) if points else None


def _class(rank: int) -> int:
    if not rank:
        return len(_RANKS) + 1
    return next((n for n, last in enumerate(_RANKS) if rank <= last), len(_RANKS))


KINDS: dict[str, Callable[[Leaderboard, str], Chart | None]] = {
    "curve": _curve,
    "means": _means,
    "distribution": _distribution,
    "headroom": _headroom,
    "latency": _by_latency,
}
"""The pictures that `plot` draws, by name."""

_NOTHING: Mapping[str, str] = {
    "curve": "{} has no cutoff that could change, or its hits are not kept",
    "means": "no query has a score by {}",
    "distribution": "no query has a score by {}",
    "headroom": "the hits that {} reads are not kept",
    "latency": "no run was timed that has a score by {}",
}


def all_charts(board: Leaderboard, *, compared: bool = False) -> Sequence[Chart]:
    """The pictures of a report, those with nothing to show left out.

    What each run lacks is left to `changes_of` where runs are compared.
    """
    metrics = [m for m in board.metrics if not m.startswith("judged@")]
    if metrics:
        metrics = [*dict.fromkeys([board.leading, *metrics])]
    drawn: list[Chart | None] = []
    if len(board) > 1 and metrics:
        drawn.append(_means(board, metrics[0]))
        drawn.append(_by_latency(board, metrics[0]))
    # One curve says what others would: of nDCG, which the hits give at every k.
    families = _with_cutoff(board)
    cut = [metric for metric in families if metric.startswith("ndcg")]
    for metric in (*cut, "ndcg@10", *families):
        drawn.append(_curve(board, metric))
        if drawn[-1] is not None:
            break
    if metrics:
        drawn.append(_distribution(board, metrics[0]))
        drawn += [] if compared else [_headroom(board, (cut or metrics)[0])]
    return [*filter(None, drawn)]
