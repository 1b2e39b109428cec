"""People's and a judge's scores combined: equal to ppi-python, and covering."""

import csv
import json
import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import scipy.stats

from karat import evaluate
from karat.stats.prediction_powered import combined_mean, queries_for_width

GOLDEN = Path(__file__).parents[1] / "golden" / "prediction_powered.json"
RUNS = ("bm25", "trigram", "overlap", "bm25_noisy")
CASES = json.loads(GOLDEN.read_text("utf-8"))["cases"]


@pytest.mark.parametrize("case", CASES)
def test_a_fixed_weight_gives_what_ppi_python_gives(case: dict[str, object]) -> None:
    people, judge, others = (
        np.array(case[name]) for name in ("people", "judge", "others")
    )
    weight = float(str(case["weight"]))
    result = combined_mean(people, judge, others, weight=weight)
    assert result.mean == pytest.approx(case["mean"], abs=1e-9)
    # Theirs takes the normal quantile, and divides by n where ours divides by n - 1.
    n, rest = len(people), len(others)
    variance = float((people - weight * judge).var()) / n
    variance += weight**2 * float(others.var()) / rest
    half = NormalDist().inv_cdf(0.975) * math.sqrt(variance)
    assert result.mean - half == pytest.approx(case["low"], abs=1e-9)
    assert result.mean + half == pytest.approx(case["high"], abs=1e-9)
    assert result.interval is not None
    assert result.interval.high - result.interval.low > 2 * half


def test_few_labels_correct_the_mean_of_all_queries() -> None:
    random = np.random.default_rng(3)
    judge = random.random(40)
    people = judge[:10] - 0.1
    result = combined_mean(people, judge[:10], judge[10:])
    # A constant bias is found whatever is drawn: nothing but the judge's mean is left.
    assert result.mean == pytest.approx(judge.mean() - 0.1)
    assert result.weight == pytest.approx(30 / 40)
    assert result.correlation == pytest.approx(1.0)


def test_people_alone_count_where_they_labelled_everything() -> None:
    people = np.array([0.1, 0.4, 0.8, 0.9])
    result = combined_mean(people, people[::-1], np.zeros(0))
    assert result.mean == pytest.approx(people.mean())
    assert result.weight == 0.0


@pytest.mark.parametrize(("n", "rest"), [(14, 30), (15, 30), (31, 7), (40, 2)])
@pytest.mark.parametrize("trend", [0.6, 3.0, -1.0])
def test_the_mean_and_its_interval_by_their_definition(
    n: int, rest: int, trend: float
) -> None:
    random = np.random.default_rng(n)
    judge, others = random.random(n), random.random(rest)
    people = trend * judge + random.normal(0, 0.2, n)
    share = rest / (n + rest)
    weights = np.full(n, share)
    if n >= 15:
        for fold in range(5):
            own = np.arange(n) % 5 == fold
            slope = np.polyfit(judge[~own], people[~own], 1)[0]
            weights[own] = np.clip(slope, 0, 1) * share
    corrected = people - weights * (judge - others.mean())
    first = corrected.var(ddof=1) / n
    second = weights.mean() ** 2 * others.var(ddof=1) / rest
    df = (first + second) ** 2 / (first**2 / (n - 1) + second**2 / (rest - 1))
    half = scipy.stats.t.ppf(0.975, df) * np.sqrt(first + second)
    result = combined_mean(people, judge, others)
    assert result.mean == pytest.approx(corrected.mean())
    assert result.weight == pytest.approx(weights.mean())
    assert result.correlation == pytest.approx(np.corrcoef(people, judge)[0, 1])
    assert result.interval is not None
    limits = corrected.mean() - half, corrected.mean() + half
    assert result.interval[:2] == pytest.approx(limits)
    middle = float(corrected.mean())
    narrow = combined_mean(people, judge, others, bounds=(middle, middle)).interval
    assert narrow is not None
    assert narrow[:2] == (middle, middle)


def test_a_judge_that_never_varies_has_no_weight_and_no_correlation() -> None:
    people = np.random.default_rng(0).random(20)
    result = combined_mean(people, np.ones(20), np.ones(5))
    assert result.weight == 0
    assert math.isnan(result.correlation)
    assert math.isnan(combined_mean(np.ones(20), people, people).correlation)


def test_two_queries_of_the_judge_alone_are_enough_to_count() -> None:
    people = np.array([0.1, 0.4, 0.8, 0.9])
    weights = [combined_mean(people, people, people[:n]).weight for n in (1, 2)]
    assert weights == pytest.approx([0, 2 / 6])


def test_a_judge_without_sense_is_left_out() -> None:
    random = np.random.default_rng(5)
    people, judge = random.random(60), random.random(60)
    result = combined_mean(people, judge, random.random(600))
    alone = combined_mean(people, judge, np.zeros(0))
    assert result.interval is not None
    assert alone.interval is not None
    width = result.interval.high - result.interval.low
    assert width < 1.05 * (alone.interval.high - alone.interval.low)


def test_scores_that_never_vary_have_no_interval() -> None:
    assert combined_mean(np.ones(20), np.ones(20), np.ones(5)).interval is None


def test_a_narrower_interval_takes_more_queries() -> None:
    random = np.random.default_rng(1)
    judge = random.random(300)
    people = np.clip(judge[:40] + random.normal(0, 0.1, 40), 0, 1)
    wide, narrow = (
        queries_for_width(people, judge[:40], judge[40:], width) for width in (0.2, 0.1)
    )
    assert wide is not None
    assert narrow is not None
    assert 10 <= wide < narrow <= 300
    assert queries_for_width(people, judge[:40], judge[40:], 0.001) is None


