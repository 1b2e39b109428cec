"""karat against the exact oracle, on thousands of random small queries at once."""

from functools import partial

import numpy as np
import pytest

import karat
from karat import Evaluation
from karat.extend import Hits, read_metric
from tests.oracles import exact
from tests.oracles.cases import (
    DOCUMENT_METRICS,
    ITEM_METRICS,
    Batch,
    assert_scores,
    column,
    random_batch,
)
from tests.oracles.exact import Case, by_id

BY_ID = ITEM_METRICS | DOCUMENT_METRICS


@pytest.fixture(scope="module")
def graded() -> Batch:
    return random_batch(1, 2000, (-1, 0, 0, 1, 1, 2, 3, 4))


@pytest.fixture(scope="module")
def scored(graded: Batch) -> Evaluation:
    return karat.evaluate(graded.scores, gold=graded.gold, metrics=list(BY_ID))


@pytest.fixture(scope="module")
def listed(graded: Batch) -> Evaluation:
    return karat.evaluate(graded.rankings, gold=graded.gold, metrics=list(BY_ID))


@pytest.mark.parametrize("metric", BY_ID)
def test_scored_runs_agree_with_the_oracle_ties_included(
    metric: str, scored: Evaluation, graded: Batch
) -> None:
    assert_scores(column(scored, metric).scores, graded.cases, BY_ID[metric])


@pytest.mark.parametrize("metric", BY_ID)
def test_ranked_lists_score_bit_for_bit_as_the_scores_they_came_from(
    metric: str, listed: Evaluation, scored: Evaluation
) -> None:
    np.testing.assert_array_equal(
        column(listed, metric).scores, column(scored, metric).scores
    )


@pytest.mark.slow
def test_means_leave_out_what_is_undefined_and_count_it(
    scored: Evaluation, graded: Batch
) -> None:
    for metric, oracle in BY_ID.items():
        values = [oracle(case) for case in graded.cases.values()]
        defined = [float(value) for value in values if value is not None]
        assert column(scored, metric).n == len(defined)
        assert column(scored, metric).undefined == len(values) - len(defined)
        mean = np.mean(defined)
        if metric.startswith("gm_"):
            mean = np.exp(np.mean(np.log(np.maximum(defined, 0.00001))))
        assert column(scored, metric).mean == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("metric", ITEM_METRICS)
def test_fractional_grades_agree_with_the_oracle(
    metric: str, fractional: tuple[Batch, Evaluation]
) -> None:
    batch, evaluation = fractional
    assert_scores(column(evaluation, metric).scores, batch.cases, ITEM_METRICS[metric])


@pytest.fixture(scope="module")
def fractional() -> tuple[Batch, Evaluation]:
    batch = random_batch(2, 300, (-0.5, 0.0, 0.25, 0.3, 1.5, 2.75))
    return batch, karat.evaluate(
        batch.scores, gold=batch.gold, metrics=list(ITEM_METRICS)
    )


def test_a_number_and_its_digits_are_one_id_wherever_they_stand(
    graded: Batch, scored: Evaluation
) -> None:
    draw = np.random.default_rng(4)

    def digits(name: str) -> int | str:
        number = int(name[1:])
        return number if draw.random() < 0.5 else str(number)

    queries = list(graded.gold)[:200]
    run = {
        digits(query): [digits(name) for name in graded.rankings[query]]
        for query in queries
        if query in graded.rankings
    }
    gold = {
        digits(query): {digits(name): g for name, g in graded.gold[query].items()}
        for query in queries
    }
    evaluation = karat.evaluate(run, gold=gold, metrics=list(BY_ID))
    for metric in BY_ID:
        expected = column(scored, metric).scores[: len(queries)]
        np.testing.assert_array_equal(
            column(evaluation, metric).scores, expected, metric
        )


def test_a_number_is_found_between_ids_that_are_text() -> None:
    gold = {"q": {"1": 1, "b": 1}}
    listed = karat.evaluate({"q": ["a", 1, "b"]}, gold=gold, metrics=["recall"])
    assert listed["recall"].mean == 1.0
    scored = karat.evaluate(
        {"q": {"a": 3.0, 1: 2.0, "b": 1.0}}, gold=gold, metrics=["recall"]
    )
    assert scored["recall"].mean == 1.0


