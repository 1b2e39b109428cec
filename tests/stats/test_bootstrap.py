"""Drawing queries anew: means, and the same bytes."""

import numpy as np
import pytest
import scipy.stats

from karat.extend import ParameterError
from karat.stats.rank_correlation import bootstrap_means


def test_means_vary_as_those_of_scipy() -> None:
    scores = np.random.default_rng(0).beta(2, 5, (3, 200))
    ours = bootstrap_means(scores)
    assert ours.shape == (3, 10_000)
    theirs = scipy.stats.bootstrap(
        (scores,), np.mean, axis=1, method="percentile", rng=np.random.default_rng(1)
    )
    assert ours.std(axis=1) == pytest.approx(theirs.standard_error, rel=0.03)
    low, high = np.quantile(ours, [0.025, 0.975], axis=1)
    assert low == pytest.approx(theirs.confidence_interval.low, abs=0.002)
    assert high == pytest.approx(theirs.confidence_interval.high, abs=0.002)


def test_every_mean_is_one_of_drawn_queries() -> None:
    means = bootstrap_means(np.array([0.0, 0.0, 0.5, 1.0]), draws=500)
    assert set((means * 8).tolist()) <= set(range(9))
    assert bootstrap_means(np.full(7, 0.1), draws=20) == pytest.approx([0.1] * 20)


def test_every_query_is_drawn_as_often_as_any_other() -> None:
    shares = bootstrap_means(np.eye(5), draws=5000).mean(axis=1)
    assert shares == pytest.approx([0.2] * 5, abs=0.01)


def test_rows_share_the_draws() -> None:
    rows = np.random.default_rng(2).random((2, 90))
    together = bootstrap_means(rows, draws=50)
    assert together[0].tobytes() == bootstrap_means(rows[0], draws=50).tobytes()
    difference = bootstrap_means(rows[1] - rows[0], draws=50)
    assert together[1] - together[0] == pytest.approx(difference, abs=1e-11)


def test_sums_are_exact_so_the_order_of_adding_does_not_matter() -> None:
    rows = np.random.default_rng(3).normal(0, 1, (5, 1000))
    many = bootstrap_means(rows, draws=300)
    for row, means in zip(rows, many, strict=True):
        assert means.tobytes() == bootstrap_means(row, draws=300).tobytes()


@pytest.mark.parametrize(("queries", "bits"), [(1, 53), (2, 52), (64, 47), (65, 46)])
def test_scores_keep_as_many_bits_as_exact_sums_leave_them(
    queries: int, bits: int
) -> None:
    scores = np.random.default_rng(4).uniform(0.9, 1, queries)
    means = bootstrap_means(np.vstack([scores, np.eye(queries)]), draws=200)
    times = (means[1:] * queries).round().astype(int)
    whole = [int(score) for score in np.rint(scores * 2.0**bits)]
    for mean, drawn in zip(means[0].tolist(), times.T.tolist(), strict=True):
        total = sum(n * score for n, score in zip(drawn, whole, strict=True))
        assert total <= 2**53
        assert mean == total / 2**bits / queries


def test_more_queries_than_a_short_number_counts() -> None:
    means = bootstrap_means(np.arange(70_000.0), draws=20)
    assert means.mean() == pytest.approx(35_000, rel=0.01)


def test_what_cannot_be_drawn_from_is_an_error() -> None:
    with pytest.raises(ParameterError, match="scores must be finite"):
        bootstrap_means(np.array([0.1, np.nan]))
