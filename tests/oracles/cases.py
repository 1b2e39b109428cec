"""Small random runs with everything that goes wrong in real ones, and their oracle."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from karat import Evaluation
from karat.extend import Floats, MetricScores, read_metric
from tests.oracles import exact, exact_gains, exact_trec
from tests.oracles.exact import Case, Score

Oracle = Callable[[Case], Score]
Scores = dict[str, dict[str, float]]
Grades = dict[str, dict[str, float]]

CUTOFFS = (1, 2, 3, 5, 10)


@dataclass(frozen=True)
class Batch:
    """A run in both shapes, its gold, and the case the oracle reads for each query."""

    scores: Scores
    rankings: dict[str, list[str]]
    gold: Grades
    cases: dict[str, Case]


def random_batch(
    seed: int, size: int, grades: tuple[float, ...], *, ties: bool = True
) -> Batch:
    """Short rankings over few documents, some empty, some queries missing."""
    draw = np.random.default_rng(seed)
    names = [f"d{n}" for n in range(14)]
    scores: Scores = {}
    gold: Grades = {}
    for number in range(size):
        query = f"q{number}"
        chosen = draw.permutation(names)[: draw.integers(0, 13)]
        levels = draw.integers(-2, 4, len(chosen)) / 2
        if not ties:
            levels = draw.permutation(len(chosen)) / 7 - 0.5
        if draw.random() > 0.03:
            scores[query] = dict(zip(chosen.tolist(), levels.tolist(), strict=True))
        judged = draw.permutation(names)[: draw.integers(1, 9)].tolist()
        gold[query] = dict(
            zip(judged, draw.choice(grades, len(judged)).tolist(), strict=True)
        )
    rankings = {query: exact.trec_order(found) for query, found in scores.items()}
    cases = {q: exact.by_id(rankings.get(q, []), gold[q]) for q in gold}
    return Batch(scores, rankings, gold, cases)


def column(evaluation: Evaluation, metric: str) -> MetricScores:
    """The scores of a metric, however it was spelled when it was asked for."""
    return evaluation[str(read_metric(metric))]


def assert_scores(
    scores: Floats, cases: Mapping[str, Case], oracle: Oracle, tolerance: float = 1e-12
) -> None:
    """Equal query by query; undefined where, and only where, the oracle says so."""
    assert len(scores) == len(cases)
    for score, (query, case) in zip(scores.tolist(), cases.items(), strict=True):
        value = oracle(case)
        expected = float("nan") if value is None else float(value)
        agree = np.isnan(score) if value is None else abs(score - expected) <= tolerance
        assert agree, f"{query}: {score!r} instead of {expected!r} for {case}"


def _cut(name: str, oracle: Callable[..., Score]) -> dict[str, Oracle]:
    return {f"{name}@{k}": partial(oracle, k=k) for k in CUTOFFS}


ITEM_METRICS: dict[str, Oracle] = {
    "hit": exact.hit,
    **_cut("hit", exact.hit),
    "recall": exact.recall,
    **_cut("recall", exact.recall),
    "recall_all": exact.recall_all,
    **_cut("recall_all", exact.recall_all),
    **_cut("recall_capped", exact.recall_capped),
    **_cut("precision", exact.precision),
    "precision": partial(exact.precision, k=None),
    **_cut("precision(of=retrieved)", partial(exact.precision, of="retrieved")),
    **_cut("f1", exact.f1),
    "rr": exact.rr,
    **_cut("rr", exact.rr),
    "ap": exact.ap,
    **_cut("ap", exact.ap),
    "ap(of=capped)": exact.ap,
    **_cut("ap(of=capped)", partial(exact.ap, capped=True)),
    "ndcg": exact.ndcg,
    **_cut("ndcg", exact.ndcg),
    "ndcg(gain=exp)": partial(exact.ndcg, gain="exp"),
    **_cut("ndcg(gain=exp)", partial(exact.ndcg, gain="exp")),
    "dcg": exact_gains.dcg,
    **_cut("dcg", exact_gains.dcg),
    "ideal_dcg": exact_gains.ideal_dcg,
    **_cut("ideal_dcg", exact_gains.ideal_dcg),
    "ncg": exact_gains.ncg,
    **_cut("ncg", exact_gains.ncg),
    **_cut("ncg(gain=exp)", partial(exact_gains.ncg, gain="exp")),
    "hits": exact_gains.hits,
    **_cut("hits", exact_gains.hits),
    "hits(threshold=2)@3": partial(exact_gains.hits, k=3, threshold=2),
    "ndcg(gains=1:1;2:7;3:2)": partial(
        exact_gains.ndcg_with_gains, gains={1: 1, 2: 7, 3: 2}
    ),
    "ndcg(gains=1:0;2:3)@3": partial(
        exact_gains.ndcg_with_gains, gains={1: 0, 2: 3}, k=3
    ),
    "q_measure": exact_gains.q_measure,
    "q_measure(beta=0)": exact.ap,
    "q_measure(beta=10)": partial(exact_gains.q_measure, beta=10),
    "gm_ap": exact.ap,
    "yaap": exact_gains.yaap,
    **_cut("ndcg_any", exact.ndcg_any),
    "context_precision": exact.context_precision,
    **_cut("context_precision", exact.context_precision),
    **_cut("judged", exact.judged),
    "rbp(p=0.8)": partial(exact.rbp, p=Fraction(4, 5)),
    "rbp(p=0.5)": partial(exact.rbp, p=Fraction(1, 2)),
    **_cut("err(max_grade=4)", partial(exact.err, max_grade=4)),
    "recall(threshold=2)@3": partial(exact.recall, k=3, threshold=2),
    "hit(threshold=2)@3": partial(exact.hit, k=3, threshold=2),
    "precision(threshold=2)@3": partial(exact.precision, k=3, threshold=2),
    "rr(threshold=2)": partial(exact.rr, threshold=2),
    "ap(threshold=2)": partial(exact.ap, threshold=2),
    "ap(threshold=2)@3": partial(exact.ap, k=3, threshold=2),
}
"""Metrics defined for any matcher: items found once, positions matched often."""

DOCUMENT_METRICS: dict[str, Oracle] = {
    "r_precision": exact_trec.r_precision,
    "r_precision(mult=0.2)": partial(exact_trec.r_precision, mult=0.2),
    "r_precision(mult=1.4)": partial(exact_trec.r_precision, mult=1.4),
    "r_precision(threshold=2)": partial(exact_trec.r_precision, threshold=2),
    "bpref": exact_trec.bpref,
    "bpref(threshold=2)": partial(exact_trec.bpref, threshold=2),
    "gm_bpref": exact_trec.bpref,
    "accuracy": exact_gains.accuracy,
    "accuracy(threshold=2)@3": partial(exact_gains.accuracy, k=3, threshold=2),
    "compat": partial(exact_gains.compat, p=Fraction(19, 20)),
    "compat(p=0.5, normalize=false)": partial(
        exact_gains.compat, p=Fraction(1, 2), normalize=False
    ),
    "infap": exact_trec.infap,
    "infap(threshold=2)": partial(exact_trec.infap, threshold=2),
    **{f"iprec({n / 10})": partial(exact_trec.iprec, level=n / 10) for n in range(11)},
    "iprec_avg": exact_trec.iprec_avg,
    "set_precision": exact_trec.set_precision,
    "set_recall": exact_trec.set_recall,
    "set_f": exact_trec.set_f,
    "set_ap": exact_trec.set_ap,
    "set_relative_precision": exact_trec.set_relative_precision,
    "bing": exact_trec.bing,
    "unjudged@1": partial(exact_trec.unjudged, k=1),
    "unjudged@5": partial(exact_trec.unjudged, k=5),
    "num_ret": exact_trec.num_ret,
    "num_rel": exact_trec.num_rel,
    "num_rel_ret": exact_trec.num_rel_ret,
    "num_nonrel_judged_ret": exact_trec.num_nonrel_judged_ret,
}
"""Metrics of trec_eval, defined for documents matched by id."""
