"""Whole runs that are wrong: each disaster is told first, and nothing else is."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import karat
from tests.diagnosis import disasters
from tests.diagnosis.disasters import DISASTERS, Case, K

pytestmark = [pytest.mark.slow, pytest.mark.shared_data]


def diagnosed(case: Case) -> karat.Diagnosis:
    return karat.diagnose(
        case.run, gold=case.gold, corpus=case.corpus, queries=case.queries, k=K
    )


@pytest.mark.parametrize(
    ("corpus", "bar"),
    [
        (disasters.paragraphs, 0.95),
        (disasters.chunks, 0.95),
        (disasters.abstracts, 0.9),
    ],
)
def test_disasters_are_told_first(
    corpus: Callable[[Path], Case], bar: float, shared_data: Path
) -> None:
    """Each bar is of one corpus; the third was not used for the first version.

    Its statistics, also of reversed, shifted and cut runs, were looked at when
    thresholds were chosen, so that it is not unseen.
    """
    base = corpus(shared_data)
    right, wrong = Counter[str](), Counter[str]()
    for seed, (plant, kind) in enumerate(DISASTERS.items()):
        found = diagnosed(plant(base, random.Random(seed)))
        told = {one.kind for one in found.findings}
        right.update(told & {kind})
        wrong.update(told ^ {kind} - {""})
        if right[kind]:
            # Nothing is advised before that.
            assert found.todos[0].cause == kind or kind not in found.totals
    scores = {
        kind: 2 * right[kind] / (2 * right[kind] + wrong[kind])
        for kind in {*DISASTERS.values()} - {""}
    }
    assert sum(scores.values()) / len(scores) >= bar, (scores, wrong)
    assert not diagnosed(base).findings
