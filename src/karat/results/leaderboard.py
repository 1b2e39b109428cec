"""Leaderboards: what several runs scored against one gold, side by side."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from karat.data.tables import DASH, Table, number
from karat.errors import UnknownNameError
from karat.results.evaluation import COUNTS, Evaluation, count_queries
from karat.results.plain_values import SHOWN, SavedResult, frame_of
from karat.results.scores import MetricScores

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 100
"""How wide a table may be where there is no terminal to ask."""

_NAMED = 10


@dataclass(frozen=True)
class Leaderboard(SavedResult, Mapping[str, Evaluation]):
    """What several runs scored against one gold: a mapping from names to evaluations.

    Attributes:
        evaluations: what each run scored, in the order they were given.
        notes: what a reader should know of all of them.

    Example:
        >>> from karat import leaderboard
        >>> runs = {"old": {"q": ["b", "a"]}, "new": {"q": ["a", "b"]}}
        >>> board = leaderboard(runs, gold={"q": ["a"]}, metrics=["rr"])
        >>> {name: result.means["rr"] for name, result in board.items()}
        {'old': 0.5, 'new': 1.0}
    """

    evaluations: Mapping[str, Evaluation]
    notes: Sequence[str] = field(default=())

    def __getitem__(self, run: str) -> Evaluation:
        if run not in self.evaluations:
            raise UnknownNameError("run", run, self.evaluations)
        return self.evaluations[run]

    def __iter__(self) -> Iterator[str]:
        return iter(self.evaluations)

    def __len__(self) -> int:
        return len(self.evaluations)

    @property
    def columns(self) -> dict[str, MetricScores]:
        """The scores by each metric that any run has, of the last run that has it."""
        every = self.evaluations.values()
        return {name: column for one in every for name, column in one.columns.items()}

    @property
    def metrics(self) -> list[str]:
        """The metrics that any run was scored by."""
        return [*self.columns]

    @property
    def leading(self) -> str:
        """The metric that runs are ordered and pictured by, the most telling one."""
        return leading(self.columns)

    def ranked(self, metric: str | None = None) -> list[Evaluation]:
        """The evaluations from best to worst, by the leading metric or another."""
        by = self.leading if metric is None else metric
        return sorted(self.values(), key=lambda e: _order(e, by))

    def summary(self, width: int | None = WIDTH) -> Table:
        """A row per metric for one run; for several a row per run, best first.

        Runs are ordered by the leading metric. Where a row per run would be wider than
        `width`, the table has a row per metric and a column per run instead.
        """
        if len(self) == 1:
            (only,) = self.values()
            table = only.summary()
            return replace(table, notes=[*table.notes, *self.notes])
        metrics, ranked = self.metrics, self.ranked()
        times = [*next((e.latency.in_words() for e in ranked if e.latency), {})]
        cells = [_cells(e, metrics, times) for e in ranked]
        metrics = [*metrics, *times]
        names = [e.run for e in ranked]
        by_run = Table(
            columns=["run", *metrics, *COUNTS],
            rows=[[name, *row] for name, row in zip(names, cells, strict=True)],
            notes=[*_notes(ranked), *self.notes],
        )
        queries, by_run = count_queries(by_run, _queries(ranked))
        by_run = replace(by_run, title=_title(ranked, queries))
        _, *columns = zip(by_run.columns, *by_run.rows, strict=True)
        by_metric = replace(by_run, columns=["metric", *names], rows=columns)
        fits = (t for t in (by_run, by_metric) if width is None or t.width <= width)
        return next(fits, by_run)

    def by_tag(self) -> list[Table]:
        """For each run, every metric's mean in each slice."""
        return [evaluation.by_tag() for evaluation in self.values()]

    def without_texts(self) -> "Leaderboard":
        """The same without what was asked, retrieved and said, in anybody's words."""
        bare = {name: result.without_texts() for name, result in self.items()}
        return replace(self, evaluations=bare)

    def to_json(self) -> str:
        """Everything as JSON: one evaluation, or a list of them for several runs."""
        texts = [evaluation.to_json() for evaluation in self.values()]
        return texts[0] if len(texts) == 1 else "[" + ",\n".join(texts) + "]"

    def to_html(self) -> str:
        """A page that a browser shows: verdict, curves, every query; one file."""
        return str(SHOWN["page"](self))

    def plot(self, kind: str = "curve", metric: str | None = None) -> Any:
        """A picture of all runs: `curve`, `means`, `distribution`, `latency`, ..."""
        return SHOWN["chart"](self, kind, metric)

    def to_frame(self) -> "pd.DataFrame":
        """The means as a pandas DataFrame: a row per run, a column per metric."""
        rows = ({"run": name, **result.means} for name, result in self.items())
        return frame_of(rows).set_index("run")

    def __str__(self) -> str:
        return self.summary().as_text()

    def __repr__(self) -> str:
        names = [*self][:_NAMED] + (["..."] if len(self) > _NAMED else [])
        return f"<Leaderboard of {', '.join(names)}>"

    def _repr_html_(self) -> str:
        return self.summary(None).as_html()


