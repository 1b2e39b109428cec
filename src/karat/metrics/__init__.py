"""Metrics: one formula each, over hits; and what others call them.

To add one: a frozen dataclass in the module of its family, and its name in `_FAMILIES`.
Understood are also the names of trec_eval (`ndcg_cut_10`, `P.10`, `recip_rank`), of
ir_measures (`nDCG@10`, `AP(rel=2)`, `IPrec@0.1`), of ranx (`map@100-l2`, `rbp.80`) and
the words common among RAG tools (`recall_at_k`, `hit_rate`, `mrr`, `Recall_any@5`).
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from karat.catalogue import Catalogue, plain, subclass_of
from karat.data.arrays import Floats, Ints
from karat.data.hits import Hits
from karat.data.spelling import (
    LETTER,
    Cutoff,
    Spelled,
    Spelling,
    Value,
    build,
    parse,
    write_value,
)
from karat.errors import ParameterError, UnknownNameError, UsageError

# How many terms of a sum `workings` shows.
_SHOWN = 8


@dataclass(frozen=True)
class Metric(Spelled, ABC):
    """One number per query, computed from hits and nothing else.

    A subclass with parameters of its own is a frozen dataclass: its fields are the
    parameters of its spelling, in order. The first line of its docstring is its row in
    the catalogue.

    Attributes:
        name: the spelling without parameters.
        formula: the rule in one line, for `karat metrics` and `--explain`.
        matcher: the matcher it takes when the caller names none, if it needs its own.
        binary: whether a query's score can only be 0 or 1.
        reads_judged: whether it needs rows of judged non-relevant documents.
        bounds: the smallest and largest score.
        average: how queries become one number: `mean`, `geometric` (mean) or `sum`.
        higher_is_better: which of two scores is the better one; None: neither.
        choices: for parameters with a fixed set of values, that set.
        limits: for parameters that are numbers, the interval, as in `(0, 1]`.

    Example:
        >>> from dataclasses import dataclass
        >>> import karat
        >>> @dataclass(frozen=True)
        ... class Labelled(Metric):
        ...     name = "labelled"
        ...     def score(self, hits):
        ...         return hits.gold_count.astype(float)
        >>> karat.evaluate({"q": ["a"]}, {"q": ["a", "b"]}, metrics=Labelled()).means
        {'labelled': 2.0}
    """

    formula: ClassVar[str] = ""
    matcher: ClassVar[str | None] = None
    binary: ClassVar[bool] = False
    reads_judged: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    average: ClassVar[str] = "mean"
    higher_is_better: ClassVar[bool | None] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        threshold = getattr(self, "threshold", None)
        if threshold is not None and (
            isinstance(threshold, bool) or not isinstance(threshold, int | float)
        ):
            raise ParameterError(self.name, "threshold", "a number", threshold)
        k = getattr(self, LETTER, None)
        if k not in (None, LETTER) and (type(k) is not int or k < 1):
            raise ParameterError(self.name, LETTER, "an integer >= 1", k)

    @abstractmethod
    def score(self, hits: Hits) -> Floats:
        """The score of every query; NaN where it is undefined."""

    @property
    def needs_judged(self) -> bool:
        """Whether rows of items with a grade <= 0 can change the score."""
        threshold = getattr(self, "threshold", None)
        return self.reads_judged or (threshold is not None and threshold <= 0)

    @classmethod
    def summary(cls) -> str:
        """What the number says, in one line."""
        return (cls.__doc__ or cls.name).strip().splitlines()[0]

    def workings(self, hits: Hits) -> str:
        """The arithmetic behind the score of the only query of the hits."""
        del hits
        return self.formula


def add_up(terms: Floats | list[str]) -> str:
    """The first terms of a sum, for `workings`."""
    shown = [t if isinstance(t, str) else f"{t:.4f}" for t in terms[:_SHOWN]]
    return " + ".join(shown + ["..."] * (len(terms) > _SHOWN)) or "0"


@dataclass(frozen=True)
class CutoffMetric(Metric):
    """A metric that may look at the top k only.

    Attributes:
        k: the last rank that counts, the letter for each query's own, or None for all.

    Example:
        >>> from karat.extend import make_metric
        >>> metric = make_metric("ndcg", k=10)
        >>> isinstance(metric, CutoffMetric), metric.k, str(metric)
        (True, 10, 'ndcg@10')
    """

    k: Cutoff = None

    def within(self, hits: Hits, query: Ints, rank: Ints) -> Ints | slice:
        """Selects the rows that the cutoff lets count."""
        cutoff = hits.cutoff(self.k, query)
        # Several columns are read by these: by number that is faster than by mask.
        return slice(None) if cutoff is None else (rank <= cutoff).nonzero()[0]

    def paid_within(self, hits: Hits) -> tuple[Ints, Ints, Floats]:
        """Query, slot and grade of the relevant items paid within the cutoff."""
        query, _, slot, _, grade, *_ = hits.credits(getattr(self, "threshold", None))
        rows = self.within(hits, query, slot)
        return query[rows], slot[rows], grade[rows]

    def positions_within(self, hits: Hits) -> tuple[Ints, Ints]:
        """Query and rank of the positions within the cutoff that match."""
        query, rank = hits.positions(getattr(self, "threshold", None))
        rows = self.within(hits, query, rank)
        return query[rows], rank[rows]


@dataclass(frozen=True)
class BinaryMetric(CutoffMetric):
    """A metric that only asks whether a gold item is relevant.

    Attributes:
        threshold: the smallest grade that counts as relevant; None: any positive one.

    Example:
        >>> from karat.extend import make_metric
        >>> isinstance(make_metric("recall"), BinaryMetric)
        True
        >>> str(make_metric("recall", threshold=2))
        'recall(threshold=2)'
    """

    threshold: float | None = None


_OTHER_NAMES = {
    "hit": "success hit_rate recall_any",
    "containment": "answer_containment",
    "recall": "r",
    "precision": "p",
    "rr": "mrr recip_rank",
    "ap": "map map_cut",
    "gm_ap": "gm_map",
    "ndcg": "ndcg_cut",
    "ndcg(gain=exp)": "ndcg_burges",
    "dcg(gain=exp)": "dcg_burges",
    "r_precision": "rprecision rprec",
    "recall_capped": "relative_p recall_cap",
    "iprec_avg": "11pt_avg",
    "unjudged": "unj",
    "set_precision": "set_p setp",
    "set_recall": "setr",
    "set_ap": "set_map setap",
    "set_f": "setf",
    "set_relative_precision": "set_relative_p setrelp",
    "num_q": "numq",
    "num_ret": "numret",
    "num_rel": "numrel",
    "num_rel_ret": "numrelret",
    "granular_rr": "granular_mrr",
    "ap_ia": "map_ia",
    "st_recall": "strec strecall",
}

NAMES: dict[str, str] = {
    theirs: ours for ours, names in _OTHER_NAMES.items() for theirs in names.split()
}
"""What others call a metric, and what karat calls it."""

MISSING: dict[str, str] = {
    **dict.fromkeys(
        ("infndcg", "xinfap"),
        "it needs to know how judgements were sampled, which qrels of four columns do "
        "not say (TREC's sample_eval.pl reads it from a fifth); karat has infap, bpref "
        "and judged",
    ),
    "rbo": "it compares two rankings: karat.rbo(run, other) in Python; "
    "compat(normalize=false) is the rank-biased overlap with the ideal ranking",
    "p_mrr": "it compares the ranks of two runs of changed queries, and a metric here "
    "reads one run",
    "nauc": "it asks how well a confidence predicts a metric, and runs carry none",
}
"""Measures that others know and karat does not, and what is missing for them."""

_CUT = "p|recall|ndcg_cut|map_cut|relative_p|success|unj"
_MATCHER = r"(?P<matcher>(?:\[.*\])?)"

_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(shape), ours)
    for shape, ours in (
        (rf"(?:retrieval_)?(\w+?)_at_(k|[0-9]+){_MATCHER}", r"\1\g<matcher>@\2"),
        (r"retrieval_(mrr.*)", r"\1"),
        (rf"({_CUT})[_.]([0-9]+){_MATCHER}", r"\1\g<matcher>@\2"),
        (rf"rprec_mult[_.]([0-9.]+){_MATCHER}", r"r_precision(mult=\1)\g<matcher>"),
        (rf"iprec_at_recall[_.]([0-9.]+){_MATCHER}", r"iprec(recall=\1)\g<matcher>"),
        (rf"iprec{_MATCHER}@([0-9.]+)", r"iprec(recall=\2)\g<matcher>"),
        (rf"iprec\((.+)\){_MATCHER}@([0-9.]+)", r"iprec(recall=\3, \1)\g<matcher>"),
        (rf"rbp\.([0-9]+){_MATCHER}", r"rbp(p=0.\1)\g<matcher>"),
        (rf"set_f[_.]([0-9.]+){_MATCHER}", r"set_f(beta=\1)\g<matcher>"),
        (r"setp\((.*),\s*relative=(?i:true)\)", r"set_relative_precision(\1)"),
        (r"setp\(relative=(?i:true)(?:,\s*(.*))?\)", r"set_relative_precision(\1)"),
        (r"mrr\(use_granular_mrr=(?i:true)\)(.*)", r"granular_rr\1"),
        # With a threshold, ir_measures counts what was found, not what was retrieved.
        (r"numret(\(rel=.*)", r"num_rel_ret\1"),
    )
)

_PARAMETERS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(theirs), ours)
    for theirs, ours in (
        (r"\brel\s*=", "threshold="),
        (r"\b(min|max)_rel\s*=", r"\1_grade="),
        (r"\bT\s*=", "goal="),
        (r"\bdcg\s*=\s*(['\"]?)exp-log2\1", "gain=exp"),
        (r"\bdcg\s*=\s*(['\"]?)log2\1", "gain=linear"),
    )
)

# A mapping as Python writes it, with commas that separate no parameters.
_BRACES = re.compile(r"\{([^{}]*)\}")


def _flat(mapping: re.Match[str]) -> str:
    return re.sub(r"\s", "", mapping[1]).replace(",", ";")


_LEVEL = re.compile(r"(.+)-l([1-9][0-9]?)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9][\w.\-]*")


def canonical(text: str) -> str:
    """The spelling in karat's own words; one already in them is left as it is.

    Example:
        >>> canonical("ndcg_cut_10"), canonical("RR(rel=2)@10"), canonical("IPrec@0.1")
        ('ndcg@10', 'rr(threshold=2)@10', 'iprec(recall=0.1)')
        >>> canonical("map@100-l2"), canonical("rbp.80-l2")
        ('ap(threshold=2)@100', 'rbp(threshold=2, p=0.80)')
    """
    text = _BRACES.sub(_flat, text.strip().replace("\u03b1", "alpha"))
    if match := _LEVEL.fullmatch(text):
        # From which grade on a document is relevant, as ranx writes it.
        name, more = re.split(r"(?=[@(\[]|$)", canonical(match[1]), maxsplit=1)
        level = f"threshold={match[2]}"
        if name in {"dcg", "ndcg"}:
            level = f"gains={';'.join(f'{grade}:0' for grade in range(int(match[2])))}"
        more = f", {more[1:]}" if more.startswith("(") else f"){more}"
        return f"{name}({level}{more}"
    if not (name := _NAME.match(text)):
        return text
    text = plain(name[0]) + text[name.end() :]
    for shape, ours in _SHAPES:
        if match := shape.fullmatch(text):
            text = match.expand(ours)
            break
    for theirs, ours in _PARAMETERS:
        text = theirs.sub(ours, text)
    name = _NAME.match(text)
    return NAMES.get(name[0], name[0]) + text[name.end() :] if name else text


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
    "user_models": (
        "rbp rbp_resid err compat inst insq bpm sdcg nerr8 nerr9 nerr10 nerr11"
    ),
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
