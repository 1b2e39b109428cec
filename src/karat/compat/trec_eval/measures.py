"""Every measure of trec_eval, in the order it prints them, and how `-m` names them."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from karat.compat.trec_eval.columns import (
    Column,
    Rules,
    Score,
    Shown,
    interpolated,
    interpolated_average,
    plain_score,
    regraded,
    where_relevant,
)
from karat.extend import (
    NDCG,
    ParameterError,
    UnknownNameError,
    UsageError,
    make_metric,
)

__all__ = ["columns_for"]

_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_TENTHS = tuple(tenth / 10 for tenth in range(11))
_FIFTHS = tuple(fifth / 5 for fifth in range(1, 11))
# trec_eval reads a C long; what it makes of more is left to the machine.
_LARGEST = 2**63 - 1

Maker: TypeAlias = Callable[[str, str | None, Rules], list[Column]]
"""From a measure's name, the text of its parameters and the rules to its columns."""


def _one(ours: str, shown: Shown = Shown.MEAN, *, has_threshold: bool = True) -> Maker:
    """A measure without parameters; what is given is ignored, as trec_eval does."""

    def columns(name: str, text: str | None, rules: Rules) -> list[Column]:
        del text
        threshold = rules.threshold if has_threshold else None
        metric = make_metric(ours, threshold=threshold)
        return [Column(name, plain_score(metric), shown, metric.reads_judged)]

    return columns


def _once(name: str, text: str | None, rules: Rules) -> list[Column]:
    del text, rules
    return [Column(name, shown=Shown.ONCE)]


def _cut(
    ours: str, cutoffs: Sequence[int] = _CUTOFFS, *, has_threshold: bool = True
) -> Maker:
    """A measure at several ranks."""

    def columns(name: str, text: str | None, rules: Rules) -> list[Column]:
        threshold = rules.threshold if has_threshold else None
        metrics = {
            k: make_metric(ours, k, threshold=threshold)
            for k in (cutoffs if text is None else _read_cutoffs(name, text))
        }
        return [
            Column(f"{name}_{k}", plain_score(metric), judged=metric.reads_judged)
            for k, metric in metrics.items()
        ]

    return columns


def _levels(make: Callable[[float, Rules], Score], levels: Sequence[float]) -> Maker:
    """A measure at several shares of the relevant documents."""

    def columns(name: str, text: str | None, rules: Rules) -> list[Column]:
        points = levels if text is None else sorted(_read_numbers(name, text))
        if len(set(points)) < len(points):
            raise ParameterError(f"-m {name}", "parameters", "all different", text)
        return [Column(f"{name}_{x:3.2f}", make(x, rules)) for x in points]

    return columns


def _weighted(
    make: Callable[[list[float], Rules], Score], default: Sequence[float]
) -> Maker:
    """A single value with numbers as parameters."""

    def columns(name: str, text: str | None, rules: Rules) -> list[Column]:
        numbers = list(default) if text is None else _read_numbers(name, text)
        return [Column(_label(name, text), make(numbers, rules))]

    return columns


def _gained(score: Score) -> Maker:
    """A single value with other gains for some grades as parameters."""

    def columns(name: str, text: str | None, rules: Rules) -> list[Column]:
        gains = {} if text is None else _read_gains(name, text)
        gained = regraded(score, gains)
        if name == "Rndcg":
            gained = where_relevant(gained, rules.threshold)
        return [Column(_label(name, text), gained, judged=0 in gains)]

    return columns


def _letters(name: str, text: str | None, rules: Rules) -> list[Column]:
    del rules
    length = 10 if text is None else int(_read_numbers(name, text)[0])
    label = _label(name, text)
    return [Column(label, shown=Shown.LETTERS, judged=True, letters=length)]


def _rank_biased(name: str, text: str | None, rules: Rules) -> list[Column]:
    del rules
    pairs = {} if text is None else _read_pairs(name, text)
    p = pairs.get("p", 0.9)
    if name == "rbp_resid":
        residual = plain_score(make_metric(name, p=p))
        return [Column(_label(name, text), residual, judged=True)]
    gains = {float(key): gain for key, gain in pairs.items() if key.isdecimal()}
    score = plain_score(make_metric("rbp", p=p, gain="scaled"))
    return [Column(_label(name, text), regraded(score, gains), judged=0 in gains)]


def _label(name: str, text: str | None) -> str:
    return name if text is None else f"{name}_{text}"


def _utility(weights: list[float], rules: Rules) -> Score:
    if len(weights) != 4:  # noqa: PLR2004
        raise ParameterError("-m utility", "parameters", "four numbers", weights)
    found, noise, missed, rest = weights
    return plain_score(
        make_metric(
            "utility",
            found=found,
            noise=noise,
            missed=missed,
            rest=rest,
            collection=rules.collection,
            threshold=rules.threshold,
        )
    )


