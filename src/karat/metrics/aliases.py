"""Other tools' names for metrics, rewritten to karat's before a spelling is parsed.

Understood are the names of trec_eval (`ndcg_cut_10`, `P.10`, `recip_rank`), those of
ir_measures (`nDCG@10`, `AP(rel=2)`, `IPrec@0.1`), of ranx (`map@100-l2`, `rbp.80`,
`dcg_burges`) and the words common among RAG tools (`recall_at_k`, `hit_rate`, `mrr`,
`Recall_any@5`).
"""

import re

from karat.catalogue import plain

NAMES: dict[str, str] = {
    "success": "hit",
    "hit_rate": "hit",
    "recall_any": "hit",
    "answer_containment": "containment",
    "r": "recall",
    "p": "precision",
    "mrr": "rr",
    "recip_rank": "rr",
    "map": "ap",
    "map_cut": "ap",
    "gm_map": "gm_ap",
    "ndcg_cut": "ndcg",
    "ndcg_burges": "ndcg(gain=exp)",
    "dcg_burges": "dcg(gain=exp)",
    "rprecision": "r_precision",
    "relative_p": "recall_capped",
    "recall_cap": "recall_capped",
    "rprec": "r_precision",
    "11pt_avg": "iprec_avg",
    "unj": "unjudged",
    "set_p": "set_precision",
    "setp": "set_precision",
    "setr": "set_recall",
    "set_map": "set_ap",
    "setap": "set_ap",
    "setf": "set_f",
    "set_relative_p": "set_relative_precision",
    "setrelp": "set_relative_precision",
    "numq": "num_q",
    "numret": "num_ret",
    "numrel": "num_rel",
    "numrelret": "num_rel_ret",
    "granular_mrr": "granular_rr",
    "map_ia": "ap_ia",
    "strec": "st_recall",
    "strecall": "st_recall",
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
