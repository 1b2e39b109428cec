"""One table for one run, or for several beside each other."""

import math
from collections.abc import Sequence

from karat.data.evaluations import Evaluation
from karat.data.tables import DASH, Table, number

__all__ = ["WIDTH", "leaderboard"]

WIDTH = 100
"""How wide a table may be where there is no terminal to ask."""

_COUNTS = ("n", "undefined", "missing")


def leaderboard(evaluations: Sequence[Evaluation], width: int | None = WIDTH) -> Table:
    """A row per metric for one run; for several a row per run, best first.

    Runs are ordered by the first metric. Where a row per run would be wider than
    `width`, the table has a row per metric and a column per run instead.
    """
    if len(evaluations) == 1:
        return evaluations[0].summary()
    metrics = list(dict.fromkeys(name for e in evaluations for name in e))
    ranked = sorted(evaluations, key=lambda e: _order(e, metrics[0]))
    cells = [
        [*(_with_interval(e, name) for name in metrics), *_counts(e)] for e in ranked
    ]
    names = [e.run for e in ranked]
    by_run = Table(
        columns=["run", *metrics, *_COUNTS],
        rows=[[name, *row] for name, row in zip(names, cells, strict=True)],
        title=_title(ranked),
        notes=_notes(ranked),
    )
    by_metric = Table(
        columns=["metric", *names],
        rows=[
            [name, *column]
            for name, *column in zip([*metrics, *_COUNTS], *cells, strict=True)
        ],
        title=by_run.title,
        notes=by_run.notes,
    )
    fits = (t for t in (by_run, by_metric) if width is None or t.width <= width)
    return next(fits, by_run)


def _order(evaluation: Evaluation, metric: str) -> float:
    mean = evaluation[metric].mean if metric in evaluation else math.nan
    return math.inf if math.isnan(mean) else -mean


def _title(ranked: Sequence[Evaluation]) -> str:
    totals = sorted({len(e.queries) for e in ranked})
    queries = DASH.join(map(str, dict.fromkeys((totals[0], totals[-1]))))
    gold = ", ".join(dict.fromkeys(e.gold for e in ranked))
    against = f" against {gold}" if len(ranked) > len(gold.split(", ")) else ""
    many = "query" if queries == "1" else "queries"
    return f"{len(ranked)} runs{against}: {queries} {many}, mean (95% interval)"


def _notes(ranked: Sequence[Evaluation]) -> list[str]:
    """Each note once, with the runs it is about unless it is about all of them."""
    warned: dict[tuple[str, str], list[str]] = {}
    other: dict[str, list[str]] = {}
    for evaluation in ranked:
        for notice in evaluation.warnings:
            counts = warned.setdefault((notice.kind, notice.text), [])
            counts.append(f"{evaluation.run} {notice.count}")
        for note in evaluation.summary().notes[len(evaluation.warnings) :]:
            other.setdefault(note, []).append(evaluation.run)
    return [
        *(
            f"{kind}: {text}: {', '.join(counts)}"
            for (kind, text), counts in warned.items()
        ),
        *(
            note if len(runs) == len(ranked) else f"{', '.join(runs)}: {note}"
            for note, runs in other.items()
        ),
    ]


def _with_interval(evaluation: Evaluation, name: str) -> str:
    if name not in evaluation:
        return DASH
    column = evaluation[name]
    if column.interval is None:
        return number(column.mean)
    limits = DASH.join(map(_limit, column.interval[:2]))
    return f"{number(column.mean)} ({limits})"


def _limit(value: float) -> str:
    """Three decimals, without a leading zero: a board is soon too wide."""
    return f"{value:.3f}".removeprefix("0")


def _counts(evaluation: Evaluation) -> list[str]:
    """The fewest queries that any mean holds, the most undefined, and the missing.

    How much is judged is defined for other queries than how good it is, and stands
    beside the metrics asked for; it counts where nothing else was asked for.
    """
    names = [name for name in evaluation if not name.startswith("judged@")]
    columns = [evaluation[name] for name in names or evaluation]
    fewest = min((column.n for column in columns), default=0)
    undefined = max((column.undefined for column in columns), default=0)
    return [
        f"{fewest}/{len(evaluation.queries)}",
        str(undefined),
        str(int(evaluation.missing.sum())),
    ]
