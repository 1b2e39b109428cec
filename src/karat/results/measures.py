"""From a spelling to a column of a result: a metric, and the matcher it reads."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import NamedTuple

from karat.data.spelling import LETTER, Spelling, Value, parse
from karat.matching.shipped import JUDGED, read_matcher
from karat.metrics import Metric, read_metric, read_spelling

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
