"""What approximation loses, against brute force over the same vectors."""

from pathlib import Path

import numpy as np
import pytest

import karat
from karat.errors import ParameterError

RANDOM = np.random.default_rng(7)
VECTORS = RANDOM.normal(size=(200, 8))
ASKED = {f"q{n}": str(n) for n in range(20)}
POINTS = RANDOM.normal(size=(20, 8))
# Half of what is relevant is near in these vectors; the other half is anywhere.
NEAR = {q: np.argsort(-(VECTORS @ POINTS[int(t)])) for q, t in ASKED.items()}
GOLD = {
    q: {*(f"d{n}" for n in NEAR[q][:2]), *(f"d{n}" for n in NEAR[q][100:102])}
    for q in ASKED
}


def search(query: str, k: int, step: int = 1) -> list[str]:
    places = np.arange(0, 200, step)
    scores = VECTORS[places] @ POINTS[int(query)]
    return [f"d{n}" for n in places[np.argsort(-scores)][:k]]


def approximate(query: str, k: int) -> list[str]:
    return search(query, k, step=2)


def test_the_parts_add_up_and_are_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = {q: sorted(names) for q, names in GOLD.items()}
    monkeypatch.chdir(tmp_path)
    loss = karat.ann_loss(approximate, search, gold=gold, queries=ASKED, k=10)
    assert loss.recall + loss.approximation + loss.ranking == pytest.approx(1)
    # Exact search finds the near half, and nothing else; the index sees half of it.
    assert loss.ranking == pytest.approx(0.5)
    halves = [sum(int(d[1:]) % 2 for d in search(t, 2)) / 4 for t in ASKED.values()]
    assert loss.approximation == pytest.approx(np.mean(halves))
    tens = [sum(int(d[1:]) % 2 == 0 for d in search(t, 10)) for t in ASKED.values()]
    assert loss.overlap == pytest.approx(np.mean(tens) / 10)
    assert loss.interval is not None
    assert loss.interval.low < loss.approximation < loss.interval.high
    assert "lost by approximation" in str(loss)


def test_an_exact_index_loses_nothing() -> None:
    loss = karat.ann_loss({"q": ["a"]}, {"q": ["a"]}, gold={"q": ["a", "b"]}, k=1)
    assert (loss.approximation, loss.ranking, loss.overlap) == (0, 0.5, 1)


def test_k_must_be_a_count() -> None:
    with pytest.raises(ParameterError, match="k must be an integer >= 1"):
        karat.ann_loss({"q": ["a"]}, {"q": ["a"]}, gold={"q": ["a"]}, k=0)
