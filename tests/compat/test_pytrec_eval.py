"""The front of pytrec_eval against pytrec_eval itself, on random data."""

from typing import Any

import numpy as np
import pytest
import pytrec_eval as original

from karat.compat import pytrec_eval as front
from karat.errors import KaratError

Data = tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]


def random_data(seed: int) -> Data:
    """Ties, negative grades, queries of one side only, nothing relevant."""
    draw = np.random.default_rng(seed)
    names = [f"d{n}" for n in range(40)]
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for number in range(60):
        query = f"q{number}"
        found = draw.permutation(names)[: draw.integers(1, 40)].tolist()
        if draw.random() > 0.1:
            scores = (draw.integers(-9, 20, len(found)) / 8).tolist()
            run[query] = dict(zip(found, scores, strict=True))
        judged = draw.permutation(names)[: draw.integers(1, 30)].tolist()
        if draw.random() > 0.1:
            grades = draw.choice([-1, 0, 0, 1, 2, 3], len(judged)).tolist()
            qrels[query] = dict(zip(judged, grades, strict=True))
    return run, qrels


def assert_same(measures: set[str], data: Data, *options: Any) -> None:
    run, qrels = data
    theirs = original.RelevanceEvaluator(qrels, measures, *options).evaluate(run)
    ours = front.RelevanceEvaluator(qrels, measures, *options).evaluate(run)
    assert {*ours} == {*theirs}
    for query, row in theirs.items():
        assert {*ours[query]} == {*row}
        for name, value in row.items():
            mine = ours[query][name]
            same = mine == pytest.approx(value, abs=1e-12, nan_ok=True)
            assert same, (query, name, mine, value)


def test_the_same_measures_are_supported() -> None:
    assert front.supported_measures == original.supported_measures
    for name, measures in front.supported_nicknames.items():
        assert {*original.supported_nicknames[name]} == measures


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_every_measure_is_equal(seed: int, level: int, judged_only: bool) -> None:  # noqa: FBT001
    measures = {*original.supported_measures}
    assert_same(measures, random_data(seed), level, judged_only)


@pytest.mark.parametrize(
    "measures",
    [
        {"P.5,3"},
        {"P_5", "P_7", "P.3"},
        {"P", "P_5"},
        {"ndcg_cut_10", "map_cut.7,2"},
        {"recall.5", "success_3", "relative_P.4"},
        {"iprec_at_recall.0.33", "Rprec_mult.0.5"},
        {"set_F_2"},
        {"set_F.0.5"},
        {"utility.1,2,3,4"},
        {"11pt_avg.0.1,0.5"},
        {"official"},
        {"set", "ndcg"},
        {"map"},
    ],
    ids=lambda measures: ",".join(sorted(measures)),
)
def test_parameters_and_nicknames_are_read_alike(measures: set[str]) -> None:
    assert_same(measures, random_data(9))


@pytest.mark.parametrize("measure", ["unknown", "P@5", "mapp", ""])
def test_what_the_original_refuses_is_refused(measure: str) -> None:
    with pytest.raises(ValueError, match="unsupported measure"):
        original.RelevanceEvaluator({"q": {"a": 1}}, {measure})
    with pytest.raises(ValueError, match="unknown trec_eval measure") as caught:
        front.RelevanceEvaluator({"q": {"a": 1}}, {measure})
    assert isinstance(caught.value, KaratError)


def test_nothing_in_common_is_nothing() -> None:
    evaluator = front.RelevanceEvaluator({"q": {"a": 1}, "r": {}}, {"map"})
    assert evaluator.evaluate({}) == {}
    assert evaluator.evaluate({"other": {"a": 1.0}, "r": {"a": 1.0}}) == {}
    # The original ends the process here.
    assert evaluator.evaluate({"q": {}}) == {}


@pytest.mark.parametrize("measure", ["map", "gm_map", "num_rel"])
def test_aggregates_are_equal(measure: str) -> None:
    run, qrels = random_data(3)
    rows = front.RelevanceEvaluator(qrels, {measure}).evaluate(run)
    values = [row[measure] for row in rows.values()]
    ours = front.compute_aggregated_measure(measure, values)
    theirs = original.compute_aggregated_measure(measure, values)
    assert ours == pytest.approx(theirs, abs=1e-12)