@pytest.mark.parametrize("others", [2, 15, 60])
@pytest.mark.parametrize("trend", [0.7, 2.0, -1.0])
def test_the_width_expected_of_so_many_labels(others: int, trend: float) -> None:
    random = np.random.default_rng(others)
    judge, rest = random.random(20), random.random(others)
    people = trend * judge + random.normal(0, 0.2, 20)
    total = 20 + others
    of_judge = np.concatenate([judge, rest]).var(ddof=1)
    (of_people, covariance), (_, own) = np.cov(people, judge)
    widths = []
    for n in range(10, total + 1):
        weight = np.clip(covariance / own, 0, 1) * (total - n) / total
        variance = (of_people - 2 * weight * covariance + weight**2 * of_judge) / n
        if n < total:
            variance += weight**2 * of_judge / (total - n)
        half = scipy.stats.t.ppf(0.975, n - 1) * np.sqrt(variance)
        widths.append(2 * float(half))
    for n, width in enumerate(widths, 10):
        enough = min(m for m, one in enumerate(widths, 10) if one <= width * 1.0001)
        needed = queries_for_width(people, judge, rest, width * 1.0001)
        assert needed == enough <= n
    assert queries_for_width(people, judge, rest, min(widths) * 0.9999) is None


@pytest.mark.parametrize("noise", [0.1, 0.3, 3.0])
def test_as_many_queries_as_are_needed_make_it_as_narrow(noise: float) -> None:
    random = np.random.default_rng(2)
    judge = random.random(300)
    people = judge + random.normal(0, noise, 300)
    width = 0.4 * people.std()
    needed = queries_for_width(people[:200], judge[:200], judge[200:], width)
    assert needed is not None
    widths = []
    for _ in range(30):
        drawn = random.permutation(300)
        some, rest = drawn[:needed], drawn[needed:]
        interval = combined_mean(people[some], judge[some], judge[rest]).interval
        assert interval is not None
        widths.append(interval.high - interval.low)
    assert np.mean(widths) == pytest.approx(width, rel=0.05)


@pytest.mark.parametrize("n", [10, 20, 40])
@pytest.mark.parametrize("bias", [0.0, 0.15])
def test_the_interval_covers_skewed_scores(n: int, bias: float) -> None:
    random = np.random.default_rng(n)
    truth = random.beta(2, 1, 3000)
    people = np.clip(truth + random.normal(0, 0.1, 3000), 0, 1)
    judge = np.clip(truth + bias + random.normal(0, 0.2, 3000), 0, 1)
    covered = 0
    for _ in range(1500):
        drawn = random.integers(3000, size=400)
        some, rest = drawn[:n], drawn[n:]
        interval = combined_mean(people[some], judge[some], judge[rest]).interval
        assert interval is not None
        covered += interval.low <= people.mean() <= interval.high
    assert covered >= 0.93 * 1500


@pytest.fixture(scope="module")
def real_scores() -> dict[tuple[str, str], np.ndarray[Any, Any]]:
    """Scores of TREC's topics: (who labelled, run) -> ndcg@10."""
    folder = Path(__file__).parents[3] / "shared" / "data" / "judged_dl"
    scores = {}
    for who in ("people", "gpt-4o", "llama3.2", "mistral"):
        for run in RUNS:
            parts = []
            for year in ("dl20", "dl21"):
                gold: dict[str, dict[str, float]] = {}
                with (folder / f"{year}.tsv").open(encoding="utf-8") as file:
                    for row in csv.DictReader(file, delimiter="\t"):
                        grades = gold.setdefault(row["query"], {})
                        grades[row["document"]] = float(row[who])
                path = folder / f"{year}.{run}.run"
                column = evaluate(path, gold=gold, metrics=["ndcg@10"], order=None)
                parts.append(column["ndcg@10"].scores)
            scores[who, run] = np.concatenate(parts)
    return scores


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("judge", ["gpt-4o", "llama3.2", "mistral"])
def test_intervals_cover_what_people_said_of_real_runs(
    judge: str, real_scores: dict[tuple[str, str], np.ndarray[Any, Any]]
) -> None:
    random = np.random.default_rng(2)
    none = np.zeros(0)
    for n in (10, 20, 40):
        for run, other in (("bm25", None), ("overlap", None), ("bm25", "bm25_noisy")):
            people, judged = real_scores["people", run], real_scores[judge, run]
            if other is not None:
                people = people - real_scores["people", other]
                judged = judged - real_scores[judge, other]
            related = np.corrcoef(people, judged)[0, 1]
            covered, widths, alone = 0, [], []
            for _ in range(1000):
                drawn = random.integers(len(people), size=400)
                some, rest = drawn[:n], drawn[n:]
                both = combined_mean(people[some], judged[some], judged[rest]).interval
                own = combined_mean(people[some], judged[some], none).interval
                assert both is not None
                assert own is not None
                covered += both.low <= people.mean() <= both.high
                widths.append(both.high - both.low)
                alone.append(own.high - own.low)
            assert covered >= 930
            ratio = np.mean(widths) / np.mean(alone)
            assert n < 20 or ratio <= 1.05
            assert not (other and related >= 0.6) or ratio <= 0.85
