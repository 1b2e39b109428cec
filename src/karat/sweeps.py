"""Sweeps: settings of a retriever tried one after the other, and the best of them.

The best of many settings looks better than it is, because luck helped to choose it. So
its interval allows for the choice, and settings that cannot be told from it are
named; among those, what a setting costs may decide.
"""

import inspect
import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from karat.data.arrays import Floats
from karat.data.gold import Gold
from karat.data.intervals import Interval
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Document, Run
from karat.data.spelling import LETTER
from karat.data.tables import DASH, Table, counted, number, steps
from karat.errors import (
    DataError,
    FormatError,
    MismatchError,
    ParameterError,
    UnknownNameError,
    UsageError,
)
from karat.evaluation import evaluate
from karat.llm.callables import ErrorGuard, place_of
from karat.metrics import Metric, read_metric, split_metrics
from karat.reading.readers import read, read_queries, with_texts
from karat.results.plain_values import SHOWN, PlainResult, frame_of
from karat.results.result_cache import digest_of, store_result, stored_result
from karat.retrieving.retrieve import retrieve
from karat.stats.multiple_tests import best_interval, maybe_best

if TYPE_CHECKING:
    import pandas as pd

_DEPTH = 10
_BYTES_OF_A_TOKEN = 4
_PLAIN = (str, int, float, bool, type(None))

log = logging.getLogger("karat")


