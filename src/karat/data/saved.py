"""Saved evaluations: from what `Evaluation.to_dict` writes back to an evaluation."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from karat.data.evaluations import (
    SCHEMA_VERSION,
    Evaluation,
    Interval,
    MetricScores,
    Trace,
)
from karat.data.judgements import Usage
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Notice
from karat.data.verdicts import Verdict
from karat.errors import FormatError

__all__ = ["from_dict"]


def from_dict(saved: Mapping[str, Any]) -> Evaluation:
    """The evaluation that `to_dict` gave, with the same numbers to the last bit.

    Raises:
        FormatError: a saved form of a newer karat, of something else, or a damaged one.

    Example:
        >>> from karat.evaluation import evaluate
        >>> result = evaluate({"q1": ["b", "a"]}, gold={"q1": ["a"]}, metrics=["rr"])
        >>> from_dict(result.to_dict()).means
        {'rr': 0.5}
    """
    _check_version(saved)
    try:
        evaluation = _read(saved)
    except KeyError as error:
        raise FormatError(f"is not a whole evaluation: {error} is missing") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"is not a whole evaluation: {error}") from None
    for name, summary in saved["metrics"].items():
        _check_mean(evaluation[name], summary)
    return evaluation


def _check_version(saved: Mapping[str, Any]) -> None:
    version = saved.get("schema_version")
    if type(version) is not int or version < 1:
        raise FormatError(
            "is not a saved evaluation: it has no schema_version",
            hint="karat evaluate -o result.json writes one",
        )
    if version > SCHEMA_VERSION:
        raise FormatError(
            f"was saved by a newer karat: its schema_version is {version}, this karat "
            f"reads up to {SCHEMA_VERSION}",
            hint="upgrade karat",
        )


def _check_mean(column: MetricScores, summary: Mapping[str, Any]) -> None:
    mean = math.nan if summary["mean"] is None else summary["mean"]
    same = math.isclose(column.mean, mean, rel_tol=1e-9, abs_tol=1e-12)
    if column.n != summary["n"] or not (same or column.n == 0):
        raise FormatError(
            f"contradicts itself: {column.metric} is {mean} over {summary['n']} "
            f"queries, but its scores give {column.mean} over {column.n}"
        )


def _read(saved: Mapping[str, Any]) -> Evaluation:
    rows: Sequence[Mapping[str, Any]] = saved["queries"]
    traces = tuple(
        Trace(
            row["gold_fingerprint"],
            dict(row["first_ranks"]),
            row["retrieved"],
            tuple(row["tags"]),
            tuple(_verdict(verdict) for verdict in row.get("verdicts", ())),
            Usage(**row["usage"]) if "usage" in row else None,
        )
        for row in rows
    )
    queries = [row["id"] for row in rows]
    # The evaluation itself says which queries are missing or failed.
    notices = tuple(
        Notice(n["kind"], n["count"], n["text"], tuple(n["examples"]), n.get("one", ""))
        for n in saved["warnings"]
        if n["kind"] not in {"missing", "failed"}
    )
    metrics = saved["metrics"]
    return Evaluation(
        run=saved["run"],
        gold=saved["gold"],
        queries=queries,
        columns={
            name: _column(name, summary, rows) for name, summary in metrics.items()
        },
        missing=np.array([row["missing"] for row in rows], bool),
        policies=Policies(**saved["policies"]),
        matchers={
            name: summary["matcher"]
            for name, summary in metrics.items()
            if summary["matcher"] is not None
        },
        provenance=dict(saved["provenance"]),
        facts={
            query: Query(query, tags=trace.tags)
            for query, trace in zip(queries, traces, strict=True)
            if trace.tags
        },
        _notices=lambda: notices,
        _traces=lambda: traces,
    )


def _verdict(saved: Mapping[str, Any]) -> Verdict:
    ranks = {name: tuple(saved[name]) for name in ("alone", "together")}
    return Verdict(**{**saved, **ranks})


def _column(
    name: str, summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> MetricScores:
    scores = np.array([_score(row["scores"][name]) for row in rows], np.float64)
    places = {row["id"]: place for place, row in enumerate(rows)}
    low, high = summary["bounds"]
    interval = summary["interval"]
    known = None if interval is None else Interval(**interval)
    return MetricScores(
        metric=name,
        scores=scores,
        n=int(np.count_nonzero(~np.isnan(scores))),
        undefined=summary["undefined"],
        failures={places[query]: why for query, why in summary["failed"].items()},
        binary=summary["binary"],
        bounds=(
            -math.inf if low is None else low,
            math.inf if high is None else high,
        ),
        cutoffs=tuple(summary["cutoffs"]),
        _interval=lambda _: known,
    )


def _score(value: Any) -> float:
    if value is None:
        return math.nan
    if type(value) not in {int, float}:
        raise TypeError(f"a score is {value!r}, not a number")
    return float(value)