def leading(columns: Mapping[str, MetricScores]) -> str:
    """The first metric that is not merely 0 or 1; where all are, the first.

    How much is judged says how good a run is only where nothing else does.
    """
    return min(columns, key=lambda n: (n.startswith("judged@"), columns[n].binary))


def _order(evaluation: Evaluation, metric: str) -> float:
    if metric not in evaluation or math.isnan(mean := evaluation[metric].mean):
        return math.inf
    return mean if evaluation[metric].higher_is_better is False else -mean


def _queries(ranked: Sequence[Evaluation]) -> str:
    totals = {len(e.queries) for e in ranked}
    queries = DASH.join(map(str, dict.fromkeys((min(totals), max(totals)))))
    return f"{queries} {'query' if queries == '1' else 'queries'}"


def _title(ranked: Sequence[Evaluation], queries: str) -> str:
    gold = ", ".join(dict.fromkeys(e.gold for e in ranked))
    against = f" against {gold}" if len(ranked) > len(gold.split(", ")) else ""
    return f"{len(ranked)} runs{against}: {queries}, mean (95% interval)"


def notice_lines(evaluations: Sequence[Evaluation]) -> list[str]:
    """Each notice once, with the runs that it is about and their counts."""
    warned: dict[tuple[str, str], list[str]] = {}
    for evaluation in evaluations:
        for notice in evaluation.warnings:
            counts = warned.setdefault((notice.kind, notice.text), [])
            counts.append(f"{evaluation.run} {notice.count}")
    return [
        f"{kind}: {text}: {', '.join(runs)}" for (kind, text), runs in warned.items()
    ]


def _notes(ranked: Sequence[Evaluation]) -> list[str]:
    """Each note once, with the runs it is about unless it is about all of them."""
    other: dict[str, list[str]] = {}
    for evaluation in ranked:
        for note in evaluation.remarks():
            other.setdefault(note, []).append(evaluation.run)
    return [
        *notice_lines(ranked),
        *(
            note if len(runs) == len(ranked) else f"{', '.join(runs)}: {note}"
            for note, runs in other.items()
        ),
    ]


def _cells(
    evaluation: Evaluation, metrics: Sequence[str], times: Sequence[str]
) -> list[str]:
    """What a board says of a run: means, percentiles of its latency, and counts.

    A mean that holds another number of queries than most says so beside itself. How
    much is judged is defined for other queries than how good it is: that counts only
    where nothing else was asked for.
    """
    asked = [name for name in evaluation if not name.startswith("judged@")]
    columns = [evaluation[name] for name in asked or evaluation]
    counts = Counter(column.n for column in columns)
    usual = max(counts, key=lambda n: counts[n], default=0)
    cells = []
    for name in metrics:
        if name not in evaluation:
            cells.append(DASH)
            continue
        column = evaluation[name]
        shown = number(column.mean)
        if column.interval is not None:
            # Without a leading zero: a board is soon too wide.
            limits = (f"{limit:.3f}".removeprefix("0") for limit in column.interval)
            shown += f" ({DASH.join(limits)})"
        if name in asked and column.n != usual:
            shown += f", n {column.n}"
        cells.append(shown)
    latency = {} if evaluation.latency is None else evaluation.latency.in_words()
    return [
        *cells,
        *(latency.get(name, DASH) for name in times),
        f"{usual}/{len(evaluation.queries)}",
        str(max((column.undefined for column in columns), default=0)),
        str(int(evaluation.missing.sum())),
        str(max((column.failed for column in columns), default=0)),
    ]
