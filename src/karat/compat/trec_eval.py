"""trec_eval, line for line: the same output as its versions 9.0.8 and 10.0.

The numbers are those of karat's metrics; here are only the order, the names and the
averages that trec_eval prints, and its own rules for what a formula leaves open.

docs/coming-from/trec_eval.md says where it differs from the original.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, compress
from math import exp, isfinite, log, nan
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from karat import Gold, Run
from karat.extend import (
    Bools,
    Floats,
    Hits,
    InterpolatedAverage,
    InterpolatedPrecision,
    Labels,
    MismatchError,
    ParameterError,
    UnknownNameError,
    UsageError,
    make_metric,
    policies_for,
    read_matcher,
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
        depth: read only this many documents of each topic (`-M`).
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


@dataclass(frozen=True)
class Column:
    """One printed name, the value of every topic, and how both are shown.

    `shown` is what is printed over all topics, their `mean`, `sum` or `geometric` mean,
    the latter alone; `letters`, texts per topic alone; or `once`, a fact about the run.
    `judged`: whether it needs rows of documents judged non-relevant.
    """

    name: str
    score: Score
    shown: str = "mean"
    judged: bool = False


class _Measure(NamedTuple):
    """A measure: karat's metric, and how its parameters are called in trec_eval."""

    ours: str = ""
    takes: str = "nothing"
    default: Sequence[Any] = ()
    options: Sequence[str] = ()
    shown: str = "mean"


