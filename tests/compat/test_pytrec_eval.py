"""The front of pytrec_eval against pytrec_eval itself, on random data."""

from math import log, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval as original

from karat import KaratError
from karat.compat import pytrec_eval as front

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


@pytest.mark.parametrize("judged_only", [False, True])
def test_queries_without_documents_score_as_there(judged_only: bool) -> None:  # noqa: FBT001
    # What 0.5.11 says; not asked here, since some of its calls end the process.
    said = {"map": 0.0, "ndcg": 0.0, "recip_rank": 0.0, "P_5": 0.0, "bpref": 0.0}
    said |= {"num_q": 1.0, "num_ret": 0.0, "num_rel": 2.0, "gm_map": log(0.00001)}
    said |= {"iprec_at_recall_0.00": nan, "iprec_at_recall_0.10": 0.0, "set_F": 0.0}
    run: dict[str, dict[str, float]] = {"q": {}, "r": {"b": 1.0}}
    gold = {"q": {"a": 1, "b": 2, "c": 0}, "r": {"b": 1}}
    for shown in (run, {"q": run["q"]}):
        evaluator = front.RelevanceEvaluator(gold, {"all_trec"}, 1, judged_only)
        row = evaluator.evaluate(shown)["q"]
        assert {name: row[name] for name in said} == pytest.approx(said, nan_ok=True)


def test_a_query_without_documents_counts_in_the_mean() -> None:
    evaluator = front.RelevanceEvaluator({"q": {"a": 1}, "r": {"a": 1}}, {"map"})
    rows = evaluator.evaluate({"q": {"a": 1.0}, "r": {}})
    values = [row["map"] for row in rows.values()]
    assert front.compute_aggregated_measure("map", values) == 0.5


def test_nothing_asked_is_a_row_for_each_query() -> None:
    run: dict[str, dict[str, float]] = {"q": {"a": 1.0}, "r": {}}
    evaluator = front.RelevanceEvaluator({"q": {"a": 1}, "r": {"a": 1}}, set())
    assert evaluator.evaluate(run) == {"q": {}, "r": {}}
    assert evaluator.evaluate({}) == {}
    assert front.RelevanceEvaluator({}, {"map"}).evaluate(run) == {}


def test_lines_are_parsed_alike() -> None:
    run = ["q1 Q0 b 1 0.9 mine\n", "q1 Q0 a 2 -1e3 mine\n", "q2\tQ0 \tb 1 nan x"]
    qrels = ["q1 0 b 2\n", "q1 0 a -1\n", "q2 0 b 0"]
    assert str(dict(front.parse_run(run))) == str(dict(original.parse_run(run)))
    assert front.parse_qrel(qrels) == original.parse_qrel(qrels)
    assert front.parse_run(run)["other"] == {}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["q 0 a 1", "q 0 b"], r"line 2: 3 columns, expected 4"),
        (["q 0 a high"], r"line 1: .*'high'"),
        (["q 0 a 1", "q 0 a 1"], r"line 2.*'a' twice"),
        (["q 0 a 1", ""], r"line 2: 0 columns"),
    ],
)
def test_what_is_no_line_is_named(lines: list[str], why: str) -> None:
    if __debug__:  # the original asserts, which -O leaves out
        with pytest.raises((ValueError, AssertionError)):
            original.parse_qrel(lines)
    with pytest.raises(KaratError, match=why):
        front.parse_qrel(lines)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("qrels", "level"), [("qrels.test", 1), ("qrels.rel_level", 2)]
)
def test_the_files_of_trec_eval_score_as_there(
    qrels: str, level: int, shared_data: Path
) -> None:
    folder = shared_data / "trec_eval_test"
    measures = {*original.supported_measures}
    with (folder / qrels).open() as lines:
        labels = front.parse_qrel(lines)
    with (folder / "results.test").open() as lines:
        run = front.parse_run(lines)
    assert_same(measures, (run, labels), level)


@pytest.mark.parametrize("measure", ["map", "gm_map", "num_rel"])
def test_aggregates_are_equal(measure: str) -> None:
    run, qrels = random_data(3)
    rows = front.RelevanceEvaluator(qrels, {measure}).evaluate(run)
    values = [row[measure] for row in rows.values()]
    ours = front.compute_aggregated_measure(measure, values)
    theirs = original.compute_aggregated_measure(measure, values)
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_ids_that_are_numbers_are_the_same_as_texts() -> None:
    kinds: Any = ({1: {2: 1}}, {"1": {"2": 1}})
    for qrels in kinds:
        for run in kinds:
            scores = front.RelevanceEvaluator(qrels, {"map"}).evaluate(run)
            assert scores == {"1": {"map": 1.0}}
