"""People and a judge combined: plans, refusals, and what real labels give."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from karat import LabelPlan, combine_labels, evaluate, plan_labels
from karat.extend import DataError, MismatchError, ParameterError, UsageError

Grades = dict[str, dict[str, float]]


def made(queries: int = 40, seed: int = 0) -> tuple[dict[str, Any], Grades, Grades]:
    """Two runs, a judge that is too kind, and people."""
    random = np.random.default_rng(seed)
    names = [f"d{n}" for n in range(12)]
    people: Grades = {}
    judged: Grades = {}
    runs: dict[str, Any] = {"a": {}, "b": {}}
    for number in range(queries):
        grades = random.integers(0, 4, 12)
        grades[0] = 3
        kind = np.minimum(grades + random.integers(0, 2, 12), 3)
        query = f"q{number}"
        people[query] = dict(zip(names, map(float, grades), strict=True))
        judged[query] = dict(zip(names, map(float, kind), strict=True))
        for run, noise in (("a", 1.0), ("b", 3.0)):
            scores = grades + random.normal(0, noise, 12)
            runs[run][query] = dict(zip(names, map(float, scores), strict=True))
    return runs, judged, people


def labelled(plan: LabelPlan, people: Grades, units: int | None = None) -> Grades:
    """The labels that people give who do as the plan says."""
    given: Grades = {}
    for query, document, _ in plan.labels:
        given.setdefault(query, {})[document] = people[query][document]
    return dict([*given.items()][:units])


def mean(column: Iterable[float]) -> float:
    return float(np.mean([*column]))


def test_people_who_label_everything_are_believed() -> None:
    runs, judged, people = made()
    plan = plan_labels(judged, budget=40 * 12)
    result = combine_labels(runs, judged=judged, people=people, plan=plan)
    for row in result.scores[:4]:
        scored = evaluate(runs[row.run], gold=people, metrics=[row.metric])
        assert row.combined.mean == pytest.approx(scored.means[row.metric])
        assert row.people.mean == row.combined.mean


def test_a_plan_is_drawn_by_its_seed_and_survives_its_file(tmp_path: Path) -> None:
    _, judged, _ = made()
    plan = plan_labels(judged, budget=15 * 12, seed=4)
    assert plan == plan_labels(judged, budget=15 * 12, seed=4)
    assert plan != plan_labels(judged, budget=15 * 12, seed=5)
    assert len(plan.queries) == 15
    assert {label.probability for label in plan.labels} == {15 / 40}
    plan.save(tmp_path / "todo.jsonl")
    assert LabelPlan.load(tmp_path / "todo.jsonl") == plan


def test_every_query_is_drawn_as_often_as_the_plan_says() -> None:
    judged = {f"q{n}": {f"d{m}": 1.0 for m in range(1 + n % 7)} for n in range(20)}
    count = dict.fromkeys(judged, 0)
    share = set()
    for seed in range(300):
        plan = plan_labels(judged, budget=40, seed=seed)
        share |= {label.probability for label in plan.labels}
        for query in plan.queries:
            count[query] += 1
    (probability,) = share
    spread = 4 * np.sqrt(300 * probability * (1 - probability))
    assert all(abs(n - 300 * probability) < spread for n in count.values())


def test_the_judge_alone_and_people_alone_are_what_evaluate_says() -> None:
    runs, judged, people = made()
    plan = plan_labels(judged, budget=12 * 12)
    given = labelled(plan, people)
    result = combine_labels(runs, judged=judged, people=given, plan=plan)
    assert (result.judged, result.labelled, result.given) == (40, 12, 144)
    row = result.scores[0]
    by_judge = evaluate(runs["a"], gold=judged, metrics=["ndcg@10"])["ndcg@10"]
    by_people = evaluate(runs["a"], gold=given, metrics=["ndcg@10"])["ndcg@10"]
    assert row.judge.mean == pytest.approx(by_judge.mean)
    assert row.people.mean == pytest.approx(by_people.mean)
    # Fewer than 15 queries: the judge's mean, less its error on what people labelled.
    error = mean(by_judge[query] - by_people[query] for query in given)
    assert row.combined.mean == pytest.approx(by_judge.mean - error)
    difference = next(row for row in result.scores if row.baseline)
    assert (difference.run, difference.baseline) == ("b", "a")
    assert difference.judge.mean == pytest.approx(
        result.scores[2].judge.mean - row.judge.mean
    )


def test_whoever_stops_early_has_labelled_a_random_part() -> None:
    runs, judged, people = made()
    plan = plan_labels(judged, budget=20 * 12)
    part = labelled(plan, people, 11)
    result = combine_labels(runs, judged=judged, people=part, plan=plan)
    assert (result.labelled, result.given) == (11, 132)


def test_what_is_no_random_sample_is_refused() -> None:
    runs, judged, people = made()
    plan = plan_labels(judged, budget=20 * 12)
    given = labelled(plan, people)
    chosen = {**given, **{q: people[q] for q in people if q not in given}}
    for labels, problem in (
        (chosen, "240 labels by people were not drawn by the plan"),
        ({q: given[q] for q in [*given][1:]}, "not labelled in full"),
        ({q: given[q] for q in [*given][:9]}, "people labelled 9 queries"),
        ({**given, [*given][2]: {"d0": 1.0}}, "not labelled in full"),
    ):
        with pytest.raises(MismatchError, match=problem):
            combine_labels(runs, judged=judged, people=labels, plan=plan)
    other = {query: {**row, "new": 1.0} for query, row in judged.items()}
    with pytest.raises(MismatchError, match="another pool"):
        combine_labels(runs, judged=other, people=given, plan=plan)
    with pytest.raises(ParameterError, match="at least 120"):
        plan_labels(judged, budget=50)


def test_people_and_a_judge_in_one_file_are_refused(tmp_path: Path) -> None:
    runs, judged, people = made()
    plan = plan_labels(judged, budget=20 * 12)
    given = labelled(plan, people)
    files = {}
    for name, labels, who in (
        ("judged", judged, "judge:m"),
        ("people", given, "human:Ann"),
        # The judge's labels with people's merged into them: it would never err.
        ("mixed", {**judged, **given}, "human:Ann"),
    ):
        files[name] = tmp_path / f"{name}.qrels"
        lines = [
            f"{query} {who if query in given else 'judge:m'} {document} {grade:g}\n"
            for query, row in labels.items()
            for document, grade in row.items()
        ]
        files[name].write_text("".join(lines))
    apart = combine_labels(
        runs, judged=files["judged"], people=files["people"], plan=plan
    )
    assert apart == combine_labels(runs, judged=judged, people=given, plan=plan)
    for judge, persons, problem in (
        ("mixed", "people", "mixed.qrels has 240 labels by human:Ann"),
        ("judged", "mixed", "mixed.qrels has 240 labels by judge:m"),
    ):
        with pytest.raises(MismatchError, match=problem):
            combine_labels(runs, judged=files[judge], people=files[persons], plan=plan)
    with pytest.raises(MismatchError, match="must be in separate files"):
        plan_labels(files["mixed"], budget=240)


def test_what_the_judge_did_not_label_is_said() -> None:
    runs, judged, people = made()
    plan = plan_labels(judged, budget=20 * 12)
    given = labelled(plan, people)
    fresh = {
        query: [f"n{m}" for m in range(5)] + [*row] for query, row in judged.items()
    }
    result = combine_labels(
        {**runs, "new": fresh}, judged=judged, people=given, plan=plan
    )
    unjudged = {row.run: row.unjudged for row in result.scores if not row.baseline}
    assert unjudged == {"a": 0.0, "b": 0.0, "new": 0.5}
    assert "of the top 10 not judged, so not relevant: new 50%" in str(result)
    # As deep as each metric reads.
    both = combine_labels(
        {"new": fresh}, judged=judged, people=given, plan=plan, metrics="recall@5,rr"
    )
    assert [row.unjudged for row in both.scores] == [1.0, pytest.approx(5 / 17)]
    assert "of the top 5 not judged, so not relevant: new 100%" in str(both)
    assert "of all documents not judged, so not relevant: new 29%" in str(both)


@pytest.mark.parametrize(
    "facts",
    [
        {"probability": 1.5},
        {"probability": 10**400, "drawn": "queries"},
        {"probability": 0.5, "drawn": "pairs", "k": 5, "runs": None},
    ],
)
def test_a_file_that_is_no_plan_says_so(tmp_path: Path, facts: dict[str, Any]) -> None:
    path = tmp_path / "todo.jsonl"
    row = {"query": "q", "document": "d", "pool": "x", **facts}
    path.write_text(f"{json.dumps(row)}\n")
    with pytest.raises(DataError, match="is no plan"):
        LabelPlan.load(path)


def test_queries_without_a_score_are_left_out_of_the_mean() -> None:
    runs, judged, people = made()
    for query in [*people][:6]:
        people[query] = dict.fromkeys(people[query], 0.0)
    plan = plan_labels(judged, budget=40 * 12)
    result = combine_labels(runs, judged=judged, people=people, plan=plan)
    scored = evaluate(runs["a"], gold=people, metrics=["ndcg@10"])
    assert scored["ndcg@10"].undefined == 6
    assert result.scores[0].combined.mean == pytest.approx(scored.means["ndcg@10"])
    assert (result.scores[0].undefined, "undefined)" in str(result)) == (0, False)
    judged["q0"] = dict.fromkeys(judged["q0"], 0.0)
    again = combine_labels(runs, judged=judged, people=people, plan=plan)
    assert again.scores[0].undefined == 1
    assert "queries by the judge: a 39 of 40 (1 undefined), b 39 of 40" in str(again)


def test_pairs_correct_metrics_that_add_up() -> None:
    runs, judged, people = made(60)
    names = ["precision@5", "dcg@5"]
    truth = {run: evaluate(runs[run], gold=people, metrics=names).means for run in runs}
    means: dict[tuple[str, str], list[float]] = {}
    covered = 0
    for seed in range(60):
        plan = plan_labels(judged, runs, budget=200, pairs=True, k=5, seed=seed)
        given = labelled(plan, people)
        result = combine_labels(
            runs, judged=judged, people=given, plan=plan, metrics=names
        )
        for row in result.scores[:4]:
            means.setdefault((row.run, row.metric), []).append(row.combined.mean)
            interval = row.combined.interval
            assert interval is not None
            covered += interval.low <= truth[row.run][row.metric] <= interval.high
    for (run, metric), values in means.items():
        error = 4 * np.std(values) / np.sqrt(len(values))
        assert abs(mean(values) - truth[run][metric]) < error
    assert covered >= 0.93 * 240


def test_pairs_are_refused_for_documents_that_could_not_be_drawn() -> None:
    runs, judged, people = made()
    plan = plan_labels(judged, {"a": runs["a"]}, budget=100, pairs=True, k=5)
    given = labelled(plan, people)
    for run, metric, problem in (
        ("b", "precision@5", "the plan drew pairs of other runs than b"),
        ("a", "precision@10", r"precision@10 reads deeper than the top 5"),
        ("a", "rbp", "rbp reads deeper than the top 5"),
    ):
        with pytest.raises((MismatchError, UsageError), match=problem):
            combine_labels(
                {run: runs[run]},
                judged=judged,
                people=given,
                plan=plan,
                metrics=metric,
            )
    with pytest.raises(MismatchError, match="labelled nothing of the top 10"):
        plan_labels(judged, [{"q0": ["new"]}], budget=100, pairs=True)
    with pytest.raises(ParameterError, match="k must be an integer >= 1, got 0"):
        plan_labels(judged, runs, budget=100, pairs=True, k=0)


def test_pairs_are_refused_for_metrics_that_do_not_add_up() -> None:
    runs, judged, people = made()
    plan = plan_labels(judged, runs, budget=200, pairs=True)
    given = labelled(plan, people)
    with pytest.raises(UsageError, match=r"ndcg@10 does not add up .* whole queries"):
        combine_labels(runs, judged=judged, people=given, plan=plan)


def test_the_result_is_a_plain_value_with_tables(tmp_path: Path) -> None:
    runs, judged, people = made()
    plan = plan_labels(judged, budget=20 * 12)
    plan.save(tmp_path / "todo.jsonl")
    result = combine_labels(
        runs,
        judged=judged,
        people=labelled(plan, people),
        plan=tmp_path / "todo.jsonl",
        width=0.1,
    )
    result.save(tmp_path / "combined.json")
    assert type(result).load(tmp_path / "combined.json") == result
    first, second = result.tables()
    by = "40 queries by the judge, 20 of them by people (240 labels)"
    assert first.title == f"ndcg@10: {by}"
    assert second.title == f"recall@10: {by}"
    assert first.columns[-1] == "labels"
    assert [row[0] for row in first.rows[::3]] == ["a", "b", "b - a"]
    assert first.width <= 80