_MEASURES: dict[str, _Measure] = {
    "runid": _Measure("num_q", shown="once"),
    "num_q": _Measure("num_q", shown="once"),
    "num_ret": _Measure("num_ret", shown="sum"),
    "num_rel": _Measure("num_rel", shown="sum"),
    "num_rel_ret": _Measure("num_rel_ret", shown="sum"),
    "map": _Measure("ap"),
    "gm_map": _Measure("ap", shown="geometric"),
    "Rprec": _Measure("r_precision"),
    "bpref": _Measure("bpref"),
    "recip_rank": _Measure("rr"),
    "iprec_at_recall": _Measure("", "levels", _TENTHS),
    "P": _Measure("precision", "cutoffs", _CUTOFFS),
    "relstring": _Measure("", "numbers", (10,), shown="letters"),
    "recall": _Measure("recall", "cutoffs", _CUTOFFS),
    "infAP": _Measure("infap"),
    "gm_bpref": _Measure("bpref", shown="geometric"),
    "Rprec_mult": _Measure("r_precision", "levels", _FIFTHS, ("mult",)),
    "utility": _Measure(
        *("utility", "numbers", (1.0, -1.0, 0.0, 0.0)),
        ("found", "noise", "missed", "rest"),
    ),
    "11pt_avg": _Measure("", "numbers", _TENTHS),
    "binG": _Measure("bing"),
    "G": _Measure("g", "gains"),
    "dcg": _Measure("dcg", "gains"),
    "ideal_dcg": _Measure("ideal_dcg", "gains"),
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
    "num_nonrel_judged_ret": _Measure("num_nonrel_judged_ret", shown="sum"),
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
    """The columns that `-m` asks for, in the order trec_eval prints them."""
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
            points = sorted(_read_numbers(owner, text, values)) if text else default
            if len(set(points)) < len(points):
                raise ParameterError(owner, "parameters", "all different", text)
            for x in points:
                yield _column_of(f"{name}_{x:3.2f}", measure, [x], options)
        case "numbers":
            numbers = _read_numbers(owner, text, values) if text else default
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
    metric: Any = make_metric(measure.ours, **parameters)
    if hasattr(metric, "threshold") and measure.ours != "rbp":
        metric = replace(metric, threshold=options.threshold)

    def graded(hits: Hits) -> Floats:
        values: Floats = np.nan_to_num(metric.score(hits.with_grades(gains)))
        if measure.ours != "rndcg":
            return values
        return np.where(hits.credits(options.threshold).relevant > 0, values, 0.0)

    return Column(label, graded, measure.shown, 0 in gains or metric.reads_judged)


def _column_of(
    label: str, measure: _Measure, numbers: Sequence[float], options: Options
) -> Column:
    """The values of a measure with these numbers as its parameters."""
    if measure.shown == "letters":
        letters = partial(_letters, length=int(numbers[0]))
        return Column(label, letters, "letters", judged=True)
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
    """The grades of each topic's first documents; `.` is not judged, `-` not pooled."""
    shown = np.minimum(hits.retrieved, max(length, 0))
    width = int(shown.max())
    letters = np.full((hits.size, width), ord("-"), np.uint8)
    rows = hits.rank <= width
    # Of a negative grade it is the last.
    letter_of = np.frombuffer(b"0123456789>.", np.uint8)
    grade = np.clip(hits.grade[rows], -1, 10).astype(np.int64)
    letters[hits.query[rows], hits.rank[rows] - 1] = letter_of[grade]
    texts = zip(letters, shown.tolist(), strict=True)
    return np.array([f"'{row[:n].tobytes().decode('ascii')}'" for row, n in texts])


def _read_cutoffs(owner: str, values: Sequence[str]) -> list[int]:
    """Ranks in ascending order; as in trec_eval, `23.4` is read as 23."""
    matches = [re.match(r"\s*\+?0*([0-9]{1,20})", part) for part in values]
    cutoffs = [int(match[1]) for match in matches if match]
    text = ",".join(values)
    if any(cutoff > _LARGEST for cutoff in cutoffs):
        raise ParameterError(owner, "cutoffs", f"at most {_LARGEST}", text)
    if len(cutoffs) < len(matches) or 0 in cutoffs or len({*cutoffs}) < len(cutoffs):
        must_be = "different integers >= 1, as in 5,10"
        raise ParameterError(owner, "cutoffs", must_be, text)
    return sorted(cutoffs)


def _read_numbers(owner: str, text: str, parts: Sequence[str]) -> list[float]:
    """The numbers in these parts of the parameters, in order."""
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = [nan]
    if not all(map(isfinite, numbers)):
        raise ParameterError(owner, "parameters", "numbers", text)
    return numbers


def _read_pairs(owner: str, values: Sequence[str]) -> dict[str, float]:
    """Numbers by name, as in `p=0.8` or `1=3.5,2=9`; of two of a name the first."""
    text, parts = ",".join(values), [part.partition("=") for part in reversed(values)]
    if not all(key and equals for key, equals, _ in parts):
        must_be = "name=number, as in 1=3.5,2=9"
        raise ParameterError(owner, "parameters", must_be, text)
    numbers = _read_numbers(owner, text, [value for *_, value in parts])
    return {key: n for (key, *_), n in zip(parts, numbers, strict=True)}


def _read_gains(owner: str, values: Sequence[str]) -> Gains:
    """Gains by grade, as in `1=3.5,2=9`."""
    pairs = _read_pairs(owner, values)
    if not all(map(str.isdecimal, pairs)) or any(n < 0 for n in pairs.values()):
        must_be = "grade=gain, neither of them negative"
        raise ParameterError(owner, "gains", must_be, ",".join(values))
    return {float(grade): gain for grade, gain in pairs.items()}


__all__ = ["Options", "trec_eval_lines", "trec_eval_pages", "trec_eval_values"]

_log = logging.getLogger("karat")

# The least a topic contributes to a geometric mean.
_FLOOR = 0.00001

# What trec_eval 10 sets to 0 for a topic the run lacks, by the name printed: the same
# measure with parameters in its name is left as it came out.
_CLEARED = ("num_ret", "utility", "relstring", "rbp_resid")

# Topics turned into Python numbers at once: enough to be fast, few enough to fit.
_BATCH = 1000

# A name cannot hold this, so the topic can be put in its place afterwards.
_TOPIC = "\0"


@dataclass(frozen=True)
class _Results:
    """The topics to print, their values, and over how many topics means are taken."""

    columns: Mapping[Column, npt.NDArray[Any]]
    topics: Sequence[str]
    count: int
    relevant: int
    run: str

    def pages(self) -> Iterator[str]:
        """The lines of each topic; one form for all of them, filled in at once."""
        form, cells = "", []
        for column, values in self.columns.items():
            if column.shown in {"once", "geometric"}:
                continue
            cell, shown = "%6.4f", values
            if column.shown == "letters":
                cell = "%s"
            elif column.shown == "sum":
                cell = "%d"
            elif np.isnan(values).any():
                cell, shown = "%s", np.array([*map(_number, values.tolist())])
            form += f"{column.name.replace('%', '%%'):<22}\t{_TOPIC}\t{cell}\n"
            cells.append(shown)
        for start in range(0, len(self.topics) if cells else 0, _BATCH):
            part = slice(start, start + _BATCH)
            rows = zip(*(shown[part].tolist() for shown in cells), strict=True)
            for topic, row in zip(self.topics[part], rows, strict=True):
                yield (form % row).replace(_TOPIC, topic)

    def total(self, column: Column, values: Floats) -> str:
        """The column over all topics."""
        if column.shown == "once":
            return self.run if column.name == "runid" else str(self.count)
        if column.name == "num_rel":
            return str(self.relevant)
        if column.shown == "geometric":
            # Topics that have no line of their own contribute the floor.
            rest = (self.count - len(values)) * log(_FLOOR)
            return _number(exp((_sum(_logarithms(values)) + rest) / self.count))
        if column.shown == "sum":
            return str(int(_sum(values)))
        return _number(_sum(values) / self.count)


def trec_eval_lines(qrels: Labels, run: Run, **options: Any) -> Iterator[str]:
    """What trec_eval prints for these judgements and this run, line by line.

    Args:
        qrels: the judgements.
        run: what was retrieved.
        options: those of `Options`.

    Raises:
        MismatchError: the run lacks a judged topic, where version 10 refuses that.
        UsageError: a measure or parameter that does not exist.

    Example:
        >>> from karat import read_run
        >>> run = read_run({"q1": {"a": 0.9, "b": 0.8}})
        >>> for line in trec_eval_lines({"q1": {"b": 1}}, run, measures=["map", "P.5"]):
        ...     line.split()
        ['map', 'all', '0.5000']
        ['P_5', 'all', '0.2000']
    """
    pages = trec_eval_pages(qrels, run, Options(**options))
    return chain.from_iterable(page.splitlines() for page in pages)


def trec_eval_pages(qrels: Labels, run: Run, options: Options) -> Iterator[str]:
    """The same as `trec_eval_lines`, all lines of a topic at once.

    Everything is computed before the first page, so an error comes before any output.
    """
    results = _evaluate(qrels, run, options)
    summary = "".join(
        f"{column.name:<22}\tall\t{results.total(column, values)}\n"
        for column, values in results.columns.items()
        if options.summary and column.shown != "letters"
    )
    return chain(results.pages() if options.per_query else (), [summary])


def trec_eval_values(
    qrels: Labels, run: Run, options: Options
) -> tuple[Sequence[str], dict[str, Floats]]:
    """The topics, and for each measure that is a number its value for each of them.

    Example:
        >>> from karat import read_run
        >>> run = read_run({"q1": {"a": 0.9, "b": 0.8}})
        >>> trec_eval_values({"q1": {"b": 1}}, run, Options(measures=["map"]))
        (['q1'], {'map': array([0.5])})
    """
    results = _evaluate(qrels, run, options)
    return results.topics, {
        column.name: _logarithms(values) if column.shown == "geometric" else values
        for column, values in results.columns.items()
        if column.shown not in {"once", "letters"}
    }


def _evaluate(qrels: Labels, run: Run, options: Options) -> _Results:
    """Match the run, decide which topics count, and score them."""
    columns = columns_for(options)
    # trec_eval goes through topics by the bytes of their names.
    topics = sorted(qrels, key=lambda name: name.encode("utf-8", "surrogateescape"))
    matched = read_matcher("id").match(
        run,
        Gold({topic: qrels[topic] for topic in topics}),
        judged=not options.level or any(column.judged for column in columns),
        policies=policies_for(
            f"trec_eval-{options.version}",
            depth=options.depth,
            judged_only=options.judged_only,
            force=True,
        ),
    )
    missing = matched.missing
    # True also where nothing is judged.
    if missing.all():
        raise MismatchError("run and gold have no query in common", path=run.name)
    if not len(matched.hits.query):
        # trec_eval prints zeros and does not say why; we print them, and say so.
        kind = "judged" if matched.hits.judged else "relevant"
        _log.warning("no %s document occurs in the run: all scores are 0", kind)
    # Judgements are whole numbers to trec_eval.
    hits = replace(
        matched.hits,
        grade=np.trunc(matched.hits.grade),
        gold_grade=np.trunc(matched.hits.gold_grade),
    )
    # With -c, trec_eval counts every positive grade, whatever -l says.
    relevant = hits.credits(None if options.complete else options.threshold).relevant
    if options.version == "10":
        if not options.complete and missing.any():
            _refuse(run, topics, missing)
        # A topic the run lacks is scored as if one unknown document had been retrieved.
        unknown = 0 if options.judged_only else 1
        hits = replace(hits, retrieved=np.where(missing, unknown, hits.retrieved))
    else:
        shown = ~missing
        hits, topics = _only(hits, shown), [*compress(topics, shown)]
        relevant = relevant if options.complete else relevant[shown]
        missing = missing[shown]
    values = {column: _values(column, hits, missing) for column in columns}
    # A TREC file says what the run is called; other runs have only a name.
    tag = str(run.provenance.get("tag") or run.name)
    return _Results(values, topics, len(relevant), int(relevant.sum()), tag)


def _values(column: Column, hits: Hits, missing: Bools) -> npt.NDArray[Any]:
    """The column's value for each topic, cleared where trec_eval clears it."""
    values = column.score(hits)
    if column.name in _CLEARED or column.name.startswith("unj"):
        nothing = "''" if column.shown == "letters" else 0.0
        values = np.where(missing, nothing, values)
    return values


def _only(hits: Hits, shown: Bools) -> Hits:
    """The hits of some of the queries; the others must have no rows."""
    return replace(
        hits,
        query=(np.cumsum(shown) - 1)[hits.query],
        gold_count=hits.gold_count[shown],
        gold_grade=hits.gold_grade[shown[hits.gold_query]],
        retrieved=hits.retrieved[shown],
    )


def _refuse(run: Run, topics: Sequence[str], missing: Bools) -> None:
    lacking = [topics[i] for i in np.flatnonzero(missing).tolist()]
    more = f" and {len(lacking) - 1} more judged topics" if len(lacking) > 1 else ""
    raise MismatchError(
        f"the run has no results for this judged topic{more}, "
        "which trec_eval 10 refuses",
        path=run.name,
        query=lacking[0],
        hint="-c scores such topics 0, --profile trec_eval-9 leaves them out",
    )


def _logarithms(values: Floats) -> Floats:
    return np.log(np.maximum(values, _FLOOR))


def _sum(values: Floats) -> float:
    """One after the other, as trec_eval adds; pairwise could flip a decimal."""
    return float(np.cumsum(values)[-1])


def _number(value: float) -> str:
    # 0 / 0 has its sign bit set on the machines trec_eval runs on, and C prints it.
    return "  -nan" if np.isnan(value) else f"{value:6.4f}"
