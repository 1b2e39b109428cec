"""Metrics: one formula each, over hits; and what others call them.

To add one: a frozen dataclass in the module of its family, and its name in `_FAMILIES`.
Understood are also the names of trec_eval (`ndcg_cut_10`, `P.10`, `recip_rank`), of
ir_measures (`nDCG@10`, `AP(rel=2)`, `IPrec@0.1`), of ranx (`map@100-l2`, `rbp.80`) and
the words common among RAG tools (`recall_at_k`, `hit_rate`, `mrr`, `Recall_any@5`).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from karat.catalogue import Catalogue, plain, subclass_of
from karat.data.spelling import Cutoff, Spelling, Value, build, parse, write_value
from karat.errors import UnknownNameError, UsageError
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
