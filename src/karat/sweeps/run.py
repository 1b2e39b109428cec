"""Trying the settings of a retriever: made, asked, scored, and kept."""

import inspect
import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from karat.data.gold import Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Document, Run
from karat.data.spelling import LETTER
from karat.data.tables import steps
from karat.errors import (
    DataError,
    MismatchError,
    ParameterError,
    UnknownNameError,
    UsageError,
)
from karat.evaluation import evaluate
from karat.llm.callables import ErrorGuard, place_of
from karat.metrics import Metric, read_metric, split_metrics
from karat.reading.readers import read, read_queries, with_texts
from karat.results.result_cache import digest_of, store_result, stored_result
from karat.retrieving.retrieve import retrieve
from karat.sweeps.result import Sweep, Trial

_DEPTH = 10
_BYTES_OF_A_TOKEN = 4
_PLAIN = (str, int, float, bool, type(None))

log = logging.getLogger("karat")


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
    """Makes retrievers of settings, asks them, and scores what they retrieve.

    Settings without a k are as deep as `depth`. Results are stored under the key.
    """

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