def _graded(ours: str) -> Maker:
    return _gained(plain_score(make_metric(ours)))


_MEASURES: dict[str, Maker] = {
    "runid": _once,
    "num_q": _once,
    "num_ret": _one("num_ret", Shown.SUM, has_threshold=False),
    "num_rel": _one("num_rel", Shown.SUM),
    "num_rel_ret": _one("num_rel_ret", Shown.SUM),
    "map": _one("ap"),
    "gm_map": _one("ap", Shown.GEOMETRIC),
    "Rprec": _one("r_precision"),
    "bpref": _one("bpref"),
    "recip_rank": _one("rr"),
    "iprec_at_recall": _levels(interpolated, _TENTHS),
    "P": _cut("precision"),
    "relstring": _letters,
    "recall": _cut("recall"),
    "infAP": _one("infap"),
    "gm_bpref": _one("bpref", Shown.GEOMETRIC),
    "Rprec_mult": _levels(
        lambda x, rules: plain_score(
            make_metric("r_precision", mult=x, threshold=rules.threshold)
        ),
        _FIFTHS,
    ),
    "utility": _weighted(_utility, (1.0, -1.0, 0.0, 0.0)),
    "11pt_avg": _weighted(interpolated_average, _TENTHS),
    "binG": _one("bing"),
    "G": _graded("g"),
    "dcg": _gained(NDCG().dcg),
    "ideal_dcg": _gained(NDCG().ideal),
    "ndcg": _graded("ndcg"),
    "ndcg_rel": _graded("ndcg_rel"),
    "Rndcg": _graded("rndcg"),
    "ndcg_cut": _cut("ndcg", has_threshold=False),
    "map_cut": _cut("ap"),
    "relative_P": _cut("recall_capped"),
    "success": _cut("hit", (1, 5, 10)),
    "set_P": _one("set_precision"),
    "set_relative_P": _one("set_relative_precision"),
    "set_recall": _one("set_recall"),
    "set_map": _one("set_ap"),
    "set_F": _weighted(
        lambda x, rules: plain_score(
            make_metric("set_f", beta=x[0], threshold=rules.threshold)
        ),
        (1.0,),
    ),
    "num_nonrel_judged_ret": _one("num_nonrel_judged_ret", Shown.SUM),
    "yaap": _weighted(
        lambda _, rules: plain_score(make_metric("yaap", threshold=rules.threshold)), ()
    ),
    "rbp": _rank_biased,
    "rbp_resid": _rank_biased,
    "unj": _cut("unjudged", (5, 10, 20), has_threshold=False),
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
        elif name.startswith("prefs_") or name.endswith("_avgjg"):
            raise UsageError(
                f"-m {name} needs preferences or judgement groups, which qrels do not "
                "hold; karat reads qrels only"
            )
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


def _read_cutoffs(name: str, text: str) -> list[int]:
    """Ranks in ascending order; as in trec_eval, `23.4` is read as 23."""
    found = [re.match(r"\s*\+?0*([0-9]+)", part) for part in text.split(",")]
    digits = [match[1] for match in found if match]
    longest = len(str(_LARGEST))
    if any(len(row) > longest or int(row) > _LARGEST for row in digits):
        raise ParameterError(f"-m {name}", "cutoffs", f"at most {_LARGEST}", text)
    cutoffs = [int(row) for row in digits]
    if len(cutoffs) < len(found) or 0 in cutoffs or len({*cutoffs}) < len(cutoffs):
        raise ParameterError(
            f"-m {name}", "cutoffs", "different integers >= 1, as in 5,10", text
        )
    return sorted(cutoffs)


def _read_numbers(name: str, text: str) -> list[float]:
    """Numbers in the order given."""
    return [_number(name, part, text) for part in text.split(",")]


def _read_pairs(name: str, text: str) -> dict[str, float]:
    """Numbers by name, as in `p=0.8`."""
    pairs: dict[str, float] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise ParameterError(
                f"-m {name}", "parameters", "name=number, as in 1=3.5,2=9", text
            )
        pairs.setdefault(key, _number(name, value, text))
    return pairs


def _read_gains(name: str, text: str) -> dict[float, float]:
    """Gains by grade, as in `1=3.5,2=9`."""
    pairs = _read_pairs(name, text)
    if not all(grade.isdecimal() for grade in pairs) or min(pairs.values()) < 0:
        raise ParameterError(
            f"-m {name}", "gains", "grade=gain, neither of them negative", text
        )
    return {float(grade): gain for grade, gain in pairs.items()}


def _number(name: str, part: str, text: str) -> float:
    try:
        number = float(part)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise ParameterError(f"-m {name}", "parameters", "numbers", text)
    return number
