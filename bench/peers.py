"""The seven numbers from every tool, per query and as means, its objects built."""

import os
import warnings
from collections.abc import Callable, Mapping
from statistics import fmean

import ir_measures
import pytrec_eval

# Calls are timed by the processor, and threads would count twice: one for everybody.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
import ranx

import karat
from datasets import Gold, Lists, Scores
from measures import METRICS, TREC_NAMES, TREC_REQUEST

__all__ = ["PEERS", "Means", "agree", "means_of", "with_karat", "with_pytrec_eval"]

Means = dict[str, float]

_TOLERANCE = 1e-6


def with_karat(run: Scores | Lists, gold: Gold) -> Means:
    """Score with karat from plain objects and read all means and all scores."""
    evaluation = karat.evaluate(run, gold=gold, metrics=METRICS)
    for name in METRICS:
        evaluation[name].scores  # noqa: B018 - reading is part of the work
    return evaluation.means


def with_pytrec_eval(run: Scores, gold: Gold) -> Means:
    """Score with pytrec_eval."""
    evaluator = pytrec_eval.RelevanceEvaluator(gold, set(TREC_REQUEST))
    return means_of(evaluator.evaluate(run))


def means_of(scores: Mapping[str, Mapping[str, float]]) -> Means:
    """The means of what pytrec_eval gives for each query."""
    return {
        name: fmean(row[measure] for row in scores.values())
        for name, measure in TREC_NAMES.items()
    }


def with_ranx(run: Scores, gold: Gold) -> Means:
    """Score with ranx."""
    names = {"rr@10": "mrr@10", "ap": "map"}
    wanted = [names.get(name, name) for name in METRICS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        means = ranx.evaluate(ranx.Qrels(gold), ranx.Run(run), wanted)
    return dict(zip(METRICS, map(float, means.values()), strict=True))


def with_ir_measures(run: Scores, gold: Gold) -> Means:
    """Score with ir_measures."""
    names = ("nDCG@10", "R@5", "R@10", "R@100", "RR@10", "AP", "P@10")
    wanted = [ir_measures.parse_measure(name) for name in names]
    values: dict[object, list[float]] = {measure: [] for measure in wanted}
    for row in ir_measures.iter_calc(wanted, gold, run):
        values[row.measure].append(row.value)
    return dict(zip(METRICS, map(fmean, values.values()), strict=True))


PEERS: Mapping[str, Callable[[Scores, Gold], Means]] = {
    "pytrec_eval": with_pytrec_eval,
    "ranx": with_ranx,
    "ir_measures": with_ir_measures,
}


def agree(ours: Means, other: str, theirs: Means) -> None:
    """Stop when a mean differs: a fast wrong number is worth nothing."""
    for name in METRICS:
        if other == "pytrec_eval" and name == "rr@10":
            continue
        if abs(ours[name] - theirs[name]) > _TOLERANCE:
            raise SystemExit(
                f"{name} differs: karat {ours[name]!r}, {other} {theirs[name]!r}"
            )
