"""The order of documents: where ranks, scores and the order given disagree.

Lists are ranked as given; mappings and tables by score, larger first; distances smaller
first. What may have been meant otherwise is said, with the switch that does it.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from karat.data.memory_runs import DocumentRun, ScoredRun
from karat.data.policies import Policies
from karat.data.runs import Document, Run
from karat.errors import ParameterError, UsageError
from karat.reading.source import Notes

ORDERS = ("descending", "ascending")
"""Which scores come first, where the caller says: large ones, or small ones."""

_RISING = (
    "{query has|queries have} scores that rise in the order given: are they distances? "
    "larger was taken as better; order='ascending' (--order ascending) takes smaller "
    "as better"
)
_AGAINST = (
    "{query has ranks that are not what its|queries have ranks that are not what their}"
    " scores say; ordered by score, larger first; order='ascending' "
    "(--order ascending) takes smaller as better, --map rank=RANK goes by rank"
)


def note_ascending(
    queries: Iterable[str], rankings: Iterable[Iterable[float]], notes: Notes
) -> None:
    """Say so if the scores of every query rise, as distances do.

    Args:
        queries: the ids of the queries.
        rankings: the scores of each of them, in the order given.
        notes: where it is said.
    """
    rising: dict[str, None] = {}
    try:
        for query, scores in zip(queries, rankings, strict=False):
            for first, second in pairwise(scores):
                if second <= first:
                    return
                rising[query] = None
    except TypeError:
        # What is no number is named by whoever looks at all of them.
        return
    for query in rising:
        notes.notice("order", _RISING, query)


def note_contradictions(
    rankings: Mapping[str, Sequence[tuple[float, float]]], notes: Notes
) -> None:
    """Say so if ranks contradict scores.

    Args:
        rankings: rank and score of each query's documents.
        notes: where it is said.
    """
    for query, pairs in rankings.items():
        by_rank = [score for _, score in sorted(pairs, key=lambda pair: pair[0])]
        if any(first < second for first, second in pairwise(by_rank)):
            notes.notice("order", _AGAINST, query)


def scores_say_the_order(documents: list[Document]) -> bool:
    """Whether a ranking is what its scores alone would make of it."""
    pairs = [(d.score, d.id) for d in documents if d.score is not None and d.id]
    return (
        len(pairs) == len(documents)
        and len({name for _, name in pairs}) == len(pairs)
        and pairs == sorted(pairs, reverse=True)
    )


def reorder(run: Run, order: str) -> Run:
    """The run with the documents of each query ordered by their scores.

    Args:
        run: what was retrieved, with scores.
        order: `descending`, larger scores first, or `ascending`.

    Example:
        >>> run = reorder(ScoredRun({"q": {"near": 0.1, "far": 0.9}}), "ascending")
        >>> [d.id for _, ranking in run.rankings(Policies()) for d in ranking]
        ['near', 'far']
    """
    if order not in ORDERS:
        raise ParameterError("evaluate", "order", f"one of {', '.join(ORDERS)}", order)
    sign = 1 if order == "descending" else -1
    rankings = dict(run.rankings(Policies()))
    scores: dict[str, dict[str, float]] = {}
    for query, documents in rankings.items():
        scores[query] = {
            d.id or str(d.text): sign * _score(d, query) for d in documents
        }
    if "texts" in run.kinds() or any(len(scores[q]) < len(rankings[q]) for q in scores):
        return DocumentRun(
            {
                q: sorted(r, key=lambda d: -sign * _score(d, q))
                for q, r in rankings.items()
            },
            run.name,
        )
    return ScoredRun(scores, run.name)


def _score(document: Document, query: str) -> float:
    if document.score is None:
        raise UsageError(
            f"order needs scores, and a document of query {query!r} has none: "
            "a list of ids is ranked as given"
        )
    return document.score
