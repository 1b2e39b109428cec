"""The evaluator for training loops, against a slow twin and the trainer's protocol."""

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import karat
from karat.extend import DataError, MismatchError, UsageError, training_evaluator

TEXTS = {f"d{n}": f"{n % 37} {n % 11} {n % 5}" for n in range(300)}
QUERIES = {f"q{n}": f"{n} {n % 11} {n % 5}" for n in range(20)}
GOLD = {f"q{n}": {f"d{n}", f"d{n + 37}"} for n in range(20)}


class Card:
    """What sentence-transformers' model card does with an evaluator."""

    def __init__(self) -> None:
        self.results: dict[Any, dict[str, float]] = {}
        self.logs: list[dict[str, float]] = []

    def set_evaluation_metrics(
        self, evaluator: Any, metrics: dict[str, float], epoch: int = 0, step: int = 0
    ) -> None:
        assert evaluator.description == "Information Retrieval"
        self.results[evaluator] = copy(metrics)
        primary = metrics[evaluator.primary_metric]
        self.logs.append({"Epoch": epoch, "Step": step, "primary": primary})


class Model:
    """Vectors of small integers: many equal similarities, and no rounding."""

    def __init__(self, similarity: str | None = "dot", seed: int = 0) -> None:
        self.similarity_fn_name = similarity
        self.model_card_data = Card()
        self.seed = seed
        self.blocks: list[int] = []

    def vectors(self, texts: list[str]) -> NDArray[np.float64]:
        words = [[int(word) + self.seed for word in text.split()] for text in texts]
        return np.array([[w % 4 - 1, w % 3, w % 2] for w in map(sum, words)], float)

    def encode_query(self, texts: list[str]) -> NDArray[np.float64]:
        return self.vectors(texts)

    def encode_document(self, texts: list[str]) -> NDArray[np.float64]:
        self.blocks.append(len(texts))
        return self.vectors(texts)


def similarity(name: str, one: Any, other: Any) -> float:
    if name == "dot":
        return float(one @ other)
    if name == "euclidean":
        return -float(((one - other) ** 2).sum())
    product = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / product


def ranked(model: Model, name: str) -> dict[str, list[str]]:
    """Every document compared with every query, then sorted: score and id, down."""
    corpus = dict(zip(TEXTS, model.vectors([*TEXTS.values()]), strict=True))
    asked = dict(zip(QUERIES, model.vectors([*QUERIES.values()]), strict=True))
    run = {}
    for query, vector in asked.items():
        scored = [(similarity(name, vector, corpus[d]), d) for d in TEXTS]
        run[query] = [d for _, d in sorted(scored)[:-101:-1]]
    return run


