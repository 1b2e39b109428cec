"""Measures and their scores: query by query, their mean, its interval and range."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.hits import Hits
from karat.data.intervals import Interval
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.spelling import LETTER, Spelling, Value, parse
from karat.data.tables import number
from karat.errors import DataError, ParameterError, UnknownNameError, UsageError
from karat.matching import JUDGED, read_matcher
from karat.metrics import Metric, read_metric, read_spelling
from karat.stats import mean_interval

if TYPE_CHECKING:
    from karat.results.evaluation import Evaluation

Average: TypeAlias = Literal["mean", "geometric", "sum"]
"""How scores become one number."""

_BY_PROFILE: Mapping[str, Mapping[str, Mapping[str, Value]]] = {
    "trec_eval-9": {"iprec": {"rounding": "up"}, "iprec_avg": {"rounding": "up"}},
    "trec_eval-10": {"rbp": {"p": 0.9, "gain": "scaled"}, "rbp_resid": {"p": 0.9}},
}
"""The defaults of metrics that differ in the tool a profile is named after."""


class Measure(NamedTuple):
    """One column of a result: a metric over the matches of a matcher."""

    label: str
    metric: Metric
    matcher: str

    @property
    def k(self) -> int | str | None:
        """The cutoff: a number, the letter for each query's own, or None: all."""
        cutoff: int | str | None = getattr(self.metric, LETTER, None)
        return cutoff

    def with_threshold(self, threshold: float | None) -> "Measure":
        """The measure with an evaluation's threshold, unless it has its own.

        What pays grades pays all of them, as nDCG does and trec_eval's rbp.
        """
        if threshold is None or getattr(self.metric, "threshold", 0) is not None:
            return self
        if getattr(self.metric, "gain", None) == "scaled":
            return self
        metric = replace(self.metric, threshold=threshold)  # type: ignore[call-arg]
        return self._replace(metric=metric)


def read_measure(
    asked: str | Metric, default: str, profile: str | None = None
) -> Measure:
    """The measure that a spelling or an instance of a metric stands for."""
    if isinstance(asked, Metric):
        return Measure(str(asked.spelling), asked, asked.matcher or default)
    metric = read_metric(asked)
    spelling = metric.spelling
    if theirs := _BY_PROFILE.get(profile or "", {}).get(metric.name):
        metric, spelling = _with_defaults(metric, read_spelling(asked), theirs)
    written = parse(asked).matcher if "[" in asked else None
    if written is None:
        return Measure(str(spelling), metric, metric.matcher or default)
    if written.name != JUDGED or written.params:
        written = read_matcher(written).spelling
    return Measure(str(replace(spelling, matcher=written)), metric, str(written))


def _with_defaults(
    metric: Metric, asked: Spelling, theirs: Mapping[str, Value]
) -> tuple[Metric, Spelling]:
    """The metric with other defaults, and a spelling that keeps what was asked for.

    A parameter that was spelled out stays, also where it is karat's own default.
    """
    named = {name for name, _ in asked.params}
    unnamed = {value for name, value in asked.params if name is None}
    said = {
        name
        for name in theirs
        if name in named or (unnamed and getattr(metric, name) in unnamed)
    }
    shown = {*said, *(name for name, _ in metric.spelling.params)}
    params = tuple(
        (field.name, getattr(metric, field.name))
        for field in fields(metric)
        if field.name in shown
    )
    changed = {name: value for name, value in theirs.items() if name not in said}
    return replace(metric, **changed), replace(metric.spelling, params=params)


# The least a query contributes to a geometric mean, as in trec_eval.
_FLOOR = 0.00001


