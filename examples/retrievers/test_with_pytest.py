"""A build that fails when retrieval gets worse: run it with pytest."""

import karat

QUERIES = {"q1": "grain for poor soil", "q2": "porridge for horses"}
GOLD = {"q1": ["rye"], "q2": ["oats"]}


def search(query: str, k: int) -> list[str]:
    """Your retriever."""
    names = {"grain": ["rye", "rice"], "porridge": ["oats", "rice"]}
    return names[query.split(maxsplit=1)[0]][:k]


def test_the_right_documents_come_first_and_soon() -> None:
    """Quality and speed, in one test."""
    result = karat.evaluate(retriever=search, queries=QUERIES, gold=GOLD)
    assert result["recall@5"].mean >= 0.9  # noqa: S101, PLR2004
    assert result.latency is not None  # noqa: S101
    assert (result.latency.percentiles["p95"] or 0) < 500  # noqa: S101, PLR2004
