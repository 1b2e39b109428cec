"""A retriever for tests, what it is asked, and what a run holds."""

import karat

QUERIES = {f"q{n}": f"question {n}" for n in range(6)}
CORPUS = ["d1", "d2", "d3", "d4"]


def search(query: str, k: int) -> list[str]:
    """The first documents, whatever is asked."""
    del query
    return CORPUS[:k]


def ids(run: karat.Run) -> dict[str, list[str | None]]:
    """The ranked ids of each query."""
    policies = karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}).policies
    return {q: [d.id for d in ranking] for q, ranking in run.rankings(policies)}


def kinds(run: karat.Run) -> set[str]:
    """What a run has to say."""
    return {notice.kind for notice in run.retrieval.notices}
