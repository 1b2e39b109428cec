"""Bounds under unjudged documents, against every way to judge them."""

import random
from itertools import product

import numpy as np
import pytest

import karat
from karat.diagnosis.headroom import Bounds, bounds_of, label_moves
from karat.extend import Document

METRICS = ("ndcg", "ap", "recall", "hit", "rr", "precision")
Case = tuple[list[str], dict[str, float]]


def random_case(dice: random.Random, grades: list[float]) -> Case:
    """A ranking of a few documents, some judged, and gold with others besides."""
    size = dice.randint(1, 6)
    ranking = [f"d{n}" for n in range(size)]
    unjudged = {*dice.sample(ranking, min(size, dice.randint(0, 4)))}
    labels = {d: dice.choice([0.0, *grades]) for d in ranking if d not in unjudged}
    for n in range(dice.randint(0, 3)):
        labels[f"x{n}"] = dice.choice(grades)
    if not any(grade > 0 for grade in labels.values()):
        labels["x9"] = dice.choice(grades)
    return ranking, labels


def found_for(cases: list[Case], k: int) -> Bounds:
    rankings = {f"q{n}": [Document(d) for d in row] for n, (row, _) in enumerate(cases)}
    labels = {f"q{n}": own for n, (_, own) in enumerate(cases)}
    depth = {query: len(row) for query, row in rankings.items()}
    return bounds_of(labels, rankings, depth, k)


@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("grades", "k"),
    [([1.0], 3), ([1.0], 6), ([1.0, 2.0], 3), ([1.0, 3.0], 5), ([1.0, 2.0, 3.0], 2)],
)
def test_bounds_are_those_of_trying_everything(
    grades: list[float], k: int, count: int
) -> None:
    dice = random.Random(17 * k + len(grades))
    cases = [random_case(dice, grades) for _ in range(count)]
    # What is possible is what any gold has: all cases share the same grades.
    cases.append((["d0"], dict(zip("abc", grades, strict=False))))
    run, gold, owner = {}, {}, []
    for number, (ranking, labels) in enumerate(cases):
        lost = [d for d in ranking if d not in labels]
        for way, given in enumerate(product([0.0, *grades], repeat=len(lost))):
            run[f"{number}-{way}"] = ranking
            gold[f"{number}-{way}"] = {**labels, **dict(zip(lost, given, strict=True))}
            owner.append(number)
    names = [f"{name}@{k}" for name in METRICS]
    scored = karat.evaluate(run, gold=gold, metrics=names)
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    bounds = found_for(cases, k)
    assert bounds.exact.all()
    for name in names:
        every = scored[name].scores
        low = np.minimum.reduceat(every, starts)
        high = np.maximum.reduceat(every, starts)
        np.testing.assert_allclose(bounds.worst[name], low, atol=1e-12)
        np.testing.assert_allclose(bounds.best[name], high, atol=1e-12)
        np.testing.assert_allclose(bounds.scores[name], every[starts], atol=1e-12)


def test_beyond_the_cap_bounds_are_wider_and_hold() -> None:
    dice = random.Random(5)
    grades = [1.0, 2.0, 3.0]
    ranking = [f"d{n}" for n in range(12)]
    labels = {"d0": 1.0, "d5": 3.0, "x": 2.0}
    bounds = found_for([(ranking, labels)], 12)
    assert not bounds.exact.any()
    lost = [d for d in ranking if d not in labels]
    gold = {
        f"q{n}": {**labels, **{d: dice.choice([0.0, *grades]) for d in lost}}
        for n in range(500)
    }
    run = dict.fromkeys(gold, tuple(ranking))
    scores = karat.evaluate(run, gold=gold, metrics=["ndcg@12"])["ndcg@12"].scores
    assert (scores >= bounds.worst["ndcg@12"][0] - 1e-12).all()
    assert (scores <= bounds.best["ndcg@12"][0] + 1e-12).all()


def test_the_perfect_run_may_be_worse_than_it_looks() -> None:
    """One relevant document on top, and the tenth unjudged: not 1.0, but 0.79."""
    ranking = [f"d{n}" for n in range(10)]
    labels = {"d0": 1.0, **dict.fromkeys(ranking[1:9], 0.0)}
    bounds = found_for([(ranking, labels)], 10)
    assert bounds.scores["ndcg@10"][0] == bounds.best["ndcg@10"][0] == 1.0
    assert round(bounds.worst["ndcg@10"][0], 3) == 0.790


