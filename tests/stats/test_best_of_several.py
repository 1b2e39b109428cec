"""The best of several systems: its interval allows for the choice, at every n."""

import itertools

import numpy as np
import pytest
import scipy.stats

from karat.extend import Floats
from karat.stats.intervals import mean_interval
from karat.stats.multiple_tests import best_interval, max_t, maybe_best
from karat.stats.sign_flip import flipped


def draw(
    generator: np.random.Generator, queries: int, *, binary: bool, apart: float = 0.0
) -> Floats:
    """Scores of 12 systems; half of what decides them is the query."""
    shared, own = generator.normal(size=queries), generator.normal(size=(12, queries))
    value = shared + own + np.linspace(0, apart, 12)[:, None]
    scores: Floats = (value > 0.5).astype(float) if binary else 1 / (1 + np.exp(-value))
    return scores


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("queries", [40, 150])
def test_the_interval_covers_the_true_mean_of_what_was_chosen(
    queries: int,
    binary: bool,  # noqa: FBT001
) -> None:
    generator = np.random.default_rng(queries)
    truth = draw(generator, 200_000, binary=binary).mean()
    covered = single = 0
    for _ in range(150):
        scores = draw(generator, queries, binary=binary)
        best = int(scores.mean(axis=1).argmax())
        low, high = best_interval(scores, best, binary=binary) or (0, 0)
        covered += low <= truth <= high
        low, high = mean_interval(scores[best], binary=binary) or (0, 0)
        single += low <= truth <= high
    # The bound is 95 %; 150 draws of that fall below 136 once in ten thousand.
    assert covered >= 136
    assert single < 136


@pytest.mark.slow
def test_the_truly_best_system_is_among_those_that_may_be() -> None:
    generator = np.random.default_rng(3)
    among = few = 0
    for _ in range(60):
        found = maybe_best(draw(generator, 100, binary=False, apart=0.8))
        among += bool(found[-1])
        few += int(found.sum())
    assert among >= 55
    assert few < 60 * 9


def test_one_system_has_its_own_interval() -> None:
    scores = np.random.default_rng(0).uniform(size=(1, 50))
    assert best_interval(scores, 0) == mean_interval(scores[0])
    assert maybe_best(scores).tolist() == [True]


def test_queries_that_a_system_was_not_asked_change_nothing_for_others() -> None:
    scores = np.random.default_rng(0).uniform(size=(3, 40))
    scores[2, 20:] = np.nan
    low, high = best_interval(scores, 0) or (0, 0)
    alone = mean_interval(scores[0])
    assert alone is not None
    assert low < alone.low
    assert high == alone.high
    unasked = np.vstack([scores[:2], np.full(40, np.nan)])
    assert maybe_best(unasked)[:2].tolist() == maybe_best(scores[:2]).tolist()


@pytest.mark.parametrize("systems", [2, 5])
def test_the_lower_limit_holds_for_all_systems_at_once(systems: int) -> None:
    scores = np.random.default_rng(systems).uniform(size=(systems, 8))
    centred = scores - scores.mean(axis=1, keepdims=True)
    centred /= np.sqrt((centred**2).sum(axis=1, keepdims=True))
    signs = np.array([*itertools.product((1, -1), repeat=8)])
    reach = np.quantile((signs @ centred.T).max(axis=1), 0.975)
    level = 2 * scipy.stats.norm.cdf(max(reach, scipy.stats.norm.ppf(0.975))) - 1
    found, single = best_interval(scores, 1), mean_interval(scores[1])
    wide = mean_interval(scores[1], level=level)
    assert found is not None
    assert single is not None
    assert wide is not None
    assert found[:2] == pytest.approx((wide.low, single.high), abs=1e-9)
    assert wide.low < single.low
    assert (found.level, found.method) == (0.95, f"gaffke, best of {systems}")


def test_a_system_is_out_when_another_is_shown_to_beat_it() -> None:
    generator = np.random.default_rng(1)
    scores = generator.uniform(size=(4, 60))
    scores[3] += 0.5
    found = maybe_best(scores)
    assert found.tolist() == [False, False, False, True]
    adjusted = max_t(flipped(np.delete(scores, 0, 0) - scores[0]))
    assert min(one.p for one in adjusted) <= 0.05
    flat = np.ones((3, 20))
    assert maybe_best(flat).all()
    assert best_interval(flat, 0) == mean_interval(flat[0])
    # One score tells nothing of how a system varies.
    flat[2, 1:] = np.nan
    assert best_interval(flat, 0) == mean_interval(flat[0])
