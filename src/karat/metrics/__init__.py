"""Metrics: one formula each, over hits.

To add one: a frozen dataclass in the module of its family, and its row in `SHIPPED`.
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

SHIPPED: dict[str, str] = {
    "hit": "karat.metrics.precision_recall:Hit",
    "hits": "karat.metrics.precision_recall:HitCount",
    "recall": "karat.metrics.precision_recall:Recall",
    "recall_all": "karat.metrics.precision_recall:RecallAll",
    "recall_capped": "karat.metrics.precision_recall:RecallCapped",
    "precision": "karat.metrics.precision_recall:Precision",
    "f1": "karat.metrics.precision_recall:F1",
    "containment": "karat.metrics.precision_recall:Containment",
    "coverage": "karat.metrics.coverage:CoveredShare",
    "complete": "karat.metrics.coverage:Complete",
    "char_precision": "karat.metrics.coverage:CharPrecision",
    "iou": "karat.metrics.coverage:IOU",
    "recall_at_budget": "karat.metrics.coverage:RecallAtBudget",
    "rr": "karat.metrics.ranking:ReciprocalRank",
    "granular_rr": "karat.metrics.ranking:GranularRR",
    "ap": "karat.metrics.ranking:AveragePrecision",
    "gm_ap": "karat.metrics.ranking:GeometricAP",
    "yaap": "karat.metrics.ranking:LogOddsAP",
    "accuracy": "karat.metrics.ranking:Accuracy",
    "dcg": "karat.metrics.gains:DCG",
    "ideal_dcg": "karat.metrics.gains:IdealDCG",
    "ncg": "karat.metrics.gains:NCG",
    "ndcg": "karat.metrics.gains:NDCG",
    "ndcg_any": "karat.metrics.ranking:NDCGAny",
    "context_precision": "karat.metrics.ranking:ContextPrecision",
    "context_recall": "karat.metrics.precision_recall:ContextRecall",
    "contradiction": "karat.metrics.precision_recall:Contradiction",
    "r_precision": "karat.metrics.recall_points:RPrecision",
    "bpref": "karat.metrics.incomplete_judgements:BPref",
    "gm_bpref": "karat.metrics.incomplete_judgements:GeometricBPref",
    "infap": "karat.metrics.incomplete_judgements:InferredAP",
    "iprec": "karat.metrics.recall_points:InterpolatedPrecision",
    "iprec_avg": "karat.metrics.recall_points:InterpolatedAverage",
    "judged": "karat.metrics.incomplete_judgements:Judged",
    "unjudged": "karat.metrics.incomplete_judgements:UnjudgedShare",
    "rbp": "karat.metrics.user_models:RankBiasedPrecision",
    "rbp_resid": "karat.metrics.user_models:RankBiasedResidual",
    "err": "karat.metrics.user_models:ExpectedReciprocalRank",
    "compat": "karat.metrics.user_models:Compatibility",
    "inst": "karat.metrics.continuation:INST",
    "insq": "karat.metrics.continuation:INSQ",
    "bpm": "karat.metrics.continuation:BejeweledPlayer",
    "sdcg": "karat.metrics.continuation:ScaledDCG",
    "nerr8": "karat.metrics.continuation:NearERR8",
    "nerr9": "karat.metrics.continuation:NearERR9",
    "nerr10": "karat.metrics.continuation:NearERR10",
    "nerr11": "karat.metrics.continuation:NearERR11",
    "alpha_dcg": "karat.metrics.diversity:AlphaDCG",
    "alpha_ndcg": "karat.metrics.diversity:AlphaNDCG",
    "err_ia": "karat.metrics.diversity:IntentERR",
    "nerr_ia": "karat.metrics.diversity:NormalIntentERR",
    "nrbp": "karat.metrics.diversity:NoveltyRBP",
    "nnrbp": "karat.metrics.diversity:NormalNoveltyRBP",
    "ap_ia": "karat.metrics.diversity:IntentAP",
    "p_ia": "karat.metrics.diversity:IntentPrecision",
    "st_recall": "karat.metrics.diversity:SubtopicRecall",
    "q_measure": "karat.metrics.recall_points:QMeasure",
    "rndcg": "karat.metrics.recall_points:RNDCG",
    "ndcg_rel": "karat.metrics.recall_points:NDCGRel",
    "g": "karat.metrics.recall_points:G",
    "bing": "karat.metrics.recall_points:BinaryG",
    "set_precision": "karat.metrics.sets:SetPrecision",
    "set_recall": "karat.metrics.sets:SetRecall",
    "set_ap": "karat.metrics.sets:SetAP",
    "set_f": "karat.metrics.sets:SetF",
    "set_relative_precision": "karat.metrics.sets:SetRelativePrecision",
    "utility": "karat.metrics.sets:Utility",
    "num_q": "karat.metrics.sets:NumQ",
    "num_ret": "karat.metrics.sets:NumRet",
    "num_rel": "karat.metrics.sets:NumRel",
    "num_rel_ret": "karat.metrics.sets:NumRelRet",
    "num_nonrel_judged_ret": "karat.metrics.sets:NumNonrelJudgedRet",
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
    """What a caller asks for, one by one, spelled or as instances.

    A text may hold several, joined by commas; a number alone is another cutoff of the
    metric before it. An object of another tool is taken by the way it prints itself.
    """
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