def test_a_diagnosis_shows_bounds_and_what_to_label_next() -> None:
    run = {"q": ["a", "u", "b"], "r": ["v", "c", "w"]}
    gold = {"q": {"a": 1, "b": 0}, "r": {"c": 1}}
    found = karat.diagnose(run, gold=gold, k=2)
    assert found.judged == pytest.approx(0.5)
    bound = found.bounds["ndcg@2"]
    assert bound.worst is not None
    assert bound.score is not None
    assert bound.best is not None
    assert bound.worst < bound.score < bound.best
    assert {(one.query, one.document) for one in found.label_next} == {
        ("q", "u"),
        ("r", "v"),
    }
    assert [one.rank for one in found.label_next] == [1, 2]
    assert "label these next" in str(found)


def test_a_mean_over_fewer_queries_than_evaluate_has_says_so() -> None:
    run = {"q1": ["a", "b"], "q2": ["a", "b"]}
    gold = {"q1": {"a": 1}, "q2": {"a": 0}}
    evaluated = karat.evaluate(run, gold=gold, metrics="precision@2")["precision@2"]
    bound = karat.diagnose(run, gold, k=2).bounds["precision@2"]
    assert (evaluated.mean, evaluated.n) == (0.25, 2)
    assert (bound.score, bound.n) == (0.5, 1)
    table = karat.diagnose(run, gold, k=2).bound_table()
    assert table is not None
    assert table.title.endswith("1 query with relevant gold, the others left out")


def test_hundreds_of_unjudged_documents_have_bounds_too() -> None:
    run = {f"q{n}": [f"d{place}" for place in range(300)] for n in range(3)}
    bounds = karat.diagnose(run, gold={q: ["d7"] for q in run}, k=270).bounds
    rr, hit = bounds["rr@270"], bounds["hit@270"]
    assert (rr.worst, rr.score, rr.best) == (1 / 8, 1 / 8, 1)
    assert (hit.worst, hit.best) == (1, 1)


@pytest.mark.parametrize("grades", [[1.0], [1.0, 3.0], [0.5]])
def test_a_label_moves_a_query_as_far_as_evaluating_with_it_says(
    grades: list[float],
) -> None:
    """Also from nothing: a query without relevant gold scores 0 until a label."""
    dice, k = random.Random(3), 4
    cases = [random_case(dice, grades) for _ in range(30)]
    cases += [(["a", "b"], {}), (["a", "b"], {"a": 0.0}), (["a"], {"a": grades[0]})]
    run = {f"q{n}": row for n, (row, _) in enumerate(cases)}
    gold = {f"q{n}": labels for n, (_, labels) in enumerate(cases)}

    def ndcg(query: str, labels: dict[str, float]) -> float:
        """A score, or 0 where nothing is relevant."""
        if not any(labels.values()):
            return 0.0
        one = {query: run[query]}, {query: labels}
        metric = f"ndcg@{k}"
        return karat.evaluate(*one, metrics=metric, force=True).means[metric]

    expected = [
        (abs(ndcg(q, {**gold[q], d: grades[-1]}) - ndcg(q, gold[q])), q, d)
        for q, row in run.items()
        for d in row[:k]
        if d not in gold[q]
    ]
    rankings = {query: [Document(d) for d in row] for query, row in run.items()}
    moves = label_moves(gold, rankings, k)
    assert [(query, one.id) for _, query, one in moves] == [one[1:] for one in expected]
    assert [move for move, *_ in moves] == pytest.approx([one[0] for one in expected])


def test_the_first_label_of_all_is_worth_one() -> None:
    (move,) = label_moves({}, {"q": [Document("a")]}, 1)
    assert move == (1.0, "q", Document("a"))


def test_bounds_are_told_where_each_document_is_an_item_and_rankings_are_known() -> (
    None
):
    run, labels = {"q": ["a", "u"]}, {"q": {"a": 1.0, "b": 1.0}}
    assert karat.diagnose(run, labels, k=2).bounds["recall@2"].best == 2 / 3
    groups = karat.Gold(labels, groups={"q": {"a": "g", "b": "g"}})
    texts = [{"id": "q", "retrieved": ["Rye."], "reference_contexts": ["Oats."]}]
    for found in (
        karat.diagnose(run, groups, k=2),
        karat.diagnose(karat.evaluate(run, labels), k=2),
        karat.diagnose(texts, k=2),
    ):
        assert (found.bounds, found.judged, found.label_next) == ({}, None, ())
