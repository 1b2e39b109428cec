"""What callers ask for: metrics as spellings, instances, or measures of other tools."""

import re
from collections.abc import Iterable
from typing import Any

from karat.errors import UsageError
from karat.metrics import Metric, read_metric

__all__ = ["read_asked"]

# A comma between metrics, not one inside parentheses or brackets.
_BETWEEN = re.compile(r",(?![^(\[]*[)\]])")
_CUTOFF = re.compile(r"(.*[@._])[0-9]+")


def read_asked(metrics: Any) -> tuple[str | Metric, ...]:
    """The metrics one by one, spelled or as instances.

    A text may hold several, joined by commas; a number alone is another cutoff of the
    metric before it. An object of another tool is taken by the way it prints itself.

    Raises:
        UsageError: something that is no metric.

    Example:
        >>> read_asked(["P@5,10", "rr, ndcg(gain=exp)@10"])
        ('P@5', 'P@10', 'rr', 'ndcg(gain=exp)@10')
    """
    if isinstance(metrics, str | Metric) or not isinstance(metrics, Iterable):
        metrics = (metrics,)
    asked: list[str | Metric] = []
    for metric in metrics:
        if not isinstance(metric, str):
            asked.append(metric if isinstance(metric, Metric) else _foreign(metric))
        elif "," in metric:
            asked += _split(metric)
        else:
            asked.append(metric)
    return tuple(asked)


def _split(text: str) -> list[str]:
    found: list[str] = []
    for part in filter(None, map(str.strip, _BETWEEN.split(text))):
        again = _CUTOFF.fullmatch(found[-1]) if found and part.isdecimal() else None
        found.append(f"{again[1]}{part}" if again else part)
    return found


def _foreign(measure: object) -> str:
    try:
        return str(read_metric(str(measure)))
    except UsageError:
        raise UsageError(
            "a metric must be a spelling such as 'ndcg@10' or an instance, got "
            f"{type(measure).__name__} {str(measure)[:60]!r}"
        ) from None
