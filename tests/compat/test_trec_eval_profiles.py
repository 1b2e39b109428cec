"""One name means one number: `evaluate` under a profile against `trec-eval`."""

from typing import Any

import numpy as np
import pytest

import karat
from karat.compat.trec_eval import trec_eval_lines
from karat.data.memory_runs import ScoredRun

EVERY = {"9": ("all_trec", "yaap"), "10": ("all_trec", "dcg", "ideal_dcg", "yaap")}
NO_METRICS = ("runid", "relstring")


def graded_data() -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Ties, negative grades, topics that find nothing or have nothing to find."""
    draw = np.random.default_rng(7)
    run, qrels = {}, {}
    names = [f"d{n}" for n in range(60)]
    for number in range(40):
        topic = f"q{number:02}"
        found = draw.permutation(names)[: draw.integers(1, 50)].tolist()
        scores = (draw.integers(0, 30, len(found)) / 4).tolist()
        run[topic] = dict(zip(found, scores, strict=True))
        judged = draw.permutation(names)[: draw.integers(1, 40)].tolist()
        grades = draw.choice([-1, 0, 0, 1, 1, 2, 3], len(judged)).tolist()
        qrels[topic] = dict(zip(judged, map(float, grades), strict=True))
    return run, qrels


def printed(
    run: Any, qrels: Any, version: str, **options: Any
) -> dict[str, dict[str, str]]:
    """What trec-eval prints: measure -> topic, or all -> the number."""
    lines = trec_eval_lines(
        qrels,
        ScoredRun(run),
        measures=EVERY[version],
        version=version,
        per_query=True,
        **options,
    )
    rows: dict[str, dict[str, str]] = {}
    for line in lines:
        name, topic, value = line.split("\t")
        if name.strip() not in NO_METRICS:
            rows.setdefault(name.strip(), {})[topic] = value.strip()
    return rows


@pytest.mark.parametrize(
    "options",
    [{}, {"threshold": 2}, {"depth": 5}, {"judged_only": True}],
    ids=["plain", "-l 2", "-M 5", "-J"],
)
@pytest.mark.parametrize("version", ["9", "10"])
def test_evaluate_under_a_profile_agrees_with_trec_eval(
    version: str, options: dict[str, Any]
) -> None:
    run, qrels = graded_data()
    theirs = {("level" if k == "threshold" else k): v for k, v in options.items()}
    expected = printed(run, qrels, version, **theirs)
    assert len(expected) > 90
    result = karat.evaluate(
        run,
        gold=qrels,
        metrics=list(expected),
        profile=f"trec_eval-{version}",
        **options,
    )
    for name, rows in expected.items():
        column = result[name]
        counts = name.startswith("num_")
        shown = "{:.0f}" if counts else "{:.4f}"
        for topic, value in rows.items():
            if value.endswith("nan"):
                # What trec_eval divides by zero is 0 here: nothing was retrieved.
                continue
            number = column.mean if topic == "all" else column[topic]
            if topic == "all" and counts and column.average == "mean":
                number *= column.n
            assert shown.format(number) == value, (name, topic)


def test_a_profile_changes_defaults_and_not_what_was_spelled_out() -> None:
    run, qrels = graded_data()
    asked = ["rbp", "rbp(p=0.8)", "rbp(p=0.9, gain=scaled)", "rbp_resid"]
    result = karat.evaluate(run, gold=qrels, metrics=asked, profile="trec_eval-10")
    native = karat.evaluate(
        run, gold=qrels, metrics=["rbp(gain=scaled)", "rbp", "rbp_resid(p=0.9)"]
    )
    assert [*result] == asked
    assert result.means["rbp"] == result.means["rbp(p=0.9, gain=scaled)"]
    expected = np.nan_to_num(native["rbp(gain=scaled)"].scores).tolist()
    assert result["RBP(p=.8)"].scores.tolist() == expected
    assert result.means["rbp_resid"] == native.means["rbp_resid(p=0.9)"]
    assert result.score("rbp").mean == result.means["rbp"]


def test_rbp_and_what_it_leaves_open_share_a_default() -> None:
    graded = karat.evaluate(
        {"q": ["a", "x", "b"]}, gold={"q": {"a": 1, "b": 1}}, metrics=["rbp"]
    )
    assert graded.score("rbp").mean == pytest.approx(0.2 * (1 + 0.8**2))
    open_ = karat.evaluate(
        {"q": ["a", "x"]}, gold={"q": {"a": 1}}, metrics=["rbp_resid"]
    )
    assert open_.means["rbp_resid"] == pytest.approx(0.8)


@pytest.mark.parametrize("version", ["9", "10"])
def test_complete_counts_every_positive_grade_as_the_binary_does(version: str) -> None:
    qrels = {"q1": {"a": 1.0, "b": 2.0, "c": -1.0}, "q2": {"a": 3.0, "b": 0.0}}
    run = ScoredRun({"q1": {"a": 1.0}})
    lines = trec_eval_lines(
        qrels, run, measures=["num_rel"], version=version, complete=True, level=2
    )
    assert [line.split()[-1] for line in lines] == ["3"]