@dataclass(frozen=True, eq=False)
class MetricScores:
    """One metric's score for every query, and their mean.

    Attributes:
        metric: the spelling.
        scores: one per query in input order; NaN where there is none.
        queries: ids of the queries, in the same order.
        undefined: number of queries for which the metric says nothing.
        failures: query index -> reason, for scores that could not be computed.
        binary: whether scores can only be 0 or 1.
        bounds: the smallest and largest possible score.
        cutoffs: the ks used, for a metric spelled with the letter k.
        average: how the scores become one number: `mean`, `geometric` or `sum`.
        higher_is_better: which of two scores is the better one; None: neither.

    Example:
        >>> import karat
        >>> run, gold = {"q": ["a", "b"]}, {"q": ["b"]}
        >>> rr = karat.evaluate(run, gold=gold, metrics="rr")["rr"]
        >>> rr.mean, rr["q"], rr.n, rr.undefined
        (0.5, 0.5, 1, 0)
    """

    metric: str
    scores: Floats
    queries: Sequence[str] = field(default=(), metadata={"saved": False})
    undefined: int = 0
    failures: Mapping[int, str] = field(default_factory=dict)
    binary: bool = False
    bounds: tuple[float, float] = (0.0, 1.0)
    cutoffs: tuple[int, ...] = ()
    average: Average = "mean"
    higher_is_better: bool | None = True

    def __getitem__(self, query: str) -> float:
        """The score of one query, by its id; NaN where there is none."""
        if query not in self._places:
            raise UnknownNameError("query", query, [*self._places][:1000])
        return float(self.scores[self._places[query]])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {query: place for place, query in enumerate(self.queries)}

    @property
    def defined(self) -> Floats:
        """The scores that are in the mean."""
        gaps = np.isnan(self.scores)
        return self.scores[~gaps] if np.count_nonzero(gaps) else self.scores

    @property
    def n(self) -> int:
        """Number of queries in the mean."""
        return len(self.defined)

    @property
    def depth(self) -> int | None:
        """How deep the metric looks; None for the whole ranking."""
        k = parse(self.metric).k
        return max(self.cutoffs, default=k if isinstance(k, int) else None)

    @property
    def failed(self) -> int:
        """Number of queries whose score could not be computed."""
        return len(self.failures)

    @property
    def mean(self) -> float:
        """The mean over the defined scores; NaN when there are none.

        The geometric mean or the sum, where that is how the metric is reported.
        """
        geometric = self.average == "geometric"
        terms = self._logarithms if geometric else self.scores
        # One after the other, as trec_eval adds up: the same last bit on any machine.
        sums = np.add.accumulate(terms)
        if not len(sums) or sums[-1] != sums[-1]:
            # Some are not defined.
            sums = np.add.accumulate(self.defined)
        n = len(sums)
        if not n:
            return math.nan
        total = float(sums[-1])
        if geometric:
            return math.exp(total / n)
        return total if self.average == "sum" else total / n

    @property
    def _logarithms(self) -> Floats:
        logarithms: Floats = np.log(np.maximum(self.defined, _FLOOR))
        return logarithms

    def __repr__(self) -> str:
        mean = f"mean={number(self.mean)}, n={self.n}, undefined={self.undefined}"
        return f"<MetricScores {self.metric}: {mean}>"

    @cached_property
    def interval(self) -> Interval | None:
        """The confidence interval of the mean; None where the scores tell of none."""
        if self.average == "sum":
            return None
        if self.average == "geometric":
            bounds = (math.log(_FLOOR), math.log(self.bounds[1]))
            found = mean_interval(self._logarithms, bounds=bounds)
            if found is None:
                return None
            low, high = map(math.exp, found)
            return Interval(low, high, found.level, found.method)
        scores = self.defined
        try:
            return mean_interval(scores, binary=self.binary, bounds=self.bounds)
        except ParameterError:
            raise UsageError(
                f"the metric {self.metric} must score within its bounds {self.bounds}, "
                f"got {scores.min():g} to {scores.max():g}"
            ) from None


def score_measures(
    measures: Sequence[Measure],
    matches: Mapping[str, Matches],
    queries: Sequence[str],
    policies: Policies,
    own_k: Ints | None,
) -> dict[str, MetricScores]:
    """The scores of every measure, under the policies on undefined and missing."""
    scores: Floats = np.empty((len(measures), len(queries)))
    for row, measure in enumerate(measures):
        hits = matches[measure.matcher].hits
        if own_k is not None and measure.k == LETTER:
            hits = replace(hits, own_k=own_k)
        column = np.asarray(measure.metric.score(hits))
        if column.shape != (len(queries),) or column.dtype.kind not in "fiub":
            raise UsageError(
                f"the metric {measure.metric.name!r} must return a number for each of "
                f"{len(queries)} queries, got {column!r:.60}"
            )
        scores[row] = column
    undefined = np.isnan(scores)
    for row, measure in enumerate(measures):
        if failures := matches[measure.matcher].failures:
            scores[row, [*failures]] = np.nan
            undefined[row, [*failures]] = False
    missing = matches[measures[0].matcher].missing
    if policies.missing == "skip":
        scores[:, missing] = np.nan
        undefined[:, missing] = False
    without = [0] * len(measures)
    if np.count_nonzero(undefined):
        without = undefined.sum(axis=1).tolist()
        _apply_undefined(scores, undefined, measures, queries, policies)
    ks = () if own_k is None else tuple(np.unique(own_k).tolist())
    return {
        measure.label: _made(
            metric=measure.label,
            scores=scores[row],
            queries=queries,
            undefined=without[row],
            failures=matches[measure.matcher].failures,
            binary=measure.metric.binary,
            bounds=measure.metric.bounds,
            cutoffs=ks if ks and measure.k == LETTER else (),
            average=measure.metric.average,
            higher_is_better=measure.metric.higher_is_better,
        )
        for row, measure in enumerate(measures)
    }


