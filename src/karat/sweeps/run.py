"""Trying the settings of a retriever: made, asked, scored, and kept."""

import inspect
import json
import logging
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from karat.data.gold import Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Document, Run
from karat.data.spelling import LETTER
from karat.errors import (
    DataError,
    MismatchError,
    ParameterError,
    UnknownNameError,
    UsageError,
)
from karat.evaluation import evaluate
from karat.metrics import Metric, read_metric, split_metrics
from karat.reading.queries import read_queries
from karat.reading.readers import take_gold, with_texts
from karat.results.result_cache import digest_of, keep, kept
from karat.retrieving.client import Caught
from karat.retrieving.retrieve import place_of, retrieve
from karat.sweeps.result import Sweep, Trial

_DEPTH = 10
_SEED = 20_240_229
# Fewer queries would choose at random.
_LEAST_QUERIES = 30
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
    halving: bool = False,
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
        halving: ask all settings a few queries, and the better half of them twice as
            many, until a few are asked all; much quicker, and nearly as good.
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
    truth = take_gold(gold, mapping or {})
    facts = read_queries(queries)
    wanted = {*truth.gold.queries} if truth.gold else set()
    texts = {query: f.text or "" for query, f in facts.items() if query in wanted}
    if not texts:
        raise MismatchError("no query has gold: queries and gold have no id in common")
    asked = [*texts]
    if halving:
        random.Random(_SEED).shuffle(asked)  # noqa: S311
    spellings = [str(metric) for metric in split_metrics(metrics)]
    scoring = {**options, "metrics": spellings, "mapping": mapping}
    key = None if version is None else [place_of(factory), name, version]
    trying = _Trying(factory, truth, scoring, concurrency, k, key)
    trials = [Trial(s, dict.fromkeys(spellings, ())) for s in settings]
    left, done = [*range(len(trials))], 0
    for count in _rounds(len(asked), len(trials)) if halving else [len(asked)]:
        part = {query: texts[query] for query in asked[done:count]}
        for place, more in trying.try_all([settings[row] for row in left], part):
            trials[left[place]] = _joined(trials[left[place]], more)
        done = count
        if count < len(asked):
            means = {row: trials[row].mean(spellings[0]) for row in left}
            # The largest first, and what has no score last.
            left.sort(key=lambda r: math.inf if math.isnan(means[r]) else -means[r])
            left = sorted(left[: -(-len(left) // 2)])
            trying.forget_others([settings[row] for row in left])
    unasked = len(wanted) - len(asked)
    return Sweep(spellings, asked, trials, len(trying.reused), unasked)


def _rounds(queries: int, settings: int) -> Iterator[int]:
    """How many queries are asked by the end of each round; half of the rest go then."""
    halvings = max(0, settings.bit_length() - 2)
    counts = (queries >> left for left in range(halvings, 0, -1))
    yield from (count for count in counts if count >= _LEAST_QUERIES)
    yield queries


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
    known = inspect.signature(factory).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in known.values())
    for setting in settings:
        for name, value in setting.items():
            if name not in known and name != "k" and not takes_all:
                raise UnknownNameError("parameter of the factory", name, [*known, "k"])
            if not isinstance(value, _PLAIN):
                must_be = "texts, numbers, true, false or None"
                raise ParameterError("sweep", f"grid[{name!r}]", must_be, value)
        depth = setting.get("k", k)
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise ParameterError("sweep", "k", "an integer >= 1", depth)
    return settings


@dataclass
class _Trying:
    """Makes retrievers of settings, asks them, and scores what they retrieve.

    Attributes:
        factory: makes a retriever of a setting.
        truth: what should be retrieved.
        scoring: the options of `evaluate`.
        concurrency: calls under way at once.
        depth: the k of settings that have none.
        key: what results are kept under, if at all.
        retrievers: those that were made, and may be asked more.
        reused: the settings whose results were kept.
    """

    factory: Callable[..., Any]
    truth: Dataset
    scoring: Mapping[str, Any]
    concurrency: int
    depth: int
    key: Sequence[str | None] | None
    retrievers: dict[str, Any] = field(default_factory=dict)
    reused: set[str] = field(default_factory=set)

    def try_all(
        self, settings: Sequence[Mapping[str, Any]], texts: Mapping[str, str]
    ) -> Iterator[tuple[int, Trial]]:
        """The trial of each setting on these queries, with the setting's place."""
        groups: dict[str, list[int]] = {}
        for place, setting in enumerate(settings):
            groups.setdefault(self._group(setting), []).append(place)
        for group, places in groups.items():
            found = {place: self._kept(settings[place], texts) for place in places}
            missing = [place for place, trial in found.items() if trial is None]
            run = self._run(group, [settings[p] for p in missing], texts)
            for place, trial in found.items():
                yield place, trial or self._trial(settings[place], run, texts)

    def forget_others(self, settings: Sequence[Mapping[str, Any]]) -> None:
        """Let go of all retrievers but those of the settings that are left."""
        left = {*map(self._group, settings)}
        self.retrievers = {n: r for n, r in self.retrievers.items() if n in left}

    def _arguments(self, setting: Mapping[str, Any]) -> dict[str, Any]:
        takes_k = "k" in inspect.signature(self.factory).parameters
        return {n: v for n, v in setting.items() if n != "k" or takes_k}

    def _group(self, setting: Mapping[str, Any]) -> str:
        """Settings that differ in k only share a retriever, and what it retrieves."""
        return json.dumps(self._arguments(setting), sort_keys=True)

    def _k(self, setting: Mapping[str, Any]) -> int:
        return int(setting.get("k", self.depth))

    def _key(self, setting: Mapping[str, Any], texts: Mapping[str, str]) -> str:
        labels = (self.truth.gold or Gold()).fingerprints([*texts])
        pairs = self.scoring.items()
        how = {name: v if isinstance(v, Path) else str(v) for name, v in pairs}
        k = self._k(setting)
        return digest_of("trial", self.key, setting, k, texts, labels, how)

    def _kept(
        self, setting: Mapping[str, Any], texts: Mapping[str, str]
    ) -> Trial | None:
        saved: Any = None if self.key is None else kept(self._key(setting, texts))
        with suppress(TypeError):
            trial = Trial(**saved)
            self.reused.add(str(trial))
            return trial
        return None

    def _run(
        self,
        group: str,
        settings: Sequence[Mapping[str, Any]],
        texts: Mapping[str, str],
    ) -> Run | None:
        """What the retriever of these settings retrieves, as deep as any of them."""
        if not settings:
            return None
        said = Trial(settings[0], {})
        if group not in self.retrievers:
            caught = Caught()
            with caught:
                # In this thread, which asks: what it opens may belong to its thread.
                self.retrievers[group] = self.factory(**self._arguments(settings[0]))
            if (error := caught.error) is not None:
                problem = f"{type(error).__name__}: {error}"
                raise UsageError(f"the factory failed for {said}: {problem}") from error
        deepest = max(map(self._k, settings))
        ask = partial(retrieve, concurrency=self.concurrency, cache=None)
        with _named(said):
            return ask(self.retrievers[group], texts, deepest)

    def _trial(
        self, setting: Mapping[str, Any], run: Any, texts: Mapping[str, str]
    ) -> Trial:
        depth = self._k(setting)
        scoring = dict(self.scoring)
        scoring["depth"] = min(depth, scoring.get("depth") or depth)
        metrics = scoring["metrics"]
        if any(getattr(read_metric(m), LETTER, None) == LETTER for m in metrics):
            scoring["k"] = depth
        with _named(Trial(setting, {})):
            result = evaluate(run, gold=self.truth, **scoring)
        places = {query: place for place, query in enumerate(result.queries)}
        rows = [places[query] for query in texts]
        scores = {
            metric: [
                None if math.isnan(score) else score
                for score in result[metric].scores[rows].tolist()
            ]
            for metric in metrics
        }
        corpus = scoring.get("corpus")
        rankings = (run if corpus is None else with_texts(run, corpus)).rankings
        tokens = {
            query: _tokens(found[:depth]) for query, found in rankings(Policies())
        }
        times = {**run.latency.milliseconds, **dict.fromkeys(run.latency.first_call)}
        trial = Trial(
            dict(setting),
            scores,
            [*map(tokens.get, texts)],
            [*map(times.get, texts)],
            len(run.failures),
        )
        log.info("sweep: %s", trial)
        if self.key is not None and not trial.failed:
            keep(self._key(setting, texts), asdict(trial))
        return trial


@contextmanager
def _named(trial: Trial) -> Iterator[None]:
    """What is wrong with the input of a setting is said with the setting."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{trial}: {error}") from error


def _joined(trial: Trial, more: Trial) -> Trial:
    """A trial on some queries and on the next ones, as one."""
    return Trial(
        trial.setting,
        {name: [*own, *more.scores[name]] for name, own in trial.scores.items()},
        [*trial.tokens, *more.tokens],
        [*trial.milliseconds, *more.milliseconds],
        trial.failed + more.failed,
    )


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
