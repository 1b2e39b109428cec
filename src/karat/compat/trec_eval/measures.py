"""Every measure of trec_eval, in the order it prints them, and how `-m` names them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from math import isfinite, nan
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from karat.extend import (
    NDCG,
    Floats,
    Hits,
    InterpolatedAverage,
    InterpolatedPrecision,
    ParameterError,
    UnknownNameError,
    UsageError,
    make_metric,
)

Score: TypeAlias = Callable[[Hits], npt.NDArray[Any]]
Gains: TypeAlias = Mapping[float, float]

_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_TENTHS = tuple(tenth / 10 for tenth in range(11))
_FIFTHS = tuple(fifth / 5 for fifth in range(1, 11))
# trec_eval reads a C long; what it makes of more is left to the machine.
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Options:
    """The command line of trec_eval.

    Attributes:
        measures: as after `-m`: `map`, `P.5,10`, `all_trec`; none means `official`.
        version: which trec_eval, `9` (9.0.8) or `10` (10.0).
        per_query: lines for each topic first (`-q`).
        complete: average over all judged topics; those the run lacks count 0 (`-c`).
        level: the smallest grade that is relevant (`-l`).
        judged_only: remove documents without judgement from the rankings (`-J`).
        depth: read only so many documents of each topic (`-M`).
        summary: lines over all topics at the end (not with `-n`).
        collection: number of documents in the collection, for `utility` (`-N`).
    """

    measures: Sequence[str] = ()
    version: str = "10"
    per_query: bool = False
    complete: bool = False
    level: int = 1
    judged_only: bool = False
    depth: int | None = None
    summary: bool = True
    collection: int = 0

    def __post_init__(self) -> None:
        if self.version not in {"9", "10"}:
            raise ParameterError("trec-eval", "version", "'9' or '10'", self.version)
        if self.level < 0:
            raise ParameterError("trec-eval", "level", "an integer >= 0", self.level)

    @property
    def threshold(self) -> float | None:
        """The smallest relevant grade; None, as 1 for whole numbers: any positive."""
        return None if self.level == 1 else float(self.level)


class Shown(Enum):
    """How a column appears."""

    MEAN = auto()
    """A value per topic, and their mean."""
    SUM = auto()
    """A count per topic, and their sum."""
    GEOMETRIC = auto()
    """Only the geometric mean of the topics' values."""
    LETTERS = auto()
    """Only a text per topic."""
    ONCE = auto()
    """Only a fact about the run as a whole."""


@dataclass(frozen=True)
class Column:
    """One printed name, the value of every topic, and how both are shown.

    `judged`: whether it needs rows of documents judged non-relevant.
    """

    name: str
    score: Score
    shown: Shown = Shown.MEAN
    judged: bool = False


@dataclass(frozen=True)
class _Measure:
    """A measure of trec_eval: karat's metric, and what its parameters are called there.

    What is given to a measure that takes nothing is ignored, as trec_eval does.
    """

    ours: str | Score = ""
    takes: str = "nothing"
    default: Sequence[Any] = ()
    options: Sequence[str] = ()
    shown: Shown = Shown.MEAN


def _zeros(hits: Hits) -> Floats:
    return np.zeros(hits.size)


