"""What a judge's grades are worth: compared with people, and asked again."""

import pytest

from karat import Gold
from karat.data.memory_runs import RankedRun
from karat.extend import DataError
from karat.judging.grading import GradedPool, is_binary, is_graded
from karat.trust import compare_grades, retest_changes, run_scores

RUNS = {
    "good": RankedRun({"q1": ["a", "b"], "q2": ["a", "b"], "q3": ["a", "b"]}),
    "bad": RankedRun({"q1": ["b", "a"], "q2": ["b", "a"], "q3": ["b", "a"]}),
}
PEOPLE = {query: {"a": 3, "b": 0} for query in ("q1", "q2", "q3")}


def test_grades_from_0_to_3_are_compared_as_they_are_and_relevant_from_2_on() -> None:
    judged = {query: {"a": 1, "b": 0} for query in PEOPLE}
    found = compare_grades(RUNS, judged, PEOPLE, metric="rr")
    assert found.scale is None
    assert found.figures.equal.value == 0.5
    rates = {rate.name: rate.rate for rate in found.rates}
    assert rates["people say 2 or more, judge too"] == 0.0
    # Grade 1 is not relevant: by the judge there is nothing to find, and no order.
    assert found.order is not None
    assert (found.order.threshold, found.order.queries, found.order.labelled) == (
        2,
        0,
        3,
    )


@pytest.mark.parametrize(
    ("top", "sentence"),
    [(1, "people say 0 or 1"), (2, "people's grades end at 2"), (0.5, "end at 0.5")],
)
def test_any_other_scale_is_compared_by_relevant_or_not(
    top: float, sentence: str
) -> None:
    people = {query: {"a": top, "b": 0} for query in PEOPLE}
    judged = {"q1": {"a": 3, "b": 1}, "q2": {"a": 2, "b": 0}, "q3": {"a": 1, "b": 1}}
    found = compare_grades(RUNS, judged, people)
    assert found.scale is not None
    assert sentence in found.scale
    assert found.figures.equal.value == pytest.approx(5 / 6)


def test_scales_are_told_by_the_labels() -> None:
    assert is_graded(PEOPLE)
    assert not is_graded({"q": {"a": 4, "b": 3}})
    assert not is_graded({"q": {"a": 2.5, "b": 3}})
    assert is_binary({"q": {"a": 1, "b": -2}})
    assert not is_binary({"q": {"a": 0}})


def test_the_order_by_the_judge_has_the_labels_that_stay() -> None:
    # The judge was asked for holes only: a is known, and b is all that it graded.
    existing = {query: {"a": 3} for query in PEOPLE}
    judged = {query: {"b": 2} for query in PEOPLE}
    alone = compare_grades(RUNS, judged, PEOPLE, metric="ndcg@2").order
    beside = compare_grades(
        RUNS, judged, PEOPLE, existing=existing, metric="ndcg@2"
    ).order
    assert alone is not None
    assert beside is not None
    assert (alone.tau, beside.tau) == (-1, 1)


def test_a_grade_of_the_judge_counts_before_a_label_that_stays() -> None:
    judged = {query: {"a": 0, "b": 3} for query in PEOPLE}
    order = compare_grades(RUNS, judged, PEOPLE, existing=PEOPLE, metric="ndcg@2").order
    assert order is not None
    assert order.tau == -1


def test_labels_that_stay_on_another_scale_are_compared_by_relevance_too() -> None:
    people = {query: {**row, "c": 1} for query, row in PEOPLE.items()}
    existing = {query: {"d": 1, "e": 0} for query in PEOPLE}
    judged = {query: {"a": 2, "b": 1, "c": 0} for query in PEOPLE}
    found = compare_grades(RUNS, judged, people, existing=existing)
    assert found.figures.equal.value == 1.0
    assert found.scale is not None
    assert "the labels that stay are not grades from 0 to 3" in found.scale


def test_grades_that_changed_are_counted_on_the_scale_of_people() -> None:
    before = GradedPool(Gold({"q1": {"a": 3, "b": 1}, "q2": {"a": 0, "b": 2}}))
    after = GradedPool(
        Gold({"q1": {"a": 2, "b": 0}, "q2": {"a": 2}}), failures={("q2", "b"): "hm"}
    )
    for people in (None, PEOPLE):
        told = retest_changes(before, after, people)
        assert (told.changed, told.n) == (3, 3)
    beside = retest_changes(before, after, {"q1": {"a": 1, "b": 0}})
    assert (beside.changed, beside.n, beside.failed) == (1, 3, 1)


def test_runs_are_put_in_order_by_one_metric() -> None:
    assert [*run_scores(RUNS, PEOPLE, "rr")["bad"]] == [0.5, 0.5, 0.5]
    with pytest.raises(DataError, match="by one metric"):
        run_scores(RUNS, PEOPLE, "rr, ap")
