"""From a spelling to a column of a result: a metric, and the matcher it reads."""

from dataclasses import replace
from typing import NamedTuple

from karat.data.spelling import parse
from karat.matching.shipped import JUDGED, read_matcher
from karat.metrics import Metric, read_metric

__all__ = ["Measure", "read_measure"]


class Measure(NamedTuple):
    """One column of a result: a metric over the matches of a matcher.

    Attributes:
        label: the canonical spelling.
        metric: the formula.
        matcher: canonical spelling of the matcher whose matches it reads.
    """

    label: str
    metric: Metric
    matcher: str

    def with_threshold(self, threshold: float | None) -> "Measure":
        """The measure with an evaluation's threshold, unless it has its own."""
        if threshold is None or getattr(self.metric, "threshold", 0) is not None:
            return self
        metric = replace(self.metric, threshold=threshold)  # type: ignore[call-arg]
        return self._replace(metric=metric)


def read_measure(asked: str | Metric, default: str) -> Measure:
    """The measure that a spelling or an instance of a metric stands for.

    Args:
        asked: a spelling in karat's or another tool's words, or a metric.
        default: spelling of the matcher, where neither the spelling nor the metric
            names one.

    Example:
        >>> read_measure("nDCG@10", "id")[::2]
        ('ndcg@10', 'id')
        >>> read_measure("recall[fuzzy(.9)]@5", "id")[::2]
        ('recall[fuzzy(threshold=0.9)]@5', 'fuzzy(threshold=0.9)')
    """
    if isinstance(asked, Metric):
        return Measure(str(asked.spelling), asked, asked.matcher or default)
    metric = read_metric(asked)
    written = parse(asked).matcher if "[" in asked else None
    if written is None:
        return Measure(str(metric.spelling), metric, metric.matcher or default)
    if written.name != JUDGED or written.params:
        written = read_matcher(written).spelling
    return Measure(str(replace(metric.spelling, matcher=written)), metric, str(written))
