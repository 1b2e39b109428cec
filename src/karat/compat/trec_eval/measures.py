"""Every measure of trec_eval, in the order it prints them, and how `-m` names them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from karat.compat.trec_eval.columns import (
    Column,
    Rules,
    Score,
    Shown,
    discounted,
    interpolated,
    interpolated_average,
    plain_score,
    regraded,
    where_relevant,
    yaap,
)
from karat.compat.trec_eval.parameters import (
    read_cutoffs,
    read_gains,
    read_numbers,
    read_pairs,
)
from karat.errors import ParameterError, UnknownNameError, UsageError
from karat.metrics.incomplete_judgements import BPref, InferredAP, Unjudged
from karat.metrics.metric import Metric
from karat.metrics.precision_recall import Hit, Precision, Recall, RecallCapped
from karat.metrics.ranking import NDCG, AveragePrecision, ReciprocalRank
from karat.metrics.recall_points import RNDCG, BinaryG, G, NDCGRel, RPrecision
from karat.metrics.sets import (
    NumNonrelJudgedRet,
    NumRel,
    NumRelRet,
    NumRet,
    SetAP,
    SetF,
    SetPrecision,
    SetRecall,
    SetRelativePrecision,
    Utility,
)
from karat.metrics.user_models import RankBiasedPrecision, RankBiasedResidual

__all__ = ["columns_for"]

_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_TENTHS = tuple(tenth / 10 for tenth in range(11))
_FIFTHS = tuple(fifth / 5 for fifth in range(1, 11))

Maker: TypeAlias = Callable[[str, str | None, Rules], list[Column]]
"""From a measure's name, the text of its parameters and the rules to its columns."""


def _one(make: Callable[[float | None], Metric], shown: Shown = Shown.MEAN) -> Maker:
    """A measure without parameters; what is given is ignored, as trec_eval does."""

    def columns(name: str, text: str | None, rules: Rules) -> list[Column]:
        del text
        metric = make(rules.threshold)
        return [Column(name, plain_score(metric), shown, metric.reads_judged)]

    return columns


def _once(name: str, text: str | None, rules: Rules) -> list[Column]:
    del text, rules
    return [Column(name, shown=Shown.ONCE)]


def _cut(
    make: Callable[[int, float | None], Metric], cutoffs: Sequence[int] = _CUTOFFS
) -> Maker:
    """A measure at several ranks."""

    def columns(name: str, text: str | None, rules: Rules) -> list[Column]:
        metrics = {
            k: make(k, rules.threshold)
            for k in (cutoffs if text is None else read_cutoffs(name, text))
        }
        return [
            Column(f"{name}_{k}", plain_score(metric), judged=metric.reads_judged)
            for k, metric in metrics.items()
        ]

    return columns


def _levels(make: Callable[[float, Rules], Score], levels: Sequence[float]) -> Maker:
    """A measure at several shares of the relevant documents."""

    def columns(name: str, text: str | None, rules: Rules) -> list[Column]:
        points = levels if text is None else sorted(read_numbers(name, text))
        if len(set(points)) < len(points):
            raise ParameterError(f"-m {name}", "parameters", "all different", text)
        return [Column(f"{name}_{x:3.2f}", make(x, rules)) for x in points]

    return columns


def _weighted(
    make: Callable[[list[float], Rules], Score], default: Sequence[float]
) -> Maker:
    """A single value with numbers as parameters."""

    def columns(name: str, text: str | None, rules: Rules) -> list[Column]:
        numbers = list(default) if text is None else read_numbers(name, text)
        return [Column(_label(name, text), make(numbers, rules))]

    return columns


def _gained(score: Score) -> Maker:
    """A single value with other gains for some grades as parameters."""

    def columns(name: str, text: str | None, rules: Rules) -> list[Column]:
        gains = {} if text is None else read_gains(name, text)
        gained = regraded(score, gains)
        if name == "Rndcg":
            gained = where_relevant(gained, rules.threshold)
        return [Column(_label(name, text), gained, judged=0 in gains)]

    return columns


def _letters(name: str, text: str | None, rules: Rules) -> list[Column]:
    del rules
    length = 10 if text is None else int(read_numbers(name, text)[0])
    label = _label(name, text)
    return [Column(label, shown=Shown.LETTERS, judged=True, letters=length)]


def _rank_biased(name: str, text: str | None, rules: Rules) -> list[Column]:
    del rules
    pairs = {} if text is None else read_pairs(name, text)
    p = pairs.get("p", 0.9)
    if name == "rbp_resid":
        residual = plain_score(RankBiasedResidual(p))
        return [Column(_label(name, text), residual, judged=True)]
    gains = {int(key): gain for key, gain in pairs.items() if key.isdecimal()}
    score = plain_score(RankBiasedPrecision(p=p, gain="scaled"))
    return [Column(_label(name, text), regraded(score, gains), judged=0 in gains)]


def _label(name: str, text: str | None) -> str:
    return name if text is None else f"{name}_{text}"


