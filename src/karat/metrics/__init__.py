"""Metrics: one formula each, over hits.

To add one: a frozen dataclass in the module of its family, and its name in `_FAMILIES`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from karat.catalogue import Catalogue, plain, subclass_of
from karat.data.spelling import Cutoff, Spelling, Value, build, parse, write_value
from karat.errors import UnknownNameError, UsageError
from karat.metrics.aliases import MISSING, NAMES, canonical
from karat.metrics.metric import Metric

__all__ = [
    "METRICS",
    "SHIPPED",
    "Metric",
    "make_metric",
    "read_metric",
    "read_spelling",
    "split_metrics",
]

_FAMILIES = {
    "precision_recall": (
        "hit hits recall recall_all recall_capped precision f1 containment "
        "context_recall contradiction"
    ),
    "coverage": "coverage complete char_precision iou recall_at_budget",
    "ranking": "rr granular_rr ap gm_ap yaap accuracy ndcg_any context_precision",
    "gains": "dcg ideal_dcg ncg ndcg",
    "recall_points": "r_precision iprec iprec_avg q_measure rndcg ndcg_rel g bing",
    "incomplete_judgements": "bpref gm_bpref infap judged unjudged",
    "user_models": "rbp rbp_resid err compat",
    "continuation": "inst insq bpm sdcg nerr8 nerr9 nerr10 nerr11",
    "diversity": "alpha_dcg alpha_ndcg err_ia nerr_ia nrbp nnrbp ap_ia p_ia st_recall",
    "sets": (
        "set_precision set_recall set_ap set_f set_relative_precision utility num_q "
        "num_ret num_rel num_rel_ret num_nonrel_judged_ret"
    ),
}

SHIPPED: dict[str, str] = {
    name: f"karat.metrics.{family}"
    for family, names in _FAMILIES.items()
    for name in names.split()
}
"""Name and home of every metric; a family is imported when one of it is asked for."""

METRICS: Catalogue[type[Metric]] = Catalogue(
    "metric", SHIPPED, "karat.metrics", subclass_of(Metric)
)

# A comma between metrics, not one inside parentheses or brackets.
_BETWEEN = re.compile(r",(?![^(\[]*[)\]])")
_CUTOFF = re.compile(r"(.*[@._])[0-9]+")


def read_spelling(text: str) -> Spelling:
    """How karat spells a metric that was written in its own or another tool's words."""
    return parse(canonical(text))


def read_metric(text: str | Spelling) -> Metric:
    """The metric a spelling names, in karat's own or another tool's words.

    Example:
        >>> read_metric("ndcg_cut_10") == read_metric("nDCG@10")
        True
    """
    spelling = read_spelling(str(text))
    if spelling.name not in METRICS:
        raise _unknown(plain(spelling.name))
    if ("judged_only", True) in spelling.params:
        raise UsageError(
            f"{text}: judged_only is a rule of the whole evaluation here: "
            "judged_only=True, or --judged-only"
        )
    return build(METRICS[spelling.name], spelling, METRICS.kind)


def make_metric(
    name: str,
    /,
    k: Cutoff = None,
    **parameters: Value | Mapping[float, float] | None,
) -> Metric:
    """The metric of this name with these parameters; None stands for the default.

    Example:
        >>> str(make_metric("recall", k=5, threshold=2))
        'recall(threshold=2)@5'
    """
    params = tuple(
        (key, write_value(value) if isinstance(value, Mapping) else value)
        for key, value in parameters.items()
        if value is not None
    )
    return build(METRICS[name], Spelling(name, params, None, k), METRICS.kind)


def split_metrics(metrics: Any) -> tuple[str | Metric, ...]:
    """What a caller asks for, one by one; `recall@5,10` is two."""
    if isinstance(metrics, str | Metric) or not isinstance(metrics, Iterable):
        metrics = (metrics,)
    one_by_one: list[str | Metric] = []
    for metric in metrics:
        if not isinstance(metric, str):
            ours = isinstance(metric, Metric)
            one_by_one.append(metric if ours else _foreign(metric))
        elif "," in metric:
            one_by_one += _split(metric)
        else:
            one_by_one.append(metric)
    return tuple(one_by_one)


def _split(text: str) -> list[str]:
    parts: list[str] = []
    for part in filter(None, map(str.strip, _BETWEEN.split(text))):
        again = _CUTOFF.fullmatch(parts[-1]) if parts and part.isdecimal() else None
        parts.append(f"{again[1]}{part}" if again else part)
    return parts


def _foreign(measure: object) -> str:
    try:
        return str(read_metric(str(measure)))
    except UsageError:
        raise UsageError(
            "a metric must be a spelling such as 'ndcg@10' or an instance, got "
            f"{type(measure).__name__} {str(measure)[:60]!r}"
        ) from None


def _unknown(name: str) -> UsageError:
    if name in MISSING:
        return UsageError(f"metric {name} is not known here: {MISSING[name]}")
    names = [*METRICS, *NAMES]
    stem = name.rstrip("0123456789")
    if stem in names and stem != name:
        cutoff = f"{stem}@{name[len(stem) :]}"
        return UnknownNameError("metric", name, [cutoff])
    return UnknownNameError("metric", name, names, see="`karat metrics` lists them")