_MEASURES: dict[str, _Measure] = {
    "runid": _Measure(_zeros, shown=Shown.ONCE),
    "num_q": _Measure(_zeros, shown=Shown.ONCE),
    "num_ret": _Measure("num_ret", shown=Shown.SUM),
    "num_rel": _Measure("num_rel", shown=Shown.SUM),
    "num_rel_ret": _Measure("num_rel_ret", shown=Shown.SUM),
    "map": _Measure("ap"),
    "gm_map": _Measure("ap", shown=Shown.GEOMETRIC),
    "Rprec": _Measure("r_precision"),
    "bpref": _Measure("bpref"),
    "recip_rank": _Measure("rr"),
    "iprec_at_recall": _Measure("", "levels", _TENTHS),
    "P": _Measure("precision", "cutoffs", _CUTOFFS),
    "relstring": _Measure("", "numbers", (10,), shown=Shown.LETTERS),
    "recall": _Measure("recall", "cutoffs", _CUTOFFS),
    "infAP": _Measure("infap"),
    "gm_bpref": _Measure("bpref", shown=Shown.GEOMETRIC),
    "Rprec_mult": _Measure("r_precision", "levels", _FIFTHS, ("mult",)),
    "utility": _Measure(
        *("utility", "numbers", (1.0, -1.0, 0.0, 0.0)),
        ("found", "noise", "missed", "rest"),
    ),
    "11pt_avg": _Measure("", "numbers", _TENTHS),
    "binG": _Measure("bing"),
    "G": _Measure("g", "gains"),
    "dcg": _Measure(NDCG().dcg, "gains"),
    "ideal_dcg": _Measure(NDCG().ideal, "gains"),
    "ndcg": _Measure("ndcg", "gains"),
    "ndcg_rel": _Measure("ndcg_rel", "gains"),
    "Rndcg": _Measure("rndcg", "gains"),
    "ndcg_cut": _Measure("ndcg", "cutoffs", _CUTOFFS),
    "map_cut": _Measure("ap", "cutoffs", _CUTOFFS),
    "relative_P": _Measure("recall_capped", "cutoffs", _CUTOFFS),
    "success": _Measure("hit", "cutoffs", (1, 5, 10)),
    "set_P": _Measure("set_precision"),
    "set_relative_P": _Measure("set_relative_precision"),
    "set_recall": _Measure("set_recall"),
    "set_map": _Measure("set_ap"),
    "set_F": _Measure("set_f", "numbers", (1.0,), ("beta",)),
    "num_nonrel_judged_ret": _Measure("num_nonrel_judged_ret", shown=Shown.SUM),
    "yaap": _Measure("yaap", "numbers"),
    "rbp": _Measure("rbp", "persistence"),
    "rbp_resid": _Measure("rbp_resid", "persistence"),
    "unj": _Measure("unjudged", "cutoffs", (5, 10, 20)),
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


def nicknames(version: str) -> dict[str, Sequence[str]]:
    """The sets of measures that have a name in one version of trec_eval."""
    left_out = (*_BY_NAME_ONLY, *(_SINCE_10 if version == "9" else ()))
    every = [measure for measure in _MEASURES if measure not in left_out]
    return {"official": _OFFICIAL, "all_trec": every, "set": _SETS}


def columns_for(options: Options) -> list[Column]:
    """The columns that `-m` asks for, in the order trec_eval prints them.

    A measure is `name` or `name.parameters`, or the nickname of a set of measures; none
    at all means `official`. Where one measure is given parameters twice, the first ones
    hold.
    """
    measures = [m for m in _MEASURES if options.version != "9" or m not in _SINCE_10]
    sets = nicknames(options.version)
    chosen: set[str] = set()
    parameters: dict[str, str] = {}
    for text in options.measures or ("official",):
        name, dot, values = text.partition(".")
        if dot and not values:
            raise UsageError(f"measure {text!r} must have parameters after the dot")
        if dot:
            parameters.setdefault(name, values)
        if name.startswith("prefs_") or name.endswith("_avgjg"):
            raise UsageError(
                f"-m {name} needs preferences or judgement groups, which qrels do not "
                "hold; karat reads qrels only"
            )
        if name not in (*measures, *sets):
            raise UnknownNameError("trec_eval measure", name, [*measures, *sets])
        chosen.update(sets.get(name, [name]))
    names = [name for name in _MEASURES if name in chosen]
    return [c for name in names for c in _columns(name, parameters.get(name), options)]


def _columns(name: str, text: str | None, options: Options) -> Iterator[Column]:
    """The columns of a measure, by the text of its parameters."""
    measure, owner = _MEASURES[name], f"-m {name}"
    default, values = measure.default, text.split(",") if text else []
    label = name if text is None else f"{name}_{text}"
    match measure.takes:
        case "nothing":
            yield _column(name, measure, options)
        case "cutoffs":
            for k in _read_cutoffs(owner, values) if values else default:
                yield _column(f"{name}_{k}", measure, options, k=k)
        case "levels":
            points = sorted(_read_numbers(owner, values, values)) if values else default
            if len(set(points)) < len(points):
                raise ParameterError(owner, "parameters", "all different", text)
            for x in points:
                yield _column_of(f"{name}_{x:3.2f}", measure, [x], options)
        case "numbers":
            numbers = _read_numbers(owner, values, values) if values else default
            yield _column_of(label, measure, numbers, options)
        case "gains":
            yield _column(label, measure, options, _read_gains(owner, values))
        case "persistence":
            yield _rank_biased(label, measure, _read_pairs(owner, values), options)


def _column(
    label: str,
    measure: _Measure,
    options: Options,
    gains: Gains = MappingProxyType({}),
    **parameters: Any,
) -> Column:
    """The values of a metric, 0 where undefined, with other gains for some grades."""
    ours, judged = measure.ours, 0 in gains
    score: Score
    if isinstance(ours, str):
        metric: Any = make_metric(ours, **parameters)
        if hasattr(metric, "threshold") and ours != "rbp":
            metric = replace(metric, threshold=options.threshold)
        score, judged = metric.score, judged or metric.reads_judged
    else:
        score = ours

    def graded(hits: Hits) -> Floats:
        values = np.nan_to_num(score(hits.with_grades(gains)))
        if ours != "rndcg":
            return values
        return np.where(hits.credits(options.threshold).relevant > 0, values, 0.0)

    return Column(label, graded, measure.shown, judged)


def _column_of(
    label: str, measure: _Measure, numbers: Sequence[float], options: Options
) -> Column:
    """The values of a measure with these numbers as its parameters."""
    if measure.shown is Shown.LETTERS:
        letters = partial(_letters, length=int(numbers[0]))
        return Column(label, letters, Shown.LETTERS, judged=True)
    if not measure.ours:
        return Column(label, _interpolated(numbers, options))
    parameters: dict[str, Any] = dict(zip(measure.options, numbers, strict=False))
    if measure.ours == "utility":
        if len(numbers) != len(measure.options):
            raise ParameterError("-m utility", "parameters", "four numbers", numbers)
        parameters["collection"] = options.collection
    return _column(label, measure, options, **parameters)


def _rank_biased(
    label: str, measure: _Measure, pairs: Mapping[str, float], options: Options
) -> Column:
    p = pairs.get("p", 0.9)
    if measure.ours == "rbp_resid":
        return _column(label, measure, options, p=p)
    gains = {float(key): gain for key, gain in pairs.items() if key.isdecimal()}
    return _column(label, measure, options, gains, p=p, gain="scaled")


def _interpolated(points: Sequence[float], options: Options) -> Score:
    """The mean of interpolated precision over these points of recall."""
    rounding = "up" if options.version == "9" else "nearest"
    average = InterpolatedAverage(rounding, options.threshold)
    lowest = InterpolatedPrecision(min(points), rounding, options.threshold)

    def score(hits: Hits) -> Floats:
        value = np.nan_to_num(average.over(hits, points))
        # trec_eval divides 0 by 0 where nothing was retrieved and nothing is needed.
        void = (hits.retrieved == 0) & (lowest.needed(hits) == 0)
        return np.where(void, np.nan, value)

    return score


def _letters(hits: Hits, length: int) -> npt.NDArray[np.str_]:
    """The grades of the first documents of each topic, a letter each.

    A digit is the grade, `>` a higher one, `.` a document that was pooled but not
    judged, `-` one that was not even pooled.
    """
    shown = np.minimum(hits.retrieved, max(length, 0))
    width = int(shown.max(initial=0))
    letters = np.full((hits.size, width), ord("-"), np.uint8)
    rows = hits.rank <= width
    grade = hits.grade[rows]
    digit = ord("0") + np.clip(grade, 0, 9).astype(np.int64)
    special = np.where(grade < 0, ord("."), digit)
    letters[hits.query[rows], hits.rank[rows] - 1] = np.where(
        grade > 9,  # noqa: PLR2004
        ord(">"),
        special,
    )
    texts = zip(letters, shown.tolist(), strict=True)
    return np.array([f"'{row[:n].tobytes().decode('ascii')}'" for row, n in texts])


def _read_cutoffs(owner: str, values: Sequence[str]) -> list[int]:
    """Ranks in ascending order; as in trec_eval, `23.4` is read as 23."""
    matches = [re.match(r"\s*\+?0*([0-9]{1,20})", part) for part in values]
    cutoffs = [int(match[1]) for match in matches if match]
    text = ",".join(values)
    if max(cutoffs, default=0) > _LARGEST:
        raise ParameterError(owner, "cutoffs", f"at most {_LARGEST}", text)
    if len(cutoffs) < len(matches) or 0 in cutoffs or len({*cutoffs}) < len(cutoffs):
        must_be = "different integers >= 1, as in 5,10"
        raise ParameterError(owner, "cutoffs", must_be, text)
    return sorted(cutoffs)


def _read_numbers(
    owner: str, values: Sequence[str], parts: Sequence[str]
) -> list[float]:
    """The numbers in these parts of the parameters, in order."""
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = [nan]
    if not all(map(isfinite, numbers)):
        raise ParameterError(owner, "parameters", "numbers", ",".join(values))
    return numbers


def _read_pairs(owner: str, values: Sequence[str]) -> dict[str, float]:
    """Numbers by name, as in `p=0.8` or `1=3.5,2=9`; of two of a name the first."""
    parts = [part.partition("=") for part in reversed(values)]
    if not all(key and equals for key, equals, _ in parts):
        must_be = "name=number, as in 1=3.5,2=9"
        raise ParameterError(owner, "parameters", must_be, ",".join(values))
    numbers = _read_numbers(owner, values, [value for *_, value in parts])
    return {key: n for (key, *_), n in zip(parts, numbers, strict=True)}


def _read_gains(owner: str, values: Sequence[str]) -> Gains:
    """Gains by grade, as in `1=3.5,2=9`."""
    pairs = _read_pairs(owner, values)
    if not all(map(str.isdecimal, pairs)) or min(pairs.values(), default=0) < 0:
        must_be = "grade=gain, neither of them negative"
        raise ParameterError(owner, "gains", must_be, ",".join(values))
    return {float(grade): gain for grade, gain in pairs.items()}