def _utility(weights: list[float], rules: Rules) -> Score:
    if len(weights) != 4:  # noqa: PLR2004
        raise ParameterError("-m utility", "parameters", "four numbers", weights)
    found, noise, missed, rest = weights
    return plain_score(
        Utility(found, noise, missed, rest, rules.collection, rules.threshold)
    )


def _same(metric: Metric) -> Maker:
    return _gained(plain_score(metric))


_MEASURES: dict[str, Maker] = {
    "runid": _once,
    "num_q": _once,
    "num_ret": _one(lambda _: NumRet(), Shown.SUM),
    "num_rel": _one(NumRel, Shown.SUM),
    "num_rel_ret": _one(NumRelRet, Shown.SUM),
    "map": _one(partial(AveragePrecision, None)),
    "gm_map": _one(partial(AveragePrecision, None), Shown.GEOMETRIC),
    "Rprec": _one(partial(RPrecision, 1.0)),
    "bpref": _one(BPref),
    "recip_rank": _one(partial(ReciprocalRank, None)),
    "iprec_at_recall": _levels(interpolated, _TENTHS),
    "P": _cut(Precision),
    "relstring": _letters,
    "recall": _cut(Recall),
    "infAP": _one(InferredAP),
    "gm_bpref": _one(BPref, Shown.GEOMETRIC),
    "Rprec_mult": _levels(
        lambda x, rules: plain_score(RPrecision(x, rules.threshold)), _FIFTHS
    ),
    "utility": _weighted(_utility, (1.0, -1.0, 0.0, 0.0)),
    "11pt_avg": _weighted(interpolated_average, _TENTHS),
    "binG": _one(BinaryG),
    "G": _same(G()),
    "dcg": _gained(discounted(ideal=False)),
    "ideal_dcg": _gained(discounted(ideal=True)),
    "ndcg": _same(NDCG()),
    "ndcg_rel": _same(NDCGRel()),
    "Rndcg": _same(RNDCG()),
    "ndcg_cut": _cut(lambda k, _: NDCG(k)),
    "map_cut": _cut(AveragePrecision),
    "relative_P": _cut(RecallCapped),
    "success": _cut(Hit, (1, 5, 10)),
    "set_P": _one(SetPrecision),
    "set_relative_P": _one(SetRelativePrecision),
    "set_recall": _one(SetRecall),
    "set_map": _one(SetAP),
    "set_F": _weighted(
        lambda x, rules: plain_score(SetF(x[0], rules.threshold)), (1.0,)
    ),
    "num_nonrel_judged_ret": _one(NumNonrelJudgedRet, Shown.SUM),
    "yaap": _weighted(lambda _, rules: yaap(rules.threshold), ()),
    "rbp": _rank_biased,
    "rbp_resid": _rank_biased,
    "unj": _cut(lambda k, _: Unjudged(k), (5, 10, 20)),
}

_SINCE_10 = ("dcg", "ideal_dcg", "rbp", "rbp_resid", "unj")
_BY_NAME_ONLY = ("dcg", "ideal_dcg", "yaap")
_COUNTS = ("runid", "num_q", "num_ret", "num_rel", "num_rel_ret")
_OFFICIAL = (
    *_COUNTS,
    *("map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall", "P"),
)
_SETS = (
    *_COUNTS,
    *("utility", "set_P", "set_recall", "set_relative_P", "set_map", "set_F"),
)


@dataclass(frozen=True)
class _Known:
    """What one version of trec_eval knows."""

    version: str

    @property
    def measures(self) -> list[str]:
        return [m for m in _MEASURES if self.version != "9" or m not in _SINCE_10]

    @property
    def nicknames(self) -> dict[str, tuple[str, ...]]:
        every = tuple(m for m in self.measures if m not in _BY_NAME_ONLY)
        return {"official": _OFFICIAL, "all_trec": every, "set": _SETS}


def columns_for(measures: Iterable[str], rules: Rules) -> list[Column]:
    """The columns that `-m` asks for, in the order trec_eval prints them.

    A measure is `name` or `name.parameters`, or the nickname of a set of measures; none
    at all means `official`. Where one measure is given parameters twice, the first ones
    hold.
    """
    known = _Known(rules.version)
    chosen: set[str] = set()
    parameters: dict[str, str] = {}
    for text in tuple(measures) or ("official",):
        name, dot, given = text.partition(".")
        if dot and not given:
            raise UsageError(f"measure {text!r} must have parameters after the dot")
        if dot:
            parameters.setdefault(name, given)
        if name in known.nicknames:
            chosen.update(known.nicknames[name])
        elif name in known.measures:
            chosen.add(name)
        else:
            raise UnknownNameError(
                "trec_eval measure", name, [*known.measures, *known.nicknames]
            )
    return [
        column
        for name, make in _MEASURES.items()
        if name in chosen
        for column in make(name, parameters.get(name), rules)
    ]