def test_a_threshold_of_zero_makes_every_judged_document_relevant() -> None:
    run, gold = {"q": ["a", "b"]}, {"q": {"a": 0, "b": 1, "c": -1}}
    case = {"q": by_id(run["q"], gold["q"])}
    oracles = {"recall": exact.recall, "ap": exact.ap, "rr": exact.rr}
    zero = karat.evaluate(run, gold=gold, metrics=list(oracles), threshold=0)
    positive = karat.evaluate(run, gold=gold, metrics=list(oracles))
    for metric, oracle in oracles.items():
        assert_scores(zero[metric].scores, case, partial(oracle, threshold=0))
        assert_scores(positive[metric].scores, case, oracle)


def test_a_threshold_for_all_is_the_threshold_of_each_but_ndcg_keeps_its_gains(
    graded: Batch,
) -> None:
    names = ["recall@3", "hit@3", "precision@3", "rr", "ap", "ap@3", "ndcg@5", "bpref"]
    spelled = [
        "recall(threshold=2)@3",
        "hit(threshold=2)@3",
        "precision(threshold=2)@3",
        "rr(threshold=2)",
        "ap(threshold=2)",
        "ap(threshold=2)@3",
        "ndcg@5",
        "bpref(threshold=2)",
    ]
    for_all = karat.evaluate(
        graded.scores, gold=graded.gold, metrics=names, threshold=2
    )
    for name, spelling in zip(names, spelled, strict=True):
        assert_scores(column(for_all, name).scores, graded.cases, BY_ID[spelling])


@pytest.mark.slow
def test_duplicates_in_a_list_keep_their_rank_and_earn_nothing(graded: Batch) -> None:
    draw = np.random.default_rng(5)
    run = {
        query: [str(name) for name in draw.choice(ranking, len(ranking) + 2)]
        for query, ranking in graded.rankings.items()
        if ranking
    }
    gold = {query: graded.gold[query] for query in run}
    evaluation = karat.evaluate(run, gold=gold, metrics=list(BY_ID))
    cases = {query: by_id(run[query], gold[query]) for query in run}
    for metric, oracle in BY_ID.items():
        assert_scores(column(evaluation, metric).scores, cases, oracle)


def random_matches(seed: int, size: int) -> tuple[Hits, dict[str, Case]]:
    """Documents that satisfy several items and items satisfied by several documents."""
    draw = np.random.default_rng(seed)
    cases: dict[str, Case] = {}
    rows: list[tuple[int, int, float, int]] = []
    all_grades: list[float] = []
    counts: list[int] = []
    retrieved: list[int] = []
    for query in range(size):
        depth = int(draw.integers(0, 8))
        grades = draw.choice([-1.0, 0.0, 0.5, 1.0, 1.0, 2.0, 3.0], draw.integers(1, 7))
        density = draw.choice([0.1, 0.3, 0.7])
        pairs = [
            (rank, int(item))
            for rank in range(1, depth + 1)
            for item in draw.permutation(len(grades))
            if draw.random() < density
        ]
        start = len(all_grades)
        rows += [(query, rank, float(grades[i]), start + i) for rank, i in pairs]
        all_grades += grades.tolist()
        counts.append(len(grades))
        retrieved.append(depth)
        cases[f"q{query}"] = Case(depth, tuple(pairs), dict(enumerate(grades.tolist())))
    columns = list(zip(*rows, strict=True))
    hits = Hits(
        query=np.array(columns[0], np.int64),
        rank=np.array(columns[1], np.int64),
        grade=np.array(columns[2], np.float64),
        gold_count=np.array(counts, np.int64),
        gold_grade=np.array(all_grades, np.float64),
        retrieved=np.array(retrieved, np.int64),
        item=np.array(columns[3], np.int64),
    )
    return hits, cases


@pytest.fixture(scope="module")
def shared() -> tuple[Hits, dict[str, Case]]:
    return random_matches(3, 2000)


@pytest.mark.parametrize("metric", ITEM_METRICS)
def test_many_to_many_matches_follow_the_credit_rule(
    metric: str, shared: tuple[Hits, dict[str, Case]]
) -> None:
    hits, cases = shared
    assert_scores(read_metric(metric).score(hits), cases, ITEM_METRICS[metric])


@pytest.mark.parametrize("metric", BY_ID)
def test_no_score_leaves_its_bounds_however_often_items_match(
    metric: str, shared: tuple[Hits, dict[str, Case]]
) -> None:
    reader = read_metric(metric)
    scores = reader.score(shared[0])
    defined = scores[~np.isnan(scores)]
    lowest, highest = reader.bounds
    assert len(defined) > 0
    assert defined.min() >= lowest
    assert defined.max() <= highest + 1e-12
