"""Reading only a part of each ranking."""

import numpy as np
import pytest

from karat.data.runs import Located
from karat.extend import Policies
from karat.matching.to_hits import narrow


def located() -> Located:
    """One query with six documents, one with two, and one that the run lacks."""
    return Located(
        query=np.array([0, 0, 0, 1]),
        rank=np.array([1, 3, 4, 2]),
        grade=np.array([0.0, -1.0, 2.0, 1.0]),
        retrieved=np.array([6, 2, -1]),
        extra=1,
    )


def rows(of: Located) -> list[tuple[int, int, float]]:
    return [*zip(of.query.tolist(), of.rank.tolist(), of.grade.tolist(), strict=True)]


def test_depth_drops_what_stands_below() -> None:
    shallow = narrow(located(), Policies(depth=3))
    assert rows(shallow) == [(0, 1, 0.0), (0, 3, -1.0), (1, 2, 1.0)]
    assert shallow.retrieved.tolist() == [3, 2, -1]
    assert shallow.extra == 1


def test_judged_documents_move_up_and_negative_grades_are_no_judgement() -> None:
    judged = narrow(located(), Policies(judged_only=True))
    assert rows(judged) == [(0, 1, 0.0), (0, 2, 2.0), (1, 1, 1.0)]
    assert judged.retrieved.tolist() == [2, 1, -1]


def test_depth_comes_first() -> None:
    both = narrow(located(), Policies(depth=3, judged_only=True))
    assert rows(both) == [(0, 1, 0.0), (1, 1, 1.0)]
    assert both.retrieved.tolist() == [1, 1, -1]


@pytest.mark.parametrize("policies", [Policies(depth=1), Policies(judged_only=True)])
def test_a_ranking_may_be_left_empty_but_not_missing(policies: Policies) -> None:
    unjudged = Located(
        np.array([0]), np.array([2]), np.array([-1.0]), np.array([2, -1])
    )
    left = narrow(unjudged, policies)
    assert rows(left) == []
    assert left.retrieved.tolist() in ([1, -1], [0, -1])


def test_items_follow_their_rows() -> None:
    with_items = Located(
        np.array([0, 0]),
        np.array([1, 5]),
        np.array([1.0, 1.0]),
        np.array([5]),
        item=np.array([7, 8]),
    )
    kept = narrow(with_items, Policies(depth=2)).item
    assert kept is not None
    assert kept.tolist() == [7]


def test_no_depth_is_too_large() -> None:
    assert (narrow(located(), Policies(depth=10**30)).rank == located().rank).all()
