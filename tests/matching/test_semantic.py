"""The matcher of meanings, with embeddings that a test can work out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import karat
from karat.extend import DataError, ParameterError, Semantic, UsageError, read_matcher

WORDS = ("refund", "parcel", "day", "cat")


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(text.count(word)) for word in WORDS] for text in texts]


def recall(contexts: list[str], passages: list[str], **options: Any) -> float:
    samples = [{"id": "q", "contexts": contexts, "passages": passages}]
    match = Semantic(embed, **options)
    return karat.evaluate(samples, metrics=["recall"], match=match).means["recall"]


def test_a_document_satisfies_a_passage_of_the_same_direction() -> None:
    assert recall(["refund of a parcel"], ["parcel refund"]) == 1.0
    assert recall(["the cat"], ["parcel refund"]) == 0.0
    assert recall(["cat refund"], ["refund"], threshold=0.7) == 1.0
    assert recall(["cat refund"], ["refund"], threshold=0.71) == 0.0
    # Three of one and four of the other: a cosine of 0.6, and that is enough.
    assert recall(["refund " * 3 + "cat " * 4], ["refund"], threshold=0.6) == 1.0


def test_each_text_is_embedded_once() -> None:
    asked: list[str] = []

    def remember(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return embed(texts)

    samples = [
        {"id": "q", "contexts": ["refund", "cat", "day"], "passages": ["refund", "cat"]}
    ]
    result = karat.evaluate(samples, metrics=["rr"], match=Semantic(remember))
    assert sorted(asked) == ["cat", "day", "refund"]
    assert result.matchers == {"rr": "semantic(threshold=0.8)"}


def test_a_text_without_direction_satisfies_itself_and_no_other() -> None:
    assert recall(["nothing known"], ["nothing known"]) == 1.0
    assert recall(["nothing known"], ["nothing else"]) == 0.0
    assert recall(["", " "], ["refund"]) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=2, max_size=2))
def test_it_is_symmetric(counts: list[tuple[int, ...]]) -> None:
    one, two = (
        " ".join(w for w, n in zip(WORDS, row, strict=True) for _ in range(n)) or "x"
        for row in counts
    )
    assert recall([one], [two]) == recall([two], [one])
    assert recall([one], [one]) == 1.0


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ([[1.0]], "a vector for each of 2 texts"),
        ([1.0, 2.0], "a vector for each of 2 texts"),
        ([[1.0], [1.0, 2.0]], "no vectors of one length"),
        ([[1.0], [float("nan")]], "not finite"),
        (None, "no vectors|a vector for each"),
    ],
)
def test_a_reply_that_is_no_embedding_is_told(reply: Any, problem: str) -> None:
    samples = [{"id": "q", "contexts": ["a text"], "passages": ["another text"]}]
    with pytest.raises(DataError, match=problem):
        karat.evaluate(samples, metrics=["recall"], match=Semantic(lambda _: reply))


def test_arrays_will_do() -> None:
    samples = [{"id": "q", "contexts": ["refund"], "passages": ["refund parcel"]}]
    match = Semantic(lambda texts: np.array(embed(texts), np.float32), threshold=0.7)
    assert karat.evaluate(samples, metrics=["hit@1"], match=match).means["hit@1"] == 1.0


def test_what_it_cannot_work_with_is_refused() -> None:
    with pytest.raises(ParameterError, match="embed must be a function"):
        Semantic("a-model")  # type: ignore[arg-type]
    with pytest.raises(
        ParameterError, match=r"threshold must be a number > 0 and <= 1"
    ):
        Semantic(embed, threshold=0)
    with pytest.raises(UsageError, match=r"match=karat\.extend\.Semantic\(embed"):
        read_matcher("semantic(0.8)")