@pytest.mark.parametrize("name", ["dot", "euclidean"])
@pytest.mark.parametrize("block", [7, 64, 4096])
def test_equals_comparing_everything(
    name: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karat.training._DOCUMENTS", block)
    monkeypatch.setattr("karat.training._QUERIES", 3)
    model = Model(name)
    metrics = ["ndcg@10", "recall@50", "ap(of=capped)@100", "rr"]
    evaluator = training_evaluator(QUERIES, TEXTS, GOLD, metrics)
    means = evaluator(model)
    expected = karat.evaluate(ranked(model, name), gold=GOLD, metrics=metrics)
    assert means == expected.means
    for metric in metrics:
        scores = evaluator.evaluations[0][metric].scores
        assert scores.tolist() == expected[metric].scores.tolist()
    assert max(model.blocks) == min(block, 300)


class Scattered(Model):
    """Vectors of every length, no two of them alike."""

    def vectors(self, texts: list[str]) -> NDArray[np.float64]:
        seeds = ([int(word) for word in text.split()] for text in texts)
        return np.array([np.random.default_rng(s).normal(3, 9, 8) for s in seeds])


def test_cosine_is_the_similarity_where_a_model_names_none() -> None:
    evaluator = training_evaluator(QUERIES, TEXTS, GOLD, ["ap", "ndcg@20"])
    means = evaluator(Scattered(None))
    assert means == evaluator(Scattered("cosine"))
    assert means != evaluator(Scattered("dot"))
    run = ranked(Scattered(), "cosine")
    assert means == karat.evaluate(run, gold=GOLD, metrics=["ap", "ndcg@20"]).means


def test_a_trainer_gets_what_it_asks_for(tmp_path: Path) -> None:
    evaluator = training_evaluator(
        QUERIES, TEXTS, GOLD, ["ndcg@10", "hit@5"], name="dev"
    )
    assert evaluator.primary_metric == "dev_ndcg@10"
    assert evaluator.greater_is_better is True
    model = Model()
    for epoch in (1, 2):
        model.seed = epoch
        folder = str(tmp_path / "eval")
        means = evaluator(model, output_path=folder, epoch=epoch, steps=epoch * 5)
        assert means.keys() == {"dev_ndcg@10", "dev_hit@5"}
        # A trainer renames what it is given, in place.
        means["eval_dev_ndcg@10"] = means.pop("dev_ndcg@10")
    assert model.model_card_data.results[evaluator].keys() == {
        "dev_ndcg@10",
        "dev_hit@5",
    }
    assert [log["Step"] for log in model.model_card_data.logs] == [5, 10]
    first, second = evaluator.evaluations
    assert (first.run, second.run) == ("epoch 1 step 5", "epoch 2 step 10")
    lines = (tmp_path / "eval/dev_karat_results.csv").read_text().splitlines()
    assert lines[0].startswith("epoch,steps,ndcg@10,ndcg@10 low,ndcg@10 high,hit@5,")
    row = [float(cell) for cell in lines[2].split(",")[:5]]
    interval = second["ndcg@10"].interval
    assert interval is not None
    assert row == [2, 10, second["ndcg@10"].mean, interval.low, interval.high]
    assert len(lines) == 3
    saved = karat.load(tmp_path / "eval/dev_karat_epoch_1_step_5.json")
    assert saved == first
    comparison = karat.compare(saved, second)
    assert "epoch 2 step 10" in str(comparison)


def test_a_resumed_training_adds_to_the_table(tmp_path: Path) -> None:
    for epoch in (None, 0.5):
        evaluator = training_evaluator(QUERIES, TEXTS, GOLD, "rr")
        evaluator(Model(), str(tmp_path), epoch)
    assert len((tmp_path / "karat_results.csv").read_text().splitlines()) == 3


def test_a_small_corpus_is_ranked_whole() -> None:
    evaluator = training_evaluator({"q": "1"}, {"a": "1", "b": "3"}, {"q": ["b"]}, "rr")
    evaluator(Model())
    assert evaluator.evaluations[0].score("num_ret").mean == 2


def test_mistakes_are_told_in_a_sentence() -> None:
    with pytest.raises(MismatchError, match="no query in common"):
        training_evaluator({"x": "1"}, TEXTS, GOLD)
    with pytest.raises(UsageError, match="did you mean 'ndcg'"):
        training_evaluator(QUERIES, TEXTS, GOLD, ["ndgc@10"])
    with pytest.raises(UsageError, match=r"'manhattan'.*'cosine', 'dot' and 'euclid"):
        training_evaluator(QUERIES, TEXTS, GOLD)(Model("manhattan"))

    class Broken(Model):
        def vectors(self, texts: list[str]) -> NDArray[np.float64]:
            return np.full((len(texts), 2), np.nan)

    with pytest.raises(DataError, match="not finite"):
        training_evaluator(QUERIES, TEXTS, GOLD)(Broken())

    class Flat(Model):
        def vectors(self, texts: list[str]) -> NDArray[np.float64]:
            return np.zeros(len(texts))

    with pytest.raises(DataError, match="a vector for each of 20 texts"):
        training_evaluator(QUERIES, TEXTS, GOLD)(Flat())