@dataclass(frozen=True)
class Trial:
    """What one setting achieved, query by query; None where there is no number.

    Tokens are a document's own count (`tokens` in its metadata), else a quarter of its
    bytes; `failed` counts queries.
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
            alike = f"{counted(len(others), 'setting')} cannot be distinguished from it"
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


def sweep(  # noqa: PLR0913
    factory: Callable[..., Any],
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]],
    queries: Any,
    gold: Any,
    *,
    metrics: str | Metric | Iterable[str | Metric] = ("ndcg@k", "recall@k"),
    k: int = _DEPTH,
    concurrency: int = 1,
    name: str | None = None,
    version: str | None = None,
    mapping: Mapping[str, str] | None = None,
    **options: Any,
) -> Sweep:
    """Try every setting of a retriever, and find the best one.

    Gold of texts serves all chunkings: a passage is found wherever chunks cover it.

    Args:
        factory: makes a retriever of a setting, as in `build(chunk_size=400)`: a
            function from query to documents, or anything else that `retrieve` takes.
        grid: the values of each parameter, of which every combination is tried; or the
            settings themselves. `k` is how many documents are retrieved; the factory
            gets it only if it takes it.
        queries: texts by id, a list, or a file.
        gold: what should be retrieved, as for `evaluate`.
        metrics: spellings, the first of which decides. The letter in `recall@k` is the
            `k` of the setting.
        k: how many documents are retrieved where the grid does not say.
        concurrency: calls under way at once; more than one can make each slower.
        name: tells this sweep from others of the same factory.
        version: of the data and the code. With one, results are kept and used again
            until it changes, so that a sweep that was stopped goes on where it was.
        mapping: our field or column name -> theirs, in the gold.
        options: the other options of `evaluate`.

    Raises:
        UsageError: a grid that the factory does not take.
        DataError: input that cannot be scored.

    Example:
        >>> def build(rank):
        ...     return lambda query: [*["x", "y", "z"][:rank], "a"]
        >>> queries = {f"q{n}": "Which one?" for n in range(9)}
        >>> gold = {query: ["a"] for query in queries}
        >>> sweep(build, {"rank": [2, 0, 1]}, queries, gold).best.setting
        {'rank': 0}
    """
    settings = _settings(factory, grid, k)
    truth = read(gold, "gold", mapping=mapping, shared=True)
    facts = read_queries(queries)
    wanted = {*truth.gold.queries} if truth.gold else set()
    texts = {query: f.text or "" for query, f in facts.items() if query in wanted}
    if not texts:
        raise MismatchError("no query has gold: queries and gold have no id in common")
    spellings = [str(metric) for metric in split_metrics(metrics)]
    scoring = {**options, "metrics": spellings, "mapping": mapping}
    key = None if version is None else [place_of(factory), name, version]
    experiment = _Experiment(factory, truth, texts, scoring, concurrency, k, key)
    trials, earlier = experiment.trials(settings)
    return Sweep(spellings, [*texts], trials, earlier, len(wanted) - len(texts))


def _settings(factory: Callable[..., Any], grid: Any, k: int) -> list[dict[str, Any]]:
    """Every setting of a grid, checked against what the factory takes."""
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if not isinstance(values, list | tuple) or not values:
                must_be = "a list of one value or more"
                raise ParameterError("sweep", f"grid[{name!r}]", must_be, values)
        rows = product(*grid.values())
        settings = [dict(zip(grid, row, strict=True)) for row in rows]
    else:
        settings = [dict(setting) for setting in grid]
    if not settings or not all(settings):
        raise UsageError("sweep: the grid is empty; give values, as in {'k': [5, 10]}")
    parameters = inspect.signature(factory).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for setting in settings:
        for name, value in setting.items():
            if name not in parameters and name != "k" and not takes_all:
                names = [*parameters, "k"]
                raise UnknownNameError("parameter of the factory", name, names)
            if not isinstance(value, _PLAIN):
                must_be = "texts, numbers, true, false or None"
                raise ParameterError("sweep", f"grid[{name!r}]", must_be, value)
        depth = setting.get("k", k)
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise ParameterError("sweep", "k", "an integer >= 1", depth)
    return settings


@dataclass(frozen=True)
class _Experiment:
    """Makes retrievers of settings, asks them, and scores what they retrieve."""

    factory: Callable[..., Any]
    truth: Dataset
    texts: Mapping[str, str]
    scoring: Mapping[str, Any]
    concurrency: int
    depth: int
    key: Sequence[str | None] | None

    def trials(self, settings: Sequence[Mapping[str, Any]]) -> tuple[list[Trial], int]:
        """The trial of each setting, and how many of them an earlier sweep made."""
        trials = {n: self._stored(setting) for n, setting in enumerate(settings)}
        new = [place for place, trial in trials.items() if trial is None]
        groups: dict[str, list[int]] = {}
        for place in new:
            group = json.dumps(self._arguments(settings[place]), sort_keys=True)
            groups.setdefault(group, []).append(place)
        # Settings that differ in k only share a retriever, and what it retrieves.
        for places in steps(groups.values(), len(groups), "trying settings"):
            run = self._run([settings[place] for place in places])
            trials |= {p: self._trial(settings[p], run) for p in places}
        done = [trial for trial in trials.values() if trial is not None]
        return done, len(settings) - len(new)

    def _arguments(self, setting: Mapping[str, Any]) -> dict[str, Any]:
        takes_k = "k" in inspect.signature(self.factory).parameters
        return {n: v for n, v in setting.items() if n != "k" or takes_k}

    def _k(self, setting: Mapping[str, Any]) -> int:
        return int(setting.get("k", self.depth))

    def _digest(self, setting: Mapping[str, Any]) -> str:
        labels = (self.truth.gold or Gold()).fingerprints([*self.texts])
        pairs = self.scoring.items()
        how = {name: v if isinstance(v, Path) else str(v) for name, v in pairs}
        by = (self.key, setting, self._k(setting))
        return digest_of("trial", *by, self.texts, labels, how)

    def _stored(self, setting: Mapping[str, Any]) -> Trial | None:
        saved: Any = None if self.key is None else stored_result(self._digest(setting))
        with suppress(TypeError):
            return Trial(**saved)
        return None

    def _run(self, settings: Sequence[Mapping[str, Any]]) -> Run:
        """What the retriever of these settings retrieves, as deep as any of them."""
        trial = Trial(settings[0], {})
        retriever: Any = None
        guard = ErrorGuard()
        with guard:
            # In this thread, which asks: what it opens may belong to its thread.
            retriever = self.factory(**self._arguments(settings[0]))
        if (error := guard.error) is not None:
            problem = f"{type(error).__name__}: {error}"
            raise UsageError(f"the factory failed for {trial}: {problem}") from error
        k, calls = max(map(self._k, settings)), self.concurrency
        with _named(trial):
            return retrieve(retriever, self.texts, k, concurrency=calls)

    def _trial(self, setting: Mapping[str, Any], run: Any) -> Trial:
        depth = self._k(setting)
        scoring = dict(self.scoring)
        scoring["depth"] = min(depth, scoring.get("depth") or depth)
        metrics = scoring["metrics"]
        if any(getattr(read_metric(m), LETTER, None) == LETTER for m in metrics):
            scoring["k"] = depth
        with _named(Trial(setting, {})):
            result = evaluate(run, gold=self.truth, **scoring)
        places = {query: place for place, query in enumerate(result.queries)}
        rows = [places[query] for query in self.texts]
        columns = {metric: result[metric].scores[rows].tolist() for metric in metrics}
        scores = {
            metric: [None if math.isnan(score) else score for score in column]
            for metric, column in columns.items()
        }
        corpus = scoring.get("corpus")
        rankings = (run if corpus is None else with_texts(run, corpus)).rankings
        tokens = {q: _tokens(ranking[:depth]) for q, ranking in rankings(Policies())}
        times = {**run.latency.milliseconds, **dict.fromkeys(run.latency.first_call)}
        own = [*map(tokens.get, self.texts)]
        timed = [*map(times.get, self.texts)]
        trial = Trial(dict(setting), scores, own, timed, len(run.failures))
        log.info("sweep: %s", trial)
        if self.key is not None and not trial.failed:
            store_result(self._digest(setting), asdict(trial))
        return trial


@contextmanager
def _named(trial: Trial) -> Iterator[None]:
    """What is wrong with the input of a setting is said with the setting."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{trial}: {error}") from error


def _tokens(documents: Sequence[Document]) -> float | None:
    """How many tokens documents have together; None where one has no text."""
    total = 0.0
    for document in documents:
        own = document.metadata.get("tokens")
        if isinstance(own, int | float):
            total += own
        elif document.text is None:
            return None
        else:
            size = len(document.text.encode("utf-8", "surrogatepass"))
            total += size / _BYTES_OF_A_TOKEN
    return total
