"""Metrics: one formula each, over hits.

To add one: a frozen dataclass in a module of this room, and its name in `SHIPPED`.
"""

from karat.catalogue import Catalogue, plain
from karat.data.parameters import build
from karat.data.spelling import Spelling, parse
from karat.errors import UnknownNameError, UsageError
from karat.metrics.aliases import NAMES, canonical
from karat.metrics.counts import (
    NumNonrelJudgedRet,
    NumRel,
    NumRelRet,
    NumRet,
    Utility,
)
from karat.metrics.coverage import (
    IOU,
    CharPrecision,
    Complete,
    Coverage,
    RecallAtBudget,
)
from karat.metrics.first_found import ReciprocalRank
from karat.metrics.found_items import (
    F1,
    Containment,
    ContextRecall,
    Hit,
    Precision,
    Recall,
    RecallAll,
    RecallCapped,
)
from karat.metrics.interpolated import InterpolatedAverage, InterpolatedPrecision
from karat.metrics.judged_lists import BPref, InferredAP, Judged, Unjudged
from karat.metrics.metric import Metric
from karat.metrics.r_based import RNDCG, BinaryG, G, NDCGRel, RPrecision
from karat.metrics.ranked_gain import NDCG, AveragePrecision, ContextPrecision, NDCGAny
from karat.metrics.sets import (
    SetAP,
    SetF,
    SetPrecision,
    SetRecall,
    SetRelativePrecision,
)
from karat.metrics.user_models import (
    ExpectedReciprocalRank,
    RankBiasedPrecision,
    RankBiasedResidual,
)

__all__ = ["METRICS", "SHIPPED", "Metric", "read_metric", "read_spelling"]

SHIPPED: tuple[type[Metric], ...] = (
    Hit,
    Recall,
    RecallAll,
    RecallCapped,
    Precision,
    F1,
    Containment,
    Coverage,
    Complete,
    CharPrecision,
    IOU,
    RecallAtBudget,
    ReciprocalRank,
    AveragePrecision,
    NDCG,
    NDCGAny,
    ContextPrecision,
    ContextRecall,
    RPrecision,
    BPref,
    InferredAP,
    InterpolatedPrecision,
    InterpolatedAverage,
    Judged,
    Unjudged,
    RankBiasedPrecision,
    RankBiasedResidual,
    ExpectedReciprocalRank,
    RNDCG,
    NDCGRel,
    G,
    BinaryG,
    SetPrecision,
    SetRecall,
    SetAP,
    SetF,
    SetRelativePrecision,
    Utility,
    NumRet,
    NumRel,
    NumRelRet,
    NumNonrelJudgedRet,
)

METRICS: Catalogue[type[Metric]] = Catalogue(
    "metric", {metric.name: metric for metric in SHIPPED}, group="karat.metrics"
)


def read_spelling(text: str) -> Spelling:
    """How karat spells a metric that was written in its own or another tool's words."""
    return parse(canonical(text))


def read_metric(text: str | Spelling) -> Metric:
    """The metric a spelling names, in karat's own or another tool's words.

    Example:
        >>> read_metric("ndcg_cut_10") == read_metric("nDCG@10") == NDCG(10)
        True
    """
    spelling = read_spelling(str(text))
    if spelling.name not in METRICS:
        raise _unknown(plain(spelling.name))
    return build(METRICS[spelling.name], spelling, METRICS.kind)


def _unknown(name: str) -> UsageError:
    known = [*METRICS, *NAMES]
    stem = name.rstrip("0123456789")
    if stem in known and stem != name:
        cutoff = f"{stem}@{name[len(stem) :]}"
        return UnknownNameError("metric", name, [cutoff])
    return UnknownNameError("metric", name, known, see="`karat metrics` lists them")
