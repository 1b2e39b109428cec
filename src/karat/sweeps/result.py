"""What a sweep found: every setting with its scores and costs, and the best of them.

The best of many settings looks better than it is, because luck helped to choose it. So
its interval allows for the choice, and settings that cannot be told apart from it are
named; among those, what a setting costs may decide.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from karat.data.arrays import Floats
from karat.data.intervals import Interval
from karat.data.tables import DASH, Table, counted, number
from karat.errors import DataError, FormatError
from karat.metrics import read_metric
from karat.results.plain_values import SHOWN, PlainResult, frame_of
from karat.stats.multiple_tests import best_interval, maybe_best

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Trial:
    """What one setting achieved, query by query; None where there is no number.

    Attributes:
        setting: by name of the parameter.
        scores: metric -> the score of each query.
        tokens: how many tokens were retrieved for each query: a document's own count
            (`tokens` in its metadata), else a quarter of its bytes.
        milliseconds: how long each query took.
        failed: for how many queries the retriever failed.
    """

    setting: Mapping[str, Any]
    scores: Mapping[str, Sequence[float | None]]
    tokens: Sequence[float | None] = ()
    milliseconds: Sequence[float | None] = ()
    failed: int = 0

    def mean(self, metric: str) -> float:
        """The mean over the queries that have a score; NaN without any."""
        return _mean(self.scores[metric])

    @property
    def mean_tokens(self) -> float:
        """Tokens retrieved for a query, in the mean; NaN if documents have no texts."""
        return _mean(self.tokens)

    @property
    def latency(self) -> float:
        """The median of the milliseconds; NaN if nothing was timed."""
        timed = [time for time in self.milliseconds if time is not None]
        return float(np.median(timed)) if timed else math.nan

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.setting.items())


@dataclass(frozen=True, repr=False)
class Sweep(PlainResult):
    """What the settings of a sweep achieved.

    Attributes:
        metrics: the first one decides which setting is best.
        queries: in the order of all scores.
        trials: one for each setting.
        earlier: how many of them were kept from an earlier sweep.
        unasked: how many queries of the gold have no text to ask.
    """

    saved_as: ClassVar[str] = "sweep"

    metrics: Sequence[str]
    queries: Sequence[str]
    trials: Sequence[Trial]
    earlier: int = field(default=0, compare=False)
    unasked: int = 0

    @cached_property
    def best(self) -> Trial:
        """The setting with the largest mean; of equals the one with fewest tokens.

        Means are compared on the queries at which no setting failed.
        """
        return self.trials[self._best]

    @cached_property
    def interval(self) -> Interval | None:
        """The 95 % interval of the best mean, which allows for its having been chosen.

        It covers the mean on new queries in 95-100 % of simulated sweeps, where the
        interval of a single mean covers 47-100 %.
        """
        metric = read_metric(self.metrics[0])
        return best_interval(
            self._table, self._best, binary=metric.binary, bounds=metric.bounds
        )

    @cached_property
    def alike(self) -> list[Trial]:
        """The settings that cannot be told apart from the best, at 5 %; it included."""
        maybe = maybe_best(self._table)
        maybe[self._best] = True
        return [t for t, may in zip(self.trials, maybe.tolist(), strict=True) if may]

    @cached_property
    def front(self) -> list[Trial]:
        """The settings that no other beats in quality, tokens and latency at once.

        Costs count to two digits: what differs by less is the same.
        """
        points = [_point(trial, trial.mean(self.metrics[0])) for trial in self.trials]

        def is_beaten(mine: tuple[float, ...]) -> bool:
            others = (other for other in points if other != mine)
            return any(all(map(float.__le__, other, mine)) for other in others)

        pairs = zip(self.trials, points, strict=True)
        return [trial for trial, point in pairs if not is_beaten(point)]

    @cached_property
    def _best(self) -> int:
        """The row of the best trial, on the queries that every setting has."""
        table = self._table
        common = np.isfinite(table).all(axis=0)
        if not common.any():
            raise DataError(
                f"no query has a score by {self.metrics[0]} in all settings"
            )
        means = table[:, common].mean(axis=1).tolist()
        points = [*map(_point, self.trials, means)]
        return points.index(min(points))

    @property
    def _table(self) -> Floats:
        """The scores that decide: settings by queries, NaN where there is none."""
        rows = [trial.scores[self.metrics[0]] for trial in self.trials]
        return np.array(rows, np.float64)

    def summary(self) -> Table:
        """A row per setting, best first: its means, and what it costs."""
        names = [*dict.fromkeys(name for t in self.trials for name in t.setting)]
        first = self.metrics[0]
        ranked = sorted(self.trials, key=lambda t: (t is not self.best, -t.mean(first)))
        rows = [
            [
                *(str(trial.setting.get(name, DASH)) for name in names),
                *(number(trial.mean(metric)) for metric in self.metrics),
                _cost(trial.mean_tokens),
                _cost(trial.latency),
                str(len(trial.scores[first])),
                " ".join(self._marks(trial)),
            ]
            for trial in ranked
        ]
        texts = [
            place
            for place, name in enumerate(names)
            if any(isinstance(trial.setting.get(name), str) for trial in self.trials)
        ]
        sizes = (
            counted(len(self.trials), "setting"),
            counted(len(self.queries), "query"),
        )
        return Table(
            [*names, *self.metrics, "tokens", "p50 (ms)", "n", ""],
            rows,
            title=", ".join(sizes),
            notes=self._notes(),
            texts=(*texts, len(names) + len(self.metrics) + 3),
        )

    def _marks(self, trial: Trial) -> Iterator[str]:
        if trial is self.best:
            yield "best"
        elif any(trial is one for one in self.alike):
            yield "alike"
        if any(trial is one for one in self.front):
            yield "front"

    def _notes(self) -> list[str]:
        first, best = self.metrics[0], self.best
        limits = " to ".join(map(number, self.interval)) if self.interval else DASH
        chosen = f"95% interval {limits}, which allows for having chosen it"
        notes = [f"best by {first}: {best}: {number(best.mean(first))} ({chosen})"]
        others = [trial for trial in self.alike if trial is not best]
        if others:
            alike = f"{counted(len(others), 'setting')} cannot be told apart from it"
            notes.append(f"{alike} (alike){_cheapest(best, others)}")
        if failed := sum(trial.failed for trial in self.trials):
            notes.append(f"failed: {counted(failed, 'query')}, in no mean")
        if self.unasked:
            unasked = counted(self.unasked, "gold query")
            notes.append(f"not asked: {unasked} without text")
        if self.earlier:
            earlier = f"kept from an earlier sweep: {counted(self.earlier, 'setting')}"
            notes.append(f"{earlier}; another version is tried anew")
        return notes

    def tables(self) -> list[Table]:
        """All that a person is shown."""
        return [self.summary()]

    def to_json(self) -> str:
        """Everything as JSON, on one line; `load` reads it back."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def to_html(self) -> str:
        """A page that a browser shows: the table, and quality by what it costs."""
        tokens = [trial.mean_tokens for trial in self.trials]
        times = [trial.latency for trial in self.trials]
        costs = {"tokens": tokens, "latency": times}
        charts = [
            self.plot(n) for n, row in costs.items() if not all(map(math.isnan, row))
        ]
        title = f"Sweep of {counted(len(self.trials), 'setting')}"
        table = self.summary()
        lead, *notes = table.notes
        plain = replace(table, notes=notes)
        return str(SHOWN["tables"](title, [plain], lead=lead, charts=charts))

    def plot(self, cost: str = "tokens") -> Any:
        """A picture of quality by a cost, `tokens` or `latency`, with its front."""
        return SHOWN["chart"](self, cost)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The sweep saved in a file.

        Raises:
            FormatError: the file cannot be read, or holds something else.
        """
        found = super().load(path)
        rows = (row for trial in found.trials for row in trial.scores.values())
        if not {*map(len, rows)} <= {len(found.queries)} or not found.trials:
            raise FormatError("does not have a score per query", path=path)
        return found

    def to_frame(self) -> "pd.DataFrame":
        """A row per setting as a pandas DataFrame: means and costs."""
        return frame_of(
            {
                **trial.setting,
                **{metric: trial.mean(metric) for metric in self.metrics},
                "tokens": trial.mean_tokens,
                "latency": trial.latency,
                "queries": len(trial.scores[self.metrics[0]]),
                "best": trial is self.best,
                "alike": trial in self.alike,
                "front": trial in self.front,
            }
            for trial in self.trials
        )

    def __repr__(self) -> str:
        settings, queries = len(self.trials), len(self.queries)
        counts = f"{counted(settings, 'setting')}, {counted(queries, 'query')}"
        return f"<Sweep of {counts}, best {self.best}>"


def _mean(values: Sequence[float | None]) -> float:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else math.nan


def _or_endless(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _cost(value: float) -> str:
    if math.isnan(value):
        return DASH
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004


def _point(trial: Trial, mean: float) -> tuple[float, ...]:
    """What is to be small: less quality, tokens and time; costs to two digits."""
    costs = (_or_endless(trial.mean_tokens), _or_endless(trial.latency))
    return (_or_endless(-mean), *(float(f"{cost:.2g}") for cost in costs))


def _cheapest(best: Trial, others: Sequence[Trial]) -> str:
    """Which of the others takes fewest tokens, where that is less than the best."""
    cheap = min(others, key=lambda trial: _or_endless(trial.mean_tokens))
    if not cheap.mean_tokens < best.mean_tokens:
        return ""
    tokens = f"{_cost(cheap.mean_tokens)} instead of {_cost(best.mean_tokens)}"
    return f"; of these, {cheap} takes fewest tokens: {tokens}"