def _made(**fields: Any) -> MetricScores:
    """The same as from its class, which takes longer than most metrics."""
    column = object.__new__(MetricScores)
    vars(column).update(fields)
    return column


def _apply_undefined(
    scores: Floats,
    undefined: Bools,
    measures: Sequence[Measure],
    queries: Sequence[str],
    policies: Policies,
) -> None:
    if policies.undefined == "error":
        row, query = np.argwhere(undefined)[0]
        raise DataError(
            f"{measures[row].label} is undefined: nothing relevant to find",
            query=queries[query],
            hint="undefined='skip' (--undefined skip) leaves such queries out and "
            "counts them",
        )
    if policies.undefined == "zero":
        scores[undefined] = 0.0


def mean_ranges(result: "Evaluation") -> dict[str, tuple[float, float]]:
    """The smallest and largest mean of each metric where claims lack a verdict.

    A claim without a verdict may be supported by nothing, by any document or by the
    last one alone, or be contradicted. A query that failed may score anything.
    """
    ranges: dict[str, tuple[float, float]] = {}
    for matcher, matches in result.matches.items():
        if not matches.verdicts:
            continue
        unjudged = _unjudged(matches)
        if not unjudged.any() and not matches.failures:
            continue
        variants = [
            replace(result, matches={**result.matches, matcher: variant})
            for variant in _variants(matches, unjudged)
        ]
        names = [name for name in result if result.matchers[name] == matcher]
        for name in names:
            column = result[name]
            if column.average != "mean" or not all(map(math.isfinite, column.bounds)):
                continue
            try:
                scores = np.stack([variant.score(name).scores for variant in variants])
            except UnknownNameError:
                # An instance of a metric that no name leads to.
                continue
            scores[:, [*matches.failures]] = np.array(column.bounds * 2)[:, None]
            defined = scores[:, ~np.isnan(scores).any(axis=0)]
            if defined.size:
                low, high = defined.min(axis=0).mean(), defined.max(axis=0).mean()
                ranges[name] = (float(low), float(high))
    return ranges


def _unjudged(matches: Matches) -> Ints:
    """How many claims of each query have no verdict, though others have one."""
    counts = np.zeros(matches.hits.size, np.int64)
    for place, verdicts in matches.verdicts.items():
        if place not in matches.failures:
            counts[place] = sum(verdict.failure is not None for verdict in verdicts)
    return counts


def _variants(matches: Matches, unjudged: Ints) -> Iterator[Matches]:
    """The matches as they might be: four ways, as `mean_ranges` says."""
    hits = matches.hits
    grade = max(hits.grade_range[1], 0.0) or 1.0
    depth = hits.retrieved
    missed = _with_items(hits, unjudged, grade, depth * 0, depth * 0)
    for variant in (
        missed,
        _with_items(hits, unjudged, grade, np.minimum(depth, 1), depth),
        _with_items(hits, unjudged, grade, depth, depth),
        _with_items(missed, unjudged, -grade, np.minimum(depth, 1), depth),
    ):
        yield replace(matches, hits=variant)


def _with_items(hits: Hits, added: Ints, grade: float, first: Ints, last: Ints) -> Hits:
    """The hits with so many more items of each query, found from rank to rank."""
    ends, before = hits.gold_count.cumsum(), added.cumsum() - added
    rows = [
        (query, rank, grade, ends[query] + before[query] + number, False)
        for query in np.flatnonzero(added).tolist()
        for number in range(added[query])
        for rank in range(max(1, first[query]), last[query] + 1)
    ]
    joint = np.zeros(len(hits.query), bool) if hits.joint is None else hits.joint
    item = np.arange(len(hits.query)) if hits.item is None else hits.item
    columns = [
        np.concatenate([old, np.array(new, old.dtype)])
        for old, new in zip(
            (hits.query, hits.rank, hits.grade, item + before[hits.query], joint),
            [*zip(*rows, strict=True)] or [()] * 5,
            strict=True,
        )
    ]
    order = np.lexsort((columns[1], columns[0]))
    query, rank, grades, item, joint = (column[order] for column in columns)
    return replace(
        hits,
        query=query,
        rank=rank,
        grade=grades,
        item=item,
        joint=joint if joint.any() else None,
        gold_count=hits.gold_count + added,
        gold_grade=np.insert(hits.gold_grade, ends.repeat(added), grade),
    )
